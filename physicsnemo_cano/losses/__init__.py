# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Losses: pure functions of tensors, one value a sample, and their names."""

from physicsnemo_cano.losses.fields import field_errors, fields_of
from physicsnemo_cano.losses.gradient import gradient_error
from physicsnemo_cano.losses.pointwise import mae, max_error, mse
from physicsnemo_cano.losses.relative_l2 import relative_l2

#: What ``training.loss`` and ``metrics`` choose from.
LOSSES = {"relative_l2": relative_l2, "mse": mse, "mae": mae, "max_error": max_error}

__all__ = [
    "LOSSES",
    "field_errors",
    "fields_of",
    "gradient_error",
    "mae",
    "max_error",
    "mse",
    "relative_l2",
]
