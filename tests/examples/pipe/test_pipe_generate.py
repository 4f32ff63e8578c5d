# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0


import numpy as np
import pytest

from examples.pipe.generate import PipeSet
from physicsnemo_cano.datapipes.generation import sample_rng

FILES = ("Pipe_X.npy", "Pipe_Y.npy", "Pipe_Q.npy")


@pytest.fixture
def folder(tiny_set):
    return tiny_set("pipe")


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
        centre = PipeSet().draw(sample_rng(3, k))
        np.testing.assert_allclose(centre(np.linspace(0, 10, 5), 1), slopes, rtol=1e-12)
        assert centre(2.5 + 1e-9, 2) != pytest.approx(centre(2.5 - 1e-9, 2))  # only smooth once
