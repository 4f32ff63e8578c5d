# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

r"""A metal block pressed by a rigid die: finite strain, von Mises plasticity, plane strain.

Every step minimises an incremental potential over the positions :math:`x` of the nodes (Ortiz and
Stainier, Comput. Methods Appl. Mech. Eng. 171, 1999), by Newton's method with its exact Hessian:

.. math::
    \sum_e A_e \frac{K}{2} \Big(\ln \frac{a_e}{A_e}\Big)^2 + \sum_q w_q W(F_q)

- The volume change is that of a whole quadrilateral, whose area was :math:`A_e` and is
  :math:`a_e`: the mean dilatation, which keeps bilinear elements from locking.
- :math:`W` is the deviatoric elastic energy in logarithmic strains (Hencky's) plus what the step's
  plastic strain costs: multiplicative plasticity with linear isotropic hardening and an
  exponential radial return (Simo, Comput. Methods Appl. Mech. Eng. 99, 1992).

The top nodes stay below the die without friction: their gap to it, which takes the place of their
y, is bounded by zero (an active set, no penalty).

Lengths are in mm, stresses in MPa. Inertia is left out: at 3 m/s it is a thousandth of the yield
stress.
"""

import itertools
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, solve_banded

__all__ = ["SHAPE", "Block", "Die", "NotConverged", "equilibrate", "press", "rectangle"]

LENGTH, HEIGHT = 50.0, 15.0
SHAPE = (101, 31)  # nodes
YOUNG, POISSON = 200e3, 0.3
YIELD, HARDENING = 70.0, 500.0  # the latter is the rise of the yield stress with plastic strain
SPEED, SECONDS, STEPS = 3000.0, 1e-3, 20  # 3 m/s for 1 ms
BULK = YOUNG / (3 * (1 - 2 * POISSON))
SHEAR = YOUNG / (2 * (1 + POISSON))
ITERATIONS, HALVINGS = 40, 5
TOLERANCE = 1e-5  # of the residual force, relative to all nodal forces

# Twice the area of a quadrilateral (x1, y1, … x4, y4) is this quadratic form.
_AREA = np.zeros((8, 8))
for _i in range(4):
    _j = (_i + 1) % 4
    _AREA[2 * _i, 2 * _j + 1] = _AREA[2 * _j + 1, 2 * _i] = 0.5
    _AREA[2 * _j, 2 * _i + 1] = _AREA[2 * _i + 1, 2 * _j] = -0.5
_CORNERS = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])


class NotConverged(ArithmeticError):
    """Newton's method has found no equilibrium."""


class _Response(NamedTuple):
    """The material's answer to a deformation, at every Gauss point, in principal axes."""

    axes: np.ndarray  # (m, 4, 2, 2), in columns
    strain: np.ndarray  # (m, 4, 3) elastic logarithmic strains before the return
    deviator: np.ndarray  # (m, 4, 3) theirs
    share: np.ndarray  # (m, 4) of the deviator that stays elastic
    plastic: np.ndarray  # (m, 4) equivalent plastic strain of the step
    trial: np.ndarray  # (m, 4) equivalent stress before the return

    def stress_and_tangent(self, secant):
        """Kirchhoff deviator (m, 4, 2) and Hessian (m, 4, 4, 4) for rates 11, 22, 12, 21.

        The Hessian is that in a velocity gradient, with the geometric part. For principal strains
        that differ by x, the shear stiffness is G x coth x, of which G is the limit. The secant
        stiffness leaves out that a yielding point is soft in the direction in which it yields.
        """
        scale = 2 * SHEAR * self.share[..., None]
        stress = scale * self.deviator[..., :2]
        norm = np.linalg.norm(self.deviator, axis=-1)
        direction = self.deviator[..., :2] / np.maximum(norm, 1e-300)[..., None]
        yielding = self.plastic / np.maximum(self.trial, YIELD) - 1 / (3 * SHEAR + HARDENING)
        softer = 6 * SHEAR**2 * np.where((self.plastic > 0) & (not secant), yielding, 0)
        tangent = np.zeros((*norm.shape, 4, 4))
        tangent[..., :2, :2] = scale[..., None] * (np.eye(2) - 1 / 3)
        tangent[..., :2, :2] += softer[..., None, None] * (
            direction[..., :, None] * direction[..., None, :]
        )
        tangent[..., [0, 1], [0, 1]] -= stress
        x = np.maximum(np.abs(self.strain[..., 0] - self.strain[..., 1]), 1e-8)
        shear = SHEAR * self.share * x / np.tanh(x) - 0.5 * stress.sum(-1)
        tangent[..., 2:, 2:] = shear[..., None, None]
        tangent[..., [2, 3], [2, 3]] += stress[..., ::-1]
        return stress, tangent


