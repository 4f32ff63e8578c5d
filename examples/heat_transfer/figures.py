# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""The heat transfer benchmark's figures: each field along the rollout, and how its error grows."""

from pathlib import Path

from physicsnemo_cano.recipe import Results
from physicsnemo_cano.visualization import draw_rollout


def draw(results: Results, folder: Path) -> None:
    """Draw all figures into a folder."""
    draw_rollout(results, folder, steps=(1, 25, 50), triangles=results.reader.cells)
