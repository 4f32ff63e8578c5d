# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

import functools

import numpy as np
import pytest
import torch
from skfem import MeshQuad, MeshQuad2

from examples.elasticity import hyperelastic
from examples.elasticity.cell import cell_mesh, draw_void, void_radius
from examples.elasticity.hyperelastic import C1, C2, energy, first_piola, solve, tangent
from physicsnemo_cano.datapipes.quadrature import node_weights


@pytest.fixture
def gradients():
    """Deformation gradients (2, 2, 20) of positive determinant, far from the identity."""
    random = np.eye(2)[:, :, None] + np.random.default_rng(0).uniform(-0.4, 0.4, (2, 2, 20))
    assert np.linalg.det(random.transpose(2, 0, 1)).min() > 0.1
    return random


def a_cell(seed, elements=(108, 8)):
    coefficients = draw_void(np.random.default_rng(seed))
    return cell_mesh(functools.partial(void_radius, coefficients), elements)


def test_stress_is_the_derivative_of_the_energy_and_the_tangent_that_of_the_stress(gradients):
    step = 1e-6
    for i in range(2):
        for j in range(2):
            change = np.zeros((2, 2, 1))
            change[i, j] = 1
            ahead, behind = gradients + step * change, gradients - step * change
            slope = (energy(ahead) - energy(behind)) / (2 * step)
            np.testing.assert_allclose(first_piola(gradients)[i, j], slope, rtol=1e-6, atol=1)
            slope = (first_piola(ahead) - first_piola(behind)) / (2 * step)
            np.testing.assert_allclose(tangent(gradients, change), slope, rtol=1e-6, atol=10)


def test_rotations_cost_nothing(gradients):
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    turned = np.einsum("ij,jk...->ik...", turn, gradients)
    np.testing.assert_allclose(energy(turned), energy(gradients), rtol=1e-12)
    assert energy(turn[:, :, None])[0] == pytest.approx(0, abs=1e-9)
    np.testing.assert_allclose(first_piola(turn[:, :, None]), 0, atol=1e-9)


@pytest.mark.parametrize("stretch", [0.7, 1.5, 3.0])
def test_a_pulled_strip_has_mooneys_stress(stretch):
    gradient = np.diag([stretch**-0.5, stretch])[:, :, None]
    nominal = 2 * (C1 + C2 / stretch) * (stretch - stretch**-2)
    expected = np.array([[0, 0], [0, nominal]])
    np.testing.assert_allclose(first_piola(gradient)[..., 0], expected, rtol=1e-12, atol=1e-8)


def test_no_load_no_stress():
    cell = solve(a_cell(0, (36, 3)), traction=0.0)
    assert not cell.displacement.any()
    np.testing.assert_allclose(cell.stress, 0, atol=1e-9)


def test_a_small_hole_concentrates_the_stress_three_times():
    """Kirsch's solution, about the stress that a sheet without the hole has at the same place."""
    sheet = solve(MeshQuad2.from_mesh(MeshQuad().refined(4)))
    at_centre = np.argmin(np.abs(sheet.points - 0.5).sum(1))
    across, along, _ = sheet.cauchy[at_centre]
    assert along == pytest.approx(100, rel=0.05)  # the clamp bends the stress a little
    cell = solve(cell_mesh(lambda angle: np.full_like(angle, 0.01), (72, 20)))
    right, top = (
        cell.cauchy[np.argmin(np.abs(cell.points - at).sum(1))] for at in ((0.51, 0.5), (0.5, 0.51))
    )
    assert right[1] == pytest.approx(3 * along - across, rel=0.01)
    assert top[0] == pytest.approx(3 * across - along, rel=0.03)
    assert cell.stress[:72].max() / along == pytest.approx(3, rel=0.02)


def test_every_section_carries_the_load():
    """With the virtual displacement (0, y): the mean of σ_yy over the cell is the traction."""
    mesh = a_cell(1)
    cell = solve(mesh)
    triangles = torch.from_numpy(np.hstack([mesh.t[[0, 1, 2]], mesh.t[[0, 2, 3]]]).T.copy())
    weights = node_weights(torch.from_numpy(cell.points.copy()), cells=triangles).numpy()
    assert weights @ cell.cauchy[:, 1] == pytest.approx(100, rel=0.01)


def test_it_converges_under_refinement():
    fine = solve(a_cell(2, (144, 16)))
    errors = []
    for factor in (4, 2):
        coarse = solve(a_cell(2, (144 // factor, 16 // factor)))
        # The clamped corners apart, where the stress is infinite.
        at = np.s_[: 16 // factor]
        reference = fine.stress.reshape(17, 144)[::factor, ::factor][at]
        stress = coarse.stress.reshape(16 // factor + 1, -1)[at]
        errors.append(np.linalg.norm(stress - reference) / np.linalg.norm(reference))
    assert errors[1] < 0.05
    assert errors[0] / errors[1] > 2.5


def test_small_loads_strain_in_proportion_and_large_ones_do_not():
    mesh = a_cell(3, (36, 4))
    one, ten, huge = (solve(mesh, traction) for traction in (100.0, 1000.0, 3e4))
    assert np.linalg.norm(ten.stress - 10 * one.stress) < 0.01 * np.linalg.norm(ten.stress)
    assert np.abs(one.displacement).max() < 2e-3
    assert 0.05 < huge.displacement[:, 1].max() < 0.5
    assert np.linalg.norm(huge.stress - 300 * one.stress) > 0.1 * np.linalg.norm(huge.stress)
    assert huge.iterations > one.iterations


def test_no_equilibrium_is_an_error(monkeypatch):
    monkeypatch.setattr(hyperelastic, "ITERATIONS", 0)
    with pytest.raises(RuntimeError, match=r"no equilibrium found beyond 0\.000 of the load"):
        solve(a_cell(0, (36, 3)))
