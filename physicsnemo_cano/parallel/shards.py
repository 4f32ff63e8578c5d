# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
r"""Who has which of one sample's points, and what completes a process's share of them.

Layers take a :class:`Shards` and call it where they need all points: sums over points, and the
neighbours of a share on a grid (halo exchange). Where one process has all points there is nothing
to complete. Gradients are those of the sum of what all processes compute. Needs torch alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor


class Shards:
    r"""All points are here: every method gives back what it is given."""

    is_shared = False
    """Whether other processes have points of the sample."""

    def is_cut(self, axis: int) -> bool:
        r"""Whether the grid is cut along an axis.

        Parameters
        ----------
        axis : int
            Of the grid, from 0.

        Returns
        -------
        bool
        """
        return False

    def sum(self, tensor: Tensor) -> Tensor:
        r"""Sum over the processes (all-reduce).

        Parameters
        ----------
        tensor : torch.Tensor
            Of the same shape on every process.

        Returns
        -------
        torch.Tensor
            Of the same shape; its gradient is summed likewise.
        """
        return tensor

    def maximum(self, tensor: Tensor) -> Tensor:
        r"""Element-wise maximum over the processes, without gradient.

        Parameters
        ----------
        tensor : torch.Tensor
            Of the same shape on every process.

        Returns
        -------
        torch.Tensor
            Of the same shape.
        """
        return tensor

    def n_points(self, own: int) -> int:
        r"""Number of points of all processes.

        Parameters
        ----------
        own : int
            Those of this process.

        Returns
        -------
        int
        """
        return own

    def grid_shape(self, own: Sequence[int]) -> tuple[int, ...]:
        r"""Shape of the whole grid.

        Parameters
        ----------
        own : Sequence[int]
            That of this process's share.

        Returns
        -------
        tuple[int, ...]
        """
        return tuple(own)

    def own_lines(self, lines: Sequence[Tensor]) -> list[Tensor]:
        r"""This process's share of the coordinates along each axis of the whole grid.

        Parameters
        ----------
        lines : Sequence[torch.Tensor]
            Coordinates along each axis of the whole grid, each :math:`(n_i,)`.

        Returns
        -------
        list[torch.Tensor]
            Views; shorter along the axis that is cut.
        """
        return list(lines)


ALL_POINTS = Shards()


class ProcessShards(Shards):
    r"""Every process of a group has a share of the points.

    Parameters
    ----------
    group : torch.distributed.ProcessGroup
        Every one of its processes must make the same calls.
    axis : int
        The axis of the grid that is cut; 0 for clouds.
    sizes : Sequence[int]
        How many points along that axis each process has, in order of rank.

    Raises
    ------
    ValueError
        If a process has no points.
    """

    is_shared = True

    def __init__(self, group: dist.ProcessGroup, axis: int, sizes: Sequence[int]) -> None:
        if min(sizes) < 1:
            raise ValueError(f"every process must hold at least one point, got {tuple(sizes)}")
        self.group, self.axis, self.sizes = group, axis, tuple(sizes)
        self.rank = dist.get_rank(group)

    def is_cut(self, axis: int) -> bool:
        r"""Whether the grid is cut along an axis."""
        return axis == self.axis

    def sum(self, tensor: Tensor) -> Tensor:
        r"""Sum over the processes (all-reduce)."""
        return _AllReduce.apply(tensor, self.group)

    def maximum(self, tensor: Tensor) -> Tensor:
        r"""Element-wise maximum over the processes, without gradient."""
        tensor = tensor.detach().clone(memory_format=torch.contiguous_format)
        dist.all_reduce(tensor, dist.ReduceOp.MAX, self.group)
        return tensor

    def n_points(self, own: int) -> int:
        r"""Number of points of all processes where this one has ``own``."""
        return own // self.sizes[self.rank] * sum(self.sizes)

    def grid_shape(self, own: Sequence[int]) -> tuple[int, ...]:
        r"""Shape of the whole grid from that of this process's share."""
        return (*own[: self.axis], sum(self.sizes), *own[self.axis + 1 :])

    def own_lines(self, lines: Sequence[Tensor]) -> list[Tensor]:
        r"""This process's share of the coordinates along each axis of the whole grid."""
        lines, start = list(lines), sum(self.sizes[: self.rank])
        lines[self.axis] = lines[self.axis].narrow(0, start, self.sizes[self.rank])
        return lines

    def halo(self, x: Tensor, dim: int, reach: int, periodic: bool) -> tuple[Tensor, Tensor]:
        r"""Grid lines of the processes before and after this one along the axis that is cut.

        Parameters
        ----------
        x : torch.Tensor
            This process's share.
        dim : int
            Its dimension that is cut.
        reach : int
            How many lines.
        periodic : bool
            Whether the last process comes before the first.

        Returns
        -------
        tuple[torch.Tensor, torch.Tensor]
            ``reach`` lines each, or none beyond an end. Use them in either case: the gradient of
            every process goes through the same exchange.

        Raises
        ------
        ValueError
            If a process has fewer lines than are wanted of it.
        """
        if min(self.sizes) < reach:
            raise ValueError(
                f"a convolution that reaches {reach} points needs as many on every process along "
                f"the axis that is cut, got {self.sizes}"
            )
        first, last = x.narrow(dim, 0, reach), x.narrow(dim, x.shape[dim] - reach, reach)
        return self._shift(last, dim, 1, periodic), self._shift(first, dim, -1, periodic)

    def _shift(self, lines: Tensor, dim: int, step: int, periodic: bool) -> Tensor:
        r"""Send lines ``step`` ranks on; return those received, none from beyond the ends."""
        size, n = len(self.sizes), lines.shape[dim]
        to, source = (r % size if periodic else r for r in (self.rank + step, self.rank - step))
        sent, received = ([n * (r == peer) for r in range(size)] for peer in (to, source))
        lines = lines.movedim(dim, 0)[: sum(sent)]
        return _AllToAll.apply(lines, sent, received, self.group).movedim(0, dim)

    def replicated(self, *named: dict[str, Tensor]) -> list[dict[str, Tensor]]:
        r"""What every process has a copy of, such as parameters: its gradients are to be summed.

        One all-reduce sums them all, at the end of the backward pass.

        Parameters
        ----------
        *named : dict[str, torch.Tensor]
            In the same order on every process.

        Returns
        -------
        list[dict[str, torch.Tensor]]
            The same tensors, to be used in their place.
        """
        named = [dict(tensors) for tensors in named]
        places = [(d, name) for d in named for name, tensor in d.items() if tensor.requires_grad]
        if places:
            copies = _Replicated.apply(self.group, *(d[name] for d, name in places))
            for (d, name), copy in zip(places, copies, strict=True):
                d[name] = copy
        return named


