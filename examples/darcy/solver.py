# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

r"""Darcy flow on the unit square: :math:`-\nabla \cdot (a \nabla u) = f`, u = 0 on the boundary.

Finite volumes around the nodes of a regular grid, of second order. The conductance of a face is
the harmonic mean of the permeabilities on both sides, which is exact for a jump midway.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import spsolve

HIGH, LOW = 12.0, 3.0


def draw_permeability(rng: np.random.Generator, n: int) -> np.ndarray:
    r"""Draw a permeability: 12 where a Gaussian field is positive, 3 elsewhere.

    The field is :math:`N(0, (-\Delta + 9)^{-2})` with Neumann conditions and without its constant
    mode, by its first n modes an axis. The published set is drawn so (Li et al., FNO, 2021): about
    half of every sample is 12.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of the draw.
    n : int
        Nodes an axis.

    Returns
    -------
    numpy.ndarray
        Of shape (n, n).
    """
    k = np.pi * np.arange(n)
    amplitude = 1 / (k[:, None] ** 2 + k**2 + 9)
    amplitude[0, 0] = 0
    amplitude[1:] *= np.sqrt(2)  # of the modes √2 cos(kx), of norm 1
    amplitude[:, 1:] *= np.sqrt(2)
    coefficients = amplitude * rng.standard_normal((n, n))
    modes = np.cos(np.outer(np.linspace(0, 1, n), k))
    return np.where(modes @ coefficients @ modes.T > 0, HIGH, LOW)


def solve_darcy(permeability: np.ndarray, source: np.ndarray | float = 1.0) -> np.ndarray:
    """Solve for the pressure.

    Parameters
    ----------
    permeability : numpy.ndarray
        At the nodes of a grid on the unit square, boundary included, (n, n); positive.
    source : numpy.ndarray or float
        At the nodes, (n, n), or everywhere.

    Returns
    -------
    numpy.ndarray
        The pressure, (n, n).
    """
    a = np.asarray(permeability, dtype=np.float64)
    n = len(a)
    number = np.arange(n * n).reshape(n, n)
    rows, columns, values = [], [], []
    for here, there in ((np.s_[:-1], np.s_[1:]), (np.s_[:, :-1], np.s_[:, 1:])):
        conductance = (2 * a[here] * a[there] / (a[here] + a[there])).ravel()
        i, j = number[here].ravel(), number[there].ravel()
        rows += [i, j, i, j]
        columns += [i, j, j, i]
        values += [conductance, conductance, -conductance, -conductance]
    where = np.concatenate(rows), np.concatenate(columns)
    matrix = sp.csr_matrix((np.concatenate(values), where), (n * n, n * n))
    inner = number[1:-1, 1:-1].ravel()
    right = np.broadcast_to(source, (n, n)).ravel()[inner] / (n - 1) ** 2
    u = np.zeros(n * n)
    # The matrix is symmetric, which this order of elimination keeps.
    u[inner] = spsolve(matrix[inner][:, inner].tocsc(), right, permc_spec="MMD_AT_PLUS_A")
    return u.reshape(n, n)
