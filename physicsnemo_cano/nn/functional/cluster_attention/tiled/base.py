# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
r"""What the passes of both directions share: parameters, workspaces, a sample cut into tiles."""

from __future__ import annotations

import itertools
import math

import torch
import torch.nn.functional as F
from torch import Tensor

from ..choice import tiled_points
from ..weights import log_weights
from .workspace import Workspace


class Passes:
    r"""The passes over the points of one sample at a time, chosen by :meth:`select`.

    Parameters
    ----------
    passes : tuple[str, ...]
        Those that the workspaces are for.
    qkv_weight, qkv_bias, centroids : torch.Tensor
        As in :func:`.tiled_layer`.
    tile_size : int, optional
        Most points of a tile; by default :func:`.choice.tiled_points`.
    """

    def __init__(
        self,
        passes: tuple[str, ...],
        qkv_weight: Tensor,
        qkv_bias: Tensor,
        centroids: Tensor,
        tile_size: int | None,
    ) -> None:
        self.passes = passes
        self.centroids = centroids.contiguous()
        self.centroids_t = self.centroids.mT
        heads, clusters, dim = centroids.shape
        self.largest = tile_size or tiled_points(heads, clusters)
        self.q_weight, self.kv_weight = qkv_weight.split([heads * dim, 2 * heads * dim])
        self.kv_one_weight = with_zero_rows(self.kv_weight, dim, 1)  # (2H(D+1), C)
        # A bias of the keys moves all logits of a cluster alike, and the softmax forgets it.
        self.q_bias, _, value_bias = qkv_bias.split(heads * dim)
        # A bias of the values moves the cluster values, which are means, and waits till then.
        self.value_bias = value_bias.view(heads, 1, dim)
        self.cluster_ones = centroids.new_ones(heads, 1, clusters)  # sums over the clusters
        self.lowest = 0.7 * math.log(torch.finfo(centroids.dtype).tiny)
        self.workspaces: dict[int, Workspace] = {}

    def select(self, x: Tensor, weights: Tensor | None) -> None:
        r"""Turn to a sample.

        Parameters
        ----------
        x : torch.Tensor
            Its features, :math:`(N, C)`.
        weights : torch.Tensor, optional
            Of its points, :math:`(N,)`.
        """
        self.tile_size = math.ceil(len(x) / math.ceil(len(x) / self.largest))  # no small rest
        self.x = self.tiles(x.T)  # each (C, n)
        self.weighted = weights is not None
        self.weights = self.log_weights = itertools.repeat(None)  # so tiles are zipped unstrictly
        if self.weighted:
            self.weights = self.tiles(weights)  # each (n,)
            self.log_weights = self.tiles(log_weights(weights))
        self.underflows = self.weighted and not weights.all()  # absent points: the lowest logits

    def tiles(self, tensor: Tensor, dim: int = -1) -> tuple[Tensor, ...]:
        r"""Cut a tensor of the sample's points into tiles.

        Parameters
        ----------
        tensor : torch.Tensor
            Of :math:`N` points.
        dim : int, optional, default=-1
            Dimension of the points.

        Returns
        -------
        tuple[torch.Tensor, ...]
            Views, of ``tile_size`` points each; the last may have fewer.
        """
        return tensor.split(self.tile_size, dim)

    def consecutive_tiles(self, memory: Tensor, *shape: int) -> list[Tensor]:
        r"""Cut flat memory into tiles that lie one after the other.

        Parameters
        ----------
        memory : torch.Tensor
            Of one dimension.
        *shape : int
            What a tile has of each of its :math:`n` points.

        Returns
        -------
        list[torch.Tensor]
            Views of shape :math:`(*\text{shape}, n)`.
        """
        rest = memory.numel() % (math.prod(shape) * self.tile_size)
        whole, last = memory.split([memory.numel() - rest, rest])
        tiles = list(whole.view(-1, *shape, self.tile_size))
        return [*tiles, last.view(*shape, -1)] if rest else tiles

    def workspace(self, tile: Tensor) -> Workspace:
        r"""The workspace for a tile of that many points, made once.

        Parameters
        ----------
        tile : torch.Tensor
            Shape :math:`(…, n)`.

        Returns
        -------
        Workspace
        """
        n = tile.shape[-1]
        if n not in self.workspaces:
            self.workspaces[n] = Workspace(self.passes, self.centroids, n)
        return self.workspaces[n]

    def exp_(self, logits: Tensor, tile: int) -> Tensor:
        r"""Exponentials in place of the logits, those next to nothing raised to ``exp(lowest)``.

        MKL takes up to a hundred times as long where an exponential underflows, and so do products
        with denormal numbers. It is a matter of time alone, so a look at some points of every
        eighth tile will do.

        Parameters
        ----------
        logits : torch.Tensor
            Changed in place, of any shape :math:`(…, n)`.
        tile : int
            Number of the tile, from 0.

        Returns
        -------
        torch.Tensor
            ``logits``.
        """
        if not self.underflows and tile % 8 == 0:
            some = logits.shape[-1] // 16 + 1
            self.underflows = logits[..., -some:].amin().item() < self.lowest
        if self.underflows:
            logits.clamp_min_(self.lowest)
        return logits.exp_()

    def project_keys_values(self, x: Tensor, log_w: Tensor | None) -> Workspace:
        r"""Project a tile to keys and values (eq. 9) and fill the rows after them.

        Parameters
        ----------
        x : torch.Tensor
            Features of the tile, :math:`(C, n)`.
        log_w : torch.Tensor, optional
            What the row after the keys holds, :math:`(n,)`; by default ones, as the values' has.

        Returns
        -------
        Workspace
            That holds them.
        """
        ws = self.workspace(x)
        # (2H(D+1), C) @ (C, n) -> (2H(D+1), n)
        torch.mm(self.kv_one_weight, x, out=ws.key_value_one_flat)
        ws.last_rows.fill_(1)
        if log_w is not None:
            ws.last_rows[0] = log_w
        return ws


def with_zero_rows(weight: Tensor, dim: int, rows: int) -> Tensor:
    r"""A weight matrix with rows of zeros after the ``dim`` rows of each head.

    Parameters
    ----------
    weight : torch.Tensor
        Shape :math:`(HD, C)`.
    dim, rows : int
        :math:`D`, and how many rows of zeros.

    Returns
    -------
    torch.Tensor
        Shape :math:`(H(D + \text{rows}), C)`.
    """
    return F.pad(weight.unflatten(0, (-1, dim)), (0, 0, 0, rows)).flatten(0, 1)
