# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

r"""The unit cell [0, 1]² with a random void at its centre, and its mesh.

The void's radius is :math:`r = 0.2 + 0.2 / (1 + e^{\tilde r})` at every angle, where
:math:`\tilde r` is drawn from the Gaussian field :math:`N(0, 16 (-Δ + 9)^{-1})` on the circle, as
by Li et al. (Geo-FNO, 2023). Such a field is nowhere smooth, so its Fourier series is cut off at
the harmonic that the mesh still follows.
"""

import numpy as np
from skfem import MeshQuad, MeshQuad2

__all__ = ["ELEMENTS", "HARMONICS", "cell_mesh", "draw_void", "void_radius"]

HARMONICS = 12
ELEMENTS = (108, 8)  # round the void and outwards: 108 x 9 = 972 vertices


def draw_void(rng):
    """Draw the Fourier coefficients of a void.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of the ``2 HARMONICS + 1`` normal numbers.

    Returns
    -------
    ndarray
        Of shape (2 HARMONICS + 1,): the constant, the cosines' and the sines' coefficients.
    """
    k = np.concatenate([[0], np.arange(1, HARMONICS + 1), np.arange(1, HARMONICS + 1)])
    # 1 / √(2π), cos(kθ) / √π and sin(kθ) / √π are the orthonormal eigenfunctions.
    amplitudes = np.sqrt(16 / (k**2 + 9) / np.where(k == 0, 2 * np.pi, np.pi))
    return amplitudes * rng.normal(size=k.size)


def void_radius(coefficients, angle):
    """Radius of a void, between 0.2 and 0.4, at angles (n,)."""
    constant, cosines, sines = np.split(coefficients, [1, HARMONICS + 1])
    phase = np.multiply.outer(angle, np.arange(1, HARMONICS + 1))
    return 0.2 + 0.2 / (1 + np.exp(constant + np.cos(phase) @ cosines + np.sin(phase) @ sines))


def cell_mesh(radius, elements=ELEMENTS):
    """Mesh the cell round its void with isoparametric biquadratic elements.

    Lines of equal angle run from the void to the cell's border; along them the distance from
    the centre grows geometrically, which keeps the elements near the void square.

    Parameters
    ----------
    radius : callable
        Radius of the void at angles (n,).
    elements : tuple of int
        Round the void, a multiple of 4, and outwards.

    Returns
    -------
    skfem.MeshQuad2
        Its vertices are numbered round the void first, then outwards.

    Raises
    ------
    ValueError
        If the number of elements is unusable, or the void leaves the cell.
    """
    around, outwards = elements
    if around < 8 or around % 4 or outwards < 1:
        raise ValueError(
            f"elements: expected a multiple of 4 from 8, and 1 or more; got {elements}"
        )
    # An eighth of a turn puts a vertex into every corner.
    angle = np.tile(np.pi / 4 + 2 * np.pi * np.arange(around) / around, outwards + 1)
    level = np.repeat(np.linspace(0, 1, outwards + 1), around)
    number = np.arange(angle.size).reshape(outwards + 1, around)
    beside = np.roll(number, -1, axis=1)
    corners = np.stack([number[:-1], number[1:], beside[1:], beside[:-1]]).reshape(4, -1)

    # Nodes on edges and inside are midway in angle and in level, not on the chord. They follow
    # the vertices, as scikit-fem numbers them.
    vertices = np.stack([np.cos(angle), np.sin(angle), level])
    skeleton = MeshQuad(vertices[:2] * (1 + level), corners)
    edges, interiors = (vertices[:, of].mean(1) for of in (skeleton.facets, skeleton.t))
    x, y, level = np.hstack([vertices, edges, interiors])
    angle = np.arctan2(y, x)
    inner = radius(angle)
    if not (inner.min() > 0 and inner.max() < 0.5):
        raise ValueError(
            f"the void's radius must stay between 0 and 0.5, got {inner.min()} to {inner.max()}"
        )
    direction = np.stack([np.cos(angle), np.sin(angle)])
    outer = 0.5 / np.abs(direction).max(0)
    return MeshQuad2(0.5 + inner ** (1 - level) * outer**level * direction, skeleton.t)
