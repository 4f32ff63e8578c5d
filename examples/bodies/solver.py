# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
r"""Creeping flow past a rigid body by the boundary element method.

The velocity of Stokes flow past a body at rest in a stream :math:`u_∞` vanishes on its surface:

.. math::
    \frac{1}{8πμ} \oint G(x - y) f(y) \, dS_y = u_∞, \qquad
    G(r) = \frac{I}{|r|} + \frac{r r^T}{|r|^3},

an equation of the first kind for the traction :math:`f` of the fluid on the body. It is constant
on each flat triangle, and the equation holds at the triangles' centroids. Integrals over the
triangle of the centroid are exact, those over near triangles have quadrature on sixteen parts,
others three points.
"""

import numpy as np
from scipy.linalg import solve

__all__ = ["VISCOSITY", "areas_and_normals", "inner_pressure", "tractions"]

VISCOSITY = 1.0
NEAR = 2.0  # times a triangle's longest edge
ROWS = 512  # of the matrix at once
# Of degree 2, with equal weights: barycentric coordinates.
POINTS = np.full((3, 3), 1 / 6) + np.eye(3) / 2


def areas_and_normals(corners):
    """Areas (F,) and unit normals (F, 3) of triangles (F, 3, 3)."""
    a, b, c = corners.swapaxes(0, 1)
    vectors = np.cross(b - a, c - a) / 2
    areas = np.linalg.norm(vectors, axis=1)
    return areas, vectors / areas[:, None]


def tractions(corners, velocities, viscosity=VISCOSITY):
    r"""Traction on a body for each of several streams.

    The equation leaves :math:`f` free up to a multiple of the normal, a pressure inside the body.
    A term of rank one fixes it for the solution; then that which has no pressure inside is taken,
    so that the fluid's pressure vanishes far away.

    Parameters
    ----------
    corners : ndarray
        Of the triangles, (F, 3, 3), which run counterclockwise seen from outside; the origin is
        inside the body.
    velocities : ndarray
        Of the streams, (K, 3).
    viscosity : float
        Of the fluid.

    Returns
    -------
    ndarray
        (K, F, 3).
    """
    areas, normals = areas_and_normals(corners)
    matrix = single_layer(corners)
    weighted = (normals * areas[:, None]).ravel()
    matrix += normals.reshape(-1, 1) * (weighted / np.sqrt(areas.sum()))
    streams = np.tile(np.asarray(velocities, float).T, (len(corners), 1))
    found = solve(matrix, 8 * np.pi * viscosity * streams, overwrite_a=True, check_finite=False)
    found = found.T.reshape(-1, *normals.shape)
    return found - inner_pressure(corners, found)[:, None, None] * normals


def inner_pressure(corners, found, point=(0.0, 0.0, 0.0)):
    """Pressure (K,) that tractions (K, F, 3) leave at a point inside, the stream's being 0."""
    areas, _ = areas_and_normals(corners)
    away = np.asarray(point) - POINTS @ corners  # (F, 3 points, 3)
    kernel = (away / np.linalg.norm(away, axis=-1, keepdims=True) ** 3).mean(1)
    return -np.einsum("f,fi,kfi->k", areas, kernel, found) / (4 * np.pi)


def single_layer(corners):
    """The integrals of the Stokeslet (3F, 3F): at a centroid, over a triangle."""
    n = len(corners)
    areas, _ = areas_and_normals(corners)
    centres, sources = corners.mean(1), POINTS @ corners
    longest = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=-1).max(1)
    parts = quarters(quarters(corners)).reshape(n, 16, 3, 3)
    fine = (POINTS @ parts).reshape(n, 48, 3)
    matrix = np.empty((n, 3, n, 3))
    for start in range(0, n, ROWS):
        rows = slice(start, min(start + ROWS, n))
        block = sum(stokeslet(centres[rows, None], sources[None, :, k]) for k in range(3)) / 3
        distance = np.linalg.norm(centres[rows, None] - centres, axis=-1)
        i, j = np.nonzero(distance < NEAR * longest)
        block[:, :, i, j] = stokeslet(centres[rows][i, None], fine[j]).mean(-1)
        matrix[rows] = (areas * block).transpose(2, 0, 3, 1)
    own = np.arange(n)
    matrix[own, :, own] = over_own_triangle(corners)
    return matrix.reshape(3 * n, 3 * n)


def stokeslet(points, sources):
    """G from sources to points, both (..., 3): (3, 3, ...)."""
    away = [points[..., i] - sources[..., i] for i in range(3)]
    inverse = 1 / np.sqrt(sum(component**2 for component in away))
    cubed = inverse**3
    kernel = np.empty((3, 3, *inverse.shape))
    for i in range(3):
        for j in range(i + 1):
            kernel[i, j] = kernel[j, i] = away[i] * away[j] * cubed
        kernel[i, i] += inverse
    return kernel


def quarters(corners):
    """Each triangle (n, 3, 3) as four (4n, 3, 3) with half its edges."""
    middles = (corners + np.roll(corners, -1, axis=1)) / 2
    a, b, c = corners.swapaxes(0, 1)
    ab, bc, ca = middles.swapaxes(0, 1)
    four = [(a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca)]
    return np.stack([np.stack(one, 1) for one in four], 1).reshape(-1, 3, 3)


def over_own_triangle(corners):
    r"""Integral of G over each triangle (F, 3, 3) for its own centroid: (F, 3, 3).

    In polar coordinates round the centroid the radius takes the singularity away. On the part
    that an edge at distance :math:`d` closes, the remaining integral over the angle is
    :math:`d \int (I + e e^T) \, dθ / \cos θ` with the direction
    :math:`e = \cos θ \, a + \sin θ \, t`: :math:`a` towards the edge, :math:`t` along it.
    """
    begin = corners - corners.mean(1, keepdims=True)
    end = np.roll(begin, -1, axis=1)
    along = (end - begin) / np.linalg.norm(end - begin, axis=-1, keepdims=True)
    ends = np.stack([(begin * along).sum(-1), (end * along).sum(-1)])
    across = begin - ends[0][..., None] * along
    distance = np.linalg.norm(across, axis=-1)
    across = across / distance[..., None]
    tangent = ends / distance
    length = np.diff(np.arcsinh(tangent), axis=0)[0]  # of 1 / cos
    sine = np.diff(tangent / np.hypot(1, tangent), axis=0)[0]
    cosine = np.diff(1 / np.hypot(1, tangent), axis=0)[0]

    def outer(a, b):
        return a[..., :, None] * b[..., None, :]

    mixed = outer(across, along) + outer(along, across)
    terms = (
        (length, np.eye(3)),
        (sine, outer(across, across)),
        (-cosine, mixed),
        (length - sine, outer(along, along)),
    )
    return sum((distance * factor)[..., None, None] * form for factor, form in terms).sum(1)
