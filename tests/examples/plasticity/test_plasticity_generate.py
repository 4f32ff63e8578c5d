# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0


import numpy as np
import pytest

from examples.plasticity import generate
from examples.plasticity.generate import PlasticitySet
from examples.plasticity.solver import NotConverged, press, rectangle
from physicsnemo_cano.datapipes import Plasticity
from physicsnemo_cano.datapipes.generation import sample_rng
from physicsnemo_cano.datapipes.matlab import MatlabFile

NAME = "plas_N2_T20.mat"
LAYOUT = {"input": (2, 11), "output": (2, 11, 4, 20, 4)}


@pytest.fixture
def folder(tiny_set):
    return tiny_set("plasticity")


def test_the_published_layout_is_written(folder):
    assert {path.name for path in folder.iterdir()} == {NAME, "provenance.json"}
    with MatlabFile(folder / NAME, LAYOUT) as file:
        die, output = file["input"][:], file["output"][:]
    assert die.dtype == output.dtype == np.float32
    nodes = rectangle((11, 4))[0].reshape(11, 4, 1, 2)
    np.testing.assert_allclose(
        output[..., :2] - output[..., 2:], np.broadcast_to(nodes, (2, 11, 4, 20, 2)), atol=1e-5
    )
    profile = PlasticitySet().draw(sample_rng(3, 1))
    np.testing.assert_array_equal(die[1], profile(np.linspace(0, 50, 11), 0).astype(np.float32))
    expected = np.moveaxis(press(profile, (11, 4)), 0, 2)
    np.testing.assert_allclose(output[1, ..., :2], expected, atol=1e-4)
    np.testing.assert_array_equal(output[:, :, 0, :, 2:], 0)  # held below


def test_the_reader_gives_the_files_values(folder):
    reader = Plasticity(folder, "train")
    assert reader.spatial_shape == (11, 4)
    sample, _ = reader[0]
    with MatlabFile(folder / NAME, LAYOUT) as file:
        output = file["output"][0]
    np.testing.assert_array_equal(sample["target"].reshape(11, 4, 20, 4).numpy(), output)


def test_a_die_touches_the_block_at_first():
    for k in range(20):
        profile = PlasticitySet().draw(sample_rng(0, k))
        x = np.linspace(0, 50, 20001)
        heights = profile(x, 0)
        assert -1e-9 < heights.min() < 1e-6
        assert heights.max() < 8
        np.testing.assert_allclose(np.gradient(heights, x), profile(x, 1), atol=2e-3)
        np.testing.assert_allclose(np.gradient(profile(x, 1), x), profile(x, 2), atol=2e-3)


def test_a_die_that_fails_is_drawn_anew(monkeypatch):
    def fail_first(profile, shape):
        calls.append(profile)
        if len(calls) == 1:
            raise NotConverged("at first")
        return press(profile, shape)

    calls = []
    monkeypatch.setattr(generate, "press", fail_first)
    arrays = PlasticitySet(shape=(5, 3)).sample([sample_rng(0, 0), sample_rng(0, 1)])
    np.testing.assert_array_equal(arrays["draws"], [2, 1])
    rng = sample_rng(0, 0)
    PlasticitySet().draw(rng)
    second = PlasticitySet().draw(rng)(np.linspace(0, 50, 5), 0)
    np.testing.assert_array_equal(arrays["input"][0], second.astype(np.float32))

    def never(profile, shape):
        raise NotConverged("never")

    monkeypatch.setattr(generate, "press", never)
    with pytest.raises(RuntimeError, match="no draw of 5"):
        PlasticitySet(shape=(5, 3)).sample([sample_rng(0, 0)])
