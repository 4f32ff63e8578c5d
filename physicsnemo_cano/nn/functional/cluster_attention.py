r"""Cluster attention: the mathematics of CANO (arXiv 2609.39914, eq. 13 to 16).

Three passes over the points, each a sum, so each can be cut into chunks and merged exactly:
:func:`aggregate` (the cluster queries), :func:`attend` (the cluster values) and :func:`dispatch`
(back to the points). No pass stores a matrix of points by clusters. Needs torch alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from . import ranks

_TILE = 1024
"""Points per tile of :func:`aggregate`: a tile of assignments stays in the cache."""
_PIECE = 65536
"""Points per chunk where the attention has to be merged with that of other processes."""


def cluster_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    centroids: Tensor,
    *,
    mask: Tensor | None = None,
    weights: Tensor | None = None,
    normalize_queries: bool = True,
    chunk_size: int | None = None,
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
        Projected points, each of shape :math:`(B, H, N, D)` and the same floating dtype.
    centroids : torch.Tensor
        :math:`W_c^T`, one matrix a head, of shape :math:`(H, K_c, D)`.
    mask : torch.Tensor, optional
        Boolean, shape :math:`(B, N)`; ``False`` marks padding. Padded points influence nothing
        and their outputs are zero.
    weights : torch.Tensor, optional
        Quadrature weights of the points, shape :math:`(B, N)`, non-negative, of any scale. With
        them the sums over points approximate integrals, whatever the discretisation.
    normalize_queries : bool, optional
        ``True`` takes the weighted mean of each cluster's queries; ``False`` the sum, which is
        the paper's eq. 14 to the letter and grows with the number of points.
    chunk_size : int, optional
        Handle this many points at a time. The result is the same; gradients recompute.

    Returns
    -------
    torch.Tensor
        Attended points of shape :math:`(B, H, N, D)`.

    Raises
    ------
    ValueError
        If a shape, dtype or value is not as above, or a sample has no real point.
    """
    if not torch.compiler.is_compiling():
        _check(query, key, value, centroids, mask, weights, chunk_size)

    weights = normalized_weights(mask, weights, query)
    if mask is not None:  # padding may hold anything, NaN included, and 0 × NaN is NaN
        padding = ~mask[:, None, :, None]  # (B, 1, N, 1)
        query, key, value = (t.masked_fill(padding, 0) for t in (query, key, value))

    if chunk_size is None:
        out = attention(query, key, value, centroids, weights, normalize_queries)
    else:
        queries, keys, values = (split(t, chunk_size, dim=2) for t in (query, key, value))
        pieces = zip(split(weights, chunk_size), queries, keys, values, strict=False)
        attended = _summarize(pieces, centroids, normalize_queries)
        out = torch.cat([recomputed(dispatch, q, centroids, attended) for q in queries], dim=2)

    return out if mask is None else out.masked_fill(padding, 0)


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    centroids: Tensor,
    weights: Tensor | None,
    normalize_queries: bool,
) -> Tensor:
    r""":func:`cluster_attention` without checks, of :func:`normalized_weights`."""
    if ranks.is_spread():  # what merges attentions does so piece by piece
        projected = (split(t, _PIECE, dim=2) for t in (query, key, value))
        pieces = zip(split(weights, _PIECE), *projected, strict=False)
        attended = _summarize(pieces, centroids, normalize_queries)
    else:
        clusters = cluster_queries(*aggregate(query, centroids, weights), normalize_queries)
        # eq. 15 (B, H, K, D)
        attended = F.scaled_dot_product_attention(
            clusters.to(value.dtype), key, value, attn_mask=log_weights(weights, value.dtype)
        )
    return dispatch(query, centroids, attended)


def aggregate(query: Tensor, centroids: Tensor, weights: Tensor | None) -> tuple[Tensor, Tensor]:
    r"""Sum the queries over the points of each cluster (eq. 14), tile by tile.

    Parameters
    ----------
    query : torch.Tensor
        Shape :math:`(B, H, N, D)`.
    centroids : torch.Tensor
        Shape :math:`(H, K_c, D)`.
    weights : torch.Tensor, optional
        Shape :math:`(B, N)`.

    Returns
    -------
    tuple[torch.Tensor, torch.Tensor]
        :math:`C^T (w \circ Q)` of shape :math:`(B, H, K_c, D)` and :math:`C^T w` of shape
        :math:`(B, H, K_c, 1)`, in at least float32. Both add up over disjoint sets of points.
    """
    # Sums over all points: half precision would overflow or lose the small terms.
    with torch.autocast(query.device.type, enabled=False):
        dtype = torch.promote_types(query.dtype, torch.float32)
        query, centroids = query.to(dtype), centroids.to(dtype)
        weights = None if weights is None else weights[:, None, :, None].to(dtype)
        sums = _Aggregate.apply(query, centroids, weights)  # (B, H, K, D + 1)
        return sums[..., :-1], sums[..., -1:]


