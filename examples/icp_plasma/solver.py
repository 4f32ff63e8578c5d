# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
r"""A reduced model of an inductively coupled plasma, in the plane.

A section of a reactor that is long across the plane: a chamber with a wafer's pedestal below and
a window with the coil above. In units of 0.1 m, 1 ms, 1e17 electrons a m³, 3 eV for the electrons,
300 K for the gas and 1 Pa,

.. math::
    ∂_t n &= ∇·(D ∇n) + ν n, \quad ν = k_0 e^{-E/T_e} p / T, \\
    ∂_t T_e &= χ ΔT_e + \tfrac23 \left(\frac{P(t) g}{n_c + ∫ n g} - E ν\right) - ν T_e
               - K p (T_e - εT) / T, \\
    ∂_t T + u·∇T &= ∇·(α ∇T) + H n (T_e - εT),

with D and α inversely proportional to the pressure p. The coil's power P goes to the electrons
of a skin layer g, which integrates to one, in proportion to their number; with few electrons it
is lost in the coil. On walls :math:`-D ∂_n n = β n`, :math:`-χ ∂_n T_e = β_e T_e` and
:math:`-α ∂_n T = β_g (T - 1)`. The gas flow u is Stokes' with an inlet in the left wall and a
pump below on the right; it starts from rest, as P does.

Linear triangles with a lumped mass. In time it is the scheme ARS(2,2,2) of second order (Ascher,
Ruuth and Spiteri, Appl. Numer. Math. 25, 1997): diffusion implicitly, with three factorisations a
trajectory, all else explicitly, in the same two stages. As no step is split, the steady state is
the same for every Δt; the balance of particles closes to rounding. The fast loss of energy by
ionisation, up to 500 / ms where electrons are hottest, bounds Δt.
"""

from dataclasses import astuple, dataclass

import numpy as np
from scipy.sparse import diags_array
from scipy.sparse.linalg import splu
from skfem import Basis, ElementTriP1, FacetBasis

from examples.fem.flow import Flow
from examples.fem.mesh import polygon, triangulate
from examples.fem.operators import quadrature

__all__ = [
    "Conditions",
    "NodeType",
    "Plasma",
    "draw_conditions",
    "inflow",
    "node_types",
    "reactor",
    "simulate",
]

CORNERS = [
    (0, 0), (0.6, 0), (0.6, 0.25), (1.4, 0.25), (1.4, 0), (2, 0), (2, 1), (0, 1), (0, 0.9), (0, 0.5)
]  # fmt: skip
SPACING = 0.0249  # of the nodes, for about 3424
FRAMES, INTERVAL, SUBSTEPS = 101, 0.025, 10
BEGIN = 0.1  # of the frames, when the electrons have heated up
SKIN = 0.15  # depth of the layer below the window
DIFFUSION, CONDUCTION, GAS_CONDUCTION = 0.3, 1.0, 0.2  # D and α at p = 1, and χ
WALL, ELECTRON_WALL, GAS_WALL = 3.0, 0.3, 2.0  # β, β_e, β_g
RATE, ENERGY = 700.0, 5.27  # k0, and E: 15.8 eV
ELASTIC, RATIO, HEATING = 1.0, 0.0086, 0.3  # K, ε: 300 K in units of 3 eV, H
COIL = 0.3  # n_c
GAMMA, DELTA = 1 - 0.5**0.5, -(0.5**0.5)  # of ARS(2,2,2)
START = 0.2  # of the electrons' density, and of their temperature
POWER_TIME, FLOW_TIME = 0.3, 1.0  # of the ramps 1 - exp(-t / time)


class NodeType:
    """The values of ``node_type``."""

    INTERIOR, WALL, WINDOW, INLET, OUTLET = range(5)


@dataclass(frozen=True)
class Conditions:
    """What trajectories differ by, in the order of the data.

    Attributes
    ----------
    power : float
        Of the coil, in 0.48 W a metre across the plane.
    pressure : float
        Of the gas, in Pa.
    flow : float
        Largest speed at the inlet, in 100 m/s.
    position, width : float
        Of the coil along the window, in 0.1 m; the width is a Gaussian's standard deviation.
    """

    power: float
    pressure: float
    flow: float
    position: float
    width: float


