# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
"""The reference solver against manufactured solutions and the balance of mass and energy."""

import functools

import numpy as np
import pytest
import torch
from skfem import MeshTri

from examples.fem.mesh import circle, triangulate
from examples.irregular_darcy.solver import (
    DEVIATION,
    Darcy,
    domain_mesh,
    outline,
    permeability_field,
)
from physicsnemo_cano.datapipes.quadrature import node_weights


@functools.cache
def coarse():
    return domain_mesh(0.1)


def boundary_forces(darcy, mesh, permeability):
    """What flows out at every node of the boundary, and the pressure."""
    pressure = darcy.solve(permeability)
    load = node_weights(torch.from_numpy(mesh.p.T.copy()), cells=torch.from_numpy(mesh.t.T.copy()))
    return load.numpy() - darcy.stiffness(permeability) @ pressure, pressure, load.numpy()


def test_a_manufactured_solution_converges_at_second_order():
    def source(x):
        x, y = x
        sines = np.sin(np.pi * x) * np.sin(np.pi * y)
        slope = np.pi * np.cos(np.pi * x) * np.sin(np.pi * y)
        return 2 * np.pi**2 * (1 + x / 2) * sines - 0.5 * slope

    errors = []
    for level in (3, 4, 5):
        mesh = MeshTri().refined(level)
        rng = np.random.default_rng(level)
        inside = mesh.interior_nodes()
        points = mesh.p.copy()
        points[:, inside] += rng.uniform(-0.2, 0.2, (2, len(inside))) / 2**level  # no symmetry
        mesh = MeshTri(points, mesh.t)
        x, y = mesh.p
        found = Darcy(mesh, source).solve(1 + x / 2)
        errors.append(np.sqrt(np.mean((found - np.sin(np.pi * x) * np.sin(np.pi * y)) ** 2)))
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert orders.min() > 1.8
    assert errors[-1] < 5e-3


def test_a_disc_has_a_paraboloid_of_pressure():
    """The outline is a polygon with its corners on the circle, so the error is of second order."""

    def size(points):
        return np.full(len(points), 0.08)

    mesh = triangulate([circle((0, 0), 1.0, size)], size)
    found = Darcy(mesh).solve(np.full(mesh.nvertices, 2.0))
    np.testing.assert_allclose(found, (1 - (mesh.p**2).sum(0)) / 8, atol=0.3 * 0.08**2)


def test_the_boundary_lets_out_what_the_source_brings_and_energy_balances():
    mesh = coarse()
    permeability = permeability_field(mesh)(np.random.default_rng(0))
    darcy = Darcy(mesh)
    out, pressure, load = boundary_forces(darcy, mesh, permeability)
    inside = mesh.interior_nodes()
    np.testing.assert_allclose(out[inside], 0, atol=1e-12)
    assert out.sum() == pytest.approx(load.sum(), rel=1e-12)
    assert pressure @ darcy.stiffness(permeability) @ pressure == pytest.approx(
        load @ pressure, rel=1e-11
    )
    assert pressure[inside].min() > 0
    assert not pressure[mesh.boundary_nodes()].any()


def test_the_pressure_scales_with_the_permeability():
    mesh = coarse()
    permeability = permeability_field(mesh)(np.random.default_rng(1))
    darcy = Darcy(mesh)
    np.testing.assert_allclose(
        darcy.solve(3 * permeability), darcy.solve(permeability) / 3, rtol=1e-10
    )


def test_the_mesh_of_the_published_size_keeps_to_the_outline():
    mesh = domain_mesh()
    assert mesh.nvertices == pytest.approx(2290, rel=0.01)
    border = mesh.p[:, mesh.boundary_nodes()]
    at = np.arctan2(border[1], border[0]) / (2 * np.pi)
    np.testing.assert_allclose(outline(at).T, border, atol=1e-12)


def test_permeabilities_are_log_normal_and_follow_their_seed():
    mesh = coarse()
    draw = permeability_field(mesh)
    first, again = draw(np.random.default_rng(2)), draw(np.random.default_rng(2))
    np.testing.assert_array_equal(first, again)
    rng = np.random.default_rng(3)
    logs = np.log([draw(rng) for _ in range(400)])
    inner = np.linalg.norm(mesh.p, axis=0) < 0.3
    # 400 fields: a standard error of 0.05 deviations for the mean, 0.035 for the deviation.
    assert np.abs(logs[:, inner].mean()) < DEVIATION * 0.2
    assert logs[:, inner].std() == pytest.approx(DEVIATION, rel=0.2)


@pytest.mark.parametrize("wrong", [np.ones(3), np.ones((3, 4))])
def test_a_permeability_of_another_shape_is_refused(wrong):
    with pytest.raises(ValueError, match="expected a positive permeability"):
        Darcy(coarse()).solve(wrong)


def test_a_negative_permeability_is_refused():
    permeability = np.ones(coarse().nvertices)
    permeability[3] = -1
    with pytest.raises(ValueError, match=r"values from -1\.0"):
        Darcy(coarse()).solve(permeability)
