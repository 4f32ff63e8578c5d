# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""The solver against exact solutions, and what it draws against the published set."""

import itertools
import math

import numpy as np
import pytest

from examples.darcy.solver import draw_permeability, solve_darcy

PI = np.pi


def grid(n):
    x = np.linspace(0, 1, n)
    return np.meshgrid(x, x, indexing="ij")


def smooth(n):
    """u = sin(πx) sin(2πy) with a = 2 + sin(2πx) cos(πy), and the source that goes with it."""
    x, y = grid(n)
    a = 2 + np.sin(2 * PI * x) * np.cos(PI * y)
    a_x = 2 * PI * np.cos(2 * PI * x) * np.cos(PI * y)
    a_y = -PI * np.sin(2 * PI * x) * np.sin(PI * y)
    u = np.sin(PI * x) * np.sin(2 * PI * y)
    u_x = PI * np.cos(PI * x) * np.sin(2 * PI * y)
    u_y = 2 * PI * np.sin(PI * x) * np.cos(2 * PI * y)
    return a, 5 * PI**2 * a * u - a_x * u_x - a_y * u_y, u


def jump(n):
    """Permeabilities 3 and 12 that meet midway: a u is smooth, and so are the flux and source."""
    x, y = grid(n)
    a = np.where(x < 0.5, 3.0, 12.0)
    smooth = np.sin(2 * PI * x) * np.sin(PI * y)
    return a, 5 * PI**2 * smooth, smooth / a


@pytest.mark.parametrize("problem", [smooth, jump])
def test_second_order(problem):
    errors = []
    for n in (32, 64, 126):  # even, so the jump lies midway between two nodes
        a, source, u = problem(n)
        errors.append((np.abs(solve_darcy(a, source) - u).max(), 1 / (n - 1)))
    orders = [
        math.log(e1 / e2) / math.log(h1 / h2) for (e1, h1), (e2, h2) in itertools.pairwise(errors)
    ]
    assert errors[-1][0] < 5e-4 * np.abs(u).max()
    assert all(1.9 < order < 2.1 for order in orders)


def test_the_centre_of_a_homogeneous_square():
    """Timoshenko's series for -Δu = 1; a permeability only scales the pressure."""
    odd = np.arange(1, 400, 2)
    terms = (-1.0) ** ((odd - 1) // 2) / odd**3 * (1 - 1 / np.cosh(odd * PI / 2))
    centre = 4 / PI**3 * terms.sum()
    assert centre == pytest.approx(0.07367135, abs=1e-8)
    u = solve_darcy(np.full((65, 65), 12.0))
    assert 12 * u[32, 32] == pytest.approx(centre, rel=5e-4)
    np.testing.assert_allclose(u, u.T, rtol=1e-10)
    np.testing.assert_allclose(u, u[::-1], rtol=1e-10, atol=1e-15)


def test_what_the_source_gives_leaves_through_the_boundary():
    n = 40
    a = draw_permeability(np.random.default_rng(0), n)
    u = solve_darcy(a)
    conductance = 2 * a[0] * a[1] / (a[0] + a[1])
    flow = (conductance * u[1]).sum()
    for _ in range(3):
        a, u = np.rot90(a), np.rot90(u)
        flow += (2 * a[0] * a[1] / (a[0] + a[1]) * u[1]).sum()
    assert flow == pytest.approx((n - 2) ** 2 / (n - 1) ** 2, rel=1e-10)
    assert u[1:-1, 1:-1].min() > 0
    assert np.abs(u[0]).max() == 0


def test_the_permeability_is_distributed_as_the_published_one():
    """In neuraloperator's 1000 samples 12 covers 0.499 ± 0.049 (n = 16)."""
    drawn = np.array([draw_permeability(np.random.default_rng(k), 16) for k in range(400)])
    assert set(np.unique(drawn)) == {3, 12}
    share = (drawn == 12).mean((1, 2))
    assert share.mean() == pytest.approx(0.5, abs=0.01)
    assert 0.04 < share.std() < 0.065


def test_the_permeability_is_of_regions_and_follows_from_the_seed():
    drawn = [draw_permeability(np.random.default_rng(seed), 43) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert (drawn[0] != drawn[2]).any()
    assert (np.diff(drawn[0], axis=0) != 0).mean() < 0.1
