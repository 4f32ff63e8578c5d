# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

import json

import numpy as np
import pytest

from examples.elasticity import generate as command_line
from examples.elasticity.cell import draw_void, void_radius
from physicsnemo_cano.datapipes import Elasticity
from physicsnemo_cano.datapipes.generation import sample_rng
from tests.examples.generator_checks import (
    check_finished_data_is_never_overwritten,
    check_it_runs_as_a_script,
    stop_while_saving,
)

TWO = ["--n-samples", "2", "--workers", "1", "--seed", "3"]
FILES = ("Random_UnitCell_XY_10.npy", "Random_UnitCell_sigma_10.npy")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("elasticity")
    command_line.main([*TWO, "--out", str(folder)])
    return folder


def test_the_published_layout_is_written(folder):
    points, stress = (np.load(folder / name) for name in FILES)
    assert (points.shape, stress.shape) == ((972, 2, 2), (972, 2))
    assert points.dtype == stress.dtype == np.float32
    assert stress.min() >= 0
    assert (stress.max(0) > 300).all()
    x, y = points[:108, :, 1].T - 0.5
    void = void_radius(draw_void(sample_rng(3, 1)), np.arctan2(y, x))
    np.testing.assert_allclose(np.hypot(x, y), void, rtol=1e-5)


def test_the_reader_takes_it(folder):
    test = Elasticity(folder, "test")
    assert (test.source, len(Elasticity(folder, "train")) + len(test)) == ("generated", 2)


def test_provenance_names_the_command_but_no_path(folder):
    provenance = json.loads((folder / "provenance.json").read_text())
    assert provenance["command"] == (
        "python examples/elasticity/generate.py --n-samples 2 --out DIR --seed 3"
    )
    assert provenance["traction"] == 100
    assert str(folder) not in json.dumps(provenance)


def test_finished_data_is_never_overwritten(folder, capsys):
    check_finished_data_is_never_overwritten(command_line, TWO, folder, capsys)


def test_a_run_stopped_while_it_saves_its_data_continues(folder, tmp_path, monkeypatch):
    stop_while_saving(command_line, TWO, tmp_path, FILES[1], monkeypatch)
    command_line.main([*TWO, "--out", str(tmp_path)])
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {path.name for path in folder.iterdir()}
    for name in names:
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_it_runs_as_a_script(tmp_path):
    check_it_runs_as_a_script(command_line, "--n-samples", tmp_path)
