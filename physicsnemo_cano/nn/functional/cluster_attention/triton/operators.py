# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
r"""The passes as operators of PyTorch, ``torch.ops.cano.*``.

Each has a fake implementation (``meta`` tensors, ``torch.compile``, ``torch.export``), a gradient
and a FLOP formula. The kernels load when an operator first computes, so everything else works
where Triton is not installed. Operators compute in the types they are given, under autocast too.
"""

import torch
from torch import Tensor
from torch.utils.flop_counter import register_flop_formula


def _passes():
    from . import passes  # imports triton

    return passes


def _vector(points: Tensor) -> Tensor:
    return points.new_empty(points.shape[:3], dtype=torch.float32)


def _like_points(points: Tensor) -> Tensor:
    batch, heads, n, dim = points.shape
    return points.new_empty(batch, n, heads, dim).transpose(1, 2)


def _clusters(points: Tensor, clusters: int, columns: int) -> Tensor:
    return points.new_empty(*points.shape[:2], clusters, columns, dtype=torch.float32)


def _like_weights(weights: Tensor | None, wanted: bool, points: Tensor) -> Tensor:
    return torch.empty_like(weights) if wanted else points.new_empty(0)


@torch.library.custom_op("cano::logsumexp", mutates_args=())
def _logsumexp(query: Tensor, centroids: Tensor) -> Tensor:
    return _passes().logsumexp(query, centroids)


@_logsumexp.register_fake
def _(query, centroids):
    return _vector(query)


