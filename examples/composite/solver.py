# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
r"""A curved plate of two anisotropic plies that deforms because its temperature changes.

Linear thermoelasticity in three dimensions: for the displacement u, zero at the clamped end,

.. math::
    ∇·σ = 0, \quad σ = C : (ε(u) - α\, T), \quad ε(u) = \tfrac12 (∇u + ∇u^T),

with the stiffness C and the expansion α of a carbon fibre ply, whose fibres run along the plate
in the lower ply and across it in the upper one. So a temperature that is the same everywhere
bends the plate. The rest of the surface is free.

Elements are isoparametric and quadratic tetrahedra; their nodes are the points of the data, and
each is split into eight linear ones for the data's cells. One factorisation serves all
temperatures: a sample costs one product and one solution.

Units: metre, kelvin, pascal.
"""

import numpy as np
from scipy.sparse import block_diag, csc_array, csr_array, vstack
from scipy.sparse.linalg import splu
from skfem import Basis, ElementTetP2, MeshHex, MeshTet2

from examples.fem.fields import GaussianField
from examples.fem.operators import quadrature

__all__ = [
    "EXPANSION",
    "SHAPE",
    "Plate",
    "local_axes",
    "plate_mesh",
    "ply_stiffness",
    "temperature_field",
]

LENGTH, WIDTH, THICKNESS = 0.4, 0.3, 0.01  # m
RADIUS = 0.35  # m, of the plate's middle surface across its length
SHAPE = (20, 20, 2)  # quadratic elements along, across and through: 41 x 41 x 5 = 8405 nodes
# A typical unidirectional ply of carbon fibre and epoxy, in the axes of the fibre (1), the
# plane (2) and the thickness (3).
YOUNG = np.array([140e9, 9e9, 9e9])
POISSON = {"12": 0.3, "13": 0.3, "23": 0.4}  # νᵢⱼ: contraction along j for a pull along i
SHEAR = {"23": 3.2e9, "13": 5e9, "12": 5e9}
EXPANSION = np.diag([0.2e-6, 30e-6, 30e-6])  # 1/K
KAPPA = 20.0  # 1/m, the inverse correlation length of the temperature
_VOIGT = [(0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1)]


def ply_stiffness():
    """Stiffness of a ply, (3, 3, 3, 3), in the axes of its fibre."""
    compliance = np.zeros((6, 6))
    compliance[range(3), range(3)] = 1 / YOUNG
    for name, ratio in POISSON.items():
        i, j = int(name[0]) - 1, int(name[1]) - 1
        compliance[i, j] = compliance[j, i] = -ratio / YOUNG[i]
    compliance[range(3, 6), range(3, 6)] = [1 / SHEAR[name] for name in ("23", "13", "12")]
    voigt = np.linalg.inv(compliance)
    stiffness = np.zeros((3, 3, 3, 3))
    for a, (i, j) in enumerate(_VOIGT):
        for b, (k, m) in enumerate(_VOIGT):
            stiffness[i, j, k, m] = stiffness[j, i, k, m] = voigt[a, b]
            stiffness[i, j, m, k] = stiffness[j, i, m, k] = voigt[a, b]
    return stiffness


def plate_mesh(shape=SHAPE):
    """Mesh the plate.

    Parameters
    ----------
    shape : tuple of int
        Quadratic elements along, across and, an even number, through the plate.

    Returns
    -------
    mesh : skfem.MeshTet2
        Its nodes, ``mesh.doflocs`` (3, N), are the data's points.
    cells : ndarray
        (M, 4) linear tetrahedra between these nodes.
    """
    along, across, through = shape
    if min(shape) < 1 or through % 2:
        raise ValueError(f"shape: expected positive numbers, the last one even; got {shape}")
    flat = MeshHex.init_tensor(
        np.linspace(0, LENGTH, along + 1),
        np.linspace(0, WIDTH, across + 1),
        np.linspace(-THICKNESS / 2, THICKNESS / 2, through + 1),
    ).to_meshtet()
    curved = MeshTet2.from_mesh(flat)
    s, y, z = curved.doflocs
    bent = np.stack([(RADIUS + z) * np.sin(s / RADIUS), y, (RADIUS + z) * np.cos(s / RADIUS)])
    return MeshTet2(bent, flat.t), flat.refined().t.T


