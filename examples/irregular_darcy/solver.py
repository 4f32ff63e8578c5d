# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
r"""Darcy's flow in an irregular domain: :math:`-∇·(a ∇u) = f`, u = 0 on the boundary.

Linear triangles on a fixed, unstructured mesh of a smooth, five-lobed domain (after the
irregular Darcy case of NORM, Chen et al., 2024); the permeability a is given at the nodes and is
linear between them, as u is.
"""

import numpy as np
from scipy.sparse import csc_array
from scipy.sparse.linalg import splu
from skfem import Basis, ElementTriP1

from examples.fem.fields import GaussianField
from examples.fem.mesh import spaced, triangulate
from examples.fem.operators import quadrature

__all__ = ["DEVIATION", "SPACING", "Darcy", "domain_mesh", "outline", "permeability_field"]

SPACING = 0.0368  # of the nodes, for about 2290
KAPPA = 5.0  # the inverse correlation length of the permeability's logarithm
DEVIATION = 0.6  # of this logarithm


def outline(at):
    """Points (n, 2) of the domain's boundary at parameters (n,) of [0, 1)."""
    angle = 2 * np.pi * at
    radius = 0.9 + 0.2 * np.cos(5 * angle) + 0.1 * np.sin(2 * angle) - 0.08 * np.cos(3 * angle)
    return radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], -1)


def domain_mesh(spacing=SPACING):
    """Mesh the domain with triangles whose edges are about ``spacing`` long: skfem.MeshTri."""

    def size(points):
        return np.full(len(points), spacing)

    return triangulate([spaced(outline, size)], size)


def permeability_field(mesh):
    """The permeability's distribution: a function that draws one (N,) with a Generator.

    It is log-normal, exp(0.6 g), with g from the Gaussian field of covariance (−Δ + 25)^(-2).
    """
    field = GaussianField(Basis(mesh, ElementTriP1()), KAPPA)

    def draw(rng):
        return np.exp(DEVIATION * field.draw(rng))

    return draw


class Darcy:
    """The equation on a mesh, for any number of permeabilities.

    Parameters
    ----------
    mesh : skfem.MeshTri
        Of the domain.
    source : callable, optional
        f (n,) at points (2, n); one everywhere by default.
    """

    def __init__(self, mesh, source=None):
        self._at = quadrature(Basis(mesh, ElementTriP1(), intorder=3))
        f = 1.0 if source is None else source(self._at.points)
        self._load = self._at.values.T @ (self._at.weights * f)
        self._free = np.setdiff1d(np.arange(mesh.nvertices), mesh.boundary_nodes())

    def stiffness(self, permeability):
        """Matrix (N, N) of the energy's derivative, before the boundary's values are known."""
        weights = self._at.weights * (self._at.values @ permeability)
        return sum(g.T @ (g * weights[:, None]) for g in self._at.gradients)

    def solve(self, permeability):
        """The pressure.

        Parameters
        ----------
        permeability : ndarray
            (N,) at the nodes, positive.

        Returns
        -------
        ndarray
            (N,) at the nodes.

        Raises
        ------
        ValueError
            If the permeability has another shape or is not positive.
        """
        nodes = self._load.shape
        if permeability.shape != nodes or not permeability.min() > 0:
            raise ValueError(
                f"expected a positive permeability of shape {nodes}, got shape "
                f"{permeability.shape} and values from {permeability.min()}"
            )
        matrix = self.stiffness(permeability)[self._free][:, self._free]
        pressure = np.zeros(nodes)
        factors = splu(csc_array(matrix), permc_spec="MMD_AT_PLUS_A")
        pressure[self._free] = factors.solve(self._load[self._free])
        return pressure
