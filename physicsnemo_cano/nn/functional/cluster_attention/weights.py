# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
r"""Quadrature weights and masks: checked, scaled and turned into a bias of the logits once."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from physicsnemo_cano.parallel.shards import ALL_POINTS, Shards


class PointWeights(NamedTuple):
    r"""Weights ready for the attention, made by :func:`prepare_weights`.

    Attributes
    ----------
    values : torch.Tensor
        Shape :math:`(B, N)`, of mean one over the real points and zero on padding.
    log_values : torch.Tensor
        Their logarithms; of absent points half the lowest number, which no logit makes up for
        and which, unlike ``-inf``, leaves a chunk of absent points finite.
    """

    values: Tensor
    log_values: Tensor

    def bias(self, dtype: torch.dtype) -> Tensor:
        r"""Bias of the attention logits of eq. 15.

        Parameters
        ----------
        dtype : torch.dtype
            Of the logits.

        Returns
        -------
        torch.Tensor
            Shape :math:`(B, 1, 1, N)`, finite.
        """
        lowest = torch.finfo(dtype).min / 2  # that of another type would overflow in this one
        return self.log_values.clamp_min(lowest).to(dtype)[:, None, None, :]


def prepare_weights(
    mask: Tensor | None,
    weights: Tensor | None,
    *,
    batch: int,
    points: int,
    dtype: torch.dtype,
    shards: Shards = ALL_POINTS,
) -> PointWeights | None:
    r"""Check mask and weights and scale the weights to a mean of one over the real points.

    So the scale of ``weights`` never matters, not even to the literal sum of eq. 14.

    Parameters
    ----------
    mask, weights : torch.Tensor, optional
        As in :func:`~physicsnemo_cano.nn.functional.cluster_attention`.
    batch, points : int
        :math:`B` and :math:`N`.
    dtype : torch.dtype
        Of the features; weights are at least float32.
    shards : Shards, optional
        Who has which points; by default all are here.

    Returns
    -------
    PointWeights or None
        ``None`` where all points are real and weigh the same.

    Raises
    ------
    ValueError
        If a shape, dtype or value is wrong. Values are looked at on CPUs only: elsewhere it would
        make the host wait for the device. There, a sample with a weight that is negative or not
        finite, or whose weights are all zero, gets an output of NaN.
    """
    if not torch.compiler.is_compiling():
        _check_types(mask, weights, batch, points)
        present = weights if mask is None else mask
        if present is not None and present.device.type == "cpu":
            _check_values(mask, weights, shards)
    if mask is None and weights is None:
        return None
    dtype = torch.promote_types(dtype, torch.float32)
    if weights is None:
        values = mask.to(dtype)
    else:
        values = weights.to(dtype)
        if mask is None:
            count = shards.n_points(points)
        else:
            values = values.masked_fill(~mask, 0)
            count = shards.sum(mask.sum(-1, keepdim=True))
        values = values / (shards.sum(values.sum(-1, keepdim=True)) / count)
    return PointWeights(values, log_weights(values))


def log_weights(values: Tensor) -> Tensor:
    r"""Logarithms without gradient, finite where a weight is zero and NaN where it is negative.

    Parameters
    ----------
    values : torch.Tensor
        The weights, of any shape.

    Returns
    -------
    torch.Tensor
        Of the same shape, from half the lowest number on.
    """
    return values.detach().log().clamp_min(torch.finfo(values.dtype).min / 2)


def _check_types(mask: Tensor | None, weights: Tensor | None, batch: int, points: int) -> None:
    for name, tensor in (("mask", mask), ("weights", weights)):
        if tensor is not None and tuple(tensor.shape) != (batch, points):
            raise ValueError(
                f"{name} must have shape (B, N) = ({batch}, {points}), got {tuple(tensor.shape)}"
            )
    if mask is not None and mask.dtype != torch.bool:
        raise ValueError(f"mask must be boolean, True on real points, got dtype {mask.dtype}")
    if weights is not None and not weights.is_floating_point():
        raise ValueError(f"weights must have a floating dtype, got {weights.dtype}")


def _check_values(mask: Tensor | None, weights: Tensor | None, shards: Shards) -> None:
    if mask is not None and _is_any((real_points := shards.sum(mask.sum(-1))) == 0):
        empty = (real_points == 0).nonzero().flatten().tolist()
        raise ValueError(f"mask must leave at least one real point a sample; none in {empty}")
    if weights is None:
        return
    real = weights if mask is None else weights.masked_fill(~mask, 0)
    if _is_any(shards.sum((~(real.isfinite() & (real >= 0))).sum()) > 0):
        raise ValueError(
            "weights must be finite and not negative on real points, "
            f"got values from {real.min().item():g} to {real.max().item():g}"
        )
    sums = shards.sum(real.detach().sum(-1))
    if _is_any(sums <= 0):
        zero = (sums <= 0).nonzero().flatten().tolist()
        raise ValueError(f"weights must not all be zero; they are in samples {zero}")


def _is_any(wrong: Tensor) -> bool:
    try:
        return bool(wrong.any())
    except RuntimeError:  # under vmap and in fake tensors there are no values to read
        return False
