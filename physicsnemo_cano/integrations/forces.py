# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

r"""Forces and moments on a surface, from the pressure and the shear stress on its faces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from physicsnemo_cano.integrations.faces import Faces

if TYPE_CHECKING:
    import pyvista


@dataclass
class References:
    r"""What forces are made of, and made dimensionless with.

    Attributes
    ----------
    pressure, shear : str or None
        Fields: the pressure, and the stress that the fluid exerts along the wall. A minus before
        the name turns it round, where a solver writes the one on the fluid.
    area, length, density, speed : float
        Of the reference. ``speed`` may be the name of a parameter, where it differs by case. For a
        pressure over the density, as of incompressible OpenFOAM, leave ``density`` at 1.
    drag, lift : list of float
        Directions, at right angles; the third, of the side force, is lift × drag.
    centre : list of float
        About which moments are.
    flip : bool
        Turn the normals round. Those of a closed surface point outwards by themselves; those of an
        open one are taken as they stand, and have to point out of the body.
    """

    pressure: str | None = None
    shear: str | None = None
    area: float = 1.0
    length: float = 1.0
    density: float = 1.0
    speed: float | str = 1.0
    drag: list[float] = field(default_factory=lambda: [1.0, 0.0, 0.0])
    lift: list[float] = field(default_factory=lambda: [0.0, 0.0, 1.0])
    centre: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])
    flip: bool = False

    @property
    def wanted(self) -> bool:
        """Whether forces are asked for."""
        return self.pressure is not None or self.shear is not None

    @property
    def axes(self) -> np.ndarray:
        """Unit vectors of drag, lift and side, as rows.

        Raises
        ------
        ValueError
            If drag and lift are not at right angles.
        """
        drag, lift = (np.asarray(axis, dtype=float) for axis in (self.drag, self.lift))
        sizes = [np.linalg.norm(axis) for axis in (drag, lift)]
        if drag.shape != (3,) or lift.shape != (3,) or not min(sizes) > 0:
            raise ValueError(f"drag={self.drag}, lift={self.lift}: expected three numbers each")
        drag, lift = drag / sizes[0], lift / sizes[1]
        if abs(drag @ lift) > 1e-6:
            raise ValueError(
                f"drag={self.drag} and lift={self.lift} are not at right angles; give two that are"
            )
        return np.stack([drag, lift, np.cross(lift, drag)])

    def coefficients(
        self, force: np.ndarray, moment: np.ndarray, parameters: Mapping[str, float] | None = None
    ) -> dict[str, float]:
        r"""Dimensionless forces and moments.

        Parameters
        ----------
        force, moment : numpy.ndarray
            Shape :math:`(3,)`.
        parameters : mapping of str to float, optional
            Of the case.

        Returns
        -------
        dict of str to float
            ``CD``, ``CL``, ``CS``: components over :math:`\frac12 ρ U^2 A`. ``CMroll``,
            ``CMpitch``, ``CMyaw``: about the axes of drag, side and lift, by the right-hand rule,
            over :math:`\frac12 ρ U^2 A L`.

        Raises
        ------
        ValueError
            If the speed is no number and no parameter, or a reference is not above 0.
        """
        speed = self.speed
        if isinstance(speed, str):
            if speed not in (parameters or {}):
                has = ", ".join(parameters or {}) or "none"
                raise ValueError(f"speed={speed} is no number and no parameter; there are {has}")
            speed = parameters[speed]
        scale = 0.5 * self.density * speed**2 * self.area
        if not (scale > 0 and self.length > 0):
            raise ValueError("area, length, density and speed: expected numbers above 0")
        drag, lift, side = self.axes @ force / scale
        roll, yaw, pitch = self.axes @ moment / (scale * self.length)
        named = {"CD": drag, "CL": lift, "CS": side}
        named |= {"CMroll": roll, "CMpitch": pitch, "CMyaw": yaw}
        return {name: float(value) for name, value in named.items()}


def integrate(
    mesh: pyvista.DataSet,
    pressure: np.ndarray | None = None,
    shear: np.ndarray | None = None,
    *,
    location: str = "points",
    centre: np.ndarray | list[float] = (0.0, 0.0, 0.0),
    flip: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    r"""Force :math:`\oint (-p n + τ) \, dA` and moment about a centre.

    Values at points are interpolated linearly over triangles, those at cells constant; of such
    fields the integrals are exact.

    Parameters
    ----------
    mesh : pyvista.PolyData or pyvista.UnstructuredGrid
        A surface.
    pressure : numpy.ndarray, optional
        Shape :math:`(N,)`.
    shear : numpy.ndarray, optional
        Shape :math:`(N, 3)`, the stress on the body.
    location : {"points", "cells"}, optional
        Of the values.
    centre : sequence of float, optional
        Of the moment.
    flip : bool, optional, default=False
        See :class:`References`.

    Returns
    -------
    tuple of numpy.ndarray
        Force and moment, each of shape :math:`(3,)`.

    Raises
    ------
    ValueError
        If this is no surface, or its faces do not agree which side is out.
    """
    faces = Faces(mesh)
    if faces.turned:
        raise ValueError(
            f"at {faces.turned} edges one face is turned over against its neighbour, so which side "
            "is out is not known: mesh.compute_normals(consistent_normals=True) of pyvista turns it"
        )
    vectors = faces.vectors  # n dA, (T, 3)
    if (faces.closed and faces.volume < 0) != flip:
        vectors = -vectors
    nodes = faces.triangles if location == "points" else np.repeat(faces.owner[:, None], 3, 1)
    at_corners = np.zeros((*nodes.shape, 3))  # of each triangle, (T, 3, 3)
    if pressure is not None:
        at_corners -= np.asarray(pressure, dtype=np.float64)[nodes][..., None] * vectors[:, None]
    if shear is not None:
        areas = np.linalg.norm(vectors, axis=1)[:, None, None]
        at_corners += np.asarray(shear, dtype=np.float64)[nodes] * areas
    # A product of two linear functions over a triangle: (Σ f_i g_i + Σ f_i Σ g_i) / 12.
    arms = faces.corners - (np.asarray(centre, dtype=np.float64) - faces.origin)
    moment = np.cross(arms, at_corners).sum((0, 1)) + np.cross(arms.sum(1), at_corners.sum(1)).sum(
        0
    )
    return at_corners.sum((0, 1)) / 3, moment / 12
