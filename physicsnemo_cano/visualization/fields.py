# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Fields in the plane, on structured meshes and on clouds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from physicsnemo_cano.visualization.style import figure, label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import Collection
    from matplotlib.figure import Figure


class Window(NamedTuple):
    """The part of the plane to show, in the coordinates' unit."""

    x: tuple[float, float]
    y: tuple[float, float]

    def holds(self, points: Float[np.ndarray, "*points 2"]) -> Bool[np.ndarray, "*points"]:
        """Which points lie inside.

        Parameters
        ----------
        points : numpy.ndarray
            Coordinates, (…, 2).

        Returns
        -------
        numpy.ndarray
            Boolean, (…).
        """
        x, y = points[..., 0], points[..., 1]
        return (self.x[0] <= x) & (x <= self.x[1]) & (self.y[0] <= y) & (y <= self.y[1])


def show_field(
    axes: Axes,
    points: Float[np.ndarray, "*points 2"],
    values: Float[np.ndarray, "*points"],
    *,
    triangles: Int[np.ndarray, "M 3"] | None = None,
    window: Window | None = None,
    cmap: str = "viridis",
    limits: tuple[float, float] | None = None,
) -> Collection:
    """Colour a field, linear between its points.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Where to draw; both directions get the same scale.
    points : numpy.ndarray
        Coordinates, (n_i, n_j, 2) on a structured mesh or (N, 2) of a cloud.
    values : numpy.ndarray
        Of shape (n_i, n_j) or (N,).
    triangles : numpy.ndarray, optional
        Between which points of a cloud to colour, (M, 3); all over by default.
    window : Window, optional
        Part of the plane to show; all by default.
    cmap : str
        matplotlib's name of the colours.
    limits : pair of float, optional
        Values at the ends of the colours; those of the visible part by default.

    Returns
    -------
    matplotlib.collections.Collection
        For a colour bar.
    """
    if limits is None:
        visible = values if window is None else values[window.holds(points)]
        limits = float(visible.min()), float(visible.max())
    style = {"cmap": cmap, "vmin": limits[0], "vmax": limits[1], "rasterized": True}
    x, y = points[..., 0], points[..., 1]
    if points.ndim == 3:
        image = axes.pcolormesh(x, y, values, shading="gouraud", **style)
    else:
        image = axes.tripcolor(x, y, values, triangles=triangles, shading="gouraud", **style)
    axes.set_aspect("equal")
    if window is not None:
        axes.set_xlim(window.x)
        axes.set_ylim(window.y)
    return image


def symmetric_limits(
    values: Float[np.ndarray, "*shape"], visible: Bool[np.ndarray, "*shape"] | None = None
) -> tuple[float, float]:
    """Limits for a difference: as far below zero as above, 99.5 % of what is visible within.

    The rest, a few points beside a shock, would fade all else.

    Parameters
    ----------
    values : numpy.ndarray
        The difference, of any shape.
    visible : numpy.ndarray, optional
        Which of them are shown, boolean, of the same shape; all by default.

    Returns
    -------
    tuple of float
        The lower and the upper limit.
    """
    shown = np.abs(values if visible is None else values[visible])
    reach = float(np.quantile(shown, 0.995)) or 1.0
    return -reach, reach


def field_comparison(
    points: Float[np.ndarray, "*points 2"],
    target: Float[np.ndarray, "*points"],
    prediction: Float[np.ndarray, "*points"],
    *,
    name: str,
    coordinates: Sequence[object],
    titles: Sequence[str] = ("reference", "prediction"),
    triangles: Int[np.ndarray, "M 3"] | None = None,
    limits: tuple[float, float] | None = None,
    window: Window | None = None,
    contour: float | None = None,
    cmap: str = "viridis",
    size: tuple[float, float] = (5.2, 4.6),
) -> Figure:
    """Reference, prediction and their difference, side by side.

    Reference and prediction share one scale; the difference's is symmetric round zero.

    Parameters
    ----------
    points : numpy.ndarray
        As in :func:`show_field`.
    target, prediction : numpy.ndarray
        Of shape (n_i, n_j) or (N,), in the same unit.
    name : str
        Of the field, with its unit.
    coordinates : sequence
        Names of the two coordinates.
    titles : pair of str
        Over the first two panels.
    triangles : numpy.ndarray, optional
        As in :func:`show_field`.
    limits : pair of float, optional
        Values at the ends of the fields' colours; those of the visible part of the reference by
        default.
    window : Window, optional
        Part of the plane to show; all by default.
    contour : float, optional
        A value whose line to draw into the fields.
    cmap : str
        Colours of the fields.
    size : tuple of float
        Width and height of a panel with its share of the colour bars, in inches.

    Returns
    -------
    matplotlib.figure.Figure
        A row of three.
    """
    drawing, ((left, middle, right),) = figure(1, 3, size=size)
    visible = None if window is None else window.holds(points)
    shown = target if visible is None else target[visible]
    lowest, highest = limits or (float(shown.min()), float(shown.max()))
    where = {"triangles": triangles, "window": window}
    for axes, field, title in zip((left, middle), (target, prediction), titles, strict=True):
        image = show_field(axes, points, field, cmap=cmap, limits=(lowest, highest), **where)
        axes.set_title(title)
        if contour is not None:
            draw = axes.contour if points.ndim == 3 else axes.tricontour
            draw(points[..., 0], points[..., 1], field, [contour], colors="white", linewidths=1.0)
    beyond = {(False, False): "neither", (True, False): "min", (False, True): "max"}
    extend = beyond.get((shown.min() < lowest, shown.max() > highest), "both")
    bar = drawing.colorbar(
        image, ax=(left, middle), location="bottom", aspect=50, pad=0.02, extend=extend
    )
    bar.set_label(name)
    if contour is not None:
        bar.ax.axvline(contour, color="white", linewidth=1.5)
    difference = prediction - target
    reach = symmetric_limits(difference, visible)
    image = show_field(right, points, difference, cmap="RdBu_r", limits=reach, **where)
    right.set_title("difference")
    bar = drawing.colorbar(image, ax=right, location="bottom", aspect=25, pad=0.02, extend="both")
    bar.set_label(f"Δ {name}")
    for axes in (left, middle, right):
        label(axes, coordinates)
        axes.label_outer()
    return drawing
