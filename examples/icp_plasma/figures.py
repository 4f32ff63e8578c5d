# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""The ICP plasma benchmark's figures: each field along the rollout, and how its error grows."""

from pathlib import Path

import numpy as np

from physicsnemo_cano.recipe import Results
from physicsnemo_cano.visualization import draw_summary, error_in_time, save, time_strips

STEPS = (1, 25, 50)


def draw(results: Results, folder: Path) -> None:
    """Draw all figures into a folder."""
    n_steps = results.frame_errors().shape[1]
    frames = {step - 1: f"step +{step}" for step in STEPS if step <= n_steps}
    channels = results.reader.targets
    for title, index in (("median", results.median), ("worst", results.worst)):
        target, prediction = results.field(index, "target"), results.predictions[index]
        for k, (channel, name) in enumerate(zip(channels, results.reader.datasets, strict=True)):
            strips = time_strips(
                results.field(index, "embedding"),
                target[:, k :: len(channels)],
                prediction[:, k :: len(channels)],
                frames=frames,
                coordinates=results.reader.coordinates,
                titles=("reference", results.metrics["model"]),
                triangles=results.reader.cells(index),
            )
            strips.suptitle(
                f"{channel}; of all fields, relative L2 error {results.errors[index]:.4f}, "
                f"{title} of the test set"
            )
            save(strips, folder / f"{name}_{title}.png")
    save(error_in_time(results, np.arange(1, n_steps + 1), "step"), folder / "error_in_time.png")
    draw_summary(results, folder)
