# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0


import h5py
import numpy as np
import pytest

from examples.darcy.generate import DarcySet
from examples.darcy.solver import draw_permeability, solve_darcy
from physicsnemo_cano.datapipes import Darcy
from physicsnemo_cano.datapipes.generation import sample_rng

TRAIN, TEST = DarcySet.files


@pytest.fixture
def folder(tiny_set):
    return tiny_set("darcy")


def test_the_published_layout_is_written(folder):
    names = {path.name for path in folder.iterdir()}
    assert names == {TRAIN, TEST, "provenance.json"}
    for name, n in ((TRAIN, 3), (TEST, 2)):
        with h5py.File(folder / name) as file:
            assert set(file) == {"coeff", "sol"}
            for array in file.values():  # as HDF5 shows them, the axes are reversed
                assert (array.shape, array.dtype) == ((16, 16, n), np.float32)


def test_the_reader_gives_each_sample_its_own_draw_and_solution(folder):
    for split, first, n in (("train", 0, 3), ("test", 3, 2)):
        reader = Darcy(folder, split, stride=3)
        assert (len(reader), reader.source, reader.spatial_shape) == (n, "generated", (6, 6))
        for k in range(n):
            a = draw_permeability(sample_rng(3, first + k), 16)
            u = solve_darcy(a)
            sample, _ = reader[k]
            np.testing.assert_array_equal(sample["fx"].reshape(6, 6), a[::3, ::3])
            expected = u[::3, ::3].astype(np.float32)
            np.testing.assert_array_equal(sample["target"].reshape(6, 6), expected)


@pytest.mark.slow
def test_a_sample_of_full_size():
    """The solution on every second node's grid is the same to the first order in the interfaces."""
    a = DarcySet().sample([sample_rng(0, 0)])
    fine, coarse = a["sol"][0, ::2, ::2], solve_darcy(a["coeff"][0, ::2, ::2])
    assert fine.shape == (211, 211)
    assert np.linalg.norm(fine - coarse) / np.linalg.norm(fine) < 0.01
