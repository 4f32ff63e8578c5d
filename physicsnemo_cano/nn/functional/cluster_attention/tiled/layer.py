# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
r"""The whole layer, from features to features, and its derivatives.

What costs time on a CPU is memory: large fresh tensors above all, then everything that leaves the
cache. So keys, values, assignments and attention exist for one tile of points only and are
computed again in the backward pass; the layer keeps its input and one number a point and head.
Needs torch alone.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from .. import passes
from ..streaming import SMALLEST_MASS, cluster_queries
from ..weights import PointWeights, log_weights
from .backward import BackwardPasses
from .forward import ForwardPasses


def tiled_layer(
    x: Tensor,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    centroids: Tensor,
    out_weight: Tensor,
    out_bias: Tensor,
    weights: Tensor | None,
    normalize_queries: bool,
    tile_size: int | None = None,
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
    tile_size : int, optional
        Most points of a tile; by default :func:`.choice.tiled_points`.

    Returns
    -------
    torch.Tensor
        Shape :math:`(B, N, C')`.
    """
    return _TiledLayer.apply(
        normalize_queries,
        tile_size,
        x,
        qkv_weight,
        qkv_bias,
        centroids,
        out_weight,
        out_bias,
        weights,
    )[0]


class _TiledLayer(torch.autograd.Function):
    @staticmethod
    def forward(
        normalize, tile_size, x, qkv_weight, qkv_bias, centroids, out_weight, out_bias, weights
    ):
        batch, points, _ = x.shape
        heads, _, dim = centroids.shape
        width = len(out_weight)
        out = x.new_empty(batch, points, width)  # no view, which could not be changed in place
        # The queries lie in the memory of the result, if it is as wide: tile by tile, dispatch
        # reads the queries and then writes the result in their place.
        queries = out if width == heads * dim else x.new_empty(batch, points, heads * dim)
        queries = queries.view(batch, points * heads * dim)
        sum_exp = x.new_empty(points * heads)  # of eq. 13, of one sample
        logsumexp = x.new_empty(batch, points * heads)
        summaries = []
        passes = ForwardPasses(qkv_weight, qkv_bias, centroids, tile_size)
        for b in range(batch):
            passes.select(x[b], None if weights is None else weights[b])
            sums, masses = passes.aggregate(queries[b], sum_exp, logsumexp[b])
            scaled_queries = cluster_queries(sums, masses, normalize) / math.sqrt(dim)
            values, cluster_logsumexp = passes.attend(scaled_queries)
            values += passes.value_bias
            passes.dispatch(queries[b], sum_exp, logsumexp[b], values, out_weight, out_bias, out[b])
            summaries.append((scaled_queries, masses, values, cluster_logsumexp))
        return out, logsumexp, *(torch.stack(s) for s in zip(*summaries, strict=True))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.normalize, ctx.tile_size, *tensors = inputs
        ctx.save_for_backward(*tensors, *output[1:])
        ctx.mark_non_differentiable(*output[1:])

    @staticmethod
    def backward(ctx, grad_out, *_):
        *_, weights_wanted = ctx.needs_input_grad
        gradients = _TiledGradient.apply(
            ctx.normalize, ctx.tile_size, weights_wanted, grad_out, *ctx.saved_tensors
        )
        return None, None, *gradients

    @staticmethod
    def vmap(info, in_dims, *args):
        return _one_by_one(_TiledLayer, info, in_dims, args)


class _TiledGradient(torch.autograd.Function):
    @staticmethod
    def forward(normalize, tile_size, weights_wanted, grad_out, *saved):
        x, qkv_weight, qkv_bias, centroids, out_weight, _, weights, logsumexp, *summaries = saved
        grad_x = torch.empty_like(x, memory_format=torch.contiguous_format)
        grad_weights = torch.empty_like(weights) if weights_wanted else None
        parameters = (qkv_weight, qkv_bias, centroids, out_weight)
        gradients = [torch.zeros_like(parameter) for parameter in parameters]
        grad_qkv_weight, grad_qkv_bias, grad_centroids, grad_out_weight = gradients
        inner = len(qkv_weight) // 3
        grad_q_weight, grad_kv_weight = grad_qkv_weight.split([inner, 2 * inner])
        grad_q_bias, _, grad_v_bias = grad_qkv_bias.split(inner)
        passes = BackwardPasses(qkv_weight, qkv_bias, centroids, out_weight, tile_size)
        for b, summary in enumerate(zip(*summaries, strict=True)):
            scaled_queries, masses, values, cluster_logsumexp = summary
            passes.select(
                x[b],
                None if weights is None else weights[b],
                grad_out[b],
                logsumexp[b],
                grad_x[b],
                grad_weights[b] if weights_wanted else None,
            )
            grad_values = passes.dispatch_gradient(values, grad_out_weight)
            grad_v_bias += grad_values.sum(1).flatten()
            grad_scaled = passes.attend_gradient(
                scaled_queries, cluster_logsumexp, values, grad_values, grad_kv_weight
            )
            # Through the scaling and eq. 14's division, of a cluster with any mass
            grad_sums = grad_scaled / math.sqrt(scaled_queries.shape[-1])
            grad_masses = torch.zeros_like(masses)
            if normalize:
                grad_sums /= masses.clamp_min(SMALLEST_MASS)
                quotient = -(grad_scaled * scaled_queries).sum(-1, keepdim=True) / masses
                grad_masses = torch.where(masses > SMALLEST_MASS, quotient, grad_masses)
            grad_sums = torch.cat([grad_sums, grad_masses], -1)
            passes.aggregate_gradient(grad_sums, values, grad_q_weight, grad_q_bias, grad_centroids)
        return grad_x, *gradients, grad_out.sum((0, 1)), grad_weights

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.normalize, _, _, grad_out, *tensors = inputs
        ctx.save_for_backward(grad_out, *tensors[:7])

    @staticmethod
    def backward(ctx, *grads):
        # Rare, so plain: autograd's derivative of the derivative of the layer in a few lines.
        tensors = [t for t in ctx.saved_tensors if t is not None]
        grads = tuple(g for g in grads if g is not None)

        def gradient(grad_out, *tensors):
            _, pull_back = torch.func.vjp(lambda *t: _plain_layer(ctx.normalize, *t), *tensors)
            return pull_back(grad_out)[: len(grads)]  # without that of the weights if not wanted

        found = torch.func.vjp(gradient, *tensors)[1](grads)
        nothing = [None] * (len(ctx.needs_input_grad) - 3 - len(found))
        return None, None, None, *found, *nothing

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
