# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""The airfoil benchmark's figures: Mach number round the section and along its wall."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from physicsnemo_cano.recipe import Results
from physicsnemo_cano.visualization import (
    Window,
    draw_summary,
    field_comparison,
    figure,
    save,
)
from physicsnemo_cano.visualization.style import MODEL, MUTED, TRUTH, plain

NEAR = Window(x=(-0.5, 1.5), y=(-0.7, 0.7))


def draw(results: Results, folder: Path) -> None:
    """Draw all figures into a folder."""
    names = results.reader.coordinates
    for title, index in (("median", results.median), ("worst", results.worst)):
        points, target, prediction = _sample(results, index)
        error = f"relative L2 error {results.errors[index]:.4f}, {title} of the test set"
        fields = field_comparison(
            points,
            target,
            prediction,
            name="Mach number",
            coordinates=names,
            titles=("Euler", results.metrics["model"]),
            window=NEAR,
            contour=1.0,
        )
        fields.suptitle(error)
        save(fields, folder / f"mach_{title}.png")
        save(wall_mach(points, target, prediction, error), folder / f"wall_{title}.png")
    draw_summary(results, folder, NEAR)


def wall(points: np.ndarray) -> slice:
    """The part of the C-mesh's first line that lies on the section.

    Before and after it the line runs along the wake, where the mesh meets itself.
    """
    line = points[:, 0]
    apart = np.linalg.norm(line - line[::-1], axis=-1) > 1e-6
    first = int(np.argmax(apart[: len(line) // 2]))
    return slice(max(first - 1, 0), len(line) - max(first - 1, 0))


def wall_mach(points: np.ndarray, target: np.ndarray, prediction: np.ndarray, title: str) -> Figure:
    """Mach number along both sides of the section, which is drawn below to the same x."""
    part = wall(points)
    x, y = points[part, 0].T
    nose = int(np.argmin(x))
    sides = [slice(0, nose + 1), slice(nose, len(x))]
    sides.sort(key=lambda side: y[side].mean())
    drawing, ((axes,), (section,)) = figure(
        2, 1, size=(6.5, 2.7), sharex=True, height_ratios=(4, 1)
    )
    for side, name, line in zip(sides, ("lower", "upper"), ("--", "-"), strict=True):
        axes.plot(x[side], target[part, 0][side], line, color=TRUTH, label=f"Euler, {name} side")
        axes.plot(
            x[side], prediction[part, 0][side], line, color=MODEL, label=f"model, {name} side"
        )
    axes.axhline(1.0, color=MUTED, linewidth=0.8)
    axes.set_ylabel("Mach number at the wall")
    axes.set_title(title, fontsize=10)
    axes.legend(frameon=False, fontsize=9)
    section.fill(x, y, facecolor="0.88", edgecolor=TRUTH, linewidth=1.0)
    section.set_aspect("equal", adjustable="datalim")
    section.set_xlabel("x / c")
    section.set_ylabel("y / c")
    for panel in (axes, section):
        plain(panel)
    return drawing


def _sample(results: Results, index: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    prediction = results.shaped(results.predictions[index])
    return (
        results.field(index, "embedding"),
        results.field(index, "target")[..., 0],
        prediction[..., 0],
    )
