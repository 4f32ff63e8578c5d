# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
"""A scalar basis as sparse matrices: nodal values to values and gradients at Gauss points.

A nonlinear term that is assembled every step costs a few products with these.
"""

import logging
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

__all__ = ["Quadrature", "quadrature"]

# scikit-fem reports every assembly; under Hydra's logging that would bury the run's own lines.
logging.getLogger("skfem").setLevel(logging.WARNING)


class Quadrature(NamedTuple):
    """Of a basis of N functions on Q Gauss points.

    Attributes
    ----------
    values : csr_array
        (Q, N) the functions.
    gradients : list of csr_array
        (Q, N) their derivatives, one matrix an axis.
    weights : ndarray
        (Q,) of the points; they sum to the measure of the domain.
    points : ndarray
        (d, Q) where the points are.
    """

    values: csr_array
    gradients: list
    weights: np.ndarray
    points: np.ndarray


def quadrature(basis):
    """The `Quadrature` of a scalar `skfem.Basis` or `skfem.FacetBasis`."""
    shape = basis.dx.shape  # (cells, points a cell)
    rows = np.arange(basis.dx.size).reshape(shape)

    def matrix(entries):
        columns = [np.broadcast_to(dofs[:, None], shape) for dofs in basis.element_dofs]
        entries = [np.broadcast_to(np.asarray(e), shape) for e in entries]
        places = np.tile(rows.ravel(), len(entries)), np.ravel(columns)
        return csr_array((np.ravel(entries), places), shape=(rows.size, basis.N))

    functions = [function[0] for function in basis.basis]
    return Quadrature(
        values=matrix(functions),
        gradients=[matrix([f.grad[axis] for f in functions]) for axis in range(basis.mesh.dim())],
        weights=basis.dx.ravel(),
        points=np.asarray(basis.global_coordinates()).reshape(basis.mesh.dim(), -1),
    )
