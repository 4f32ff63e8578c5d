# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

import json

import numpy as np
import pytest

from examples.composite import generate as command_line
from examples.composite.figures import part
from examples.composite.solver import LENGTH, THICKNESS, WIDTH, Plate, plate_mesh, temperature_field
from physicsnemo_cano.datapipes import Composite
from physicsnemo_cano.datapipes.generation import sample_rng
from tests.examples.generator_checks import (
    check_finished_data_is_never_overwritten,
    check_it_runs_as_a_script,
    stop_while_saving,
)

TWO = ["--n-samples", "2", "--workers", "1", "--seed", "3", "--shape", "4", "3", "2"]
FILES = ("Composites.mat", "Composites_LBO_basis.mat")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("composite")
    command_line.main([*TWO, "--out", str(folder)])
    return folder


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


def test_provenance_names_the_command_but_no_path(folder):
    provenance = json.loads((folder / "provenance.json").read_text())
    assert provenance["command"] == (
        "python examples/composite/generate.py --n-samples 2 --out DIR --seed 3 --shape 4 3 2"
    )
    assert str(folder) not in json.dumps(provenance)


def test_finished_data_is_never_overwritten(folder, capsys):
    check_finished_data_is_never_overwritten(command_line, TWO, folder, capsys)


@pytest.mark.parametrize("name", [FILES[1], "provenance.json"])
def test_a_run_stopped_while_it_saves_its_data_continues(name, folder, tmp_path, monkeypatch):
    stop_while_saving(command_line, TWO, tmp_path, name, monkeypatch)
    command_line.main([*TWO, "--out", str(tmp_path)])
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {path.name for path in folder.iterdir()} >= set(FILES)
    for name in names:
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_it_runs_as_a_script(tmp_path):
    check_it_runs_as_a_script(command_line, "--shape", tmp_path)
