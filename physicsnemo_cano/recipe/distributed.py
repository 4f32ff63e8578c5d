# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Processes: starting them, sharing out samples, collecting results."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator

import numpy as np
import torch
from physicsnemo.distributed import DistributedManager
from physicsnemo.utils.logging import PythonLogger, RankZeroLoggingWrapper
from torch.utils.data import Sampler


def initialize() -> DistributedManager:
    """Join the process group, if there is one, and say which device is this process's.

    Returns
    -------
    DistributedManager
        PhysicsNeMo's, with rank, world size and device.
    """
    if not DistributedManager.is_initialized():
        with warnings.catch_warnings():
            # A single process is a normal way to run, nothing to warn about.
            warnings.filterwarnings("ignore", message="Could not initialize using")
            try:
                DistributedManager.initialize()
            except ValueError:
                # Without a GPU, PhysicsNeMo 2.2 hands torch the CPU as an accelerator, which it
                # refuses. Rank and device are set by then; only the group is left to make.
                if torch.cuda.is_available():
                    raise
                torch.distributed.init_process_group("gloo")
    return DistributedManager()


def say(message: str) -> None:
    """Print a line, once for all processes."""
    RankZeroLoggingWrapper(PythonLogger("cano"), DistributedManager()).log(message)


def gather(items: list) -> list:
    """Items of all processes, in order of rank, on every process."""
    if not torch.distributed.is_initialized():
        return items
    parts: list[list] = [[] for _ in range(torch.distributed.get_world_size())]
    torch.distributed.all_gather_object(parts, items)
    return [item for part in parts for item in part]


@contextlib.contextmanager
def rank_zero_first() -> Iterator[None]:
    """Let rank 0 finish a block before the others enter it."""
    group = torch.distributed.is_initialized()
    first = not group or torch.distributed.get_rank() == 0
    if not first:
        torch.distributed.barrier()
    yield
    if first and group:
        torch.distributed.barrier()


def derive_seed(*coordinates: int) -> int:
    """Mix integers, such as seed and epoch, into one seed."""
    return int(np.random.SeedSequence(coordinates).generate_state(1)[0])


class SharedBatches(Sampler[int]):
    """One process's share of every global batch, in an order set by seed and epoch.

    Process r takes every ``world_size``-th sample of each global batch, starting from the r-th,
    so the batches are the same however many processes share them. Shares may differ in size;
    :meth:`weight` makes the average over processes, which is what data-parallel training forms
    of the gradients, exactly the mean over the global batch.

    Parameters
    ----------
    n_samples : int
        Size of the training set.
    batch_size : int
        Samples a step, all processes together.
    seed : int
        With the epoch, it sets the order.
    rank, world_size : int
        This process and their number.

    Raises
    ------
    ValueError
        If a batch has fewer samples than there are processes.
    """

    def __init__(
        self, n_samples: int, batch_size: int, seed: int, rank: int = 0, world_size: int = 1
    ) -> None:
        if batch_size < world_size:
            raise ValueError(
                f"training.batch_size={batch_size} counts the samples of all processes together "
                f"and must be at least their number, {world_size}"
            )
        self.n_samples, self.batch_size, self.seed = n_samples, batch_size, seed
        self.rank, self.world_size = rank, world_size
        self.epoch = 0

    @property
    def local_batch_size(self) -> int:
        """Samples of a full batch that fall to this process."""
        return len(range(self.rank, self.batch_size, self.world_size))

    @property
    def n_steps(self) -> int:
        """Global batches an epoch; the last may be smaller."""
        return -(-self.n_samples // self.batch_size)

    def set_epoch(self, epoch: int) -> None:
        """Choose the order; called by PhysicsNeMo's DataLoader."""
        self.epoch = epoch

    def _share(self, batch: list[int]) -> list[int]:
        # Where the last batch has nothing for a process, it still computes one sample, with
        # weight 0: in data-parallel training every process must take part in every step.
        return batch[self.rank :: self.world_size] or batch[:1]

    def __iter__(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed(derive_seed(self.seed, self.epoch))
        order = torch.randperm(self.n_samples, generator=generator).tolist()
        for start in range(0, self.n_samples, self.batch_size):
            yield from self._share(order[start : start + self.batch_size])

    def __len__(self) -> int:
        starts = range(0, self.n_samples, self.batch_size)
        return sum(len(self._share(list(range(self._size(i))))) for i in range(len(starts)))

    def _size(self, step: int) -> int:
        return min(self.batch_size, self.n_samples - step * self.batch_size)

    def weight(self, step: int) -> float:
        """Factor of this process's sum of sample losses in a step; see the class."""
        size = self._size(step)
        return self.world_size / size if self.rank < size else 0.0
