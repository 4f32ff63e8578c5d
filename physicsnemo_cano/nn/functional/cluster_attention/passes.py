# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
r"""The three passes over the points in plain torch, on every device.

Each is a sum over points, or acts on each point alone, so each can be cut into chunks and merged
exactly: :func:`aggregate` (the cluster queries), :func:`attend` (the cluster values) and
:func:`dispatch` (back to the points). ``triton`` has kernels of the same names.
"""

from __future__ import annotations

import contextlib
import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from .choice import aggregate_tile, is_autocast_enabled
from .weights import PointWeights


def aggregate(
    query: Tensor, centroids: Tensor, weights: PointWeights | None
) -> tuple[Tensor, Tensor]:
    r"""Sum the queries over the points of each cluster (eq. 13 and 14).

    Parameters
    ----------
    query : torch.Tensor
        Shape :math:`(B, H, N, D)`.
    centroids : torch.Tensor
        Shape :math:`(H, K_c, D)`.
    weights : PointWeights, optional
        Of the :math:`N` points.

    Returns
    -------
    tuple[torch.Tensor, torch.Tensor]
        :math:`C^T (w \circ Q)` of shape :math:`(B, H, K_c, D)` and :math:`C^T w` of shape
        :math:`(B, H, K_c, 1)`, in at least float32. Both add up over disjoint sets of points.
    """
    # Sums over all points: half precision would overflow or lose the small terms.
    with _without_autocast(query.device):
        dtype = torch.promote_types(query.dtype, torch.float32)
        w = None if weights is None else weights.values[:, None, :, None].to(dtype)
        sums = _Aggregate.apply(query.to(dtype), centroids.to(dtype), w)  # (B, H, K, D + 1)
        return sums[..., :-1], sums[..., -1:]


class PartialSoftmax(NamedTuple):
    r"""An online softmax over some of the points: :math:`Z_c` is ``weighted_sum / sum_exp``.

    Milakov & Gimelshein (arXiv 1805.02867); the merge of partial attentions as in
    FlashAttention (Dao et al., arXiv 2205.14135).
    """

    maximum: Tensor  # (B, H, K, 1), the largest logit, without gradient
    sum_exp: Tensor  # (B, H, K, 1), sum of w exp(logit - maximum)
    weighted_sum: Tensor  # (B, H, K, D), sum of w exp(logit - maximum) value


def attend(
    clusters: Tensor, key: Tensor, value: Tensor, weights: PointWeights | None
) -> PartialSoftmax:
    r"""Attend from cluster queries to some of the points (eq. 15), before normalisation.

    Parameters
    ----------
    clusters : torch.Tensor
        Cluster queries of shape :math:`(B, H, K_c, D)`.
    key, value : torch.Tensor
        Shape :math:`(B, H, n, D)`.
    weights : PointWeights, optional
        Of the :math:`n` points. They are factors of the exponentials: the derivative with
        respect to a weight of zero is then a number, and a chunk may have no present point.

    Returns
    -------
    PartialSoftmax
        To merge with those of the other points.
    """
    with _without_autocast(key.device):
        dtype = clusters.dtype
        logits = clusters / math.sqrt(key.shape[-1]) @ key.to(dtype).mT  # (B, H, K, n)
        present = logits if weights is None else logits + weights.bias(dtype)
        maximum = present.amax(-1, keepdim=True).detach()
        if weights is None:
            terms = logits.sub_(maximum).exp_()  # in place: the largest tensors there are
        else:
            maximum = maximum.clamp_min(torch.finfo(dtype).min / 4)  # of absent points alone
            # An absent point may have a logit far above all present ones.
            largest = math.log(torch.finfo(dtype).max) / 2
            terms = logits.sub_(maximum).clamp_max_(largest).exp_()
            terms = terms * weights.values[:, None, None, :].to(dtype)
        return PartialSoftmax(maximum, terms.sum(-1, keepdim=True), terms @ value.to(dtype))


def attend_to_all(
    clusters: Tensor, key: Tensor, value: Tensor, weights: PointWeights | None
) -> Tensor:
    r"""Attend from cluster queries to all points (eq. 15).

    Parameters
    ----------
    clusters, key, value, weights
        As in :func:`attend`, of all :math:`N` points; weights get no gradient where they are zero.

    Returns
    -------
    torch.Tensor
        :math:`Z_c`, of shape :math:`(B, H, K_c, D)`, in the dtype of ``value``.
    """
    bias = None if weights is None else weights.bias(value.dtype)
    clusters, key, value = _once_differentiable(clusters.to(value.dtype), key, value)
    return F.scaled_dot_product_attention(clusters, key, value, attn_mask=bias)