def cluster_queries(sums: Tensor, masses: Tensor, normalize: bool) -> Tensor:
    r"""Queries of the clusters, mean or sum, from what :func:`aggregate` gives for all points."""
    if ranks.is_spread():
        together = ranks.total(torch.cat([sums, masses], -1))
        sums, masses = together[..., :-1], together[..., -1:]
    return mean_query(sums, masses) if normalize else sums


def mean_query(sums: Tensor, masses: Tensor) -> Tensor:
    r"""Weighted mean query of each cluster from the sums of :func:`aggregate`."""
    # No point belongs to a cluster of less mass, but its gradient would overflow.
    return sums / masses.clamp_min(1e-30)


class Attended(NamedTuple):
    r"""An unfinished softmax over points: :math:`Z_c` is ``total / normalizer``."""

    peak: Tensor  # (B, H, K, 1), the largest logit
    normalizer: Tensor  # (B, H, K, 1), sum of exp(logit - peak)
    total: Tensor  # (B, H, K, D), sum of exp(logit - peak) value


def attend(clusters: Tensor, key: Tensor, value: Tensor, weights: Tensor | None) -> Attended:
    r"""Attend from cluster queries to some of the points (eq. 15), before normalisation.

    Parameters
    ----------
    clusters : torch.Tensor
        Cluster queries of shape :math:`(B, H, K_c, D)`.
    key, value : torch.Tensor
        Shape :math:`(B, H, n, D)`.
    weights : torch.Tensor, optional
        Shape :math:`(B, n)`.

    Returns
    -------
    Attended
        To :func:`merge` with those of the other points.
    """
    with torch.autocast(key.device.type, enabled=False):
        key, value = key.to(clusters.dtype), value.to(clusters.dtype)
        logits = clusters / math.sqrt(key.shape[-1]) @ key.mT  # (B, H, K, n)
        if weights is not None:
            logits += log_weights(weights, logits.dtype)
        peak = logits.amax(-1, keepdim=True).detach()
        exponentials = logits.sub_(peak).exp_()  # in place: the largest tensors there are
        return Attended(peak, exponentials.sum(-1, keepdim=True), exponentials @ value)


def merge(a: Attended, b: Attended) -> Attended:
    r"""Join the attention to two disjoint sets of points into that to their union."""
    peak = torch.maximum(a.peak, b.peak)
    scale_a, scale_b = (a.peak - peak).exp(), (b.peak - peak).exp()
    return Attended(
        peak,
        a.normalizer * scale_a + b.normalizer * scale_b,
        a.total * scale_a + b.total * scale_b,
    )


def finish(state: Attended) -> Tensor:
    r"""Cluster values :math:`Z_c` once all points have been merged, those of other ranks too."""
    if ranks.is_spread():
        peak = ranks.largest(state.peak)
        scaled = torch.cat([state.total, state.normalizer], -1) * (state.peak - peak).exp()
        together = ranks.total(scaled)
        return together[..., :-1] / together[..., -1:]
    return state.total / state.normalizer


def dispatch(query: Tensor, centroids: Tensor, attended: Tensor) -> Tensor:
    r"""Bring the clusters' values back to the points: :math:`Y = C Z_c` (eq. 16).

    :math:`\mathrm{softmax}_k(Q W_c) Z_c` is itself an attention with scale 1, so C is not stored.
    """
    centroids = centroids.to(query.dtype).expand(query.shape[0], -1, -1, -1)
    attended = attended.to(query.dtype)
    return F.scaled_dot_product_attention(query, centroids, attended, scale=1.0)


def split(tensor: Tensor | None, size: int, dim: int = 1) -> Iterable[Tensor | None]:
    r"""Cut a tensor into chunks of ``size`` points; of an absent one, give ``None`` without end.

    One split serves all passes: its gradient is one join, that of a slice as long as all points.
    """
    return itertools.repeat(None) if tensor is None else tensor.split(size, dim)


