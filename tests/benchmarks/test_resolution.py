# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""The resolution study, on a set of a few samples."""

import csv
import json
import sys
from pathlib import Path

import pytest
import torch

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.parametrize("variant", ["cano-grid", "transolver-grid", "fno-grid"])
def test_the_training_grid_has_the_error_of_the_run(variant, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from benchmarks import resolution

    data = tmp_path / "waves"
    data.mkdir()
    for name, n in (("train_16", 16), ("test_16", 16), ("test_24", 24)):
        x = torch.rand(6, n, n)
        torch.save({"x": x, "y": x.cumsum(1) / n}, data / f"darcy_{name}.pt")
    options = f"--epochs 1 --n-hidden 16 --seeds 3 --only {variant}".split()
    places = ["--out", str(tmp_path / "rows.csv"), "--runs", str(tmp_path / "runs")]
    monkeypatch.setattr(sys, "argv", ["resolution.py", str(data), *options, *places])
    for _ in range(2):  # the second time the row is there
        resolution.main()
    (row,) = csv.DictReader((tmp_path / "rows.csv").open())
    assert (row["study"], row["variant"], row["points_per_axis"]) == ("waves", variant, "16 24")
    (file,) = (tmp_path / "runs").glob("*/metrics.json")
    expected = json.loads(file.read_text())["test_rel_l2"]
    found = [float(e) for e in row["rel_l2"].split()]
    assert found[0] == pytest.approx(expected, abs=1e-5)
    assert found[1] != found[0]
