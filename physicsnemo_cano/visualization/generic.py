# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
"""Figures of any fields, for data sets that bring none of their own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from physicsnemo_cano.visualization.fields import field_comparison, symmetric_limits
from physicsnemo_cano.visualization.style import MODEL, TRUTH, figure, label, plain, save
from physicsnemo_cano.visualization.summary import draw_summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST = 20000  # points of a cloud that are drawn


def draw_results(results, folder: Path) -> None:
    """Draw every target of the median and the worst sample, and the summary.

    Structured meshes in the plane are coloured, lines along one axis are drawn as such, all else
    as points in the plane or in space. Of a series the last frame is shown.

    Parameters
    ----------
    results : Results
        What the recipe hands to a data set's figures.
    folder : Path
        Where ``<target>_median.png``, ``<target>_worst.png`` and the summary's figures go.
    """
    names, targets = results.reader.coordinates, results.reader.targets
    for title, index in (("median", results.median), ("worst", results.worst)):
        points, truth = results.field(index, "embedding"), results.field(index, "target")
        prediction = results.shaped(results.predictions[index])
        for k, channel in enumerate(targets):
            last = truth.shape[-1] - len(targets) + k
            fields = truth[..., last], prediction[..., last]
            if points.shape[-1] == 1:
                drawing = line_comparison(points, *fields, name=str(channel), coordinates=names)
            elif points.ndim == 3 and points.shape[-1] == 2:
                drawing = field_comparison(points, *fields, name=str(channel), coordinates=names)
            else:
                drawing = point_comparison(points, *fields, name=str(channel), coordinates=names)
            drawing.suptitle(
                f"relative L2 error {results.errors[index]:.4f}, {title} of the test set: "
                f"{results.name(index)} ({results.reader.source})"
            )
            file = re.sub(r"\W+", "_", channel.name)
            save(drawing, folder / f"{file}_{title}.png")
    draw_summary(results, folder)


def line_comparison(
    points: Float[np.ndarray, "N 1"],
    target: Float[np.ndarray, " N"],
    prediction: Float[np.ndarray, " N"],
    *,
    name: str,
    coordinates: Sequence[object],
) -> Figure:
    """Reference and prediction over the one coordinate.

    Parameters
    ----------
    points : numpy.ndarray
        Coordinates, (N, 1).
    target, prediction : numpy.ndarray
        Of shape (N,), in the same unit.
    name : str
        Of the field, with its unit.
    coordinates : sequence
        The name of the coordinate.

    Returns
    -------
    matplotlib.figure.Figure
    """
    order = np.argsort(points[:, 0])
    drawing, ((axes,),) = figure(size=(6.5, 3.6))
    axes.plot(points[order, 0], target[order], color=TRUTH, label="reference")
    axes.plot(points[order, 0], prediction[order], "--", color=MODEL, label="prediction")
    label(axes, (coordinates[0], name))
    axes.legend(frameon=False)
    plain(axes)
    return drawing


def point_comparison(
    points: Float[np.ndarray, "*points dim"],
    target: Float[np.ndarray, "*points"],
    prediction: Float[np.ndarray, "*points"],
    *,
    name: str,
    coordinates: Sequence[object],
) -> Figure:
    """Reference, prediction and their difference as coloured points, side by side.

    Parameters
    ----------
    points : numpy.ndarray
        Coordinates of a cloud or a grid, (..., 2) or (..., 3).
    target, prediction : numpy.ndarray
        Of shape (...), in the same unit.
    name : str
        Of the field, with its unit.
    coordinates : sequence
        Names of the coordinates.

    Returns
    -------
    matplotlib.figure.Figure
        A row of three; of large clouds an even choice of points.
    """
    points = points.reshape(-1, points.shape[-1])
    chosen = np.linspace(0, len(points) - 1, min(len(points), _MOST)).astype(int)
    target, prediction = target.reshape(-1)[chosen], prediction.reshape(-1)[chosen]
    space = points.shape[1] == 3
    shared = float(target.min()), float(target.max())
    difference = prediction - target
    panels = (
        ("reference", target, "viridis", shared),
        ("prediction", prediction, "viridis", shared),
        ("difference", difference, "RdBu_r", symmetric_limits(difference)),
    )
    drawing, (row,) = figure(
        1, 3, size=(5.0, 4.6), subplot_kw={"projection": "3d"} if space else {}
    )
    for axes, (title, values, cmap, (low, high)) in zip(row, panels, strict=True):
        image = axes.scatter(
            *points[chosen].T, c=values, cmap=cmap, vmin=low, vmax=high, s=6, linewidths=0
        )
        axes.set_aspect("equal")
        axes.set_title(title)
        label(axes, coordinates)
        if space:
            axes.set_zlabel(str(coordinates[2]))
        bar = drawing.colorbar(image, ax=axes, location="bottom", pad=0.05)
        bar.set_label(name if title != "difference" else f"Δ {name}")
    return drawing
