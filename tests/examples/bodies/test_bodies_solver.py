# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

import functools

import numpy as np
import pytest
import pyvista
from scipy.integrate import quad
from scipy.spatial.transform import Rotation

from examples.bodies.shape import draw_body, draw_triangulation
from examples.bodies.solver import (
    POINTS,
    areas_and_normals,
    inner_pressure,
    over_own_triangle,
    quarters,
    single_layer,
    stokeslet,
    tractions,
)


@functools.cache
def sphere(subdivisions):
    mesh = pyvista.Icosphere(nsub=subdivisions)
    return mesh.points.astype(float)[mesh.regular_faces]


@functools.cache
def random_body():
    rng = np.random.default_rng(1)
    body, (points, faces) = draw_body(rng), draw_triangulation(rng, 152)
    return body, body.surface(points, faces), faces


def force(corners, found):
    return areas_and_normals(corners)[0] @ found


def error(corners, found, exact):
    """Relative, in the L2 norm over the surface."""
    areas = areas_and_normals(corners)[0][:, None]
    return np.sqrt((areas * (found - exact) ** 2).sum() / (areas * exact**2).sum())


def oberbeck(axes):
    """Drag coefficients of an ellipsoid along its axes: the force over the viscosity."""
    axes = np.array(axes, float)

    def integral(factor):
        def integrand(t):  # over the square root, which takes the slow decay away
            return 2 * t * factor(t**2) / np.sqrt((axes**2 + t**2).prod())

        return quad(integrand, 0, np.inf, epsabs=1e-12)[0]

    chi = integral(lambda s: 1.0)
    alpha = [integral(lambda s, a=a: 1 / (a**2 + s)) for a in axes]
    return 16 * np.pi / (chi + alpha * axes**2)


def test_a_spheres_traction_is_uniform_and_its_drag_stokess_to_second_order():
    radius, viscosity, speed = 0.7, 0.3, 2.0
    drags, fields = [], []
    for subdivisions in (1, 2, 3):
        corners = radius * sphere(subdivisions)
        (found,) = tractions(corners, [[0, speed, 0]], viscosity)
        exact = np.tile([0, 1.5 * viscosity * speed / radius, 0], (len(corners), 1))
        fields.append(error(corners, found, exact))
        drag = force(corners, found)
        stokes = 6 * np.pi * viscosity * radius * speed
        np.testing.assert_allclose(drag[[0, 2]], 0, atol=1e-12 * stokes)
        drags.append(abs(drag[1] / stokes - 1))
    assert drags[2] < 0.004
    assert fields[2] < 0.006
    for errors in (drags, fields):
        assert (np.array(errors[:-1]) / errors[1:] > 3).all()  # a quarter, were it exact


@pytest.mark.parametrize("axes", [(2, 1, 1), (1, 2, 2)])
def test_ellipsoids_have_oberbecks_drag_and_brenners_traction(axes):
    """Of an ellipsoid the traction has one direction, and the length of its support function."""
    expected = oberbeck(axes)
    corners = sphere(3) * axes
    found = tractions(corners, np.eye(3))
    x = corners.mean(1)
    support = 1 / np.linalg.norm(x / np.square(axes), axis=1)
    for k in range(3):
        np.testing.assert_allclose(force(corners, found[k])[k], expected[k], rtol=0.012)
        exact = np.outer(expected[k] * support / (4 * np.pi * np.prod(axes)), np.eye(3)[k])
        assert error(corners, found[k], exact) < 0.03


def test_oberbecks_formula_is_that_of_prolate_spheroids():
    e = np.sqrt(3) / 2
    log = np.log((1 + e) / (1 - e))
    along = 16 * np.pi * 2 * e**3 / ((1 + e**2) * log - 2 * e)
    across = 32 * np.pi * 2 * e**3 / (2 * e + (3 * e**2 - 1) * log)
    np.testing.assert_allclose(oberbeck((2, 1, 1)), [along, across, across], rtol=1e-9)
    np.testing.assert_allclose(oberbeck((1, 1, 1)), 6 * np.pi, rtol=1e-9)