class Block:
    """Quadrilaterals with their plastic history.

    Parameters
    ----------
    nodes : ndarray
        (n, 2) positions without stress.
    cells : ndarray
        (m, 4) nodes of the quadrilaterals, counter-clockwise.

    Attributes
    ----------
    hardening : ndarray
        (m, 4) equivalent plastic strain at the Gauss points.
    inverse_cp : ndarray
        (m, 4, 3, 3) the inverse of the plastic right Cauchy-Green tensor.

    Raises
    ------
    ValueError
        If a quadrilateral is not convex or runs clockwise.
    """

    def __init__(self, nodes, cells):
        self.nodes, self.cells = np.asarray(nodes, float), np.asarray(cells)
        s, t = _CORNERS.T[:, :, None] / np.sqrt(3)  # the Gauss points
        local = 0.25 * np.stack(
            [_CORNERS[:, 0] * (1 + t * _CORNERS[:, 1]), _CORNERS[:, 1] * (1 + s * _CORNERS[:, 0])],
            axis=1,
        )  # (4 points, 2 directions, 4 nodes)
        jacobian = local @ self.nodes[self.cells][:, None]
        self.weights = np.linalg.det(jacobian)
        if not self.weights.min() > 0:
            raise ValueError("a quadrilateral is not convex or its nodes run clockwise")
        self.gradients = np.linalg.inv(jacobian) @ local  # ∂N/∂X, (m, 4, 2, 4)
        self.areas = self.weights.sum(1)
        self.hardening = np.zeros(self.weights.shape)
        self.inverse_cp = np.tile(np.eye(3), (*self.weights.shape, 1, 1))
        self._dofs = (2 * self.cells[:, :, None] + [0, 1]).reshape(-1, 8)
        rows, columns = np.broadcast_arrays(self._dofs[:, :, None], self._dofs[:, None])
        self.band = int(np.abs(rows - columns).max())
        self._places = ((self.band + rows - columns) * self.nodes.size + columns).ravel()

    def energy(self, x):
        """The material's part of the potential (J/m = N·mm/mm) at positions x (n, 2).

        Infinite where a quadrilateral folds.
        """
        corners, deformation = self._deform(x)
        areas = 0.5 * np.sum(corners @ _AREA * corners, axis=1)
        if areas.min() <= 0 or _determinant(deformation).min() <= 0:
            return np.inf
        volumetric = 0.5 * BULK * self.areas @ np.log(areas / self.areas) ** 2
        new = self._respond(deformation)
        elastic = SHEAR * new.share**2 * np.sum(new.deviator**2, axis=-1)
        dissipated = YIELD + HARDENING * (self.hardening + 0.5 * new.plastic)
        return volumetric + np.sum(self.weights * (elastic + dissipated * new.plastic))

    def derivatives(self, x, secant=False):
        """Every cell's gradient (m, 8) and Hessian (m, 8, 8) of the energy at positions x (n, 2).

        With ``secant`` the Hessian's place is taken by a stiffer matrix.
        """
        corners, deformation = self._deform(x)
        slope = corners @ _AREA  # of the area
        areas = 0.5 * np.sum(slope * corners, axis=1)
        dilatation = np.log(areas / self.areas)
        pull = BULK * self.areas * dilatation / areas
        force = pull[:, None] * slope
        bend = BULK * self.areas * (1 - dilatation) / areas**2
        hessian = pull[:, None, None] * _AREA
        hessian = hessian + bend[:, None, None] * slope[:, :, None] * slope[:, None]

        new = self._respond(deformation)
        stress, tangent = new.stress_and_tangent(secant)
        axes = new.axes.swapaxes(-1, -2)
        along = axes @ _inverse(deformation).swapaxes(-1, -2) @ self.gradients  # ∂N/∂x
        # Velocity gradient 11, 22, 12, 21 in principal axes from the nodes' velocities.
        rows = along[:, :, [0, 1, 1, 0], :, None] * axes[:, :, [0, 1, 0, 1], None]
        rows = rows.reshape(-1, 4, 4, 8)
        weighted = self.weights[:, :, None, None] * rows
        force += np.sum(stress[..., None] * weighted[:, :, :2], axis=(1, 2))
        columns = (tangent @ rows).reshape(-1, 16, 8)
        hessian += weighted.reshape(-1, 16, 8).swapaxes(1, 2) @ columns
        return force, hessian

    def assemble(self, force, hessian):
        """Sum over the cells: (2 n,), and in `solve_banded`'s form (2 band + 1, 2 n)."""
        size = self.nodes.size
        gradient = np.bincount(self._dofs.ravel(), force.ravel(), size)
        banded = np.bincount(self._places, hessian.ravel(), (2 * self.band + 1) * size)
        return gradient, banded.reshape(-1, size)

    def commit(self, x):
        """End the step at positions x (n, 2): its plastic strains become history."""
        _, deformation = self._deform(x)
        new = self._respond(deformation)
        mean = new.strain.mean(-1, keepdims=True)
        stretch = np.exp(2 * (mean + new.share[..., None] * new.deviator))  # squared, elastic
        back = _inverse(deformation) @ new.axes
        self.inverse_cp[..., :2, :2] = (back * stretch[..., None, :2]) @ back.swapaxes(-1, -2)
        self.inverse_cp[..., 2, 2] = stretch[..., 2]
        self.hardening = self.hardening + new.plastic

    def cauchy(self, x):
        """Cauchy stress at the Gauss points of positions x (n, 2): (m, 4, 3, 3) in MPa."""
        corners, deformation = self._deform(x)
        ratio = 0.5 * np.sum(corners @ _AREA * corners, axis=1) / self.areas
        new = self._respond(deformation)
        deviator = 2 * SHEAR * new.share[..., None] * new.deviator
        stress = np.zeros((*self.weights.shape, 3, 3))
        stress[..., :2, :2] = (new.axes * deviator[..., None, :2]) @ new.axes.swapaxes(-1, -2)
        stress[..., 2, 2] = deviator[..., 2]
        pressure = BULK * np.log(ratio)[:, None, None, None] * np.eye(3)
        return (stress + pressure) / ratio[:, None, None, None]

    def _deform(self, x):
        """Corners (m, 8) and deformation gradients (m, 4, 2, 2)."""
        corners = x[self.cells]
        deformation = (self.gradients @ corners[:, None]).swapaxes(-1, -2)
        return corners.reshape(-1, 8), deformation

    def _respond(self, deformation):
        """Elastic trial and radial return."""
        b = deformation @ self.inverse_cp[..., :2, :2] @ deformation.swapaxes(-1, -2)
        centre = 0.5 * (b[..., 0, 0] + b[..., 1, 1])
        half = 0.5 * (b[..., 0, 0] - b[..., 1, 1])
        radius = np.hypot(half, b[..., 0, 1])
        angle = 0.5 * np.arctan2(b[..., 0, 1], half)
        cos, sin = np.cos(angle), np.sin(angle)
        axes = np.stack([np.stack([cos, -sin], -1), np.stack([sin, cos], -1)], -2)
        squares = np.stack([centre + radius, centre - radius, self.inverse_cp[..., 2, 2]], -1)
        strain = 0.5 * np.log(np.maximum(squares, 1e-12))  # a folded one counts as infinite anyway
        deviator = strain - strain.mean(-1, keepdims=True)
        trial = np.sqrt(6) * SHEAR * np.linalg.norm(deviator, axis=-1)
        excess = trial - YIELD - HARDENING * self.hardening
        plastic = np.maximum(excess, 0) / (3 * SHEAR + HARDENING)
        share = 1 - 3 * SHEAR * plastic / np.maximum(trial, YIELD)
        return _Response(axes, strain, deviator, share, plastic, trial)


