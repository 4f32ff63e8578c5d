r"""The whole layer, from features to features, a tile of points at a time in both directions.

What costs time on a CPU is memory: large fresh tensors above all, then everything that leaves the
cache. So queries, keys, values, assignments and attention exist for one tile of points only and
are computed again in the backward pass; the layer keeps its input and one number a point and head.
Needs torch alone.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from .cluster_attention import log_weights, mean_query

_TILE = 65536
"""Assignments of a head in a tile, over the whole batch: its matrices stay in the cache."""


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
        x, qkv_weight, qkv_bias, centroids, out_weight, out_bias, weights, normalize_queries
    )[0]


class _TiledLayer(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, qkv_weight, qkv_bias, centroids, out_weight, out_bias, weights, normalize):
        tiles = _Tiles(x, qkv_weight, qkv_bias, centroids, weights)
        sums, assigned = 0, None
        for part in tiles.parts:  # eq. 13 and 14, C = exp / total
            query, w = tiles.query(part), tiles.weight(part)
            logits = query @ tiles.centroids_t  # (BH, n, K)
            peak = logits.detach().amax(-1, keepdim=True)
            exp = logits.sub_(peak).exp_()
            total = exp.sum(-1, keepdim=True)  # (BH, n, 1)
            share = total.reciprocal() if w is None else w / total
            sums = sums + exp.mT @ torch.cat([query * share, share], -1)  # (BH, K, D + 1)
            if assigned is None:  # not a list: small tensors that stay would scatter the memory
                assigned = total.new_empty(total.shape[0], x.shape[1], 1)
            assigned[:, part] = peak + total.log()  # the sum over clusters, (BH, N, 1)
        sums, masses = sums[..., :-1], sums[..., -1:].contiguous()
        clusters = mean_query(sums, masses) if normalize else sums
        clusters = clusters / math.sqrt(clusters.shape[-1])

        clusters_t = clusters.mT.contiguous()
        peak, total, attended = None, 0, 0
        for part in tiles.parts:  # eq. 15, the softmax over points growing tile by tile
            key, value = tiles.key_value(part)
            logits = tiles.attention_logits(key, clusters_t, part)  # (BH, n, K)
            higher = logits.detach().amax(-2, keepdim=True)  # (BH, 1, K)
            if peak is not None:
                higher = torch.maximum(peak, higher)
                scale = (peak - higher).exp()
                total, attended = total * scale, attended * scale.mT
            exp = logits.sub_(higher).exp_()
            total = total + exp.sum(-2, keepdim=True)
            attended = attended + exp.mT @ value
            peak = higher
        attended = attended / total.mT  # (BH, K, D)
        normalizer = peak + total.log()  # (BH, 1, K)

        out = None
        for part in tiles.parts:  # eq. 16
            y = tiles.assignment(tiles.query(part), assigned, part) @ attended
            y = F.linear(tiles.features(y), out_weight, out_bias)
            if out is None:
                out = y.new_empty(*x.shape[:-1], y.shape[-1])
            out[:, part] = y
        return out, assigned, clusters, masses, attended, normalizer

    @staticmethod
    def setup_context(ctx, inputs, output):
        *tensors, ctx.normalize = inputs
        ctx.save_for_backward(*tensors, *output[1:])
        ctx.mark_non_differentiable(*output[1:])

    @staticmethod
    def backward(ctx, grad_out, *_):
        *inputs, assigned, clusters, masses, attended, normalizer = ctx.saved_tensors
        x, qkv_weight, qkv_bias, centroids, out_weight, _, weights = inputs
        if torch.is_grad_enabled():  # to be differentiated again: what depends on x must show it
            _, *again = _TiledLayer.forward(*inputs, ctx.normalize)
            assigned, clusters, masses, attended, normalizer = again
        tiles = _Tiles(x, qkv_weight, qkv_bias, centroids, weights)

        grad_attended, grad_out_weight = 0, 0
        for part in tiles.parts:  # eq. 16
            grad = grad_out[:, part]
            assignment = tiles.assignment(tiles.query(part), assigned, part)
            grad_out_weight = grad_out_weight + _outer(grad, tiles.features(assignment @ attended))
            (grad_y,) = tiles.heads(grad @ out_weight)
            grad_attended = grad_attended + assignment.mT @ grad_y

        grad_x = grad_out.new_empty(x.shape)
        grad_clusters, grad_kv_weight, grad_kv_bias, grad_weights = 0, 0, 0, []
        shift = (grad_attended * attended).sum(-1, keepdim=True).mT  # (BH, 1, K)
        clusters_t, grad_attended_t = (t.mT.contiguous() for t in (clusters, grad_attended))
        for part in tiles.parts:  # eq. 15
            key, value = tiles.key_value(part)
            attention = tiles.attention_logits(key, clusters_t, part).sub_(normalizer).exp_()
            grad_logits = (value @ grad_attended_t).sub_(shift).mul_(attention)  # (BH, n, K)
            grad_clusters = grad_clusters + grad_logits.mT @ key
            grad_kv = tiles.features(grad_logits @ clusters, attention @ grad_attended)
            grad_x[:, part] = grad_kv @ tiles.kv_weight
            grad_kv_weight = grad_kv_weight + _outer(grad_kv, x[:, part])
            grad_kv_bias = grad_kv_bias + grad_kv.sum((0, 1))
            if weights is not None:  # through log w
                w = weights[:, part]
                grad_log = tiles.over_heads(grad_logits.sum(-1))  # (B, n)
                grad_weights.append(torch.where(w > 0, grad_log / w.clamp_min(1e-30), 0))

        dim = clusters.shape[-1]
        grad_sums, grad_masses = grad_clusters / math.sqrt(dim), torch.zeros_like(masses)
        if ctx.normalize:
            grad_sums = grad_sums / masses.clamp_min(1e-30)
            grad_masses = -(grad_clusters * clusters).sum(-1, keepdim=True) / masses
            grad_masses = torch.where(masses > 1e-30, grad_masses, 0)  # (BH, K, 1)
        all_three = torch.cat([attended, grad_sums, grad_masses], -1)  # (BH, K, 2D + 1)
        all_three_t = all_three.mT.contiguous()
        grad_centroids, grad_q_weight, grad_q_bias = 0, 0, 0
        for i, part in enumerate(tiles.parts):  # eq. 13, under eq. 14 and eq. 16
            query, w = tiles.query(part), tiles.weight(part)
            (grad_y,) = tiles.heads(grad_out[:, part] @ out_weight)
            assignment = tiles.assignment(query, assigned, part)  # (BH, n, K)
            y, grad_query, grad_mass = (assignment @ all_three).split([dim, dim, 1], -1)
            # The derivative of the sums by w; times w, it is that by the assignment, summed.
            grad_w = (query * grad_query).sum(-1, keepdim=True) + grad_mass  # (BH, n, 1)
            if w is None:
                weighted, mean = [query, torch.ones_like(grad_w)], grad_w
            else:
                weighted, mean, grad_query = [w * query, w], w * grad_w, w * grad_query
                grad_weights[i] = grad_weights[i] + tiles.over_heads(grad_w.squeeze(-1))
            mean = mean + (y * grad_y).sum(-1, keepdim=True)
            grad_logits = torch.cat([grad_y, *weighted], -1) @ all_three_t
            grad_logits.sub_(mean).mul_(assignment)
            grad_centroids = grad_centroids + grad_logits.mT @ query
            grad_query = tiles.features(grad_query + grad_logits @ tiles.centroids)
            grad_x[:, part] += grad_query @ tiles.q_weight
            grad_q_weight = grad_q_weight + _outer(grad_query, x[:, part])
            grad_q_bias = grad_q_bias + grad_query.sum((0, 1))

        return (
            grad_x,
            torch.cat([grad_q_weight, grad_kv_weight]),
            torch.cat([grad_q_bias, grad_kv_bias]),
            grad_centroids.unflatten(0, (-1, len(centroids))).sum(0),
            grad_out_weight,
            grad_out.sum((0, 1)),
            None if weights is None else torch.cat(grad_weights, -1),
            None,
        )


class _Tiles:
    r"""What a tile of points is made into; B and H are one axis of length BH."""

    def __init__(self, x, qkv_weight, qkv_bias, centroids, weights):
        self.x, self.weights = x, weights
        self.n_heads, n_clusters, dim = centroids.shape
        batch, points, _ = x.shape
        size = max(1, _TILE // (batch * n_clusters))
        self.parts = [slice(start, min(start + size, points)) for start in range(0, points, size)]
        inner = self.n_heads * dim
        self.q_weight, self.kv_weight = qkv_weight.split([inner, 2 * inner])
        self.q_bias, self.kv_bias = qkv_bias.split([inner, 2 * inner])
        self.centroids = centroids.expand(batch, -1, -1, -1).flatten(0, 1)  # (BH, K, D)
        self.centroids_t = self.centroids.mT.contiguous()  # products are faster with it
        self.log_weights = None
        if weights is not None:
            self.log_weights = log_weights(weights, x.dtype).flatten(1).unsqueeze(-1)  # (B, N, 1)

    def query(self, part):
        return self.heads(F.linear(self.x[:, part], self.q_weight, self.q_bias))[0]

    def key_value(self, part):
        return self.heads(F.linear(self.x[:, part], self.kv_weight, self.kv_bias))

    def weight(self, part):
        r"""(BH, n, 1)."""
        if self.weights is None:
            return None
        return self.weights[:, part, None].repeat_interleave(self.n_heads, 0)

    def assignment(self, query, assigned, part):
        r"""The softmax over clusters from its known normalizer, (BH, n, K); eq. 13."""
        return (query @ self.centroids_t).sub_(assigned[:, part]).exp_()

    def attention_logits(self, key, clusters_t, part):
        r"""(BH, n, K); eq. 15."""
        logits = key @ clusters_t
        if self.log_weights is not None:
            logits += self.log_weights[:, part].repeat_interleave(self.n_heads, 0)
        return logits

    def heads(self, features):
        r"""(B, n, m H D) to m times (BH, n, D)."""
        heads = features.unflatten(-1, (-1, self.n_heads, self.centroids.shape[-1]))
        return heads.permute(2, 0, 3, 1, 4).flatten(1, 2).contiguous().unbind(0)

    def features(self, *heads):
        r"""The inverse of :meth:`heads`."""
        parts = [h.unflatten(0, (-1, self.n_heads)).transpose(1, 2) for h in heads]
        return torch.stack(parts, 2).flatten(2)

    def over_heads(self, values):
        r"""Sum (BH, n) over the heads."""
        return values.unflatten(0, (-1, self.n_heads)).sum(1)


def _outer(a, b):
    r"""Sum over all points of ``a bᵀ``."""
    return a.flatten(0, 1).mT @ b.flatten(0, 1)
