r"""One sample's points spread over processes: all that the layers know of ranks.

Within :func:`spread_points` tensors of points hold this process's share of them, and the functions
here complete what needs the others: sums over all points, and neighbours on a grid. Elsewhere
they give back what they are given. Gradients are those of the sum of what all processes compute.
Needs torch alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor


class _Spread(NamedTuple):
    group: dist.ProcessGroup
    axis: int
    sizes: tuple[int, ...]

    @property
    def rank(self) -> int:
        return dist.get_rank(self.group)


_spread: _Spread | None = None


@contextlib.contextmanager
def spread_points(group: dist.ProcessGroup, axis: int, sizes: Sequence[int]) -> Iterator[None]:
    r"""Within, every process of a group computes on its share of the points.

    The forward pass belongs inside; the backward pass may come later.

    Parameters
    ----------
    group : torch.distributed.ProcessGroup
        Every one of its processes must enter.
    axis : int
        The axis of the grid that is cut; 0 for clouds.
    sizes : Sequence[int]
        How many points along that axis each process has, in order of rank.

    Raises
    ------
    ValueError
        If a process has no points.
    """
    global _spread
    if min(sizes) < 1:
        raise ValueError(f"every process must hold at least one point, got {tuple(sizes)}")
    before, _spread = _spread, _Spread(group, axis, tuple(sizes))
    try:
        yield
    finally:
        _spread = before


def is_spread(axis: int | None = None) -> bool:
    r"""Whether the points are spread over processes, along an axis of the grid if one is given."""
    return _spread is not None and axis in (None, _spread.axis)


def total(tensor: Tensor) -> Tensor:
    r"""Sum over the processes."""
    return tensor if _spread is None else _Total.apply(tensor, _spread.group)


def largest(tensor: Tensor) -> Tensor:
    r"""Element-wise maximum over the processes, without gradient."""
    if _spread is None:
        return tensor
    tensor = tensor.detach().clone(memory_format=torch.contiguous_format)
    dist.all_reduce(tensor, dist.ReduceOp.MAX, _spread.group)
    return tensor


def shared(*named: dict[str, Tensor]) -> list[dict[str, Tensor]]:
    r"""What every process has a copy of, such as parameters: its gradients are to be summed.

    One collective sums them all, at the end of the backward pass.

    Parameters
    ----------
    *named : dict[str, torch.Tensor]
        In the same order on every process.
    """
    named = [dict(tensors) for tensors in named]
    places = [(d, name) for d in named for name, tensor in d.items() if tensor.requires_grad]
    if _spread is not None and places:
        copies = _Shared.apply(_spread.group, *(d[name] for d, name in places))
        for (d, name), copy in zip(places, copies, strict=True):
            d[name] = copy
    return named


def whole_count(points: int) -> int:
    r"""Number of points of all processes where this one has ``points``."""
    return points if _spread is None else points // _own_size() * sum(_spread.sizes)


def whole_shape(shape: Sequence[int]) -> tuple[int, ...]:
    r"""Shape of the whole grid from that of this process's share."""
    if _spread is None:
        return tuple(shape)
    return (*shape[: _spread.axis], sum(_spread.sizes), *shape[_spread.axis + 1 :])


def own_lines(lines: Sequence[Tensor]) -> list[Tensor]:
    r"""This process's share of the coordinates along each axis of the whole grid."""
    lines = list(lines)
    if _spread is not None:
        start = sum(_spread.sizes[: _spread.rank])
        lines[_spread.axis] = lines[_spread.axis].narrow(0, start, _own_size())
    return lines


def neighbours(x: Tensor, dim: int, reach: int, periodic: bool) -> tuple[Tensor, Tensor]:
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
    if min(_spread.sizes) < reach:
        raise ValueError(
            f"a convolution that reaches {reach} points needs as many on every process along the "
            f"axis that is cut, got {_spread.sizes}"
        )
    first, last = x.narrow(dim, 0, reach), x.narrow(dim, x.shape[dim] - reach, reach)
    return _shift(last, dim, 1, periodic), _shift(first, dim, -1, periodic)


def _own_size() -> int:
    return _spread.sizes[_spread.rank]


def _shift(lines: Tensor, dim: int, step: int, periodic: bool) -> Tensor:
    r"""Send lines ``step`` ranks on; return those received, none from beyond the ends."""
    size, rank, n = len(_spread.sizes), _spread.rank, lines.shape[dim]
    to, source = (r % size if periodic else r for r in (rank + step, rank - step))
    sent, received = ([n * (r == peer) for r in range(size)] for peer in (to, source))
    lines = lines.movedim(dim, 0)[: sum(sent)]
    return _Exchange.apply(lines, sent, received, _spread.group).movedim(0, dim)


class _Total(torch.autograd.Function):
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
        return _Total.apply(grad, ctx.group), None


class _Exchange(torch.autograd.Function):
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
        return _Exchange.apply(grad, ctx.received, ctx.sent, ctx.group), None, None, None


class _Shared(torch.autograd.Function):
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
        summed = _Total.apply(flat, ctx.group).split([grads[i].numel() for i in used])
        grads = list(grads)
        for i, part in zip(used, summed, strict=True):
            grads[i] = part.view_as(grads[i]).to(grads[i].dtype)
        return None, *grads
