# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""The reference solver against exact solutions, balances and its own refinement."""

import functools
import itertools

import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from scipy.linalg import logm

from examples.plasticity import solver
from examples.plasticity.solver import (
    BULK,
    HARDENING,
    HEIGHT,
    POISSON,
    SHEAR,
    YIELD,
    YOUNG,
    Block,
    Die,
    NotConverged,
    equilibrate,
    press,
    rectangle,
)

SMALL = (21, 7)


def profile(x, k):
    """Waves of 3 mm that touch the block at both of its thirds."""
    phase, number = 2 * np.pi * x / 25, 2 * np.pi / 25
    return 1.5 * (1 - np.cos(phase), number * np.sin(phase), number**2 * np.cos(phase))[k]


def distorted(seed=0):
    """A patch of 4 × 3 distorted quadrilaterals and which of its nodes are inside."""
    nodes, cells = rectangle((5, 4))
    inside = (nodes % [50, 15] > 0).all(1)
    nodes[inside] += np.random.default_rng(seed).uniform(-1.5, 1.5, (inside.sum(), 2))
    return nodes, cells, inside


def mises(stress):
    deviator = stress - np.trace(stress, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) / 3
    return np.sqrt(1.5 * np.sum(deviator**2, (-2, -1)))


@functools.cache
def pressed():
    """Positions (20, 21, 7, 2), and the block with its history."""
    kept = []

    class Kept(Block):
        def __init__(self, *mesh):
            super().__init__(*mesh)
            kept.append(self)

    solver.Block = Kept
    try:
        frames = press(profile, SMALL)
    finally:
        solver.Block = Block
    return frames, kept[0]


def test_gradient_and_hessian_are_the_energy_s():
    nodes, cells, _ = distorted()
    rng = np.random.default_rng(1)
    block = Block(nodes, cells)
    block.commit(nodes + rng.normal(0, 0.02, nodes.shape))
    x = nodes + rng.normal(0, 0.4, nodes.shape)
    gradient, banded = block.assemble(*block.derivatives(x))
    full = np.zeros((x.size, x.size))
    for i in range(x.size):
        for j in range(max(0, i - block.band), min(x.size, i + block.band + 1)):
            full[i, j] = banded[block.band + i - j, j]
    for i in range(x.size):
        shift = 1e-6 * np.eye(x.size)[i].reshape(x.shape)
        difference = block.energy(x + shift) - block.energy(x - shift)
        assert difference / 2e-6 == pytest.approx(gradient[i], abs=1e-6 * np.abs(gradient).max())
        ahead, behind = (block.assemble(*block.derivatives(x + s * shift))[0] for s in (1, -1))
        np.testing.assert_allclose(
            (ahead - behind) / 2e-6, full[:, i], atol=1e-6 * np.abs(full).max()
        )


def test_elastic_patch():
    """A uniform deformation of the boundary is uniform inside, with Hencky's stress."""
    nodes, cells, inside = distorted()
    gradient = np.array([[1.0 + 1.5e-4, 1e-4], [-2e-5, 1.0 - 0.8e-4]])
    x = nodes @ gradient.T
    guess = np.where(inside[:, None], nodes, x)
    block = Block(nodes, cells)
    found = equilibrate(block, guess, np.repeat(inside[:, None], 2, 1))
    np.testing.assert_allclose(found, x, atol=1e-7)
    strain = np.zeros((3, 3))
    strain[:2, :2] = 0.5 * logm(gradient @ gradient.T)
    trace = np.trace(strain) * np.eye(3)
    stress = (2 * SHEAR * (strain - trace / 3) + BULK * trace) / np.linalg.det(gradient)
    np.testing.assert_allclose(
        block.cauchy(found), np.broadcast_to(stress, (12, 4, 3, 3)), atol=1e-2
    )
    block.commit(found)
    assert block.hardening.max() == 0


def test_a_rotation_costs_nothing_and_changes_no_energy():
    nodes, cells, _ = distorted()
    cos, sin = np.cos(0.7), np.sin(0.7)
    rotation = np.array([[cos, -sin], [sin, cos]])
    block = Block(nodes, cells)
    assert block.energy(nodes @ rotation.T) == pytest.approx(0, abs=1e-12)
    x = nodes + np.random.default_rng(2).normal(0, 0.1, nodes.shape)
    block.commit(x)
    x = x + np.random.default_rng(3).normal(0, 0.1, nodes.shape)
    assert block.energy(x @ rotation.T) == pytest.approx(block.energy(x), rel=1e-12)


def test_tension_yields_at_70_mpa_and_hardens():
    """One element, drawn along x and free along y, with no strain along z."""
    nodes = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1]])
    free = np.array([[0, 0], [0, 0], [0, 1], [0, 1]], bool)
    block, x = Block(nodes, np.arange(4)[None]), nodes
    strains = np.concatenate([np.linspace(0, 5e-4, 26), np.geomspace(6e-4, 0.1, 40)])
    along, equivalent, hardening = [], [], []
    for strain in strains:
        x = x.copy()
        x[[1, 2], 0] = np.exp(strain)
        x = equilibrate(block, x, free)
        block.commit(x)
        stress = block.cauchy(x)[0, 0]
        assert abs(stress[1, 1]) < 1e-3 * YIELD
        along.append(stress[0, 0])
        ratio = x[2, 0] * x[2, 1]
        equivalent.append(mises(stress) * ratio)
        hardening.append(block.hardening[0, 0])
    along, equivalent, hardening = map(np.array, (along, equivalent, hardening))
    elastic = hardening == 0
    np.testing.assert_allclose(
        along[elastic], YOUNG / (1 - POISSON**2) * strains[elastic], rtol=1e-3
    )
    assert equivalent[elastic].max() < YIELD
    assert equivalent[elastic].max() > YIELD - 4
    # Yield at q = 70 MPa: the stress along x is that over sqrt(1 - ν + ν²).
    first = along[~elastic][0]
    assert first == pytest.approx(YIELD / np.sqrt(1 - POISSON + POISSON**2), rel=0.03)
    np.testing.assert_allclose(
        equivalent[~elastic], YIELD + HARDENING * hardening[~elastic], rtol=1e-6
    )
    # Far beyond, plane strain hardens with 4/3 of the modulus.
    late = strains > 0.02
    slope = np.polyfit(strains[late], along[late], 1)[0]
    assert slope == pytest.approx(4 / 3 * HARDENING, rel=0.02)


