# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
"""The reference solver: its mesh, the mass it keeps, its heat, and its steps in time."""

import dataclasses

import numpy as np
import pytest

from examples.heat_transfer.solver import (
    HEIGHT,
    LENGTH,
    Conditions,
    NodeType,
    draw_conditions,
    simulate,
)

CONDITIONS = Conditions(0.8, 30.0, 0.5, 0.12, 0.4)
COARSE = {"frames": 4, "interval": 0.1, "size": 0.16}


def test_frames_keep_what_is_given_and_the_mass_that_enters():
    found = simulate(CONDITIONS, **COARSE, substeps=10)
    count = len(found.points)
    assert found.velocity.shape == (4, 2, count)
    assert found.pressure.shape == found.temperature.shape == (4, count)
    np.testing.assert_allclose(found.time, [0, 0.1, 0.2, 0.3])
    kind, (x, y) = found.node_type, found.points.T
    assert not found.velocity[..., (kind == NodeType.WALL) | (kind == NodeType.CYLINDER)].any()
    np.testing.assert_array_equal(found.temperature[:, kind == NodeType.CYLINDER], 30)
    np.testing.assert_array_equal(found.temperature[:, kind == NodeType.INLET], 0)
    inlet = kind == NodeType.INLET
    profile = 0.8 * 4 * (y * (1 - y))[inlet]
    np.testing.assert_allclose(found.velocity[1:, 0][:, inlet], np.tile(profile, (3, 1)))
    away = np.linalg.norm(found.points[:, None] - CONDITIONS.centres(), axis=-1).min(1)
    cylinder = away[kind == NodeType.CYLINDER]
    assert cylinder.max() == pytest.approx(0.12, rel=1e-9)  # vertices; midpoints are on chords
    vertices = cylinder.size // 4  # of each polygon
    assert cylinder.min() == pytest.approx(0.12 * np.cos(np.pi / vertices), rel=1e-9)

    # Simpson's rule is exact for a quadratic velocity on the outlet's edges.
    outlet = np.flatnonzero(x > LENGTH - 1e-9)
    outlet = outlet[np.argsort(y[outlet])]
    gap, speed = np.diff(y[outlet])[::2], found.velocity[1:, 0][:, outlet]
    flux = (gap / 3 * (speed[:, :-2:2] + 4 * speed[:, 1::2] + speed[:, 2::2])).sum(1)
    np.testing.assert_allclose(flux, 0.8 * 2 / 3 * HEIGHT, rtol=1e-9)


def test_a_pulsating_inflow_is_what_the_inlet_has_and_skipping_leaves_frames_out():
    options = COARSE | {"interval": 0.5, "substeps": 100}
    found = simulate(CONDITIONS, **options, pulse=0.5)
    inlet = found.node_type == NodeType.INLET
    steady = 0.8 * 4 * (found.points[inlet, 1] * (1 - found.points[inlet, 1]))
    for k, strength in ((1, 1.5), (2, 1.0), (3, 0.5)):  # quarters of the period
        np.testing.assert_allclose(found.velocity[k, 0, inlet], strength * steady, atol=1e-12)
    later = simulate(CONDITIONS, **options | {"frames": 2}, pulse=0.5, skip=2)
    np.testing.assert_array_equal(later.velocity, found.velocity[2:])
    np.testing.assert_array_equal(later.time, found.time[2:])


def test_without_a_temperature_difference_there_is_no_heat():
    found = simulate(dataclasses.replace(CONDITIONS, temperature_difference=0.0), **COARSE)
    assert not found.temperature.any()


def test_half_the_step_gives_the_same_flow():
    few, many, most = (simulate(CONDITIONS, **COARSE, substeps=s) for s in (10, 20, 40))
    for field in ("velocity", "temperature"):
        a, b, c = (getattr(t, field)[-1] for t in (few, many, most))
        assert np.linalg.norm(b - c) < 0.6 * np.linalg.norm(a - b)
        assert np.linalg.norm(b - c) < 0.02 * np.linalg.norm(c)


def test_steps_that_are_too_long_are_reported():
    with np.errstate(all="ignore"), pytest.raises(FloatingPointError, match="more substeps"):
        simulate(CONDITIONS, frames=60, interval=0.5, size=0.16, substeps=1)


def test_conditions_follow_their_seed_and_fit_the_channel():
    first, again = (draw_conditions(np.random.default_rng(4)) for _ in range(2))
    assert first == again
    rng = np.random.default_rng(5)
    for _ in range(200):
        drawn = draw_conditions(rng)
        low, high = drawn.centres().min(0), drawn.centres().max(0)
        assert low[1] - drawn.radius > 0.04
        assert high[1] + drawn.radius < HEIGHT - 0.04
        assert drawn.spacing - 2 * drawn.radius > 0.1
