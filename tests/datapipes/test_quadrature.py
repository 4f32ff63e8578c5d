# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Node weights: closed forms, exactness for linear functions, refusals."""

import math

import pytest
import torch

from physicsnemo_cano.datapipes.quadrature import node_weights


def box(*shape, jitter=0.0):
    axes = [torch.linspace(0, length + 1, n, dtype=torch.float64) for length, n in enumerate(shape)]
    mesh = torch.stack(torch.meshgrid(*axes, indexing="ij"), -1)
    inner = tuple(slice(1, -1) for _ in shape)
    mesh[inner] += jitter * (torch.rand(mesh[inner].shape, dtype=torch.float64) - 0.5)
    return mesh  # of lengths 1, 2, 3


@pytest.mark.parametrize("shape", [(7,), (5, 9), (4, 5, 6)])
def test_linear_functions_integrate_exactly_on_distorted_boxes(shape):
    mesh = box(*shape, jitter=0.1)
    weights = node_weights(mesh, structured=True)
    volume = math.factorial(len(shape))
    assert weights.shape == shape
    assert weights.sum().item() == pytest.approx(volume, rel=1e-12)
    for axis in range(len(shape)):
        moment = (weights * mesh[..., axis]).sum().item()
        assert moment == pytest.approx(volume * (axis + 1) / 2, rel=1e-12)


def test_uniform_meshes_give_the_trapezoid_rule():
    line = torch.tensor([0.5, 1, 1, 1, 0.5], dtype=torch.float64) / 4
    torch.testing.assert_close(node_weights(box(5), structured=True), line)
    plane = node_weights(box(5, 5), structured=True)
    torch.testing.assert_close(plane, torch.outer(line, 2 * line))


@pytest.mark.parametrize("n", [65, 129])
def test_curves_and_surfaces_in_space_and_second_order(n):
    """Circle of radius 2 and a half cylinder: the polygon's length and area, known exactly."""
    angle = torch.linspace(0, 2 * torch.pi, n, dtype=torch.float64)
    circle = 2 * torch.stack([angle.cos(), angle.sin()], -1)
    polygon = 4 * (n - 1) * math.sin(math.pi / (n - 1))
    assert node_weights(circle, structured=True).sum().item() == pytest.approx(polygon, rel=1e-12)
    z = torch.linspace(0, 3, 5, dtype=torch.float64)
    tube = torch.cat([circle[:, None].expand(-1, 5, -1), z[None, :, None].expand(n, -1, -1)], -1)
    assert node_weights(tube, structured=True).sum().item() == pytest.approx(3 * polygon, rel=1e-12)


@pytest.mark.parametrize("dim", [2, 3])
def test_simplices_integrate_linear_functions_exactly(dim):
    from scipy.spatial import Delaunay

    points = torch.cat(
        [
            torch.rand(60, dim, dtype=torch.float64),
            torch.tensor(
                [[float(i >> d & 1) for d in range(dim)] for i in range(2**dim)],
                dtype=torch.float64,
            ),
        ]
    )
    cells = torch.from_numpy(Delaunay(points.numpy()).simplices)
    weights = node_weights(points, cells=cells)
    assert weights.sum().item() == pytest.approx(1, rel=1e-9)
    torch.testing.assert_close(weights @ points, torch.full((dim,), 0.5, dtype=torch.float64))


def test_single_triangle_in_space_and_orientation():
    points = torch.tensor([[0.0, 0, 0], [2, 0, 0], [0, 0, 3], [9, 9, 9]])
    for cells in ([[0, 1, 2]], [[2, 1, 0]]):
        weights = node_weights(points, cells=torch.tensor(cells))
        torch.testing.assert_close(weights, torch.tensor([1.0, 1, 1, 0]))


def test_bare_cloud_has_no_weights():
    assert node_weights(torch.rand(10, 3)) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"points": torch.rand(4, 5), "structured": True, "cells": torch.ones(1, 3)}, "got both"),
        ({"points": torch.ones(4, 2).long()}, "floating dtype, got torch.int64"),
        ({"points": torch.rand(4, 4, 2)}, r"\(4, 4, 2\)"),
        ({"points": torch.rand(1, 4, 2), "structured": True}, "at least 2 nodes"),
        ({"points": torch.rand(4, 4, 1), "structured": True}, r"got \(4, 4, 1\)"),
        ({"points": torch.rand(4, 2), "cells": torch.zeros(1, 5).long()}, r"got \(1, 5\)"),
        ({"points": torch.rand(4, 2), "cells": torch.zeros(1, 4).long()}, "fit in the points' 2"),
        (
            {"points": torch.rand(4, 2), "cells": torch.tensor([[1, 2, 4]])},
            "got 1 to 4; count from 0",
        ),
    ],
)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        node_weights(**arguments)
