# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""One look for all figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Shaped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

TRUTH, MODEL, MUTED = "#1a1a1a", "#c2410c", "#8a8f98"


def figure(
    rows: int = 1, columns: int = 1, size: tuple[float, float] = (5.0, 4.0), **subplots
) -> tuple[Figure, Shaped[np.ndarray, "rows columns"]]:
    """A figure with a grid of axes.

    Parameters
    ----------
    rows, columns : int
        Of the grid.
    size : tuple of float
        Mean width and height of the axes, in inches.
    **subplots
        More for matplotlib's ``subplots``, such as ``sharex`` and ``height_ratios``.

    Returns
    -------
    matplotlib.figure.Figure, numpy.ndarray
        The figure and its axes, of shape (rows, columns).

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "Figures need matplotlib: pip install physicsnemo-cano[examples]"
        ) from error
    drawing = Figure(figsize=(columns * size[0], rows * size[1]), layout="constrained")
    return drawing, drawing.subplots(rows, columns, squeeze=False, **subplots)


def save(drawing: Figure, file: Path) -> Path:
    """Write a figure as PNG, 200 dots an inch.

    Parameters
    ----------
    drawing : matplotlib.figure.Figure
        The figure.
    file : Path
        Where to.

    Returns
    -------
    Path
        The file.
    """
    drawing.savefig(file, dpi=200, facecolor="white")
    return file


def plain(axes: Axes, grid: bool = True) -> None:
    """Take away the frame's upper and right lines; add a light grid.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        What to change.
    grid : bool
        Whether to add the grid.
    """
    axes.spines[["top", "right"]].set_visible(False)
    if grid:
        axes.grid(color="#e5e7eb", linewidth=0.6)
        axes.set_axisbelow(True)


def label(axes: Axes, names: Sequence[object]) -> None:
    """Name the two axes.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        What to change.
    names : sequence
        Of the horizontal and the vertical axis.
    """
    axes.set_xlabel(str(names[0]))
    axes.set_ylabel(str(names[1]))


def plain_numbers(axis: Axis) -> None:
    """Write 0.02 on a logarithmic axis, not a power of ten, and no more numbers than fit.

    Parameters
    ----------
    axis : matplotlib.axis.Axis
        What to change.
    """
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 3.0, 5.0)))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())
