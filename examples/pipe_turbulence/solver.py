# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
r"""Unsteady flow in an irregular pipe, in the plane: an obstacle, a sudden expansion and a bend.

.. math::
    ∂_t u + (u·∇) u = -∇p + ν Δu, \quad ∇·u = 0,

in the inlet's height and its mean largest velocity. The fluid enters on the left with a profile
whose strength and tilt vary smoothly and at random in time, does not slip on the walls and the
obstacle, and leaves on the right. The obstacle and the step below shed vortices that never
settle. One mesh and one factorisation serve all runs; see `examples.fem.flow.Flow`.
"""

from dataclasses import dataclass

import numpy as np

from examples.fem.flow import Flow
from examples.fem.mesh import circle, polygon, triangulate

__all__ = ["PAIRS", "SIZE", "STEP", "Inflow", "Pipe", "draw_inflow", "pair_times", "pipe_mesh"]

CORNERS = [(0, 0), (1.5, 0), (1.5, -0.5), (3, -0.5), (5, 0.3), (5, 1.3), (3.2, 1), (0, 1)]
OUTLET = 5.0
OBSTACLE, RADIUS = (1.9, 0.45), 0.18
VISCOSITY = 2e-3  # Re = 500 with the inlet's height, 180 with the obstacle's diameter
SIZE = 0.109  # of the quadratic triangles, for about 2673 nodes
STEP = 0.0025  # of the time, at this size
START, INTERVAL, GAP = 12.0, 0.3, 1.0  # before the first pair, within one, from one to the next
PAIRS = 10  # a run
STRENGTH, TILT = 0.1, 0.25  # amplitude of each wave
MODES = 3


def pipe_mesh(size=SIZE):
    """Mesh the pipe with triangles of ``size``, finer near the obstacle: skfem.MeshTri."""

    def wanted(points):
        away = np.linalg.norm(points - OBSTACLE, axis=1) - RADIUS
        return size * np.clip(0.6 + away, 0.6, 1.0)

    return triangulate([polygon(CORNERS, wanted), circle(OBSTACLE, RADIUS, wanted)], wanted)


@dataclass(frozen=True)
class Inflow:
    """Waves in time of the inflow's strength and of its tilt.

    Attributes
    ----------
    frequencies, phases : ndarray
        (2, waves) of both.
    strength : float
        Factor of the whole inflow; with 0 there is none.
    """

    frequencies: np.ndarray
    phases: np.ndarray
    strength: float = 1.0

    def factors(self, time):
        """Strength and tilt at a time; both begin at zero."""
        waves = np.sin(2 * np.pi * self.frequencies * time + self.phases).sum(1)
        strength = self.strength * np.tanh(time) * (1 + STRENGTH * waves[0])
        return strength, TILT * waves[1]

    def __call__(self, time, y):
        """Velocity (n,) at heights (n,) of the inlet."""
        strength, tilt = self.factors(time)
        return strength * 4 * y * (1 - y) * (1 + tilt * (2 * y - 1))

    def volume(self, time):
        """What enters, a time and a depth: the tilt adds nothing."""
        return 2 / 3 * self.factors(time)[0]


def draw_inflow(rng):
    """Draw an `Inflow` with waves of periods between 3 and 20."""
    return Inflow(rng.uniform(1 / 20, 1 / 3, (2, MODES)), rng.uniform(0, 2 * np.pi, (2, MODES)))


class Pipe:
    """The flow's matrices on a mesh, for any number of runs.

    Parameters
    ----------
    mesh : skfem.MeshTri
        Of the pipe.
    step : float
        Of the time.

    Attributes
    ----------
    flow : Flow
        The matrices.
    """

    def __init__(self, mesh, step=STEP):
        outlets = mesh.facets_satisfying(lambda x: x[0] > OUTLET - 1e-9, boundaries_only=True)
        self.step, self.flow = step, Flow(mesh, VISCOSITY, step, outlets)
        x, self._y = self.flow.points[:, self.flow.given]
        self._entering = x < 1e-9

    def run(self, inflow, times):
        """Velocities at times of a run that begins at rest.

        Parameters
        ----------
        inflow : Inflow
            Of the run.
        times : ndarray
            (T,) ascending and positive, taken to the nearest step.

        Returns
        -------
        ndarray
            (T, 2, N).

        Raises
        ------
        FloatingPointError
            If the flow becomes non-finite: the time step is too long.
        """
        flow, wanted = self.flow, np.round(np.asarray(times) / self.step).astype(int)
        new = old = np.zeros_like(flow.points)
        old_load = np.zeros_like(new)
        boundary = np.zeros((2, flow.given.size))
        kept = []
        for number in range(1, wanted[-1] + 1):
            time = number * self.step
            boundary[0, self._entering] = inflow(time, self._y[self._entering])
            load = flow.convection(new)
            new, old = flow.advance(new, old, 2 * load - old_load, boundary)[0], new
            old_load = load
            if number in wanted:
                if not np.isfinite(new).all():
                    raise FloatingPointError(
                        f"the flow is not finite at time {time:.3g} with steps of "
                        f"{self.step:.3g}; take shorter ones"
                    )
                kept.append(new)
        return np.array(kept)


def pair_times(pairs):
    """Times (2 ``pairs``,): of a pair's input, of its output, of the next pair's input, ..."""
    return (START + GAP * np.arange(pairs)[:, None] + [0, INTERVAL]).ravel()
