# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

r"""Quadrature weights of a mesh's nodes: the one place where they are computed.

With them a sum over nodes is the integral of the nodes' finite-element interpolant, so a model
that takes ``weights`` means the same on every discretisation of a domain.
"""

from __future__ import annotations

import itertools
import math

import torch
from jaxtyping import Float, Int
from physicsnemo.mesh import Mesh


def node_weights(
    points: Float[torch.Tensor, "*nodes dim"],
    *,
    structured: bool = False,
    cells: Int[torch.Tensor, "cells vertices"] | None = None,
) -> Float[torch.Tensor, "*nodes"] | None:
    r"""Integral of each node's basis function over the mesh.

    Summed against nodal values, the weights integrate every function exactly that the mesh's
    elements represent: all linear functions, on any straight-sided mesh.

    Parameters
    ----------
    points : torch.Tensor
        Coordinates: :math:`(N_1, …, N_k, d)` of a structured mesh of :math:`k = 1, 2, 3` axes in
        :math:`d \ge k` dimensions (curves and surfaces in space included), or :math:`(N, d)` of
        an unstructured one.
    structured : bool, optional, default=False
        Whether neighbours in ``points`` form the cells (segments, quadrilaterals, hexahedra).
    cells : torch.Tensor, optional
        Vertex numbers, from 0, of shape :math:`(M, 3)` for triangles, :math:`(M, 4)` for
        tetrahedra (or :math:`(M, 2)` for edges).

    Returns
    -------
    torch.Tensor or None
        Lengths, areas or volumes in the units of ``points``, of shape :math:`(N_1, …, N_k)` or
        :math:`(N,)`. ``None`` for a bare cloud, whose points carry no known measure.

    Raises
    ------
    ValueError
        If the shapes fit neither description, or a cell names a node that does not exist.
    """
    if not points.is_floating_point():
        raise ValueError(f"node_weights expects points of a floating dtype, got {points.dtype}")
    if structured and cells is not None:
        raise ValueError("node_weights expects structured=True or cells, got both")
    if structured:
        return _structured_weights(points)
    if points.ndim != 2:
        raise ValueError(
            f"node_weights expects points (N, d) unless structured=True, got {tuple(points.shape)}"
        )
    if cells is None:
        return None
    return _simplex_weights(points, cells)


def _structured_weights(points: torch.Tensor) -> torch.Tensor:
    axes = points.ndim - 1
    if axes not in (1, 2, 3) or points.shape[-1] < axes or min(points.shape[:-1]) < 2:
        raise ValueError(
            "node_weights expects a structured mesh of 1, 2 or 3 axes of at least 2 nodes, in as "
            f"many dimensions or more: points (N_1, …, N_k, d >= k), got {tuple(points.shape)}"
        )
    x = points.double()
    corners = list(itertools.product((0, 1), repeat=axes))
    cell = [
        tuple(slice(c, n - 1 + c) for c, n in zip(corner, x.shape, strict=False))
        for corner in corners
    ]
    weights = x.new_zeros(x.shape[:-1])
    # Two Gauss points an axis integrate the basis times the Jacobian of bilinear and trilinear
    # cells exactly.
    gauss = (0.5 - 0.5 / math.sqrt(3), 0.5 + 0.5 / math.sqrt(3))
    for at in itertools.product(gauss, repeat=axes):
        shape = [[t if c else 1 - t for c, t in zip(corner, at, strict=True)] for corner in corners]
        tangents = [
            sum(
                (2 * corner[axis] - 1) * math.prod(s[:axis] + s[axis + 1 :]) * x[where]
                for corner, s, where in zip(corners, shape, cell, strict=True)
            )
            for axis in range(axes)
        ]
        tangents = torch.stack(tangents, -1)  # (*cells, d, k), ∂x/∂ξ
        if points.shape[-1] == axes:
            measure = torch.linalg.det(tangents).abs()
        else:
            measure = torch.linalg.det(tangents.mT @ tangents).clamp_min(0).sqrt()
        for s, where in zip(shape, cell, strict=True):
            weights[where] += math.prod(s) * measure / 2**axes
    return weights.to(points.dtype)


def _simplex_weights(points: torch.Tensor, cells: torch.Tensor) -> torch.Tensor:
    nodes, dim = points.shape
    if cells.ndim != 2 or cells.shape[1] not in (2, 3, 4) or cells.shape[1] > dim + 1:
        raise ValueError(
            "node_weights expects cells (M, 2), (M, 3) or (M, 4) that fit in the points' "
            f"{dim} dimensions, got {tuple(cells.shape)}"
        )
    if cells.numel() and not 0 <= cells.min() <= cells.max() < nodes:
        raise ValueError(
            f"node_weights expects cells to name nodes 0 to {nodes - 1}, "
            f"got {cells.min().item()} to {cells.max().item()}; count from 0"
        )
    measures = Mesh(points=points.double(), cells=cells.long()).cell_areas  # (M,)
    share = measures / cells.shape[1]  # the basis functions share a simplex equally
    weights = points.new_zeros(nodes, dtype=torch.float64)
    weights.index_add_(0, cells.flatten().long(), share.repeat_interleave(cells.shape[1]))
    return weights.to(points.dtype)
