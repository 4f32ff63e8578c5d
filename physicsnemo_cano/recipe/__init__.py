# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""The recipe that every example runs, and that any reader can run."""

from physicsnemo_cano.recipe.config import Recipe, build_model, open_reader
from physicsnemo_cano.recipe.report import Results
from physicsnemo_cano.recipe.runs import run

__all__ = ["Recipe", "Results", "build_model", "open_reader", "run"]
