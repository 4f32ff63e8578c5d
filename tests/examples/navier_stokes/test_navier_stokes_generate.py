# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

import json

import numpy as np
import pytest
import torch

from examples.navier_stokes import generate as command_line
from examples.navier_stokes.solver import forcing, initial_vorticity, solve
from physicsnemo_cano.datapipes import NavierStokes
from physicsnemo_cano.datapipes.generation import sample_rng
from physicsnemo_cano.datapipes.matlab import MatlabFile
from tests.examples.generator_checks import (
    check_finished_data_is_never_overwritten,
    check_it_runs_as_a_script,
    stop_while_saving,
)

NAME = "NavierStokes_V1e-5_N3_T20.mat"
GRID = ["--grid", "64", "--points", "16"]
SMALL = ["--n-samples", "3", *GRID, "--seed", "4", "--batch-size", "2", "--workers", "1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("navier_stokes")
    command_line.main([*SMALL, "--out", str(folder)])
    return folder


def test_the_published_layout_is_written(folder):
    with MatlabFile(folder / NAME, {"u": (3, 16, 16, 20)}) as file:
        u = file["u"][:]
    assert u.dtype == np.float32
    start = initial_vorticity([sample_rng(4, 2)], 64, dtype=torch.float32)
    expected = solve(start, forcing(64), range(1, 21))[0, :, ::4, ::4]
    np.testing.assert_allclose(u[2].transpose(2, 0, 1), expected.numpy(), atol=1e-5)
    # The forcing adds at most its own norm, 0.1, to the vorticity's every unit of time.
    growth = np.diff(u.std((1, 2)), axis=1)
    assert growth.max() < 0.11
    assert growth.mean() > 0.05


def test_the_reader_takes_it(folder):
    train, test = NavierStokes(folder, "train"), NavierStokes(folder, "test")
    assert (len(train), len(test), train.source) == (2, 1, "generated")
    assert train.spatial_shape == (16, 16)


def test_provenance_names_the_command_but_no_path(folder):
    assert {path.name for path in folder.iterdir()} == {NAME, "provenance.json"}
    provenance = json.loads((folder / "provenance.json").read_text())
    assert provenance["command"] == (
        "python examples/navier_stokes/generate.py --n-samples 3 --out DIR --seed 4 --grid 64 "
        "--points 16"
    )
    assert provenance["viscosity"] == 1e-5
    assert str(folder) not in json.dumps(provenance)


def test_finished_data_is_never_overwritten(folder, capsys):
    check_finished_data_is_never_overwritten(command_line, SMALL, folder, capsys)


def test_a_run_stopped_after_it_saved_its_data_continues(folder, tmp_path, monkeypatch):
    stop_while_saving(command_line, SMALL, tmp_path, "provenance.json", monkeypatch)
    command_line.main([*SMALL, "--out", str(tmp_path)])
    for name in (NAME, "provenance.json"):
        assert (tmp_path / name).exists()
    with MatlabFile(tmp_path / NAME, {"u": (3, 16, 16, 20)}) as file:
        again = file["u"][:]
    with MatlabFile(folder / NAME, {"u": (3, 16, 16, 20)}) as file:
        np.testing.assert_array_equal(again, file["u"][:])


@pytest.mark.parametrize("grid", [["63", "--points", "21"], ["64", "--points", "30"], ["32"]])
def test_grids_that_do_not_fit_are_refused(grid, tmp_path, capsys):
    with pytest.raises(SystemExit):
        command_line.main(["--out", str(tmp_path), "--grid", *grid])
    assert "multiple of --points" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_it_runs_as_a_script(tmp_path):
    check_it_runs_as_a_script(command_line, "--n-samples", tmp_path)
