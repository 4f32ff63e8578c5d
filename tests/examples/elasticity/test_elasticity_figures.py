# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

import functools

import numpy as np

from examples.elasticity.cell import cell_mesh, draw_void, void_radius
from examples.elasticity.figures import edge, edge_stress, triangles


def shuffled_cell(seed):
    rng = np.random.default_rng(seed)
    points = cell_mesh(functools.partial(void_radius, draw_void(rng))).p[:, :972].T
    order = rng.permutation(972)
    return points[order], order


def test_the_voids_edge_is_found_whatever_the_order():
    for seed in range(5):
        points, order = shuffled_cell(seed)
        found = edge(points)
        assert set(order[found]) <= set(range(108))  # the first ring of the mesh
        assert len(found) >= 100
        angle = np.arctan2(*(points[found] - 0.5).T[::-1])
        assert (np.diff(angle) > 0).all()


def test_triangles_leave_the_void_out():
    for seed in range(5):
        points, _ = shuffled_cell(seed)
        corners = points[triangles(points)]
        sides = corners[:, 1:] - corners[:, :1]
        area = np.abs(np.linalg.det(sides)).sum() / 2
        radius = np.hypot(*(points[edge(points)] - 0.5).T)
        angle = np.arctan2(*(points[edge(points)] - 0.5).T[::-1])
        even = np.linspace(-np.pi, np.pi, 1000, endpoint=False)
        void = np.pi * np.mean(np.interp(even, angle, radius, period=2 * np.pi) ** 2)
        assert abs(area - (1 - void)) < 0.005


def test_stress_along_the_edge():
    points, _ = shuffled_cell(0)
    drawing = edge_stress(points, points[:, 0], points[:, 1], "both")
    truth, prediction = drawing.axes[0].lines
    np.testing.assert_array_equal(truth.get_ydata(), points[edge(points), 0])
    np.testing.assert_array_equal(prediction.get_ydata(), points[edge(points), 1])
