# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""The Navier-Stokes benchmark's figures: vorticity, frame by frame."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from physicsnemo_cano.recipe import Results
from physicsnemo_cano.visualization import draw_summary, error_in_time, save, time_strips

FIRST = 11  # time of the first predicted frame
FRAMES = {frame: f"t = {FIRST + frame}" for frame in (0, 3, 6, 9)}


def draw(results: Results, folder: Path) -> None:
    """Draw all figures into a folder."""
    for title, index in (("median", results.median), ("worst", results.worst)):
        frames = vorticity_frames(results, index)
        frames.suptitle(f"relative L2 error {results.errors[index]:.4f}, {title} of the test set")
        save(frames, folder / f"vorticity_{title}.png")
    times = np.arange(FIRST, FIRST + results.frame_errors().shape[1])
    save(error_in_time(results, times, "t"), folder / "error_in_time.png")
    draw_summary(results, folder)


def vorticity_frames(results: Results, index: int) -> Figure:
    """Solution, prediction and their difference, a column a time."""
    return time_strips(
        results.field(index, "embedding"),
        results.field(index, "target"),
        results.shaped(results.predictions[index]),
        frames=FRAMES,
        coordinates=results.reader.coordinates,
        titles=("Navier-Stokes", results.metrics["model"]),
    )
