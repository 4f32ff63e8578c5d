# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

r"""The passes of the tiled layer over the points of one sample, forward and backward.

Features of a tile have the points last, (HD, n), so that heads lie one after the other without a
copy. Sums over points and clusters and terms to add ride along in the products, as rows of ones;
``of_`` names what is multiplied by such features from the left. Needs torch alone.
"""

from __future__ import annotations

import itertools
import math

import torch
import torch.nn.functional as F
from torch import Tensor

from ..weights import log_weights

_LARGEST = 1e12
"""Sums of exponentials up to this and down to its inverse lose nothing in float32, and are far
above the exponentials that :meth:`_Passes.exp` raises."""


def _tile_size(heads: int, clusters: int) -> int:
    r"""Points of a tile, so that its assignments stay in the cache and its products are large."""
    return min(max(2**19 // (heads * clusters), 256), 2048)


def _in_range(total: Tensor) -> bool:
    low, high = total.aminmax()
    return low.item() > 1 / _LARGEST and high.item() < _LARGEST  # false also of NaN


def _with_rows(weight: Tensor, dim: int, rows: int) -> Tensor:
    r"""A weight matrix with rows of zeros after the ``dim`` rows of each head."""
    return F.pad(weight.unflatten(0, (-1, dim)), (0, 0, 0, rows)).flatten(0, 1)


class _Room:
    r"""Memory for what there is of a tile of n points, and views of it, ``_t`` transposed.

    Made once: new memory is slow to touch, and making a view takes as long as a small product.
    """

    def __init__(self, centroids: Tensor, n: int) -> None:
        heads, clusters, dim = centroids.shape
        new = centroids.new_empty
        self.scores = new(heads, clusters, n)

        # Keys and a row of ones, values and a row of ones
        self.key_value = new(2 * heads * (dim + 1), n)
        both = self.key_value.view(2, heads, dim + 1, n)
        self.ones = both[:, :, -1]
        self.key_one, self.value_one = both

        # What is to be projected, and a row of ones
        y_one = new(heads * dim + 1, n)
        y_one[-1] = 1
        self.y = y_one[:-1].view(heads, dim, n)
        self.y_one_t = y_one.T


class _ForwardRoom(_Room):
    def __init__(self, centroids: Tensor, n: int) -> None:
        super().__init__(centroids, n)
        heads, clusters, dim = centroids.shape
        self.rows = self.scores.view(heads, n, clusters)  # by points: sums over them are faster so
        self.rows_t = self.rows.mT
        self.key_one_t = self.key_one.mT

        # Queries and ones, both over the sum of exponentials
        self.shares = centroids.new_empty(heads, dim + 1, n)
        self.query_share, self.share = self.shares.split([dim, 1], 1)


class _BackwardRoom(_Room):
    def __init__(self, centroids: Tensor, n: int) -> None:
        super().__init__(centroids, n)
        heads, clusters, dim = centroids.shape
        new = centroids.new_empty
        self.y_t = self.y_one_t[:, :-1]
        self.key_t = self.key_one[:, :-1].mT

        # Queries, a row of ones and one of norms
        self.query_flat = new(heads * (dim + 2), n)
        self.query_one_norm = self.query_flat.view(heads, dim + 2, n)
        self.query_one, self.norm = self.query_one_norm.split([dim + 1, 1], 1)
        self.query_t = self.query_one[:, :-1].mT

        self.grad_scores = new(heads, clusters, n)
        self.mean = new(heads, 1, n)
        self.grad_y_flat = new(heads * dim, n)
        self.grad_y = self.grad_y_flat.view(heads, dim, n)
        self.grad_y_t = self.grad_y.mT
        self.grad_key_value = new(2 * heads * dim, n)
        self.grad_key_value_t = self.grad_key_value.T
        self.grad_key, self.grad_value = self.grad_key_value.view(2, heads, dim, n)
        self.grad_query_flat = new(heads * dim, n)
        self.grad_query_flat_t = self.grad_query_flat.T
        self.grad_query = self.grad_query_flat.view(heads, dim, n)
        self.grad_of_sums = new(heads, dim + 1, n)  # of queries and ones, through eq. 14
        self.grad_query_of_sums = self.grad_of_sums[:, :-1]


class _Passes:
    r"""What the passes of both directions share: the parameters, the room, and a sample at a time.

    Of both softmaxes the logarithm of the normalizer is kept: ``point_norms`` of the assignments,
    of eq. 13, a tile after the other, and ``cluster_norms`` (H, K, 1) of the attention, of eq. 15.
    """

    make_room: type[_Room]

    def __init__(self, qkv_weight, qkv_bias, centroids):
        self.centroids = centroids.contiguous()
        self.centroids_t = self.centroids.mT
        heads, clusters, dim = centroids.shape
        self.q_weight, self.kv_weight = qkv_weight.split([heads * dim, 2 * heads * dim])
        self.kv_one_weight = _with_rows(self.kv_weight, dim, 1)
        # A bias of the keys moves all logits of a cluster alike, and the softmax forgets it.
        self.q_bias, _, value_bias = qkv_bias.split(heads * dim)
        # A bias of the values moves their mean.
        self.value_bias = value_bias.view(heads, 1, dim)
        self.of_ones = centroids.new_ones(heads, 1, clusters)
        self.lowest = 0.7 * math.log(torch.finfo(centroids.dtype).tiny)
        self.rooms = {}

    def take(self, x, weights):
        r"""Turn to a sample, (N, C), and its weights, (N,), if any."""
        largest = _tile_size(*self.centroids.shape[:2])
        self.size = math.ceil(len(x) / math.ceil(len(x) / largest))  # no small rest
        self.x = self.tiles(x.T)  # each (C, n)
        self.weighted = weights is not None
        self.weights = self.log_weights = itertools.repeat(None)  # so tiles are zipped unstrictly
        if self.weighted:
            self.weights = self.tiles(weights)  # each (n,)
            self.log_weights = self.tiles(log_weights(weights))
        self.raised = self.weighted and not weights.all()  # absent points have the lowest logits

    def tiles(self, tensor, dim=-1):
        r"""Views of a tensor, a tile of points each."""
        return tensor.split(self.size, dim)

    def blocks(self, memory, *shape):
        r"""Views (\*shape, n) of memory that holds a tile after the other."""
        whole = memory.numel() - memory.numel() % (math.prod(shape) * self.size)
        blocks = list(memory[:whole].view(-1, *shape, self.size))
        return blocks + [memory[whole:].view(*shape, -1)] * (whole < memory.numel())

    def room(self, tile):
        r"""Room for a tile of that many points."""
        n = tile.shape[-1]
        if n not in self.rooms:
            self.rooms[n] = self.make_room(self.centroids, n)
        return self.rooms[n]

    def exp(self, logits, turn):
        r"""Exponentials in place, those next to nothing raised to ``exp(lowest)``.

        MKL takes up to a hundred times as long where an exponential underflows, and so do products
        with denormal numbers. It is a matter of time alone, so a look at some points of every
        eighth tile will do.
        """
        if not self.raised and turn % 8 == 0:
            some = logits.shape[-1] // 16 + 1
            self.raised = logits[..., -some:].amin().item() < self.lowest
        if self.raised:
            logits.clamp_min_(self.lowest)
        return logits.exp_()

    def key_value(self, x, log_w):
        r"""Room filled with keys and values, without their biases, and ones; eq. 9.

        The keys' ones are ``log_w`` where there are weights.
        """
        room = self.room(x)
        torch.mm(self.kv_one_weight, x, out=room.key_value)
        room.ones.fill_(1)
        if log_w is not None:
            room.key_one[:, -1] = log_w
        return room


class Tiles(_Passes):
    r"""The three passes forward.

    Exponentials are taken without their largest logit, so long as their sums stay in range. Each
    of the two softmaxes decides for itself, that of eq. 13 in :meth:`aggregate`.
    """

    make_room = _ForwardRoom

    def aggregate(self, kept, point_norms):
        r"""Sums and masses of eq. 14; fills in the queries and norms for :meth:`dispatch`.

        Norms are sums of exponentials till then, or their logarithms where logits are large.
        """
        heads, clusters, dim = self.centroids.shape
        q_bias = self.q_bias[:, None]
        self.large_logits = False
        sums = self.centroids.new_zeros(heads, dim + 1, clusters)
        queries, norms = self.blocks(kept, heads * dim), self.blocks(point_norms, heads, 1)
        tiles = zip(self.x, queries, norms, self.weights, strict=False)
        for i, (x, query, norm, w) in enumerate(tiles):
            room = self.room(x)
            torch.addmm(q_bias, self.q_weight, x, out=query)
            query = query.view(heads, dim, -1)
            if not self.large_logits:
                torch.bmm(query.mT, self.centroids_t, out=room.rows)
                torch.bmm(self.of_ones, self.exp(room.rows_t, i), out=norm)
                if not _in_range(norm):
                    self.large_logits = True
                    for earlier in norms[:i]:
                        earlier.log_()
            if self.large_logits:
                torch.bmm(query.mT, self.centroids_t, out=room.rows)
                peak = room.rows_t.amax(1, keepdim=True)
                torch.bmm(self.of_ones, self.exp(room.rows_t.sub_(peak), i), out=norm)
            torch.div(query, norm, out=room.query_share)
            torch.reciprocal(norm, out=room.share)
            if w is not None:
                room.shares.mul_(w)
            sums.baddbmm_(room.shares, room.rows)
            if self.large_logits:
                norm.log_().add_(peak)
        return sums.mT.split([dim, 1], -1)

    def attend(self, clusters, large_logits=False):
        r"""Attended values without the bias, and ``cluster_norms``; eq. 15."""
        heads, slots, dim = clusters.shape
        of_keys_t = F.pad(clusters, (0, 1), value=self.weighted).mT.contiguous()
        sums = clusters.new_zeros(heads, dim + 1, slots)
        peak = clusters.new_full((heads, slots, 1), -torch.inf if large_logits else 0)
        for i, (x, log_w) in enumerate(zip(self.x, self.log_weights, strict=False)):
            room = self.key_value(x, log_w)
            torch.bmm(room.key_one_t, of_keys_t, out=room.rows)
            if large_logits:  # less the largest so far
                before, peak = peak, torch.maximum(peak, room.rows_t.amax(-1, keepdim=True))
                room.rows_t.sub_(peak)
                sums *= (before - peak).exp_().mT
            self.exp(room.rows_t, i)
            sums.baddbmm_(room.value_one, room.rows)
            if not large_logits and i % 8 == 0 and not _in_range(sums[:, -1]):
                break  # too early to be sure, but not for long
        attended, total = sums.mT.split([dim, 1], -1)
        if not large_logits and not _in_range(total):
            return self.attend(clusters, large_logits=True)
        return attended / total, total.log() + peak

    def dispatch(self, kept, point_norms, attended, out_weight, out_bias, out):
        r"""Back to the points, and the output projection, into ``out``; eq. 16."""
        heads, _, dim = self.centroids.shape
        attended_t = attended.mT.contiguous()
        out_weight_t = torch.cat([out_weight, out_bias[:, None]], 1).T
        queries, norms = self.blocks(kept, heads, dim), self.blocks(point_norms, heads, 1)
        tiles = zip(queries, norms, self.tiles(out, 0), strict=True)
        for i, (query, norm, place) in enumerate(tiles):
            room = self.room(query)
            torch.bmm(self.centroids, query, out=room.scores)
            if self.large_logits:  # a product of another form rounds otherwise: sum once more
                self.exp(room.scores.sub_(norm), i)
                total = torch.bmm(self.of_ones, room.scores)
                torch.bmm(attended_t, room.scores, out=room.y).div_(total)
                norm += total.log_()
            else:  # divided afterwards, there being fewer values than scores
                torch.bmm(attended_t, self.exp(room.scores, i), out=room.y).div_(norm)
            torch.mm(room.y_one_t, out_weight_t, out=place)
        if not self.large_logits:
            point_norms.log_()


class GradientTiles(_Passes):
    r"""The three passes backward, each through one equation."""

    make_room = _BackwardRoom

    def __init__(self, qkv_weight, qkv_bias, centroids, out_weight):
        super().__init__(qkv_weight, qkv_bias, centroids)
        heads, _, dim = centroids.shape
        self.out_weight_t = out_weight.T
        # Queries, ones and norms, and of them scores less norms
        self.query_weight = _with_rows(self.q_weight, dim, 2)
        bias = F.pad(self.q_bias.view(heads, dim), (0, 2))
        bias[:, -2] = 1
        self.query_bias = bias.view(-1, 1)
        self.of_queries = F.pad(self.centroids, (0, 2))
        self.of_queries[..., -1] = -1

    def take(self, x, weights, grad_out, point_norms, grad_x, grad_weights):
        r"""Turn to a sample, its gradient, the norms that were kept, and what is to be filled in.

        ``grad_weights`` is ``None`` if nobody wants it.
        """
        super().take(x, weights)
        self.x_t = self.tiles(x, 0)
        self.grad_out = self.tiles(grad_out.T)  # each (C', n)
        self.norms = self.blocks(point_norms, len(self.centroids), 1)
        self.grad_x = self.tiles(grad_x, 0)
        self.grad_weights = None if grad_weights is None else self.tiles(grad_weights)

    def assign(self, x, norm, turn):
        r"""Room filled with queries, ones and norms, and with assignments for scores; eq. 13."""
        room = self.room(x)
        torch.addmm(self.query_bias, self.query_weight, x, out=room.query_flat)
        room.norm.copy_(norm)
        self.exp(torch.bmm(self.of_queries, room.query_one_norm, out=room.scores), turn)
        return room

    def through_dispatch(self, attended, grad_out_weight):
        r"""Gradient by the attended values; eq. 16."""
        attended_t = attended.mT
        grad_attended = torch.zeros_like(attended)
        tiles = zip(self.x, self.grad_out, self.norms, strict=True)
        for i, (x, grad, norm) in enumerate(tiles):
            room = self.assign(x, norm, i)
            torch.bmm(attended_t, room.scores, out=room.y)
            grad_out_weight.addmm_(grad, room.y_t)
            torch.mm(self.out_weight_t, grad, out=room.grad_y_flat)
            grad_attended.baddbmm_(room.scores, room.grad_y_t)
        return grad_attended

    def through_attention(self, clusters, cluster_norms, attended, grad_attended, grad_kv_weight):
        r"""Gradient by the clusters, which are over the root of D; eq. 15."""
        mean = (grad_attended * (attended - self.value_bias)).sum(-1, keepdim=True)  # (H, K, 1)
        last = torch.ones_like(cluster_norms) if self.weighted else -cluster_norms
        of_keys = torch.cat([clusters, last], -1)
        of_values = torch.cat([grad_attended, -mean], -1)
        clusters_t, grad_attended_t = clusters.mT, grad_attended.mT
        grad_clusters = torch.zeros_like(clusters)
        for i, (x, log_w) in enumerate(zip(self.x, self.log_weights, strict=False)):
            room = self.key_value(x, log_w)
            torch.bmm(of_keys, room.key_one, out=room.scores)
            if log_w is not None:
                room.scores.sub_(cluster_norms)
            self.exp(room.scores, i)
            torch.bmm(of_values, room.value_one, out=room.grad_scores).mul_(room.scores)
            grad_clusters.baddbmm_(room.grad_scores, room.key_t)
            torch.bmm(clusters_t, room.grad_scores, out=room.grad_key)
            torch.bmm(grad_attended_t, room.scores, out=room.grad_value)
            torch.mm(room.grad_key_value_t, self.kv_weight, out=self.grad_x[i])
            grad_kv_weight.addmm_(room.grad_key_value, self.x_t[i])
            if self.grad_weights is not None:  # through log w
                w = self.weights[i]
                by_log = room.grad_scores.sum((0, 1))
                self.grad_weights[i].copy_(torch.where(w > 0, by_log / w.clamp_min(1e-30), 0))
        return grad_clusters

    def through_queries(self, grad_sums, attended, grad_q_weight, grad_q_bias, grad_centroids):
        r"""The rest, ``grad_sums`` being by the sums and masses; eq. 14 and 16, then eq. 13."""
        grad_sums_t = grad_sums.mT
        tiles = zip(self.x, self.grad_out, self.norms, self.weights, strict=False)
        for i, (x, grad, norm, w) in enumerate(tiles):
            room = self.assign(x, norm, i)
            torch.bmm(grad_sums_t, room.scores, out=room.grad_of_sums)
            if self.grad_weights is not None:
                self.grad_weights[i].add_((room.grad_of_sums * room.query_one).sum((0, 1)))
            weighted = room.query_one
            if w is not None:
                room.grad_of_sums.mul_(w)
                weighted = weighted * w
            torch.mm(self.out_weight_t, grad, out=room.grad_y_flat)
            torch.bmm(grad_sums, weighted, out=room.grad_scores)
            room.grad_scores.baddbmm_(attended, room.grad_y).mul_(room.scores)
            torch.bmm(self.of_ones, room.grad_scores, out=room.mean)
            room.grad_scores.addcmul_(room.scores, room.mean, value=-1)
            grad_centroids.baddbmm_(room.grad_scores, room.query_t)
            torch.bmm(self.centroids_t, room.grad_scores, out=room.grad_query)
            room.grad_query.add_(room.grad_query_of_sums)
            self.grad_x[i].addmm_(room.grad_query_flat_t, self.q_weight)
            grad_q_weight.addmm_(room.grad_query_flat, self.x_t[i])
            grad_q_bias += room.grad_query_flat.sum(-1)
