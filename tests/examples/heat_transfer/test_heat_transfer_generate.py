# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

import importlib
import json
from dataclasses import astuple

import matplotlib.pyplot as plt
import numpy as np
import pytest

from examples.heat_transfer import generate as command_line
from examples.heat_transfer.solver import draw_conditions
from physicsnemo_cano.datapipes import HeatTransfer
from physicsnemo_cano.datapipes.generation import sample_rng
from tests.examples.generator_checks import (
    check_finished_data_is_never_overwritten,
    check_it_runs_as_a_script,
    stop_while_saving,
)
from tests.recipe.helpers import train

FIVE = ["--n-samples", "5", "--workers", "1", "--seed", "3", "--sizes", "0.2", "0.35"]
FIVE += ["--frames", "12", "--interval", "0.1", "--pulse", "0.3", "--skip", "2"]
OPTIONS = {"frames": 12, "interval": 0.1, "pulse": 0.3, "skip": 2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("heat_transfer")
    command_line.main([*FIVE, "--out", str(folder)])
    return folder


def test_the_reader_finds_the_solvers_fields_on_a_mesh_of_each(folder):
    train, test = HeatTransfer(folder), HeatTransfer(folder, "test")
    assert (train.source, len(train), len(test)) == ("generated", 4, 1)
    assert len(set(train.sizes() + test.sizes())) == 5
    rng = sample_rng(3, 4)
    conditions, size = draw_conditions(rng), rng.uniform(0.2, 0.35)
    found = command_line.solve(conditions, size, **OPTIONS)
    sample, _ = test[0]
    np.testing.assert_array_equal(test.cells(0), found.cells)
    np.testing.assert_allclose(sample["embedding"], found.points, rtol=1e-6)
    frames = found.velocity.transpose(2, 0, 1).reshape(len(found.points), -1)
    np.testing.assert_allclose(sample["fx"][:, :10], frames[:, :10], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(sample["target"], frames[:, 10:], rtol=1e-6, atol=1e-7)
    kinds = np.eye(5)[found.node_type]
    np.testing.assert_array_equal(sample["fx"][:, 10:15], kinds)
    np.testing.assert_allclose(sample["fx"][0, 15:], astuple(conditions), rtol=1e-6)


def test_a_flow_that_blows_up_is_solved_in_shorter_steps(monkeypatch):
    asked = []

    def fragile(conditions, frames, interval, size, substeps):
        asked.append(substeps)
        if len(asked) < 3:
            raise FloatingPointError
        return "solved"

    monkeypatch.setattr(command_line, "simulate", fragile)
    assert command_line.solve(None, 0.075, frames=2, interval=0.05) == "solved"
    assert asked == [20, 40, 80]


def test_figures_are_drawn_of_clouds_that_differ(folder, tmp_path):
    draw = importlib.import_module("examples.heat_transfer.figures").draw
    options = ("data.n_train=4", "data.n_test=1", "training.epochs=1", "training.batch_size=2")
    found = train(folder, tmp_path, *options, figures=draw, benchmark="heat_transfer")
    assert 0 < found["test_rel_l2"] < 20
    drawn = {file.stem: file for file in (tmp_path / "figures").glob("*.png")}
    fields = [f"{name}_{title}" for name in "uv" for title in ("median", "worst")]
    others = ["clusters", "error_in_time", "errors", "horizons", "training"]
    assert sorted(drawn) == others + fields
    for file in drawn.values():
        assert plt.imread(file)[..., :3].std() > 0.02  # not blank


def test_provenance_names_the_command_but_no_path(folder):
    provenance = json.loads((folder / "provenance.json").read_text())
    assert provenance["command"] == (
        "python examples/heat_transfer/generate.py --n-samples 5 --out DIR --seed 3 "
        "--sizes 0.2 0.35 --frames 12 --interval 0.1 --pulse 0.3 --skip 2"
    )
    assert str(folder) not in json.dumps(provenance)


def test_finished_data_is_never_overwritten(folder, capsys):
    check_finished_data_is_never_overwritten(command_line, FIVE, folder, capsys)


def test_a_run_stopped_while_it_saves_its_data_continues(folder, tmp_path, monkeypatch):
    stop_while_saving(command_line, FIVE, tmp_path, "provenance.json", monkeypatch)
    command_line.main([*FIVE, "--out", str(tmp_path)])
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {path.name for path in folder.iterdir()}
    for name in names:
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_it_runs_as_a_script(tmp_path):
    check_it_runs_as_a_script(command_line, "--sizes", tmp_path)
