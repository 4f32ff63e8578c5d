# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

import json

import h5py
import numpy as np
import pytest

from examples.darcy import generate as command_line
from examples.darcy.solver import draw_permeability, solve_darcy
from physicsnemo_cano.datapipes import Darcy
from physicsnemo_cano.datapipes.generation import sample_rng
from tests.examples.generator_checks import (
    check_finished_data_is_never_overwritten,
    check_it_runs_as_a_script,
    stop_while_saving,
)

SMALL = ["--n-train", "3", "--n-test", "2", "--nodes", "13", "--workers", "1", "--seed", "3"]
FILES = {"train": command_line.TRAIN, "test": command_line.TEST}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("darcy")
    command_line.main([*SMALL, "--out", str(folder)])
    return folder


def test_the_published_layout_is_written(folder):
    names = {path.name for path in folder.iterdir()}
    assert names == {*FILES.values(), "provenance.json"}
    for name, n in ((command_line.TRAIN, 3), (command_line.TEST, 2)):
        with h5py.File(folder / name) as file:
            assert set(file) == {"coeff", "sol"}
            for array in file.values():  # as HDF5 shows them, the axes are reversed
                assert (array.shape, array.dtype) == ((13, 13, n), np.float32)


def test_the_reader_gives_each_sample_its_own_draw_and_solution(folder):
    for split, first, n in (("train", 0, 3), ("test", 3, 2)):
        reader = Darcy(folder, split, stride=3)
        assert (len(reader), reader.source, reader.spatial_shape) == (n, "generated", (5, 5))
        for k in range(n):
            a = draw_permeability(sample_rng(3, first + k), 13)
            u = solve_darcy(a)
            sample, _ = reader[k]
            np.testing.assert_array_equal(sample["fx"].reshape(5, 5), a[::3, ::3])
            expected = u[::3, ::3].astype(np.float32)
            np.testing.assert_array_equal(sample["target"].reshape(5, 5), expected)


def test_provenance_names_the_command_but_no_path(folder):
    provenance = json.loads((folder / "provenance.json").read_text())
    assert provenance["command"] == (
        "python examples/darcy/generate.py --n-train 3 --n-test 2 --out DIR --seed 3 --nodes 13"
    )
    assert provenance["permeability"] == [3.0, 12.0]
    assert str(folder) not in json.dumps(provenance)


def test_finished_data_is_never_overwritten(folder, capsys):
    check_finished_data_is_never_overwritten(command_line, SMALL, folder, capsys)


def test_a_run_stopped_while_it_saves_its_data_continues(folder, tmp_path, monkeypatch):
    stop_while_saving(command_line, SMALL, tmp_path, command_line.TEST, monkeypatch)
    assert (tmp_path / command_line.TRAIN).exists()
    command_line.main([*SMALL, "--out", str(tmp_path)])
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in folder.iterdir()}
    for split in FILES:
        for (sample, _), (again, _) in zip(
            Darcy(folder, split, stride=1), Darcy(tmp_path, split, stride=1), strict=True
        ):
            assert (sample == again).all()


def test_it_runs_as_a_script(tmp_path):
    check_it_runs_as_a_script(command_line, "--n-train", tmp_path)


@pytest.mark.slow
def test_a_sample_of_full_size():
    """The solution on every second node's grid is the same to the first order in the interfaces."""
    a = command_line.draw_and_solve([sample_rng(0, 0)])
    fine, coarse = a["sol"][0, ::2, ::2], solve_darcy(a["coeff"][0, ::2, ::2])
    assert fine.shape == (211, 211)
    assert np.linalg.norm(fine - coarse) / np.linalg.norm(fine) < 0.01
