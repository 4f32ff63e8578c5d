# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""The irregular Darcy benchmark's figures: permeability, pressure, prediction and error."""

from pathlib import Path

from matplotlib.figure import Figure

from physicsnemo_cano.recipe import Results
from physicsnemo_cano.visualization import draw_summary, figure, save, show_field, symmetric_limits
from physicsnemo_cano.visualization.style import label


def draw(results: Results, folder: Path) -> None:
    """Draw all figures into a folder."""
    for title, index in (("median", results.median), ("worst", results.worst)):
        drawing = flow(results, index)
        drawing.suptitle(f"relative L2 error {results.errors[index]:.4f}, {title} of the test set")
        save(drawing, folder / f"pressure_{title}.png")
    draw_summary(results, folder)


def flow(results: Results, index: int) -> Figure:
    """Permeability, with the mesh, pressure, prediction and their difference, side by side."""
    points, cells = results.field(index, "embedding"), results.reader.cells
    target = results.field(index, "target")[:, 0]
    prediction = results.predictions[index][:, 0]
    difference = prediction - target
    shared = float(target.min()), float(target.max())
    panels = (
        ("permeability", results.field(index, "fx")[:, 0], "Greys", None),
        ("pressure, finite elements", target, "viridis", shared),
        (f"pressure, {results.metrics['model']}", prediction, "viridis", shared),
        ("difference", difference, "RdBu_r", symmetric_limits(difference)),
    )
    drawing, (row,) = figure(1, 4, size=(3.4, 4.0))
    for axes, (title, values, cmap, limits) in zip(row, panels, strict=True):
        image = show_field(axes, points, values, triangles=cells, cmap=cmap, limits=limits)
        bar = drawing.colorbar(image, ax=axes, location="bottom", pad=0.02)
        bar.ax.locator_params(nbins=4)
        axes.set_title(title, fontsize=11)
        label(axes, results.reader.coordinates)
        axes.label_outer()
    row[0].triplot(*points.T, triangles=cells, color="#1a1a1a", linewidth=0.15)
    return drawing
