# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
"""Layers."""

from .cluster_attention import ClusterAttention
from .grid_convolution import GridConvolution

__all__ = ["ClusterAttention", "GridConvolution"]
