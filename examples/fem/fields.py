# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
r"""Gaussian random fields on a mesh, by the equation that they solve.

A field of covariance :math:`\sigma^2 (-Δ + κ^2)^{-2}`, with no flux through the boundary, is the
solution of :math:`(-Δ + κ^2) g = σ W` for white noise W (Lindgren, Rue and Lindström, J. R. Stat.
Soc. B 73, 2011). Linear or quadratic elements turn it into one system, whose matrix is factorised
once for all fields.
"""

import numpy as np
from scipy.sparse.linalg import splu
from skfem import asm
from skfem.models import laplace, mass

from examples.fem.operators import quadrature

__all__ = ["GaussianField"]


class GaussianField:
    r"""Gaussian fields of covariance proportional to :math:`(-Δ + κ^2)^{-2}`.

    Their correlation falls to 0.14 at a distance of about :math:`\sqrt{8}/κ`. Far from the
    boundary their standard deviation is one; by the boundary it is larger.

    Parameters
    ----------
    basis : skfem.Basis
        Scalar, in two or three dimensions, with positive quadrature weights.
    kappa : float
        The inverse correlation length κ.

    Raises
    ------
    ValueError
        If a quadrature weight is negative, as scikit-fem's are on tetrahedra for orders 3 and 4.
    """

    def __init__(self, basis, kappa):
        matrix = asm(laplace, basis) + kappa**2 * asm(mass, basis)
        self._factors = splu(matrix.tocsc(), permc_spec="MMD_AT_PLUS_A")
        # White noise, tested with the basis functions, has the mass matrix Nᵀ w N for covariance.
        at = quadrature(basis)
        if not at.weights.min() > 0:
            raise ValueError(
                f"a quadrature weight is {at.weights.min()}, expected positive ones: give the "
                "basis another intorder, on tetrahedra 2 or 5"
            )
        self._noise = at.values.T * np.sqrt(at.weights)
        # The variance of that equation's solution in the plane or in space.
        variance = {2: 1 / (4 * np.pi * kappa**2), 3: 1 / (8 * np.pi * kappa)}
        self._scale = 1 / np.sqrt(variance[basis.mesh.dim()])
        self.normals = self._noise.shape[1]

    def __call__(self, normal):
        """Turn independent standard normal numbers (..., normals) into fields (..., N)."""
        load = self._noise @ np.moveaxis(np.asarray(normal), -1, 0)
        return np.moveaxis(self._scale * self._factors.solve(load), 0, -1)

    def draw(self, rng):
        """Draw a field (N,)."""
        return self(rng.normal(size=self.normals))
