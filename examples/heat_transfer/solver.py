# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
r"""Laminar flow with heat round two hot cylinders in a channel.

The Boussinesq equations, in the channel's height H, the largest inlet velocity, and kelvin:

.. math::
    ∂_t u + (u·∇) u = -∇p + ν Δu + β T e_y, \quad ∇·u = 0, \quad
    ∂_t T + u·∇T = κ ΔT,

with T the temperature above the inlet's. The fluid enters on the left with a parabolic profile,
does not slip on the walls and cylinders, and leaves on the right. Channel walls are adiabatic,
the cylinders are hot by the temperature difference. The inflow is steady, or it pulsates: its
velocity is multiplied by 1 + a sin(2π t / `PERIOD`). The cylinders' centres lie at half their
spacing from the point (1.2, 0.5), on a line at an angle to the channel.

Every sample has its own mesh, which is finer near the cylinders. Velocity and temperature are
quadratic on triangles, the pressure linear; in time it is `examples.fem.flow.Flow`, whose
matrices, with the temperature's, are factorised once a sample. Frames start at rest, T = 0.
There is no upwinding: on coarse triangles T falls below zero by the cylinders, by a tenth of
the difference on 1000 points.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csc_array
from scipy.sparse.linalg import splu

from examples.fem.flow import Flow, data_mesh
from examples.fem.mesh import circle, polygon, triangulate

__all__ = [
    "Conditions",
    "NodeType",
    "Trajectory",
    "channel_mesh",
    "draw_conditions",
    "simulate",
]

LENGTH, HEIGHT = 4.0, 1.0
CENTRE = np.array([1.2, 0.5])
VISCOSITY, DIFFUSIVITY = 1.5e-3, 2e-3
BUOYANCY = 2e-3  # β g
FRAMES, INTERVAL = 501, 0.05
SUBSTEPS = 20  # time steps a frame; larger triangles allow longer ones
PERIOD = 2.0  # of a pulsating inflow
SIZE = 0.075  # of the quadratic triangles far from the cylinders


class NodeType:
    """The values of ``node_type``."""

    FLUID, WALL, CYLINDER, INLET, OUTLET = range(5)


@dataclass(frozen=True)
class Conditions:
    """What a trajectory differs by, in the order of the data.

    Attributes
    ----------
    inlet_velocity : float
        The largest one.
    temperature_difference : float
        Of the cylinders to the inlet, in K.
    spacing : float
        Between the cylinders' centres.
    radius : float
        Theirs.
    angle : float
        Of the line through both centres, in radians.
    """

    inlet_velocity: float
    temperature_difference: float
    spacing: float
    radius: float
    angle: float

    def centres(self):
        """Centres (2, 2) of the cylinders."""
        arm = 0.5 * self.spacing * np.array([np.cos(self.angle), np.sin(self.angle)])
        return np.stack([CENTRE - arm, CENTRE + arm])


@dataclass
class Trajectory:
    """Fields of F frames at N points.

    Attributes
    ----------
    points, cells : ndarray
        (N, 2), and (M, 3) linear triangles between them.
    node_type : ndarray
        (N,) of `NodeType`.
    velocity : ndarray
        (F, 2, N).
    pressure, temperature : ndarray
        (F, N).
    time : ndarray
        (F,).
    """

    points: np.ndarray
    cells: np.ndarray
    node_type: np.ndarray
    velocity: np.ndarray
    pressure: np.ndarray
    temperature: np.ndarray
    time: np.ndarray


def draw_conditions(rng):
    """Draw `Conditions`, each uniform and apart from the others.

    The Reynolds number of a cylinder's diameter and the largest inlet velocity is 53 to 187.
    """
    return Conditions(
        inlet_velocity=rng.uniform(0.5, 1.0),
        temperature_difference=rng.uniform(10, 60),
        spacing=rng.uniform(0.4, 0.7),
        radius=rng.uniform(0.08, 0.14),
        angle=rng.uniform(-np.pi / 3, np.pi / 3),
    )


def channel_mesh(conditions, size=SIZE):
    """Mesh the channel round its cylinders with triangles of ``size``, finer near them."""
    centres, radius = conditions.centres(), conditions.radius

    def wanted(points):
        away = np.linalg.norm(points[:, None] - centres, axis=-1).min(1) - radius
        return size * np.clip(0.5 + away / (4 * radius), 0.5, 1.0)

    outline = polygon([(0, 0), (LENGTH, 0), (LENGTH, HEIGHT), (0, HEIGHT)], wanted)
    return triangulate([outline, *(circle(c, radius, wanted) for c in centres)], wanted)


def inlet_profile(y):
    """Of the velocity, one at most."""
    return 4 * y * (HEIGHT - y) / HEIGHT**2


def simulate(
    conditions,
    frames=FRAMES,
    interval=INTERVAL,
    size=SIZE,
    substeps=SUBSTEPS,
    pulse=0.0,
    skip=0,
):
    """Solve for a trajectory.

    Parameters
    ----------
    conditions : Conditions
        Of the sample.
    frames : int
        How many; the first is the state at rest, unless some are skipped.
    interval : float
        Time from frame to frame.
    size : float
        Of the triangles, see `channel_mesh`.
    substeps : int
        Time steps a frame.
    pulse : float
        Amplitude a of the inflow's pulsation.
    skip : int
        Frames at the beginning that are not kept.

    Returns
    -------
    Trajectory

    Raises
    ------
    FloatingPointError
        If the flow becomes non-finite: the time step is too long.
    """
    mesh = channel_mesh(conditions, size)
    step = interval / substeps
    outlets = mesh.facets_satisfying(lambda x: x[0] > LENGTH - 1e-9, boundaries_only=True)
    flow = Flow(mesh, VISCOSITY, step, outlets)
    points, cells = data_mesh(mesh)
    x, y = flow.points
    kind = np.full(x.size, NodeType.FLUID)
    kind[flow.given] = NodeType.CYLINDER
    kind[x > LENGTH - 1e-9] = NodeType.OUTLET
    kind[x < 1e-9] = NodeType.INLET
    kind[(y < 1e-9) | (y > HEIGHT - 1e-9)] = NodeType.WALL

    inflow = np.zeros((2, flow.given.size))
    entering = kind[flow.given] == NodeType.INLET
    inflow[0, entering] = conditions.inlet_velocity * inlet_profile(y[flow.given][entering])
    heat = _Heat(flow, kind, conditions.temperature_difference)

    velocity, temperature, pressure = np.zeros((2, x.size)), np.zeros(x.size), None
    temperature[kind == NodeType.CYLINDER] = conditions.temperature_difference
    old_velocity, old_temperature, old_load, old_heat = velocity, temperature, None, None
    kept = [(velocity, np.zeros(x.size), temperature)]
    for number in range(1, (skip + frames - 1) * substeps + 1):
        strength = 1 + pulse * np.sin(2 * np.pi * number * step / PERIOD)
        load = flow.convection(velocity)
        load[1] += BUOYANCY * (flow.mass @ temperature)
        carried = heat.convection(velocity, temperature)
        # The first step has no history: the fluid was at rest before.
        forces = load if old_load is None else 2 * load - old_load
        source = carried if old_heat is None else 2 * carried - old_heat
        new_velocity, pressure = flow.advance(velocity, old_velocity, forces, strength * inflow)
        new_temperature = heat.advance(temperature, old_temperature, source)
        old_velocity, velocity = velocity, new_velocity
        old_temperature, temperature = temperature, new_temperature
        old_load, old_heat = load, carried
        if number % substeps == 0:
            if not np.isfinite(velocity).all() or not np.isfinite(temperature).all():
                raise FloatingPointError(
                    f"the flow is not finite at time {number * step:.3g} with steps of "
                    f"{step:.3g}; take more substeps"
                )
            kept.append((velocity, flow.pressure_at_nodes(pressure), temperature))
    velocities, pressures, temperatures = (
        np.array(field) for field in zip(*kept[skip:], strict=True)
    )
    return Trajectory(
        points,
        cells,
        kind,
        velocities,
        pressures,
        temperatures,
        interval * np.arange(skip, skip + frames),
    )


class _Heat:
    """Advection and diffusion of the temperature with the flow's time steps."""

    def __init__(self, flow, kind, difference):
        self._at, self._mass, self._step = flow.at, flow.mass, flow.step
        self._values = np.where(kind == NodeType.CYLINDER, difference, 0.0)
        fixed = (kind == NodeType.CYLINDER) | (kind == NodeType.INLET)
        self._free = np.flatnonzero(~fixed)
        weights = DIFFUSIVITY * self._at.weights[:, None]
        matrix = 1.5 / self._step * self._mass
        matrix = matrix + sum(g.T @ (g * weights) for g in self._at.gradients)
        self._lift = (matrix @ self._values)[self._free]
        self._factors = splu(csc_array(matrix[self._free][:, self._free]))

    def convection(self, velocity, temperature):
        u, v = (self._at.values @ part for part in velocity)
        gradients = self._at.gradients
        slope = u * (gradients[0] @ temperature) + v * (gradients[1] @ temperature)
        return -(self._at.values.T @ (self._at.weights * slope))

    def advance(self, new, old, source):
        load = self._mass @ ((2 * new - 0.5 * old) / self._step) + source
        found = self._values.copy()
        found[self._free] = self._factors.solve(load[self._free] - self._lift)
        return found
