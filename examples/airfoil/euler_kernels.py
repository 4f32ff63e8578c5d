# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

r"""The Warp kernels of the Euler solver, see `examples.airfoil.euler` for what they add up to.

Cell arrays are (B, ni + 4, nj + 4) with two ghost cells on every side, or (B, ni, nj) without.
"""

import warp as wp

__all__ = [
    "GAMMA",
    "balance",
    "fill_ends",
    "fill_sides",
    "flux_along",
    "flux_outwards",
    "real",
    "sweep",
    "update",
    "vec2",
    "vec4",
]

GAMMA = 1.4

real = wp.float64
vec2 = wp.vec2d
vec4 = wp.vec4d

G = wp.constant(wp.float64(GAMMA))
G1 = wp.constant(wp.float64(GAMMA - 1.0))
HALF = wp.constant(wp.float64(0.5))
ONE = wp.constant(wp.float64(1.0))
ROUNDING = wp.constant(wp.float64(0.2))  # of the wave speeds near zero, in speeds of sound
LIMITER_EPS = wp.constant(wp.float64(1e-5))  # keeps the limiter smooth where the flow is

wp.set_module_options({"enable_backward": False})


# ---------------------------------------------------------------------------------------------
# Physics of one face. A primitive state is (density, u, v, pressure), a normal is area-scaled.
# ---------------------------------------------------------------------------------------------


@wp.func
def energy(q: vec4):
    """Total energy per volume."""
    return q[3] / G1 + HALF * q[0] * (q[1] * q[1] + q[2] * q[2])


@wp.func
def spectral_radius(q: vec4, s: vec2):
    """|V · S| + c |S|, the fastest wave through a face."""
    return wp.abs(q[1] * s[0] + q[2] * s[1]) + wp.sqrt(G * q[3] / q[0] * wp.dot(s, s))


@wp.func
def limited(a: real, b: real):
    """κ = 1/3 increment from a cell to its face; a is the difference away from the face."""
    s = wp.max((real(2.0) * a * b + LIMITER_EPS) / (a * a + b * b + LIMITER_EPS), real(0.0))
    third = real(1.0 / 3.0)
    return real(0.25) * s * ((ONE - third * s) * a + (ONE + third * s) * b)


@wp.func
def towards(far: vec4, near: vec4, across: vec4):
    """State of the cell `near` on its face to the cell `across`."""
    q = vec4()
    for k in range(4):
        q[k] = near[k] + limited(near[k] - far[k], across[k] - near[k])
    if q[0] <= real(0.0) or q[3] <= real(0.0):
        q = near
    return q


@wp.func
def hllc(ql: vec4, qr: vec4, s: vec2):
    """Flux of mass, momentum and energy through a face, along its normal."""
    area = wp.length(s)
    nx = s[0] / area
    ny = s[1] / area
    unl = ql[1] * nx + ql[2] * ny
    unr = qr[1] * nx + qr[2] * ny
    el = energy(ql)
    er = energy(qr)

    # Einfeldt's bounds: the slower and the faster of the state's and Roe's average's waves.
    w = wp.sqrt(qr[0] / ql[0])
    w = w / (ONE + w)
    u = ql[1] + w * (qr[1] - ql[1])
    v = ql[2] + w * (qr[2] - ql[2])
    hl = (el + ql[3]) / ql[0]
    h = hl + w * ((er + qr[3]) / qr[0] - hl)
    un = u * nx + v * ny
    c = wp.sqrt(wp.max(G1 * (h - HALF * (u * u + v * v)), real(1e-12)))
    sl = wp.min(unl - wp.sqrt(G * ql[3] / ql[0]), un - c)
    sr = wp.max(unr + wp.sqrt(G * qr[3] / qr[0]), un + c)

    # Rounded where they change sign (a smooth entropy fix): a shock then settles between cells.
    fix = ROUNDING * c
    sl = HALF * (sl - wp.sqrt(sl * sl + fix * fix))
    sr = HALF * (sr + wp.sqrt(sr * sr + fix * fix))

    ml = ql[0] * (sl - unl)
    mr = qr[0] * (sr - unr)
    sm = (qr[3] - ql[3] + ml * unl - mr * unr) / (ml - mr)

    q = ql
    e = el
    uns = unl
    sk = sl
    mk = ml
    if sm < real(0.0):
        q = qr
        e = er
        uns = unr
        sk = sr
        mk = mr
    flux = vec4(q[0] * uns, q[0] * q[1] * uns + q[3] * nx, q[0] * q[2] * uns + q[3] * ny, 0.0)
    flux[3] = (e + q[3]) * uns
    # The star state between the contact and the outer wave (Toro, eq. 10.39).
    rs = mk / (sk - sm)
    du = (sm - uns) * rs
    es = rs * (e / q[0] + (sm - uns) * (sm + q[3] / mk))
    flux[0] += sk * (rs - q[0])
    flux[1] += sk * (rs * q[1] + du * nx - q[0] * q[1])
    flux[2] += sk * (rs * q[2] + du * ny - q[0] * q[2])
    flux[3] += sk * (es - e)
    return area * flux