def by_chunks(function: Callable[..., Tensor], size: int, *tensors: Tensor | None) -> Tensor:
    r"""Join what ``function`` gives, (B, n, C), for each chunk of the tensors (B, N, ...)."""
    points = tensors[0].shape[1]
    if size >= points:
        return function(*tensors)
    pieces = zip(*(split(tensor, size) for tensor in tensors), strict=False)
    if torch.is_grad_enabled():
        return torch.cat([recomputed(function, *piece) for piece in pieces], dim=1)
    out = None
    for start, piece in zip(range(0, points, size), pieces, strict=True):
        result = function(*piece)
        if out is None:
            out = result.new_empty(result.shape[0], points, result.shape[2])
        out[:, start : start + size] = result
    return out


def summarize(
    pieces: list[tuple[Tensor | None, ...]],
    queries: Callable[..., Tensor],
    keys_values: Callable[..., tuple[Tensor, Tensor]],
    centroids: Tensor,
    normalize_queries: bool,
) -> Tensor:
    r"""Attended cluster values :math:`Z_c` of points that come in chunks (eq. 13 to 15).

    Parameters
    ----------
    pieces : list[tuple[torch.Tensor, ...]]
        For each chunk its :func:`normalized_weights`, :math:`(B, n)` or ``None``, and what
        ``queries`` and ``keys_values`` take.
    queries, keys_values : Callable
        Give a chunk's queries, and its keys and values, of shape :math:`(B, H, n, D)`.
    centroids : torch.Tensor
        Shape :math:`(H, K_c, D)`.
    normalize_queries : bool
        As in :func:`cluster_attention`.

    Returns
    -------
    torch.Tensor
        Shape :math:`(B, H, K_c, D)`.
    """
    sums, masses = 0, 0
    for piece in pieces:
        more = recomputed(lambda w, *x: aggregate(queries(*x), centroids, w), *piece)
        sums, masses = sums + more[0], masses + more[1]
    clusters = cluster_queries(sums, masses, normalize_queries)
    state = None
    for piece in pieces:
        more = recomputed(lambda w, *x: attend(clusters, *keys_values(*x), w), *piece)
        state = more if state is None else merge(state, more)
    return finish(state)


def _summarize(pieces, centroids, normalize_queries):
    r""":func:`summarize` for chunks of weights, queries, keys and values."""
    return summarize(
        list(pieces), lambda q, k, v: q, lambda q, k, v: (k, v), centroids, normalize_queries
    )


def recomputed(function, *args):
    r"""Call ``function``, storing only its arguments for the backward pass."""
    if torch.is_grad_enabled():
        return checkpoint(function, *args, use_reentrant=False)
    return function(*args)


def normalized_weights(mask: Tensor | None, weights: Tensor | None, like: Tensor) -> Tensor | None:
    r"""Weights of mean one over the real points and zero on padding, or ``None`` if all equal.

    The mean is fixed so that the scale of ``weights`` never matters, not even to the literal sum.
    """
    if mask is None and weights is None:
        return None
    dtype = torch.promote_types(like.dtype, torch.float32)
    if weights is None:
        return mask.to(dtype)
    weights = weights.to(dtype)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0)
        count = ranks.total(mask.sum(-1, keepdim=True))
    else:
        count = ranks.whole_count(weights.shape[-1])
    return weights / (ranks.total(weights.sum(-1, keepdim=True)) / count)


def log_weights(weights: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    r"""Bias of the attention logits, (B, 1, 1, N); finite, so that no chunk is all ``-inf``."""
    if weights is None:
        return None
    absent = weights == 0
    bias = weights.masked_fill(absent, 1).log().masked_fill(absent, torch.finfo(dtype).min / 2)
    return bias.to(dtype)[:, None, None, :]


class _Aggregate(torch.autograd.Function):
    r"""``softmax(Q Wᵀ)ᵀ (w ∘ [Q, 1])``, with a tile of assignments at a time in both passes."""

    generate_vmap_rule = True

    @staticmethod
    def forward(query: Tensor, centroids: Tensor, weights: Tensor | None) -> Tensor:
        sums = 0
        for q, w in _tiles(query, weights):
            assignment = (q @ centroids.mT).softmax(-1)
            if w is not None:
                assignment = assignment * w
            sums = sums + torch.cat([assignment.mT @ q, assignment.sum(-2).unsqueeze(-1)], -1)
        return sums

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad: Tensor):
        query, centroids, weights = ctx.saved_tensors
        grad_sums, grad_mass = grad[..., :-1], grad[..., -1:]  # (B, H, K, D), (B, H, K, 1)
        grad_query, grad_centroids, grad_weights = [], 0, []
        for q, w in _tiles(query, weights):
            assignment = (q @ centroids.mT).softmax(-1)
            grad_assignment = q @ grad_sums.mT + grad_mass.mT
            inner = (assignment * grad_assignment).sum(-1, keepdim=True)
            grad_logits = assignment * (grad_assignment - inner)
            if w is not None:
                grad_weights.append(inner.sum(1, keepdim=True))
                assignment, grad_logits = assignment * w, grad_logits * w
            grad_query.append(assignment @ grad_sums + grad_logits @ centroids)
            grad_centroids = grad_centroids + (grad_logits.mT @ q).sum(0)
        grad_weights = torch.cat(grad_weights, dim=-2) if grad_weights else None
        return torch.cat(grad_query, dim=-2), grad_centroids, grad_weights


