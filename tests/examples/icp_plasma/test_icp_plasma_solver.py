# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
"""The reference solver: each equation alone, all together, their balances, and steps in time."""

import functools
import itertools
from dataclasses import astuple

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import i0, i1, j0, j1
from skfem import ElementTriP1, FacetBasis, MeshTri

from examples.fem.mesh import circle, triangulate
from examples.fem.operators import quadrature
from examples.icp_plasma import solver
from examples.icp_plasma.solver import (
    CONDUCTION,
    DELTA,
    DIFFUSION,
    ELECTRON_WALL,
    GAMMA,
    GAS_CONDUCTION,
    GAS_WALL,
    RANGES,
    WALL,
    Conditions,
    NodeType,
    Plasma,
    draw_conditions,
    inflow,
    node_types,
    reactor,
    simulate,
)

PRESSURE = 1.3
OFF = Conditions(0.0, PRESSURE, 0.0, 0.5, 0.3)  # neither power nor flow
ON = Conditions(40.0, PRESSURE, 1.5, 0.5, 0.3)


def square(level):
    return MeshTri.init_tensor(*[np.linspace(0, 1, 2**level + 1)] * 2)


def disk(spacing):
    def size(points):
        return np.full(len(points), spacing)

    return triangulate([circle((0, 0), 1.0, size)], size)


def at_rest(mesh, conditions, step, kind=Plasma):
    return kind(mesh, np.zeros_like(mesh.p), conditions, step)


def march(plasma, fields, steps, time=0.0):
    for number in range(steps):
        fields = plasma.advance(fields, time + number * plasma.step)
    return fields


def cold(mesh, **given):
    """No electrons, at a temperature where none ionises; cold gas."""
    ones = np.ones(mesh.nvertices)
    return {"ne": 0 * ones, "Te": 0.01 * ones, "T": ones} | given


def wave_number(diffusion, wall):
    """k of the cosine with -D ∂_n u = β u at both ends of an interval of length one."""
    return brentq(lambda k: diffusion * k * np.tan(k / 2) - wall, 1e-9, np.pi - 1e-9)


def cosines(points, k):
    return np.cos(k * (points[0] - 0.5)) * np.cos(k * (points[1] - 0.5))


def distance(plasma, found, exact):
    return np.sqrt(plasma.volumes @ (found - exact) ** 2 / (plasma.volumes @ exact**2))


def test_electrons_diffuse_to_the_walls_of_a_square_as_the_cosines_eigenvalue_says():
    diffusion, errors = DIFFUSION / PRESSURE, []
    k = wave_number(diffusion, WALL)
    for level in (3, 4, 5):
        mesh = square(level)
        plasma, mode = at_rest(mesh, OFF, 0.0025), cosines(mesh.p, k)
        found = march(plasma, cold(mesh, ne=mode), 80)["ne"]
        errors.append(distance(plasma, found, mode * np.exp(-2 * diffusion * k**2 * 0.2)))
    assert errors[-1] < 2e-3
    assert all(a / b == pytest.approx(4, rel=0.1) for a, b in itertools.pairwise(errors))


def test_electrons_diffuse_to_the_walls_of_a_cylinder_as_bessels_eigenvalue_says():
    diffusion, errors = DIFFUSION / PRESSURE, []
    k = brentq(lambda k: diffusion * k * j1(k) - WALL * j0(k), 1e-9, 2.4)
    for spacing in (0.16, 0.08):
        mesh = disk(spacing)
        plasma, mode = at_rest(mesh, OFF, 0.0025), j0(k * np.linalg.norm(mesh.p, axis=0))
        found = march(plasma, cold(mesh, ne=mode), 160)["ne"]
        errors.append(distance(plasma, found, mode * np.exp(-diffusion * k**2 * 0.4)))
    assert errors[1] < 2e-3
    assert errors[0] / errors[1] > 3


def test_cold_electrons_between_gas_and_walls_have_bessels_profile():
    """χ ΔT_e = K p (T_e - ε), whose solution in a cylinder is ε + c I_0."""
    kappa = np.sqrt(solver.ELASTIC * PRESSURE / CONDUCTION)
    loss = CONDUCTION * kappa * i1(kappa) + ELECTRON_WALL * i0(kappa)
    for spacing, bound in ((0.2, 3e-3), (0.1, 8e-4)):
        mesh = disk(spacing)
        plasma = at_rest(mesh, OFF, 0.1)
        found = march(plasma, cold(mesh), 300)["Te"]
        profile = i0(kappa * np.linalg.norm(mesh.p, axis=0))
        exact = solver.RATIO * (1 - ELECTRON_WALL / loss * profile)
        assert distance(plasma, found, exact) < bound


class Heated(Plasma):
    """The gas has a source of one everywhere; nothing else happens."""

    def sources(self, fields, time):
        return {name: np.full_like(u, name == "T") for name, u in fields.items()}


