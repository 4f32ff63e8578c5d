# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
r"""Cluster attention in Triton kernels: three passes over the points, whatever their number."""

from .operators import aggregate, attend, dispatch
from .sizes import supports

__all__ = ["aggregate", "attend", "dispatch", "supports"]
