# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
"""Errors averaged over points and channels, or their largest."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float

from physicsnemo_cano.losses.relative_l2 import on_real_points


def mse(
    prediction: Float[torch.Tensor, "B N C"],
    target: Float[torch.Tensor, "B N C"],
    mask: Bool[torch.Tensor, "B N"] | None = None,
) -> Float[torch.Tensor, " B"]:
    r"""Mean squared error of each sample, over its real points and all channels.

    Parameters
    ----------
    prediction, target : torch.Tensor
        Fields of shape :math:`(B, N, C)`, in one unit.
    mask : torch.Tensor, optional
        Of shape :math:`(B, N)`, true on the real points of padded clouds.

    Returns
    -------
    torch.Tensor
        Of shape :math:`(B,)`, in the unit squared.

    Raises
    ------
    ValueError
        If the shapes do not fit one another.
    """
    return _mean(_difference(prediction, target, mask).square(), mask)


def mae(
    prediction: Float[torch.Tensor, "B N C"],
    target: Float[torch.Tensor, "B N C"],
    mask: Bool[torch.Tensor, "B N"] | None = None,
) -> Float[torch.Tensor, " B"]:
    r"""Mean absolute error of each sample, over its real points and all channels.

    Parameters
    ----------
    prediction, target : torch.Tensor
        Fields of shape :math:`(B, N, C)`, in one unit.
    mask : torch.Tensor, optional
        Of shape :math:`(B, N)`, true on the real points of padded clouds.

    Returns
    -------
    torch.Tensor
        Of shape :math:`(B,)`, in the fields' unit.

    Raises
    ------
    ValueError
        If the shapes do not fit one another.
    """
    return _mean(_difference(prediction, target, mask).abs(), mask)


def max_error(
    prediction: Float[torch.Tensor, "B N C"],
    target: Float[torch.Tensor, "B N C"],
    mask: Bool[torch.Tensor, "B N"] | None = None,
) -> Float[torch.Tensor, " B"]:
    r"""Largest absolute error of each sample, over its real points and all channels.

    Parameters
    ----------
    prediction, target : torch.Tensor
        Fields of shape :math:`(B, N, C)`, in one unit.
    mask : torch.Tensor, optional
        Of shape :math:`(B, N)`, true on the real points of padded clouds.

    Returns
    -------
    torch.Tensor
        Of shape :math:`(B,)`, in the fields' unit.

    Raises
    ------
    ValueError
        If the shapes do not fit one another.
    """
    return _difference(prediction, target, mask).abs().amax(dim=(1, 2))


def _difference(
    prediction: torch.Tensor, target: torch.Tensor, mask: torch.Tensor | None
) -> torch.Tensor:
    prediction, target = on_real_points(prediction, target, mask)
    return prediction - target


def _mean(values: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    points = values.shape[1] if mask is None else mask.sum(1)
    return values.sum(dim=(1, 2)) / (points * values.shape[2])
