# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
"""The reference solver against exact deformations, laminate theory and balances."""

import functools

import numpy as np
import pytest

from examples.composite import solver
from examples.composite.solver import (
    EXPANSION,
    POISSON,
    SHEAR,
    THICKNESS,
    YOUNG,
    Plate,
    plate_mesh,
    ply_stiffness,
    temperature_field,
)

SMALL = (6, 4, 2)
ISOTROPIC = 1e-5 * np.eye(3)


@functools.cache
def clamped():
    mesh, _ = plate_mesh(SMALL)
    return mesh, Plate(mesh)


def three_supports(mesh):
    """Six displacements of three corners: enough to hold the plate, too few to strain it.

    The corners are those at the lower face; returns what is fixed and the corners.
    """
    x, y, z = mesh.doflocs
    radius, angle = np.hypot(x, z), np.arctan2(x, z)
    lower = np.abs(radius - radius.min()) < 1e-9
    first, second = angle < angle.min() + 1e-9, angle > angle.max() - 1e-9
    near, far = y < 1e-9, y > y.max() - 1e-9
    fixed = np.zeros((x.size, 3), bool)
    fixed[lower & first & near] = True
    fixed[lower & first & far] = [True, False, True]
    fixed[lower & second & near] = [False, False, True]
    assert fixed.sum() == 6
    return fixed


def same_axes(points):
    return np.broadcast_to(np.eye(3), (points.shape[1], 3, 3))


def without_rigid_motion(displacement, points):
    """What remains after the best fit of a translation and an infinitesimal rotation."""
    motions = []
    for axis in np.eye(3):
        motions += [np.broadcast_to(axis, points.shape), np.cross(axis, points)]
    motions = np.array([m.ravel() for m in motions]).T
    fit, *_ = np.linalg.lstsq(motions, displacement.ravel(), rcond=None)
    return displacement - (motions @ fit).reshape(displacement.shape)


def test_a_ply_pulled_along_its_axes_has_youngs_moduli_and_poissons_ratios():
    stiffness = ply_stiffness()
    for i in range(3):
        strain = np.zeros((3, 3))
        strain[i, i] = 1 / YOUNG[i]
        for j in range(3):
            if j != i:
                a, b = min(i, j), max(i, j)
                strain[j, j] = -POISSON[f"{a + 1}{b + 1}"] / YOUNG[a]
        stress = np.einsum("ijkl,kl->ij", stiffness, strain)
        expected = np.zeros((3, 3))
        expected[i, i] = 1
        np.testing.assert_allclose(stress, expected, atol=1e-12)
    for name, modulus in SHEAR.items():
        i, j = (int(n) - 1 for n in name)
        assert stiffness[i, j, i, j] == stiffness[i, j, j, i] == pytest.approx(modulus)
    np.testing.assert_array_equal(stiffness, np.moveaxis(stiffness, (0, 1), (2, 3)))


def test_free_expansion_is_exact_whatever_the_stiffness():
    """Equal in all directions it strains nothing: u = α ΔT x, also on curved elements."""
    mesh, _ = plate_mesh(SMALL)
    fixed = three_supports(mesh)
    found = Plate(mesh, fixed, expansion=ISOTROPIC).solve(np.full(fixed.shape[0], 80.0))
    points = mesh.doflocs.T
    corner = points[fixed.all(1)][0]
    expected = 80e-5 * (points - corner)
    # The supports hold z at corners of different height, so the plate also turns about y.
    difference = without_rigid_motion(found - expected, points)
    np.testing.assert_allclose(difference, 0, atol=1e-7 * np.abs(expected).max())
    np.testing.assert_array_equal(found[fixed], 0)


def test_a_single_ply_expands_freely_along_its_axes():
    mesh, _ = plate_mesh(SMALL)
    fixed = three_supports(mesh)
    found = Plate(mesh, fixed, axes=same_axes).solve(np.full(fixed.shape[0], -120.0))
    points = mesh.doflocs.T
    expected = -120 * points @ EXPANSION
    difference = without_rigid_motion(found - expected, points)
    np.testing.assert_allclose(difference, 0, atol=1e-7 * np.abs(expected).max())


def test_a_temperature_that_is_linear_bends_without_stress():
    """α(T x − |x|² ∇T / 2) has the strain α T: exact in the limit of small elements."""
    slope = np.array([200.0, -100.0, 300.0])  # K/m
    errors = []
    for shape in ((4, 3, 2), (8, 6, 4)):
        mesh, _ = plate_mesh(shape)
        points = mesh.doflocs.T
        temperature = 50 + points @ slope
        plate = Plate(mesh, three_supports(mesh), expansion=ISOTROPIC)
        square = np.sum(points**2, axis=1, keepdims=True)
        origin = 50 * points + (points @ slope)[:, None] * points - 0.5 * square * slope
        expected = without_rigid_motion(1e-5 * origin, points)
        found = without_rigid_motion(plate.solve(temperature), points)
        errors.append(np.linalg.norm(found - expected) / np.linalg.norm(expected))
    assert errors[0] < 0.1
    assert errors[0] / errors[1] > 6  # third order would be 8