def test_the_flow_is_linear_and_moves_and_turns_with_the_body():
    _, points, faces = random_body()
    corners = points[faces]
    one, other, both = tractions(corners, [[1, 2, 0], [0, 1, -1], [2, 5, -1]])
    np.testing.assert_allclose(both, 2 * one + other, rtol=1e-9, atol=1e-10)
    (thick,) = tractions(corners, [[1, 2, 0]], 3.0)
    np.testing.assert_allclose(thick, 3 * one, rtol=1e-9, atol=1e-10)
    turn = Rotation.random(rng=0).as_matrix()
    (turned,) = tractions(corners @ turn.T, [turn @ [1, 2, 0]])
    np.testing.assert_allclose(turned, one @ turn.T, rtol=1e-8, atol=1e-9)
    # The pressure inside is taken at the origin; it is the same everywhere but for the mesh.
    (moved,) = tractions(corners + np.array([0.1, -0.05, 0.1]), [[1, 2, 0]])
    _, normals = areas_and_normals(corners)
    np.testing.assert_allclose(np.cross(moved - one, normals), 0, atol=1e-9)
    np.testing.assert_allclose(force(corners, moved), force(corners, one), rtol=1e-10)
    assert np.abs(moved - one).max() < 0.01 * np.abs(one).max()


def test_reciprocity_and_no_pressure_inside():
    _, points, faces = random_body()
    corners = points[faces]
    found = tractions(corners, np.eye(3))
    resistance = np.array([force(corners, f) for f in found])
    np.testing.assert_allclose(resistance, resistance.T, atol=2e-3 * resistance[0, 0])
    assert (np.linalg.eigvalsh(resistance + resistance.T) > 0).all()
    np.testing.assert_allclose(inner_pressure(corners, found), 0, atol=1e-6)
    np.testing.assert_allclose(inner_pressure(corners, found, (0.1, 0.1, 0)), 0, atol=0.01)
    _, normals = areas_and_normals(corners)
    np.testing.assert_allclose(inner_pressure(corners, normals[None]), 1, rtol=2e-3)


def test_the_flow_round_a_sphere_is_stokess():
    corners = sphere(3)
    (found,) = tractions(corners, [[1, 0, 0]])
    areas, _ = areas_and_normals(corners)
    away = np.random.default_rng(0).normal(size=(50, 3))
    away /= np.linalg.norm(away, axis=1, keepdims=True)
    for distance in (1.5, 3.0):
        kernel = stokeslet((distance * away)[:, None, None], POINTS @ corners).mean(-1)
        velocity = [1, 0, 0] - np.einsum("ijpf,f,fj->pi", kernel, areas, found) / (8 * np.pi)
        x, d = away[:, :1], distance
        exact = np.eye(3)[0] * (1 - 0.75 / d - 0.25 / d**3) - 0.75 * x * away * (1 / d - 1 / d**3)
        np.testing.assert_allclose(velocity, exact, atol=4e-3)


def test_the_integrals_are_those_of_fine_quadrature():
    corners = random_body()[1][random_body()[2]]
    n = len(corners)
    matrix = single_layer(corners).reshape(n, 3, n, 3)
    areas, _ = areas_and_normals(corners)
    for i in (0, 100):
        centre = corners[i].mean(0)
        near = np.argsort(np.linalg.norm(corners.mean(1) - centre, axis=1))[1:60]
        parts = corners[near]
        for _ in range(5):
            parts = quarters(parts)
        fine = (POINTS @ parts).reshape(len(near), -1, 3)
        exact = areas[near] * stokeslet(centre, fine).mean(-1)
        np.testing.assert_allclose(
            matrix[i][:, near].transpose(0, 2, 1), exact, atol=2e-3 * exact.max()
        )
        # Of the middle quarter of a triangle, itself round the centroid, it is half the whole's.
        parts = quarters(corners[i : i + 1])
        ring = parts[:3]
        for _ in range(6):
            ring = quarters(ring)
        outside = areas[i] / 4**7 * stokeslet(centre, (POINTS @ ring).reshape(-1, 3)).sum(-1) / 3
        own = over_own_triangle(corners[i : i + 1])[0]
        np.testing.assert_allclose(outside, own / 2, atol=1e-5 * own.max())