def test_plastic_strain_is_isochoric():
    frames, block = pressed()
    assert block.hardening.max() > 0.2
    np.testing.assert_allclose(np.linalg.det(block.inverse_cp), 1, rtol=1e-10)
    # What is left is elastic: pressure over the bulk modulus.
    corners = frames[-1].reshape(-1, 2)[block.cells]
    diagonals = corners[:, 2] - corners[:, 0], corners[:, 3] - corners[:, 1]
    areas = 0.5 * (
        diagonals[0][:, 0] * diagonals[1][:, 1] - diagonals[0][:, 1] * diagonals[1][:, 0]
    )
    assert np.abs(areas / block.areas - 1).max() < 0.01
    assert areas.sum() == pytest.approx(block.areas.sum(), rel=2e-3)


def test_the_block_stays_below_the_die_and_on_its_ground():
    frames, _ = pressed()
    assert frames.shape == (20, *SMALL, 2)
    nodes = rectangle(SMALL)[0].reshape(*SMALL, 2)
    np.testing.assert_array_equal(frames[:, :, 0], np.broadcast_to(nodes[:, 0], (20, 21, 2)))
    x, y = np.moveaxis(frames[:, :, -1], -1, 0)
    depth = 0.15 * np.arange(1, 21)[:, None]
    gaps = HEIGHT + profile(x, 0) - depth - y
    assert gaps.min() > -1e-9
    assert (np.abs(gaps) < 1e-9).any(1).all()  # it presses at all times
    assert (gaps[-1] > 0.01).any()


def test_forces_balance_and_the_die_does_not_rub():
    nodes, cells = rectangle(SMALL)
    top = np.arange(SMALL[1] - 1, len(nodes), SMALL[1])
    free = np.ones(nodes.shape, bool)
    free[:: SMALL[1]] = False
    block, die = Block(nodes, cells), Die(profile, top, cells)
    die.level = HEIGHT - 0.3
    x = equilibrate(block, nodes, free, die)
    forces = block.assemble(*block.derivatives(x))[0].reshape(-1, 2)
    size = np.abs(forces).sum()
    np.testing.assert_allclose(forces.sum(0), 0, atol=1e-9 * size)
    others = np.setdiff1d(np.flatnonzero(free[:, 0]), top)
    np.testing.assert_allclose(forces[others], 0, atol=1e-5 * size)
    on_top, slope = forces[top], profile(x[top, 0], 1)
    assert (on_top[:, 1] < 1e-5 * size).all()  # pushed, not pulled
    np.testing.assert_allclose(on_top[:, 0] + slope * on_top[:, 1], 0, atol=1e-5 * size)


def test_a_symmetric_die_makes_a_symmetric_block():
    frames, _ = pressed()
    np.testing.assert_allclose(frames[-1, ::-1, :, 0], 50 - frames[-1, ..., 0], atol=1e-3)
    np.testing.assert_allclose(frames[-1, ::-1, :, 1], frames[-1, ..., 1], atol=1e-3)


def test_steps_that_fail_are_halved(monkeypatch):
    levels = []

    def reluctant(block, x, free, die):
        levels.append(die.level)
        if len(levels) == 1:
            raise NotConverged("at first")
        return x

    monkeypatch.setattr(solver, "equilibrate", reluctant)
    press(profile, (3, 3))
    assert len(levels) == 22
    np.testing.assert_allclose(levels[:4], HEIGHT - np.array([0.15, 0.075, 0.15, 0.3]))
    monkeypatch.setattr(solver, "equilibrate", lambda *_: (_ for _ in ()).throw(NotConverged("no")))
    with pytest.raises(NotConverged, match="no"):
        press(profile, (3, 3))


def test_folded_quadrilaterals_are_refused():
    nodes, cells = rectangle((3, 3))
    with pytest.raises(ValueError, match="run clockwise"):
        Block(nodes, cells[:, ::-1])
    x = nodes.copy()
    x[4] = [80, 7.5]
    assert Block(nodes, cells).energy(x) == np.inf


@pytest.mark.slow
def test_refinement():
    """Displacements at the nodes of 26 × 8 change by ever less."""
    die = CubicSpline(np.linspace(-10, 60, 8), [2, 1, 0, 2.5, 3, 0.5, 1.5, 2])
    lowest = die(np.linspace(0, 50, 5001)).min()

    def height(x, k):
        return die(x, k) - (lowest if k == 0 else 0)

    fields = [press(height, (25 * s + 1, 7 * s + 1))[-1][::s, ::s] for s in (1, 2, 4)]
    steps = [np.abs(a - b).max() for a, b in itertools.pairwise(fields)]
    assert steps[1] < 0.6 * steps[0]
    assert steps[1] < 0.15
