# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

r"""The airfoil benchmark's geometry: a deformed NACA 0012 and the C-mesh around it.

The section lies on the chord from (0, 0) to (1, 0). Lengths are in chords.

The mesh follows Jameson's square-root mapping: with ``z = z0 + ζ² / 2`` and ``z0`` just inside the
leading edge, the section and the wake behind it unfold in the plane ``ζ = ξ + iη`` into one
shallow bump ``η = S(ξ)``. Lines of constant ``ξ`` and lines sheared upwards from the bump are a
smooth C-mesh that is close to orthogonal, and whose cells cannot fold while ``S`` is a function.
"""

import numpy as np

__all__ = ["SHAPE", "c_mesh", "cell_areas", "displace", "naca0012"]

SHAPE = (221, 51)  # nodes along the C and outwards
WAKE_CELLS = 40 / 220  # share of the cells along the C on each side of the wake cut
BOX_COLUMNS = np.array([-0.25, 0.25, 0.75, 1.25])  # the control nodes' x
BOX_HEIGHT = 0.2  # distance of the control nodes' two rows
FAR_FIELD = 30.0  # distance of the far field in chords
LEADING_RADIUS = 1.1019 * 0.12**2


def naca0012(x):
    """Half thickness of the NACA 0012 section with a closed trailing edge.

    Parameters
    ----------
    x : array_like
        Chordwise positions in [0, 1].

    Returns
    -------
    ndarray
        Half thickness; the last coefficient is -0.1036 rather than -0.1015, which closes the
        trailing edge (Abbott and von Doenhoff, Theory of Wing Sections, eq. 6.2).
    """
    x = np.asarray(x, dtype=np.float64)
    poly = 0.2969 * np.sqrt(x) + x * (-0.1260 + x * (-0.3516 + x * (0.2843 - 0.1036 * x)))
    return 0.6 * poly


def displace(x, y, control):
    r"""Move points with the design element of Geo-FNO (Li et al., 2023, its NACA_sdesign).

    :math:`y + \sum_k \phi_k(x) [(1/2 - y/h)\,l_k + (1/2 + y/h)\,u_k]` with the cubic Lagrange
    basis :math:`\phi_k` on the control nodes' columns and the heights ``h`` between their rows.

    Parameters
    ----------
    x, y : array_like
        Points, of one shape.
    control : array_like
        (8,) vertical displacements, counter-clockwise as published: the lower row from the
        leading to the trailing edge, then the upper row back.

    Returns
    -------
    ndarray
        The points' new heights.
    """
    lower, upper = np.asarray(control[:4]), np.asarray(control[7:3:-1])
    basis = []
    for k, node in enumerate(BOX_COLUMNS):
        others = np.delete(BOX_COLUMNS, k)
        basis.append(np.prod([(x - other) / (node - other) for other in others], axis=0))
    low, high = 0.5 - y / BOX_HEIGHT, 0.5 + y / BOX_HEIGHT
    return y + low * np.tensordot(lower, basis, axes=1) + high * np.tensordot(upper, basis, axes=1)


def cell_areas(x, y):
    """Signed areas of a mesh's cells, (..., ni - 1, nj - 1), from node arrays (..., ni, nj)."""
    dx1, dy1 = x[..., 1:, 1:] - x[..., :-1, :-1], y[..., 1:, 1:] - y[..., :-1, :-1]
    dx2, dy2 = x[..., :-1, 1:] - x[..., 1:, :-1], y[..., :-1, 1:] - y[..., 1:, :-1]
    return 0.5 * (dx1 * dy2 - dx2 * dy1)