@torch.library.custom_op("cano::aggregate", mutates_args=())
def _aggregate(
    query: Tensor, centroids: Tensor, weights: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    return _passes().aggregate(query, centroids, weights)


@_aggregate.register_fake
def _(query, centroids, weights):
    clusters, dim = centroids.shape[1:]
    return _clusters(query, clusters, dim), _clusters(query, clusters, 1), _vector(query)


@torch.library.custom_op("cano::aggregate_backward", mutates_args=())
def _aggregate_backward(
    grad_sums: Tensor,
    grad_masses: Tensor,
    query: Tensor,
    centroids: Tensor,
    weights: Tensor | None,
    lse: Tensor,
    weights_too: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    return _passes().aggregate_backward(
        grad_sums, grad_masses, query, centroids, weights, lse, weights_too
    )


@_aggregate_backward.register_fake
def _(grad_sums, grad_masses, query, centroids, weights, lse, weights_too):
    return (
        _like_points(query),
        centroids.new_empty(centroids.shape),
        _like_weights(weights, weights_too, query),
    )


@torch.library.custom_op("cano::attend", mutates_args=())
def _attend(
    cluster_queries: Tensor, key: Tensor, value: Tensor, weights: Tensor | None
) -> tuple[Tensor, Tensor]:
    return _passes().attend(cluster_queries, key, value, weights)


@_attend.register_fake
def _(cluster_queries, key, value, weights):
    clusters, dim = cluster_queries.shape[2:]
    return _clusters(key, clusters, dim), _clusters(key, clusters, 1)


@torch.library.custom_op("cano::attend_backward", mutates_args=())
def _attend_backward(
    grad_values: Tensor,
    grad_logsumexp: Tensor,
    cluster_queries: Tensor,
    key: Tensor,
    value: Tensor,
    weights: Tensor | None,
    values: Tensor,
    lse: Tensor,
    weights_too: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return _passes().attend_backward(
        grad_values, grad_logsumexp, cluster_queries, key, value, weights, values, lse, weights_too
    )


@_attend_backward.register_fake
def _(grad_values, grad_logsumexp, cluster_queries, key, value, weights, values, lse, weights_too):
    return (
        cluster_queries.new_empty(cluster_queries.shape),
        _like_points(key),
        _like_points(value),
        _like_weights(weights, weights_too, key),
    )


@torch.library.custom_op("cano::dispatch", mutates_args=())
def _dispatch(query: Tensor, centroids: Tensor, cluster_values: Tensor, lse: Tensor) -> Tensor:
    return _passes().dispatch(query, centroids, cluster_values, lse)


@_dispatch.register_fake
def _(query, centroids, cluster_values, lse):
    return _like_points(query)


@torch.library.custom_op("cano::dispatch_backward", mutates_args=())
def _dispatch_backward(
    grad: Tensor, query: Tensor, centroids: Tensor, cluster_values: Tensor, lse: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    return _passes().dispatch_backward(grad, query, centroids, cluster_values, lse)


@_dispatch_backward.register_fake
def _(grad, query, centroids, cluster_values, lse):
    return (
        _like_points(query),
        centroids.new_empty(centroids.shape),
        cluster_values.new_empty(cluster_values.shape),
    )


# Gradients. One that is not given counts as zero. Those of the weights cost a sum over heads and
# are computed only where asked for.


def _save_aggregate(ctx, inputs, output):
    ctx.set_materialize_grads(False)  # lse has none, and is as long as the points
    ctx.mark_non_differentiable(output[2])
    ctx.save_for_backward(*inputs, output[2])


def _backward_of_aggregate(ctx, grad_sums, grad_masses, _):
    query, centroids, weights, lse = ctx.saved_tensors
    clusters, dim = centroids.shape[1:]
    if grad_sums is None:
        grad_sums = _clusters(query, clusters, dim).zero_()
    if grad_masses is None:
        grad_masses = _clusters(query, clusters, 1).zero_()
    wanted = ctx.needs_input_grad[2]
    *grads, grad_weights = _aggregate_backward(
        grad_sums, grad_masses, query, centroids, weights, lse, wanted
    )
    return *grads, grad_weights if wanted else None


def _save_attend(ctx, inputs, output):
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*inputs, *output)


def _backward_of_attend(ctx, grad_values, grad_logsumexp):
    cluster_queries, key, value, weights, values, lse = ctx.saved_tensors
    if grad_values is None:
        grad_values = torch.zeros_like(values)
    if grad_logsumexp is None:
        grad_logsumexp = torch.zeros_like(lse)
    wanted = ctx.needs_input_grad[3]
    *grads, grad_weights = _attend_backward(
        grad_values, grad_logsumexp, cluster_queries, key, value, weights, values, lse, wanted
    )
    return *grads, grad_weights if wanted else None


def _save_dispatch(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _backward_of_dispatch(ctx, grad):
    return *_dispatch_backward(grad, *ctx.saved_tensors), None


_aggregate.register_autograd(_backward_of_aggregate, setup_context=_save_aggregate)
_attend.register_autograd(_backward_of_attend, setup_context=_save_attend)
_dispatch.register_autograd(_backward_of_dispatch, setup_context=_save_dispatch)


def _refuse_second_gradient(ctx, *grads):
    raise RuntimeError(
        "the Triton kernels of cluster attention have no second derivatives: "
        'use implementation="reference" for gradients of gradients'
    )


def _refuse_vmap(info, in_dims, *args):
    raise NotImplementedError(
        "the Triton kernels of cluster attention do not run under torch.vmap: give the samples as "
        'one batch, or use implementation="reference"'
    )


_FORWARD = (_logsumexp, _aggregate, _attend, _dispatch)
_BACKWARD = (_aggregate_backward, _attend_backward, _dispatch_backward)

for _operator in _BACKWARD:
    _operator.register_autograd(_refuse_second_gradient)
for _operator in (*_FORWARD, *_BACKWARD):
    _operator.register_vmap(_refuse_vmap)


# FLOPs. A product of points, clusters and channels is 2 B H N K D, and a pass has as many products:


def _product(points: torch.Size, clusters: int) -> int:
    batch, heads, n, dim = points
    return 2 * batch * heads * n * clusters * dim


@register_flop_formula(torch.ops.cano.logsumexp)
def _(query, centroids, **_):
    return _product(query, centroids[1])


@register_flop_formula(torch.ops.cano.aggregate)
def _(query, centroids, *_, **__):
    return 2 * _product(query, centroids[1])


@register_flop_formula(torch.ops.cano.attend)
def _(cluster_queries, key, *_, **__):
    return 2 * _product(key, cluster_queries[2])


@register_flop_formula(torch.ops.cano.dispatch)
def _(query, centroids, *_, **__):
    return 2 * _product(query, centroids[1])


@register_flop_formula(torch.ops.cano.aggregate_backward)
def _(grad_sums, grad_masses, query, centroids, *_, **__):
    return 5 * _product(query, centroids[1])


@register_flop_formula(torch.ops.cano.attend_backward)
def _(grad_values, grad_logsumexp, cluster_queries, key, *_, **__):
    return 5 * _product(key, cluster_queries[2])


@register_flop_formula(torch.ops.cano.dispatch_backward)
def _(grad, query, centroids, *_, **__):
    return 5 * _product(query, centroids[1])


def aggregate(
    query: Tensor, centroids: Tensor, weights: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Sum the queries over the points of each cluster (eq. 13 and 14).

    Parameters
    ----------
    query : torch.Tensor
        Shape :math:`(B, H, N, D)`; float32, bfloat16 or float16.
    centroids : torch.Tensor
        Shape :math:`(H, K_c, D)`, of any floating dtype: rounded to that of ``query``.
    weights : torch.Tensor, optional
        Shape :math:`(B, N)`, not negative; zero marks an absent point.

    Returns
    -------
    tuple[torch.Tensor, torch.Tensor, torch.Tensor]
        :math:`C^T (w \circ Q)` of shape :math:`(B, H, K_c, D)` and :math:`C^T w` of shape
        :math:`(B, H, K_c, 1)`, and the points' logsumexp over clusters, :math:`(B, H, N)`, for
        :func:`dispatch`. All float32; no gradient goes through the last.
    """
    return _aggregate(query, centroids, weights)


def attend(
    cluster_queries: Tensor, key: Tensor, value: Tensor, weights: Tensor | None
) -> tuple[Tensor, Tensor]:
    r"""Attend from the clusters to the points (eq. 15).

    Attentions to disjoint sets of points merge from these results, gradients included: the values
    of their union are those of the sets, weighted by the softmax of their logsumexps.

    Parameters
    ----------
    cluster_queries : torch.Tensor
        Shape :math:`(B, H, K_c, D)`, of any floating dtype: rounded to that of ``key``.
    key, value : torch.Tensor
        Shape :math:`(B, H, N, D)`, of one dtype.
    weights : torch.Tensor, optional
        Shape :math:`(B, N)`, not negative; zero marks an absent point.

    Returns
    -------
    tuple[torch.Tensor, torch.Tensor]
        :math:`Z_c` of shape :math:`(B, H, K_c, D)`, and the logsumexp of
        :math:`Q_c K^T / \sqrt{D} + \log w`, shape :math:`(B, H, K_c, 1)`, both float32. Where
        no point is present they are 0 and -inf, and gradients are zero.
    """
    return _attend(cluster_queries, key, value, weights)


def dispatch(
    query: Tensor, centroids: Tensor, cluster_values: Tensor, lse: Tensor | None = None
) -> Tensor:
    r"""Bring the clusters' values back to the points, :math:`Y = C Z_c` (eq. 16).

    Parameters
    ----------
    query : torch.Tensor
        Shape :math:`(B, H, N, D)`.
    centroids : torch.Tensor
        Shape :math:`(H, K_c, D)`.
    cluster_values : torch.Tensor
        Shape :math:`(B, H, K_c, D)`, of any floating dtype: rounded to that of ``query``.
    lse : torch.Tensor, optional
        The points' logsumexp as :func:`aggregate` gives it; computed if not given.

    Returns
    -------
    torch.Tensor
        Shape :math:`(B, H, N, D)`, its memory in the order :math:`(B, N, H, D)`.
    """
    if lse is None:
        lse = _logsumexp(query.detach(), centroids.detach())
    return _dispatch(query, centroids, cluster_values, lse)
