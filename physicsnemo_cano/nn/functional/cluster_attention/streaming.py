# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
r"""Cluster attention of points that come in chunks, or are shared by processes: exact merges.

In training, a chunk is computed again in the backward pass, so that memory is that of one chunk.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from functools import partial

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from physicsnemo_cano.parallel.shards import ALL_POINTS, Shards

from . import passes, triton
from .choice import uses_triton
from .passes import PartialSoftmax
from .weights import PointWeights

SMALLEST_MASS = 1e-30
"""No point belongs to a cluster of less mass, but the gradient of its mean would overflow."""


def streamed_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    centroids: Tensor,
    weights: PointWeights | None,
    normalize_queries: bool,
    size: int,
    shards: Shards = ALL_POINTS,
) -> Tensor:
    r"""Cluster attention (eq. 13 to 16) ``size`` points at a time.

    Parameters
    ----------
    query, key, value : torch.Tensor
        Shape :math:`(B, H, N, D)`.
    centroids : torch.Tensor
        Shape :math:`(H, K_c, D)`.
    weights : PointWeights, optional
        Of the :math:`N` points.
    normalize_queries : bool
        As in :func:`~physicsnemo_cano.nn.functional.cluster_attention`.
    size : int
        Points of a chunk.
    shards : Shards, optional
        Who has which points; by default all are here.

    Returns
    -------
    torch.Tensor
        Shape :math:`(B, H, N, D)`.
    """
    queries, keys, values = (split(t, size, dim=2) for t in (query, key, value))
    attended = cluster_values(
        list(zip(split_weights(weights, size), queries, keys, values, strict=False)),
        lambda q, k, v: q,
        lambda q, k, v: (k, v),
        centroids,
        normalize_queries,
        shards,
    )
    return torch.cat([_recomputed(dispatch, q, centroids, attended) for q in queries], dim=2)


def cluster_values(
    pieces: list[tuple],
    queries: Callable[..., Tensor],
    keys_values: Callable[..., tuple[Tensor, Tensor]],
    centroids: Tensor,
    normalize_queries: bool,
    shards: Shards = ALL_POINTS,
) -> Tensor:
    r"""Attended cluster values :math:`Z_c` of points that come in chunks (eq. 13 to 15).

    Parameters
    ----------
    pieces : list of tuple
        For each chunk its :class:`.PointWeights` or ``None``, and what ``queries`` and
        ``keys_values`` take.
    queries, keys_values : Callable
        Give a chunk's queries, and its keys and values, of shape :math:`(B, H, n, D)`.
    centroids : torch.Tensor
        Shape :math:`(H, K_c, D)`.
    normalize_queries : bool
        As in :func:`~physicsnemo_cano.nn.functional.cluster_attention`.
    shards : Shards, optional
        Who has which points; by default all are here.

    Returns
    -------
    torch.Tensor
        Shape :math:`(B, H, K_c, D)`.
    """
    sums, masses = 0, 0
    for w, *piece in pieces:
        more = _recomputed(partial(_aggregate, queries, centroids, w), *piece)
        sums, masses = sums + more[0], masses + more[1]
    together = shards.sum(torch.cat([sums, masses], -1))
    clusters = cluster_queries(together[..., :-1], together[..., -1:], normalize_queries)
    state = None
    for w, *piece in pieces:
        more = PartialSoftmax(*_recomputed(partial(_attend, keys_values, w), clusters, *piece))
        state = more if state is None else _merge(state, more)
    maximum = shards.maximum(state.maximum)
    total = torch.cat([state.weighted_sum, state.sum_exp], -1) * (state.maximum - maximum).exp()
    total = shards.sum(total)
    return total[..., :-1] / total[..., -1:]


def cluster_queries(sums: Tensor, masses: Tensor, normalize: bool) -> Tensor:
    r"""Queries of the clusters (eq. 14): the weighted mean over their points, or the sum.

    Parameters
    ----------
    sums, masses : torch.Tensor
        As of :func:`.passes.aggregate`, of all points; also without :math:`B`.
    normalize : bool
        Whether it is the mean; zero for a cluster without mass.

    Returns
    -------
    torch.Tensor
        Shape :math:`(B, H, K_c, D)`.
    """
    return sums / masses.clamp_min(SMALLEST_MASS) if normalize else sums


def _merge(a: PartialSoftmax, b: PartialSoftmax) -> PartialSoftmax:
    r"""Join the attention to two disjoint sets of points into that to their union."""
    maximum = torch.maximum(a.maximum, b.maximum)
    scale_a, scale_b = (a.maximum - maximum).exp(), (b.maximum - maximum).exp()
    return PartialSoftmax(
        maximum,
        a.sum_exp * scale_a + b.sum_exp * scale_b,
        a.weighted_sum * scale_a + b.weighted_sum * scale_b,
    )


def by_chunks(function: Callable[..., Tensor], size: int, *tensors: Tensor | None) -> Tensor:
    r"""Call a function that acts on each point alone, a chunk of the points at a time.

    Parameters
    ----------
    function : Callable
        Takes a chunk of each tensor, gives :math:`(B, n, C)`.
    size : int
        Points of a chunk.
    *tensors : torch.Tensor, optional
        Of shape :math:`(B, N, …)`, or ``None``, which is handed on; the first is a tensor.

    Returns
    -------
    torch.Tensor
        Shape :math:`(B, N, C)`.
    """
    points = tensors[0].shape[1]
    if size >= points:
        return function(*tensors)
    pieces = zip(*(split(tensor, size) for tensor in tensors), strict=False)
    if torch.is_grad_enabled():
        return torch.cat([_recomputed(function, *piece) for piece in pieces], dim=1)
    out = None
    for start, piece in zip(range(0, points, size), pieces, strict=True):
        result = function(*piece)
        if out is None:
            out = result.new_empty(result.shape[0], points, result.shape[2])
        out[:, start : start + size] = result
    return out


def split(tensor: Tensor | None, size: int, dim: int = 1) -> Iterable[Tensor | None]:
    r"""Cut a tensor into chunks of ``size`` points; of an absent one, give ``None`` without end.

    One split serves all passes: its gradient is one join, that of a slice as long as all points.

    Parameters
    ----------
    tensor : torch.Tensor, optional
        What to cut.
    size : int
        Points of a chunk; the last may have fewer.
    dim : int, optional, default=1
        Dimension of the points.

    Returns
    -------
    Iterable[torch.Tensor or None]
        Views.
    """
    return itertools.repeat(None) if tensor is None else tensor.split(size, dim)


def split_weights(weights: PointWeights | None, size: int) -> Iterable[PointWeights | None]:
    r"""Cut weights into chunks, as :func:`split` does a tensor.

    Parameters
    ----------
    weights : PointWeights, optional
        Of all points.
    size : int
        Points of a chunk.

    Returns
    -------
    Iterable[PointWeights or None]
        Views.
    """
    if weights is None:
        return itertools.repeat(None)
    return map(PointWeights, *(tensor.split(size, 1) for tensor in weights))


def _recomputed(function: Callable, *args):
    r"""Call ``function``, storing only its arguments for the backward pass."""
    if torch.is_grad_enabled():
        return checkpoint(function, *args, use_reentrant=False)
    return function(*args)


def dispatch(query: Tensor, centroids: Tensor, attended: Tensor) -> Tensor:
    r"""Bring the clusters' values back to a chunk (eq. 16), by a kernel where there is one.

    Parameters
    ----------
    query, centroids, attended
        As in :func:`.passes.dispatch`.

    Returns
    -------
    torch.Tensor
        Shape :math:`(B, H, n, D)`.
    """
    kernels = triton if uses_triton(query, centroids) else passes
    return kernels.dispatch(query, centroids, attended)


def _aggregate(queries, centroids, weights, *piece):
    query = queries(*piece)
    if uses_triton(query, centroids):
        return triton.aggregate(query, centroids, None if weights is None else weights.values)[:2]
    return passes.aggregate(query, centroids, weights)


def _attend(keys_values, weights, clusters, *piece):
    key, value = keys_values(*piece)
    if not uses_triton(key, clusters[0]):
        return tuple(passes.attend(clusters, key, value, weights))
    values, logsumexp = triton.attend(
        clusters, key, value, None if weights is None else weights.values
    )
    # -inf where no point of the chunk is present
    maximum = logsumexp.detach().clamp_min(torch.finfo(logsumexp.dtype).min / 4)
    sum_exp = (logsumexp - maximum).exp()
    return maximum, sum_exp, values * sum_exp
