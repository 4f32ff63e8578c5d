# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

r"""Steady incompressible flow through bent channels: a stream function, with scikit-fem.

With :math:`\mathbf{u} = (\partial_y ψ, -\partial_x ψ)` mass is conserved at every point, not only
on average, and tested with fields of the same kind the Navier-Stokes equations lose their
pressure: find ψ with

.. math:: \int ν \nabla\mathbf{u} : \nabla\mathbf{w} + (\mathbf{u} \cdot \nabla)\mathbf{u} \cdot
    \mathbf{w} = 0 \quad \text{for all } \mathbf{w} = (\partial_y φ, -\partial_x φ).

ψ is constant on each wall. Nothing is asked of it at the outflow, which makes it the free one,
:math:`ν \partial_n \mathbf{u} = p \mathbf{n}`. The elements are Bogner, Fox and Schmit's bicubic
ones, whose vertices carry ψ and the velocity itself; no pair of spaces has to be stable. They
need rectangles: the channel is sheared straight by :math:`ξ = x`, :math:`η = y - c(x)`, whose
Jacobian is 1, and derivatives follow from the chain rule.

Units: the channel's width and the peak inflow velocity.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.interpolate import CubicHermiteSpline
from scipy.sparse import coo_matrix
from scipy.sparse.linalg import splu
from skfem import Basis, ElementQuadBFS, MeshQuad

__all__ = ["LENGTH", "VISCOSITY", "Flow", "solve"]

LENGTH = 10.0
VISCOSITY = 0.005  # Reynolds number 200
THICK = 0.1  # viscosity that the continuation starts from
ITERATIONS = 8  # of Newton's method at one viscosity
TOLERANCE = 1e-6  # last change of the velocity; convergence is quadratic
LOOSE = 0.03  # the same, on the way to the final viscosity


@dataclass
class Flow:
    """A steady flow.

    Attributes
    ----------
    centre : callable
        The centreline, as given to `solve`.
    values : ndarray
        (4, n + 1, m + 1) ψ, ∂ψ/∂ξ, ∂ψ/∂η and ∂²ψ/∂ξ∂η at the vertices of n elements along the
        channel and m across.
    iterations : int
        Steps of Newton's method.
    """

    centre: object
    values: np.ndarray
    iterations: int

    def on_grid(self, shape):
        """Evaluate the finite element solution on a grid of equal spacing along and across.

        Parameters
        ----------
        shape : tuple of int
            Points along the channel and across, walls included.

        Returns
        -------
        tuple of ndarray
            x, y, u, v, each of this shape; the second index runs upwards.
        """
        (along, across), (xi, eta) = _axes(self.values.shape[1:]), _axes(shape)
        # Bicubic elements are cubic Hermite interpolation across, then along.
        psi, psi_xi, psi_eta, psi_xi_eta = self.values
        value = CubicHermiteSpline(across, psi, psi_eta, axis=1)
        slope = CubicHermiteSpline(across, psi_xi, psi_xi_eta, axis=1)
        u = CubicHermiteSpline(along, value(eta, 1), slope(eta, 1), axis=0)(xi)
        down = CubicHermiteSpline(along, value(eta), slope(eta), axis=0)(xi, 1)
        x = np.repeat(xi[:, None], shape[1], axis=1)
        return x, self.centre(x) + eta, u, self.centre(x, 1) * u - down


def solve(centre, elements, viscosity=VISCOSITY):
    """Solve for the flow through a channel of length 10 and vertical width 1.

    The inflow at x = 0 is horizontal, a parabola with its peak 1 in the middle.

    Parameters
    ----------
    centre : callable
        ``centre(x, k)`` gives the k-th derivative of the centreline's height, such as a
        `scipy.interpolate.CubicHermiteSpline`. Elements should end where the second one jumps.
    elements : tuple of int
        Along the channel and across.
    viscosity : float
        Kinematic: the inverse Reynolds number.

    Returns
    -------
    Flow

    Raises
    ------
    RuntimeError
        If Newton's method does not follow the flow down to this viscosity.
    """
    channel = _Channel(centre, tuple(elements))
    reached, factor, slope, iterations = None, 1 / 3, 0.0, 0
    lower, guess = max(THICK, viscosity), channel.at_rest
    while reached != viscosity:
        found, count = channel.newton(guess, lower, TOLERANCE if lower == viscosity else LOOSE)
        iterations += count
        if found is not None:
            if reached is not None:
                slope = (found - psi) / np.log(lower / reached)
            psi, reached = found, lower
        elif reached is None or factor > 0.95:
            raise RuntimeError(f"no flow found at viscosity {lower:.4g}; the last was {reached}")
        else:
            factor **= 0.5
        lower = max(viscosity, factor * reached)
        guess = psi + slope * np.log(lower / reached)
    return Flow(centre, channel.at_vertices(psi), iterations)


@lru_cache(maxsize=2)
def _straight(elements):
    """Basis on the straightened channel: the same for all."""
    along, across = elements
    mesh = MeshQuad.init_tensor(*_axes((along + 1, across + 1)))
    return Basis(mesh, ElementQuadBFS(), intorder=7)


def _axes(shape):
    """Equally spaced ξ and η."""
    return np.linspace(0, LENGTH, shape[0]), np.linspace(-0.5, 0.5, shape[1])


class _Channel:
    """Equations of one channel.

    ``shapes`` (elements, 16, 6, quadrature points) holds u, v, ∂u/∂x, ∂u/∂y, ∂v/∂x and ∂v/∂y of
    the basis functions.
    """

    def __init__(self, centre, elements):
        self.basis, self.elements = _straight(elements), elements
        xi = np.asarray(self.basis.global_coordinates())[0]
        c1, c2 = centre(xi, 1), centre(xi, 2)
        shapes = []
        for (function,) in self.basis.basis:
            (d_xi, d_eta), ((xixi, xieta), (_, etaeta)) = function.grad, function.hess
            u_x, psi_xx = xieta - c1 * etaeta, xixi - 2 * c1 * xieta + c1**2 * etaeta - c2 * d_eta
            shapes.append([d_eta, c1 * d_eta - d_xi, u_x, etaeta, -psi_xx, -u_x])
        self.shapes = np.ascontiguousarray(np.moveaxis(shapes, 2, 0))

        eta, dofs = self.basis.mesh.p[1], self.basis.nodal_dofs
        wall = np.abs(eta) > 0.5 - 1e-9
        inflow = (self.basis.mesh.p[0] < 1e-9) & ~wall
        fixed = np.zeros(self.basis.N, bool)
        fixed[dofs[:, wall | inflow]] = True
        self.free = np.flatnonzero(~fixed)
        profile = np.array([eta - 4 / 3 * eta**3 + 1 / 3, 1 - 4 * eta**2, -8 * eta])
        c1 = centre(0.0, 1)
        self.at_rest = self.basis.zeros()  # but for the boundary
        self.at_rest[dofs[0, wall]] = profile[0, wall]
        inflow_values = [profile[0], c1 * profile[1], profile[1], c1 * profile[2]]
        self.at_rest[dofs[:, inflow]] = np.array(inflow_values)[:, inflow]

    def newton(self, psi, viscosity, tolerance):
        """Flow near a guess, or None, and the number of steps."""
        least = np.inf
        for count in range(1, ITERATIONS + 1):
            residual, fields = self.residual(psi, viscosity)
            matrix = self.jacobian(fields, viscosity)[self.free][:, self.free]
            change = np.zeros_like(psi)
            change[self.free] = splu(matrix.tocsc()).solve(residual[self.free])
            psi = psi - change
            size = np.abs(change[self.basis.nodal_dofs[2]]).max()  # of ∂ψ/∂η, the velocity
            if size <= tolerance:
                return psi, count
            if size > 3 * least:
                break
            least = min(size, least)
        return None, count

    def residual(self, psi, viscosity):
        """Residual of all unknowns, and the fields u, v, ∂u/∂x, ... (6, elements, points)."""
        element_dofs = self.basis.element_dofs
        fields = np.einsum("ie,eicq->ceq", psi[element_dofs], self.shapes)
        u, v, *gradient = fields
        u_x, u_y, v_x, v_y = gradient
        fluxes = [u * u_x + v * u_y, u * v_x + v * v_y, *(viscosity * g for g in gradient)]
        local = np.einsum("eicq,ceq,eq->ie", self.shapes, fluxes, self.basis.dx)
        return np.bincount(element_dofs.ravel(), local.ravel(), self.basis.N), fields

    def jacobian(self, fields, viscosity):
        """Derivative of the residual."""
        u, v, u_x, u_y, v_x, v_y = fields[:, :, None]
        du, dv, du_x, du_y, dv_x, dv_y = np.moveaxis(self.shapes, 2, 0)
        change = viscosity * self.shapes
        change[:, :, 0] = du * u_x + u * du_x + dv * u_y + v * du_y
        change[:, :, 1] = du * v_x + u * dv_x + dv * v_y + v * dv_y
        change *= self.basis.dx[:, None, None]
        n = len(change)
        local = self.shapes.reshape(n, 16, -1) @ change.reshape(n, 16, -1).transpose(0, 2, 1)
        dofs = self.basis.element_dofs.T
        rows, columns = np.broadcast_arrays(dofs[:, :, None], dofs[:, None, :])
        entries = (local.ravel(), (rows.ravel(), columns.ravel()))
        return coo_matrix(entries, shape=(self.basis.N, self.basis.N)).tocsc()

    def at_vertices(self, psi):
        """Values as `Flow` holds them."""
        order = np.lexsort(self.basis.mesh.p[::-1])  # x first, then upwards
        along, across = self.elements
        return psi[self.basis.nodal_dofs[:, order]].reshape(4, along + 1, across + 1)
