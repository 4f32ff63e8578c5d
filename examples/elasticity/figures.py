# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""The elasticity benchmark's figures: stress in the cell and along the void's edge."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.tri import Triangulation

from physicsnemo_cano.recipe import Results
from physicsnemo_cano.visualization import (
    draw_summary,
    field_comparison,
    figure,
    save,
)
from physicsnemo_cano.visualization.style import MODEL, TRUTH, plain

SECTOR = np.radians(5)  # in which a point of the edge has none nearer the centre than itself


def draw(results: Results, folder: Path) -> None:
    """Draw all figures into a folder."""
    names = results.reader.coordinates
    for title, index in (("median", results.median), ("worst", results.worst)):
        points = results.field(index, "embedding")
        target = results.field(index, "target")[:, 0]
        prediction = results.predictions[index][:, 0]
        error = f"relative L2 error {results.errors[index]:.4f}, {title} of the test set"
        fields = field_comparison(
            points,
            target,
            prediction,
            name="von Mises stress [Pa]",
            coordinates=names,
            titles=("finite elements", results.metrics["model"]),
            triangles=triangles(points),
            # The clamped corners, where the stress is singular, would fade all else.
            limits=(0.0, float(np.quantile(target, 0.98))),
            cmap="inferno",
            size=(3.9, 4.8),
        )
        fields.suptitle(error)
        save(fields, folder / f"stress_{title}.png")
        save(edge_stress(points, target, prediction, error), folder / f"edge_{title}.png")
    draw_summary(results, folder)


def edge(points: np.ndarray) -> np.ndarray:
    """The void's edge: indices of its points, in the order of their angle about the centre.

    They are found by their position alone, in whatever order a file has them.
    """
    distance, angle = _polar(points)
    apart = np.abs((angle[:, None] - angle + np.pi) % (2 * np.pi) - np.pi)
    # Allow for the slope of the edge within a sector.
    nearest = distance[:, None] <= distance + 1.5 * distance[:, None] * apart + 1e-6
    on_edge = np.flatnonzero((nearest | (apart > SECTOR)).all(1))
    return on_edge[np.argsort(angle[on_edge])]


def triangles(points: np.ndarray) -> np.ndarray:
    """Triangles (M, 3) between the points (N, 2), but for those across the void."""
    cells = Triangulation(*points.T).triangles
    rim_distance, rim_angle = _polar(points[edge(points)])
    distance, angle = _polar(points[cells].mean(1))
    return cells[distance > np.interp(angle, rim_angle, rim_distance, period=2 * np.pi)]


def edge_stress(
    points: np.ndarray, target: np.ndarray, prediction: np.ndarray, title: str
) -> Figure:
    """Stress along the edge of the void, where the cell would tear first."""
    rim = edge(points)
    angle = np.degrees(_polar(points[rim])[1])
    drawing, ((axes,),) = figure(size=(6.5, 3.6))
    axes.plot(angle, target[rim], color=TRUTH, label="finite elements")
    axes.plot(angle, prediction[rim], "--", color=MODEL, label="model")
    axes.set_xticks(range(-180, 181, 45))
    axes.set_xlabel("angle about the void's centre [°], the load pulls at 90")
    axes.set_ylabel("von Mises stress at the void [Pa]")
    axes.set_title(title, fontsize=10)
    axes.legend(frameon=False, fontsize=9)
    plain(axes)
    return drawing


def _polar(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x, y = (points - 0.5).T
    return np.hypot(x, y), np.arctan2(y, x)