class _AllReduce(torch.autograd.Function):
    @staticmethod
    def forward(tensor, group):
        tensor = tensor.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(tensor, group=group)
        return tensor

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.group = inputs[1]

    @staticmethod
    def backward(ctx, grad):
        return _AllReduce.apply(grad, ctx.group), None


class _AllToAll(torch.autograd.Function):
    @staticmethod
    def forward(lines, sent, received, group):
        out = lines.new_empty(sum(received), *lines.shape[1:])
        dist.all_to_all_single(out, lines.contiguous(), received, sent, group)
        return out

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, ctx.sent, ctx.received, ctx.group = inputs

    @staticmethod
    def backward(ctx, grad):
        return _AllToAll.apply(grad, ctx.received, ctx.sent, ctx.group), None, None, None


class _Replicated(torch.autograd.Function):
    @staticmethod
    def forward(group, *tensors):
        return tuple(t.view_as(t) for t in tensors)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.group = inputs[0]
        ctx.set_materialize_grads(False)  # what is unused here is unused everywhere

    @staticmethod
    def backward(ctx, *grads):
        used = [i for i, grad in enumerate(grads) if grad is not None]
        flat = torch.cat([grads[i].flatten() for i in used])
        summed = _AllReduce.apply(flat, ctx.group).split([grads[i].numel() for i in used])
        grads = list(grads)
        for i, part in zip(used, summed, strict=True):
            grads[i] = part.view_as(grads[i]).to(grads[i].dtype)
        return None, *grads