class Die:
    """A rigid, frictionless surface that nodes stay below.

    With it a node's coordinates are its x and its gap to the die, in place of its y. So contact
    is a simple bound, gap ≥ 0, and needs no penalty.

    Parameters
    ----------
    profile : callable
        ``profile(x, k)`` is the k-th derivative of the surface's height over `level`, k = 0, 1, 2.
    nodes : ndarray
        Nodes that may touch it.
    cells : ndarray
        (m, 4) nodes of all quadrilaterals.

    Attributes
    ----------
    level : float
        The y from which the profile's height counts; to be moved.
    """

    def __init__(self, profile, nodes, cells):
        self.profile, self.nodes, self.level = profile, nodes, 0.0
        corners = np.isin(cells, nodes)  # (m, 4)
        self._cells = np.flatnonzero(corners.any(1))
        self._corners = cells[self._cells]
        self._touchable = corners[self._cells]

    def coordinates(self, positions):
        """Coordinates (n, 2) of positions (n, 2); gaps are negative where the die has gone on."""
        z = positions.copy()
        x, y = positions[self.nodes].T
        z[self.nodes, 1] = self.level + self.profile(x, 0) - y
        return z

    def positions(self, z):
        """Positions (n, 2) of coordinates (n, 2)."""
        positions = z.copy()
        x, gap = z[self.nodes].T
        positions[self.nodes, 1] = self.level + self.profile(x, 0) - gap
        return positions

    def transform(self, z, force, hessian):
        """Turn the cells' gradients (m, 8) and Hessians (m, 8, 8) into those in coordinates z."""
        x = z[self._corners, 0]
        jacobian = np.tile(np.eye(8), (len(x), 1, 1))
        for corner in range(4):
            touchable = self._touchable[:, corner]
            slope, y = self.profile(x[touchable, corner], 1), 2 * corner + 1
            jacobian[touchable, y, y - 1], jacobian[touchable, y, y] = slope, -1
        pull = force[self._cells, 1::2] * self._touchable
        force[self._cells] = (force[self._cells, None] @ jacobian)[:, 0]
        hessian[self._cells] = jacobian.swapaxes(1, 2) @ hessian[self._cells] @ jacobian
        diagonal = np.arange(0, 8, 2)
        hessian[self._cells[:, None], diagonal, diagonal] += pull * self.profile(x, 2)
        return force, hessian


