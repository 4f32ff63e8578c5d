# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""The unsteady heat set's figures: temperature along the rollout, and how its error grows."""

from pathlib import Path

import numpy as np

from physicsnemo_cano.recipe import Results
from physicsnemo_cano.visualization import draw_summary, error_in_time, save, time_strips

FRAMES = {step - 1: f"step +{step}" for step in (1, 25, 50)}


def draw(results: Results, folder: Path) -> None:
    """Draw all figures into a folder."""
    for title, index in (("median", results.median), ("worst", results.worst)):
        strips = time_strips(
            results.field(index, "embedding"),
            results.field(index, "target"),
            results.shaped(results.predictions[index]),
            frames=FRAMES,
            coordinates=results.reader.coordinates,
            titles=("reference", results.metrics["model"]),
        )
        strips.suptitle(f"relative L2 error {results.errors[index]:.4f}, {title} of the test set")
        save(strips, folder / f"temperature_{title}.png")
    steps = np.arange(1, results.frame_errors().shape[1] + 1)
    save(error_in_time(results, steps, "step", log=True), folder / "error_in_time.png")
    draw_summary(results, folder)
