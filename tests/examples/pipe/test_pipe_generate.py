# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

import json

import numpy as np
import pytest

from examples.pipe import generate as command_line
from physicsnemo_cano.datapipes import Pipe
from physicsnemo_cano.datapipes.generation import sample_rng
from tests.examples.generator_checks import (
    check_finished_data_is_never_overwritten,
    check_it_runs_as_a_script,
    stop_while_saving,
)

SIZE = ["--shape", "17", "9", "--elements", "16", "6"]
TWO = ["--n-samples", "2", "--workers", "1", "--seed", "3", *SIZE]
FILES = ("Pipe_X.npy", "Pipe_Y.npy", "Pipe_Q.npy")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pipe")
    command_line.main([*TWO, "--out", str(folder)])
    return folder


def test_the_published_layout_is_written(folder):
    x, y, q = (np.load(folder / name) for name in FILES)
    assert (x.shape, y.shape, q.shape) == ((2, 17, 9), (2, 17, 9), (2, 2, 17, 9))
    assert x.dtype == y.dtype == q.dtype == np.float32
    np.testing.assert_allclose(x[1, :, 0], np.linspace(0, 10, 17), rtol=1e-6)
    np.testing.assert_allclose(
        q[:, 0, 0], 1 - 4 * np.linspace(-0.5, 0.5, 9) ** 2 + 0 * y[:, 0], atol=1e-6
    )
    np.testing.assert_allclose(y[:, :, -1] - y[:, :, 0], 1, rtol=1e-5)


def test_a_sample_is_its_own_draw_of_nodes_and_slopes(folder):
    y = np.load(folder / "Pipe_Y.npy")
    for k in range(2):
        rng = sample_rng(3, k)
        heights, slopes = rng.uniform(-2, 2, 5), rng.uniform(-1, 1, 5)
        np.testing.assert_allclose(y[k, ::4].mean(-1), heights, rtol=1e-5)
        centre = command_line.draw_centre(sample_rng(3, k))
        np.testing.assert_allclose(centre(np.linspace(0, 10, 5), 1), slopes, rtol=1e-12)
        assert centre(2.5 + 1e-9, 2) != pytest.approx(centre(2.5 - 1e-9, 2))  # only smooth once


def test_the_reader_takes_it(folder):
    test = Pipe(folder, "test")
    assert (test.source, len(Pipe(folder, "train")) + len(test)) == ("generated", 2)


def test_provenance_names_the_command_but_no_path(folder):
    provenance = json.loads((folder / "provenance.json").read_text())
    assert provenance["command"] == (
        "python examples/pipe/generate.py --n-samples 2 --out DIR --seed 3 "
        "--shape 17 9 --elements 16 6"
    )
    assert provenance["viscosity"] == 0.005
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


def test_elements_end_where_the_pipes_curvature_jumps(tmp_path, capsys):
    with pytest.raises(SystemExit):
        command_line.main(["--out", str(tmp_path), "--elements", "18", "6"])
    assert "multiple of 4 along, got 18" in capsys.readouterr().err


def test_it_runs_as_a_script(tmp_path):
    check_it_runs_as_a_script(command_line, "--n-samples", tmp_path)
