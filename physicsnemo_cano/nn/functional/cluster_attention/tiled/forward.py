# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
r"""The three passes forward over the points of one sample.

Both softmaxes first take their exponentials as they are, which saves a pass over the logits. If a
sum of exponentials leaves the safe range, the largest logit is subtracted: over the clusters (eq.
13) it is at hand; over the points (eq. 15) it is the largest so far and earlier sums are rescaled,
an online softmax (Milakov & Gimelshein 2018, arXiv 1805.02867; Dao et al. 2022, arXiv 2205.14135).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from .base import Passes
from .workspace import FORWARD

SAFE_SUM_EXP = 1e12
"""Sums of exponentials up to this and down to its inverse lose nothing in float32, and are far
above the exponentials that :meth:`.base.Passes.exp_` raises."""


class ForwardPasses(Passes):
    r"""The passes forward; parameters as of :func:`.tiled_layer`."""

    def __init__(self, qkv_weight, qkv_bias, centroids, tile_size):
        super().__init__(FORWARD, qkv_weight, qkv_bias, centroids, tile_size)

    def aggregate(
        self, queries: Tensor, sum_exp: Tensor, logsumexp: Tensor
    ) -> tuple[Tensor, Tensor]:
        r"""Sum the queries over the points of each cluster (eq. 13 and 14).

        Parameters
        ----------
        queries, sum_exp, logsumexp : torch.Tensor
            Flat memory of :math:`NHD`, :math:`NH` and :math:`NH` numbers. They are filled, tile by
            tile, with what :meth:`dispatch` needs of eq. 13 at each point: its query, and the sum
            of the exponentials of its logits or, if logits are large (``self.large_logits``), their
            logsumexp.

        Returns
        -------
        tuple[torch.Tensor, torch.Tensor]
            Sums :math:`(H, K_c, D)` and masses :math:`(H, K_c, 1)`.
        """
        heads, clusters, dim = self.centroids.shape
        q_bias = self.q_bias[:, None]
        self.large_logits = False
        sums = self.centroids.new_zeros(heads, dim + 1, clusters)
        queries = self.consecutive_tiles(queries, heads * dim)
        sums_exp = self.consecutive_tiles(sum_exp, heads, 1)
        logsumexps = self.consecutive_tiles(logsumexp, heads, 1)
        tiles = zip(self.x, queries, sums_exp, logsumexps, self.weights, strict=False)
        for i, (x, query, sum_exp_tile, logsumexp_tile, w) in enumerate(tiles):
            ws = self.workspace(x)
            torch.addmm(q_bias, self.q_weight, x, out=query)  # (HD, n), eq. 9
            query = query.view(heads, dim, -1)
            query_t = query.mT
            if not self.large_logits:
                # (H, n, D) @ (H, D, K) -> (H, n, K)
                torch.bmm(query_t, self.centroids_t, out=ws.assignment_logits_by_point)
                self.exp_(ws.assignment_logits, i)
                # (H, 1, K) @ (H, K, n) -> (H, 1, n)
                torch.bmm(self.cluster_ones, ws.assignment_exp, out=sum_exp_tile)
                if not _is_safe(sum_exp_tile):
                    self.large_logits = True
                    for earlier, its_log in zip(sums_exp[:i], logsumexps[:i], strict=True):
                        torch.log(earlier, out=its_log)
            if self.large_logits:
                # (H, n, D) @ (H, D, K) -> (H, n, K)
                torch.bmm(query_t, self.centroids_t, out=ws.assignment_logits_by_point)
                largest = ws.assignment_logits.amax(1, keepdim=True)  # (H, 1, n)
                self.exp_(ws.assignment_logits.sub_(largest), i)
                # (H, 1, K) @ (H, K, n) -> (H, 1, n)
                torch.bmm(self.cluster_ones, ws.assignment_exp, out=sum_exp_tile)
                torch.log(sum_exp_tile, out=logsumexp_tile).add_(largest)
            # The queries are divided rather than the exponentials: there are fewer of them.
            torch.div(query, sum_exp_tile, out=ws.scaled_query)
            torch.reciprocal(sum_exp_tile, out=ws.scaled_one)
            if w is not None:
                ws.scaled_query_one.mul_(w)
            # (H, D+1, n) @ (H, n, K) -> (H, D+1, K), eq. 14
            sums.baddbmm_(ws.scaled_query_one, ws.assignment_exp_by_point)
        return sums.mT.split([dim, 1], -1)

    def attend(self, cluster_queries: Tensor, large_logits: bool = False) -> tuple[Tensor, Tensor]:
        r"""Attend from the clusters to the points (eq. 15).

        Parameters
        ----------
        cluster_queries : torch.Tensor
            Divided by :math:`\sqrt{D}`, of shape :math:`(H, K_c, D)`.
        large_logits : bool, optional, default=False
            Whether to take an online softmax at once; else only where sums leave the safe range.

        Returns
        -------
        tuple[torch.Tensor, torch.Tensor]
            Cluster values without the bias, :math:`(H, K_c, D)`, and the logits' logsumexp,
            :math:`(H, K_c, 1)`.
        """
        heads, clusters, dim = cluster_queries.shape
        # Meets the keys' last row: log w is added to the logits, a row of ones is not.
        query_one_t = F.pad(cluster_queries, (0, 1), value=self.weighted).mT.contiguous()
        sums = cluster_queries.new_zeros(heads, dim + 1, clusters)
        largest = cluster_queries.new_full((heads, clusters, 1), -torch.inf if large_logits else 0)
        for i, (x, log_w) in enumerate(zip(self.x, self.log_weights, strict=False)):
            ws = self.project_keys_values(x, log_w)
            # (H, n, D+1) @ (H, D+1, K) -> (H, n, K)
            torch.bmm(ws.key_one_t, query_one_t, out=ws.attention_logits_by_point)
            if large_logits:
                before = largest
                largest = torch.maximum(before, ws.attention_logits.amax(-1, keepdim=True))
                ws.attention_logits.sub_(largest)
                sums *= (before - largest).exp_().mT
            self.exp_(ws.attention_logits, i)
            # (H, D+1, n) @ (H, n, K) -> (H, D+1, K); the last row is the sum of exponentials
            sums.baddbmm_(ws.value_one, ws.attention_exp_by_point)
            if not large_logits and i % 8 == 0 and not _is_safe(sums[:, -1]):
                break  # too early to be sure, but not for long
        weighted_sum, sum_exp = sums.mT.split([dim, 1], -1)
        if not large_logits and not _is_safe(sum_exp):
            return self.attend(cluster_queries, large_logits=True)
        return weighted_sum / sum_exp, sum_exp.log() + largest

    def dispatch(
        self,
        queries: Tensor,
        sum_exp: Tensor,
        logsumexp: Tensor,
        cluster_values: Tensor,
        out_weight: Tensor,
        out_bias: Tensor,
        out: Tensor,
    ) -> None:
        r"""Bring the values back to the points and project them (eq. 16).

        Parameters
        ----------
        queries, sum_exp, logsumexp : torch.Tensor
            As :meth:`aggregate` has filled them; ``logsumexp`` is complete afterwards.
        cluster_values : torch.Tensor
            With the bias, :math:`(H, K_c, D)`.
        out_weight, out_bias : torch.Tensor
            As in :func:`.tiled_layer`.
        out : torch.Tensor
            Filled with the result, :math:`(N, C')`.
        """
        heads, _, dim = self.centroids.shape
        cluster_values_t = cluster_values.mT.contiguous()
        out_weight_t = out_weight.T
        tiles = zip(
            self.consecutive_tiles(queries, heads, dim),
            self.consecutive_tiles(sum_exp, heads, 1),
            self.consecutive_tiles(logsumexp, heads, 1),
            self.tiles(out, 0),
            strict=True,
        )
        for i, (query, sum_exp_tile, logsumexp_tile, result) in enumerate(tiles):
            ws = self.workspace(query)
            # (H, K, D) @ (H, D, n) -> (H, K, n), eq. 13
            torch.bmm(self.centroids, query, out=ws.dispatch_logits)
            if self.large_logits:
                # This product rounds differently from that of aggregate, by as much as logits are
                # large, so its own exponentials are summed: (H, 1, K) @ (H, K, n) -> (H, 1, n)
                self.exp_(ws.dispatch_logits.sub_(logsumexp_tile), i)
                torch.bmm(self.cluster_ones, ws.dispatch_exp, out=sum_exp_tile)
                logsumexp_tile += sum_exp_tile.log()
            else:
                self.exp_(ws.dispatch_logits, i)
            # (H, D, K) @ (H, K, n) -> (H, D, n); divided afterwards, there being fewer
            torch.bmm(cluster_values_t, ws.dispatch_exp, out=ws.y).div_(sum_exp_tile)
            # (n, HD) @ (HD, C') -> (n, C')
            torch.addmm(out_bias, ws.y_flat_t, out_weight_t, out=result)
        if not self.large_logits:
            torch.log(sum_exp, out=logsumexp)


def _is_safe(sum_exp: Tensor) -> bool:
    r"""Whether sums of exponentials are far enough from underflow and overflow."""
    lowest, highest = sum_exp.aminmax()
    return lowest.item() > 1 / SAFE_SUM_EXP and highest.item() < SAFE_SUM_EXP  # false also of NaN
