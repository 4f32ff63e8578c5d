# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
"""The reference solver: its mesh, its inflow, and the mass that each section lets through."""

import dataclasses
import functools

import numpy as np
import pytest

from examples.pipe_turbulence.solver import (
    CORNERS,
    RADIUS,
    Pipe,
    draw_inflow,
    pair_times,
    pipe_mesh,
)

INFLOW = draw_inflow(np.random.default_rng(2))


@functools.cache
def coarse(step=0.02):
    return Pipe(pipe_mesh(0.3), step)


def test_every_section_lets_through_what_enters():
    """∫ u·∇q is the outflow for each q of the pressure's space that is 0 at the inlet and 1 at the
    outlet; one that rises between two sections measures the mean flow there."""
    pipe, times = coarse(), np.array([0.4, 1.0])
    flow = pipe.flow
    for time, velocity in zip(times, pipe.run(INFLOW, times), strict=True):
        entering = INFLOW.volume(time)
        assert entering > 0.1
        assert flow.outflow(velocity) == pytest.approx(entering, rel=1e-9)
        for start, end in ((0, 1), (1.2, 2.5), (3, 5)):
            ramp = np.clip((flow.mesh.p[0] - start) / (end - start), 0, 1)
            ramp = flow.pressure_at_nodes(ramp)
            parts = zip(velocity, flow.at.gradients, strict=True)
            through = sum(flow.at.weights @ ((flow.at.values @ u) * (g @ ramp)) for u, g in parts)
            assert through == pytest.approx(entering, rel=1e-9)


def test_walls_and_obstacle_hold_the_flow_and_without_inflow_there_is_none():
    pipe = coarse()
    (velocity,) = pipe.run(INFLOW, [0.4])
    x, y = pipe.flow.points[:, pipe.flow.given]
    inlet = x < 1e-9
    assert not velocity[:, pipe.flow.given[~inlet]].any()
    np.testing.assert_array_equal(velocity[0, pipe.flow.given[inlet]], INFLOW(0.4, y[inlet]))
    assert not pipe.run(dataclasses.replace(INFLOW, strength=0.0), [0.4]).any()


def test_half_the_step_gives_the_same_flow():
    few, many, most = (coarse(step).run(INFLOW, [1.0]) for step in (0.02, 0.01, 0.005))
    assert np.linalg.norm(many - most) < 0.6 * np.linalg.norm(few - many)
    assert np.linalg.norm(many - most) < 0.01 * np.linalg.norm(most)


def test_steps_that_are_too_long_are_reported():
    with np.errstate(all="ignore"), pytest.raises(FloatingPointError, match="take shorter ones"):
        coarse(0.2).run(INFLOW, [40.0])


def test_the_inflow_is_smooth_enters_everywhere_and_follows_its_seed():
    again = draw_inflow(np.random.default_rng(2))
    np.testing.assert_array_equal(again.frequencies, INFLOW.frequencies)
    y = np.linspace(0, 1, 2001)
    for time in (0.0, 3.0, 17.3):
        profile = INFLOW(time, y)
        assert profile.min() >= 0 or INFLOW.factors(time)[0] == 0
        # The trapezoidal rule's error is below h² max|f''| / 12 < 6 h² for these profiles.
        volume = np.sum(profile[1:] + profile[:-1]) * 0.5 * 0.0005
        assert volume == pytest.approx(INFLOW.volume(time), abs=6 * 0.0005**2)


def test_the_mesh_of_the_published_size_fills_the_pipe():
    mesh = pipe_mesh()
    assert mesh.nvertices + mesh.nfacets == pytest.approx(2673, rel=0.01)
    x, y = np.array(CORNERS).T
    whole = (x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2
    a, b = mesh.p[:, mesh.t[1]] - mesh.p[:, mesh.t[0]], mesh.p[:, mesh.t[2]] - mesh.p[:, mesh.t[0]]
    area = np.abs(a[0] * b[1] - a[1] * b[0]).sum() / 2
    assert area == pytest.approx(whole - np.pi * RADIUS**2, rel=1e-3)


def test_pairs_are_a_time_unit_apart():
    np.testing.assert_allclose(pair_times(2), [12, 12.3, 13, 13.3])