def equilibrate(block, x, free, die=None):
    """Find the equilibrium of a step by Newton's method, with bounds on the gaps.

    Nodes that press on the die, or that an iteration would take through it, stay on it during
    that iteration. A line search lowers the energy. Where it has to shorten a step, yielding
    points have turned round: the next iteration takes the secant stiffness.

    Parameters
    ----------
    block : Block
        Its history is left as it is.
    x : ndarray
        (n, 2) first guess, in which the positions that are not free have their values.
    free : ndarray
        (n, 2) of bool.
    die : Die, optional
        What nodes may touch.

    Returns
    -------
    ndarray
        (n, 2) positions.

    Raises
    ------
    NotConverged
        If the residual stays above its tolerance.
    """
    die = Die(lambda x, k: x, np.empty(0, int), block.cells) if die is None else die
    z, rows, fixed = die.coordinates(x), 2 * die.nodes + 1, np.flatnonzero(~free.ravel())
    energy, secant = block.energy(die.positions(z)), True
    if energy == np.inf:
        raise NotConverged("a quadrilateral of the first guess folds")
    for _ in range(ITERATIONS):
        derivatives = block.derivatives(die.positions(z), secant)
        gradient, hessian = block.assemble(*die.transform(z, *derivatives))
        gaps = z[die.nodes, 1]
        inside = gaps.min(initial=0) >= 0
        touching = (gaps < 0) | ((gaps == 0) & (gradient[rows] > 0))
        residual = gradient.copy()
        residual[fixed], residual[rows[touching]] = 0, 0
        if inside and np.linalg.norm(residual) <= TOLERANCE * np.linalg.norm(gradient):
            return die.positions(z)

        step = _step(gradient, hessian, fixed, rows[touching], gaps[touching])
        for _ in range(3):
            crossing = ~touching & (gaps + step[rows] < 0)
            if not crossing.any():
                break
            touching |= crossing
            step = _step(gradient, hessian, fixed, rows[touching], gaps[touching])
        descent = -step @ gradient
        for length in 0.5 ** np.arange(10):
            trial = z + length * step.reshape(z.shape)
            trial[die.nodes, 1] = np.where(
                touching, (1 - length) * gaps, np.maximum(trial[die.nodes, 1], 0)
            )
            lower = block.energy(die.positions(trial))
            # But for its rounding, which must not stop the last iterations. A die that has gone
            # on raises the energy.
            bound = energy - 1e-4 * length * descent + 1e-13 * abs(energy) if inside else np.inf
            if lower <= bound and lower < np.inf:
                z, energy, secant = trial, lower, length <= 0.5
                break
        else:
            if secant:
                raise NotConverged("no step lowers the energy")
            secant = True
    raise NotConverged(f"no equilibrium after {ITERATIONS} iterations")


