# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

r"""Steady two-dimensional Euler flow on C-meshes: finite volumes in NVIDIA Warp, batched.

Space: cell-centred, MUSCL (κ = 1/3, van Albada's limiter, primitive variables) with the HLLC flux
of Toro, Spruce and Speares (1994) and Einfeldt's wave speeds; second order. Time: the matrix-free
LU-SGS scheme of Yoon and Jameson (AIAA J. 26(9), 1988) with local steps, first on every second
node, then on all. A step is captured once and replayed, on a GPU and on the CPU, since it consists
of thousands of launches.

Units: density and pressure of the free stream are one, lengths are chords, so that the speed of
sound of the free stream is √γ. Cell arrays carry two ghost cells on every side.
"""

from dataclasses import dataclass

import numpy as np
import warp as wp

from examples.airfoil.euler_kernels import (
    GAMMA,
    balance,
    fill_ends,
    fill_sides,
    flux_along,
    flux_outwards,
    real,
    sweep,
    update,
    vec2,
    vec4,
)
from examples.airfoil.mesh import cell_areas

__all__ = ["GAMMA", "Flow", "solve"]

STEPS = 10  # steps between two looks at the residual
SWEEPS = 4  # symmetric Gauss-Seidel sweeps a step; measured: 4 to 8 take the least time


@dataclass
class Flow:
    """Steady flows around a batch of sections, at the mesh's nodes.

    Attributes
    ----------
    x, y : ndarray
        (B, ni, nj) nodes, in chords.
    rho, u, v, p, mach : ndarray
        (B, ni, nj) fields at the nodes; density and pressure of the free stream are one.
    cl, cd : ndarray
        (B,) lift and drag coefficients.
    cp : ndarray
        (B, n) pressure coefficients on the section's faces, lower trailing edge first.
    history : ndarray
        (looks, B) root mean square of the density's rate of change on the full mesh, relative to
        that of the impulsive start, after every `STEPS` steps.
    converged : ndarray
        (B,) whether the history reached the tolerance; from then on the flow was left as it is.
    """

    x: np.ndarray
    y: np.ndarray
    rho: np.ndarray
    u: np.ndarray
    v: np.ndarray
    p: np.ndarray
    mach: np.ndarray
    cl: np.ndarray
    cd: np.ndarray
    cp: np.ndarray
    history: np.ndarray
    converged: np.ndarray


def solve(x, y, mach=0.8, alpha=0.0, tolerance=1e-5, max_steps=3000, device="cpu"):
    """Solve the steady flow around a batch of sections.

    Parameters
    ----------
    x, y : array_like
        (B, ni, nj) nodes of C-meshes of one size and one wake length, see `c_mesh`.
    mach : float
        Mach number of the free stream, below one.
    alpha : float
        Incidence in degrees.
    tolerance : float
        Residual, relative to the impulsive start's, at which a flow counts as converged.
    max_steps : int
        Steps on each mesh after which the rest counts as not converged.
    device : str
        Warp device, ``"cpu"`` or ``"cuda"``.

    Returns
    -------
    Flow
        Look at its `converged`: a flow that does not converge is returned, too.
    """
    if not 0 < mach < 1:
        raise ValueError(f"mach {mach}: expected a subsonic free stream")
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    speed, angle = mach * np.sqrt(GAMMA), np.radians(alpha)
    free = (1.0, speed * np.cos(angle), speed * np.sin(angle), 1.0)
    level = Level(x, y, free, device)
    ni, nj = level.ni, level.nj
    if level.wake % 2 == ni % 4 == nj % 2 == 0:
        coarse = Level(x[:, ::2, ::2], y[:, ::2, ::2], free, device)
        march(coarse, max(tolerance, 1e-3), max_steps)
        start = coarse.cells().repeat(2, axis=1).repeat(2, axis=2)
    else:
        start = None
    history, converged = march(level, tolerance, max_steps, start)
    cl, cd, cp = level.forces()
    return Flow(x, y, *level.at_nodes(), cl, cd, cp, history, converged)