def test_a_flat_plate_curves_as_laminate_theory_says(monkeypatch):
    monkeypatch.setattr(solver, "RADIUS", 1e3)
    mesh, _ = plate_mesh((12, 10, 2))
    found = Plate(mesh, three_supports(mesh)).solve(np.full(mesh.doflocs.shape[1], 1.0))
    reduced = ply_stiffness()[[0, 1]][:, [0, 1]][:, :, [0, 1]][:, :, :, [0, 1]]
    through = ply_stiffness()[:2, :2, 2, 2]
    plane = np.array([[reduced[i, i, j, j] for j in range(2)] for i in range(2)])
    plane -= np.outer(np.diag(through), np.diag(through)) / ply_stiffness()[2, 2, 2, 2]
    expansion = np.diag(EXPANSION)[:2]
    system, load = np.zeros((4, 4)), np.zeros(4)
    for ply, (low, high) in (
        (np.s_[:], (-THICKNESS / 2, 0)),
        (np.s_[::-1], (0, THICKNESS / 2)),
    ):
        stiffness, strain = plane[ply, ply], expansion[ply]
        moments = [(high**k - low**k) / k for k in (1, 2, 3)]
        system += np.kron([moments[:2], moments[1:]], stiffness)
        load += np.kron(moments[:2], stiffness @ strain)
    curvatures = np.linalg.solve(system, load)[2:]  # ε = ε₀ + z κ, so w = −κ x² / 2

    x, y, z = mesh.doflocs
    z = np.hypot(x, z) - 1e3
    middle = (np.abs(z) < 1e-6) & (np.abs(x - 0.2) < 0.12) & (np.abs(y - 0.15) < 0.09)
    x, y, w = x[middle] - 0.2, y[middle] - 0.15, found[middle, 2]
    terms = np.stack([np.ones_like(x), x, y, x * y, -(x**2) / 2, -(y**2) / 2], -1)
    fit, *_ = np.linalg.lstsq(terms, w, rcond=None)
    np.testing.assert_allclose(fit[4:], curvatures, rtol=0.02)
    assert curvatures[0] == pytest.approx(-curvatures[1])


def test_rigid_motions_and_uniform_shifts_of_load_are_free():
    mesh, plate = clamped()
    points = mesh.doflocs.T
    scale = np.abs(plate.stiffness).sum(1).max() * np.abs(points).max()
    for axis in np.eye(3):
        for motion in (np.broadcast_to(axis, points.shape), np.cross(axis, points)):
            forces = plate.stiffness @ motion.T.ravel()
            np.testing.assert_allclose(forces, 0, atol=1e-12 * scale)


def test_the_clamp_holds_all_forces_and_the_work_is_the_energy():
    mesh, plate = clamped()
    temperature = temperature_field(mesh)(np.random.default_rng(0))
    displacement = plate.solve(temperature)
    free = np.abs(mesh.doflocs[0]) > 1e-9
    assert not displacement[~free].any()
    load = plate.thermal_force @ temperature
    flat = displacement.T.ravel()
    reaction = (plate.stiffness @ flat - load).reshape(3, -1).T
    scale = np.abs(load).max()
    np.testing.assert_allclose(reaction[free], 0, atol=1e-9 * scale)
    np.testing.assert_allclose(reaction.sum(0), 0, atol=1e-7 * scale)
    assert flat @ plate.stiffness @ flat == pytest.approx(load @ flat, rel=1e-9)
    doubled = plate.solve(2 * temperature)
    np.testing.assert_allclose(doubled, 2 * displacement, rtol=1e-9, atol=1e-15)


def test_the_cells_fill_the_plate_and_use_every_node():
    mesh, cells = plate_mesh(SMALL)
    corners = mesh.doflocs.T[cells]
    volumes = np.abs(np.linalg.det(corners[:, 1:] - corners[:, :1])) / 6
    expected = solver.LENGTH * solver.WIDTH * THICKNESS  # at the middle surface's length
    assert volumes.sum() == pytest.approx(expected, rel=0.01)
    assert volumes.min() > 0
    np.testing.assert_array_equal(np.unique(cells), np.arange(13 * 9 * 5))
    assert mesh.doflocs.shape == (3, 13 * 9 * 5)


def test_temperatures_have_their_mean_and_deviation():
    mesh, _ = clamped()
    draw = temperature_field(mesh)
    rng = np.random.default_rng(1)
    fields = np.array([draw(rng) for _ in range(300)])
    np.testing.assert_array_equal(fields[0], draw(np.random.default_rng(1)))
    assert fields.mean() == pytest.approx(100, abs=4 * 30 / np.sqrt(300))
    x, y, _ = mesh.doflocs
    inner = (np.abs(x - 0.2) < 0.06) & (np.abs(y - 0.15) < 0.06)
    assert fields[:, inner].std() == pytest.approx(30 * np.sqrt(2), rel=0.15)


def test_wrong_shapes_are_refused():
    _, plate = clamped()
    with pytest.raises(ValueError, match=r"expected temperatures \(585,\), got \(3,\)"):
        plate.solve(np.ones(3))
    with pytest.raises(ValueError, match="the last one even"):
        plate_mesh((4, 4, 3))
