# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
r"""Which implementation runs, and every size limit with the measurement behind it.

| implementation | where it is chosen | what it is |
| --- | --- | --- |
| ``streaming`` | ``chunk_size``, points of several processes, gradients of weights | chunks |
| ``triton`` | NVIDIA GPUs, for the types and sizes that its kernels hold | fused kernels |
| ``tiled`` | CPUs, projections given, float32 or float64, large samples | tiles in the cache |
| ``sdpa`` | everything else | torch's fused attention |
| ``reference`` | never chosen | the equations; second derivatives |
"""

from __future__ import annotations

import logging

import torch
from torch import Tensor

from physicsnemo_cano.parallel.shards import Shards

from . import triton
from .weights import PointWeights

IMPLEMENTATIONS = ("reference", "sdpa", "streaming", "tiled", "triton")

TILED_BYTES = 2**19
"""Bytes of a sample from which a CPU runs it in tiles. Measured at 128 features on two cores: at
1024 points (512 KiB) tiles and storing everything take the same time, at 16,384 points tiles take
0.6 of it (benchmarks/README.md)."""

TILE_EXPONENTIALS = 2**19
"""Assignments, or attention, of a tile of the tiled layer: 2 MiB of float32, which stay in the
cache. Forward at 65,536 points, 128 features, 8 heads and 32 clusters on one core: 0.50, 0.44,
0.44 and 0.47 s of processor time in tiles of 512, 1024, 2048 and 4096 points."""

FEWEST_TILED_POINTS, MOST_TILED_POINTS = 256, 2048
"""Fewer points make small products, more leave the cache by their features."""

CPU_AGGREGATE_POINTS = 1024
"""Points of a tile of the aggregation on CPUs outside the tiled layer: its assignments, 256 KiB at
64 clusters a head, stay in the second-level cache; 4096 points took 1.3 times as long."""

DEVICE_BYTES = 2**30
"""Bytes of the assignments or logits that exist at a time on other devices, which pay for each
operation rather than for memory: 524,288 points of 8 heads and 64 clusters. Counted, not timed: a
layer then has 35 operations forward and 76 backward at a million points."""

MERGED_POINTS = 65536
"""Points of a chunk on CPUs where partial attentions are merged though no ``chunk_size`` is given.
Its logits, 128 MiB at 8 heads and 64 clusters, are small beside the features of the points."""

_log = logging.getLogger(__name__)
_said: set[str] = set()


def choose(
    query: Tensor,
    centroids: Tensor,
    weights: PointWeights | None,
    *,
    projected_here: bool,
    chunk_size: int | None,
    shards: Shards,
) -> str:
    r"""Name of the implementation for these inputs.

    Parameters
    ----------
    query : torch.Tensor
        Features of shape :math:`(B, N, C)` where ``projected_here``, else queries of shape
        :math:`(B, H, N, D)`.
    centroids : torch.Tensor
        Shape :math:`(H, K_c, D)`.
    weights : PointWeights, optional
        Of the points.
    projected_here : bool
        Whether the projections are given, so that they can be part of the tiles.
    chunk_size : int, optional
        As asked for.
    shards : Shards
        Who has which points.

    Returns
    -------
    str
        One of ``IMPLEMENTATIONS``.
    """
    if chunk_size is not None or shards.is_shared:
        return "streaming"
    if uses_triton(query, centroids, projected_dtype(query) if projected_here else None):
        return "triton"
    if projected_here and _pays_in_tiles(query):
        return "tiled"
    if weights is not None and weights.values.requires_grad:
        return "streaming"
    return "sdpa"


def is_autocast_enabled(device: torch.device) -> bool:
    r"""Whether autocast is on; unlike torch's own answer, on every device, meta included.

    Parameters
    ----------
    device : torch.device
        Of the tensors.

    Returns
    -------
    bool
    """
    return device.type != "meta" and torch.is_autocast_enabled(device.type)


def projected_dtype(x: Tensor) -> torch.dtype:
    r"""The dtype of what a projection makes of features, under autocast its own.

    Parameters
    ----------
    x : torch.Tensor
        The features.

    Returns
    -------
    torch.dtype
    """
    device = x.device
    return torch.get_autocast_dtype(device.type) if is_autocast_enabled(device) else x.dtype


def uses_triton(query: Tensor, centroids: Tensor, dtype: torch.dtype | None = None) -> bool:
    r"""Whether the kernels run the passes: on NVIDIA GPUs, if they hold the types and sizes.

    Why they do not is said once a reason, at the level of debugging.

    Parameters
    ----------
    query, centroids, dtype
        As of :func:`.triton.supports`.

    Returns
    -------
    bool
    """
    if query.device.type != "cuda":
        return False
    reason = triton.supports(query, centroids, dtype)
    if reason is not None and reason not in _said:
        _said.add(reason)
        _log.debug("cluster attention without Triton kernels: %s", reason)
    return reason is None


def _pays_in_tiles(x: Tensor) -> bool:
    return (
        not torch.compiler.is_compiling()  # first: then x may have no size yet
        and not torch.jit.is_tracing()
        and type(x) is Tensor  # a subclass, such as a fake one, may have no values
        and x.device.type == "cpu"
        and x.dtype in (torch.float32, torch.float64)
        and x.nbytes >= TILED_BYTES * max(len(x), 1)
        and not torch.is_autocast_enabled("cpu")
    )


def tiled_points(heads: int, clusters: int) -> int:
    r"""Most points of a tile of the tiled layer.

    Parameters
    ----------
    heads, clusters : int
        :math:`H` and :math:`K_c`.

    Returns
    -------
    int
        So many that the assignments stay in the cache and the products are large.
    """
    fitting = TILE_EXPONENTIALS // (heads * clusters)
    return min(max(fitting, FEWEST_TILED_POINTS), MOST_TILED_POINTS)


def aggregate_tile(query: Tensor, centroids: Tensor) -> int | None:
    r"""Points of a tile of :func:`.passes.aggregate`.

    Parameters
    ----------
    query : torch.Tensor
        Shape :math:`(B, H, N, D)`.
    centroids : torch.Tensor
        Shape :math:`(H, K_c, D)`.

    Returns
    -------
    int or None
        ``None``, for all points, where a compiler plans: it fuses better than it unrolls.
    """
    if torch.compiler.is_compiling():
        return None
    return CPU_AGGREGATE_POINTS if query.device.type == "cpu" else _budget(query, centroids)


def merged_points(query: Tensor, centroids: Tensor) -> int:
    r"""Points of a chunk of :mod:`.streaming` where the caller names no ``chunk_size``.

    Parameters
    ----------
    query : torch.Tensor
        Shape :math:`(B, H, N, D)`.
    centroids : torch.Tensor
        Shape :math:`(H, K_c, D)`.

    Returns
    -------
    int
        At least one.
    """
    return MERGED_POINTS if query.device.type == "cpu" else _budget(query, centroids)


def _budget(query: Tensor, centroids: Tensor) -> int:
    heads, clusters = centroids.shape[:2]
    bytes_a_point = max(query.shape[0], 1) * heads * clusters * max(query.itemsize, 4)
    return max(DEVICE_BYTES // bytes_a_point, 1)
