# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
r"""The ClusterAttention layer, on point clouds and on 1D, 2D and 3D grids."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn as nn
import torch.nn.functional as F
from jaxtyping import Bool, Float

from physicsnemo_cano.nn.functional.cluster_attention import (
    PointWeights,
    Projection,
    cluster_attention,
    prepare_weights,
)
from physicsnemo_cano.nn.functional.cluster_attention.choice import is_autocast_enabled
from physicsnemo_cano.nn.functional.cluster_attention.streaming import (
    by_chunks,
    cluster_values,
    dispatch,
    split,
    split_weights,
)
from physicsnemo_cano.nn.module.grid_convolution import GridConvolution
from physicsnemo_cano.parallel.shards import ALL_POINTS, Shards


class ClusterAttention(nn.Module):
    r"""Attention of softly clustered queries to all keys and values.

    The layer of CANO (`arXiv 2609.39914 <https://arxiv.org/abs/2609.39914>`_, eq. 9 and 13 to
    16). On a grid a convolution of the input comes before the projections; on a grid other than
    the one given at construction the convolution keeps its physical reach.

    Parameters
    ----------
    dim : int
        Number of input and output features.
    heads : int, optional, default=8
        Number of attention heads :math:`H`.
    dim_head : int, optional, default=64
        Features per head :math:`D`.
    dropout : float, optional, default=0.0
        Dropout rate of the output.
    n_clusters : int, optional, default=64
        Number of clusters :math:`K_c` per head.
    spatial_shape : Sequence[int] | None, optional, default=None
        Shape of the training grid, of 1, 2 or 3 axes; ``None`` for point clouds.
    kernel : int, optional, default=3
        Odd width of the convolution on grids.
    padding_mode : str, optional, default="replicate"
        What the convolution meets outside the grid: ``"replicate"``, or ``"circular"`` on
        periodic domains.
    normalize_queries : bool, optional, default=True
        Mean query per cluster; ``False`` for the paper's literal sum (eq. 14).
    chunk_size : int | None, optional, default=None
        Attend this many points at a time, with the same result.

    Attributes
    ----------
    implementation : str | None
        Which implementation of the functional runs; ``None`` lets it choose. ``"reference"`` has
        derivatives of every order.

    Forward
    -------
    x : torch.Tensor
        Point features of shape :math:`(B, N, C)`; a grid's points in row-major order.
    mask : torch.Tensor, optional
        Boolean, shape :math:`(B, N)`, ``False`` on padding. Meant for clouds: a convolution meets
        zeros where a grid is masked.
    weights : torch.Tensor, optional
        Quadrature weights of shape :math:`(B, N)`, of any positive scale; or what
        :func:`~physicsnemo_cano.nn.functional.cluster_attention.prepare_weights` has made of them.
    spatial_shape : Sequence[int], optional
        Shape of the grid at hand where it differs from the training grid's.
    shards : Shards, optional
        Where processes share a sample's points: who has which. By default all are here.

    Outputs
    -------
    torch.Tensor
        Shape :math:`(B, N, C)`; zero on padding.

    Raises
    ------
    ValueError
        If a size, shape, dtype or value is not as above.

    Examples
    --------
    >>> import torch
    >>> layer = ClusterAttention(dim=32, heads=4, dim_head=8, n_clusters=16)
    >>> layer(torch.randn(2, 100, 32)).shape
    torch.Size([2, 100, 32])
    """

    def __init__(
        self,
        dim: int,
        heads: int = 8,
        dim_head: int = 64,
        dropout: float = 0.0,
        n_clusters: int = 64,
        spatial_shape: Sequence[int] | None = None,
        kernel: int = 3,
        padding_mode: str = "replicate",
        normalize_queries: bool = True,
        chunk_size: int | None = None,
    ) -> None:
        super().__init__()
        sizes = {"heads": heads, "dim_head": dim_head, "n_clusters": n_clusters}
        if chunk_size is not None:
            sizes["chunk_size"] = chunk_size
        for name, size in sizes.items():
            if size < 1:
                raise ValueError(f"ClusterAttention expects {name} >= 1, got {size}")
        self.dim = dim
        self.heads = heads
        self.normalize_queries = normalize_queries
        self.chunk_size = chunk_size
        self.implementation: str | None = None  # of the functional, which chooses by default
        inner = heads * dim_head

        self.convolution = (
            None
            if spatial_shape is None
            else GridConvolution(dim, spatial_shape, kernel, padding_mode)
        )
        self.to_qkv = nn.Linear(dim, 3 * inner)  # eq. 9
        # A unit normal spreads the clusters from the start (one scale for queries of any size).
        self.centroids = nn.Parameter(torch.randn(heads, n_clusters, dim_head))  # W_c of eq. 13
        self.to_out = nn.Linear(inner, dim)  # W_O of eq. 16
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        x: Float[torch.Tensor, "B N C"],
        mask: Bool[torch.Tensor, "B N"] | None = None,
        weights: Float[torch.Tensor, "B N"] | PointWeights | None = None,
        spatial_shape: Sequence[int] | None = None,
        shards: Shards = ALL_POINTS,
    ) -> Float[torch.Tensor, "B N C"]:
        r"""Apply the layer; see the class for the shapes."""
        self._check(x)
        if not isinstance(weights, PointWeights):
            batch, points = x.shape[:2]
            weights = prepare_weights(
                mask, weights, batch=batch, points=points, dtype=x.dtype, shards=shards
            )
        if self.chunk_size is not None:
            x = self.prepare(x, mask, spatial_shape, shards)
            attended = self.summarize(lambda piece, mask: piece, x, mask, weights, shards)
            out = by_chunks(lambda piece: self.dispatch(piece, attended), self.chunk_size, x)
            return out if mask is None else out.masked_fill(~mask.unsqueeze(-1), 0)
        if self.convolution is not None:  # else the functional clears the padding
            x = self.prepare(x, mask, spatial_shape, shards)
        options = {
            "mask": mask,
            "weights": weights,
            "normalize_queries": self.normalize_queries,
            "shards": shards,
            "implementation": self.implementation,
        }
        if is_two_tensors(self.to_qkv) and is_two_tensors(self.to_out):
            projection = Projection(
                self.to_qkv.weight, self.to_qkv.bias, self.to_out.weight, self.to_out.bias
            )
            out = cluster_attention(x, x, x, self.centroids, projection=projection, **options)
            return self.dropout(out)
        heads = self._heads(x, 0, 3)  # what padding holds, the functional clears
        out = self._output(cluster_attention(*heads, self.centroids, **options))
        return out if mask is None else out.masked_fill(~mask.unsqueeze(-1), 0)

    def prepare(
        self,
        x: Float[torch.Tensor, "B N C"],
        mask: Bool[torch.Tensor, "B N"] | None = None,
        spatial_shape: Sequence[int] | None = None,
        shards: Shards = ALL_POINTS,
    ) -> Float[torch.Tensor, "B N C"]:
        r"""What needs all points at once: clean the padding, convolve on grids.

        Parameters
        ----------
        x, mask, spatial_shape, shards
            As in the forward pass.

        Returns
        -------
        torch.Tensor
            Shape :math:`(B, N, C)`.

        Raises
        ------
        ValueError
            If ``x`` is not as the class says.
        """
        self._check(x)
        if mask is not None:
            x = x.masked_fill(~mask.unsqueeze(-1), 0)
        return x if self.convolution is None else self.convolution(x, spatial_shape, shards)

    def summarize(
        self,
        prepare: Callable[..., Float[torch.Tensor, "B n C"]],
        x: Float[torch.Tensor, "B N C"],
        mask: Bool[torch.Tensor, "B N"] | None,
        weights: PointWeights | None,
        shards: Shards = ALL_POINTS,
    ) -> Float[torch.Tensor, "B H K D"]:
        r"""Attended cluster values, ``chunk_size`` points at a time (eq. 13 to 15).

        Parameters
        ----------
        prepare : Callable
            Makes the prepared features of a chunk from its ``x`` and ``mask``.
        x, mask : torch.Tensor
            What it makes them from.
        weights : PointWeights, optional
            Of the :math:`N` points.
        shards : Shards, optional
            Who has which points; by default all are here.

        Returns
        -------
        torch.Tensor
            Shape :math:`(B, H, K_c, D)`.
        """
        size = self.chunk_size
        pieces = zip(split_weights(weights, size), split(x, size), split(mask, size), strict=False)
        return cluster_values(
            list(pieces),
            lambda *piece: self._heads(prepare(*piece), 0, 1)[0],
            lambda *piece: self._heads(prepare(*piece), 1, 3),
            self.centroids,
            self.normalize_queries,
            shards,
        )

    def dispatch(
        self,
        x: Float[torch.Tensor, "B n C"],
        attended: Float[torch.Tensor, "B H K D"],
    ) -> Float[torch.Tensor, "B n C"]:
        r"""Bring cluster values to a chunk of prepared points and project them (eq. 16).

        Parameters
        ----------
        x : torch.Tensor
            As :meth:`prepare` gives it, of :math:`n` points: :math:`(B, n, C)`.
        attended : torch.Tensor
            What :meth:`summarize` gave, :math:`(B, H, K_c, D)`.

        Returns
        -------
        torch.Tensor
            Shape :math:`(B, n, C)`.
        """
        (query,) = self._heads(x, 0, 1)
        return self._output(dispatch(query, self.centroids, attended))

    def assignments(
        self,
        x: Float[torch.Tensor, "B N C"],
        mask: Bool[torch.Tensor, "B N"] | None = None,
        spatial_shape: Sequence[int] | None = None,
        shards: Shards = ALL_POINTS,
    ) -> Float[torch.Tensor, "B H N K"]:
        r"""Return the soft assignment of every point to the clusters (eq. 13).

        Parameters
        ----------
        x, mask, spatial_shape, shards
            As in the forward pass.

        Returns
        -------
        torch.Tensor
            :math:`C` of shape :math:`(B, H, N, K_c)`; its rows sum to one.
        """
        (query,) = self._heads(self.prepare(x, mask, spatial_shape, shards), 0, 1)
        return (query @ self.centroids.mT).softmax(-1)

    def _check(self, x):
        if torch.compiler.is_compiling():
            return
        dim, dtype = self.dim, self.centroids.dtype
        if x.ndim != 3 or x.shape[-1] != dim:
            raise ValueError(
                f"ClusterAttention expects x of shape (B, N, {dim}), got {tuple(x.shape)}"
            )
        if x.shape[1] == 0:
            raise ValueError(
                f"ClusterAttention expects at least one point, got x of shape {tuple(x.shape)}"
            )
        if x.dtype != dtype and not is_autocast_enabled(x.device):
            raise ValueError(f"ClusterAttention expects x of dtype {dtype}, got {x.dtype}")

    def _heads(self, x, start, stop):
        r"""Some of queries, keys and values (eq. 9), each (B, H, N, D)."""
        inner = self.heads * self.centroids.shape[-1]
        rows = slice(start * inner, stop * inner)
        if is_two_tensors(self.to_qkv):
            projected = F.linear(x, self.to_qkv.weight[rows], self.to_qkv.bias[rows])
        else:  # an adapter has taken its place, or a hook expects the call
            projected = self.to_qkv(x)[..., rows]
        heads = projected.unflatten(-1, (stop - start, self.heads, -1))  # (B, N, 3, H, D)
        # Contiguous heads: every pass over the points then streams through memory.
        return heads.permute(2, 0, 3, 1, 4).contiguous().unbind(0)

    def _output(self, attended):
        return self.dropout(self.to_out(attended.transpose(1, 2).flatten(2)))


def is_two_tensors(layer: nn.Module) -> bool:
    r"""Whether a layer is its weight and bias alone: no adapter, no hook, as pruning is one.

    Parameters
    ----------
    layer : torch.nn.Module
        In the place of a linear layer.

    Returns
    -------
    bool
    """
    hooks = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")
    return type(layer) is nn.Linear and not any(getattr(layer, name) for name in hooks)
