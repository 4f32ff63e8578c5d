# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""The Navier-Stokes benchmark's figures: vorticity, frame by frame."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from physicsnemo_cano.recipe import Results
from physicsnemo_cano.visualization import (
    draw_summary,
    figure,
    save,
    show_field,
    symmetric_limits,
)
from physicsnemo_cano.visualization.style import MODEL, MUTED, label, plain

FIRST = 11  # time of the first predicted frame
FRAMES = (0, 3, 6, 9)


def draw(results: Results, folder: Path) -> None:
    """Draw all figures into a folder."""
    for title, index in (("median", results.median), ("worst", results.worst)):
        frames = vorticity_frames(results, index)
        frames.suptitle(f"relative L2 error {results.errors[index]:.4f}, {title} of the test set")
        save(frames, folder / f"vorticity_{title}.png")
    save(error_in_time(results), folder / "error_in_time.png")
    draw_summary(results, folder)


def vorticity_frames(results: Results, index: int) -> Figure:
    """Solution, prediction and their difference, a column a time.

    Solution and prediction share one scale over all times, the differences another.
    """
    points, truth = results.field(index, "embedding"), results.field(index, "target")
    prediction = results.shaped(results.predictions[index])
    difference = prediction - truth
    drawing, panels = figure(3, len(FRAMES), size=(2.6, 2.5), sharex=True, sharey=True)
    rows = (
        ("Navier-Stokes", truth, symmetric_limits(truth)),
        (results.metrics["model"], prediction, symmetric_limits(truth)),
        ("difference", difference, symmetric_limits(difference)),
    )
    for (name, field, limits), axes in zip(rows, panels, strict=True):
        for panel, frame in zip(axes, FRAMES, strict=True):
            image = show_field(panel, points, field[..., frame], cmap="RdBu_r", limits=limits)
            label(panel, results.reader.coordinates)
            panel.label_outer()
        axes[0].set_ylabel(f"{name}\n{axes[0].get_ylabel()}")
        drawing.colorbar(image, ax=axes.tolist(), pad=0.01, extend="both")
    for panel, frame in zip(panels[0], FRAMES, strict=True):
        panel.set_title(f"t = {FIRST + frame}", fontsize=10)
    return drawing


def error_in_time(results: Results) -> Figure:
    """Relative L2 error of every frame: the mean and the middle 80 % of the test set.

    Beside it the error of repeating the last input frame.
    """
    errors, repeated = results.frame_errors(), []
    for index in range(len(errors)):
        sample, _ = results.reader[index]
        truth, last = sample["target"].numpy(), sample["fx"].numpy()[:, -1:]
        repeated.append(np.linalg.norm(last - truth, axis=0) / np.linalg.norm(truth, axis=0))
    times = np.arange(FIRST, FIRST + errors.shape[1])
    drawing, ((axes,),) = figure(size=(6.0, 4.0))
    low, high = np.quantile(errors, (0.1, 0.9), axis=0)
    axes.fill_between(times, low, high, color=MODEL, alpha=0.2, linewidth=0)
    axes.plot(times, np.mean(errors, 0), color=MODEL, label=f"{results.metrics['model']}, mean")
    axes.plot(times, np.mean(repeated, 0), color=MUTED, linestyle=":", label="last input frame")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("t")
    axes.set_ylabel("relative L2 error of the frame")
    axes.legend(frameon=False)
    plain(axes)
    return drawing
