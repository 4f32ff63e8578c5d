# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
"""What the finite element solvers share: meshes, Gaussian fields, operators."""

import numpy as np
import pytest
from skfem import Basis, ElementTetP2, ElementTriP2, MeshTet, MeshTri, asm
from skfem.models import laplace, mass

from examples.fem.fields import GaussianField
from examples.fem.mesh import circle, spaced, triangulate
from examples.fem.operators import quadrature


def constant(spacing):
    return lambda points: np.full(len(points), spacing)


def square(points_a_side):
    at = np.arange(points_a_side) / points_a_side
    zero, one = np.zeros_like(at), np.ones_like(at)
    return np.concatenate(
        [np.stack(side, -1) for side in ([at, zero], [one, at], [1 - at, one], [zero, 1 - at])]
    )


def areas(mesh):
    (x0, x1, x2), (y0, y1, y2) = mesh.p[:, mesh.t]
    return 0.5 * np.abs((x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0))


def test_a_square_with_a_hole_is_covered_once_by_good_triangles():
    size = constant(0.05)
    hole = circle((0.4, 0.55), 0.2, size)
    mesh = triangulate([square(20), hole], size)
    x, y = hole.T
    inside_hole = 0.5 * abs(x @ np.roll(y, -1) - y @ np.roll(x, -1))
    assert areas(mesh).sum() == pytest.approx(1 - inside_hole, rel=1e-12)
    assert areas(mesh).min() > 0
    np.testing.assert_array_equal(mesh.boundary_nodes(), np.arange(80 + len(hole)))
    np.testing.assert_array_equal(mesh.p[:, :80].T, square(20))
    a, b, c = (
        np.linalg.norm(mesh.p[:, mesh.t[i]] - mesh.p[:, mesh.t[i - 1]], axis=0) for i in range(3)
    )
    quality = 4 * np.sqrt(3) * areas(mesh) / (a**2 + b**2 + c**2)  # 1 for an equilateral one
    assert quality.min() > 0.5
    assert quality.mean() > 0.96
    assert np.mean([a, b, c]) == pytest.approx(0.05, rel=0.1)


def test_triangles_follow_the_size_asked_for():
    def size(points):
        return 0.03 + 0.1 * np.linalg.norm(points - [0.5, 0.5], axis=1)

    mesh = triangulate([spaced(square_curve, size)], size)
    edges = mesh.p[:, mesh.facets]
    lengths = np.linalg.norm(edges[:, 0] - edges[:, 1], axis=0)
    wanted = size(edges.mean(1).T)
    assert np.mean(lengths / wanted) == pytest.approx(1, abs=0.12)
    assert np.std(lengths / wanted) < 0.25


def square_curve(at):
    side, along = np.divmod(4 * at, 1)
    corners = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]], float)
    side = side.astype(int) % 4
    return corners[side] + along[:, None] * (corners[side + 1] - corners[side])


def test_polygons_that_the_triangles_cannot_follow_are_refused():
    with pytest.raises(ValueError, match="edges are not on the boundary"):
        triangulate([square(20), circle((0.5, 0.5), 0.3, constant(0.6))], constant(0.05))


def test_quadrature_gives_the_matrices_of_scikit_fem():
    basis = Basis(MeshTri().refined(2), ElementTriP2(), intorder=4)
    at = quadrature(basis)
    assert at.weights.sum() == pytest.approx(1, rel=1e-12)
    x, y = basis.doflocs
    np.testing.assert_allclose(at.values @ (x * y), at.points[0] * at.points[1], atol=1e-14)
    np.testing.assert_allclose(at.gradients[1] @ (x * y), at.points[0], atol=1e-12)
    weighted = at.values * at.weights[:, None]
    np.testing.assert_allclose(
        (at.values.T @ weighted).toarray(), asm(mass, basis).toarray(), atol=1e-15
    )
    stiffness = sum(g.T @ (g * at.weights[:, None]) for g in at.gradients)
    np.testing.assert_allclose(stiffness.toarray(), asm(laplace, basis).toarray(), atol=1e-13)


@pytest.mark.parametrize(
    ("basis", "modes"),
    [
        (Basis(MeshTri().refined(3), ElementTriP2()), [(0, 0), (1, 0), (2, 1)]),
        (
            Basis(MeshTet().refined(2), ElementTetP2(), intorder=5),
            [(0, 0, 0), (1, 0, 0), (1, 1, 0)],
        ),
    ],
)
def test_a_gaussian_field_has_the_spectrum_of_its_covariance(basis, modes):
    """With no flux through the walls the cosines are its independent parts."""
    kappa, dim = 4.0, basis.mesh.dim()
    field = GaussianField(basis, kappa)
    factor = field(np.eye(field.normals)).T  # (N, normals): the covariance's root
    weights = asm(mass, basis)
    unit = {2: 4 * np.pi * kappa**2, 3: 8 * np.pi * kappa}[dim]
    cosines = []
    for mode in modes:
        phases = np.pi * np.array(mode)[:, None] * basis.doflocs
        cosine = np.prod(np.cos(phases), axis=0)
        cosines.append(cosine / np.sqrt(cosine @ weights @ cosine))
    found = factor.T @ (weights @ np.array(cosines).T)  # (normals, modes)
    eigenvalues = np.pi**2 * np.sum(np.square(modes), axis=1) + kappa**2
    np.testing.assert_allclose((found**2).sum(0), unit / eigenvalues**2, rtol=5e-3)
    correlation = found.T @ found / np.outer(*[np.linalg.norm(found, axis=0)] * 2)
    np.testing.assert_allclose(correlation, np.eye(len(modes)), atol=0.02)


def test_far_from_the_boundary_the_deviation_is_one():
    basis = Basis(MeshTri().refined(4), ElementTriP2())
    field = GaussianField(basis, 12.0)
    factor = field(np.eye(field.normals))
    centre = np.argmin(np.abs(basis.doflocs - 0.5).sum(0))
    assert np.linalg.norm(factor[:, centre]) == pytest.approx(1, rel=0.02)


def test_negative_quadrature_weights_are_refused():
    with pytest.raises(ValueError, match="expected positive ones"):
        GaussianField(Basis(MeshTet(), ElementTetP2(), intorder=4), 1.0)
