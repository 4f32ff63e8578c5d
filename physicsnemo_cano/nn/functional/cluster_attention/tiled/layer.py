# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

r"""The whole layer, from features to features, a tile of points at a time in both directions.

What costs time on a CPU is memory: large fresh tensors above all, then everything that leaves the
cache. So keys, values, assignments and attention exist for one tile of points only and are
computed again in the backward pass; the layer keeps its input and one number a point and head.
The passes over the tiles are in :mod:`.tiles`. Needs torch alone.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from .. import passes
from ..streaming import cluster_queries
from ..weights import PointWeights, log_weights
from .tiles import GradientTiles, Tiles


def tiled_layer(
    x: Tensor,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    centroids: Tensor,
    out_weight: Tensor,
    out_bias: Tensor,
    weights: Tensor | None,
    normalize_queries: bool,
) -> Tensor:
    r"""Projections, cluster attention and output projection (eq. 9 and 13 to 16).

    The same as :func:`~physicsnemo_cano.nn.functional.cluster_attention` between two linear maps.

    Parameters
    ----------
    x : torch.Tensor
        Shape :math:`(B, N, C)`, of float32 or float64, finite on padding too.
    qkv_weight, qkv_bias : torch.Tensor
        :math:`W_Q, W_K, W_V`, of shape :math:`(3HD, C)` and :math:`(3HD,)`.
    centroids : torch.Tensor
        Shape :math:`(H, K_c, D)`.
    out_weight, out_bias : torch.Tensor
        :math:`W_O`, of shape :math:`(C', HD)` and :math:`(C',)`.
    weights : torch.Tensor, optional
        Of mean one over the real points and zero on padding, :math:`(B, N)`.
    normalize_queries : bool
        As in :func:`~physicsnemo_cano.nn.functional.cluster_attention`.

    Returns
    -------
    torch.Tensor
        Shape :math:`(B, N, C')`.
    """
    return _TiledLayer.apply(
        normalize_queries, x, qkv_weight, qkv_bias, centroids, out_weight, out_bias, weights
    )[0]


class _TiledLayer(torch.autograd.Function):
    @staticmethod
    def forward(normalize, x, qkv_weight, qkv_bias, centroids, out_weight, out_bias, weights):
        batch, points, _ = x.shape
        heads, _, dim = centroids.shape
        width = len(out_weight)
        # The result's memory holds the queries until the result takes their place, tile by tile.
        out = x.new_empty(batch, points, width)  # no view, which could not be changed in place
        kept = out if width == heads * dim else x.new_empty(batch, points, heads * dim)
        queries = kept.view(batch, points * heads * dim)
        point_norms = x.new_empty(batch, points * heads)
        summaries = []
        tiles = Tiles(qkv_weight, qkv_bias, centroids)
        for b in range(batch):
            tiles.take(x[b], None if weights is None else weights[b])
            sums, masses = tiles.aggregate(queries[b], point_norms[b])
            clusters = cluster_queries(sums, masses, normalize)
            clusters = clusters / math.sqrt(dim)
            attended, cluster_norms = tiles.attend(clusters)
            attended += tiles.value_bias
            tiles.dispatch(queries[b], point_norms[b], attended, out_weight, out_bias, out[b])
            summaries.append((clusters, masses, attended, cluster_norms))
        return out, point_norms, *(torch.stack(s) for s in zip(*summaries, strict=True))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.normalize, *tensors = inputs
        ctx.save_for_backward(*tensors, *output[1:])
        ctx.mark_non_differentiable(*output[1:])

    @staticmethod
    def backward(ctx, grad_out, *_):
        *_, by_weights = ctx.needs_input_grad
        gradients = _TiledGradient.apply(ctx.normalize, by_weights, grad_out, *ctx.saved_tensors)
        return None, *gradients

    @staticmethod
    def vmap(info, in_dims, *args):
        return _one_by_one(_TiledLayer, info, in_dims, args)


class _TiledGradient(torch.autograd.Function):
    @staticmethod
    def forward(normalize, by_weights, grad_out, *saved):
        x, qkv_weight, qkv_bias, centroids, out_weight, _, weights, point_norms, *saved = saved
        grad_x = torch.empty_like(x, memory_format=torch.contiguous_format)
        grad_weights = torch.empty_like(weights) if by_weights else None
        gradients = [torch.zeros_like(t) for t in (qkv_weight, qkv_bias, centroids, out_weight)]
        inner = len(qkv_weight) // 3
        grad_q_weight, grad_kv_weight = gradients[0].split([inner, 2 * inner])
        grad_q_bias, _, grad_v_bias = gradients[1].split(inner)
        tiles = GradientTiles(qkv_weight, qkv_bias, centroids, out_weight)
        for b, (clusters, masses, attended, cluster_norms) in enumerate(zip(*saved, strict=True)):
            tiles.take(
                x[b],
                None if weights is None else weights[b],
                grad_out[b],
                point_norms[b],
                grad_x[b],
                grad_weights[b] if by_weights else None,
            )
            grad_attended = tiles.through_dispatch(attended, gradients[3])
            grad_v_bias += grad_attended.sum(1).flatten()
            grad_clusters = tiles.through_attention(
                clusters, cluster_norms, attended, grad_attended, grad_kv_weight
            )
            grad_sums = grad_clusters / math.sqrt(clusters.shape[-1])
            grad_masses = torch.zeros_like(masses)
            if normalize:
                grad_sums /= masses.clamp_min(1e-30)
                by_masses = -(grad_clusters * clusters).sum(-1, keepdim=True) / masses
                grad_masses = torch.where(masses > 1e-30, by_masses, grad_masses)
            grad_sums = torch.cat([grad_sums, grad_masses], -1)
            tiles.through_queries(grad_sums, attended, grad_q_weight, grad_q_bias, gradients[2])
        return grad_x, *gradients, grad_out.sum((0, 1)), grad_weights

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.normalize, _, grad_out, *tensors = inputs
        ctx.save_for_backward(grad_out, *tensors[:7])

    @staticmethod
    def backward(ctx, *grads):
        # Rare, so plain: autograd's derivative of the derivative of the layer in a few lines.
        tensors = [t for t in ctx.saved_tensors if t is not None]
        grads = tuple(g for g in grads if g is not None)

        def gradient(grad_out, *tensors):
            _, pull_back = torch.func.vjp(lambda *t: _plain_layer(ctx.normalize, *t), *tensors)
            return pull_back(grad_out)[: len(grads)]  # without that by the weights if not wanted

        found = torch.func.vjp(gradient, *tensors)[1](grads)
        nothing = [None] * (len(ctx.needs_input_grad) - 2 - len(found))
        return None, None, *found, *nothing

    @staticmethod
    def vmap(info, in_dims, *args):
        return _one_by_one(_TiledGradient, info, in_dims, args)


def _plain_layer(normalize, x, qkv_weight, qkv_bias, centroids, out_weight, out_bias, weights=None):
    heads = F.linear(x, qkv_weight, qkv_bias).unflatten(-1, (3, len(centroids), -1))
    query, key, value = heads.permute(2, 0, 3, 1, 4)
    prepared = None if weights is None else PointWeights(weights, log_weights(weights))
    clusters = cluster_queries(*passes.aggregate(query, centroids, prepared), normalize)
    _, sum_exp, weighted_sum = passes.attend(clusters, key, value, prepared)
    y = (query @ centroids.mT).softmax(-1) @ (weighted_sum / sum_exp)
    return F.linear(y.transpose(1, 2).flatten(2), out_weight, out_bias)


def _one_by_one(function, info, in_dims, args):
    r"""Vectorise by a loop: whoever runs in tiles is large."""
    runs = [
        function.apply(
            *(a if d is None else a.select(d, i) for a, d in zip(args, in_dims, strict=True))
        )
        for i in range(info.batch_size)
    ]
    outputs = [None if o[0] is None else torch.stack(o) for o in zip(*runs, strict=True)]
    return tuple(outputs), tuple(None if o is None else 0 for o in outputs)
