# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""The reference solver against exact solutions and conservation laws."""

import math

import pytest
import torch

from examples.navier_stokes.solver import SCALE, forcing, initial_vorticity, solve
from physicsnemo_cano.datapipes.generation import sample_rng


def grid(n):
    x = torch.arange(n, dtype=torch.float64) / n
    return torch.meshgrid(2 * math.pi * x, 2 * math.pi * x, indexing="ij")


def norms(vorticity):
    """Enstrophy and kinetic energy of (..., n, n)."""
    n = vorticity.shape[-1]
    k = 2 * math.pi * torch.fft.fftfreq(n, 1 / n, dtype=torch.float64)
    k2 = (k[:, None] ** 2 + k**2).clamp(min=1)
    power = torch.fft.fft2(vorticity.double(), norm="forward").abs() ** 2
    return 0.5 * power.sum((-2, -1)), 0.5 * (power / k2).sum((-2, -1))


def test_taylor_green_decays_exactly():
    x, y = grid(32)
    start = torch.stack([x.cos() * y.cos(), (2 * x).sin() * (2 * y).sin()])
    found = solve(start, torch.zeros(32, 32), [0.3, 2.0], viscosity=0.01)
    for k, time in enumerate((0.3, 2.0)):
        for sample, wavenumber in enumerate((1, 2)):
            decay = math.exp(-2 * (2 * math.pi * wavenumber) ** 2 * 0.01 * time)
            torch.testing.assert_close(found[sample, k], decay * start[sample], rtol=0, atol=1e-13)


def test_the_forcing_alone_drives_the_exact_shear_flow():
    """ω = f (1 - exp(-νk²t)) / (νk²), k² = 8π²: a parallel flow, which advects nothing."""
    force = forcing(32)
    found = solve(torch.zeros(1, 32, 32, dtype=torch.float64), force, [4.0], viscosity=1e-3)
    rate = 8 * math.pi**2 * 1e-3
    exact = force * (1 - math.exp(-4 * rate)) / rate
    torch.testing.assert_close(found[0, 0], exact, rtol=0, atol=1e-8)
    assert force[0, 0].item() == pytest.approx(0.1)
    assert force.abs().max().item() == pytest.approx(0.1 * math.sqrt(2), rel=1e-3)


def test_a_vortex_is_carried_with_the_shear_that_its_velocity_has():
    """ω = sin 2πx stays; a small bump on it moves along y with v = -cos(2πx) / 2π."""
    x, y = grid(32)
    bump = 1e-6 * y.cos()
    start = (x.sin() + bump)[None]
    shift = solve(start, torch.zeros(32, 32), [1e-3], viscosity=0.0)[0, 0] - start[0]
    # d(bump)/dt = -v ∂y bump - u' ∂x sin x, with u' = ∂y ψ', ψ' = bump / (2π)².
    v, u = -x.cos() / (2 * math.pi), -1e-6 * y.sin() / (2 * math.pi)
    rate = v * 1e-6 * y.sin() * 2 * math.pi - u * x.cos() * 2 * math.pi
    torch.testing.assert_close(shift, 1e-3 * rate, rtol=0, atol=2e-12)


def test_without_viscosity_and_forcing_enstrophy_and_energy_are_conserved():
    start = initial_vorticity([sample_rng(0, 0)], 64) * 5
    free = torch.zeros(64, 64)
    first, last = solve(start, free, [1e-6, 2.0], viscosity=0.0, courant=0.5)[0]
    for before, after in zip(norms(first), norms(last), strict=True):
        assert after.item() == pytest.approx(before.item(), rel=1e-5)
    assert (first - last).norm() > 0.3 * first.norm()  # though the flow has changed


def test_without_forcing_enstrophy_does_not_grow_and_the_mean_stays():
    start = initial_vorticity([sample_rng(0, 1), sample_rng(0, 2)], 64) * 5 + 0.25
    found = solve(start, torch.zeros(64, 64), [0.01, 0.5, 1.0, 1.5, 2.0])
    enstrophy, energy = norms(found)
    assert (enstrophy.diff(dim=1) < 0).all()
    assert (energy.diff(dim=1) < 0).all()
    torch.testing.assert_close(
        found.mean((-2, -1)), torch.full((2, 5), 0.25, dtype=torch.float64), rtol=0, atol=1e-12
    )


