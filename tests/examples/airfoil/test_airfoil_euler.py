# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""The reference solver against exact properties and values from the literature."""

import functools

import numpy as np
import pytest

from examples.airfoil.euler import GAMMA, Level, march, solve
from examples.airfoil.mesh import c_mesh, cell_areas

COARSE = (111, 26)
WAKE = 20
SONIC_CP = -0.4346  # pressure coefficient of Mach 1 in a free stream of Mach 0.8


def batched(*controls, shape=COARSE):
    meshes = [c_mesh(control, shape) for control in controls or [(0.0,) * 8]]
    return np.stack(meshes, axis=1)


def free_stream(mach=0.8, alpha=0.0):
    speed, angle = mach * np.sqrt(GAMMA), np.radians(alpha)
    return (1.0, speed * np.cos(angle), speed * np.sin(angle), 1.0)


@functools.cache
def lifting():
    """NACA 0012 at Mach 0.8 and 1.25 degrees on the coarse mesh."""
    return solve(*batched(), alpha=1.25, tolerance=1e-8)


def upper(flow, wake):
    """Chordwise positions and pressure coefficients of the upper side's faces, from the nose."""
    x = 0.5 * (flow.x[0, 1:, 0] + flow.x[0, :-1, 0])
    half = flow.cp.shape[1] // 2
    return x[wake + half : wake + 2 * half], flow.cp[0, half:]


def shock(x, cp):
    """Where the pressure coefficient rises through its sonic value behind its minimum."""
    k = cp.argmin()
    k += np.argmax(cp[k:] > SONIC_CP)
    return np.interp(SONIC_CP, cp[k - 1 : k + 1], x[k - 1 : k + 1])


def test_free_stream_is_preserved_but_for_what_the_section_blocks():
    rng = np.random.default_rng(0)
    x, y = batched(rng.uniform(-0.05, 0.05, 8))
    free = free_stream(alpha=3.0)
    level = Level(x, y, free)
    level.fluxes()
    left = level.rhs.numpy()[0].copy()
    # Cells on the section miss the flux that a permeable one would let through.
    wall = slice(WAKE, level.ni - WAKE)
    normal = level.normal_j[0, wall, 0]
    rho, u, v, p = free
    un = u * normal[:, 0] + v * normal[:, 1]
    energy = p / (GAMMA - 1) + 0.5 * rho * (u**2 + v**2)
    left[wall, 0] += un[:, None] * [rho, rho * u, rho * v, energy + p]
    assert np.abs(un).max() > 1e-3
    # The largest face, of some 10 chords, carries a flux of about 30.
    np.testing.assert_allclose(left, 0, atol=1e-12)


def test_a_symmetric_section_at_no_incidence_lifts_nothing():
    flow = solve(*batched(shape=(57, 13)), tolerance=1e-10)
    assert flow.converged.all()
    assert abs(flow.cl[0]) < 1e-7
    np.testing.assert_allclose(flow.mach, flow.mach[:, ::-1], atol=1e-6)


def test_a_mirrored_flow_is_the_mirror_image():
    mesh = batched(shape=(57, 13))
    flow, mirrored = (solve(*mesh, alpha=a, tolerance=1e-9) for a in (1.25, -1.25))
    assert flow.cl[0] > 0.2
    np.testing.assert_allclose(mirrored.cl, -flow.cl, atol=1e-7)
    np.testing.assert_allclose(mirrored.mach, flow.mach[:, ::-1], atol=1e-6)


def test_lift_and_shock_on_the_coarse_mesh():
    flow = lifting()
    assert flow.converged.all()
    assert abs(flow.cl[0] - 0.356) < 0.02
    assert abs(flow.cd[0] - 0.0227) < 0.003
    assert 0.58 < shock(*upper(flow, WAKE)) < 0.68


@pytest.mark.slow
def test_lift_drag_and_shock_on_the_full_mesh():
    """Vassberg and Jameson (J. Aircraft 47(4), 2010), FLO82: cl 0.3562, cd 0.0227 as h -> 0."""
    flow = solve(*batched(shape=(221, 51)), alpha=1.25)
    assert flow.converged.all()
    assert abs(flow.cl[0] - 0.3562) < 0.005
    assert abs(flow.cd[0] - 0.0227) < 0.001
    x, cp = upper(flow, 40)
    assert 0.60 < shock(x, cp) < 0.66
    check_shock(x, cp)


def test_shock_is_thin_and_does_not_oscillate():
    check_shock(*upper(lifting(), WAKE))


def check_shock(x, cp):
    suction = cp.argmin()
    fall, rise = cp[: suction + 1], cp[suction:]
    assert np.all(np.diff(fall) < 2e-3)
    # Total variation: from stagnation down to the suction peak and up to the trailing edge.
    monotone = (cp.max() - cp.min()) + (cp[-1] - cp.min())
    assert np.abs(np.diff(cp[cp.argmax() :])).sum() < 1.02 * monotone
    behind = suction + np.argmax(cp[suction:] > -0.1)  # subsonic again
    middle = (rise > cp.min() + 0.1 * (cp[behind] - cp.min())) & (
        rise < cp.min() + 0.9 * (cp[behind] - cp.min())
    )
    assert middle.sum() <= 3


