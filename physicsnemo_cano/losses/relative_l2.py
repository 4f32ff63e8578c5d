# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""The relative L2 error, loss and measure of every benchmark."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float


def relative_l2(
    prediction: Float[torch.Tensor, "B N C"],
    target: Float[torch.Tensor, "B N C"],
    mask: Bool[torch.Tensor, "B N"] | None = None,
) -> Float[torch.Tensor, " B"]:
    r"""Relative L2 error of each sample, :math:`\|\hat u - u\|_2 / \|u\|_2`.

    The norms run over all points and channels of a sample together, without quadrature weights,
    as in the published results.

    Parameters
    ----------
    prediction, target : torch.Tensor
        Fields of shape :math:`(B, N, C)`, both in the units in which the error is meant.
    mask : torch.Tensor, optional
        Of shape :math:`(B, N)`, true on the real points of padded clouds; what the fields hold
        elsewhere (even NaN) does not count.

    Returns
    -------
    torch.Tensor
        Of shape :math:`(B,)`, without unit.

    Raises
    ------
    ValueError
        If the shapes do not fit one another; broadcasting them would be a silent mistake.

    Notes
    -----
    A target that vanishes everywhere has no relative error: the result is ``inf`` (``nan`` for a
    prediction that vanishes too). Nothing is raised here, as looking at the values would stall a
    GPU at every step; the recipe refuses such samples when it first reads the data.
    """
    prediction, target = on_real_points(prediction, target, mask)
    # In units of a power of two, which costs no digit: squares of 1e-30 are below float32.
    _, exponent = torch.frexp(target.detach().abs().amax(dim=(1, 2), keepdim=True))
    difference = torch.ldexp(prediction - target, -exponent)
    size = torch.ldexp(target, -exponent)
    return torch.linalg.vector_norm(difference, dim=(1, 2)) / torch.linalg.vector_norm(
        size, dim=(1, 2)
    )


def on_real_points(
    prediction: Float[torch.Tensor, "B N C"],
    target: Float[torch.Tensor, "B N C"],
    mask: Bool[torch.Tensor, "B N"] | None,
) -> tuple[Float[torch.Tensor, "B N C"], Float[torch.Tensor, "B N C"]]:
    r"""Prediction and target, zero where there is padding; their shapes are checked.

    Parameters
    ----------
    prediction, target : torch.Tensor
        Fields of shape :math:`(B, N, C)`.
    mask : torch.Tensor or None
        Of shape :math:`(B, N)`, true on the real points.

    Returns
    -------
    prediction, target : torch.Tensor
        Of the same shape.

    Raises
    ------
    ValueError
        If the shapes do not fit one another.
    """
    if prediction.shape != target.shape or target.ndim != 3:
        raise ValueError(
            "prediction and target must share one shape (B, N, C), "
            f"got {tuple(prediction.shape)} and {tuple(target.shape)}"
        )
    if mask is not None:
        if mask.shape != target.shape[:2]:
            raise ValueError(
                f"mask must have shape {tuple(target.shape[:2])}, got {tuple(mask.shape)}"
            )
        outside = ~mask.bool().unsqueeze(-1)
        prediction = prediction.masked_fill(outside, 0.0)
        target = target.masked_fill(outside, 0.0)
    return prediction, target
