# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
r"""The operators that a computation calls, on any device; on ``meta`` nothing is computed.

In eager execution on a GPU each of them but a view is a launch or a few.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Operations(TorchDispatchMode):
    r"""Within, notes each call of an aten or custom operator below autograd, views left out.

    Parameters
    ----------
    note : Callable
        Makes, of the operator, its arguments, its keyword arguments and its result, what
        ``calls`` lists. It must not keep the tensors: autograd copies gradients that others hold.
    """

    def __init__(self, note: Callable[[torch._ops.OpOverload, tuple, dict, Any], Any]) -> None:
        super().__init__()
        self.note = note
        self.calls: list[Any] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        r"""Note and go on."""
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        # _unsafe_view is a view of something that nobody else uses.
        if not func.is_view and func is not torch.ops.aten._unsafe_view.default:
            self.calls.append(self.note(func, args, kwargs, result))
        return result


def count_operations(function: Callable[[], Any]) -> int:
    r"""How many operators ``function()`` calls, views left out.

    Parameters
    ----------
    function : Callable
        Without arguments; its tensors may lie on any device.

    Returns
    -------
    int
        Calls, each operator as often as it is called.
    """
    with Operations(lambda operator, *_: operator.name()) as operations:
        function()
    return len(operations.calls)
