# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

r"""Faces of a surface as triangles: area vectors, normals, orientation."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pyvista

# VTK's cells: those without area, and those that a fan of triangles round a corner fills.
_BARE, _FLAT, _PIXEL = (0, 1, 2, 3, 4), (5, 7, 9), 8


class Faces:
    r"""A surface's faces, each cut into triangles round its first corner.

    On plane faces, concave ones too, the triangles' area vectors sum to the face's.

    Parameters
    ----------
    mesh : pyvista.PolyData or pyvista.UnstructuredGrid
        Of triangles, quadrilaterals and polygons; vertices and lines count as nothing.

    Attributes
    ----------
    triangles : numpy.ndarray
        Numbers of their points, :math:`(T, 3)`.
    owner : numpy.ndarray
        The cell of each, :math:`(T,)`.
    origin : numpy.ndarray
        A point near the surface: what is computed far from zero keeps its digits about it.
    points : numpy.ndarray
        The mesh's, about ``origin``, float64.

    Raises
    ------
    ValueError
        If there are cells of other kinds, or no faces.
    """

    def __init__(self, mesh: pyvista.DataSet) -> None:
        from vtkmodules.util.numpy_support import vtk_to_numpy

        grid = mesh.cast_to_unstructured_grid()
        kinds = np.asarray(grid.celltypes)
        other = set(kinds.tolist()) - {*_BARE, *_FLAT, _PIXEL}
        if other:
            raise ValueError(
                f"cells of VTK's kinds {sorted(other)} are no faces of straight edges: for the "
                "surface of a volume save mesh.extract_surface(), for strips and curved faces "
                "mesh.triangulate() of pyvista"
            )
        starts = vtk_to_numpy(grid.GetCells().GetOffsetsArray()).astype(np.int64)
        nodes = vtk_to_numpy(grid.GetCells().GetConnectivityArray()).astype(np.int64)
        for start in starts[:-1][kinds == _PIXEL]:
            nodes[start + 2 : start + 4] = nodes[[start + 3, start + 2]]
        count = np.where(np.isin(kinds, _BARE), 0, np.diff(starts) - 2).clip(0)
        if not count.any():
            raise ValueError(f"there are no faces, its {len(kinds)} cells are vertices or lines")
        self.owner = np.repeat(np.arange(len(kinds)), count)
        first = starts[:-1][self.owner]
        step = np.arange(len(self.owner)) - np.repeat(np.cumsum(count) - count, count)
        self.triangles = nodes[np.stack([first, first + step + 1, first + step + 2], -1)]
        points = np.asarray(mesh.points, dtype=np.float64)
        self.origin = points[self.triangles[0, 0]]
        self.points = points - self.origin
        self._n_cells = len(kinds)
        turns = np.roll(np.arange(len(nodes)), -1)
        faces = ~np.isin(kinds, _BARE) & (np.diff(starts) > 0)
        turns[starts[1:][faces] - 1] = starts[:-1][faces]
        inside = np.repeat(faces, np.diff(starts))
        self._edges = np.stack([nodes, nodes[turns]], -1)[inside]

    @cached_property
    def corners(self) -> np.ndarray:
        """Of the triangles, (T, 3, 3): triangle, corner, coordinate; about ``origin``."""
        return self.points[self.triangles]

    @cached_property
    def vectors(self) -> np.ndarray:
        """Area vectors of the triangles, (T, 3)."""
        a, b, c = self.corners.swapaxes(0, 1)
        return np.cross(b - a, c - a) / 2

    @property
    def cell_vectors(self) -> np.ndarray:
        """Area vectors of the cells, (cells, 3); zero of vertices and lines."""
        return self._gather(self.owner, self.vectors, self._n_cells)

    @property
    def point_vectors(self) -> np.ndarray:
        """At each point a third of the area vectors of the triangles round it, (points, 3)."""
        vectors = np.repeat(self.vectors / 3, 3, axis=0)
        return self._gather(self.triangles.ravel(), vectors, len(self.points))

    @property
    def turned(self) -> int:
        """Edges of two faces or more that all run along them in one sense: some are turned over."""
        edges, count = np.unique(np.sort(self._edges, axis=1), axis=0, return_inverse=True)
        ahead = self._edges[:, 0] < self._edges[:, 1]
        senses = [np.bincount(count.ravel(), of, len(edges)) for of in (ahead, ~ahead)]
        return int(((np.maximum(*senses) > 1) & (np.minimum(*senses) == 0)).sum())

    @property
    def closed(self) -> bool:
        """Whether the area vectors sum to nothing, as those of a closed surface do."""
        areas = np.linalg.norm(self.vectors, axis=1)
        return bool(np.linalg.norm(self.vectors.sum(0)) < 1e-5 * areas.sum())

    @property
    def volume(self) -> float:
        """Enclosed by a closed surface; negative where its normals point inwards."""
        return float(np.einsum("tk,tk->", self.corners.mean(1), self.vectors) / 3)

    @staticmethod
    def _gather(index: np.ndarray, values: np.ndarray, n: int) -> np.ndarray:
        return np.stack([np.bincount(index, column, n) for column in values.T], -1)


def normals(mesh: pyvista.DataSet, location: str) -> np.ndarray:
    r"""Unit normals of a surface's faces, or at its points the mean over the area round them.

    Parameters
    ----------
    mesh : pyvista.PolyData or pyvista.UnstructuredGrid
        As for :class:`Faces`.
    location : {"points", "cells"}
        Where.

    Returns
    -------
    numpy.ndarray
        Shape :math:`(N, 3)`, float64; of a closed surface they point outwards. Zero where there
        is no area.
    """
    faces = Faces(mesh)
    vectors = faces.point_vectors if location == "points" else faces.cell_vectors
    if faces.closed and faces.volume < 0:
        vectors = -vectors
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(length > 0, length, 1.0)