def c_mesh(control=(0.0,) * 8, shape=SHAPE):
    """Build the C-mesh around a displaced NACA 0012.

    Parameters
    ----------
    control : array_like
        (8,) vertical displacements of the design element's control nodes, see `displace`.
    shape : tuple of int
        Nodes along the C (from the lower far field along the wake, the lower side, the upper side
        and the wake back) and outwards.

    Returns
    -------
    x, y : ndarray
        (ni, nj) nodes. Row ``j = 0`` is the section and the wake cut, whose nodes ``i`` and
        ``ni - 1 - i`` coincide.

    Raises
    ------
    ValueError
        If the shape is unusable or a cell has no positive area.
    """
    ni, nj = shape
    wake = round(WAKE_CELLS * (ni - 1))
    if ni % 2 == 0 or wake < 2 or nj < 3:
        raise ValueError(f"shape {tuple(shape)}: expected an odd number of nodes >= 13 along, >= 3")
    control = np.asarray(control, dtype=np.float64)

    # The section, finely: the parameter t runs from -1 (lower trailing edge) to 1, x = t².
    t = np.sin(np.linspace(-np.pi / 2, np.pi / 2, 40001))
    z0 = _section(LEADING_RADIUS / 2, 0.0, control)
    zeta = _unfold(_section(t**2, np.sign(t) * naca0012(t**2), control) - z0)
    if np.any(np.diff(zeta.real) <= 0):
        raise ValueError("the displaced section does not unfold: its mesh would have folded cells")

    half = (ni - 1) // 2
    along = _along_section(half - wake)
    along = np.concatenate([-along[:0:-1], along])
    xi = np.where(along < 0, along * -zeta[0].real, along * zeta[-1].real)
    t = np.interp(xi, zeta.real, t)
    t[[0, -1]] = -1, 1
    wall = _unfold(_section(t**2, np.sign(t) * naca0012(t**2), control) - z0)

    # The wake leaves along the section's mean line and turns into the free stream.
    eps = 1e-6
    edge = _section(1.0, 0.0, control)
    slope = (edge - _section(1 - eps, 0.0, control)).imag / eps
    spacing = wall[-1].real - wall[-2].real
    xi = wall[-1].real + _geometric(spacing, np.sqrt(2 * FAR_FIELD) - wall[-1].real, wake)[1:]
    x = 0.5 * (xi**2 - wall[-1].imag ** 2) + z0.real
    y = edge.imag + slope * (1 - np.exp(-(x - 1)))
    cut = np.sqrt(2 * (x + 1j * y - z0))
    base = np.concatenate([-cut[::-1], wall, cut])

    height = np.sqrt(2 * FAR_FIELD)
    out = _geometric(0.4 / (nj - 1), height, nj - 1) / height
    zeta = base[:, None] + 1j * out * (height - base.imag)[:, None]
    z = z0 + 0.5 * zeta**2
    x, y = z.real, z.imag
    x[: wake + 1, 0], y[: wake + 1, 0] = x[: ni - wake - 2 : -1, 0], y[: ni - wake - 2 : -1, 0]
    if not cell_areas(x, y).min() > 0:
        raise ValueError("the mesh has cells without positive area")
    return x, y


def _section(x, y, control):
    """Points of the displaced section as complex numbers."""
    return x + 1j * displace(x, y, control)


def _unfold(z):
    """ζ = sqrt(2 z) of points along the section, lower trailing edge first, without a jump."""
    root = np.sqrt(2 * z)
    turn = np.unwrap(2 * np.angle(root)) / 2
    return np.abs(root) * np.exp(1j * (turn - turn[-1] + np.angle(root[-1])))


def _along_section(n):
    """n + 1 positions in [0, 1], denser at the trailing edge; ξ makes the leading edge dense."""
    s = np.linspace(0.0, 1.0, n + 1)
    return s + 0.6 * s**2 * (1 - s)


def _geometric(first, length, n):
    """n + 1 positions from 0 to length whose n steps grow by one ratio from `first`."""
    low, high = 1.0 + 1e-9, 10.0
    for _ in range(80):
        ratio = 0.5 * (low + high)
        too_long = first * (ratio**n - 1) / (ratio - 1) > length
        low, high = (low, ratio) if too_long else (ratio, high)
    steps = (ratio ** np.arange(n + 1) - 1) / (ratio**n - 1)
    return length * steps
