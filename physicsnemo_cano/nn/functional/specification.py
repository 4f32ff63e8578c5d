r"""The specification: cluster attention transcribed from the paper, one line an equation.

Slow and memory-hungry on purpose. :func:`~physicsnemo_cano.nn.functional.cluster_attention`
must agree with it; nothing else calls it.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def cluster_attention_specification(
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

    Arguments and result as in :func:`~physicsnemo_cano.nn.functional.cluster_attention`.
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
    logits = clustered @ key.mT / math.sqrt(dim) + w.mT.log()  # (B, H, K, N)
    attended = logits.softmax(-1) @ value  # eq. 15: Z_c (B, H, K, D)
    out = assignment @ attended  # eq. 16: Y (B, H, N, D)
    return torch.where(mask[:, None, :, None], out, 0)
