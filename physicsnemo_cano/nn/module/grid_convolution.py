# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
"""Convolution on a grid whose stencil keeps its physical reach on other grids."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

import torch
import torch.nn as nn
import torch.nn.functional as F
from jaxtyping import Float

from physicsnemo_cano.parallel.shards import ALL_POINTS, Shards

PADDING_MODES = ("replicate", "circular")


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
    shards : Shards, optional
        Where processes share the grid: who has which lines. By default all are here.

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
        self,
        x: Float[torch.Tensor, "B N C"],
        spatial_shape: Sequence[int] | None = None,
        shards: Shards = ALL_POINTS,
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
        # The stencil follows from the grid, so a compiler must not leave its sizes free.
        shape = tuple(map(operator.index, shape))
        x = x.unflatten(1, shape)  # (B, *shape, C)
        weight, dilation = self.weight, []
        sizes = zip(shards.grid_shape(shape), self.spatial_shape, strict=True)
        for axis, (now, trained) in enumerate(sizes):
            ratio = _refinement(now, trained, self.padding_mode == "circular")
            if ratio != int(ratio):
                weight, ratio = _share_taps(weight, axis + 2, ratio), 1
            dilation.append(int(ratio))
            reach = int(ratio) * (weight.shape[axis + 2] // 2)
            x = _pad(x, axis + 1, reach, self.padding_mode, shards)
        x = self._convolve(x.movedim(-1, 1), weight, self.bias, dilation=dilation)
        return x.flatten(2).mT


def _pad(x: torch.Tensor, axis: int, reach: int, mode: str, shards: Shards) -> torch.Tensor:
    r"""Extend an axis by ``reach`` points at both ends (F.pad's gradient does not compile)."""
    size, circular = x.shape[axis], mode == "circular"
    if reach and shards.is_cut(axis - 1):
        before, after = shards.halo(x, axis, reach, circular)
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
