# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
"""The base of readers, and what one of them does beside what all do."""

from pathlib import Path

import numpy as np
import pytest
import torch

from physicsnemo_cano.datapipes import Airfoil, Channel, Elasticity, FieldReader, NavierStokes
from tests.datapipes.small_sets import SETS, write


def test_the_embedded_airfoils():
    file = Path(__file__).parents[2] / "examples" / "airfoil" / "data" / "naca_mini.h5"
    with Airfoil(file) as train, Airfoil(file, "test") as test:
        assert (len(train), len(test), train.spatial_shape) == (80, 20, (111, 26))
        sample, _ = test[19]
    assert 1.1 < sample["target"].max() < 2.0  # supersonic pockets
    assert sample["embedding"].abs().max() > 20  # the far field, in chords


def test_an_archive_is_no_array(tmp_path):
    SETS["elasticity"]().write(tmp_path)
    np.savez(tmp_path / "archive.npz", stress=np.zeros((972, 10)))
    (tmp_path / "archive.npz").rename(tmp_path / "Random_UnitCell_sigma_10.npy")
    with pytest.raises(ValueError, match=r"\.npz archive of \['stress'\] under the name of an"):
        Elasticity(tmp_path)


def test_strides_divide_the_points_of_one_file(tmp_path):
    small = SETS["navier_stokes"](5).write(tmp_path)
    (tmp_path / "parts").mkdir()
    test = NavierStokes(tmp_path, "test", stride=2)
    sample, _ = test[0]
    assert test.spatial_shape == (4, 4)
    (arrays,) = small.files.values()
    expected = arrays["u"][4, ::2, ::2, 10:].astype(np.float32)
    np.testing.assert_array_equal(sample["target"].reshape(4, 4, 10), expected)
    assert sample["embedding"].reshape(4, 4, 2)[1, 3].tolist() == [0.25, 0.75]
    for stride in (0, 3):
        with pytest.raises(
            ValueError, match=rf"data\.stride={stride}: .* 8 points an axis, choose"
        ):
            NavierStokes(tmp_path, stride=stride)
    write(tmp_path / "NavierStokes_V1e-5_N20_T20.mat", arrays)
    with pytest.raises(ValueError, match=r"N20_T20\.mat, NavierStokes_V1e-5_N5_T20\.mat: keep one"):
        NavierStokes(tmp_path)


class Own(FieldReader):
    """A reader of whatever a test gives it."""

    coordinates = (Channel("x", "m"),)
    targets = (Channel("T", "K"), Channel("p", "Pa"))
    sample = None

    def open(self):
        return 5

    def load(self, index):
        return self.sample


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"embedding": np.zeros((4, 2))}, "2 coordinates, the reader names 1"),
        ({"target": np.zeros((4, 3))}, "3 target channels, the reader names 2"),
        ({"target": np.zeros((3, 2))}, "4 points and a target on 3"),
        ({"target": np.zeros(4)}, r"\(4,\) as target, expected points x channels"),
        ({"fx": np.zeros((2, 1))}, r"fx of shape \(2, 1\), expected \(4 or 1, C\)"),
        ({"mask": np.ones(4)}, "a mask that is not bool"),
        ({"mask": np.ones(3, bool)}, r"mask of shape \(3,\), expected \(4,\)"),
        ({"target": np.zeros((4, 2), complex)}, "complex target"),
        ({"target": np.full((4, 2), "a")}, "<U1 as target, expected numbers"),
    ],
)
def test_a_sample_that_is_not_what_its_reader_says(changed, message, tmp_path):
    reader = Own(tmp_path, "test")
    reader.sample = {"embedding": np.zeros((4, 1)), "target": np.zeros((4, 2))}
    assert reader[0][0]["fx"].shape == (4, 0)
    reader.sample |= changed
    with pytest.raises(ValueError, match=rf"sample 0 of the test set.*{message}"):
        reader[0]


def test_coordinates_far_from_zero_keep_float64(tmp_path):
    reader = Own(tmp_path)
    for offset, dtype in ((0.0, torch.float32), (5e6, torch.float64)):
        x = offset + np.linspace(-10, 10, 4)[:, None]
        reader.sample = {"embedding": x, "target": np.ones((4, 2)) * 1e5 + np.arange(2)}
        sample, _ = reader[0]
        assert (sample["embedding"].dtype, sample["target"].dtype) == (dtype, torch.float32)
        spread = (sample["embedding"] - sample["embedding"].mean()).numpy()
        np.testing.assert_allclose(spread, x - x.mean(), rtol=1e-6)
