# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""The Cluster Attention Neural Operator (CANO, arXiv 2609.39914) for NVIDIA PhysicsNeMo."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .models.cano import CANO
    from .nn.module.cluster_attention import ClusterAttention

__version__ = "0.1.0"
__all__ = ["CANO", "ClusterAttention", "__version__"]

_MODULES = {"CANO": ".models.cano", "ClusterAttention": ".nn.module.cluster_attention"}


def __getattr__(name: str):
    # Lazy, so that nn.functional imports where only torch is installed.
    if name in _MODULES:
        return getattr(import_module(_MODULES[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