def test_a_heated_gas_conducts_its_heat_to_the_walls():
    alpha = GAS_CONDUCTION / PRESSURE
    for spacing, bound in ((0.2, 6e-3), (0.1, 1.5e-3)):
        mesh = disk(spacing)
        plasma = at_rest(mesh, OFF, 0.1, Heated)
        found = march(plasma, cold(mesh), 500)["T"]
        r = np.linalg.norm(mesh.p, axis=0)
        assert distance(plasma, found, 1 + 0.5 / GAS_WALL + (1 - r**2) / (4 * alpha)) < bound
        given = plasma.volumes.sum()  # and the walls take it all
        taken = plasma.losses["T"] @ found - plasma.inflows["T"]
        assert taken.sum() == pytest.approx(given, rel=1e-10)


DIRECTION = np.array([0.8, 0.6])  # of the flow
WAVES = {  # diffusion, wall, and the amplitude in time with its derivative
    "ne": (DIFFUSION / PRESSURE, WALL, lambda t: (1 + t, 1.0)),
    "Te": (CONDUCTION, ELECTRON_WALL, lambda t: (1.1 + 0.2 * np.sin(4 * t), 0.8 * np.cos(4 * t))),
    "T": (GAS_CONDUCTION / PRESSURE, GAS_WALL, lambda t: (0.5 * t, 0.5)),
}


class Manufactured(Plasma):
    """With forces that make `exact` the solution on the unit square in a uniform flow."""

    def __init__(self, mesh, step):
        super().__init__(mesh, np.tile(DIRECTION[:, None], mesh.nvertices), ON, step)
        self.points = mesh.p
        middles = np.stack(np.meshgrid(*[(np.arange(400) + 0.5) / 400] * 2)).reshape(2, -1)
        self.coil = self._layer(mesh.p) / self._layer(middles).mean()
        k = wave_number(*WAVES["ne"][:2])
        layer = self._layer(middles)
        self.overlap = np.mean(cosines(middles, k) * layer) / layer.mean()

    @staticmethod
    def _layer(points):
        x, y = points
        return np.exp(-(1 - y) / solver.SKIN - (x - ON.position) ** 2 / (2 * ON.width**2))

    def exact(self, time):
        fields = {
            name: amplitude(time)[0] * cosines(self.points, wave_number(diffusion, wall))
            for name, (diffusion, wall, amplitude) in WAVES.items()
        }
        return fields | {"T": 1 + fields["T"]}

    def sources(self, fields, time):
        found = super().sources(fields, time)
        for name, force in self.forces(time).items():
            found[name] = found[name] + force
        return found

    def forces(self, time):
        exact = self.exact(time)
        n, te, t = exact.values()
        rate = 700 * np.exp(-5.27 / te) * PRESSURE / t
        power = ON.power * -np.expm1(-time / 0.3) * self.coil / (0.3 + (1 + time) * self.overlap)
        elastic = PRESSURE * (te - 0.0086 * t) / t
        happens = {"ne": rate * n, "T": 0.3 * n * (te - 0.0086 * t)}
        happens["Te"] = 2 / 3 * (power - 5.27 * rate) - rate * te - elastic
        forces = {}
        for name, (diffusion, wall, amplitude) in WAVES.items():
            k = wave_number(diffusion, wall)
            size, slope = amplitude(time)
            wave = cosines(self.points, k)
            forces[name] = (slope + 2 * diffusion * k**2 * size) * wave - happens[name]
            if name == "T":
                x, y = k * (self.points - 0.5)
                gradient = -k * np.stack([np.sin(x) * np.cos(y), np.cos(x) * np.sin(y)])
                speed = ON.flow * -np.expm1(-time)
                forces[name] += speed * size * (DIRECTION @ gradient)
        return forces


def test_all_equations_together_converge_to_a_manufactured_solution():
    errors = []
    for level, steps in ((3, 80), (4, 160), (5, 320)):
        plasma = Manufactured(square(level), 0.4 / steps)
        found, exact = march(plasma, plasma.exact(0), steps), plasma.exact(0.4)
        errors.append([distance(plasma, found[name], exact[name]) for name in ("ne", "Te", "T")])
    assert max(errors[-1]) < 3e-3
    ratios = np.array(errors[:-1]) / errors[1:]
    np.testing.assert_allclose(ratios, 4, rtol=0.15)


@functools.cache
def coarse():
    mesh = reactor(0.2)
    return mesh, inflow(mesh)


@functools.cache
def run(substeps):
    return simulate(*coarse(), ON, frames=9, substeps=substeps)


def test_frames_are_positive_and_converge_with_the_step():
    few, many, most = (run(substeps) for substeps in (10, 20, 40))
    for name in ("ne", "Te", "T"):
        first, second = (np.linalg.norm(a[name] - b[name]) for a, b in ((few, many), (many, most)))
        assert first / second == pytest.approx(4, rel=0.2)
        assert first < 1e-4 * np.linalg.norm(most[name])
        assert few[name].min() > 0
    np.testing.assert_array_equal(few["v"], most["v"])


def test_a_finer_mesh_gives_the_same_plasma():
    totals = []
    for spacing in (0.2, 0.1, 0.05):
        mesh = reactor(spacing)
        frames = simulate(mesh, inflow(mesh), ON, frames=11)
        volumes = at_rest(mesh, ON, 1.0).volumes
        totals.append([volumes @ frames[name][-1] for name in ("ne", "Te", "T")])
    first, second = np.abs(np.diff(totals, axis=0))
    assert (first > 3 * second).all()
    assert (second < 0.025 * np.array(totals[-1])).all()


