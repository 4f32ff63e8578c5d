r"""The whole layer, from features to features, a tile of points at a time in both directions.

What costs time on a CPU is memory: large fresh tensors above all, then everything that leaves the
cache. So keys, values, assignments and attention exist for one tile of points only and are
computed again in the backward pass; the layer keeps its input and one number a point and head.
Within a tile the points are the last axis, (HD, n) and (H, K, n): heads then lie one after the
other without a copy, and sums over clusters run along whole rows. Needs torch alone.
"""

from __future__ import annotations

import itertools
import math

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from .cluster_attention import attention, log_weights, mean_query


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
        point_norms = x.new_empty(batch, heads, 1, points)
        summaries = []
        samples = _samples(x, qkv_weight, qkv_bias, centroids, weights)
        for b, tiles in enumerate(samples):
            sums, masses = tiles.aggregate(queries[b], point_norms[b])
            clusters = mean_query(sums, masses) if normalize else sums
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
        x, qkv_weight, qkv_bias, centroids, out_weight, _, weights, *saved = saved
        grad_x = torch.empty_like(x, memory_format=torch.contiguous_format)
        gradients = [torch.zeros_like(t) for t in (qkv_weight, qkv_bias, centroids, out_weight)]
        grad_weights = torch.empty_like(weights) if by_weights else None
        for b, tiles in enumerate(_samples(x, qkv_weight, qkv_bias, centroids, weights)):
            tiles.backward(
                normalize,
                grad_out[b],
                out_weight,
                *(s[b] for s in saved),
                grad_x[b],
                grad_weights[b] if by_weights else None,
                *gradients,
            )
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

        with sdpa_kernel(SDPBackend.MATH):
            found = torch.func.vjp(gradient, *tensors)[1](grads)
        nothing = [None] * (len(ctx.needs_input_grad) - 2 - len(found))
        return None, None, *found, *nothing

    @staticmethod
    def vmap(info, in_dims, *args):
        return _one_by_one(_TiledGradient, info, in_dims, args)


def _plain_layer(normalize, x, qkv_weight, qkv_bias, centroids, out_weight, out_bias, weights=None):
    heads = F.linear(x, qkv_weight, qkv_bias).unflatten(-1, (3, len(centroids), -1))
    y = attention(*heads.permute(2, 0, 3, 1, 4), centroids, weights, normalize)
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