RANGES = Conditions((15, 60), (0.7, 2.0), (1.0, 3.0), (0.5, 1.5), (0.15, 0.45))


def draw_conditions(rng):
    """Draw `Conditions`, each uniform in its range."""
    return Conditions(*(float(rng.uniform(*limits)) for limits in astuple(RANGES)))


def reactor(spacing=SPACING):
    """Mesh the reactor with triangles whose edges are about ``spacing`` long: skfem.MeshTri."""

    def size(points):
        return np.full(len(points), spacing)

    return triangulate([polygon(CORNERS, size)], size)


def _outlets(mesh):
    return mesh.facets_satisfying(lambda x: (x[1] < 1e-9) & (x[0] > 1.4), boundaries_only=True)


def node_types(mesh):
    """The `NodeType` (N,) of a reactor's nodes."""
    x, y = mesh.p
    kinds = np.full(mesh.nvertices, NodeType.INTERIOR)
    kinds[mesh.boundary_nodes()] = NodeType.WALL
    kinds[y > 1 - 1e-9] = NodeType.WINDOW
    kinds[(x < 1e-9) & (y > 0.5) & (y < 0.9)] = NodeType.INLET
    kinds[(y < 1e-9) & (x > 1.4 + 1e-9) & (x < 2 - 1e-9)] = NodeType.OUTLET
    return kinds


def inflow(mesh):
    """Stokes flow (2, N) of a reactor, of largest speed one at the inlet."""
    flow = Flow(mesh, 1.0, np.inf, _outlets(mesh))
    x, y = flow.points[:, flow.given]
    profile = np.where(x < 1e-9, np.maximum((y - 0.5) * (0.9 - y), 0) / 0.04, 0)
    velocity, _ = flow.solve(np.zeros_like(flow.points), np.stack([profile, 0 * profile]))
    return velocity[:, : mesh.nvertices]


