# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Integrals over closed and open surfaces in closed form."""

import numpy as np
import pytest
import pyvista

from physicsnemo_cano.integrations.forces import References, integrate


def inside_out(mesh):
    return pyvista.PolyData.from_regular_faces(mesh.points, mesh.regular_faces[:, ::-1])


def bodies():
    ball = pyvista.Sphere(radius=0.7, theta_resolution=11, phi_resolution=9).clean()
    box = pyvista.Box(bounds=(0, 2, 0, 1, 0, 3)).clean()
    for mesh in (ball, box):
        mesh.clear_data()
        mesh.points = np.asarray(mesh.points, dtype=np.float64)
    # A prism over an L: two faces with six corners, concave.
    ell = np.array([[0.0, 0], [2, 0], [2, 1], [1, 1], [1, 2], [0, 2]])
    points = np.vstack([np.insert(ell, 2, z, axis=1) for z in (0.0, 1.5)])
    faces = [6, *range(5, -1, -1), 6, *range(6, 12)]
    for i in range(6):
        j = (i + 1) % 6
        faces += [4, i, j, j + 6, i + 6]
    prism = pyvista.PolyData(points, faces)
    return {
        "ball": (ball, ball.volume),
        "box": (box, 6.0),
        "prism": (prism, 4.5),
        "ball inside out": (inside_out(ball), ball.volume),
        "grid": (box.cast_to_unstructured_grid(), 6.0),
    }


BODIES = bodies()


@pytest.mark.parametrize("offset", [0.0, 5e6])
@pytest.mark.parametrize("location", ["points", "cells"])
@pytest.mark.parametrize("name", BODIES)
def test_a_constant_pressure_on_a_closed_body_gives_no_force(name, location, offset):
    mesh, _ = BODIES[name]
    mesh = mesh.copy()
    mesh.points = np.asarray(mesh.points) + offset
    n = mesh.n_points if location == "points" else mesh.n_cells
    force, moment = integrate(
        mesh, np.full(n, 3.0), location=location, centre=[offset + 1, offset, offset - 2]
    )
    tolerance = 1e-12 if offset == 0 else 1e-7  # of the coordinates' last digit
    np.testing.assert_allclose(force, 0, atol=tolerance)
    np.testing.assert_allclose(moment, 0, atol=tolerance)


@pytest.mark.parametrize("name", BODIES)
def test_a_hydrostatic_pressure_gives_the_buoyancy(name):
    """And its moment is that of a force at the centre of the volume."""
    mesh, volume = BODIES[name]
    weight = 9.81 * 1000
    depth = 10 - np.asarray(mesh.points)[:, 2]
    force, moment = integrate(mesh, weight * depth, centre=[1, 2, 3])
    np.testing.assert_allclose(force, [0, 0, weight * volume], rtol=1e-6, atol=1e-8 * weight)
    centre = {"box": [1, 0.5, 1.5], "grid": [1, 0.5, 1.5], "prism": [5 / 6, 5 / 6, 0.75]}
    at = np.array(centre.get(name, [0, 0, 0]))
    np.testing.assert_allclose(moment, np.cross(at - [1, 2, 3], force), rtol=1e-6, atol=2e-3)


def test_any_linear_pressure_by_the_divergence_theorem():
    mesh, volume = BODIES["prism"]
    for gradient in np.eye(3):
        force, _ = integrate(mesh, 5 + np.asarray(mesh.points) @ gradient)
        np.testing.assert_allclose(force, -gradient * volume, atol=1e-13)


def test_cells_of_a_box_by_hand():
    mesh, _ = BODIES["box"]
    centres = np.asarray(mesh.cell_centers().points)
    front = np.isclose(centres[:, 0], 0)  # area 3
    force, moment = integrate(mesh, np.where(front, 2.0, 0), location="cells")
    np.testing.assert_allclose(force, [6, 0, 0], atol=1e-14)
    np.testing.assert_allclose(moment, np.cross([0, 0.5, 1.5], [6, 0, 0]), atol=1e-14)
    shear = np.zeros((6, 3))
    shear[np.isclose(centres[:, 2], 3)] = [0.5, 0, 0]  # area 2
    force, moment = integrate(mesh, shear=shear, location="cells", centre=[0, 0, 3])
    np.testing.assert_allclose(force, [1, 0, 0], atol=1e-14)
    np.testing.assert_allclose(moment, [0, 0, -0.5], atol=1e-14)


def test_a_linear_shear_on_an_open_plate():
    plate = pyvista.Plane(i_resolution=3, j_resolution=2)  # a unit square about 0
    x = np.asarray(plate.points, dtype=np.float64)
    force, moment = integrate(plate, shear=np.outer(1 + x[:, 1], [1.0, 0, 0]))
    np.testing.assert_allclose(force, [1, 0, 0], atol=1e-14)
    np.testing.assert_allclose(moment, [0, 0, -1 / 12], atol=1e-8)  # -∫ y (1 + y), of float32


def test_sides_of_open_surfaces_are_as_they_stand_and_can_be_flipped():
    plate = pyvista.Plane()
    for flip, sign in ((False, -1), (True, 1)):
        force, _ = integrate(plate, np.ones(plate.n_points), flip=flip)
        np.testing.assert_allclose(force, [0, 0, sign], atol=1e-7)


def test_faces_turned_over_are_refused():
    mesh, _ = BODIES["box"]
    corners = mesh.regular_faces.copy()
    corners[0] = corners[0, ::-1]
    with pytest.raises(ValueError, match=r"at 4 edges one face is turned over.*consistent"):
        integrate(pyvista.PolyData.from_regular_faces(mesh.points, corners), np.ones(8))


def test_bodies_that_share_an_edge_are_not_turned():
    one = pyvista.Box(bounds=(0, 1, 0, 1, 0, 1)).clean()
    two = pyvista.Box(bounds=(1, 2, 1, 2, 0, 1)).clean()
    both = one.append_polydata(two).clean()
    assert both.n_points == 14
    force, _ = integrate(both, np.asarray(both.points)[:, 2])
    np.testing.assert_allclose(force, [0, 0, -2], atol=1e-6)


def test_coefficients():
    about = References(area=2, length=0.5, density=1.2, speed=10)
    scale = 0.5 * 1.2 * 100 * 2
    found = about.coefficients(np.array([1.0, 2, 3]), np.array([4.0, 5, 6]))
    expected = {"CD": 1, "CL": 3, "CS": 2, "CMroll": 8, "CMpitch": 10, "CMyaw": 12}
    assert found == pytest.approx({name: value / scale for name, value in expected.items()})
    turned = References(drag=[0, 2, 0], lift=[1, 0, 0], speed="U")
    found = turned.coefficients(np.array([1.0, 2, 3]), np.array([4.0, 5, 6]), {"U": 2.0})
    expected = {"CD": 2, "CL": 1, "CS": 3, "CMroll": 5, "CMpitch": 6, "CMyaw": 4}
    assert found == pytest.approx({name: value / 2 for name, value in expected.items()})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lift": [1, 0, 1]}, "not at right angles"),
        ({"drag": [0, 0, 0]}, "expected three numbers each"),
        ({"speed": "wind"}, "speed=wind is no number and no parameter; there are U"),
        ({"area": 0.0}, "expected numbers above 0"),
    ],
)
def test_references_that_do_not_fit(options, message):
    with pytest.raises(ValueError, match=message):
        References(**options).coefficients(np.ones(3), np.ones(3), {"U": 1.0})