def _tile_size(heads: int, clusters: int) -> int:
    r"""Points of a tile, so that its assignments stay in the cache and its products are large."""
    return min(max(2**19 // (heads * clusters), 256), 2048)


_LARGEST = 1e12
"""Sums of exponentials up to this and down to its inverse lose nothing in float32, and are far
above the exponentials that :meth:`_Tiles.exp` raises."""


def _columns(matrices: Tensor) -> Tensor:
    r"""The same matrices stored by columns: many products are faster so."""
    return matrices.mT.contiguous().mT


def _in_range(total: Tensor) -> bool:
    low, high = total.aminmax()
    return low.item() > 1 / _LARGEST and high.item() < _LARGEST  # false also of NaN


def _samples(x, qkv_weight, qkv_bias, centroids, weights):
    r"""Each sample of a batch, in tiles."""
    weights = itertools.repeat(None) if weights is None else weights
    for sample, w in zip(x, weights, strict=False):
        yield _Tiles(sample, qkv_weight, qkv_bias, centroids, w)


class _Tiles:
    r"""The passes over the points of one sample, each from tile to tile.

    Of both softmaxes the logarithm of the normalizer is kept: ``point_norms`` (H, 1, N) of the
    assignments, of eq. 13, and ``cluster_norms`` (H, K, 1) of the attention, of eq. 15.
    """

    def __init__(self, x, qkv_weight, qkv_bias, centroids, weights):
        self.centroids = _columns(centroids)
        self.shape = heads, clusters, dim = centroids.shape
        self.size = _tile_size(heads, clusters)
        inner = heads * dim
        self.q_weight, self.kv_weight = qkv_weight.split([inner, 2 * inner])
        # A bias of the keys moves all logits of a cluster alike, and the softmax forgets it.
        query_bias, _, value_bias = qkv_bias.split(inner)
        self.query_bias = query_bias[:, None]
        # A bias of the values moves their mean.
        self.value_bias = value_bias.view(heads, 1, dim)
        self.x = self.tiles(x.T)  # each (C, n)
        self.weights = self.log_weights = itertools.repeat(None)
        if weights is not None:
            self.weights = self.tiles(weights)  # each (n,)
            self.log_weights = self.tiles(log_weights(weights[None], x.dtype)[0, 0, 0])
        self.large_logits = False
        self.raised, self.turns = False, itertools.count()
        self.lowest = 0.7 * math.log(torch.finfo(x.dtype).tiny)
        self.scratch = {}

    def tiles(self, tensor, dim=-1):
        r"""Views of a tensor, a tile of points each."""
        return tensor.split(self.size, dim)

    def queries(self, kept):
        r"""Views of the memory where queries are kept, (HD, n) each."""
        inner = len(self.q_weight)
        return [tile.view(inner, -1) for tile in kept.split(self.size * inner)]

    def place(self, name, *shape):
        r"""Memory for a part of a tile, the same for all tiles: fresh memory is slow to touch."""
        key = name, shape
        if key not in self.scratch:
            self.scratch[key] = self.centroids.new_empty(shape)
        return self.scratch[key]

    def product(self, name, a, b):
        r"""``a @ b`` in memory of that name."""
        multiply = torch.mm if a.ndim == 2 else torch.bmm
        return multiply(a, b, out=self.place(name, *a.shape[:-1], b.shape[-1]))

    def heads(self, features):
        r"""(HD, n) to (H, D, n), without the copy of other layouts."""
        heads, _, dim = self.shape
        return features.view(heads, dim, -1)

    def query(self, x, out=None):
        r"""(H, D, n); eq. 9."""
        if out is None:
            out = self.place("query", len(self.q_weight), x.shape[-1])
        return self.heads(torch.addmm(self.query_bias, self.q_weight, x, out=out))

    def key_value(self, x):
        r"""Twice (H, D, n), without their biases; eq. 9."""
        heads, _, dim = self.shape
        return self.product("key, value", self.kv_weight, x).view(2, heads, dim, -1).unbind()

    def exp(self, logits):
        r"""Exponentials in place, those next to nothing raised to ``exp(lowest)``.

        MKL takes up to a hundred times as long where an exponential underflows, and so do products
        with denormal numbers. It is a matter of time alone, so a look now and then will do, at the
        last points of a tile, padding being there.
        """
        turn = next(self.turns)
        if not self.raised and (turn < 8 or turn % 8 == 0):
            some = logits.shape[-1] // 16 + 1
            self.raised = logits[..., -some:].amin().item() < self.lowest
        if self.raised:
            logits.clamp_min_(self.lowest)
        return logits.exp_()

    def aggregate(self, kept, point_norms):
        r"""Sums and masses of eq. 14; fills in the queries and ``point_norms``."""
        sums, masses = self._zeros()
        tiles = zip(self.x, self.queries(kept), self.tiles(point_norms), self.weights, strict=False)
        for x, place, norms, w in tiles:
            query = self.query(x, out=place)
            assignment = self._assign(query, norms)
            if w is not None:
                assignment *= w
            sums.baddbmm_(assignment, query.mT)
            masses += assignment.sum(-1, keepdim=True)
        return sums, masses

    def _assign(self, query, norms):
        r"""Assignments (H, K, n); fills in their ``norms``; eq. 13."""
        scores = self.product("scores", self.centroids, query)
        if not self.large_logits:  # the largest logit need not be found, nor subtracted
            exp = self.exp(scores)
            total = exp.sum(1, keepdim=True)
            if _in_range(total):
                torch.log(total, out=norms)
                return exp.mul_(total.reciprocal_())
            self.large_logits = True
            scores = self.product("scores", self.centroids, query)
        peak = scores.amax(1, keepdim=True)
        exp = self.exp(scores.sub_(peak))
        total = exp.sum(1, keepdim=True)
        torch.add(total.log(), peak, out=norms)
        return exp.mul_(total.reciprocal_())

    def assignment(self, query, norms):
        r"""(H, K, n), the norms being known; eq. 13."""
        return self.exp(self.product("scores", self.centroids, query).sub_(norms))

    def attention_logits(self, clusters, key, log_w):
        r"""(H, K, n); eq. 15."""
        logits = self.product("scores", clusters, key)
        return logits if log_w is None else logits.add_(log_w)

    def attend(self, clusters):
        r"""Attended values without the bias, and ``cluster_norms``; eq. 15."""
        clusters = _columns(clusters)
        attended, total = self._zeros()
        for i, (x, log_w) in enumerate(zip(self.x, self.log_weights, strict=False)):
            key, value = self.key_value(x)
            exp = self.exp(self.attention_logits(clusters, key, log_w))
            attended.baddbmm_(exp, value.mT)
            total += exp.sum(-1, keepdim=True)
            if i % 8 == 0 and not _in_range(total):
                break
        if _in_range(total):
            return attended / total, total.log()

        # Once more, less the largest logit so far.
        attended, total = self._zeros()
        peak = torch.full_like(total, -torch.inf)
        for x, log_w in zip(self.x, self.log_weights, strict=False):
            key, value = self.key_value(x)
            logits = self.attention_logits(clusters, key, log_w)
            before, peak = peak, torch.maximum(peak, logits.amax(-1, keepdim=True))
            exp = self.exp(logits.sub_(peak))
            shrink = (before - peak).exp_()
            attended.mul_(shrink).baddbmm_(exp, value.mT)
            total.mul_(shrink).add_(exp.sum(-1, keepdim=True))
        return attended / total, total.log() + peak

    def dispatch(self, kept, point_norms, attended, out_weight, out_bias, out):
        r"""Back to the points, and the output projection, into ``out``; eq. 16."""
        attended, out_weight = attended.mT.contiguous(), out_weight.T
        tiles = zip(self.queries(kept), self.tiles(point_norms), self.tiles(out, 0), strict=True)
        for query, norms, place in tiles:
            scores = self.product("scores", self.centroids, self.heads(query))
            if self.large_logits:
                y = self.product("y", attended, self.exp(scores.sub_(norms)))
            else:  # divided afterwards, there being fewer values than scores
                y = self.product("y", attended, self.exp(scores)).mul_(norms.neg().exp_())
            torch.addmm(out_bias, y.flatten(0, 1).T, out_weight, out=place)

    def backward(
        self,
        normalize,
        grad_out,
        out_weight,
        point_norms,
        clusters,
        masses,
        attended,
        cluster_norms,
        grad_x,
        grad_weights,
        grad_qkv_weight,
        grad_qkv_bias,
        grad_centroids,
        grad_out_weight,
    ):
        r"""Fill in the gradients by x and the weights, and add to those by the parameters."""
        _, _, dim = self.shape
        inner = len(self.q_weight)
        grad_q_weight, grad_kv_weight = grad_qkv_weight.split([inner, 2 * inner])
        grad_q_bias, _, grad_v_bias = grad_qkv_bias.split(inner)
        grad_out, point_norms = self.tiles(grad_out.T), self.tiles(point_norms)
        grad_x = self.tiles(grad_x, 0)
        if grad_weights is not None:
            grad_weights = self.tiles(grad_weights)

        grad_attended, _ = self._zeros()
        for x, grad, norms in zip(self.x, grad_out, point_norms, strict=True):  # eq. 16
            assignment = self.assignment(self.query(x), norms)
            y = self.product("y", attended.mT, assignment).flatten(0, 1)
            grad_out_weight.addmm_(grad, y.T)
            grad_y = self.heads(self.product("grad y", out_weight.T, grad))
            grad_attended.baddbmm_(assignment, grad_y.mT)
        grad_v_bias += grad_attended.sum(1).flatten()

        grad_clusters, _ = self._zeros()
        shift = (grad_attended * (attended - self.value_bias)).sum(-1, keepdim=True)  # (H, K, 1)
        for i, (x, log_w) in enumerate(zip(self.x, self.log_weights, strict=False)):  # eq. 15
            key, value = self.key_value(x)
            logits = self.attention_logits(clusters, key, log_w)
            attention_weights = self.exp(logits.sub_(cluster_norms))
            grad_logits = self.product("grad scores", grad_attended, value)
            grad_logits.sub_(shift).mul_(attention_weights)
            grad_clusters.baddbmm_(grad_logits, key.mT)
            grad_kv = self.place("grad kv", 2, *key.shape)
            torch.bmm(clusters.mT, grad_logits, out=grad_kv[0])
            torch.bmm(grad_attended.mT, attention_weights, out=grad_kv[1])
            grad_kv = grad_kv.flatten(0, 2)
            torch.mm(grad_kv.T, self.kv_weight, out=grad_x[i])
            grad_kv_weight.addmm_(grad_kv, x.T)
            if grad_weights is not None:  # through log w
                w = self.weights[i]
                by_log = grad_logits.sum((0, 1))
                grad_weights[i].copy_(torch.where(w > 0, by_log / w.clamp_min(1e-30), 0))

        grad_sums = grad_clusters / math.sqrt(dim)
        if normalize:
            grad_sums /= masses.clamp_min(1e-30)
            grad_masses = -(grad_clusters * clusters).sum(-1, keepdim=True) / masses
            grad_masses = torch.where(masses > 1e-30, grad_masses, 0)  # (H, K, 1)
        tiles = zip(self.x, grad_out, point_norms, self.weights, strict=False)
        for i, (x, grad, norms, w) in enumerate(tiles):
            query = self.query(x)  # eq. 13, under eq. 14 and eq. 16
            assignment = self.assignment(query, norms)
            grad_assignment = self.product("grad scores", grad_sums, query)
            if normalize:
                grad_assignment += grad_masses
            grad_query = self.product("grad query", grad_sums.mT, assignment)
            if grad_weights is not None:
                grad_weights[i].add_((assignment * grad_assignment).sum((0, 1)))
            if w is not None:
                grad_assignment *= w
                grad_query *= w
            grad_y = self.heads(self.product("grad y", out_weight.T, grad))
            grad_assignment.baddbmm_(attended, grad_y)
            grad_logits = grad_assignment.mul_(assignment)
            grad_logits.addcmul_(assignment, grad_logits.sum(1, keepdim=True), value=-1)
            grad_centroids.baddbmm_(grad_logits, query.mT)
            grad_query = grad_query.baddbmm_(self.centroids.mT, grad_logits).flatten(0, 1)
            grad_x[i].addmm_(grad_query.T, self.q_weight)
            grad_q_weight.addmm_(grad_query, x.T)
            grad_q_bias += grad_query.sum(-1)

    def _zeros(self):
        heads, clusters, dim = self.shape
        new = self.centroids.new_zeros
        return new(heads, clusters, dim), new(heads, clusters, 1)
