# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0


import numpy as np
import pytest

from examples.fem.flow import data_mesh
from examples.pipe_turbulence.solver import PAIRS, Pipe, draw_inflow, pair_times, pipe_mesh
from physicsnemo_cano.datapipes import PipeTurbulence
from physicsnemo_cano.datapipes.generation import sample_rng


@pytest.fixture
def folder(tiny_set):
    return tiny_set("pipe_turbulence")


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
