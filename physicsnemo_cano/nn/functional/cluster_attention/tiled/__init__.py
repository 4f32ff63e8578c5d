# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
r"""The whole layer on a CPU, a tile of points at a time in both directions.

| module | what it is |
| --- | --- |
| ``layer`` | the function, and its derivatives in autograd |
| ``workspace`` | the table of all buffers: shape, who writes and reads each, what it holds |
| ``base`` | what the passes of both directions share |
| ``forward`` | aggregate, attend and dispatch |
| ``backward`` | their gradients, in the reverse order |
"""

from .layer import tiled_layer

__all__ = ["tiled_layer"]