@wp.func
def characteristic(q: vec4, free: vec4, s: vec2):
    """Boundary state from Riemann's invariants along the outward normal."""
    n = wp.normalize(s)
    c = wp.sqrt(G * q[3] / q[0])
    cf = wp.sqrt(G * free[3] / free[0])
    un = q[1] * n[0] + q[2] * n[1]
    unf = free[1] * n[0] + free[2] * n[1]
    out = un + real(2.0) * c / G1
    into = unf - real(2.0) * cf / G1
    unb = HALF * (out + into)
    cb = real(0.25) * G1 * (out - into)
    # Entropy and the velocity along the boundary come from where the fluid comes from.
    src = q
    uns = un
    if unb < real(0.0):
        src = free
        uns = unf
    rho = wp.pow(cb * cb * wp.pow(src[0], G) / (G * src[3]), ONE / G1)
    return vec4(
        rho,
        src[1] + (unb - uns) * n[0],
        src[2] + (unb - uns) * n[1],
        rho * cb * cb / G,
    )


# ---------------------------------------------------------------------------------------------
# Kernels. q: (B, ni + 4, nj + 4) cells with ghosts; si, sj: face normals towards +i and +j.
# ---------------------------------------------------------------------------------------------


@wp.kernel
def fill_ends(q: wp.array3d[vec4], si: wp.array3d[vec2], far: wp.array3d[vec4]):
    """Ghost cells downstream, at both ends of the C: far field."""
    b, j = wp.tid()
    ni = q.shape[1] - 4
    low = characteristic(q[b, 2, j + 2], far[b, 0, j], -si[b, 0, j])
    high = characteristic(q[b, ni + 1, j + 2], far[b, 1, j], si[b, ni, j])
    for k in range(2):
        q[b, k, j + 2] = low
        q[b, ni + 2 + k, j + 2] = high


@wp.kernel
def fill_sides(q: wp.array3d[vec4], sj: wp.array3d[vec2], far: wp.array2d[vec4], wake: int):
    """Ghost cells under the section and across the wake cut, and the outer far field."""
    b, i = wp.tid()
    ni = q.shape[1] - 4
    nj = q.shape[2] - 4
    inner = q[b, i + 2, 2]
    if i < wake or i >= ni - wake:
        q[b, i + 2, 1] = q[b, ni + 1 - i, 2]
        q[b, i + 2, 0] = q[b, ni + 1 - i, 3]
    else:
        ghost = real(2.0) * inner - q[b, i + 2, 3]
        if ghost[0] <= real(0.0) or ghost[3] <= real(0.0):
            ghost = inner
        q[b, i + 2, 1] = ghost
        q[b, i + 2, 0] = ghost
    outer = characteristic(q[b, i + 2, nj + 1], far[b, i], sj[b, i, nj])
    q[b, i + 2, nj + 2] = outer
    q[b, i + 2, nj + 3] = outer


@wp.kernel
def flux_along(q: wp.array3d[vec4], si: wp.array3d[vec2], flux: wp.array3d[vec4]):
    """Fluxes through the faces between neighbours along the C."""
    b, i, j = wp.tid()
    left = towards(q[b, i, j + 2], q[b, i + 1, j + 2], q[b, i + 2, j + 2])
    right = towards(q[b, i + 3, j + 2], q[b, i + 2, j + 2], q[b, i + 1, j + 2])
    flux[b, i, j] = hllc(left, right, si[b, i, j])


@wp.kernel
def flux_outwards(q: wp.array3d[vec4], sj: wp.array3d[vec2], wake: int, flux: wp.array3d[vec4]):
    """Fluxes through the faces between neighbours outwards, and the section's pressure."""
    b, i, j = wp.tid()
    s = sj[b, i, j]
    if j == 0 and i >= wake and i < q.shape[1] - 4 - wake:
        p = wall_pressure(q[b, i + 2, 2], q[b, i + 2, 3])
        flux[b, i, j] = vec4(real(0.0), p * s[0], p * s[1], real(0.0))
    else:
        left = towards(q[b, i + 2, j], q[b, i + 2, j + 1], q[b, i + 2, j + 2])
        right = towards(q[b, i + 2, j + 3], q[b, i + 2, j + 2], q[b, i + 2, j + 1])
        flux[b, i, j] = hllc(left, right, s)


@wp.func
def wall_pressure(first: vec4, second: vec4):
    """Pressure at the section, extrapolated from the two cells over it."""
    p = real(1.5) * first[3] - HALF * second[3]
    if p <= real(0.0):
        p = first[3]
    return p