def _tiles(query: Tensor, weights: Tensor | None):
    if torch.compiler.is_compiling():  # a compiler fuses better than it unrolls
        return [(query, weights)]
    queries = query.split(_TILE, dim=-2)
    tiles = [None] * len(queries) if weights is None else weights.split(_TILE, dim=-2)
    return zip(queries, tiles, strict=True)


def _check(query, key, value, centroids, mask, weights, chunk_size) -> None:
    if query.ndim != 4 or key.shape != query.shape or value.shape != query.shape:
        raise ValueError(
            "cluster_attention expects query, key and value of one shape (B, H, N, D), "
            f"got {tuple(query.shape)}, {tuple(key.shape)} and {tuple(value.shape)}"
        )
    batch, heads, points, dim = query.shape
    if points == 0:
        raise ValueError(
            f"cluster_attention expects at least one point, got query of shape {tuple(query.shape)}"
        )
    if centroids.ndim != 3 or (centroids.shape[0], centroids.shape[2]) != (heads, dim):
        raise ValueError(
            f"cluster_attention expects centroids of shape (H, K_c, D) = ({heads}, K_c, {dim}), "
            f"got {tuple(centroids.shape)}"
        )
    if not query.is_floating_point() or not query.dtype == key.dtype == value.dtype:
        raise ValueError(
            "cluster_attention expects query, key and value of one floating dtype, "
            f"got {query.dtype}, {key.dtype} and {value.dtype}"
        )
    if chunk_size is not None and chunk_size < 1:
        raise ValueError(f"cluster_attention expects chunk_size None or >= 1, got {chunk_size}")
    check_mask_and_weights(mask, weights, batch, points)


def check_mask_and_weights(
    mask: Tensor | None, weights: Tensor | None, batch: int, points: int
) -> None:
    r"""Raise a ``ValueError`` unless mask and weights fit ``batch`` clouds of ``points`` points."""
    for name, tensor in (("mask", mask), ("weights", weights)):
        if tensor is not None and tuple(tensor.shape) != (batch, points):
            raise ValueError(
                f"{name} must have shape (B, N) = ({batch}, {points}), got {tuple(tensor.shape)}"
            )
    if mask is not None and mask.dtype != torch.bool:
        raise ValueError(f"mask must be boolean, True on real points, got dtype {mask.dtype}")
    if weights is not None and not weights.is_floating_point():
        raise ValueError(f"weights must have a floating dtype, got {weights.dtype}")

    present = mask if mask is not None else weights
    if present is None or (present.is_cuda and torch.cuda.is_current_stream_capturing()):
        return  # values cannot be read while a CUDA graph is captured
    if mask is not None and not (real_points := ranks.total(mask.sum(-1))).all():
        empty = (real_points == 0).nonzero().flatten().tolist()
        raise ValueError(f"mask must leave at least one real point a sample; none in {empty}")
    if weights is not None:
        real = weights if mask is None else weights.masked_fill(~mask, 0)
        if ranks.total((~(real.isfinite() & (real >= 0))).sum()):
            raise ValueError(
                "weights must be finite and not negative on real points, "
                f"got values from {real.min().item():g} to {real.max().item():g}"
            )
        sums = ranks.total(real.detach().sum(-1))
        if not (sums > 0).all():
            zero = (sums <= 0).nonzero().flatten().tolist()
            raise ValueError(f"weights must not all be zero; they are in samples {zero}")
