# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
r"""The specification: cluster attention transcribed from the paper, one line an equation.

Slow and memory-hungry on purpose: what every other implementation is held to.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def cluster_attention_reference(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    centroids: Tensor,
    *,
    mask: Tensor | None = None,
    weights: Tensor | None = None,
    normalize_queries: bool = True,
) -> Tensor:
    r"""Cluster attention (arXiv 2609.39914, eq. 13 to 16), every matrix stored.

    Can be differentiated as often as one likes, and mapped by ``torch.vmap``.

    Parameters
    ----------
    query, key, value, centroids, mask, weights, normalize_queries
        As in :func:`~physicsnemo_cano.nn.functional.cluster_attention`, unchecked.

    Returns
    -------
    torch.Tensor
        Shape :math:`(B, H, N, D)`.
    """
    batch, _, points, dim = query.shape
    w = query.new_ones(batch, points) if weights is None else weights.to(query.dtype)
    if mask is None:
        mask = torch.ones_like(w, dtype=torch.bool)
    w = torch.where(mask, w, 0)
    w = w * (mask.sum(-1, keepdim=True) / w.sum(-1, keepdim=True))  # mean 1 over real points
    w = w[:, None, :, None]  # (B, 1, N, 1)

    assignment = (query @ centroids.mT).softmax(-1)  # eq. 13: C (B, H, N, K)
    clustered = assignment.mT @ (w * query)  # eq. 14: Q_c (B, H, K, D)
    if normalize_queries:
        clustered = clustered / (assignment.mT @ w)
    logits = clustered @ key.mT / math.sqrt(dim)  # (B, H, K, N)
    # exp(logits + log w), whose derivative with respect to a weight of zero is a number
    terms = (logits - logits.amax(-1, keepdim=True).detach()).exp() * w.mT
    attended = terms @ value / terms.sum(-1, keepdim=True)  # eq. 15: Z_c (B, H, K, D)
    out = assignment @ attended  # eq. 16: Y (B, H, N, D)
    return torch.where(mask[:, None, :, None], out, 0)
