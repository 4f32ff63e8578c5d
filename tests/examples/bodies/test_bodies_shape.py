# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest

from examples.bodies.shape import cut, draw_body, draw_triangulation
from examples.bodies.solver import areas_and_normals


@pytest.mark.parametrize("seed", range(5))
def test_a_body_is_closed_turned_outwards_and_of_the_spheres_volume(seed):
    rng = np.random.default_rng(seed)
    body, (sphere, cells) = draw_body(rng), draw_triangulation(rng, 152)
    coarse = body.surface(sphere, cells), cells
    for points, faces in (coarse, body.refine(*coarse)):
        assert len(faces) == 2 * len(points) - 4  # Euler: it has no handle
        edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
        assert len(np.unique(edges, axis=0)) == len(edges)  # each once in each sense
        assert set(map(tuple, edges)) == set(map(tuple, edges[:, ::-1]))
        corners = points[faces]
        areas, normals = areas_and_normals(corners)
        heights = (corners.mean(1) * normals).sum(1)
        assert heights.min() > 0
        np.testing.assert_allclose(areas @ heights / 3, 4 / 3 * np.pi)
        np.testing.assert_allclose(areas @ normals, 0, atol=1e-12)


def test_a_refined_mesh_is_on_the_same_surface_and_keeps_its_points():
    rng = np.random.default_rng(0)
    body, (sphere, faces) = draw_body(rng), draw_triangulation(rng, 100)
    coarse = body.surface(sphere, faces)
    fine, _ = body.refine(coarse, faces)
    ratio = fine[:100] / coarse  # all meshes have one volume
    np.testing.assert_allclose(ratio, ratio.mean())
    assert 0.97 < ratio.mean() < 1
    directly = body.surface(*cut(sphere, faces))
    np.testing.assert_allclose(fine[:100], directly[:100], rtol=2e-3)


def test_bodies_and_meshes_differ_and_follow_the_seed():
    drawn = [draw_body(np.random.default_rng(seed)) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(drawn[0].stretch, drawn[1].stretch)
    assert np.abs(drawn[0].stretch - drawn[2].stretch).max() > 0.01
    np.testing.assert_allclose(np.linalg.det(drawn[2].stretch), 1)
    np.testing.assert_allclose(drawn[2].stretch, drawn[2].stretch.T)
