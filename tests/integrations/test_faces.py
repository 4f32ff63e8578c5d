# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Area vectors and normals of faces of any number of corners."""

import numpy as np
import pytest
import pyvista

from physicsnemo_cano.integrations.faces import Faces, normals


def mixed():
    """A unit square of an L-shaped hexagon and a quadrilateral, with a line and a vertex."""
    points = [[0, 0], [1, 0], [1, 0.5], [0.5, 0.5], [0.5, 1], [0, 1], [1, 1]]
    points = np.column_stack([points, np.zeros(7)])
    mesh = pyvista.PolyData()
    mesh.points = points
    mesh.verts, mesh.lines = [1, 0], [2, 0, 1]
    mesh.faces = [6, 0, 1, 2, 3, 4, 5, 4, 3, 2, 6, 4]
    return mesh


def test_area_vectors_of_concave_faces():
    faces = Faces(mixed())
    areas = [[0, 0, 0], [0, 0, 0], [0, 0, 0.75], [0, 0, 0.25]]
    np.testing.assert_allclose(faces.cell_vectors, areas, atol=1e-15)
    np.testing.assert_allclose(faces.point_vectors.sum(0), [0, 0, 1], atol=1e-15)
    assert (faces.turned, faces.closed) == (0, False)
    assert len(faces.triangles) == 6


@pytest.mark.parametrize("kind", ["surface", "grid"])
@pytest.mark.parametrize("offset", [0, 5e6])
@pytest.mark.parametrize("inside_out", [False, True])
def test_normals_of_a_box(kind, offset, inside_out):
    mesh = pyvista.Box(bounds=(0, 2, 0, 1, 0, 1)).clean()
    mesh.points = mesh.points.astype(float) + offset
    if inside_out:
        mesh.faces = np.column_stack([np.full(6, 4), mesh.regular_faces[:, ::-1]]).ravel()
    if kind == "grid":
        mesh = mesh.cast_to_unstructured_grid()
    faces = Faces(mesh)
    assert faces.closed
    assert faces.turned == 0
    assert faces.volume == pytest.approx(-2 if inside_out else 2, rel=1e-9)
    out = normals(mesh, "cells")
    centre = np.asarray(mesh.cell_centers().points) - np.asarray(mesh.points).mean(0)
    np.testing.assert_allclose(np.abs(out).max(1), 1, rtol=1e-12)
    assert (np.einsum("ck,ck->c", out, centre) > 0.4).all()
    corners = normals(mesh, "points")
    np.testing.assert_allclose(np.linalg.norm(corners, axis=1), 1, rtol=1e-12)
    assert (np.einsum("ck,ck->c", corners, mesh.points - np.asarray(mesh.points).mean(0)) > 0).all()


def test_a_face_turned_over_is_found():
    mesh = pyvista.Box().clean()
    corners = mesh.regular_faces.copy()
    corners[2] = corners[2, ::-1]
    assert Faces(pyvista.PolyData.from_regular_faces(mesh.points, corners)).turned == 4


def test_pixels_and_what_is_no_face():
    plate = pyvista.ImageData(dimensions=(3, 4, 1)).cast_to_unstructured_grid()
    np.testing.assert_allclose(Faces(plate).cell_vectors, [[0, 0, 1]] * 6, atol=1e-15)
    with pytest.raises(ValueError, match=r"kinds \[11\] are no faces.*extract_surface"):
        Faces(pyvista.ImageData(dimensions=(3, 3, 3)).cast_to_unstructured_grid())
    with pytest.raises(ValueError, match="no faces, its 4 cells are vertices"):
        Faces(pyvista.PolyData(np.eye(4, 3)))
