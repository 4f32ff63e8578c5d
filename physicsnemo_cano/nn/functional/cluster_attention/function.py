# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
r"""The public function: checks, weights, projections, and the one call of an implementation."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from physicsnemo_cano.parallel.shards import ALL_POINTS, Shards

from . import passes, triton
from .choice import IMPLEMENTATIONS, choose, merged_points, projected_dtype
from .reference import cluster_attention_reference
from .streaming import cluster_queries, streamed_attention
from .tiled import tiled_layer
from .weights import PointWeights, prepare_weights


class Projection(NamedTuple):
    r"""The linear maps before and after the attention (eq. 9 and :math:`W_O` of eq. 16).

    Attributes
    ----------
    qkv_weight, qkv_bias : torch.Tensor
        :math:`W_Q, W_K, W_V` one below the other, of shape :math:`(3HD, C)`, and :math:`(3HD,)`.
    out_weight, out_bias : torch.Tensor
        :math:`W_O`, of shape :math:`(C', HD)`, and :math:`(C',)`.
    """

    qkv_weight: Tensor
    qkv_bias: Tensor
    out_weight: Tensor
    out_bias: Tensor


def cluster_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    centroids: Tensor,
    *,
    mask: Tensor | None = None,
    weights: Tensor | PointWeights | None = None,
    normalize_queries: bool = True,
    chunk_size: int | None = None,
    projection: Projection | None = None,
    shards: Shards = ALL_POINTS,
    implementation: str | None = None,
) -> Tensor:
    r"""Attention of softly clustered queries to all keys and values.

    With :math:`C = \mathrm{softmax}_k(Q W_c)`, quadrature weights :math:`w` and cluster queries
    :math:`Q_c = C^T (w \circ Q) / C^T w`,

    .. math::
        Y = C \, \mathrm{softmax}_n(Q_c K^T / \sqrt{D} + \log w) \, V .

    Time and memory are linear in the number of points.

    Parameters
    ----------
    query, key, value : torch.Tensor
        Projected points, each of shape :math:`(B, H, N, D)` and the same floating dtype. With a
        ``projection``, three times the same features of shape :math:`(B, N, C)`, as in
        self-attention by :class:`torch.nn.MultiheadAttention`.
    centroids : torch.Tensor
        :math:`W_c^T`, one matrix a head, of shape :math:`(H, K_c, D)`.
    mask : torch.Tensor, optional
        Boolean, shape :math:`(B, N)`; ``False`` marks padding. Padded points influence nothing
        and their outputs are zero.
    weights : torch.Tensor or PointWeights, optional
        Quadrature weights of the points, shape :math:`(B, N)`, non-negative, of any scale. With
        them the sums over points approximate integrals, whatever the discretisation. Who calls
        the function more than once for the same points hands over what
        :func:`.prepare_weights` has made of mask and weights.
    normalize_queries : bool, optional
        ``True`` takes the weighted mean of each cluster's queries; ``False`` the sum, which is
        the paper's eq. 14 to the letter and grows with the number of points.
    chunk_size : int, optional
        Handle this many points at a time. The result is the same; gradients recompute.
    projection : Projection, optional
        Project features to queries, keys and values before, and heads to features after.
    shards : Shards, optional
        Where processes share a sample's points: who has which. By default all are here.
    implementation : {"reference", "sdpa", "streaming", "tiled", "triton"}, optional
        Run this one; by default :func:`.choice.choose` does. Only ``reference`` and ``tiled``
        can be differentiated twice.

    Returns
    -------
    torch.Tensor
        Attended points of shape :math:`(B, H, N, D)`; with a ``projection``, features of shape
        :math:`(B, N, C')`.

    Raises
    ------
    ValueError
        If a shape, dtype or value is not as above, a sample has no real point (on CPUs; see
        :func:`.prepare_weights`), or the implementation cannot do what is asked.
    """
    if not torch.compiler.is_compiling():
        _check(query, key, value, centroids, projection, chunk_size)
    points = query.shape[-2]
    prepared = weights
    if not isinstance(weights, PointWeights):
        prepared = prepare_weights(
            mask,
            weights,
            batch=query.shape[0],
            points=points,
            dtype=query.dtype,
            shards=shards,
        )
    if implementation is None:
        implementation = choose(
            query,
            centroids,
            prepared,
            projected_here=projection is not None,
            chunk_size=chunk_size,
            shards=shards,
        )
    else:
        _check_implementation(implementation, query, centroids, projection, chunk_size, shards)

    if mask is not None:  # padding may hold anything, NaN included, and 0 × NaN is NaN
        padding = ~(mask.unsqueeze(-1) if projection is not None else mask[:, None, :, None])
        if projection is None:
            query, key, value = (t.masked_fill(padding, 0) for t in (query, key, value))
        else:
            query = query.masked_fill(padding, 0)
    if implementation == "tiled":
        values = None if prepared is None else prepared.values
        *project, out_weight, out_bias = projection
        out = tiled_layer(
            query, *project, centroids, out_weight, out_bias, values, normalize_queries
        )
    else:
        if projection is not None:
            query, key, value = _project(query, projection, centroids, implementation)
        if implementation == "reference":
            out = cluster_attention_reference(
                query,
                key,
                value,
                centroids.to(query.dtype),
                mask=mask,
                weights=None if prepared is None else prepared.values,
                normalize_queries=normalize_queries,
            )
        elif implementation == "streaming":
            size = chunk_size or merged_points(query, centroids)
            out = streamed_attention(
                query, key, value, centroids, prepared, normalize_queries, size, shards
            )
        elif implementation == "triton":
            values = None if prepared is None else prepared.values
            sums, masses, logsumexp = triton.aggregate(query, centroids, values)
            clusters = cluster_queries(sums, masses, normalize_queries)
            attended, _ = triton.attend(clusters, key, value, values)
            out = triton.dispatch(query, centroids, attended, logsumexp)
        else:
            sums, masses = passes.aggregate(query, centroids, prepared)
            clusters = cluster_queries(sums, masses, normalize_queries)
            attended = passes.attend_to_all(clusters, key, value, prepared)
            out = passes.dispatch(query, centroids, attended)
        if projection is not None:
            out = F.linear(out.transpose(1, 2).flatten(2), *projection[2:])
    return out if mask is None else out.masked_fill(padding, 0)


def _project(
    x: Tensor, projection: Projection, centroids: Tensor, implementation: str
) -> tuple[Tensor, ...]:
    r"""Queries, keys and values (eq. 9), each (B, H, N, D)."""
    heads = F.linear(x, *projection[:2]).unflatten(-1, (3, len(centroids), -1))  # (B, N, 3, H, D)
    if implementation == "triton":  # its kernels read by strides, and so write the gradients
        return tuple(part.transpose(1, 2) for part in heads.unbind(2))
    # Contiguous heads: every pass over the points then streams through memory.
    return heads.permute(2, 0, 3, 1, 4).contiguous().unbind(0)


def _check(query, key, value, centroids, projection, chunk_size) -> None:
    shapes = f"{tuple(query.shape)}, {tuple(key.shape)} and {tuple(value.shape)}"
    if centroids.ndim != 3:
        raise ValueError(
            f"cluster_attention expects centroids of shape (H, K_c, D), got "
            f"{tuple(centroids.shape)}"
        )
    if projection is not None:
        if query.ndim != 3 or key is not query or value is not query:
            raise ValueError(
                "cluster_attention expects with a projection one tensor (B, N, C) as query, key "
                f"and value, got {shapes}"
            )
        inner = centroids.shape[0] * centroids.shape[2]
        if tuple(projection.qkv_weight.shape) != (3 * inner, query.shape[-1]):
            raise ValueError(
                f"cluster_attention expects a qkv_weight of shape (3 H D, C) = "
                f"({3 * inner}, {query.shape[-1]}), got {tuple(projection.qkv_weight.shape)}"
            )
    else:
        if query.ndim != 4 or key.shape != query.shape or value.shape != query.shape:
            raise ValueError(
                "cluster_attention expects query, key and value of one shape (B, H, N, D), "
                f"got {shapes}"
            )
        heads, dim = query.shape[1], query.shape[3]
        if (centroids.shape[0], centroids.shape[2]) != (heads, dim):
            raise ValueError(
                f"cluster_attention expects centroids of shape (H, K_c, D) = "
                f"({heads}, K_c, {dim}), got {tuple(centroids.shape)}"
            )
    if query.shape[-2] == 0:
        raise ValueError(
            f"cluster_attention expects at least one point, got query of shape {tuple(query.shape)}"
        )
    if not query.is_floating_point() or not query.dtype == key.dtype == value.dtype:
        raise ValueError(
            "cluster_attention expects query, key and value of one floating dtype, "
            f"got {query.dtype}, {key.dtype} and {value.dtype}"
        )
    if chunk_size is not None and chunk_size < 1:
        raise ValueError(f"cluster_attention expects chunk_size None or >= 1, got {chunk_size}")


def _check_implementation(name, query, centroids, projection, chunk_size, shards) -> None:
    if name not in IMPLEMENTATIONS:
        raise ValueError(f"implementation must be one of {IMPLEMENTATIONS}, got {name!r}")
    if name != "streaming" and (chunk_size is not None or shards.is_shared):
        raise ValueError(
            f"implementation={name!r} takes all points at once, but chunk_size={chunk_size} and "
            f"{'several processes share' if shards.is_shared else 'one process has'} the points: "
            'use "streaming"'
        )
    in_tiles = query.device.type == "cpu" and query.dtype in (torch.float32, torch.float64)
    if name == "tiled" and (projection is None or not in_tiles):
        raise ValueError(
            'implementation="tiled" expects a projection and features of float32 or float64 on a '
            f"CPU, got {'no' if projection is None else 'a'} projection and {query.dtype} on "
            f"{query.device}"
        )
    if name == "triton":
        dtype = query.dtype if projection is None else projected_dtype(query)
        if (reason := triton.supports(query, centroids, dtype)) is not None:
            raise ValueError(f'implementation="triton" cannot run here: {reason}')
