# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

r"""Two-dimensional incompressible flow on the unit torus, in vorticity form, pseudo-spectral.

.. math::
    \partial_t \omega + u \cdot \nabla \omega = \nu \Delta \omega + f, \qquad
    -\Delta \psi = \omega, \qquad u = (\partial_y \psi, -\partial_x \psi)

The nonlinear term is the curl of :math:`\nabla \cdot (u \otimes u)`, which is
:math:`(\partial_{xx} - \partial_{yy})(uv) + \partial_{xy}(v^2 - u^2)` and costs four transforms
(Basdevant, J. Comput. Phys. 50, 1983). Wavenumbers from n/3 on are cut off (the 2/3 rule), so
that quadratic products alias nothing. The viscous term is integrated exactly (integrating factor),
the rest by the classical fourth-order Runge-Kutta scheme, every sample of a batch with the time
step that its own speed allows.
"""

import math

import torch

__all__ = ["SCALE", "VISCOSITY", "forcing", "initial_vorticity", "solve"]

VISCOSITY = 1e-5
SCALE = 7.0 ** (3 / 2)  # of the initial vorticity
COURANT = 2.0  # time step × speed × largest wavenumber; the scheme is stable up to 2.8
LONGEST_STEP = 1 / 8


def initial_vorticity(rngs, n, modes=64, dtype=torch.float64):
    r"""Draw initial vorticities :math:`7^{3/2} (-\Delta + 49 I)^{-5/4}` of white noise.

    This is the published generator's scale: its field has the covariance
    :math:`7^3 (-\Delta + 49 I)^{-5/2}` and no mean.

    Parameters
    ----------
    rngs : sequence of numpy.random.Generator
        One a sample.
    n : int
        Points of the grid along an axis, at least `modes`.
    modes : int
        The noise is drawn on a grid of modes × modes points, so that a sample is the same field
        on every finer grid. What lies beyond is less than a hundred-thousandth of the variance.
    dtype : torch.dtype
        Of the result.

    Returns
    -------
    torch.Tensor
        (B, n, n), the first axis is x.
    """
    noise = torch.stack([torch.from_numpy(rng.standard_normal((modes, modes))) for rng in rngs])
    kx, ky = _wavenumbers(modes)
    scale = SCALE * (kx**2 + ky**2 + 49) ** (-5 / 4)
    scale[0, 0] = 0.0
    scale[modes // 2], scale[:, modes // 2] = 0.0, 0.0  # these have no partner on a finer grid
    coarse = torch.fft.rfft2(noise, norm="forward") * scale * modes
    half = modes // 2
    fine = coarse.new_zeros(len(rngs), n, n // 2 + 1)
    fine[:, :half, :half], fine[:, -half:, :half] = coarse[:, :half, :half], coarse[:, half:, :half]
    return torch.fft.irfft2(fine, s=(n, n), norm="forward").to(dtype)


def forcing(n, dtype=torch.float64):
    """The forcing 0.1 (sin 2π(x + y) + cos 2π(x + y)) on a grid, (n, n)."""
    x = torch.arange(n, dtype=torch.float64) / n
    phase = 2 * math.pi * (x[:, None] + x)
    return (0.1 * (phase.sin() + phase.cos())).to(dtype)


def solve(vorticity, force, times, viscosity=VISCOSITY, courant=COURANT):
    """Solve for the vorticity at given times.

    Parameters
    ----------
    vorticity : torch.Tensor
        (B, n, n) at time 0, of float32 or float64, on the CPU or a GPU; n even. Its mean, of
        which a torus allows none, stays as it is.
    force : torch.Tensor
        (n, n) or (B, n, n), the curl of the force, constant in time.
    times : sequence of float
        Increasing and positive.
    viscosity : float
        Kinematic viscosity.
    courant : float
        Time step × fastest speed × largest wavenumber.

    Returns
    -------
    torch.Tensor
        (B, len(times), n, n), what is left of the vorticity within the 2/3 rule.

    Raises
    ------
    ValueError
        If the shapes do not fit.
    FloatingPointError
        If the vorticity is not finite.
    """
    n = vorticity.shape[-1]
    if vorticity.ndim != 3 or vorticity.shape[1] != n or n % 2 or force.shape[-2:] != (n, n):
        raise ValueError(
            "expected a vorticity (B, n, n) with even n and a force of the same n, got "
            f"{tuple(vorticity.shape)} and {tuple(force.shape)}"
        )
    rhs = _RightHandSide(force, vorticity)
    w = torch.fft.rfft2(vorticity) * rhs.kept
    now = torch.zeros(len(w), 1, 1, dtype=vorticity.dtype, device=vorticity.device)
    frames = []
    for time in times:
        while (now < time).any():
            slope, speed = rhs(w)
            # Equal steps to the next frame; none for samples that have reached it.
            longest = (courant / (rhs.k_max * speed)).clamp(max=LONGEST_STEP)
            left = (time - now).clamp(min=0)
            steps = (left / longest).ceil()
            step = left / steps.clamp(min=1)
            w = _advance(w, slope, step, rhs, viscosity)
            now = torch.where(steps > 1, now + step, now.clamp(min=time))
        frames.append(torch.fft.irfft2(w, s=(n, n)))
        if not frames[-1].isfinite().all():
            raise FloatingPointError(f"the vorticity is not finite at time {time:g}")
    return torch.stack(frames, dim=1)


class _RightHandSide:
    """Forcing minus advection, in Fourier space, and the largest speed |u| + |v|."""

    def __init__(self, force, like):
        self.n = n = like.shape[-1]
        kx, ky = (k.to(like) for k in _wavenumbers(n))
        self.k2 = kx**2 + ky**2
        self.k_max = 2 * math.pi * (math.ceil(n / 3) - 1)
        self.kept = (kx.abs() <= self.k_max) & (ky.abs() <= self.k_max)
        inverse = 1 / self.k2.clamp(min=1)  # the mean, k = 0, moves nothing
        self.to_velocity = torch.stack([1j * ky * inverse, -1j * kx * inverse])
        self.of_uv = (kx**2 - ky**2) * self.kept
        self.of_difference = kx * ky * self.kept
        self.force = torch.fft.rfft2(force.to(like)) * self.kept

    def __call__(self, w):
        u, v = torch.fft.irfft2(w.unsqueeze(1) * self.to_velocity, s=(self.n, self.n)).unbind(1)
        products = torch.fft.rfft2(torch.stack([u * v, v**2 - u**2], dim=1))
        # Second derivatives carry the sign of i², which advection's minus takes away.
        slope = products[:, 0] * self.of_uv + products[:, 1] * self.of_difference + self.force
        return slope, (u.abs() + v.abs()).amax((1, 2), keepdim=True)


def _advance(w, slope, step, rhs, viscosity):
    """One step of the integrating-factor Runge-Kutta scheme, whose first slope is given."""
    half = torch.exp(-0.5 * viscosity * step * rhs.k2)
    start = half * w
    second, _ = rhs(start + 0.5 * step * half * slope)
    third, _ = rhs(start + 0.5 * step * second)
    fourth, _ = rhs(half * (start + step * third))
    return half * (start + step / 6 * (half * slope + 2 * (second + third))) + step / 6 * fourth


def _wavenumbers(n):
    """Angular wavenumbers of both axes of a real transform on n × n points, broadcastable."""
    kx = 2 * math.pi * torch.fft.fftfreq(n, 1 / n, dtype=torch.float64)
    ky = 2 * math.pi * torch.fft.rfftfreq(n, 1 / n, dtype=torch.float64)
    return kx[:, None], ky