class Recorded(Plasma):
    """Keeps the fields of its stages, and what it has ionised there."""

    def sources(self, fields, time):
        found = super().sources(fields, time)
        self.stages = [*getattr(self, "stages", []), (fields["ne"], found["ne"])]
        return found


def wall_flux(mesh, density):
    edge = quadrature(FacetBasis(mesh, ElementTriP1(), intorder=2))
    return WALL * edge.weights @ (edge.values @ density)


def test_the_number_of_electrons_changes_by_ionisation_and_walls():
    mesh, flow = coarse()
    plasma = Recorded(mesh, flow, ON, 0.0025)
    fields, time = plasma.start(), 0.3
    for _ in range(50):
        plasma.stages = []
        then = plasma.advance(fields, time)
        (_, first), (middle, second) = plasma.stages
        born = plasma.volumes @ (DELTA * first + (1 - DELTA) * second)
        lost = (1 - GAMMA) * wall_flux(mesh, middle) + GAMMA * wall_flux(mesh, then["ne"])
        change = plasma.volumes @ (then["ne"] - fields["ne"])
        assert change == pytest.approx(plasma.step * (born - lost), abs=1e-13)
        fields, time = then, time + plasma.step


def test_the_steady_state_is_the_same_for_every_step_and_its_balances_close():
    mesh, flow = coarse()
    late = 1e3  # power and flow have long been constant
    steady = []
    for step in (0.00125, 0.0025):
        plasma = Plasma(mesh, flow, ON, step)
        steady.append(march(plasma, plasma.start(), round(15 / step), late))
    for name in ("ne", "Te", "T"):
        np.testing.assert_allclose(steady[0][name], steady[1][name], rtol=1e-9)
    fields, rates = steady[1], plasma.sources(steady[1], late)
    assert 0.2 < fields["ne"].max() < 10
    for name, field in fields.items():
        given = plasma.volumes @ rates[name]
        taken = (plasma.losses[name] @ field - plasma.inflows[name]).sum()
        assert given == pytest.approx(taken, rel=1e-8)
    assert plasma.volumes @ rates["ne"] == pytest.approx(wall_flux(mesh, fields["ne"]), rel=1e-8)


def test_the_extremes_of_the_conditions_stay_positive():
    for power, pressure, flow, width in itertools.product(
        RANGES.power, RANGES.pressure, RANGES.flow, RANGES.width
    ):
        found = simulate(*coarse(), Conditions(power, pressure, flow, 0.5, width), frames=9)
        for name in ("ne", "Te", "T"):
            assert found[name].min() > 0
        assert found["T"].min() > 0.99  # the walls are at one, and the gas is only heated


def test_steps_that_are_too_long_are_reported():
    with np.errstate(all="ignore"), pytest.raises(FloatingPointError, match="more substeps"):
        simulate(*coarse(), ON, frames=40, substeps=1)


def test_frames_begin_when_the_electrons_have_heated_up():
    found, (mesh, flow) = run(10), coarse()
    assert {name: array.shape for name, array in found.items()} == {
        **dict.fromkeys(("ne", "Te", "T", "v"), (9, mesh.nvertices)),
        "t": (9, 1),
    }
    np.testing.assert_allclose(found["t"][:, 0], 0.1 + 0.025 * np.arange(9))
    for frame, time in ((0, 0.1), (8, 0.3)):
        speed = 1.5 * (1 - np.exp(-time)) * np.hypot(*flow)
        np.testing.assert_allclose(found["v"][frame], speed, rtol=1e-12)
    plasma = Plasma(mesh, flow, ON, 0.0025)
    fields = march(plasma, plasma.start(), 40)
    for name in ("ne", "Te", "T"):
        np.testing.assert_allclose(found[name][0], fields[name], rtol=1e-12)


def test_the_gas_enters_at_the_inlet_and_holds_at_the_walls():
    mesh, flow = coarse()
    kinds = node_types(mesh)
    assert set(kinds) == set(range(5))
    assert not flow[:, (kinds == NodeType.WALL) | (kinds == NodeType.WINDOW)].any()
    inlet = kinds == NodeType.INLET
    y = mesh.p[1, inlet]
    np.testing.assert_allclose(flow[0, inlet], (y - 0.5) * (0.9 - y) / 0.04, atol=1e-12)
    assert (flow[1, kinds == NodeType.OUTLET] < 0).all()


def test_the_mesh_of_the_published_size():
    assert reactor().nvertices == pytest.approx(3424, rel=0.01)


def test_conditions_follow_their_seed_and_their_ranges():
    first, again = (draw_conditions(np.random.default_rng(4)) for _ in range(2))
    assert first == again
    rng = np.random.default_rng(5)
    for _ in range(200):
        for value, (low, high) in zip(astuple(draw_conditions(rng)), astuple(RANGES), strict=True):
            assert low <= value <= high
