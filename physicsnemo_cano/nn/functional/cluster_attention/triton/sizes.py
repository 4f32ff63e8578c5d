# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
r"""What the kernels can run, and how it is cut: by sizes and types alone, never by the device.

So a result does not depend on the machine, and ``benchmarks/kernels.py`` can compile every choice.
"""

from __future__ import annotations

import importlib.util
import os
from typing import NamedTuple

import torch
from torch import Tensor

INSTALLED = importlib.util.find_spec("triton") is not None
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
"""Triton's interpreter runs the kernels on CPU tensors; the variable counts when they load."""

MIN_DIM = 4
# The three products that float32 takes on tensor cores spill registers on wider tiles.
MAX_DIM = {torch.bfloat16: 256, torch.float16: 256, torch.float32: 64}
MAX_CLUSTERS = 1024
_MAX_BATCH = 65535  # CUDA's limit on the second axis of a grid

_PROGRAMS = 1024  # about 7 a multiprocessor: 108 on an A100, 132 on an H200, 148 on a B200
_BLOCKS_A_SPLIT = 4  # a program's clusters are loaded and stored once for at least so many blocks


def supports(query: Tensor, centroids: Tensor, dtype: torch.dtype | None = None) -> str | None:
    r"""Whether the kernels can run.

    Parameters
    ----------
    query : torch.Tensor
        Shape :math:`(B, H, N, D)`, or the features that queries are made from, :math:`(B, N, C)`.
    centroids : torch.Tensor
        Shape :math:`(H, K_c, D)`.
    dtype : torch.dtype, optional
        Of the queries; by default that of ``query``.

    Returns
    -------
    str or None
        ``None`` if they can, otherwise the reason why not.
    """
    device, batch = query.device.type, query.shape[0]
    clusters, dim = centroids.shape[1:]
    dtype = dtype or query.dtype
    if not INSTALLED:
        return "triton is not installed"
    if device not in ("cuda", "meta") and not (device == "cpu" and INTERPRETED):
        return f"the kernels run on cuda tensors, not on {device}"
    if dtype not in MAX_DIM:
        return f"the kernels take bfloat16, float16 and float32, not {dtype}"
    most = MAX_DIM[dtype]
    if not MIN_DIM <= dim <= most:
        return f"the kernels take {MIN_DIM} to {most} channels a head of {dtype}, not {dim}"
    if not 1 <= clusters <= MAX_CLUSTERS:
        return f"the kernels take 1 to {MAX_CLUSTERS} clusters, not {clusters}"
    if batch > _MAX_BATCH:
        return f"the kernels take at most {_MAX_BATCH} samples at once, not {batch}"
    return None


def power_of_two(n: int) -> int:
    r"""The smallest power of two not below ``n``, and at least 16: what tensor cores multiply.

    Parameters
    ----------
    n : int
        At least 1.

    Returns
    -------
    int
    """
    return max(16, 1 << (n - 1).bit_length())


class Blocks(NamedTuple):
    r"""What a program handles at a time, and what the compiler is told."""

    points: int
    clusters: int
    warps: int
    stages: int


MERGE = Blocks(points=32, clusters=1, warps=4, stages=1)
"""Of the kernel that joins the splits of an attention: 32 splits at a time."""

# Points and clusters (at most) a tile by its width, which is D padded to a power of two. A program
# keeps one or two sums over points, (clusters, width), in registers, beside tiles of (points,
# width) and (points, clusters). Forward, then backward; tiles of bfloat16, then of float32.
_TILES = {
    16: (((64, 128), (64, 128)), ((64, 64), (32, 32))),
    32: (((64, 128), (64, 128)), ((32, 64), (16, 32))),
    64: (((64, 128), (32, 64)), ((32, 64), (32, 32))),
    128: (((64, 64), (32, 64)), ((16, 32), (16, 16))),
    256: (((32, 32), (32, 32)), ((16, 16), (16, 16))),
}
# Where a kernel would spill registers with those: kernel, width, tiles of float32.
_EXCEPTIONS = {
    ("assignment_backward", 16, False): (32, 64),
    ("attend_backward_points", 16, False): (64, 64),
    ("assignment_backward", 32, False): (64, 64),
    ("assignment_backward_points", 32, False): (64, 64),
    ("attend_backward_points", 32, False): (32, 64),
    ("aggregate", 64, False): (32, 128),
    ("dispatch", 64, False): (64, 64),
    ("assignment_backward", 64, False): (64, 32),
    ("assignment_backward_points", 128, False): (32, 32),
    ("attend_backward", 128, False): (32, 32),
    ("attend_backward_points", 128, False): (32, 32),
    ("assignment_backward_points", 16, True): (64, 32),
    ("dispatch", 32, True): (16, 64),
    ("aggregate", 64, True): (32, 32),
    ("assignment_backward_points", 64, True): (32, 16),
    ("assignment_backward_points", 128, True): (32, 32),
    ("attend", 256, True): (32, 16),
}


def _blocks(kernel: str, clusters: int, dim: int, dtype: torch.dtype) -> Blocks:
    r"""Blocks of a kernel: none spills registers when compiled for sm_80, sm_90 and sm_100."""
    width, wide = power_of_two(dim), dtype != torch.bfloat16
    default = _TILES[width][wide]["backward" in kernel]
    points, most = _EXCEPTIONS.get((kernel, width, wide), default)
    tile = min(most, max(32, power_of_two(clusters)))
    many = width >= 64 if wide else tile * width >= 4096 or tile == 128
    return Blocks(points, tile, warps=8 if many else 4, stages=2)


class Cut(NamedTuple):
    r"""How a kernel's work is cut: ``splits`` of ``points`` points, ``clusters`` blocks each."""

    splits: int
    points: int
    clusters: int
    blocks: Blocks


def cut(kernel: str, query: Tensor, clusters: int) -> Cut:
    r"""Cut the work of a kernel.

    Parameters
    ----------
    kernel : str
        Its name.
    query : torch.Tensor
        A tensor of the points, :math:`(B, H, N, D)`.
    clusters : int
        :math:`K_c`.

    Returns
    -------
    Cut
    """
    batch, heads, points, dim = query.shape
    block = _blocks(kernel, clusters, dim, query.dtype)
    cluster_blocks = -(-clusters // block.clusters)
    if kernel in ("logsumexp", "assignment_backward_points", "attend_backward_points"):
        return Cut(-(-points // block.points), block.points, 1, block)
    if kernel == "dispatch":  # every program handles all clusters
        cluster_blocks = 1
    wanted = max(1, _PROGRAMS // (batch * heads * cluster_blocks))
    split = max(-(-points // (wanted * block.points)), _BLOCKS_A_SPLIT) * block.points
    return Cut(-(-points // split), split, cluster_blocks, block)
