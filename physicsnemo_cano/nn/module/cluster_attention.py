r"""The ClusterAttention layer, on point clouds and on 1D, 2D and 3D grids."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
import torch.nn as nn
import torch.nn.functional as F
from jaxtyping import Bool, Float

from physicsnemo_cano.nn.functional import ranks
from physicsnemo_cano.nn.functional.cluster_attention import (
    attention,
    by_chunks,
    check_mask_and_weights,
    dispatch,
    normalized_weights,
    split,
    summarize,
)
from physicsnemo_cano.nn.functional.tiled import tiled_layer

PADDING_MODES = ("replicate", "circular")
_LARGE = 2**19
"""Bytes of a sample from which the layer runs in tiles on a CPU; below, storing all is faster."""


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

    Forward
    -------
    x : torch.Tensor
        Point features of shape :math:`(B, N, C)`; a grid's points in row-major order.
    mask : torch.Tensor, optional
        Boolean, shape :math:`(B, N)`, ``False`` on padding. Meant for clouds: a convolution meets
        zeros where a grid is masked.
    weights : torch.Tensor, optional
        Quadrature weights of shape :math:`(B, N)`, of any positive scale.
    spatial_shape : Sequence[int], optional
        Shape of the grid at hand where it differs from the training grid's.

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
        weights: Float[torch.Tensor, "B N"] | None = None,
        spatial_shape: Sequence[int] | None = None,
    ) -> Float[torch.Tensor, "B N C"]:
        r"""Apply the layer; see the class for the shapes."""
        if not torch.compiler.is_compiling():
            check_mask_and_weights(mask, weights, *x.shape[:2])
        return self.attend(x, mask, normalized_weights(mask, weights, x), spatial_shape)

    def attend(
        self,
        x: Float[torch.Tensor, "B N C"],
        mask: Bool[torch.Tensor, "B N"] | None = None,
        weights: Float[torch.Tensor, "B N"] | None = None,
        spatial_shape: Sequence[int] | None = None,
    ) -> Float[torch.Tensor, "B N C"]:
        r"""Apply the layer with a mask and weights that were checked and normalised before."""
        x = self.prepare(x, mask, spatial_shape)
        if self.chunk_size is not None:
            attended = self.summarize(lambda piece, mask: piece, x, mask, weights)
            out = by_chunks(lambda piece: self.dispatch(piece, attended), self.chunk_size, x)
        elif self._in_tiles(x):
            out = tiled_layer(
                x,
                self.to_qkv.weight,
                self.to_qkv.bias,
                self.centroids,
                self.to_out.weight,
                self.to_out.bias,
                weights,
                self.normalize_queries,
            )
            out = self.dropout(out)
        else:
            query, key, value = self._heads(x, 0, 3)
            out = self._output(
                attention(query, key, value, self.centroids, weights, self.normalize_queries)
            )
        return out if mask is None else out.masked_fill(~mask.unsqueeze(-1), 0)

    def prepare(
        self,
        x: Float[torch.Tensor, "B N C"],
        mask: Bool[torch.Tensor, "B N"] | None = None,
        spatial_shape: Sequence[int] | None = None,
    ) -> Float[torch.Tensor, "B N C"]:
        r"""What needs all points at once: clean the padding, convolve on grids."""
        if not torch.compiler.is_compiling():
            dim, dtype = self.dim, self.centroids.dtype
            if x.ndim != 3 or x.shape[-1] != dim:
                raise ValueError(
                    f"ClusterAttention expects x of shape (B, N, {dim}), got {tuple(x.shape)}"
                )
            if x.dtype != dtype and not torch.is_autocast_enabled(x.device.type):
                raise ValueError(f"ClusterAttention expects x of dtype {dtype}, got {x.dtype}")
        if mask is not None:
            x = x.masked_fill(~mask.unsqueeze(-1), 0)
        return x if self.convolution is None else self.convolution(x, spatial_shape)

    def summarize(
        self,
        prepare: Callable[..., Float[torch.Tensor, "B n C"]],
        x: Float[torch.Tensor, "B N C"],
        mask: Bool[torch.Tensor, "B N"] | None,
        weights: Float[torch.Tensor, "B N"] | None,
    ) -> Float[torch.Tensor, "B H K D"]:
        r"""Attended cluster values, ``chunk_size`` points at a time (eq. 13 to 15).

        Parameters
        ----------
        prepare : Callable
            Makes the prepared features of a chunk from its ``x`` and ``mask``.
        x, mask : torch.Tensor
            What it makes them from.
        weights : torch.Tensor, optional
            Of mean one over the real points and zero on padding, :math:`(B, N)`.

        Returns
        -------
        torch.Tensor
            Shape :math:`(B, H, K_c, D)`.
        """
        size = self.chunk_size
        return summarize(
            list(zip(split(weights, size), split(x, size), split(mask, size), strict=False)),
            lambda *piece: self._heads(prepare(*piece), 0, 1)[0],
            lambda *piece: self._heads(prepare(*piece), 1, 3),
            self.centroids,
            self.normalize_queries,
        )

    def dispatch(
        self,
        x: Float[torch.Tensor, "B n C"],
        attended: Float[torch.Tensor, "B H K D"],
    ) -> Float[torch.Tensor, "B n C"]:
        r"""Bring cluster values to a chunk of prepared points and project them (eq. 16)."""
        (query,) = self._heads(x, 0, 1)
        return self._output(dispatch(query, self.centroids, attended))

    def assignments(
        self,
        x: Float[torch.Tensor, "B N C"],
        mask: Bool[torch.Tensor, "B N"] | None = None,
        spatial_shape: Sequence[int] | None = None,
    ) -> Float[torch.Tensor, "B H N K"]:
        r"""Return the soft assignment of every point to the clusters (eq. 13).

        Parameters
        ----------
        x, mask, spatial_shape
            As in the forward pass.

        Returns
        -------
        torch.Tensor
            :math:`C` of shape :math:`(B, H, N, K_c)`; its rows sum to one.
        """
        (query,) = self._heads(self.prepare(x, mask, spatial_shape), 0, 1)
        return (query @ self.centroids.mT).softmax(-1)

    def _in_tiles(self, x):
        r"""Whether the tiled layer pays: for large samples on a CPU, unless a compiler plans."""
        return (
            not torch.compiler.is_compiling()  # first: then x may have no size yet
            and not torch.jit.is_tracing()
            and is_two_tensors(self.to_qkv)
            and is_two_tensors(self.to_out)
            and type(x) is torch.Tensor  # a subclass, such as a fake one, may have no values
            and x.device.type == "cpu"
            and x.dtype in (torch.float32, torch.float64)
            and x.nbytes >= _LARGE * max(len(x), 1)
            and not ranks.is_spread()
            and not torch.is_autocast_enabled("cpu")
        )

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
    r"""Whether a layer is its weight and bias alone: no adapter, no hook, as pruning is one."""
    hooks = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")
    return type(layer) is nn.Linear and not any(getattr(layer, name) for name in hooks)


class GridConvolution(nn.Module):
    r"""A convolution whose stencil keeps its physical reach on finer and coarser grids.

    On a grid :math:`r` times finer than the training grid each tap sits :math:`r` points from the
    centre: a dilation where :math:`r` is whole, else each tap is shared linearly between the two
    nearest points.

    Parameters
    ----------
    dim : int
        Number of input and output features.
    spatial_shape : Sequence[int]
        Shape of the training grid.
    kernel : int
        Odd number of taps along each axis.
    padding_mode : str
        ``"replicate"`` or ``"circular"``.

    Forward
    -------
    x : torch.Tensor
        Shape :math:`(B, N, C)`.
    spatial_shape : Sequence[int], optional
        The grid at hand; the training grid by default.

    Outputs
    -------
    torch.Tensor
        Shape :math:`(B, N, C)`.
    """

    def __init__(
        self, dim: int, spatial_shape: Sequence[int], kernel: int, padding_mode: str
    ) -> None:
        super().__init__()
        axes = len(spatial_shape)
        if axes not in (1, 2, 3) or any(n != int(n) or n < 1 for n in spatial_shape):
            raise ValueError(
                f"spatial_shape must be 1, 2 or 3 positive whole numbers, got {spatial_shape}"
            )
        if kernel < 1 or kernel % 2 == 0:
            raise ValueError(f"kernel must be a positive odd number, got {kernel}")
        if padding_mode not in PADDING_MODES:
            raise ValueError(f"padding_mode must be one of {PADDING_MODES}, got {padding_mode!r}")
        self.spatial_shape = tuple(int(n) for n in spatial_shape)
        self.padding_mode = padding_mode
        layer = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[axes - 1](dim, dim, kernel)
        self.weight, self.bias = layer.weight, layer.bias  # PyTorch's default initialisation
        self._convolve = (F.conv1d, F.conv2d, F.conv3d)[axes - 1]

    def forward(
        self, x: Float[torch.Tensor, "B N C"], spatial_shape: Sequence[int] | None = None
    ) -> Float[torch.Tensor, "B N C"]:
        r"""Convolve; see the class for the shapes."""
        shape = self.spatial_shape if spatial_shape is None else tuple(spatial_shape)
        if not torch.compiler.is_compiling() and (
            len(shape) != len(self.spatial_shape) or math.prod(shape) != x.shape[1]
        ):
            raise ValueError(
                f"expected a grid of {len(self.spatial_shape)} axes with {x.shape[1]} points, "
                f"got spatial_shape {shape}"
            )
        x = x.unflatten(1, shape)  # (B, *shape, C)
        weight, dilation = self.weight, []
        sizes = zip(ranks.whole_shape(shape), self.spatial_shape, strict=True)
        for axis, (now, trained) in enumerate(sizes):
            ratio = _refinement(now, trained, self.padding_mode == "circular")
            if ratio != int(ratio):
                weight, ratio = _share_taps(weight, axis + 2, ratio), 1
            dilation.append(int(ratio))
            x = _pad(x, axis + 1, int(ratio) * (weight.shape[axis + 2] // 2), self.padding_mode)
        x = self._convolve(x.movedim(-1, 1), weight, self.bias, dilation=dilation)
        return x.flatten(2).mT


def _pad(x: torch.Tensor, axis: int, reach: int, mode: str) -> torch.Tensor:
    r"""Extend an axis by ``reach`` points at both ends (F.pad's gradient does not compile)."""
    size, circular = x.shape[axis], mode == "circular"
    if reach and ranks.is_spread(axis - 1):
        before, after = ranks.neighbours(x, axis, reach, circular)
        # Joined to the edge although one of them is empty: its gradient is others' gradient.
        before = torch.cat([_edge(x, axis, 0, reach - before.shape[axis]), before], axis)
        after = torch.cat([after, _edge(x, axis, size - 1, reach - after.shape[axis])], axis)
    elif circular:
        before, after = x.narrow(axis, size - reach, reach), x.narrow(axis, 0, reach)
    else:
        before, after = (_edge(x, axis, end, reach) for end in (0, size - 1))
    return torch.cat([before, x, after], axis)


def _edge(x: torch.Tensor, axis: int, end: int, reach: int) -> torch.Tensor:
    return x.narrow(axis, end, 1).expand([*x.shape[:axis], reach, *x.shape[axis + 1 :]])


def _refinement(now: int, trained: int, periodic: bool) -> float:
    r"""How many times finer a grid axis is; whole wherever the grids nest."""
    candidates = [now / trained]  # cells, or nodes of a periodic axis
    if not periodic and now > 1 and trained > 1:
        candidates.insert(0, (now - 1) / (trained - 1))  # nodes, both ends included
    for ratio in candidates:
        if ratio == int(ratio):
            return ratio
    return candidates[0]


def _share_taps(weight: torch.Tensor, axis: int, ratio: float) -> torch.Tensor:
    r"""Spread a kernel's taps, ``ratio`` points apart along ``axis``, over the whole points."""
    half = weight.shape[axis] // 2
    reach = math.ceil(half * ratio)
    taps = torch.arange(-half, half + 1, device=weight.device) * ratio
    points = torch.arange(-reach, reach + 1, device=weight.device)
    share = (1 - (taps[:, None] - points).abs()).clamp_min(0).to(weight.dtype)  # hat functions
    return (weight.movedim(axis, -1) @ share).movedim(-1, axis)
