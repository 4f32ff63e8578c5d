# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
r"""The passes over the points: what they allocate, launch and add up.

Tensors of the points are read as they lie in memory if their channels are contiguous, so queries,
keys and values may be views of one projection. They are written in the order (B, N, H, D), in
which heads concatenate without a copy. ``launch`` is an argument so that ``benchmarks/kernels.py``
compiles what would be launched.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import triton.language as tl
from torch import Tensor

from . import kernels, sizes


class Matrix(NamedTuple):
    r"""A matrix (or vector) of each head of each sample: address and strides."""

    pointer: Tensor
    batch: int
    head: int
    row: int


def _matrix(tensor: Tensor | None) -> Matrix | None:
    r"""What a kernel takes of a tensor (B, H, rows, D) or (B, H, rows)."""
    if tensor is None:
        return None
    if tensor.ndim == 4 and tensor.stride(3) != 1:
        tensor = tensor.contiguous()
    return Matrix(tensor, *tensor.stride()[:3])


def run(kernel, grid: tuple[int, int], blocks: sizes.Blocks, arguments: dict) -> None:
    r"""Launch a kernel on the device of its tensors.

    Parameters
    ----------
    kernel : triton.JITFunction
        What to launch.
    grid : tuple[int, int]
        Programs along each axis.
    blocks : Blocks
        Gives the numbers of warps and stages.
    arguments : dict
        Of the kernel, by name.

    Raises
    ------
    RuntimeError
        If the tensors are on no GPU and there is no interpreter.
    """
    tensors = (a.pointer if isinstance(a, Matrix) else a for a in arguments.values())
    tensor = next(t for t in tensors if isinstance(t, Tensor))
    if not tensor.is_cuda and not sizes.INTERPRETED:
        raise RuntimeError(
            f"the Triton kernels of cluster attention run on cuda tensors, got {tensor.device}: "
            'use implementation="reference", or set TRITON_INTERPRET=1 before they load'
        )
    with torch.cuda.device_of(tensor):
        kernel[grid](**arguments, num_warps=blocks.warps, num_stages=blocks.stages)


class _Kernel:
    r"""A kernel for given sizes."""

    def __init__(self, name: str, query: Tensor, clusters: int, launch):
        self.batch, self.heads, self.points, self.dim = query.shape
        self.name, self.query, self.clusters, self.launch = name, query, clusters, launch
        self.cut = sizes.cut(name, query, clusters)
        self.fused = clusters <= self.cut.blocks.clusters

    def partial_sums(self, *columns: int) -> Tensor:
        r"""A float32 tensor (splits, B, H, K, *columns)."""
        shape = (self.cut.splits, self.batch, self.heads, self.clusters, *columns)
        return self.query.new_empty(shape, dtype=torch.float32)

    def __call__(self, **arguments: Tensor | float | None) -> None:
        r"""Launch; partial sums come with their first two axes as one."""
        dtype, blocks = self.query.dtype, self.cut.blocks
        arguments = {
            name: _matrix(a) if isinstance(a, Tensor) else a for name, a in arguments.items()
        }
        arguments |= {
            "N": self.points,
            "K": self.clusters,
            "heads": self.heads,
            "points": self.cut.points,
            "blocks": self.cut.clusters,
            "D": self.dim,
            "WIDTH": sizes.power_of_two(self.dim),
            "POINTS": blocks.points,
            "CLUSTERS": blocks.clusters,
            "TYPE": tl.bfloat16 if dtype == torch.bfloat16 else tl.float32,
            "PRECISION": _precision(dtype),
            "FUSED": self.fused,
        }
        grid = (self.cut.splits * self.heads * self.cut.clusters, self.batch)
        self.launch(getattr(kernels, f"{self.name}_kernel"), grid, blocks, arguments)


def _precision(dtype: torch.dtype) -> str:
    r"""How tiles of float32 are multiplied: in TF32 where PyTorch may, else in three such products.

    Tiles of float16 are float32 too, as gradients leave its range; TF32 holds its values exactly.
    """
    exact = dtype == torch.float32 and torch.backends.cuda.matmul.fp32_precision != "tf32"
    return "tf32x3" if exact else "tf32"


def _like_points(tensor: Tensor) -> Tensor:
    batch, heads, points, dim = tensor.shape
    return tensor.new_empty(batch, points, heads, dim).transpose(1, 2)


def _vector(query: Tensor) -> Tensor:
    return query.new_empty(query.shape[:3], dtype=torch.float32)


def _weights(weights: Tensor | None, heads: int) -> Tensor | None:
    return None if weights is None else weights[:, None].expand(-1, heads, -1)


def logsumexp(query: Tensor, centroids: Tensor, launch=run) -> Tensor:
    r"""Logsumexp of the points' logits (eq. 13).

    Parameters
    ----------
    query, centroids, launch
        As in :func:`aggregate`.

    Returns
    -------
    torch.Tensor
        Shape :math:`(B, H, N)`, of float32.
    """
    out = _vector(query)
    kernel = _Kernel("logsumexp", query, centroids.shape[1], launch)
    kernel(query=query, centroids=_centroids(centroids, query), logsumexp=out)
    return out


def _centroids(centroids: Tensor, query: Tensor) -> Tensor:
    return centroids.expand(query.shape[0], -1, -1, -1)


def aggregate(
    query: Tensor, centroids: Tensor, weights: Tensor | None, launch=run
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Sum the queries over the points of each cluster (eq. 13 and 14).

    Parameters
    ----------
    query : torch.Tensor
        Shape :math:`(B, H, N, D)`.
    centroids : torch.Tensor
        Shape :math:`(H, K_c, D)`.
    weights : torch.Tensor, optional
        Shape :math:`(B, N)`.
    launch : Callable, optional
        In the place of :func:`run`.

    Returns
    -------
    tuple[torch.Tensor, torch.Tensor, torch.Tensor]
        Sums :math:`(B, H, K_c, D)`, masses :math:`(B, H, K_c, 1)` and the points' logsumexp
        :math:`(B, H, N)`, of float32.
    """
    kernel = _Kernel("aggregate", query, centroids.shape[1], launch)
    sums, masses = kernel.partial_sums(kernel.dim), kernel.partial_sums(1)
    lse = _vector(query) if kernel.fused else logsumexp(query, centroids, launch)
    kernel(
        query=query,
        centroids=_centroids(centroids, query),
        weights=_weights(weights, kernel.heads),
        logsumexp=lse,
        sums=sums.flatten(0, 1),
        masses=masses.flatten(0, 1),
    )
    return sums.sum(0), masses.sum(0), lse


