# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

import json

import numpy as np
import pytest

from examples.plasticity import generate as command_line
from examples.plasticity.generate import draw_die
from examples.plasticity.solver import NotConverged, press, rectangle
from physicsnemo_cano.datapipes import Plasticity
from physicsnemo_cano.datapipes.generation import sample_rng
from physicsnemo_cano.datapipes.matlab import MatlabFile
from tests.examples.generator_checks import (
    check_finished_data_is_never_overwritten,
    check_it_runs_as_a_script,
    stop_while_saving,
)

NAME = "plas_N2_T20.mat"
SMALL = ["--n-samples", "2", "--shape", "11", "4", "--seed", "3", "--workers", "1"]
LAYOUT = {"input": (2, 11), "output": (2, 11, 4, 20, 4)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plasticity")
    command_line.main([*SMALL, "--out", str(folder)])
    return folder


def test_the_published_layout_is_written(folder):
    with MatlabFile(folder / NAME, LAYOUT) as file:
        die, output = file["input"][:], file["output"][:]
    assert die.dtype == output.dtype == np.float32
    nodes = rectangle((11, 4))[0].reshape(11, 4, 1, 2)
    np.testing.assert_allclose(
        output[..., :2] - output[..., 2:], np.broadcast_to(nodes, (2, 11, 4, 20, 2)), atol=1e-5
    )
    profile = draw_die(sample_rng(3, 1))
    np.testing.assert_array_equal(die[1], profile(np.linspace(0, 50, 11), 0).astype(np.float32))
    expected = np.moveaxis(press(profile, (11, 4)), 0, 2)
    np.testing.assert_allclose(output[1, ..., :2], expected, atol=1e-4)
    np.testing.assert_array_equal(output[:, :, 0, :, 2:], 0)  # held below


def test_the_reader_takes_it(folder):
    reader = Plasticity(folder, "train")
    assert (len(reader), reader.source, reader.spatial_shape) == (2, "generated", (11, 4))
    sample, _ = reader[0]
    with MatlabFile(folder / NAME, LAYOUT) as file:
        output = file["output"][0]
    np.testing.assert_array_equal(sample["target"].reshape(11, 4, 20, 4).numpy(), output)


def test_a_die_touches_the_block_at_first():
    for k in range(20):
        profile = draw_die(sample_rng(0, k))
        x = np.linspace(0, 50, 20001)
        heights = profile(x, 0)
        assert -1e-9 < heights.min() < 1e-6
        assert heights.max() < 8
        np.testing.assert_allclose(np.gradient(heights, x), profile(x, 1), atol=2e-3)
        np.testing.assert_allclose(np.gradient(profile(x, 1), x), profile(x, 2), atol=2e-3)


def test_provenance_names_the_command_but_no_path(folder):
    assert {path.name for path in folder.iterdir()} == {NAME, "provenance.json"}
    provenance = json.loads((folder / "provenance.json").read_text())
    assert provenance["command"] == (
        "python examples/plasticity/generate.py --n-samples 2 --out DIR --seed 3 --shape 11 4"
    )
    assert (provenance["yield"], provenance["redrawn"]) == (70.0, "none")
    assert str(folder) not in json.dumps(provenance)


def test_finished_data_is_never_overwritten(folder, capsys):
    check_finished_data_is_never_overwritten(command_line, SMALL, folder, capsys)


def test_a_run_stopped_after_it_saved_its_data_continues(folder, tmp_path, monkeypatch):
    stop_while_saving(command_line, SMALL, tmp_path, "provenance.json", monkeypatch)
    command_line.main([*SMALL, "--out", str(tmp_path)])
    assert {path.name for path in tmp_path.iterdir()} == {NAME, "provenance.json"}
    with MatlabFile(tmp_path / NAME, LAYOUT) as file, MatlabFile(folder / NAME, LAYOUT) as other:
        np.testing.assert_array_equal(file["output"][:], other["output"][:])


def test_a_die_that_fails_is_drawn_anew(monkeypatch):
    def fail_first(profile, shape):
        calls.append(profile)
        if len(calls) == 1:
            raise NotConverged("at first")
        return press(profile, shape)

    calls = []
    monkeypatch.setattr(command_line, "press", fail_first)
    arrays = command_line.draw_and_solve([sample_rng(0, 0), sample_rng(0, 1)], (5, 3))
    np.testing.assert_array_equal(arrays["draws"], [2, 1])
    rng = sample_rng(0, 0)
    draw_die(rng)
    second = draw_die(rng)(np.linspace(0, 50, 5), 0)
    np.testing.assert_array_equal(arrays["input"][0], second.astype(np.float32))

    def never(profile, shape):
        raise NotConverged("never")

    monkeypatch.setattr(command_line, "press", never)
    with pytest.raises(RuntimeError, match="no die of 5"):
        command_line.draw_and_solve([sample_rng(0, 0)], (5, 3))


def test_it_runs_as_a_script(tmp_path):
    check_it_runs_as_a_script(command_line, "--n-samples", tmp_path)
