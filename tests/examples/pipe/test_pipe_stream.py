# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
from numpy.polynomial import Polynomial
from scipy.integrate import simpson
from scipy.interpolate import CubicHermiteSpline

from examples.pipe import stream
from examples.pipe.stream import solve


def line(slope):
    """A straight centreline."""
    return lambda x, k=0: np.polyval(np.polyder([slope, 0.3], k), x)


def bent(seed=1):
    rng = np.random.default_rng(seed)
    heights, slopes = rng.uniform(-2, 2, 5), rng.uniform(-1, 1, 5)
    return CubicHermiteSpline(np.linspace(0, 10, 5), heights, slopes)


def test_a_straight_pipe_gives_poiseuilles_profile():
    x, y, u, v = solve(line(0.0), (4, 3)).on_grid((9, 13))
    np.testing.assert_allclose(x, np.linspace(0, 10, 9)[:, None] + 0 * y)
    np.testing.assert_allclose(u, 1 - 4 * (y - 0.3) ** 2, atol=1e-9)
    np.testing.assert_allclose(v, 0, atol=1e-9)


def test_an_inclined_pipe_gives_poiseuilles_profile_along_it():
    """Away from the horizontal inflow and the vertical outflow section."""
    x, y, u, v = (field[20:31] for field in solve(line(0.5), (48, 12), 0.05).on_grid((49, 25)))
    np.testing.assert_allclose(u, 1 - 4 * (y - 0.3 - 0.5 * x) ** 2, atol=2e-4)
    np.testing.assert_allclose(v, 0.5 * u, atol=2e-4)


def test_mass_flow_is_the_same_at_every_section():
    flow = solve(bent(), (32, 8))
    x, y, u, v = flow.on_grid((45, 33))  # Simpson's rule is exact on quarters of an element
    np.testing.assert_allclose(simpson(u, y - flow.centre(x), axis=1), 2 / 3, rtol=1e-12)
    assert u.min() < -0.05  # the flow separates behind the bends
    # No slip, and the inflow is the one asked for.
    for wall in (0, -1):
        np.testing.assert_allclose(u[:, wall], 0, atol=1e-12)
        np.testing.assert_allclose(v[:, wall], 0, atol=1e-12)
    np.testing.assert_allclose(u[0], 1 - 4 * np.linspace(-0.5, 0.5, 33) ** 2, atol=1e-12)
    np.testing.assert_allclose(v[0, 4:-4], 0, atol=1e-12)  # but in the elements at the corners


def polynomial(coefficients):
    """A curved centreline and its derivatives."""
    height = Polynomial(coefficients)
    return lambda x, k=0: height.deriv(k)(x)


def kovasznay(channel, centre, viscosity):
    """Kovasznay's exact solution of the Navier-Stokes equations, as nodal values."""
    xi, eta = channel.basis.mesh.p
    x, y, c1 = xi, eta + centre(xi), centre(xi, 1)
    decay = 0.5 / viscosity - np.sqrt(0.25 / viscosity**2 + 4 * np.pi**2)
    wave, angle = np.exp(decay * x) / (2 * np.pi), 2 * np.pi * y
    psi, psi_x = y - wave * np.sin(angle), -decay * wave * np.sin(angle)
    psi_y = 1 - 2 * np.pi * wave * np.cos(angle)
    psi_xy = -2 * np.pi * decay * wave * np.cos(angle)
    psi_yy = 4 * np.pi**2 * wave * np.sin(angle)
    values = np.array([psi, psi_x + c1 * psi_y, psi_y, psi_xy + c1 * psi_yy])
    nodal = channel.basis.zeros()
    nodal[channel.basis.nodal_dofs] = values
    return nodal


def test_an_exact_solution_on_a_curved_channel_is_met_at_third_order():
    centre = polynomial([0.0, 0.4, -0.06, 0.002])
    viscosity, errors = 0.025, []
    for elements in ((24, 8), (48, 16)):
        channel = stream._Channel(centre, elements)
        exact = kovasznay(channel, centre, viscosity)
        # Given on the whole boundary, found inside.
        xi, eta = channel.basis.mesh.p
        inside = (xi > 1e-9) & (xi < 10 - 1e-9) & (np.abs(eta) < 0.5 - 1e-9)
        channel.free = np.sort(channel.basis.nodal_dofs[:, inside].ravel())
        found, _ = channel.newton(exact, viscosity, 1e-9)
        velocity = channel.basis.nodal_dofs[2]
        errors.append(np.sqrt(np.mean((found - exact)[velocity] ** 2)))
    assert errors[1] < 2e-4
    assert np.log2(errors[0] / errors[1]) > 2.7


def test_the_jacobian_is_the_residuals_derivative():
    channel = stream._Channel(bent(), (8, 3))
    rng = np.random.default_rng(0)
    psi, change = rng.normal(size=(2, channel.basis.N))
    _, fields = channel.residual(psi, 0.05)
    slope = (
        channel.residual(psi + 1e-4 * change, 0.05)[0]
        - channel.residual(psi - 1e-4 * change, 0.05)[0]
    ) / 2e-4
    product = channel.jacobian(fields, 0.05) @ change
    assert np.linalg.norm(product - slope) < 1e-8 * np.linalg.norm(slope)


def test_the_benchmarks_flow_is_resolved():
    coarse, fine = (solve(bent(), n).on_grid((65, 33))[2] for n in ((48, 12), (64, 16)))
    assert np.linalg.norm(coarse - fine) < 3e-3 * np.linalg.norm(fine)


@pytest.mark.slow
def test_the_full_sizes_flow_is_resolved():
    mini, full, finer = (
        solve(bent(), n).on_grid((129, 65))[2] for n in ((64, 16), (96, 24), (128, 48))
    )
    assert np.linalg.norm(mini - finer) < 1e-3 * np.linalg.norm(finer)
    assert np.linalg.norm(full - finer) < 3e-4 * np.linalg.norm(finer)


@pytest.mark.slow
def test_the_most_bent_pipes_have_a_flow():
    for heights, slopes in (([-2, 2, 2, -2, -2], [1] * 5), ([2, -2, 2, -2, 2], [-1] * 5)):
        flow = solve(CubicHermiteSpline(np.linspace(0, 10, 5), heights, slopes), (96, 24))
        assert 2 < flow.on_grid((129, 65))[2].max() < 3


def test_no_flow_is_an_error(monkeypatch):
    monkeypatch.setattr(stream, "ITERATIONS", 1)
    with pytest.raises(RuntimeError, match=r"no flow found at viscosity 0\.1; the last was None"):
        solve(bent(), (8, 4))