def local_axes(points):
    """Axes (n, 3, 3), in columns, of the plies at points (3, n): fibre, in the plane, thickness."""
    x, _, z = points
    radius = np.hypot(x, z)
    sin, cos, zero = x / radius, z / radius, np.zeros_like(x)
    along = np.stack([cos, zero, -sin], -1)
    across = np.stack([zero, zero + 1, zero], -1)
    lower = (radius < RADIUS)[:, None]
    fibre = np.where(lower, along, across)
    normal = np.stack([sin, zero, cos], -1)
    return np.stack([fibre, np.cross(normal, fibre), normal], -1)


def temperature_field(mesh):
    """The temperatures' distribution: a function that draws one (N,), in K, with a Generator.

    It is 100 + 30 c + 30 g: one standard normal number c and a Gaussian field g.
    """
    field = GaussianField(Basis(mesh, ElementTetP2(), intorder=5), KAPPA)
    # A plate much thinner than 1/κ carries a field of the plane, which varies more than in space.
    scale = np.sqrt(KAPPA * THICKNESS / 2)

    def draw(rng):
        return 100 + 30 * rng.normal() + 30 * scale * field.draw(rng)

    return draw


class Plate:
    """The plate's stiffness, factorised.

    Parameters
    ----------
    mesh : skfem.MeshTet2
        From `plate_mesh`.
    fixed : ndarray, optional
        (N, 3) of bool, the displacements that are zero; by default those of the end at x = 0.
    axes : callable
        Of the material at points, see `local_axes`.
    expansion : ndarray
        (3, 3) strain a kelvin in these axes.
    """

    def __init__(self, mesh, fixed=None, axes=local_axes, expansion=EXPANSION):
        at = quadrature(Basis(mesh, ElementTetP2(), intorder=2))
        count, self.nodes = at.values.shape
        if fixed is None:
            fixed = np.repeat(np.abs(mesh.doflocs[0]) < 1e-9, 3).reshape(-1, 3)
        turn = axes(at.points)
        stiffness = np.einsum(
            "qia,qjb,qkc,qmd,abcd->ijkmq", *[turn] * 4, ply_stiffness(), optimize=True
        )
        strain = np.einsum("qia,qjb,ab->ijq", turn, turn, expansion)
        # Rows (3 i + j) Q + q of the gradient: ∂uᵢ/∂xⱼ at point q; of u, i N + n.
        gradient = csr_array(block_diag([vstack(at.gradients)] * 3))
        rows, columns, point = np.meshgrid(*map(np.arange, (9, 9, count)), indexing="ij")
        places = (rows * count + point).ravel(), (columns * count + point).ravel()
        hooke = csr_array((stiffness.ravel(), places), shape=(9 * count, 9 * count))
        hooke.eliminate_zeros()
        weighted = gradient.T * np.tile(at.weights, 9)
        self.stiffness = csr_array(weighted @ (hooke @ gradient))
        expand = vstack([at.values * e[:, None] for e in strain.reshape(9, -1)])
        self.thermal_force = csr_array(weighted @ (hooke @ expand))  # (3 N, N)
        self._free = np.flatnonzero(~fixed.T.ravel())
        matrix = csc_array(self.stiffness[self._free][:, self._free])
        self._factors = splu(matrix, permc_spec="MMD_AT_PLUS_A")

    def solve(self, temperature, force=None):
        """The displacement.

        Parameters
        ----------
        temperature : ndarray
            (N,) change of it at the nodes, in K.
        force : ndarray, optional
            (N, 3) at the nodes, in N.

        Returns
        -------
        ndarray
            (N, 3) in m.

        Raises
        ------
        ValueError
            If the temperature has another shape.
        """
        if temperature.shape != (self.nodes,):
            raise ValueError(f"expected temperatures {(self.nodes,)}, got {temperature.shape}")
        load = self.thermal_force @ temperature
        if force is not None:
            load = load + force.T.ravel()
        displacement = np.zeros(3 * self.nodes)
        displacement[self._free] = self._factors.solve(load[self._free])
        return displacement.reshape(3, -1).T
