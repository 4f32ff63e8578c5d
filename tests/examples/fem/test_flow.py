# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
"""Flow against Poiseuille's, Taylor and Green's and what enters must leave."""

import numpy as np
import pytest
from skfem import MeshTri

from examples.fem.flow import Flow


def channel(level=2, outlet=True):
    mesh = MeshTri.init_tensor(np.linspace(0, 2, 2**level + 1), np.linspace(0, 1, 2**level + 1))
    right = mesh.facets_satisfying(lambda x: x[0] > 2 - 1e-9, boundaries_only=True)
    return mesh, right if outlet else np.empty(0, int)


def test_poiseuilles_flow_is_exact_and_stays():
    mesh, outlets = channel()
    flow = Flow(mesh, 0.02, 0.1, outlets)
    x, y = flow.points
    exact = np.stack([4 * y * (1 - y), 0 * y])
    new = old = exact
    for _ in range(5):
        load = flow.convection(new)
        new, old = flow.advance(new, old, load, exact[:, flow.given])[0], new
    np.testing.assert_allclose(new, exact, atol=1e-12)
    _, pressure = flow.advance(new, old, flow.convection(new), exact[:, flow.given])
    np.testing.assert_allclose(flow.pressure_at_nodes(pressure), 0.16 * (2 - x), atol=1e-11)
    assert flow.outflow(new) == pytest.approx(2 / 3, rel=1e-12)


def test_what_flows_in_flows_out_with_a_viscosity_that_varies():
    mesh, outlets = channel(3)
    flow = Flow(mesh, lambda x: 0.01 + 0.02 * x[1] ** 2, 0.05, outlets)
    x, y = flow.points
    inflow = np.zeros((2, flow.given.size))
    left = x[flow.given] < 1e-9
    inflow[0, left] = (y**2 * (1 - y))[flow.given][left]
    new = old = np.zeros_like(flow.points)
    nodes = np.flatnonzero(x < 1e-9)
    nodes = nodes[np.argsort(y[nodes])]
    values = (y**2 * (1 - y))[nodes]
    entered = sum(values[:-2:2] + 4 * values[1::2] + values[2::2]) / (3 * (nodes.size - 1))
    for _ in range(4):
        load = flow.convection(new)
        new, old = flow.advance(new, old, load, inflow)[0], new
        assert flow.outflow(new) == pytest.approx(entered, rel=1e-10)


def test_taylor_and_greens_vortex_decays_with_second_order_in_time_and_third_in_space():
    viscosity, errors = 0.05, []
    for level in (3, 4):
        mesh = MeshTri.init_tensor(*[np.linspace(0, 1, 2**level + 1)] * 2)
        step = 0.2 / 2**level
        flow = Flow(mesh, viscosity, step, np.empty(0, int))
        x, y = np.pi * flow.points

        def exact(time, x=x, y=y):
            decay = np.exp(-2 * np.pi**2 * viscosity * time)
            return decay * np.stack([np.sin(x) * np.cos(y), -np.cos(x) * np.sin(y)])

        new, old = exact(0.0), exact(-step)
        for number in range(1, 2**level + 1):
            load = 2 * flow.convection(new) - flow.convection(old)
            boundary = exact(number * step)[:, flow.given]
            new, old = flow.advance(new, old, load, boundary)[0], new
        errors.append(np.sqrt(np.mean((new - exact(0.2)) ** 2)))
    assert errors[1] < 1e-3
    assert errors[0] / errors[1] > 3.5
