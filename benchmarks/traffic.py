# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

r"""Bytes through collectives."""

from __future__ import annotations

from collections import Counter

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Traffic(TorchDispatchMode):
    r"""Within, counts the bytes that this process hands to each collective, by its name."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        r"""Count and go on."""
        if func.namespace in ("c10d", "_c10d_functional"):
            name = func._schema.name.partition("::")[2]
            sent = args[1] if name == "alltoall_base_" else args[0]  # its output comes first
            tensors = (t for t in tree_leaves(sent) if isinstance(t, torch.Tensor))
            self.bytes[name] += sum(t.nbytes for t in tensors)
        return func(*args, **(kwargs or {}))
