# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
"""Cluster attention: the mathematics of CANO (arXiv 2609.39914, eq. 13 to 16).

| module | what it is |
| --- | --- |
| ``function`` | the public function: checks, weights, the choice, the projections |
| ``choice`` | which implementation runs, and every size limit with its measurement |
| ``weights`` | quadrature weights and masks, prepared and checked |
| ``reference`` | the specification: an equation a line |
| ``passes`` | aggregation, attention and dispatch in plain torch, on every device |
| ``streaming`` | chunks of points, or points of several processes, merged exactly |
| ``tiled`` | projections included, a tile of points at a time in the cache of a CPU |
| ``triton`` | the passes as kernels for NVIDIA GPUs |

Needs torch alone.
"""

from .choice import IMPLEMENTATIONS
from .function import Projection, cluster_attention
from .reference import cluster_attention_reference
from .weights import PointWeights, prepare_weights

__all__ = [
    "IMPLEMENTATIONS",
    "PointWeights",
    "Projection",
    "cluster_attention",
    "cluster_attention_reference",
    "prepare_weights",
]
