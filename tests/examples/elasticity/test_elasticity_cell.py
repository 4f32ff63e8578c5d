# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from skfem import Basis, ElementQuad2

from examples.elasticity.cell import HARMONICS, cell_mesh, draw_void, void_radius


def a_void(seed):
    coefficients = draw_void(np.random.default_rng(seed))
    return lambda angle: void_radius(coefficients, angle)


def test_the_field_on_the_circle_has_the_covariance_asked_for():
    """16 (-Δ + 9)^-1 on a circle has the kernel 16 cosh(3 (π - d)) / (6 sinh(3π))."""
    rng = np.random.default_rng(0)
    angle = np.array([0.0, 0.5, 2.0])
    radius = np.array([void_radius(draw_void(rng), angle) for _ in range(10000)])
    field = np.log(0.2 / (radius - 0.2) - 1)
    kernel = 16 * np.cosh(3 * (np.pi - angle)) / (6 * np.sinh(3 * np.pi))
    k = np.arange(HARMONICS + 1, 100000)
    cut_off = 16 / np.pi * (np.cos(np.multiply.outer(angle, k)) / (k**2 + 9)).sum(1)
    np.testing.assert_allclose(field.T @ field[:, 0] / 10000, kernel - cut_off, atol=0.1)
    np.testing.assert_allclose(field.mean(0), 0, atol=0.05)


@settings(max_examples=20)
@given(st.integers(0, 2**32))
def test_any_void_is_meshed_without_overlap_and_the_mesh_fills_the_cell(seed):
    radius = a_void(seed)
    mesh = cell_mesh(radius)
    assert mesh.nvertices == 972
    basis = Basis(mesh, ElementQuad2(), intorder=4)
    determinant = basis.mapping.detDF(basis.X)
    assert (determinant.min() > 0) or (determinant.max() < 0)
    angle = 2 * np.pi * np.arange(2048) / 2048
    void = np.pi * np.mean(radius(angle) ** 2)
    assert basis.dx.sum() == pytest.approx(1 - void, abs=2e-5)


def test_vertices_are_on_the_void_and_in_the_corners():
    radius = a_void(3)
    x, y = cell_mesh(radius).p[:, :972]
    ring = np.hypot(x[:108] - 0.5, y[:108] - 0.5)
    np.testing.assert_allclose(ring, radius(np.arctan2(y[:108] - 0.5, x[:108] - 0.5)), rtol=1e-12)
    border = np.maximum(abs(x[-108:] - 0.5), abs(y[-108:] - 0.5))
    np.testing.assert_allclose(border, 0.5, rtol=1e-12)
    for corner in ((0, 0), (1, 0), (1, 1), (0, 1)):
        assert np.hypot(x - corner[0], y - corner[1]).min() < 1e-12


def test_unusable_cells_are_refused():
    with pytest.raises(ValueError, match=r"multiple of 4.*got \(30, 4\)"):
        cell_mesh(a_void(0), (30, 4))
    with pytest.raises(ValueError, match=r"between 0 and 0\.5, got 0\.6"):
        cell_mesh(lambda angle: np.full_like(angle, 0.6))
