# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Where the clusters of an attention layer are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from physicsnemo_cano.visualization.fields import Window
from physicsnemo_cano.visualization.style import figure, label

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_clusters(
    points: Float[np.ndarray, "*points 2"],
    assignments: Float[np.ndarray, "H N K"],
    *,
    coordinates: Sequence[object],
    window: Window | None = None,
) -> Figure:
    """The strongest cluster of every point, a panel a head.

    Colours are the more saturated the surer the assignment. Clusters are numbered by how many
    points they have, so the largest has the first colour.

    Parameters
    ----------
    points : numpy.ndarray
        Coordinates, (n_i, n_j, 2) on a structured mesh or (N, 2) of a cloud.
    assignments : numpy.ndarray
        Of shape (H, N, K_c), rows sum to 1; the mesh's last axis runs fastest in N.
    coordinates : sequence
        Names of the two coordinates.
    window : Window, optional
        Part of the plane to show; all by default.

    Returns
    -------
    matplotlib.figure.Figure
        Heads side by side, at most four a row.

    Raises
    ------
    ValueError
        If points and assignments differ in number.
    """
    from matplotlib import colormaps

    n_heads, n_points, _ = assignments.shape
    if points.reshape(-1, 2).shape[0] != n_points:
        raise ValueError(f"assignments are of {n_points} points, coordinates {points.shape}")
    palette = colormaps["tab20"](np.arange(20))[:, :3]
    columns = min(4, n_heads)
    drawing, panels = figure(-(-n_heads // columns), columns, size=(4.0, 3.2))
    for axes in panels.flat[n_heads:]:
        axes.set_visible(False)
    for head, axes in zip(assignments, panels.flat, strict=False):
        strongest = head.argmax(1)
        order = np.argsort(-np.bincount(strongest, minlength=head.shape[1]), kind="stable")
        rank = np.argsort(order)[strongest]
        sure = head.max(1, keepdims=True)
        colors = 1 - (1 - palette[rank % len(palette)]) * sure  # fades to white
        if points.ndim == 3:
            quads, shade = _cells(points), colors.reshape(*points.shape[:2], 3)
            axes.pcolormesh(quads[..., 0], quads[..., 1], shade, rasterized=True)
        else:
            axes.scatter(*points.T, c=colors, s=8, linewidths=0)
        axes.set_aspect("equal")
        if window is not None:
            axes.set_xlim(window.x)
            axes.set_ylim(window.y)
        used = len(np.unique(strongest))
        axes.set_title(
            f"{used} of {head.shape[1]} clusters, mean weight {sure.mean():.2f}", fontsize=9
        )
        axes.locator_params(nbins=5)
        label(axes, coordinates)
        axes.label_outer()
    return drawing


def _cells(points: np.ndarray) -> np.ndarray:
    """Corners (n_i + 1, n_j + 1, 2) of a cell round each point of a structured mesh.

    Corners lie midway between points; those at the border are the border's own points.
    """
    padded = np.pad(points, ((1, 1), (1, 1), (0, 0)), mode="edge")
    return (padded[1:, 1:] + padded[:-1, 1:] + padded[1:, :-1] + padded[:-1, :-1]) / 4
