# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""The elastic block's figures: its deformed mesh, coloured by the displacement."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from physicsnemo_cano.recipe import Results
from physicsnemo_cano.visualization import draw_summary, figure, save, show_field
from physicsnemo_cano.visualization.style import MODEL, TRUTH, label, plain

REACH = 0.1  # length that the largest displacement is drawn with, of the block's side


def draw(results: Results, folder: Path) -> None:
    """Draw all figures into a folder."""
    for title, index in (("median", results.median), ("worst", results.worst)):
        block = deformed_block(results, index)
        block.suptitle(f"relative L2 error {results.errors[index]:.4f}, {title} of the test set")
        save(block, folder / f"block_{title}.png")
    save(error_by_modulus(results), folder / "error_by_modulus.png")
    draw_summary(results, folder)


def error_by_modulus(results: Results) -> Figure:
    """Error of each test sample over the modulus of its softest square."""
    softest = np.array([results.field(i, "fx")[0, :8].min() for i in range(len(results.errors))])
    if results.reader.log_moduli:
        softest = np.exp(softest)
    drawing, ((axes,),) = figure(size=(6.0, 4.0))
    axes.loglog(softest, results.errors, "o", markersize=4, color=MODEL, alpha=0.7)
    axes.set_xlabel("modulus of the softest square")
    axes.set_ylabel("relative L2 error of the sample")
    plain(axes)
    return drawing


def deformed_block(results: Results, index: int) -> Figure:
    """The deformed mesh: reference, prediction and the prediction's error.

    The first two are coloured by the length of the displacement, with one scale, each on its own
    positions; the third, on the undeformed block, by the length of the displacement's error. The
    lines are the borders of the nine squares.
    """
    points, truth = results.field(index, "embedding"), results.field(index, "target")
    prediction, triangles = results.predictions[index], results.reader.triangles
    longest = float(np.linalg.norm(truth, axis=1).max())
    drawn = REACH / longest  # displacements may be far smaller or larger than the block
    error = np.linalg.norm(prediction - truth, axis=1)
    panels = (
        ("reference", points + drawn * truth, np.linalg.norm(truth, axis=1)),
        (results.metrics["model"], points + drawn * prediction, np.linalg.norm(prediction, axis=1)),
    )
    drawing, ((*fields, last),) = figure(1, 3, size=(4.2, 4.6), sharex=True, sharey=True)
    for axes, (name, positions, values) in zip(fields, panels, strict=True):
        image = show_field(axes, positions, values, triangles=triangles, limits=(0.0, longest))
        _borders(axes, points, positions)
        axes.set_title(name)
    bar = drawing.colorbar(image, ax=fields, location="bottom", aspect=50, pad=0.02)
    bar.set_label(f"length of the displacement (drawn × {drawn:.2g})")
    limits = (0.0, float(np.quantile(error, 0.995)))
    image = show_field(last, points, error, triangles=triangles, cmap="magma_r", limits=limits)
    _borders(last, points, points)
    last.set_title("error")
    bar = drawing.colorbar(image, ax=last, location="bottom", aspect=25, pad=0.02, extend="max")
    bar.set_label("length of the displacement's error")
    for axes in (*fields, last):
        label(axes, results.reader.coordinates)
        axes.label_outer()
    return drawing


def _borders(axes, points: np.ndarray, positions: np.ndarray) -> None:
    """The squares' borders, which are lines of nodes, on the deformed mesh."""
    for along, across in ((0, 1), (1, 0)):
        for border in np.arange(4) / 3:
            line = np.flatnonzero(np.isclose(points[:, across], border, atol=1e-6))
            line = line[np.argsort(points[line, along])]
            axes.plot(*positions[line].T, color=TRUTH, linewidth=0.5, alpha=0.7)
