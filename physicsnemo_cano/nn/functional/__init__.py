# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
"""Functional cluster attention; needs torch alone."""

from .cluster_attention import cluster_attention

__all__ = ["cluster_attention"]
