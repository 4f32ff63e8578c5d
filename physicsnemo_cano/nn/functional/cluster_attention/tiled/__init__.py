# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
r"""The whole layer on a CPU, a tile of points at a time in both directions."""

from .layer import tiled_layer

__all__ = ["tiled_layer"]