def dispatch(query: Tensor, centroids: Tensor, attended: Tensor) -> Tensor:
    r"""Bring the clusters' values back to the points: :math:`Y = C Z_c` (eq. 16).

    :math:`\mathrm{softmax}_k(Q W_c) Z_c` is itself an attention with scale 1, so C is not stored.

    Parameters
    ----------
    query : torch.Tensor
        Shape :math:`(B, H, n, D)`.
    centroids : torch.Tensor
        Shape :math:`(H, K_c, D)`.
    attended : torch.Tensor
        :math:`Z_c`, of shape :math:`(B, H, K_c, D)`.

    Returns
    -------
    torch.Tensor
        Shape :math:`(B, H, n, D)`.
    """
    centroids = centroids.to(query.dtype).expand(query.shape[0], -1, -1, -1)
    tensors = _once_differentiable(query, centroids, attended.to(query.dtype))
    return F.scaled_dot_product_attention(*tensors, scale=1.0)


def _without_autocast(device: torch.device) -> contextlib.AbstractContextManager:
    r"""Compute in the types that are given."""
    if is_autocast_enabled(device):
        return torch.autocast(device.type, enabled=False)
    return contextlib.nullcontext()


def _once_differentiable(*tensors: Tensor) -> tuple[Tensor, ...]:
    r"""The same tensors; who differentiates their gradients is told what to do instead.

    Torch's fused attention has no second derivatives, and its message names an operator of its own.
    """
    planned = torch.compiler.is_compiling() or torch.jit.is_tracing()
    if planned or not any(t.requires_grad for t in tensors):
        return tensors
    return _OnceDifferentiable.apply(*tensors)


class _OnceDifferentiable(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(*tensors):
        return tuple(t.view_as(t) for t in tensors)

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, *grads):
        return _NotDifferentiable.apply(*grads)


class _NotDifferentiable(_OnceDifferentiable):
    @staticmethod
    def backward(ctx, *grads):
        raise RuntimeError(
            "torch's fused attention has no second derivatives: for gradients of gradients use "
            'cluster_attention(..., implementation="reference"), or set implementation = '
            '"reference" on the ClusterAttention layers'
        )


class _Aggregate(torch.autograd.Function):
    r"""``softmax(Q Wᵀ)ᵀ (w ∘ [Q, 1])``, with a tile of assignments at a time in both passes."""

    generate_vmap_rule = True

    @staticmethod
    def forward(query: Tensor, centroids: Tensor, weights: Tensor | None) -> Tensor:
        sums = None
        for q, w in _tiles(query, centroids, weights):
            assignment = (q @ centroids.mT).softmax(-1)  # eq. 13 (B, H, n, K)
            if w is not None:
                assignment = assignment * w
            more = assignment.mT @ F.pad(q, (0, 1), value=1.0)  # eq. 14 (B, H, K, D + 1)
            sums = more if sums is None else sums + more
        return sums

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad: Tensor):
        query, centroids, weights = ctx.saved_tensors
        grad_sums = grad[..., :-1]  # (B, H, K, D); the last column is that of the masses
        grad_query, grad_centroids, grad_weights = [], None, []
        for q, w in _tiles(query, centroids, weights):
            assignment = (q @ centroids.mT).softmax(-1)
            grad_assignment = F.pad(q, (0, 1), value=1.0) @ grad.mT  # (B, H, n, K)
            inner = (assignment * grad_assignment).sum(-1, keepdim=True)
            grad_logits = assignment * (grad_assignment - inner)
            if w is not None:
                if ctx.needs_input_grad[2]:
                    grad_weights.append(inner.sum(1, keepdim=True))
                assignment, grad_logits = assignment * w, grad_logits * w
            grad_query.append(assignment @ grad_sums + grad_logits @ centroids)
            more = (grad_logits.mT @ q).sum(0)
            grad_centroids = more if grad_centroids is None else grad_centroids + more
        grad_weights = torch.cat(grad_weights, dim=-2) if grad_weights else None
        return torch.cat(grad_query, dim=-2), grad_centroids, grad_weights


def _tiles(query: Tensor, centroids: Tensor, weights: Tensor | None):
    size = aggregate_tile(query, centroids)
    if size is None:
        return [(query, weights)]
    queries = query.split(size, dim=-2)
    tiles = [None] * len(queries) if weights is None else weights.split(size, dim=-2)
    return zip(queries, tiles, strict=True)
