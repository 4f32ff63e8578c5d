# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
r"""Random smooth bodies and their triangulations.

The surface is :math:`x(e) = A \, r(e) \, e` over the directions :math:`e`, with the radius
:math:`r(e) = \exp g(e)`, a Gaussian random field :math:`g` made of waves, and a stretch
:math:`A` along three axes at right angles, which are random too. Its triangulations have the
volume of the unit sphere, however fine they are.
"""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import ConvexHull

__all__ = ["AMPLITUDE", "LENGTH", "Body", "cut", "draw_body", "draw_triangulation"]

AMPLITUDE = 0.2  # standard deviation of the logarithm of the radius
LENGTH = 0.7  # its correlation length on the unit sphere
STRETCH = 0.5  # standard deviation of the logarithm of the stretches, before they sum to zero
WAVES = 64
SWEEPS = 5  # that spread random points over the sphere


@dataclass(frozen=True)
class Body:
    """A star-shaped body.

    Attributes
    ----------
    waves : ndarray
        Wave vectors of the logarithm of the radius, (W, 3).
    phases : ndarray
        Theirs, (W,).
    stretch : ndarray
        Symmetric, of determinant 1, (3, 3).
    """

    waves: np.ndarray
    phases: np.ndarray
    stretch: np.ndarray

    def surface(self, directions, faces):
        """Points (n, 3) over vectors (n, 3) of any length, that enclose the sphere's volume."""
        units = directions / np.linalg.norm(directions, axis=1, keepdims=True)
        field = np.cos(units @ self.waves.T + self.phases).sum(1)
        radius = np.exp(AMPLITUDE * np.sqrt(2 / len(self.phases)) * field)
        points = radius[:, None] * units @ self.stretch
        volume = np.linalg.det(points[faces]).sum() / 6
        return points * (4 / 3 * np.pi / volume) ** (1 / 3)

    def refine(self, points, faces):
        """A triangulation of the surface with each face cut into four, (n, 3) and (4F, 3)."""
        points, faces = cut(points, faces)
        return self.surface(np.linalg.solve(self.stretch, points.T).T, faces), faces


def draw_body(rng):
    """Draw a `Body`."""
    waves, phases = rng.normal(size=(WAVES, 3)) / LENGTH, rng.uniform(0, 2 * np.pi, WAVES)
    axes, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    logs = STRETCH * rng.normal(size=3)
    return Body(waves, phases, axes * np.exp(logs - logs.mean()) @ axes.T)


def draw_triangulation(rng, n_points):
    """Triangulate the unit sphere with random points, a little spread out.

    Parameters
    ----------
    rng : numpy.random.Generator
        Of the sample.
    n_points : int
        There are twice as many faces less four.

    Returns
    -------
    tuple of ndarray
        Points (n, 3) and faces (F, 3), which run counterclockwise seen from outside.
    """
    points = rng.normal(size=(n_points, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    for _ in range(SWEEPS):
        faces = ConvexHull(points).simplices
        moved = np.zeros_like(points)
        for k in (1, 2):  # to the mean of the neighbours
            np.add.at(moved, faces, points[np.roll(faces, k, axis=1)])
        points = moved / np.linalg.norm(moved, axis=1, keepdims=True)
    return points, _outward(points, ConvexHull(points).simplices)


def cut(points, faces):
    """Cut each face into four at the middles of its edges: points on flat faces, and faces."""
    edges = np.stack([faces, np.roll(faces, -1, axis=1)], -1)
    unique, index = np.unique(np.sort(edges.reshape(-1, 2), axis=1), axis=0, return_inverse=True)
    middles = len(points) + index.reshape(-1, 3)
    corners = [np.stack([faces[:, k], middles[:, k], middles[:, k - 1]], 1) for k in range(3)]
    points = np.concatenate([points, points[unique].mean(1)])
    return points, np.concatenate([*corners, middles])


def _outward(points, faces):
    a, b, c = points[faces].swapaxes(0, 1)
    inward = np.einsum("ij,ij->i", np.cross(b - a, c - a), a) < 0
    return np.where(inward[:, None], faces[:, ::-1], faces)
