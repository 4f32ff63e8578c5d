# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
r"""Triangulations of irregular domains, bounded by polygons.

Points are thrown inside with the density asked for, and then each moves, several times, to the
weighted centroid of the Delaunay triangles round it (Chen and Holst, Comput. Methods Appl. Mech.
Eng. 200, 2011). That makes nearly equilateral triangles. The polygons' points stay where they are.
"""

import itertools

import numpy as np
from scipy.spatial import Delaunay, cKDTree
from skfem import MeshTri

__all__ = ["circle", "polygon", "spaced", "triangulate"]


def spaced(curve, size, samples=4000):
    """Points along a closed curve, at distances close to a size.

    Parameters
    ----------
    curve : callable
        Its points (n, 2) at parameters (n,) of [0, 1); the curve closes at 1.
    size : callable
        Distance (n,) wanted at points (n, 2).
    samples : int
        Points by which the curve's length is measured.

    Returns
    -------
    ndarray
        (m, 2) points, the first of which is the curve's at 0.
    """
    at = np.linspace(0, 1, samples + 1)
    points = curve(at)
    middles = 0.5 * (points[1:] + points[:-1])
    steps = np.linalg.norm(np.diff(points, axis=0), axis=1) / size(middles)
    travelled = np.concatenate([[0], np.cumsum(steps)])
    count = max(3, round(travelled[-1]))
    return curve(np.interp(travelled[-1] * np.arange(count) / count, travelled, at))


def circle(centre, radius, size):
    """Points (m, 2) of a circle, counter-clockwise, `spaced` by a size."""

    def curve(at):
        return np.asarray(centre) + radius * np.stack(
            [np.cos(2 * np.pi * at), np.sin(2 * np.pi * at)], -1
        )

    return spaced(curve, size)


def polygon(corners, size):
    """Points (m, 2) of a polygon, side by side `spaced` by a size, its corners among them."""
    sides = []
    for start, end in itertools.pairwise([*corners, corners[0]]):
        start, end = np.array(start, float), np.array(end, float)
        at = np.linspace(0, 1, 401)[:, None]
        middles = start + 0.5 * (at[1:] + at[:-1]) * (end - start)
        steps = np.linalg.norm(end - start) / 400 / size(middles)
        travelled = np.concatenate([[0], np.cumsum(steps)])
        count = max(1, round(travelled[-1]))
        places = np.interp(travelled[-1] * np.arange(count) / count, travelled, at[:, 0])
        sides.append(start + places[:, None] * (end - start))
    return np.concatenate(sides)


def triangulate(loops, size, sweeps=40, seed=0):
    """Triangulate what is inside one polygon and outside the others.

    Parameters
    ----------
    loops : list of ndarray
        Closed polygons (m, 2), the domain's outline and its holes in any order. Their points
        become vertices, the first ones, in this order.
    size : callable
        Edge length (n,) wanted at points (n, 2).
    sweeps : int
        Of smoothing.
    seed : int
        Of the points thrown.

    Returns
    -------
    skfem.MeshTri

    Raises
    ------
    ValueError
        If an edge of the polygons is not one of the triangulation: the polygons' points are too
        far apart for the size, or the polygons come too close to each other.
    """
    rng = np.random.default_rng(seed)
    border = np.concatenate(loops)
    starts = np.cumsum([0, *map(len, loops)])
    ends = np.concatenate([np.roll(np.arange(a, b), -1) for a, b in itertools.pairwise(starts)])
    edges = np.stack([np.arange(len(border)), ends])

    # A hexagonal lattice of the smallest size, thinned out where triangles shall be larger.
    low, high = border.min(0), border.max(0)
    probe = low + (high - low) * np.stack(np.meshgrid(*[np.linspace(0, 1, 200)] * 2), -1)
    finest = size(np.concatenate([probe.reshape(-1, 2), border])).min()
    x, y = np.meshgrid(
        np.arange(low[0], high[0], finest), np.arange(low[1], high[1], finest * np.sqrt(3) / 2)
    )
    x[1::2] += finest / 2
    inner = np.stack([x.ravel(), y.ravel()], -1)
    wanted = size(inner)
    inner = inner[rng.random(len(inner)) < (finest / wanted) ** 2]
    away, _ = cKDTree(border).query(inner)
    inner = inner[_inside(inner, border, edges) & (away > 0.7 * size(inner))]

    points = np.concatenate([border, inner])
    for sweep in range(sweeps + 1):
        cells = Delaunay(points).simplices
        corners = points[cells]
        cells = cells[_inside(corners.mean(1), border, edges)]
        corners = points[cells]
        if sweep == sweeps:
            break
        a, b = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
        areas = np.abs(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]) / 2
        centroids = corners.mean(1)
        # A centroidal tessellation of density ρ has cells of size ρ^(-1/4) in the plane.
        weights = areas * size(centroids) ** -4.0
        total = np.bincount(cells.ravel(), np.repeat(weights, 3), len(points))
        for axis in range(2):
            pull = np.repeat(weights * centroids[:, axis], 3)
            moment = np.bincount(cells.ravel(), pull, len(points))
            points[len(border) :, axis] = (moment / total)[len(border) :]
    mesh = MeshTri(np.ascontiguousarray(points.T), np.ascontiguousarray(cells.T))
    found = {tuple(edge) for edge in mesh.facets[:, mesh.boundary_facets()].T}
    missing = {tuple(edge) for edge in np.sort(edges, axis=0).T} - found
    if missing or len(found) != edges.shape[1]:
        raise ValueError(
            f"{len(missing)} of the polygons' {edges.shape[1]} edges are not on the boundary of "
            "the triangulation; space the polygons' points by the size, and keep polygons apart"
        )
    return mesh


def _inside(points, border, edges):
    """Whether points are inside, by the parity of the edges to their right."""
    (x0, y0), (x1, y1) = border[edges[0]].T, border[edges[1]].T
    x, y = points.T[:, :, None]
    crosses = (y0 > y) != (y1 > y)
    with np.errstate(divide="ignore", invalid="ignore"):
        right = x0 + (y - y0) / (y1 - y0) * (x1 - x0) > x
    return (crosses & right).sum(1) % 2 == 1