def test_fourth_order_in_time():
    start = initial_vorticity([sample_rng(0, 3)], 64) * 8
    force = forcing(64)
    a, b, c = (solve(start, force, [1.0], courant=courant)[0, 0] for courant in (1.6, 0.8, 0.4))
    order = math.log2((a - b).norm().item() / (b - c).norm().item())
    assert 3.6 < order < 4.6


def test_a_sample_is_the_same_flow_on_every_grid():
    coarse, fine = (initial_vorticity([sample_rng(1, 0)], n) for n in (64, 128))
    torch.testing.assert_close(fine[:, ::2, ::2], coarse, rtol=0, atol=1e-14)
    with_64, with_128 = (
        solve(start, forcing(start.shape[-1]), [2.0])[0, 0] for start in (coarse, fine)
    )
    difference = (with_128[::2, ::2] - with_64).norm() / with_64.norm()
    assert difference < 0.02


def test_initial_vorticity_has_its_covariance():
    """Fourier coefficients of variance 7³ (4π²|k|² + 49)^(-5/2), and no mean."""
    fields = initial_vorticity([sample_rng(2, k) for k in range(400)], 64)
    power = torch.fft.fft2(fields, norm="forward").abs().square().mean(0)
    assert power[0, 0] < 1e-30
    for kx, ky in ((1, 0), (0, 1), (1, 1), (-2, 1), (3, 4)):
        k2 = 4 * math.pi**2 * (kx**2 + ky**2)
        assert power[kx, ky].item() == pytest.approx(SCALE**2 * (k2 + 49) ** -2.5, rel=0.25)
    whole = sum(
        SCALE**2 * (4 * math.pi**2 * (i**2 + j**2) + 49) ** -2.5
        for i in range(-31, 32)
        for j in range(-31, 32)
        if (i, j) != (0, 0)
    )
    assert fields.square().mean().item() == pytest.approx(whole, rel=0.05)


def test_a_sample_does_not_depend_on_its_batch():
    start = initial_vorticity([sample_rng(0, k) for k in range(3)], 64, dtype=torch.float32)
    start[1] *= 10  # faster, so with more steps
    batch = solve(start, forcing(64), [0.5, 1.0])
    for k in range(3):
        alone = solve(start[k : k + 1], forcing(64), [0.5, 1.0])
        torch.testing.assert_close(batch[k], alone[0], rtol=0, atol=1e-6)


def test_single_precision_is_enough():
    single, double = (
        solve(initial_vorticity([sample_rng(0, 0)], 64, dtype=dtype), forcing(64), [8.0])[0, 0]
        for dtype in (torch.float32, torch.float64)
    )
    assert single.dtype == torch.float32
    assert (single - double).norm() < 1e-4 * double.norm()


def test_what_cannot_be_solved_is_refused():
    with pytest.raises(ValueError, match=r"\(1, 9, 9\)"):
        solve(torch.zeros(1, 9, 9), torch.zeros(9, 9), [1.0])
    with pytest.raises(ValueError, match=r"\(1, 8, 8\) and \(6, 6\)"):
        solve(torch.zeros(1, 8, 8), torch.zeros(6, 6), [1.0])
    with pytest.raises(FloatingPointError, match="not finite at time 1"):
        solve(torch.full((1, 8, 8), math.nan), torch.zeros(8, 8), [1.0])


@pytest.mark.slow
def test_the_mini_grid_resolves_the_flow():
    """After 20 units of time 128 points an axis are within 4 % of 256."""
    fields = []
    for n in (128, 256):
        start = initial_vorticity([sample_rng(0, 0)], n, dtype=torch.float32)
        fields.append(solve(start, forcing(n), [10.0, 20.0])[0, :, :: n // 64, :: n // 64])
    error = (fields[0] - fields[1]).flatten(1).norm(dim=1) / fields[1].flatten(1).norm(dim=1)
    assert error[0] < 0.003
    assert error[1] < 0.04