@wp.kernel
def balance(
    q: wp.array3d[vec4],
    si: wp.array3d[vec2],
    sj: wp.array3d[vec2],
    fi: wp.array3d[vec4],
    fj: wp.array3d[vec4],
    per_cfl: wp.array1d[real],
    rhs: wp.array3d[vec4],
    diag: wp.array3d[real],
):
    """What flows into a cell, and the diagonal of the implicit operator."""
    b, i, j = wp.tid()
    rhs[b, i, j] = fi[b, i, j] - fi[b, i + 1, j] + fj[b, i, j] - fj[b, i, j + 1]
    cell = q[b, i + 2, j + 2]
    along = HALF * (si[b, i, j] + si[b, i + 1, j])
    outwards = HALF * (sj[b, i, j] + sj[b, i, j + 1])
    radius = spectral_radius(cell, along) + spectral_radius(cell, outwards)
    diag[b, i, j] = radius * (ONE + per_cfl[0])


@wp.func
def coupling(q: vec4, dw: vec4, s: vec2):
    """½ (A(S) + ρ(A)) ΔW of a neighbour, whose face's normal S points into the cell."""
    un = q[1] * s[0] + q[2] * s[1]
    kin = HALF * (q[1] * q[1] + q[2] * q[2])
    h = G * q[3] / (G1 * q[0]) + kin
    dm = dw[1] * s[0] + dw[2] * s[1]
    dp = G1 * (kin * dw[0] - q[1] * dw[1] - q[2] * dw[2] + dw[3])
    dv = dm - un * dw[0]
    df = vec4(
        dm,
        un * dw[1] + q[1] * dv + s[0] * dp,
        un * dw[2] + q[2] * dv + s[1] * dp,
        un * (dw[3] + dp) + h * dv,
    )
    return HALF * (df + spectral_radius(q, s) * dw)


@wp.func
def mirrored(a: vec4, s: vec2):
    """State or change of state on the other side of a wall."""
    across = real(2.0) * (a[1] * s[0] + a[2] * s[1]) / wp.dot(s, s)
    return vec4(a[0], a[1] - across * s[0], a[2] - across * s[1], a[3])


@wp.kernel
def sweep(
    q: wp.array3d[vec4],
    si: wp.array3d[vec2],
    sj: wp.array3d[vec2],
    rhs: wp.array3d[vec4],
    diag: wp.array3d[real],
    wake: int,
    line: int,
    dw: wp.array3d[vec4],
):
    """Gauss-Seidel on one diagonal i + j = line, whose cells do not depend on each other."""
    b, j = wp.tid()
    i = line - j
    ni = diag.shape[1]
    nj = diag.shape[2]
    if i < 0 or i >= ni:
        return
    total = rhs[b, i, j]
    if i > 0:
        total += coupling(q[b, i + 1, j + 2], dw[b, i - 1, j], si[b, i, j])
    if i < ni - 1:
        total += coupling(q[b, i + 3, j + 2], dw[b, i + 1, j], -si[b, i + 1, j])
    if j > 0:
        total += coupling(q[b, i + 2, j + 1], dw[b, i, j - 1], sj[b, i, j])
    elif i < wake or i >= ni - wake:
        total += coupling(q[b, i + 2, 1], dw[b, ni - 1 - i, 0], sj[b, i, 0])
    else:
        s = sj[b, i, 0]
        total += coupling(mirrored(q[b, i + 2, 2], s), mirrored(dw[b, i, 0], s), s)
    if j < nj - 1:
        total += coupling(q[b, i + 2, j + 3], dw[b, i, j + 1], -sj[b, i, j + 1])
    dw[b, i, j] = total / diag[b, i, j]


@wp.kernel
def update(q: wp.array3d[vec4], dw: wp.array3d[vec4], active: wp.array1d[wp.int32]):
    """Add the change of the conserved variables, as far as density and pressure allow."""
    b, i, j = wp.tid()
    if active[b] == 0:
        return
    cell = q[b, i + 2, j + 2]
    d = dw[b, i, j]
    kin = HALF * (cell[1] * cell[1] + cell[2] * cell[2])
    dp = G1 * (kin * d[0] - cell[1] * d[1] - cell[2] * d[2] + d[3])
    part = wp.max(wp.abs(d[0]) / cell[0], wp.abs(dp) / cell[3])
    d *= ONE / wp.max(ONE, real(4.0) * part)
    rho = cell[0] + d[0]
    u = (cell[0] * cell[1] + d[1]) / rho
    v = (cell[0] * cell[2] + d[2]) / rho
    e = energy(cell) + d[3]
    p = G1 * (e - HALF * rho * (u * u + v * v))
    q[b, i + 2, j + 2] = vec4(rho, u, v, wp.max(p, real(0.1) * cell[3]))
