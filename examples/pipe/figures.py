# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""The pipe benchmark's figures: velocity in the bent pipe and over some of its sections."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from physicsnemo_cano.recipe import Results
from physicsnemo_cano.visualization import (
    draw_summary,
    field_comparison,
    figure,
    save,
)
from physicsnemo_cano.visualization.style import MODEL, MUTED, TRUTH, plain

SECTIONS = 5


def draw(results: Results, folder: Path) -> None:
    """Draw all figures into a folder."""
    names = results.reader.coordinates
    for title, index in (("median", results.median), ("worst", results.worst)):
        points = results.field(index, "embedding")
        target = results.field(index, "target")[..., 0]
        prediction = results.shaped(results.predictions[index])[..., 0]
        error = f"relative L2 error {results.errors[index]:.4f}, {title} of the test set"
        fields = field_comparison(
            points,
            target,
            prediction,
            name="horizontal velocity / peak inflow",
            coordinates=names,
            titles=("Navier-Stokes", results.metrics["model"]),
            contour=0.0,  # inside the pipe it encloses reversed flow
            size=(5.2, 3.5),
        )
        fields.suptitle(error)
        save(fields, folder / f"velocity_{title}.png")
        save(profiles(points, target, prediction, error), folder / f"profiles_{title}.png")
    draw_summary(results, folder)


def profiles(points: np.ndarray, target: np.ndarray, prediction: np.ndarray, title: str) -> Figure:
    """Velocity over the height of equally spaced sections, from the inflow to the outflow."""
    drawing, (panels,) = figure(1, SECTIONS, size=(2.2, 3.4), sharex=True, sharey=True)
    for axes, i in zip(panels, np.linspace(0, len(points) - 1, SECTIONS).astype(int), strict=True):
        x, y = points[i].T
        height = y - (y[0] + y[-1]) / 2
        axes.plot(target[i], height, color=TRUTH, label="Navier-Stokes")
        axes.plot(prediction[i], height, "--", color=MODEL, label="model")
        axes.axvline(0.0, color=MUTED, linewidth=0.8)
        axes.set_title(f"x / D = {x.mean():.1f}", fontsize=9)
        axes.set_xlabel("horizontal velocity")
        plain(axes)
    panels[0].set_ylabel("height above the centreline / D")
    lines, names = panels[0].get_legend_handles_labels()
    drawing.legend(lines, names, loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    drawing.suptitle(title, fontsize=10)
    return drawing
