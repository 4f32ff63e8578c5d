# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
r"""The three passes backward over the points of one sample, in the reverse order.

Assignments and attention are computed again, a tile at a time, as exponentials of logits less the
logsumexp that the forward pass kept.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from .base import Passes, with_zero_rows
from .workspace import BACKWARD, Workspace


class BackwardPasses(Passes):
    r"""The passes backward; parameters as of :func:`.tiled_layer`."""

    def __init__(self, qkv_weight, qkv_bias, centroids, out_weight, tile_size):
        super().__init__(BACKWARD, qkv_weight, qkv_bias, centroids, tile_size)
        heads, _, dim = centroids.shape
        self.out_weight_t = out_weight.T
        # Project to queries, a row of ones (of the bias) and a row for the logsumexp.
        self.query_weight = with_zero_rows(self.q_weight, dim, 2)  # (H(D+2), C)
        bias = F.pad(self.q_bias.view(heads, dim), (0, 2))
        bias[:, -2] = 1
        self.query_bias = bias.view(-1, 1)  # (H(D+2), 1)
        # Times those rows: the logits less the logsumexp.
        self.centroids_less_logsumexp = F.pad(self.centroids, (0, 2))  # (H, K, D+2)
        self.centroids_less_logsumexp[..., -1] = -1

    def select(
        self,
        x: Tensor,
        weights: Tensor | None,
        grad_out: Tensor,
        logsumexp: Tensor,
        grad_x: Tensor,
        grad_weights: Tensor | None,
    ) -> None:
        r"""Turn to a sample.

        Parameters
        ----------
        x, weights
            As in the base class.
        grad_out : torch.Tensor
            Gradient with respect to the result, :math:`(N, C')`.
        logsumexp : torch.Tensor
            Of eq. 13, from the forward pass: flat, of :math:`NH` numbers.
        grad_x : torch.Tensor
            To be filled, :math:`(N, C)`.
        grad_weights : torch.Tensor, optional
            To be filled, :math:`(N,)`; ``None`` if nobody wants it.
        """
        super().select(x, weights)
        self.x_t = self.tiles(x, 0)  # each (n, C)
        self.grad_out = self.tiles(grad_out.T)  # each (C', n)
        self.logsumexp = self.consecutive_tiles(logsumexp, len(self.centroids), 1)
        self.grad_x = self.tiles(grad_x, 0)  # each (n, C)
        self.grad_weights = None if grad_weights is None else self.tiles(grad_weights)

    def _assign(self, x: Tensor, logsumexp: Tensor, tile: int) -> Workspace:
        r"""A workspace with queries and assignments of a tile; eq. 9 and 13."""
        ws = self.workspace(x)
        # (H(D+2), C) @ (C, n) -> (H(D+2), n)
        torch.addmm(self.query_bias, self.query_weight, x, out=ws.query_one_logsumexp_flat)
        ws.logsumexp.copy_(logsumexp)
        # (H, K, D+2) @ (H, D+2, n) -> (H, K, n)
        torch.bmm(self.centroids_less_logsumexp, ws.query_one_logsumexp, out=ws.assignment_log)
        self.exp_(ws.assignment_log, tile)
        return ws

    def dispatch_gradient(self, cluster_values: Tensor, grad_out_weight: Tensor) -> Tensor:
        r"""Through eq. 16 to the cluster values.

        That with respect to the assignments waits for :meth:`aggregate_gradient`.

        Parameters
        ----------
        cluster_values : torch.Tensor
            With the bias, :math:`(H, K_c, D)`.
        grad_out_weight : torch.Tensor
            Added to, :math:`(C', HD)`.

        Returns
        -------
        torch.Tensor
            Gradient with respect to the cluster values, :math:`(H, K_c, D)`.
        """
        cluster_values_t = cluster_values.mT
        grad_cluster_values = torch.zeros_like(cluster_values)
        tiles = zip(self.x, self.grad_out, self.logsumexp, strict=True)
        for i, (x, grad_out, logsumexp) in enumerate(tiles):
            ws = self._assign(x, logsumexp, i)
            # (H, D, K) @ (H, K, n) -> (H, D, n)
            torch.bmm(cluster_values_t, ws.assignments, out=ws.y)
            # (C', n) @ (n, HD) -> (C', HD)
            grad_out_weight.addmm_(grad_out, ws.y_flat_t)
            # (HD, C') @ (C', n) -> (HD, n)
            torch.mm(self.out_weight_t, grad_out, out=ws.grad_y_flat)
            # (H, K, n) @ (H, n, D) -> (H, K, D)
            grad_cluster_values.baddbmm_(ws.assignments, ws.grad_y_t)
        return grad_cluster_values

    def attend_gradient(
        self,
        cluster_queries: Tensor,
        cluster_logsumexp: Tensor,
        cluster_values: Tensor,
        grad_cluster_values: Tensor,
        grad_kv_weight: Tensor,
    ) -> Tensor:
        r"""Through eq. 15 to the cluster queries and the points; fills the gradients of the points.

        With s the logits without log w, attention is w exp(s - logsumexp). The gradient with
        respect to w is the sum over heads and clusters of exp(s - logsumexp) (dZ V - mean), also
        of a point of weight 0. So where it is wanted the exponentials leave out w, and w
        multiplies what leaves a point: its gradients, and its key on the way to the clusters.

        Parameters
        ----------
        cluster_queries : torch.Tensor
            Divided by :math:`\sqrt{D}`, of shape :math:`(H, K_c, D)`.
        cluster_logsumexp : torch.Tensor
            From the forward pass, :math:`(H, K_c, 1)`.
        cluster_values, grad_cluster_values : torch.Tensor
            With the bias, and what :meth:`dispatch_gradient` gave, :math:`(H, K_c, D)`.
        grad_kv_weight : torch.Tensor
            Added to, :math:`(2HD, C)`.

        Returns
        -------
        torch.Tensor
            Gradient with respect to ``cluster_queries``.
        """
        mean = grad_cluster_values * (cluster_values - self.value_bias)
        mean = mean.sum(-1, keepdim=True)  # (H, K, 1), of the gradient over the points
        logits_have_log_w = self.weighted and self.grad_weights is None
        # Meets the keys' last row, of log w or of ones.
        last = -cluster_logsumexp
        if logits_have_log_w:
            last = torch.ones_like(last)
        query_one = torch.cat([cluster_queries, last], -1)  # (H, K, D+1)
        grad_less_mean = torch.cat([grad_cluster_values, -mean], -1)  # (H, K, D+1)
        cluster_queries_t, grad_cluster_values_t = cluster_queries.mT, grad_cluster_values.mT
        grad_cluster_queries = torch.zeros_like(cluster_queries)
        for i, (x, log_w) in enumerate(zip(self.x, self.log_weights, strict=False)):
            ws = self.project_keys_values(x, log_w if logits_have_log_w else None)
            # (H, K, D+1) @ (H, D+1, n) -> (H, K, n)
            torch.bmm(query_one, ws.key_one, out=ws.attention_log)
            if logits_have_log_w:
                ws.attention_log.sub_(cluster_logsumexp)
            elif self.grad_weights is not None:
                # No softmax bounds an absent point: kept from overflow, it is exact up to 1 / w.
                ws.attention_log.clamp_max_(-self.lowest)
            self.exp_(ws.attention_log, i)
            # (H, K, D+1) @ (H, D+1, n) -> (H, K, n)
            torch.bmm(grad_less_mean, ws.value_one, out=ws.centred_grad_attention)
            ws.centred_grad_attention.mul_(ws.attention)
            if self.grad_weights is not None:
                torch.sum(ws.grad_attention_logits, (0, 1), out=self.grad_weights[i])
                ws.key.mul_(self.weights[i])
            # (H, K, n) @ (H, n, D) -> (H, K, D)
            grad_cluster_queries.baddbmm_(ws.grad_attention_logits, ws.key_t)
            # (H, D, K) @ (H, K, n) -> (H, D, n), twice
            torch.bmm(cluster_queries_t, ws.grad_attention_logits, out=ws.grad_key)
            torch.bmm(grad_cluster_values_t, ws.attention, out=ws.grad_value)
            if self.grad_weights is not None:
                ws.grad_key_value.mul_(self.weights[i])
            # (n, 2HD) @ (2HD, C) -> (n, C), eq. 9
            torch.mm(ws.grad_key_value_flat_t, self.kv_weight, out=self.grad_x[i])
            # (2HD, n) @ (n, C) -> (2HD, C)
            grad_kv_weight.addmm_(ws.grad_key_value_flat, self.x_t[i])
        return grad_cluster_queries

    def aggregate_gradient(
        self,
        grad_sums: Tensor,
        cluster_values: Tensor,
        grad_q_weight: Tensor,
        grad_q_bias: Tensor,
        grad_centroids: Tensor,
    ) -> None:
        r"""What is left: through eq. 14 and the assignments of eq. 16, then through eq. 13 and 9.

        Adds to the gradients of the points.

        Parameters
        ----------
        grad_sums : torch.Tensor
            With respect to sums and masses, :math:`(H, K_c, D + 1)`.
        cluster_values : torch.Tensor
            With the bias, :math:`(H, K_c, D)`.
        grad_q_weight, grad_q_bias, grad_centroids : torch.Tensor
            Added to, :math:`(HD, C)`, :math:`(HD,)` and :math:`(H, K_c, D)`.
        """
        grad_sums_t = grad_sums.mT
        tiles = zip(self.x, self.grad_out, self.logsumexp, self.weights, strict=False)
        for i, (x, grad_out, logsumexp, w) in enumerate(tiles):
            ws = self._assign(x, logsumexp, i)
            # (H, D+1, K) @ (H, K, n) -> (H, D+1, n), eq. 14
            torch.bmm(grad_sums_t, ws.assignments, out=ws.grad_query_one)
            if self.grad_weights is not None:
                self.grad_weights[i].add_((ws.grad_query_one * ws.query_one).sum((0, 1)))
            weighted_query_one = ws.query_one
            if w is not None:
                ws.grad_query_one.mul_(w)
                weighted_query_one = weighted_query_one * w
            # (HD, C') @ (C', n) -> (HD, n)
            torch.mm(self.out_weight_t, grad_out, out=ws.grad_y_flat)
            # (H, K, D+1) @ (H, D+1, n) -> (H, K, n), eq. 14
            torch.bmm(grad_sums, weighted_query_one, out=ws.grad_assignments)
            # (H, K, D) @ (H, D, n) -> (H, K, n), eq. 16
            ws.grad_assignments.baddbmm_(cluster_values, ws.grad_y)
            # Through the softmax of eq. 13
            ws.grad_assignments.mul_(ws.assignments)
            # (H, 1, K) @ (H, K, n) -> (H, 1, n)
            torch.bmm(
                self.cluster_ones, ws.assignments_times_grad, out=ws.sum_assignments_times_grad
            )
            ws.assignments_times_grad.addcmul_(
                ws.assignments, ws.sum_assignments_times_grad, value=-1
            )
            # (H, K, n) @ (H, n, D) -> (H, K, D)
            grad_centroids.baddbmm_(ws.grad_assignment_logits, ws.query_t)
            # (H, D, K) @ (H, K, n) -> (H, D, n)
            torch.bmm(self.centroids_t, ws.grad_assignment_logits, out=ws.grad_query)
            ws.grad_query.add_(ws.grad_query_from_sums)
            # (n, HD) @ (HD, C) -> (n, C), eq. 9
            self.grad_x[i].addmm_(ws.grad_query_flat_t, self.q_weight)
            # (HD, n) @ (n, C) -> (HD, C)
            grad_q_weight.addmm_(ws.grad_query_flat, self.x_t[i])
            grad_q_bias += ws.grad_query_flat.sum(-1)
