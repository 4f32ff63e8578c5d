# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples.airfoil.mesh import SHAPE, c_mesh, cell_areas, displace, naca0012

WAKE = 40
controls = st.lists(st.floats(-0.05, 0.05), min_size=8, max_size=8)


def test_the_section_is_naca_0012_with_a_closed_trailing_edge():
    x = np.linspace(0, 1, 10001)
    y = naca0012(x)
    assert abs(y[-1]) < 1e-15
    assert y[0] == 0
    assert abs(2 * y.max() - 0.12) < 2e-4
    assert abs(x[y.argmax()] - 0.3) < 2e-3
    # The leading edge's radius, from y² = 2 r x.
    assert abs(naca0012(1e-8) ** 2 / 2e-8 - 1.1019 * 0.12**2) < 1e-4


def test_nodes_on_the_section_lie_on_it():
    x, y = c_mesh()
    assert x.shape == y.shape == SHAPE
    section = slice(WAKE, SHAPE[0] - WAKE)
    upper = np.arange(SHAPE[0])[section] > SHAPE[0] // 2
    expected = naca0012(np.clip(x[section, 0], 0, 1)) * np.where(upper, 1, -1)
    np.testing.assert_allclose(y[section, 0], expected, atol=1e-12)
    assert abs(x[110, 0]) < 1e-12  # leading edge
    assert abs(x[WAKE, 0] - 1) < 1e-12
    assert abs(x[SHAPE[0] - 1 - WAKE, 0] - 1) < 1e-12


def test_far_field_is_far_and_cells_are_dense_where_the_flow_turns():
    x, y = c_mesh()
    for boundary in (np.s_[:, -1], np.s_[0], np.s_[-1]):
        assert np.hypot(x[boundary] - 0.5, y[boundary]).min() > 20
    along = np.hypot(np.diff(x[:, 0]), np.diff(y[:, 0]))
    assert along[109:111].max() < 0.004
    assert along[[WAKE, WAKE - 1]].max() < 0.015
    assert 0.015 < along[WAKE:-WAKE].max() < 0.025
    assert np.hypot(x[:, 1] - x[:, 0], y[:, 1] - y[:, 0])[WAKE:-WAKE].max() < 0.015


@settings(max_examples=40, deadline=None)
@given(controls)
def test_any_design_has_positive_areas_and_a_closed_wake_cut(control):
    x, y = c_mesh(control)
    assert cell_areas(x, y).min() > 0
    cut = slice(0, WAKE + 1)
    np.testing.assert_array_equal(x[cut, 0], x[::-1, 0][cut])
    np.testing.assert_array_equal(y[cut, 0], y[::-1, 0][cut])
    assert np.all(np.diff(x[SHAPE[0] - 1 - WAKE :, 0]) > 0)


def test_areas_fill_the_domain():
    x, y = c_mesh()
    rim_x, rim_y = (
        np.concatenate([a[:, 0], a[-1, 1:], a[-2::-1, -1], a[0, -2:0:-1]]) for a in (x, y)
    )
    shoelace = 0.5 * np.sum(rim_x * np.roll(rim_y, -1) - rim_y * np.roll(rim_x, -1))
    np.testing.assert_allclose(cell_areas(x, y).sum(), shoelace, rtol=1e-12)


def test_mesh_is_symmetric_for_the_symmetric_section():
    x, y = c_mesh()
    np.testing.assert_allclose(x, x[::-1], atol=1e-12)
    np.testing.assert_allclose(y, -y[::-1], atol=1e-12)


@given(controls, controls, st.floats(-1, 1))
def test_design_element_is_linear_and_starts_from_the_identity(a, b, factor):
    x, y = np.array([0.0, 0.3, 0.7, 1.0]), np.array([0.01, 0.05, -0.04, 0.0])
    a, b = np.array(a), np.array(b)
    np.testing.assert_array_equal(displace(x, y, np.zeros(8)), y)
    together = displace(x, y, a + factor * b) - y
    apart = displace(x, y, a) - y + factor * (displace(x, y, b) - y)
    np.testing.assert_allclose(together, apart, atol=1e-15)


def test_design_element_interpolates_its_control_nodes():
    columns = np.array([-0.25, 0.25, 0.75, 1.25])
    x, y = np.concatenate([columns, columns[::-1]]), np.repeat([-0.1, 0.1], 4)
    control = np.arange(1.0, 9.0)
    np.testing.assert_allclose(displace(x, y, control) - y, control, atol=1e-13)
    # One height everywhere moves the section as it is; the basis sums to one.
    x = np.linspace(0, 1, 9)
    np.testing.assert_allclose(displace(x, 0.03, np.full(8, 0.02)), 0.05, atol=1e-15)


def test_unusable_meshes_are_refused():
    with pytest.raises(ValueError, match="odd number"):
        c_mesh(shape=(220, 51))
    with pytest.raises(ValueError, match="fold"):
        c_mesh([1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
