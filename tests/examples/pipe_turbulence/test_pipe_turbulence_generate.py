# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

import json

import numpy as np
import pytest

from examples.fem.flow import data_mesh
from examples.pipe_turbulence import generate as command_line
from examples.pipe_turbulence.solver import PAIRS, Pipe, draw_inflow, pair_times, pipe_mesh
from physicsnemo_cano.datapipes import PipeTurbulence
from physicsnemo_cano.datapipes.generation import sample_rng
from tests.examples.generator_checks import (
    check_finished_data_is_never_overwritten,
    check_it_runs_as_a_script,
    stop_while_saving,
)

FIVE = ["--n-runs", "5", "--workers", "1", "--seed", "3", "--size", "0.3", "--step", "0.02"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pipe_turbulence")
    command_line.main([*FIVE, "--out", str(folder)])
    return folder


def test_the_reader_finds_the_solvers_fields_and_tests_on_a_run_of_its_own(folder):
    mesh = pipe_mesh(0.3)
    points, cells = data_mesh(mesh)
    train, test = PipeTurbulence(folder), PipeTurbulence(folder, "test")
    assert (train.source, len(train), len(test)) == ("generated", 4 * PAIRS, PAIRS)
    np.testing.assert_array_equal(train.cells, cells)
    run = Pipe(mesh, 0.02).run(draw_inflow(sample_rng(3, 4)), pair_times(PAIRS))
    speeds = np.linalg.norm(run, axis=1)
    for index in (0, PAIRS - 1):
        sample, _ = test[index]
        expected = {"embedding": points, "fx": speeds[2 * index, :, None]}
        expected["target"] = speeds[2 * index + 1, :, None]
        for key, values in expected.items():
            np.testing.assert_allclose(sample[key], values, rtol=1e-6, atol=1e-7)


def test_provenance_names_the_command_but_no_path(folder):
    provenance = json.loads((folder / "provenance.json").read_text())
    assert provenance["command"] == (
        "python examples/pipe_turbulence/generate.py --n-runs 5 --out DIR --seed 3 --size 0.3 "
        "--step 0.02"
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
    check_it_runs_as_a_script(command_line, "--size", tmp_path)
