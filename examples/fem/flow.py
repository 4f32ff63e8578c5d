# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
r"""Incompressible flow in the plane: Taylor-Hood elements, one factorisation for all time steps.

.. math::
    ∂_t u + (u·∇) u = -∇p + ∇·(ν (∇u + ∇u^T)) + f, \quad ∇·u = 0,

with u given on part of the boundary and :math:`ν ∂_n u - p n = 0` on the rest, the outlets: a
developed flow leaves as it would go on. In time it is the backward difference formula of second
order; convection and forces are extrapolated from the two steps before, so that the matrix

.. math:: \begin{pmatrix} \frac{3}{2 Δt} M + K & -B^T \\ -B & 0 \end{pmatrix}

stays, and one factorisation serves. Velocity and pressure are found together: no splitting error,
and what flows in flows out to rounding.

The viscosity may vary in space, not in time. The points of a field are the nodes of quadratic
triangles: the vertices, then the edges' midpoints.
"""

import numpy as np
from scipy.sparse import block_array, csc_array
from scipy.sparse.linalg import splu
from skfem import Basis, ElementTriP1, ElementTriP2, FacetBasis

from examples.fem.operators import quadrature

__all__ = ["Flow", "data_mesh"]


def data_mesh(mesh):
    """Points (N, 2) and cells (M, 3) of the linear triangles between a mesh's quadratic nodes."""
    fine = mesh.refined()
    return fine.p.T, fine.t.T


class Flow:
    """Flow on a mesh, with its matrices.

    Parameters
    ----------
    mesh : skfem.MeshTri
        Of the domain.
    viscosity : float or callable
        ν, or ν (n,) at points (2, n).
    step : float
        Δt; infinite for the steady flow without inertia.
    outlets : ndarray
        Facets where the flow is free to leave.

    Attributes
    ----------
    points : ndarray
        (2, N) nodes of the velocity.
    at : Quadrature
        Of the velocity's scalar basis.
    mass : csr_array
        (N, N) of the same.
    given : ndarray
        Nodes whose velocity is given, sorted.
    """

    def __init__(self, mesh, viscosity, step, outlets):
        basis = Basis(mesh, ElementTriP2(), intorder=5)
        pressure = quadrature(Basis(mesh, ElementTriP1(), intorder=5))
        self.mesh, self.step, self.points = mesh, step, basis.doflocs
        self.at = at = quadrature(basis)
        edge = FacetBasis(mesh, ElementTriP2(), facets=outlets, intorder=5)
        self._edge = quadrature(edge)
        self._normal = np.asarray(edge.normals).reshape(2, -1)
        walls = np.setdiff1d(mesh.boundary_facets(), outlets)
        self.given = np.sort(basis.get_dofs(walls).all())
        nu = viscosity(at.points) if callable(viscosity) else np.full(at.weights.size, viscosity)
        on_edge = self._edge.points
        nu_edge = (
            viscosity(on_edge) if callable(viscosity) else np.full(on_edge.shape[1], viscosity)
        )

        def product(left, weights, right):
            return left.T @ (right * weights[:, None])

        self.mass = product(at.values, at.weights, at.values)
        blocks = [[None, None], [None, None]]
        diffusion = sum(product(g, at.weights * nu, g) for g in at.gradients)
        for i in range(2):
            for j in range(2):
                # (∇u)ᵀ : ∇v, less what it would add to the stress at the outlets.
                block = product(at.gradients[j], at.weights * nu, at.gradients[i])
                weights = self._edge.weights * nu_edge * self._normal[j]
                block = block - product(self._edge.values, weights, self._edge.gradients[i])
                blocks[i][j] = block + diffusion if i == j else block
        self.viscous = csc_array(block_array(blocks))  # (2 N, 2 N)
        self.divergence = block_array(
            [[product(pressure.values, at.weights, g) for g in at.gradients]], format="csr"
        )  # (P, 2 N)

        count = self.points.shape[1]
        inertia = block_array([[self.mass, None], [None, self.mass]]) * (1.5 / step)
        self._matrix = csc_array(
            block_array([[inertia + self.viscous, -self.divergence.T], [-self.divergence, None]])
        )
        fixed = np.concatenate([self.given, count + self.given])
        self._free = np.setdiff1d(np.arange(self._matrix.shape[0]), fixed)
        self._fixed_columns = self._matrix[:, fixed][self._free]
        self._factors = splu(self._matrix[self._free][:, self._free])

    def solve(self, load, boundary):
        """Velocity (2, N) and pressure (P,) of the linear system.

        Parameters
        ----------
        load : ndarray
            (2, N) right-hand side of the momentum.
        boundary : ndarray
            (2, len(given)) velocity at the `given` nodes.
        """
        count = self.points.shape[1]
        right = np.zeros(self._matrix.shape[0])
        right[: 2 * count] = load.ravel()
        found = np.zeros_like(right)
        found[self._free] = self._factors.solve(
            right[self._free] - self._fixed_columns @ boundary.ravel()
        )
        velocity = found[: 2 * count].reshape(2, count)
        velocity[:, self.given] = boundary
        return velocity, found[2 * count :]

    def convection(self, velocity):
        """Load (2, N) of −(u·∇) u.

        Where the flow comes back through an outlet, its kinetic energy is taken away there
        (Bazilevs et al., Comput. Methods Appl. Mech. Eng. 198, 2009): otherwise a vortex on its
        way out makes the step unstable.
        """
        load = np.empty_like(velocity)
        u, v = (self.at.values @ part for part in velocity)
        flux = sum(
            n * (self._edge.values @ part) for n, part in zip(self._normal, velocity, strict=True)
        )
        back = 0.5 * self._edge.weights * np.minimum(flux, 0)
        for i, part in enumerate(velocity):
            slope = u * (self.at.gradients[0] @ part) + v * (self.at.gradients[1] @ part)
            load[i] = -(self.at.values.T @ (self.at.weights * slope))
            load[i] += self._edge.values.T @ (back * (self._edge.values @ part))
        return load

    def advance(self, new, old, forces, boundary):
        """One time step.

        Parameters
        ----------
        new, old : ndarray
            (2, N) velocity now and a step before.
        forces : ndarray
            (2, N) load at the time to come, convection included: extrapolated, twice the present
            one less the one before.
        boundary : ndarray
            (2, len(given)) velocity at the time to come.
        """
        history = (2 * new - 0.5 * old) / self.step
        return self.solve((self.mass @ history.T).T + forces, boundary)

    def outflow(self, velocity):
        """Volume that leaves through the outlets, a time and a depth."""
        parts = zip(self._normal, velocity, strict=True)
        return sum((self._edge.weights * n) @ (self._edge.values @ part) for n, part in parts)

    def pressure_at_nodes(self, pressure):
        """Pressure (N,) at the velocity's nodes, linear between the vertices."""
        return np.concatenate([pressure, pressure[self.mesh.facets].mean(0)])