def aggregate_backward(
    grad_sums: Tensor,
    grad_masses: Tensor,
    query: Tensor,
    centroids: Tensor,
    weights: Tensor | None,
    lse: Tensor,
    weights_too: bool,
    launch=run,
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Gradients of :func:`aggregate` with respect to query, centroids and weights.

    Parameters
    ----------
    grad_sums, grad_masses : torch.Tensor
        With respect to its results.
    query, centroids, weights, launch
        Its arguments.
    lse : torch.Tensor
        Its third result.
    weights_too : bool
        Whether the last gradient is wanted.

    Returns
    -------
    tuple[torch.Tensor, torch.Tensor, torch.Tensor]
        Of the arguments' shapes; the last is empty where it is not wanted.
    """
    kernel = _Kernel("assignment_backward", query, centroids.shape[1], launch)
    inner = _vector(query) if weights_too or not kernel.fused else None
    grad_query, grad_centroids = _like_points(query), kernel.partial_sums(kernel.dim)
    _assignment_backward(
        kernel,
        {
            "query": query,
            "centroids": _centroids(centroids, query),
            "upstream": None,
            "factor": grad_sums,
            "grad_masses": grad_masses,
            "weights": _weights(weights, kernel.heads),
            "logsumexp": lse,
            "inner": inner,
            "grad_query": grad_query,
        },
        grad_centroids,
        None,
    )
    return (
        grad_query,
        grad_centroids.sum((0, 1)).to(centroids.dtype),
        inner.sum(1).to(weights.dtype) if weights_too else query.new_empty(0),
    )


def _assignment_backward(
    kernel: _Kernel, arguments: dict, grad_centroids: Tensor, grad_factor: Tensor | None
) -> None:
    if not kernel.fused:
        points = _Kernel("assignment_backward_points", kernel.query, kernel.clusters, kernel.launch)
        points(**arguments)
    kernel(
        **arguments,
        grad_centroids=grad_centroids.flatten(0, 1),
        grad_factor=None if grad_factor is None else grad_factor.flatten(0, 1),
    )


def attend(
    cluster_queries: Tensor, key: Tensor, value: Tensor, weights: Tensor | None, launch=run
) -> tuple[Tensor, Tensor]:
    r"""Attend from the clusters to the points (eq. 15).

    Parameters
    ----------
    cluster_queries : torch.Tensor
        Shape :math:`(B, H, K_c, D)`.
    key, value : torch.Tensor
        Shape :math:`(B, H, N, D)`.
    weights : torch.Tensor, optional
        Shape :math:`(B, N)`.
    launch : Callable, optional
        In the place of :func:`run`.

    Returns
    -------
    tuple[torch.Tensor, torch.Tensor]
        Cluster values :math:`(B, H, K_c, D)` and the logsumexp of their logits
        :math:`(B, H, K_c, 1)`, of float32.
    """
    kernel = _Kernel("attend", key, cluster_queries.shape[2], launch)
    values, lse = kernel.partial_sums(kernel.dim), kernel.partial_sums(1)
    kernel(
        cluster_queries=cluster_queries,
        key=key,
        value=value,
        weights=_weights(weights, kernel.heads),
        values=values.flatten(0, 1),
        logsumexp=lse.flatten(0, 1),
        scale=1 / math.sqrt(kernel.dim),
    )
    merged, merged_lse = torch.empty_like(values[0]), torch.empty_like(lse[0])
    launch(
        kernels.merge_kernel,
        (merged_lse.numel(), 1),
        sizes.MERGE,
        {
            "partial_values": values,
            "partial_logsumexp": lse,
            "values": merged,
            "logsumexp": merged_lse,
            "splits": kernel.cut.splits,
            "D": kernel.dim,
            "WIDTH": sizes.power_of_two(kernel.dim),
            "SPLITS": sizes.MERGE.points,
        },
    )
    return merged, merged_lse


def attend_backward(
    grad_values: Tensor,
    grad_logsumexp: Tensor,
    cluster_queries: Tensor,
    key: Tensor,
    value: Tensor,
    weights: Tensor | None,
    values: Tensor,
    lse: Tensor,
    weights_too: bool,
    launch=run,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    r"""Gradients of :func:`attend` with respect to cluster queries, key, value and weights.

    Parameters
    ----------
    grad_values, grad_logsumexp : torch.Tensor
        With respect to its results.
    cluster_queries, key, value, weights, launch
        Its arguments.
    values, lse : torch.Tensor
        Its results.
    weights_too : bool
        Whether the last gradient is wanted.

    Returns
    -------
    tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]
        Of the arguments' shapes; the last is empty where it is not wanted.
    """
    kernel = _Kernel("attend_backward", key, cluster_queries.shape[2], launch)
    grad_cluster_queries = kernel.partial_sums(kernel.dim)
    grad_key, grad_value = _like_points(key), _like_points(value)
    grad_weights = _vector(key) if weights_too else None
    offsets = None if kernel.fused else torch.empty_like(lse)
    arguments = {
        "cluster_queries": cluster_queries,
        "key": key,
        "value": value,
        "weights": _weights(weights, kernel.heads),
        "logsumexp": lse,
        "grad_values": grad_values,
        "offsets": offsets,
        "grad_key": grad_key,
        "grad_value": grad_value,
        "grad_weights": grad_weights,
        "scale": 1 / math.sqrt(kernel.dim),
    }
    kernel(
        **arguments,
        values=values,
        grad_logsumexp=grad_logsumexp,
        grad_cluster_queries=grad_cluster_queries.flatten(0, 1),
    )
    if not kernel.fused:
        _Kernel("attend_backward_points", key, kernel.clusters, launch)(**arguments)
    return (
        grad_cluster_queries.sum(0).to(cluster_queries.dtype),
        grad_key,
        grad_value,
        grad_weights.sum(1).to(weights.dtype) if weights_too else key.new_empty(0),
    )


def dispatch(
    query: Tensor, centroids: Tensor, cluster_values: Tensor, lse: Tensor, launch=run
) -> Tensor:
    r"""Bring the clusters' values back to the points (eq. 16).

    Parameters
    ----------
    query, centroids, launch
        As in :func:`aggregate`.
    cluster_values : torch.Tensor
        Shape :math:`(B, H, K_c, D)`.
    lse : torch.Tensor
        The points' logsumexp, :math:`(B, H, N)`.

    Returns
    -------
    torch.Tensor
        Shape :math:`(B, H, N, D)`.
    """
    out = _like_points(query)
    _Kernel("dispatch", query, centroids.shape[1], launch)(
        query=query,
        centroids=_centroids(centroids, query),
        cluster_values=cluster_values,
        logsumexp=lse,
        out=out,
    )
    return out


def dispatch_backward(
    grad: Tensor,
    query: Tensor,
    centroids: Tensor,
    cluster_values: Tensor,
    lse: Tensor,
    launch=run,
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Gradients of :func:`dispatch` with respect to query, centroids and cluster values.

    Parameters
    ----------
    grad : torch.Tensor
        With respect to its result.
    query, centroids, cluster_values, lse, launch
        Its arguments.

    Returns
    -------
    tuple[torch.Tensor, torch.Tensor, torch.Tensor]
        Of the arguments' shapes.
    """
    kernel = _Kernel("assignment_backward", query, centroids.shape[1], launch)
    grad_query = _like_points(query)
    grad_centroids, grad_values = (kernel.partial_sums(kernel.dim) for _ in range(2))
    _assignment_backward(
        kernel,
        {
            "query": query,
            "centroids": _centroids(centroids, query),
            "upstream": grad,
            "factor": cluster_values,
            "grad_masses": None,
            "weights": None,
            "logsumexp": lse,
            "inner": None if kernel.fused else _vector(query),
            "grad_query": grad_query,
        },
        grad_centroids,
        grad_values,
    )
    return (
        grad_query,
        grad_centroids.sum((0, 1)).to(centroids.dtype),
        grad_values.sum(0).to(cluster_values.dtype),
    )
