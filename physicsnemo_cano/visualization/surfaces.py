# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Fields on meshes in space, rendered off screen with pyvista (the ``meshes`` extra)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, UInt8

from physicsnemo_cano.visualization.fields import symmetric_limits
from physicsnemo_cano.visualization.style import figure

if TYPE_CHECKING:
    import pyvista
    from matplotlib.figure import Figure

_PIXELS = (1000, 700)


def render_surface(
    mesh: pyvista.DataSet,
    values: Float[np.ndarray, " N"],
    *,
    cmap: str = "viridis",
    limits: tuple[float, float] | None = None,
    view: Sequence[float] = (1.0, -1.2, 0.8),
) -> UInt8[np.ndarray, "height width 3"]:
    """Colour the surface of a mesh by a field.

    Parameters
    ----------
    mesh : pyvista.DataSet
        Of N points.
    values : numpy.ndarray
        Of shape (N,).
    cmap : str
        matplotlib's name of the colours.
    limits : pair of float, optional
        Values at the ends of the colours; the smallest and largest by default.
    view : sequence of float
        From the mesh towards the eye; z points upwards.

    Returns
    -------
    numpy.ndarray
        The image on white, (height, width, 3) of uint8, its empty border cut off.
    """
    import pyvista

    plotter = pyvista.Plotter(off_screen=True, window_size=_PIXELS)
    plotter.set_background("white")
    plotter.enable_anti_aliasing("ssaa")
    shown = mesh.copy(deep=False)
    shown["values"] = values
    # Colours have to be read off: light shows the shape and takes little of them.
    plotter.add_mesh(
        shown.extract_surface(algorithm="dataset_surface"),
        scalars="values",
        cmap=cmap,
        clim=limits,
        ambient=0.7,
        diffuse=0.35,
        show_scalar_bar=False,
    )
    plotter.enable_parallel_projection()
    plotter.view_vector(view, viewup=(0, 0, 1))
    plotter.camera.zoom(1.2)
    image = plotter.screenshot(return_img=True)
    plotter.close()
    rows, columns = (np.flatnonzero((image < 255).any((axis, 2))) for axis in (1, 0))
    return image[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def surface_comparison(
    mesh: pyvista.DataSet,
    target: Float[np.ndarray, " N"],
    prediction: Float[np.ndarray, " N"],
    *,
    name: str,
    titles: Sequence[str] = ("reference", "prediction"),
    view: Sequence[float] = (1.0, -1.2, 0.8),
) -> Figure:
    """Reference, prediction and their difference on the surface of a mesh, side by side.

    Reference and prediction share one scale; the difference's is symmetric round zero.

    Parameters
    ----------
    mesh : pyvista.DataSet
        Of N points.
    target, prediction : numpy.ndarray
        Of shape (N,), in the same unit.
    name : str
        Of the field, with its unit.
    titles : pair of str
        Over the first two panels.
    view : sequence of float
        As in :func:`render_surface`.

    Returns
    -------
    matplotlib.figure.Figure
        A row of three.
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    difference = prediction - target
    shared = float(target.min()), float(target.max())
    panels = (
        (titles[0], target, "viridis", shared, name),
        (titles[1], prediction, "viridis", shared, name),
        ("difference", difference, "RdBu_r", symmetric_limits(difference), f"Δ {name}"),
    )
    drawing, (row,) = figure(1, 3, size=(4.6, 3.4))
    for axes, (title, values, cmap, limits, text) in zip(row, panels, strict=True):
        axes.imshow(render_surface(mesh, values, cmap=cmap, limits=limits, view=view))
        axes.set_axis_off()
        axes.set_title(title)
        scale = ScalarMappable(Normalize(*limits), cmap)
        drawing.colorbar(scale, ax=axes, location="bottom", pad=0.02).set_label(text)
    return drawing
