# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

r"""Static hyperelasticity of a thin rubber sheet: finite elements with scikit-fem.

The sheet is thin, so it is in plane stress, and incompressible, so its stretch through the
thickness is :math:`\lambda_3 = 1 / \det F`, with F the deformation gradient in the plane. That
makes the energy a function of F alone, and incompressibility holds exactly without a pressure:
nothing can lock. The material is Rivlin and Saunders' (Mooney-Rivlin's),

.. math:: W = C_1 (I_1 - 3) + C_2 (I_2 - 3), \quad
    I_1 = |F|^2 + J^{-2}, \quad I_2 = J^2 + |F|^2 J^{-2}, \quad J = \det F,

with the constants of Li et al. (Geo-FNO, 2023). Elements are isoparametric and biquadratic.

Units: the cell's side and pascal.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse.linalg import splu
from skfem import (
    Basis,
    BilinearForm,
    ElementQuad2,
    ElementVector,
    FacetBasis,
    LinearForm,
    asm,
)
from skfem.models import mass

__all__ = ["C1", "C2", "Loaded", "energy", "first_piola", "solve", "tangent"]

C1, C2 = 1.863e5, 9.79e3  # Pa
TOLERANCE = 1e-7  # of the residual, relative to the load
ITERATIONS = 12  # of Newton's method in a load step
HALVINGS = 6  # of a load step that does not converge


@dataclass
class Loaded:
    """A loaded sheet, at the mesh's vertices.

    Attributes
    ----------
    points : ndarray
        (N, 2) undeformed positions.
    displacement : ndarray
        (N, 2) of these.
    stress : ndarray
        (N,) von Mises' equivalent of the Cauchy stress, in Pa.
    cauchy : ndarray
        (N, 3) Cauchy stress: xx, yy, xy, in Pa.
    iterations : int
        Steps of Newton's method.
    """

    points: np.ndarray
    displacement: np.ndarray
    stress: np.ndarray
    cauchy: np.ndarray
    iterations: int


def cofactor(gradient):
    """Cofactor of a 2 x 2 matrix, :math:`\\det(F) F^{-T}`; in the plane it is linear in F."""
    (a, b), (c, d) = gradient
    return np.array([[d, -c], [-b, a]])


def energy(gradient):
    """Energy density of a deformation gradient (2, 2, ...), in Pa."""
    square, jacobian = _invariants(gradient)
    i1 = square + jacobian**-2
    i2 = jacobian**2 + square * jacobian**-2
    return C1 * (i1 - 3) + C2 * (i2 - 3)


def first_piola(gradient):
    """First Piola-Kirchhoff stress, :math:`P = ∂W/∂F`, of F (2, 2, ...), in Pa."""
    square, j = _invariants(gradient)
    cof = cofactor(gradient)
    return 2 * C1 * (gradient - j**-3 * cof) + 2 * C2 * (
        j**-2 * gradient + (j - square * j**-3) * cof
    )


def tangent(gradient, change):
    """Derivative of `first_piola` along a change of F, both (2, 2, ...), in Pa."""
    square, j = _invariants(gradient)
    cof, dcof = cofactor(gradient), cofactor(change)
    dj, dsquare = _dot(cof, change), 2 * _dot(gradient, change)
    first = change + j**-3 * (3 / j * dj * cof - dcof)
    second = (
        j**-2 * (change - 2 / j * dj * gradient)
        + (dj - dsquare * j**-3 + 3 * square * j**-4 * dj) * cof
        + (j - square * j**-3) * dcof
    )
    return 2 * C1 * first + 2 * C2 * second


def solve(mesh, traction=100.0):
    """Clamp a sheet at its lower edge, y = 0, and pull it at its upper one, y = 1.

    Parameters
    ----------
    mesh : skfem.MeshQuad2
        Of the undeformed sheet.
    traction : float
        Upwards, in Pa of the undeformed edge; as small as by Geo-FNO, it strains the sheet by
        1e-4 or so.

    Returns
    -------
    Loaded

    Raises
    ------
    RuntimeError
        If Newton's method does not converge however small the load steps.
    """
    basis = Basis(mesh, ElementVector(ElementQuad2()), intorder=4)
    upper = FacetBasis(mesh, basis.elem, facets=mesh.facets_satisfying(lambda x: x[1] > 1 - 1e-9))
    load = traction * asm(LinearForm(lambda v, w: v[1]), upper)
    clamped = basis.get_dofs(lambda x: x[1] < 1e-9).all()

    displacement, iterations = basis.zeros(), 0
    reached, step = 0.0, 1.0
    while reached < 1:
        share = min(reached + step, 1.0)
        found, count = _newton(basis, displacement, share * load, clamped)
        iterations += count
        if found is None:
            step /= 2
            if step < 2.0**-HALVINGS:
                raise RuntimeError(f"no equilibrium found beyond {reached:.3f} of the load")
        else:
            displacement, reached = found, share
    cauchy = _nodal_stress(mesh, basis, displacement)
    xx, yy, xy = cauchy.T
    return Loaded(
        points=mesh.p[:, : mesh.nvertices].T,
        displacement=displacement[basis.nodal_dofs].T,
        stress=np.sqrt(xx**2 - xx * yy + yy**2 + 3 * xy**2),
        cauchy=cauchy,
        iterations=iterations,
    )


@LinearForm
def _inner_force(v, w):
    return _dot(w["stress"], v.grad)


@BilinearForm
def _stiffness(u, v, w):
    return np.einsum("klij...,kl...,ij...->...", w["moduli"], u.grad, v.grad)


def _newton(basis, displacement, load, clamped):
    """Equilibrium under a load, or None, and the number of steps."""
    free = np.setdiff1d(np.arange(basis.N), clamped)
    scale = np.linalg.norm(load)
    for count in range(ITERATIONS + 1):
        gradient = _gradient(basis.interpolate(displacement))
        if _invariants(gradient)[1].min() <= 0:
            return None, count  # turned inside out
        residual = asm(_inner_force, basis, stress=first_piola(gradient)) - load
        if np.linalg.norm(residual[free]) <= TOLERANCE * scale:
            return displacement, count
        units = np.eye(4).reshape(2, 2, 2, 2, 1, 1)  # F's four entries, one a time
        moduli = np.array([[tangent(gradient, unit) for unit in row] for row in units])
        matrix = asm(_stiffness, basis, moduli=moduli)[free][:, free]
        step = splu(matrix.tocsc(), permc_spec="MMD_AT_PLUS_A").solve(-residual[free])
        displacement = displacement.copy()
        displacement[free] += step
    return None, count


def _nodal_stress(mesh, basis, displacement):
    """Cauchy stress at the vertices, as the best continuous biquadratic fit: xx, yy, xy."""
    gradient = _gradient(basis.interpolate(displacement))
    # The volume does not change, so the Cauchy stress is P Fᵀ.
    cauchy = np.einsum("ij...,kj...->ik...", first_piola(gradient), gradient)
    scalar = basis.with_element(ElementQuad2())
    moments = [
        asm(LinearForm(lambda v, w: w["f"] * v), scalar, f=cauchy[i, j])
        for i, j in ((0, 0), (1, 1), (0, 1))
    ]
    nodal = splu(asm(mass, scalar).tocsc(), permc_spec="MMD_AT_PLUS_A").solve(np.array(moments).T)
    return nodal[scalar.nodal_dofs[0]]


def _gradient(field):
    return field.grad + np.eye(2)[:, :, None, None]


def _invariants(gradient):
    (a, b), (c, d) = gradient
    return a**2 + b**2 + c**2 + d**2, a * d - b * c


def _dot(a, b):
    return np.einsum("ij...,ij...->...", a, b)
