# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0


import numpy as np
import pytest
import torch

from examples.navier_stokes.solver import forcing, initial_vorticity, solve
from physicsnemo_cano.datapipes import NavierStokes
from physicsnemo_cano.datapipes.generation import sample_rng
from physicsnemo_cano.datapipes.matlab import MatlabFile

NAME = "NavierStokes_V1e-5_N3_T20.mat"


@pytest.fixture
def folder(tiny_set):
    return tiny_set("navier_stokes")


def test_the_published_layout_is_written(folder):
    assert {path.name for path in folder.iterdir()} == {NAME, "provenance.json"}
    with MatlabFile(folder / NAME, {"u": (3, 16, 16, 20)}) as file:
        u = file["u"][:]
    assert u.dtype == np.float32
    assert NavierStokes(folder).spatial_shape == (16, 16)
    start = initial_vorticity([sample_rng(3, 2)], 64, dtype=torch.float32)
    expected = solve(start, forcing(64), range(1, 21))[0, :, ::4, ::4]
    np.testing.assert_allclose(u[2].transpose(2, 0, 1), expected.numpy(), atol=1e-5)
    # The forcing adds at most its own norm, 0.1, to the vorticity's every unit of time.
    growth = np.diff(u.std((1, 2)), axis=1)
    assert growth.max() < 0.11
    assert growth.mean() > 0.05
