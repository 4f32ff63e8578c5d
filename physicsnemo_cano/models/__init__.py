# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Models of physicsnemo-cano."""

from .cano import CANO

__all__ = ["CANO"]