def march(level, tolerance, max_steps, start=None):
    """March to the steady state; returns the relative residual (looks, B) and what converged."""
    level.residual()
    impulsive = level.norm()
    if start is not None:
        level.set(np.pad(start, ((0, 0), (2, 2), (2, 2), (0, 0)), mode="edge"))
    with wp.ScopedCapture(device=level.device) as capture:
        level.step()
    history, active = [], np.ones(len(level.x), dtype=bool)
    for look in range(max_steps // STEPS):
        # The local CFL number rises from 5 without bound: LU-SGS needs no time step in the end.
        level.per_cfl.fill_(0.2 * 0.7**look)
        for _ in range(STEPS):
            wp.capture_launch(capture.graph)
        level.set_far_field(level.forces()[0])
        history.append(level.norm() / impulsive)
        # A converged flow is left as it is, so that it does not depend on the rest of its batch.
        active &= ~(history[-1] <= tolerance)
        level.active.assign(active.astype(np.int32))
        if not np.any(active & np.isfinite(history[-1])):
            break
    return np.array(history), ~active


class Level:
    """Arrays and launches of one batch of meshes of one size.

    Parameters
    ----------
    x, y : ndarray
        (B, ni + 1, nj + 1) nodes, see `c_mesh`.
    free : sequence of float
        (4,) primitive free stream.
    device : str
        Warp device.
    """

    def __init__(self, x, y, free, device="cpu"):
        if not cell_areas(x, y).min() > 0:
            raise ValueError("the mesh has cells without positive area")
        self.x, self.y, self.free = x, y, free
        self.ni, self.nj = x.shape[1] - 1, x.shape[2] - 1
        self.wake = wake_cells(x, y)
        self.device = device
        batch, cells = len(x), (self.ni, self.nj)
        normal_i = np.stack([np.diff(y, axis=2), -np.diff(x, axis=2)], axis=-1)
        self.normal_j = np.stack([-np.diff(y, axis=1), np.diff(x, axis=1)], axis=-1)
        self.area = cell_areas(x, y)
        with wp.ScopedDevice(device):
            self.si, self.sj = wp.array(normal_i, dtype=vec2), wp.array(self.normal_j, dtype=vec2)
            self.q = wp.empty((batch, self.ni + 4, self.nj + 4), dtype=vec4)
            self.fi = wp.empty((batch, self.ni + 1, self.nj), dtype=vec4)
            self.fj = wp.empty((batch, self.ni, self.nj + 1), dtype=vec4)
            self.rhs, self.dw = (wp.empty((batch, *cells), dtype=vec4) for _ in range(2))
            self.diag = wp.empty((batch, *cells), dtype=real)
            self.per_cfl = wp.zeros(1, dtype=real)
            self.active = wp.ones(batch, dtype=wp.int32)
            self.far_ends = wp.empty((batch, 2, self.nj), dtype=vec4)
            self.far_outer = wp.empty((batch, self.ni), dtype=vec4)
        self.set_far_field(np.zeros(batch))
        self.set(np.broadcast_to(free, (batch, self.ni + 4, self.nj + 4, 4)))

    def set(self, q):
        """Take primitive cell values (B, ni + 4, nj + 4, 4)."""
        self.q.assign(np.ascontiguousarray(q, dtype=np.float64))

    def set_far_field(self, cl):
        """Take the far field of sections of lift (B,): the free stream and a point vortex."""
        z = self.x + 1j * self.y
        ends = 0.5 * (z[:, :: self.ni, 1:] + z[:, :: self.ni, :-1])
        outer = 0.5 * (z[:, 1:, -1] + z[:, :-1, -1])
        self.far_ends.assign(with_vortex(ends, self.free, cl[:, None, None]))
        self.far_outer.assign(with_vortex(outer, self.free, cl[:, None]))

    def launch(self, kernel, dim, *inputs):
        """Launch a kernel over the batch and `dim`."""
        wp.launch(kernel, dim=(len(self.x), *dim), inputs=inputs, device=self.device)

    def residual(self):
        """Launch the evaluation of each cell's balance of fluxes."""
        ni, nj = self.ni, self.nj
        self.launch(fill_ends, (nj,), self.q, self.si, self.far_ends)
        self.launch(fill_sides, (ni,), self.q, self.sj, self.far_outer, self.wake)
        self.fluxes()

    def fluxes(self):
        """Launch the balance of fluxes with the ghost cells as they are."""
        ni, nj = self.ni, self.nj
        self.launch(flux_along, (ni + 1, nj), self.q, self.si, self.fi)
        self.launch(flux_outwards, (ni, nj + 1), self.q, self.sj, self.wake, self.fj)
        fixed = (self.q, self.si, self.sj, self.fi, self.fj, self.per_cfl)
        self.launch(balance, (ni, nj), *fixed, self.rhs, self.diag)

    def step(self):
        """Launch one LU-SGS step."""
        self.residual()
        fixed = (self.q, self.si, self.sj, self.rhs, self.diag, self.wake)
        self.dw.zero_()
        lines = range(self.ni + self.nj - 1)
        for line in (*lines, *reversed(lines)) * SWEEPS:
            self.launch(sweep, (self.nj,), *fixed, line, self.dw)
        self.launch(update, (self.ni, self.nj), self.q, self.dw, self.active)

    def norm(self):
        """(B,) root mean square of the density's rate of change."""
        return np.sqrt(np.mean((self.rhs.numpy()[..., 0] / self.area) ** 2, axis=(1, 2)))

    def cells(self):
        """Primitive values of the cells (B, ni, nj, 4)."""
        return self.q.numpy()[:, 2:-2, 2:-2]

    def at_nodes(self):
        """Density, velocities, pressure and Mach number at the nodes, (5, B, ni + 1, nj + 1).

        Means of the four cells around a node; beyond the section they are the linear extrapolation
        of the two cells over it, beyond the wake cut the cells across, elsewhere the far field.
        """
        self.residual()  # fills the ghost cells
        q = self.q.numpy()[:, 1:-1, 1:-1].copy()
        q[:, [0, -1], 0], q[:, [0, -1], -1] = q[:, [-1, 0], 1], q[:, [0, -1], -2]
        q = 0.25 * (q[:, 1:, 1:] + q[:, :-1, 1:] + q[:, 1:, :-1] + q[:, :-1, :-1])
        cut = slice(0, self.wake + 1)  # with the trailing edge: the mean of both sides
        q[:, cut, 0] = 0.5 * (q[:, cut, 0] + q[:, ::-1][:, cut, 0])
        q[:, ::-1][:, cut, 0] = q[:, cut, 0]
        rho, u, v, p = np.moveaxis(q, -1, 0)
        return np.stack([rho, u, v, p, np.hypot(u, v) / np.sqrt(GAMMA * p / rho)])

    def forces(self):
        """Lift and drag coefficients, each (B,), and pressure coefficients on the faces (B, n)."""
        rows = self.q.numpy()[:, 2 + self.wake : 2 + self.ni - self.wake, 2:4, 3]
        p = 1.5 * rows[..., 0] - 0.5 * rows[..., 1]
        dynamic = 0.5 * self.free[0] * (self.free[1] ** 2 + self.free[2] ** 2)
        cp = (p - self.free[3]) / dynamic
        force = -(cp[..., None] * self.normal_j[:, self.wake : self.ni - self.wake, 0]).sum(axis=1)
        flow = np.array(self.free[1:3]) / np.hypot(*self.free[1:3])
        return force @ [-flow[1], flow[0]], force @ flow, cp


def wake_cells(x, y):
    """Cells on each side of the wake cut, found as the leading nodes that coincide."""
    same = (x[:, :, 0] == x[:, ::-1, 0]) & (y[:, :, 0] == y[:, ::-1, 0])
    wake = int(np.argmin(same.all(axis=0))) - 1
    if wake < 1:
        raise ValueError("the mesh is no C-mesh: its first nodes along the C are not shared")
    return wake


def with_vortex(z, free, cl):
    """Primitive far field (..., 4) at the points z = x + iy of a section with lift `cl`.

    The compressible point vortex at the quarter chord of Thomas and Salas (AIAA J. 24(7), 1986),
    isentropic and of the free stream's total enthalpy.
    """
    speed, alpha = np.hypot(free[1], free[2]), np.arctan2(free[2], free[1])
    mach = speed / np.sqrt(GAMMA)
    theta, r = np.angle(z - 0.25), np.abs(z - 0.25)
    swirl = cl * speed * np.sqrt(1 - mach**2) / (4 * np.pi * r)
    swirl = swirl / (1 - mach**2 * np.sin(theta - alpha) ** 2)
    u, v = free[1] + swirl * np.sin(theta), free[2] - swirl * np.cos(theta)
    temperature = 1 + (GAMMA - 1) / (2 * GAMMA) * (speed**2 - u**2 - v**2)
    rho = temperature ** (1 / (GAMMA - 1))
    return np.stack([rho, u, v, rho * temperature], axis=-1)
