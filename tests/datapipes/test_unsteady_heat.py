# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import torch

from physicsnemo_cano.datapipes import UnsteadyHeat
from tests.recipe.helpers import public_set


@pytest.fixture(scope="module")
def folder():
    return public_set("unsteady_heat")


def test_samples_are_the_files(folder):
    train, test = UnsteadyHeat(folder, windows=3), UnsteadyHeat(folder, "test")
    assert (len(train), len(test), train.source) == (240, 20, "published")
    frames, points, parameters = (
        np.load(folder / f"{name}.npy") for name in ("snapshots", "coords", "params")
    )
    sample, _ = test[4]
    assert {key: tuple(value.shape) for key, value in sample.items()} == {
        "embedding": (441, 2),
        "fx": (441, 7),
        "target": (441, 95),
    }
    # Every point has its own values, wherever it stands in the file.
    order = np.lexsort(points.T[::-1])  # by x, then by y
    np.testing.assert_array_equal(sample["embedding"], points[order].astype(np.float32))
    given = frames[84].T[order].astype(np.float32)
    np.testing.assert_array_equal(sample["fx"][:, :5], given[:, :5])
    np.testing.assert_array_equal(sample["target"], given[:, 5:])
    np.testing.assert_array_equal(
        sample["fx"][:, 5:], np.tile(parameters[84].astype(np.float32), (441, 1))
    )
    assert parameters[0].tolist() == pytest.approx([5.53775924, 1.57242694])


def test_the_mesh_is_a_grid_with_a_cold_border(folder):
    reader = UnsteadyHeat(folder, "test")
    sample, _ = reader[0]
    grid = sample["embedding"].unflatten(0, reader.spatial_shape)
    axis = torch.linspace(0, 1, 21)
    torch.testing.assert_close(grid, torch.stack(torch.meshgrid(axis, axis, indexing="ij"), -1))
    field = sample["target"].unflatten(0, reader.spatial_shape)
    for border in (field[0], field[-1], field[:, 0], field[:, -1]):
        assert not border.any()
    assert field[1:-1, 1:-1].any(-1).all()
