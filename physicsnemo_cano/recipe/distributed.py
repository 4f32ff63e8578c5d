# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Processes: starting them, their seeds, collecting results."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator

import numpy as np
import torch
from physicsnemo.distributed import DistributedManager
from physicsnemo.utils.logging import PythonLogger, RankZeroLoggingWrapper


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
    """Print a line, once for all processes.

    Parameters
    ----------
    message : str
        Of one line or more.
    """
    RankZeroLoggingWrapper(PythonLogger("cano"), DistributedManager()).log(message)


def gather(items: list) -> list:
    """Collect what all processes have, on every process.

    Parameters
    ----------
    items : list
        Of this process; anything that can be pickled.

    Returns
    -------
    list
        Of all, in order of rank.
    """
    if not torch.distributed.is_initialized():
        return items
    parts: list[list] = [[] for _ in range(torch.distributed.get_world_size())]
    torch.distributed.all_gather_object(parts, items)
    return [item for part in parts for item in part]


@contextlib.contextmanager
def rank_zero_first() -> Iterator[None]:
    """Let rank 0 finish a block before the others enter it.

    Yields
    ------
    None
    """
    group = torch.distributed.is_initialized()
    first = not group or torch.distributed.get_rank() == 0
    if not first:
        torch.distributed.barrier()
    yield
    if first and group:
        torch.distributed.barrier()


def derive_seed(*coordinates: int) -> int:
    """Mix integers, such as seed and epoch, into one seed.

    Parameters
    ----------
    *coordinates : int
        Not negative; their order counts.

    Returns
    -------
    int
        Below 2**32.
    """
    return int(np.random.SeedSequence(coordinates).generate_state(1)[0])
