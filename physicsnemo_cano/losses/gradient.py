# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""The relative error of a field's gradient on a regular grid."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float

from physicsnemo_cano.losses.relative_l2 import relative_l2


def gradient_error(
    prediction: Float[torch.Tensor, "B N C"],
    target: Float[torch.Tensor, "B N C"],
    spatial_shape: Sequence[int] | None,
) -> Float[torch.Tensor, " B"]:
    r"""Relative L2 errors of each sample's derivatives along the axes, summed over the axes.

    :math:`\sum_i \|\partial_i \hat u - \partial_i u\|_2 / \|\partial_i u\|_2`, by central
    differences at the interior points of a grid whose spacing is uniform along each axis; the
    spacings cancel. To second order these are the errors of the derivatives themselves. Weighted
    by 0.1 it is the second part of the loss for Darcy flow in Transolver (Wu et al., ICML 2024)
    and CANO.

    Parameters
    ----------
    prediction, target : torch.Tensor
        Fields of shape :math:`(B, N, C)` in physical units.
    spatial_shape : sequence of int
        Shape of the grid whose points are flattened (last axis fastest) into :math:`N`.

    Returns
    -------
    torch.Tensor
        Of shape :math:`(B,)`, without unit.

    Raises
    ------
    ValueError
        If the shapes do not fit one another, or there is no grid or one without interior.
    """
    if spatial_shape is None or min(spatial_shape) < 3:
        raise ValueError(
            f"a gradient error needs a grid of at least 3 points an axis, got {spatial_shape}"
        )
    fields = [field.unflatten(1, tuple(spatial_shape)) for field in (prediction, target)]
    return sum(
        relative_l2(*(_difference(field, axis).flatten(1, -2) for field in fields))
        for axis in range(1, len(spatial_shape) + 1)
    )


def _difference(field: torch.Tensor, axis: int) -> torch.Tensor:
    """Central differences (B, *interior, C) along an axis, times twice the spacing."""
    for other in range(1, field.ndim - 1):
        if other != axis:
            field = field.narrow(other, 1, field.shape[other] - 2)
    inner = field.shape[axis] - 2
    return field.narrow(axis, 2, inner) - field.narrow(axis, 0, inner)
