# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0


import numpy as np
import pytest

from examples.irregular_darcy.solver import Darcy, domain_mesh, outline, permeability_field
from physicsnemo_cano.datapipes import IrregularDarcy
from physicsnemo_cano.datapipes.generation import sample_rng


@pytest.fixture
def folder(tiny_set):
    return tiny_set("irregular_darcy")


def test_the_reader_finds_the_solvers_fields_on_the_solvers_mesh(folder):
    mesh = domain_mesh(0.15)
    permeability = permeability_field(mesh)(sample_rng(3, 1))
    reader = IrregularDarcy(folder)
    assert (reader.source, len(reader)) == ("generated", 2)
    np.testing.assert_array_equal(reader.cells, mesh.t.T)
    sample, _ = reader[1]
    expected = {"embedding": mesh.p.T, "fx": permeability[:, None]}
    expected["target"] = Darcy(mesh).solve(permeability)[:, None]
    for key, values in expected.items():
        np.testing.assert_allclose(sample[key], values, rtol=1e-6, atol=1e-9)


def test_weights_sum_to_the_area_of_the_polygon(folder):
    sample, _ = IrregularDarcy(folder, weights=True)[0]
    mesh = domain_mesh(0.15)
    border = mesh.p[:, mesh.boundary_nodes()]
    x, y = border[:, np.argsort(np.arctan2(border[1], border[0]))]
    shoelace = (x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2
    assert sample["weights"].sum().item() == pytest.approx(shoelace, rel=1e-5)
    at = np.arange(10000) / 10000
    smooth = np.pi * np.mean((outline(at) ** 2).sum(1))
    assert shoelace == pytest.approx(smooth, rel=0.02)
