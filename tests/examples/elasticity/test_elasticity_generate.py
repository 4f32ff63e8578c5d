# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0


import numpy as np
import pytest

from examples.elasticity.cell import draw_void, void_radius
from physicsnemo_cano.datapipes.generation import sample_rng

FILES = ("Random_UnitCell_XY_10.npy", "Random_UnitCell_sigma_10.npy")


@pytest.fixture
def folder(tiny_set):
    return tiny_set("elasticity")


def test_the_published_layout_is_written(folder):
    points, stress = (np.load(folder / name) for name in FILES)
    assert (points.shape, stress.shape) == ((972, 2, 2), (972, 2))
    assert points.dtype == stress.dtype == np.float32
    assert stress.min() >= 0
    assert (stress.max(0) > 300).all()
    x, y = points[:108, :, 1].T - 0.5
    void = void_radius(draw_void(sample_rng(3, 1)), np.arctan2(y, x))
    np.testing.assert_allclose(np.hypot(x, y), void, rtol=1e-5)