def rectangle(shape=SHAPE):
    """Nodes (ni nj, 2), the second axis fastest, and cells of a LENGTH × HEIGHT rectangle."""
    ni, nj = shape
    axes = np.meshgrid(np.linspace(0, LENGTH, ni), np.linspace(0, HEIGHT, nj), indexing="ij")
    index = np.arange(ni * nj).reshape(shape)
    cells = np.stack([index[:-1, :-1], index[1:, :-1], index[1:, 1:], index[:-1, 1:]], -1)
    return np.stack(axes, -1).reshape(-1, 2), cells.reshape(-1, 4)


def press(profile, shape=SHAPE):
    """Press a die that moves down at 3 m/s into the block.

    Parameters
    ----------
    profile : callable
        Height of the die's surface, for `Die`. Its lowest point is 0 and touches the block at
        the beginning.
    shape : tuple of int
        Nodes along the block and in its depth.

    Returns
    -------
    ndarray
        (20, ni, nj, 2) the nodes' positions, at equal times up to 1 ms; index j rises with y.

    Raises
    ------
    NotConverged
        If Newton's method fails even for a 32nd of a step.
    """
    nodes, cells = rectangle(shape)
    block = Block(nodes, cells)
    die = Die(profile, np.arange(shape[1] - 1, len(nodes), shape[1]), cells)
    free = np.ones(nodes.shape, bool)
    free[:: shape[1]] = False  # the bottom
    levels = HEIGHT - SPEED * SECONDS * np.linspace(0, 1, STEPS + 1)
    x, before, frames = nodes, nodes, []
    for start, stop in itertools.pairwise(levels):
        guess = 2 * x - before  # the motion of the step before
        before, x = x, _advance(block, die, x, guess, free, start, stop, HALVINGS)
        frames.append(x.reshape(*shape, 2))
    return np.stack(frames)


def _advance(block, die, x, guess, free, start, stop, halvings):
    """Positions when the die has come down to a level, in several steps if need be."""
    die.level = stop
    try:
        found = equilibrate(block, guess, free, die)
    except NotConverged:
        if halvings == 0:
            raise
        middle = 0.5 * (start + stop)
        x = _advance(block, die, x, x, free, start, middle, halvings - 1)
        return _advance(block, die, x, x, free, middle, stop, halvings - 1)
    block.commit(found)
    return found


def _determinant(a):
    """Determinants of (…, 2, 2), several times faster than LAPACK's one by one."""
    return a[..., 0, 0] * a[..., 1, 1] - a[..., 0, 1] * a[..., 1, 0]


def _inverse(a):
    """Inverses of (…, 2, 2)."""
    adjugate = np.array([[1, -1], [-1, 1]]) * a[..., ::-1, ::-1].swapaxes(-1, -2)
    return adjugate / _determinant(a)[..., None, None]


def _step(gradient, hessian, fixed, touching, gaps):
    """Newton's step (2 n,) that leaves what is fixed and takes the gaps of touching nodes away."""
    band = len(hessian) // 2
    hessian, right = hessian.copy(), -gradient
    stiff = 1e10 * np.abs(hessian[band]).max()  # so that nothing else counts in these rows
    hessian[band, fixed], right[fixed] = stiff, 0
    hessian[band, touching], right[touching] = stiff, -stiff * gaps
    try:
        step = solve_banded((band, band), hessian, right, overwrite_ab=True, overwrite_b=True)
    except LinAlgError as error:
        raise NotConverged("the stiffness is singular") from error
    step[fixed] = 0
    return step