class Plasma:
    """The equations on a mesh under given conditions.

    Parameters
    ----------
    mesh : skfem.MeshTri
        Of the reactor.
    flow : ndarray
        (2, N) of `inflow`.
    conditions : Conditions
        Of the trajectory.
    step : float
        Δt.

    Attributes
    ----------
    volumes : ndarray
        (N,) lumped mass.
    losses : dict of str to csr_array
        By field, ``ne``, ``Te`` and ``T``: diffusion (N, N) with its loss to the walls.
    inflows : dict of str to ndarray
        (N,) what comes from the walls.
    skin : ndarray
        (N,) g at the nodes.
    """

    def __init__(self, mesh, flow, conditions, step):
        self.conditions, self.step = conditions, step
        at = quadrature(Basis(mesh, ElementTriP1(), intorder=2))
        walls = np.setdiff1d(mesh.boundary_facets(), _outlets(mesh))
        stiffness = sum(g.T @ (g * at.weights[:, None]) for g in at.gradients)
        self.volumes = at.values.T @ at.weights
        on_walls, around = (
            edge.values.T @ edge.weights
            for edge in (
                quadrature(FacetBasis(mesh, ElementTriP1(), facets=facets, intorder=2))
                for facets in (walls, mesh.boundary_facets())
            )
        )  # plasma is lost at the outlet too; gas leaves there freely
        p = conditions.pressure
        self.losses = {
            "ne": DIFFUSION / p * stiffness + diags_array(WALL * around),
            "Te": CONDUCTION * stiffness + diags_array(ELECTRON_WALL * around),
            "T": GAS_CONDUCTION / p * stiffness + diags_array(GAS_WALL * on_walls),
        }
        nothing = np.zeros_like(self.volumes)
        self.inflows = {"ne": nothing, "Te": nothing, "T": GAS_WALL * on_walls}
        self._factors = {
            name: splu((diags_array(self.volumes) + GAMMA * step * matrix).tocsc())
            for name, matrix in self.losses.items()
        }
        velocity = at.values @ flow.T  # (Q, 2)
        slopes = sum(
            g * u[:, None] for g, u in zip(at.gradients, velocity.T * at.weights, strict=True)
        )
        self._convection = at.values.T @ slopes
        x, y = mesh.p
        skin = np.exp(-(1 - y) / SKIN - 0.5 * ((x - conditions.position) / conditions.width) ** 2)
        self.skin = skin / (self.volumes @ skin)

    def start(self):
        """Fields at t = 0, by name: few and cold electrons, cold gas."""
        ones = np.ones_like(self.volumes)
        return {"ne": START * ones, "Te": START * ones, "T": ones}

    def sources(self, fields, time):
        """Rates (N,) of all but diffusion and walls at a time: dict of ndarray."""
        n, te, t = fields["ne"], fields["Te"], fields["T"]
        c = self.conditions
        ionisation = RATE * np.exp(-ENERGY / te) * c.pressure / t
        power = c.power * (1 - np.exp(-time / POWER_TIME))
        heat = power * self.skin / (COIL + self.volumes @ (n * self.skin))
        elastic = ELASTIC * c.pressure / t * (te - RATIO * t)
        speed = c.flow * (1 - np.exp(-time / FLOW_TIME))
        carried = speed * (self._convection @ t) / self.volumes
        return {
            "ne": ionisation * n,
            "Te": 2 / 3 * (heat - ENERGY * ionisation) - ionisation * te - elastic,
            "T": HEATING * n * (te - RATIO * t) - carried,
        }

    def advance(self, fields, time):
        """One time step.

        Parameters
        ----------
        fields : dict of ndarray
            (N,) ``ne``, ``Te`` and ``T`` at the step's begin.
        time : float
            At the step's begin.

        Returns
        -------
        dict of ndarray
            The same at its end.
        """
        step, volumes = self.step, self.volumes
        first = self.sources(fields, time)
        middle = self._solved(fields, {name: volumes * GAMMA * f for name, f in first.items()})
        second = self.sources(middle, time + GAMMA * step)
        rates = {}
        for name, f in first.items():
            explicit = DELTA * f + (1 - DELTA) * second[name]
            rates[name] = volumes * explicit + (1 - GAMMA) * self._diffusion(name, middle[name])
        return self._solved(fields, rates)

    def _diffusion(self, name, field):
        return self.inflows[name] - self.losses[name] @ field

    def _solved(self, fields, rates):
        """Fields after a step with ``rates`` (N,) and γ of the diffusion at the step's end."""
        found = {}
        for name, rate in rates.items():
            right = rate + GAMMA * self.inflows[name]
            found[name] = self._factors[name].solve(self.volumes * fields[name] + self.step * right)
        return found


def simulate(mesh, flow, conditions, frames=FRAMES, interval=INTERVAL, substeps=SUBSTEPS):
    """A trajectory.

    Parameters
    ----------
    mesh, flow, conditions
        As for `Plasma`.
    frames : int
        From ``BEGIN`` on.
    interval : float
        Time between frames.
    substeps : int
        Time steps a frame.

    Returns
    -------
    dict of ndarray
        ``ne``, ``Te``, ``v`` and ``T`` (frames, N), ``t`` (frames, 1).

    Raises
    ------
    FloatingPointError
        If a density or temperature is not positive: the time step is too long.
    """
    plasma = Plasma(mesh, flow, conditions, interval / substeps)
    before = round(BEGIN / plasma.step)
    fields, history = plasma.start(), []
    for step in range(before + (frames - 1) * substeps + 1):
        if step:
            fields = plasma.advance(fields, (step - 1) * plasma.step)
        if step >= before and (step - before) % substeps == 0:
            lost = [name for name, field in fields.items() if not field.min() > 0]  # or nan
            if lost:
                raise FloatingPointError(
                    f"{' and '.join(lost)} not positive at time {step * plasma.step:.3g} with "
                    f"steps of {plasma.step:.3g}; take more substeps"
                )
            history.append(fields)
    time = plasma.step * before + interval * np.arange(frames)[:, None]
    found = {name: np.array([f[name] for f in history]) for name in ("ne", "Te", "T")}
    ramp = conditions.flow * (1 - np.exp(-time / FLOW_TIME))
    return found | {"v": ramp * np.linalg.norm(flow, axis=0), "t": time}
