# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
r"""CANO on PhysicsNeMo's ShardTensor: one sample's points spread over processes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from physicsnemo.domain_parallel import ShardTensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor
from torch.func import functional_call

from physicsnemo_cano.parallel.shards import ProcessShards


def register_handler(forward: Callable) -> None:
    r"""Have ``ShardTensor`` inputs of a forward pass handled by :func:`forward_on_shards`.

    Parameters
    ----------
    forward : callable
        ``CANO.forward``.
    """

    def handler(func, types, args, kwargs):
        return forward_on_shards(*args, **kwargs)

    ShardTensor.register_function_handler(forward, handler)


def forward_on_shards(
    model: torch.nn.Module,
    fx: torch.Tensor,
    embedding: torch.Tensor | None,
    time: torch.Tensor | None,
    mask: torch.Tensor | None,
    weights: torch.Tensor | None,
) -> ShardTensor:
    r"""Forward pass of a :class:`~physicsnemo_cano.CANO` whose inputs are cut along the points.

    Every process computes on its own points; the processes exchange sums over clusters and, on
    grids, the lines of points that a convolution reaches beyond a cut. The backward pass sums the
    gradients of the parameters over the processes: each gets those of the whole sample.

    Parameters
    ----------
    model : CANO
        With the same parameters on every process of the mesh.
    fx, embedding, mask, weights : torch.Tensor
        As in the model's forward pass, each a ``ShardTensor`` on one mesh of one dimension, all
        cut in the same places: clouds along the points, grids along one axis of their layout or,
        where they come as :math:`(B, N, C)`, into whole lines of the first axis. Shares may
        differ in size. Global inputs :math:`(B, 1, C)` are replicated, or plain tensors.
    time : torch.Tensor, optional
        Replicated, or a plain tensor.

    Returns
    -------
    ShardTensor
        The output, cut as the inputs.

    Raises
    ------
    ValueError
        If the inputs are cut otherwise, a process has no points, an input is not as the model's
        forward pass expects, or parameters are sharded.
    """
    # FSDP would gather a block's parameters later, past those whose gradients are summed here.
    if any(isinstance(parameter, DTensor) for parameter in model.parameters()):
        raise ValueError(
            "CANO expects whole parameters where its inputs are sharded, got DTensors: apply "
            "fully_shard to the model alone, not to its blocks"
        )
    inputs = {"fx": fx, "embedding": embedding, "mask": mask, "weights": weights, "time": time}
    inputs = {name: tensor for name, tensor in inputs.items() if tensor is not None}
    one_token = embedding is not None and math.prod(fx.shape[1:-1]) == 1
    pointwise = [name for name in inputs if name != "time" and not (name == "fx" and one_token)]
    lead = inputs[pointwise[0]]

    grid = model._grid(fx, embedding) or tuple(lead.shape[1:-1])
    cuts = {name: _cut(name, inputs[name], len(grid)) for name in pointwise}
    mesh, axis, counts = cut = cuts[pointwise[0]]
    if any(other != cut for other in cuts.values()):
        raise ValueError(f"CANO expects its inputs cut in the same places, got {_described(cuts)}")
    line = math.prod(grid) // grid[axis]
    if any(count % line for count in counts):
        raise ValueError(
            f"CANO expects a grid {grid} cut into whole lines of {line} points, got {counts}"
        )
    sizes = [count // line for count in counts]

    local = {
        name: t.to_local() if isinstance(t, (ShardTensor, DTensor)) else t
        for name, t in inputs.items()
    }
    layout = local[pointwise[0]].shape[:-1]
    share = (*grid[:axis], sizes[mesh.get_local_rank()], *grid[axis + 1 :])
    for name in ("fx", "embedding"):
        if name in pointwise:
            local[name] = local[name].flatten(1, -2).unflatten(1, share)

    shards = ProcessShards(mesh.get_group(), axis, sizes)
    copies = {name: local.pop(name) for name in inputs if name not in pointwise}
    parameters, copies = shards.replicated(dict(model.named_parameters()), copies)
    out = functional_call(model, parameters, kwargs=local | copies | {"shards": shards})
    out = out.reshape(*layout, out.shape[-1])
    shapes = [(*shape[:-1], out.shape[-1]) for shape in lead._spec.sharding_shapes(0)]
    return ShardTensor.from_local(out, mesh, lead.placements, sharding_shapes={0: shapes})


class _Cut(NamedTuple):
    mesh: DeviceMesh
    axis: int  # of the grid; 0 for clouds
    counts: tuple[int, ...]  # points of each process


def _cut(name: str, tensor: torch.Tensor, axes: int) -> _Cut:
    r"""Where an input of points is cut."""
    if not isinstance(tensor, ShardTensor):
        raise ValueError(
            f"CANO expects {name} as a ShardTensor like its other inputs, got a tensor"
        )
    ends = slice(1, tensor.ndim if name in ("mask", "weights") else -1)
    dims = range(tensor.ndim)[ends]
    cut = tensor.placements[0]
    if tensor.device_mesh.ndim != 1 or not cut.is_shard() or cut.dim not in dims:
        raise ValueError(
            f"CANO expects {name} sharded along its points on a mesh of one dimension, "
            f"got {tensor.placements} on {tensor.device_mesh}"
        )
    axis = cut.dim - 1 if len(dims) == axes else 0
    counts = tuple(math.prod(shape[ends]) for shape in tensor._spec.sharding_shapes(0))
    return _Cut(tensor.device_mesh, axis, counts)


def _described(cuts: dict[str, _Cut]) -> str:
    return "; ".join(f"{name} along axis {c.axis} into {c.counts}" for name, c in cuts.items())
