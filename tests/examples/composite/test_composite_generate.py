# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0


import numpy as np
import pytest

from examples.composite.figures import part
from examples.composite.solver import LENGTH, THICKNESS, WIDTH, Plate, plate_mesh, temperature_field
from physicsnemo_cano.datapipes import Composite
from physicsnemo_cano.datapipes.generation import sample_rng


@pytest.fixture
def folder(tiny_set):
    return tiny_set("composite")


def test_the_reader_finds_the_solvers_fields_on_the_solvers_mesh(folder):
    mesh, cells = plate_mesh((4, 3, 2))
    temperature = temperature_field(mesh)(sample_rng(3, 1))
    reader = Composite(folder)
    assert (reader.source, len(reader)) == ("generated", 2)
    np.testing.assert_array_equal(reader.cells, cells)
    sample, _ = reader[1]
    expected = {"embedding": mesh.doflocs.T, "fx": temperature[:, None]}
    displacement = Plate(mesh).solve(temperature)
    expected["target"] = 1e3 * np.sqrt((displacement**2).sum(1, keepdims=True))
    for key, values in expected.items():
        np.testing.assert_allclose(sample[key], values, rtol=1e-5, atol=1e-7)


def test_weights_sum_to_the_volume(folder):
    sample, _ = Composite(folder, weights=True)[0]
    # Of a bent plate as of the flat one; chords along the arc take some of it.
    expected = LENGTH * WIDTH * THICKNESS
    assert sample["weights"].sum().item() == pytest.approx(expected, rel=0.01)


def test_the_figures_mesh_has_the_readers_volume(folder):
    reader = Composite(folder, weights=True)
    mesh = part(reader)
    assert mesh.n_points == len(reader[0][0]["weights"])
    volume = np.abs(mesh.compute_cell_sizes()["Volume"]).sum()
    assert volume == pytest.approx(reader[0][0]["weights"].sum().item(), rel=1e-5)