def test_fluxes_are_conserved():
    x, y = batched()
    level = Level(x, y, free_stream(alpha=1.25))
    rng = np.random.default_rng(1)
    q = np.array(free_stream()) + 0.05 * rng.uniform(-1, 1, (1, level.ni + 4, level.nj + 4, 4))
    level.set(q)
    level.residual()
    fi, fj, rhs = (a.numpy()[0] for a in (level.fi, level.fj, level.rhs))
    cut = fj[:WAKE, 0]
    np.testing.assert_allclose(cut, -fj[::-1][:WAKE, 0], atol=1e-13)
    wall = fj[WAKE : level.ni - WAKE, 0].sum(axis=0)
    assert wall[0] == wall[3] == 0
    closed = fi[0].sum(axis=0) - fi[-1].sum(axis=0) - fj[:, -1].sum(axis=0) + wall
    np.testing.assert_allclose(rhs.sum(axis=(0, 1)), closed, atol=1e-10)


def test_a_steady_flow_lets_through_what_comes_in():
    level = Level(*batched(shape=(57, 13)), free_stream(alpha=1.25))
    march(level, 1e-9, 3000)
    level.residual()
    fi, fj = (a.numpy()[0] for a in (level.fi, level.fj))
    outer = fi[-1].sum(axis=0) - fi[0].sum(axis=0) + fj[:, -1].sum(axis=0)
    assert np.abs(fj[:, -1, 0]).sum() > 10  # mass crosses the far field
    assert abs(outer[0]) < 1e-6
    assert abs(outer[3]) < 1e-6
    # The momentum lost across the far field is the force on the section.
    cl, cd, _ = level.forces()
    dynamic = 0.5 * GAMMA * 0.8**2
    force = -outer[1:3] / dynamic
    angle = np.radians(1.25)
    np.testing.assert_allclose(force @ [np.cos(angle), np.sin(angle)], cd[0], atol=1e-5)
    np.testing.assert_allclose(force @ [-np.sin(angle), np.cos(angle)], cl[0], atol=1e-5)


def test_spurious_entropy_falls_at_second_order():
    """A subsonic flow is isentropic: all entropy is error."""
    errors = []
    for shape in ((57, 15), (113, 29), (225, 57)):
        x, y = batched(shape=shape)
        flow = solve(x, y, mach=0.4, tolerance=1e-6)
        assert flow.converged.all()
        error = flow.p[0] / flow.rho[0] ** GAMMA - 1
        cells = 0.25 * (error[1:, 1:] + error[:-1, 1:] + error[1:, :-1] + error[:-1, :-1])
        near = np.hypot(x[0] - 0.5, y[0])[1:, 1:] < 1.5
        weight = cell_areas(x, y)[0] * near
        errors.append(np.sqrt(np.sum(weight * cells**2) / weight.sum()))
    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    assert errors[-1] < 1e-4
    assert orders.min() > 1.5, (errors, orders)


def test_nodes_carry_the_flow_at_the_nodes():
    flow = lifting()
    cut = slice(0, WAKE + 1)
    for field in (flow.rho, flow.u, flow.v, flow.p, flow.mach):
        np.testing.assert_array_equal(field[0, cut, 0], field[0, ::-1, 0][cut])
        assert field.shape == (1, *COARSE)
    mach = np.hypot(flow.u, flow.v) / np.sqrt(GAMMA * flow.p / flow.rho)
    np.testing.assert_allclose(flow.mach, mach, rtol=1e-12)
    np.testing.assert_allclose(flow.mach[0, :, -1], 0.8, atol=5e-3)
    # Along the section, and at rest where it stagnates.
    wall = slice(WAKE + 5, COARSE[0] - WAKE - 5)
    tx, ty = np.gradient(flow.x[0, :, 0])[wall], np.gradient(flow.y[0, :, 0])[wall]
    u, v = flow.u[0, wall, 0], flow.v[0, wall, 0]
    slip = np.abs(u * ty - v * tx) / np.hypot(tx, ty)
    assert np.median(slip) < 0.01
    assert flow.mach[0, wall, 0].min() < 0.15
    # Total enthalpy of the free stream, everywhere.
    enthalpy = GAMMA / (GAMMA - 1) * flow.p / flow.rho + 0.5 * (flow.u**2 + flow.v**2)
    expected = GAMMA / (GAMMA - 1) + 0.5 * GAMMA * 0.8**2
    np.testing.assert_allclose(enthalpy, expected, rtol=0.02)


def test_a_flow_does_not_depend_on_its_batch():
    rng = np.random.default_rng(2)
    controls = rng.uniform(-0.05, 0.05, (2, 8))
    shape = (57, 13)
    together = solve(*batched(*controls, shape=shape), tolerance=1e-4)
    for k, control in enumerate(controls):
        alone = solve(*batched(control, shape=shape), tolerance=1e-4)
        np.testing.assert_array_equal(alone.mach[0], together.mach[k])
        assert alone.cl[0] == together.cl[k]
    assert together.cl[0] != together.cl[1]


def test_flows_that_do_not_converge_say_so():
    flow = solve(*batched(shape=(57, 13)), max_steps=10)
    assert not flow.converged.any()
    assert flow.history.shape == (1, 1)


def test_unusable_input_is_refused():
    x, y = batched(shape=(57, 13))
    with pytest.raises(ValueError, match="mach"):
        solve(x, y, mach=1.2)
    with pytest.raises(ValueError, match="positive area"):
        solve(x[:, ::-1], y[:, ::-1])
    with pytest.raises(ValueError, match="C-mesh"):
        solve(x[:, 1:], y[:, 1:])
