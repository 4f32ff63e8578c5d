# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
"""Errors of each channel and of each vector, by PhysicsNeMo's definitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float
from physicsnemo.metrics.general.relative_error import relative_l2


def fields_of(names: Sequence[str]) -> dict[str, slice]:
    """Fields that channels make up.

    Parameters
    ----------
    names : sequence of str
        Of the channels. ``u_x, u_y, u_z`` or ``u_x, u_y``, with an underscore or a space and one
        after the other, are a vector ``u``.

    Returns
    -------
    dict of str to slice
        The channels of every vector and of every channel by itself, in the order of the channels,
        a vector before its components.
    """
    found: dict[str, slice] = {}
    for i, name in enumerate(names):
        base, separator = name[:-2], name[-2:-1]
        if name[-1:] == "x" and base and separator in "_ " and base not in names:
            for axes in ("xyz", "xy"):
                if list(names[i : i + len(axes)]) == [f"{base}{separator}{axis}" for axis in axes]:
                    found[base] = slice(i, i + len(axes))
                    break
        found[name] = slice(i, i + 1)
    return found


def field_errors(
    prediction: Float[torch.Tensor, "N *frames C"],
    target: Float[torch.Tensor, "N *frames C"],
    fields: Mapping[str, slice],
    weights: Float[torch.Tensor, " N"] | None = None,
) -> dict[str, dict[str, float]]:
    r"""Errors of a sample's fields.

    Parameters
    ----------
    prediction, target : torch.Tensor
        At a sample's real points, shape :math:`(N, …, C)`, in one unit.
    fields : mapping of str to slice
        As :func:`fields_of` gives them.
    weights : torch.Tensor, optional
        Areas or volumes, shape :math:`(N,)`.

    Returns
    -------
    dict of str to dict of str to float
        Of each field ``relative_l2``, :math:`\|\hat u - u\|_2 / \|u\|_2` over all points and
        components, so that a vector's direction counts; with weights also
        ``relative_l2_weighted``; ``mae`` and ``max_error``, mean and largest :math:`|\hat u - u|`
        over the points, of a vector the length of the difference. A field that is zero everywhere
        has no relative error: NaN.
    """
    prediction, target = prediction.double(), target.double()
    tiny = torch.finfo(torch.float64).tiny
    found = {}
    for name, channels in fields.items():
        given, true = prediction[..., channels], target[..., channels]
        distance = torch.linalg.vector_norm(given - true, dim=-1)
        errors = {"relative_l2": relative_l2(given, true, eps=tiny)}
        if weights is not None:
            shape = (-1, *[1] * (target.ndim - 1))
            of_points = weights.double().reshape(shape)
            errors["relative_l2_weighted"] = relative_l2(given, true, weights=of_points, eps=tiny)
        if not true.any():
            errors = dict.fromkeys(errors, torch.tensor(torch.nan))
        errors |= {"mae": distance.mean(), "max_error": distance.max()}
        found[name] = {key: float(value) for key, value in errors.items()}
    return found
