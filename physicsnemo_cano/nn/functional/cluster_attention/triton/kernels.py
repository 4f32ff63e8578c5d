# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
r"""Triton kernels of cluster attention (arXiv 2609.39914, eq. 13 to 16) and of its gradients.

Names as in the paper: N points, K clusters and D channels a head, C the assignment of points to
clusters, Z the values of the clusters. Capitals that are no sizes are compile-time constants.

A program handles one head of one sample and a *split*, a run of consecutive points. Sums over
points are written once a split, and added up in a fixed order afterwards: no atomics, so a result
is the same in every run. Softmax is never stored: from logits and their logsumexp any tile of it
is recomputed, and logsumexps are found online (Milakov and Gimelshein 2018; Dao et al. 2022).

``CLUSTERS`` clusters are handled at a time. Where all fit (``FUSED``), one kernel gives both what
belongs to points and what belongs to clusters; otherwise a second one loops over the clusters.
"""

from __future__ import annotations

import triton
import triton.language as tl

from . import sizes

INTERPRETED = tl.constexpr(sizes.INTERPRETED)


@triton.jit
def _place(heads, blocks):
    r"""Split, sample, head and block of clusters of this program.

    Blocks and heads vary fastest: programs on the same points run together and share cache lines.
    """
    program = tl.program_id(0)
    head = (program // blocks) % heads
    split = program // blocks // heads
    return split, tl.program_id(1).to(tl.int64), head.to(tl.int64), program % blocks


@triton.jit
def _tile(matrix, batch, head, rows, WIDTH: tl.constexpr):
    r"""Pointers to rows of a matrix of a head, padded to ``WIDTH`` columns."""
    start = matrix.pointer + batch * matrix.batch + head * matrix.head
    return start + rows.to(tl.int64)[:, None] * matrix.row + tl.arange(0, WIDTH)[None, :]


@triton.jit
def _inside(rows, count, D: tl.constexpr, WIDTH: tl.constexpr):
    return (rows < count)[:, None] & (tl.arange(0, WIDTH) < D)[None, :]


@triton.jit
def _load(
    matrix, batch, head, rows, count, D: tl.constexpr, WIDTH: tl.constexpr, TYPE: tl.constexpr
):
    r"""Rows of a matrix of a head, zero where there are none."""
    pointers = _tile(matrix, batch, head, rows, WIDTH)
    return tl.load(pointers, mask=_inside(rows, count, D, WIDTH), other=0.0).to(TYPE)


@triton.jit
def _store(matrix, batch, head, rows, count, tile, D: tl.constexpr, WIDTH: tl.constexpr):
    pointers = _tile(matrix, batch, head, rows, WIDTH)
    tl.store(pointers, tile, mask=_inside(rows, count, D, WIDTH))


@triton.jit
def _load_vector(vector, batch, head, rows, count, other: tl.constexpr):
    start = vector.pointer + batch * vector.batch + head * vector.head
    return tl.load(start + rows.to(tl.int64) * vector.row, mask=rows < count, other=other).to(
        tl.float32
    )


@triton.jit
def _store_vector(vector, batch, head, rows, count, tile):
    start = vector.pointer + batch * vector.batch + head * vector.head
    tl.store(start + rows.to(tl.int64) * vector.row, tile, mask=rows < count)


@triton.jit
def _dot(a, b, total, PRECISION: tl.constexpr):
    if INTERPRETED:  # the interpreter would multiply the bits of bfloat16 as integers
        a, b = a.to(tl.float32), b.to(tl.float32)
    return tl.dot(a, b, total, input_precision=PRECISION)


@triton.jit
def _assignment(q, w_c, logsumexp, k, K, PRECISION: tl.constexpr):
    r"""Tile of C (eq. 13), points × clusters; zero where the logsumexp is +inf."""
    logits = _dot(q, tl.trans(w_c), None, PRECISION)
    return tl.where((k < K)[None, :], tl.exp(logits - logsumexp[:, None]), 0.0)


@triton.jit
def logsumexp_kernel(
    query, centroids, logsumexp,
    N, K, heads, points, blocks,
    D: tl.constexpr, WIDTH: tl.constexpr, POINTS: tl.constexpr, CLUSTERS: tl.constexpr,
    TYPE: tl.constexpr, PRECISION: tl.constexpr, FUSED: tl.constexpr,
):  # fmt: skip
    r"""``logsumexp`` (B, H, N) of the logits :math:`Q W_c`, the normaliser of eq. 13."""
    split, batch, head, _ = _place(heads, 1)
    n = split * points + tl.arange(0, POINTS)
    q = _load(query, batch, head, n, N, D, WIDTH, TYPE)
    peak = tl.full([POINTS], float("-inf"), tl.float32)
    total = tl.zeros([POINTS], tl.float32)  # sum of exp(logit - peak)
    for first in range(0, K, CLUSTERS):
        k = first + tl.arange(0, CLUSTERS)
        w_c = _load(centroids, batch, head, k, K, D, WIDTH, TYPE)
        logits = _dot(q, tl.trans(w_c), None, PRECISION)
        logits = tl.where((k < K)[None, :], logits, float("-inf"))
        higher = tl.maximum(peak, tl.max(logits, 1))
        total = total * tl.exp(peak - higher) + tl.sum(tl.exp(logits - higher[:, None]), 1)
        peak = higher
    _store_vector(logsumexp, batch, head, n, N, peak + tl.log(total))


@triton.jit
def aggregate_kernel(
    query, centroids, weights, logsumexp, sums, masses,
    N, K, heads, points, blocks,
    D: tl.constexpr, WIDTH: tl.constexpr, POINTS: tl.constexpr, CLUSTERS: tl.constexpr,
    TYPE: tl.constexpr, PRECISION: tl.constexpr, FUSED: tl.constexpr,
):  # fmt: skip
    r"""``sums`` and ``masses`` of a split (eq. 14); writes the logsumexp if fused, or reads it."""
    split, batch, head, block = _place(heads, blocks)
    partial = split * tl.num_programs(1) + batch
    k = block * CLUSTERS + tl.arange(0, CLUSTERS)
    w_c = _load(centroids, batch, head, k, K, D, WIDTH, TYPE)
    total = tl.zeros([CLUSTERS, WIDTH], tl.float32)
    mass = tl.zeros([CLUSTERS], tl.float32)
    for first in range(split * points, min(N, (split + 1) * points), POINTS):
        n = first + tl.arange(0, POINTS)
        q = _load(query, batch, head, n, N, D, WIDTH, TYPE)
        if FUSED:
            logits = _dot(q, tl.trans(w_c), None, PRECISION)
            logits = tl.where((k < K)[None, :], logits, float("-inf"))
            peak = tl.max(logits, 1)
            exponentials = tl.exp(logits - peak[:, None])
            normalizer = tl.sum(exponentials, 1)
            _store_vector(logsumexp, batch, head, n, N, peak + tl.log(normalizer))
            c = tl.where((n < N)[:, None], exponentials / normalizer[:, None], 0.0)
        else:
            c = _assignment(
                q, w_c, _load_vector(logsumexp, batch, head, n, N, float("inf")), k, K, PRECISION
            )
        if weights is not None:
            c *= _load_vector(weights, batch, head, n, N, 0.0)[:, None]
        total = _dot(tl.trans(c.to(TYPE)), q, total, PRECISION)
        mass += tl.sum(c, 0)
    _store(sums, partial, head, k, K, total, D, WIDTH)
    _store_vector(masses, partial, head, k, K, mass)


@triton.jit
def attend_kernel(
    cluster_queries, key, value, weights, values, logsumexp,
    N, K, heads, points, blocks, scale,
    D: tl.constexpr, WIDTH: tl.constexpr, POINTS: tl.constexpr, CLUSTERS: tl.constexpr,
    TYPE: tl.constexpr, PRECISION: tl.constexpr, FUSED: tl.constexpr,
):  # fmt: skip
    r"""Attention of the clusters to the points of a split (eq. 15), an online softmax.

    A weight is a factor of the exponential, not its logarithm in the exponent, so that a point of
    weight zero needs no infinite logit.
    """
    split, batch, head, block = _place(heads, blocks)
    partial = split * tl.num_programs(1) + batch
    k = block * CLUSTERS + tl.arange(0, CLUSTERS)
    q_c = _load(cluster_queries, batch, head, k, K, D, WIDTH, TYPE)
    total = tl.zeros([CLUSTERS, WIDTH], tl.float32)  # sum of w exp(logit - peak) v
    normalizer = tl.zeros([CLUSTERS], tl.float32)  # sum of w exp(logit - peak)
    peak = tl.full([CLUSTERS], float("-inf"), tl.float32)
    for first in range(split * points, min(N, (split + 1) * points), POINTS):
        n = first + tl.arange(0, POINTS)
        present = n < N
        if weights is not None:
            w = _load_vector(weights, batch, head, n, N, 0.0)
            present = w > 0
        keys = _load(key, batch, head, n, N, D, WIDTH, TYPE)
        logits = scale * _dot(q_c, tl.trans(keys), None, PRECISION)
        logits = tl.where(present[None, :], logits, float("-inf"))
        higher = tl.maximum(peak, tl.max(logits, 1))
        shift = tl.where(higher == float("-inf"), 0.0, higher)  # no point present so far
        p = tl.exp(logits - shift[:, None])
        if weights is not None:
            p *= w[None, :]
        rescale = tl.exp(peak - shift)
        normalizer = normalizer * rescale + tl.sum(p, 1)
        values_n = _load(value, batch, head, n, N, D, WIDTH, TYPE)
        total = _dot(p.to(TYPE), values_n, total * rescale[:, None], PRECISION)
        peak = higher
    total = total / tl.where(normalizer == 0.0, 1.0, normalizer)[:, None]
    _store(values, partial, head, k, K, total, D, WIDTH)
    _store_vector(logsumexp, partial, head, k, K, peak + tl.log(normalizer))


@triton.jit
def merge_kernel(
    partial_values, partial_logsumexp, values, logsumexp,
    splits,
    D: tl.constexpr, WIDTH: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    r"""Join the attentions to all splits, (splits, rows, D) and (splits, rows), row by row."""
    row = tl.program_id(0).to(tl.int64)
    rows = tl.num_programs(0)
    d = tl.arange(0, WIDTH)
    total = tl.zeros([WIDTH], tl.float32)
    normalizer = 0.0
    peak = float("-inf")
    for first in range(0, splits, SPLITS):
        place = (first + tl.arange(0, SPLITS)).to(tl.int64)
        inside = place < splits
        place = place * rows + row
        lse = tl.load(partial_logsumexp + place, mask=inside, other=float("-inf"))
        tile = tl.load(
            partial_values + place[:, None] * D + d[None, :],
            mask=inside[:, None] & (d < D)[None, :],
            other=0.0,
        )
        higher = tl.maximum(peak, tl.max(lse, 0))
        shift = tl.where(higher == float("-inf"), 0.0, higher)
        exponentials = tl.exp(lse - shift)
        rescale = tl.exp(peak - shift)
        total = total * rescale + tl.sum(exponentials[:, None] * tile, 0)
        normalizer = normalizer * rescale + tl.sum(exponentials, 0)
        peak = higher
    total = total / tl.where(normalizer == 0.0, 1.0, normalizer)
    tl.store(values + row * D + d, total, mask=d < D)
    tl.store(logsumexp + row, peak + tl.log(normalizer))


@triton.jit
def dispatch_kernel(
    query, centroids, cluster_values, logsumexp, out,
    N, K, heads, points, blocks,
    D: tl.constexpr, WIDTH: tl.constexpr, POINTS: tl.constexpr, CLUSTERS: tl.constexpr,
    TYPE: tl.constexpr, PRECISION: tl.constexpr, FUSED: tl.constexpr,
):  # fmt: skip
    r"""``out`` (B, H, N, D), :math:`Y = C Z` (eq. 16)."""
    split, batch, head, _ = _place(heads, 1)
    if FUSED:
        k = tl.arange(0, CLUSTERS)
        w_c = _load(centroids, batch, head, k, K, D, WIDTH, TYPE)
        z = _load(cluster_values, batch, head, k, K, D, WIDTH, TYPE)
    for first in range(split * points, min(N, (split + 1) * points), POINTS):
        n = first + tl.arange(0, POINTS)
        q = _load(query, batch, head, n, N, D, WIDTH, TYPE)
        lse = _load_vector(logsumexp, batch, head, n, N, float("inf"))
        if FUSED:
            c = _assignment(q, w_c, lse, k, K, PRECISION)
            y = _dot(c.to(TYPE), z, None, PRECISION)
        else:
            y = tl.zeros([POINTS, WIDTH], tl.float32)
            for other in range(0, K, CLUSTERS):
                k = other + tl.arange(0, CLUSTERS)
                w_c = _load(centroids, batch, head, k, K, D, WIDTH, TYPE)
                z = _load(cluster_values, batch, head, k, K, D, WIDTH, TYPE)
                c = _assignment(q, w_c, lse, k, K, PRECISION)
                y = _dot(c.to(TYPE), z, y, PRECISION)
        _store(out, batch, head, n, N, y, D, WIDTH)


# Gradients of aggregate and dispatch. Both multiply by C: Y = C Z, and the sums are Cᵀ (w ∘ Q),
# the masses Cᵀ w. With respect to C that is, row by row,
#     dispatch   dC = dY Zᵀ               (upstream = dY, factor = Z)
#     aggregate  dC = w (Q Gᵀ + g)        (upstream = Q, factor = G, the gradient of the sums, and
#                                          g, that of the masses)
# and then, for both, with inner = sum over k of C dC,
#     dlogits = C (dC - inner),  dQ = dlogits W_c,  dW_c = dlogitsᵀ Q
# besides dZ = Cᵀ dY, or the direct part w C G of dQ. Before its factor w, inner is the gradient of
# aggregate with respect to the weights (summed over heads): nothing is divided by a weight.


@triton.jit
def assignment_backward_kernel(
    query, centroids, upstream, factor, grad_masses, weights, logsumexp, inner, grad_query,
    grad_centroids, grad_factor,
    N, K, heads, points, blocks,
    D: tl.constexpr, WIDTH: tl.constexpr, POINTS: tl.constexpr, CLUSTERS: tl.constexpr,
    TYPE: tl.constexpr, PRECISION: tl.constexpr, FUSED: tl.constexpr,
):  # fmt: skip
    r"""Sums over the points of a split; if fused the points' gradients too.

    ``upstream`` is ``None`` for aggregate. ``inner`` (B, H, N) is written if fused (or ``None``),
    and read if not.
    """
    split, batch, head, block = _place(heads, blocks)
    partial = split * tl.num_programs(1) + batch
    k = block * CLUSTERS + tl.arange(0, CLUSTERS)
    w_c = _load(centroids, batch, head, k, K, D, WIDTH, TYPE)
    z = _load(factor, batch, head, k, K, D, WIDTH, TYPE)
    grad_w_c = tl.zeros([CLUSTERS, WIDTH], tl.float32)
    if upstream is None:
        grad_m = _load_vector(grad_masses, batch, head, k, K, 0.0)
    else:
        grad_z = tl.zeros([CLUSTERS, WIDTH], tl.float32)
    for first in range(split * points, min(N, (split + 1) * points), POINTS):
        n = first + tl.arange(0, POINTS)
        q = _load(query, batch, head, n, N, D, WIDTH, TYPE)
        lse = _load_vector(logsumexp, batch, head, n, N, float("inf"))
        c = _assignment(q, w_c, lse, k, K, PRECISION)
        if upstream is None:
            grad_c = _dot(q, tl.trans(z), None, PRECISION) + grad_m[None, :]
        else:
            u = _load(upstream, batch, head, n, N, D, WIDTH, TYPE)
            grad_c = _dot(u, tl.trans(z), None, PRECISION)
            grad_z = _dot(tl.trans(c.to(TYPE)), u, grad_z, PRECISION)
        if FUSED:
            along = tl.sum(c * grad_c, 1)
            if inner is not None:
                _store_vector(inner, batch, head, n, N, along)
        else:
            along = _load_vector(inner, batch, head, n, N, 0.0)
        grad_logits = c * (grad_c - along[:, None])
        if FUSED:
            grad_q = _dot(grad_logits.to(TYPE), w_c, None, PRECISION)
            if upstream is None:
                grad_q = _dot(c.to(TYPE), z, grad_q, PRECISION)
            if weights is not None:
                grad_q *= _load_vector(weights, batch, head, n, N, 0.0)[:, None]
            _store(grad_query, batch, head, n, N, grad_q, D, WIDTH)
        if weights is not None:
            grad_logits *= _load_vector(weights, batch, head, n, N, 0.0)[:, None]
        grad_w_c = _dot(tl.trans(grad_logits.to(TYPE)), q, grad_w_c, PRECISION)
    _store(grad_centroids, partial, head, k, K, grad_w_c, D, WIDTH)
    if upstream is not None:
        _store(grad_factor, partial, head, k, K, grad_z, D, WIDTH)


@triton.jit
def assignment_backward_points_kernel(
    query, centroids, upstream, factor, grad_masses, weights, logsumexp, inner, grad_query,
    N, K, heads, points, blocks,
    D: tl.constexpr, WIDTH: tl.constexpr, POINTS: tl.constexpr, CLUSTERS: tl.constexpr,
    TYPE: tl.constexpr, PRECISION: tl.constexpr, FUSED: tl.constexpr,
):  # fmt: skip
    r"""``inner`` and the points' gradients where the clusters do not fit at once."""
    split, batch, head, _ = _place(heads, 1)
    n = split * points + tl.arange(0, POINTS)
    q = _load(query, batch, head, n, N, D, WIDTH, TYPE)
    u = q if upstream is None else _load(upstream, batch, head, n, N, D, WIDTH, TYPE)
    lse = _load_vector(logsumexp, batch, head, n, N, float("inf"))
    along = tl.zeros([POINTS], tl.float32)
    for first in range(0, K, CLUSTERS):
        k = first + tl.arange(0, CLUSTERS)
        w_c = _load(centroids, batch, head, k, K, D, WIDTH, TYPE)
        z = _load(factor, batch, head, k, K, D, WIDTH, TYPE)
        c = _assignment(q, w_c, lse, k, K, PRECISION)
        grad_c = _dot(u, tl.trans(z), None, PRECISION)
        if upstream is None:
            grad_c += _load_vector(grad_masses, batch, head, k, K, 0.0)[None, :]
        along += tl.sum(c * grad_c, 1)
    _store_vector(inner, batch, head, n, N, along)
    grad_q = tl.zeros([POINTS, WIDTH], tl.float32)
    for first in range(0, K, CLUSTERS):
        k = first + tl.arange(0, CLUSTERS)
        w_c = _load(centroids, batch, head, k, K, D, WIDTH, TYPE)
        z = _load(factor, batch, head, k, K, D, WIDTH, TYPE)
        c = _assignment(q, w_c, lse, k, K, PRECISION)
        grad_c = _dot(u, tl.trans(z), None, PRECISION)
        if upstream is None:
            grad_c += _load_vector(grad_masses, batch, head, k, K, 0.0)[None, :]
            grad_q = _dot(c.to(TYPE), z, grad_q, PRECISION)
        grad_logits = c * (grad_c - along[:, None])
        grad_q = _dot(grad_logits.to(TYPE), w_c, grad_q, PRECISION)
    if weights is not None:
        grad_q *= _load_vector(weights, batch, head, n, N, 0.0)[:, None]
    _store(grad_query, batch, head, n, N, grad_q, D, WIDTH)


# Gradients of attend. With e = exp(logit - logsumexp), the attention is p = w e, and with respect
# to the logits
#     dlogits = p (dZ Vᵀ - offset),  offset = sum over d of dZ Z, less the logsumexp's own gradient
# and with respect to a weight the same with e in place of p: right at a weight of zero too.


@triton.jit
def _cluster_rows(
    cluster_queries, logsumexp, grad_values, batch, head, k, K,
    D: tl.constexpr, WIDTH: tl.constexpr, TYPE: tl.constexpr,
):  # fmt: skip
    r"""Queries, logsumexp and dZ of some clusters."""
    q_c = _load(cluster_queries, batch, head, k, K, D, WIDTH, TYPE)
    grad_z = _load(grad_values, batch, head, k, K, D, WIDTH, TYPE)
    lse = _load_vector(logsumexp, batch, head, k, K, float("inf"))
    lse = tl.where(lse == float("-inf"), float("inf"), lse)  # no point present: no gradient
    return q_c, lse, grad_z


@triton.jit
def _attention_gradient(
    q_c, lse, grad_z, offset, keys, values_n, w, n, N, scale, PRECISION: tl.constexpr
):
    r"""Tiles p and dlogits, clusters × points, and the terms of the weights' gradient."""
    logits = scale * _dot(q_c, tl.trans(keys), None, PRECISION)
    e = tl.where((n < N)[None, :], tl.exp(logits - lse[:, None]), 0.0)
    grad_p = _dot(grad_z, tl.trans(values_n), None, PRECISION) - offset[:, None]
    # At an absent point e may have overflowed.
    p = e if w is None else tl.where((w > 0)[None, :], w[None, :] * e, 0.0)
    return p, p * grad_p, e * grad_p


@triton.jit
def attend_backward_kernel(
    cluster_queries, key, value, weights, logsumexp, grad_values, offsets,
    grad_key, grad_value, grad_weights, values, grad_logsumexp, grad_cluster_queries,
    N, K, heads, points, blocks, scale,
    D: tl.constexpr, WIDTH: tl.constexpr, POINTS: tl.constexpr, CLUSTERS: tl.constexpr,
    TYPE: tl.constexpr, PRECISION: tl.constexpr, FUSED: tl.constexpr,
):  # fmt: skip
    r"""The cluster queries' gradient from the points of a split; if fused the points' too.

    If not, ``offsets`` are left for the next kernel.
    """
    split, batch, head, block = _place(heads, blocks)
    partial = split * tl.num_programs(1) + batch
    k = block * CLUSTERS + tl.arange(0, CLUSTERS)
    q_c, lse, grad_z = _cluster_rows(
        cluster_queries, logsumexp, grad_values, batch, head, k, K, D, WIDTH, TYPE
    )
    offset = tl.sum(
        _load(grad_values, batch, head, k, K, D, WIDTH, tl.float32)
        * _load(values, batch, head, k, K, D, WIDTH, tl.float32),
        1,
    ) - _load_vector(grad_logsumexp, batch, head, k, K, 0.0)
    if not FUSED and split == 0:
        _store_vector(offsets, batch, head, k, K, offset)
    grad_q_c = tl.zeros([CLUSTERS, WIDTH], tl.float32)
    for first in range(split * points, min(N, (split + 1) * points), POINTS):
        n = first + tl.arange(0, POINTS)
        keys = _load(key, batch, head, n, N, D, WIDTH, TYPE)
        values_n = _load(value, batch, head, n, N, D, WIDTH, TYPE)
        w = None if weights is None else _load_vector(weights, batch, head, n, N, 0.0)
        p, grad_logits, terms = _attention_gradient(
            q_c, lse, grad_z, offset, keys, values_n, w, n, N, scale, PRECISION
        )
        grad_logits = (scale * grad_logits).to(TYPE)
        if FUSED:
            grad_v = _dot(tl.trans(p.to(TYPE)), grad_z, None, PRECISION)
            _store(grad_value, batch, head, n, N, grad_v, D, WIDTH)
            grad_k = _dot(tl.trans(grad_logits), q_c, None, PRECISION)
            _store(grad_key, batch, head, n, N, grad_k, D, WIDTH)
            if grad_weights is not None:
                _store_vector(grad_weights, batch, head, n, N, tl.sum(terms, 0))
        grad_q_c = _dot(grad_logits, keys, grad_q_c, PRECISION)
    _store(grad_cluster_queries, partial, head, k, K, grad_q_c, D, WIDTH)


@triton.jit
def attend_backward_points_kernel(
    cluster_queries, key, value, weights, logsumexp, grad_values, offsets,
    grad_key, grad_value, grad_weights,
    N, K, heads, points, blocks, scale,
    D: tl.constexpr, WIDTH: tl.constexpr, POINTS: tl.constexpr, CLUSTERS: tl.constexpr,
    TYPE: tl.constexpr, PRECISION: tl.constexpr, FUSED: tl.constexpr,
):  # fmt: skip
    r"""The points' gradients where the clusters do not fit at once."""
    split, batch, head, _ = _place(heads, 1)
    n = split * points + tl.arange(0, POINTS)
    keys = _load(key, batch, head, n, N, D, WIDTH, TYPE)
    values_n = _load(value, batch, head, n, N, D, WIDTH, TYPE)
    w = None if weights is None else _load_vector(weights, batch, head, n, N, 0.0)
    grad_k = tl.zeros([POINTS, WIDTH], tl.float32)
    grad_v = tl.zeros([POINTS, WIDTH], tl.float32)
    grad_w = tl.zeros([POINTS], tl.float32)
    for first in range(0, K, CLUSTERS):
        k = first + tl.arange(0, CLUSTERS)
        q_c, lse, grad_z = _cluster_rows(
            cluster_queries, logsumexp, grad_values, batch, head, k, K, D, WIDTH, TYPE
        )
        offset = _load_vector(offsets, batch, head, k, K, 0.0)
        p, grad_logits, terms = _attention_gradient(
            q_c, lse, grad_z, offset, keys, values_n, w, n, N, scale, PRECISION
        )
        grad_v = _dot(tl.trans(p.to(TYPE)), grad_z, grad_v, PRECISION)
        grad_k = _dot(tl.trans((scale * grad_logits).to(TYPE)), q_c, grad_k, PRECISION)
        grad_w += tl.sum(terms, 0)
    _store(grad_key, batch, head, n, N, grad_k, D, WIDTH)
    _store(grad_value, batch, head, n, N, grad_v, D, WIDTH)
    if grad_weights is not None:
        _store_vector(grad_weights, batch, head, n, N, grad_w)
