# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

import json

import numpy as np
import pytest

from examples.irregular_darcy import generate as command_line
from examples.irregular_darcy.solver import Darcy, domain_mesh, outline, permeability_field
from physicsnemo_cano.datapipes import IrregularDarcy
from physicsnemo_cano.datapipes.generation import sample_rng
from tests.examples.generator_checks import (
    check_finished_data_is_never_overwritten,
    check_it_runs_as_a_script,
    stop_while_saving,
)

TWO = ["--n-samples", "2", "--workers", "1", "--seed", "3", "--spacing", "0.15"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("irregular_darcy")
    command_line.main([*TWO, "--out", str(folder)])
    return folder


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


def test_provenance_names_the_command_but_no_path(folder):
    provenance = json.loads((folder / "provenance.json").read_text())
    assert provenance["command"] == (
        "python examples/irregular_darcy/generate.py --n-samples 2 --out DIR --seed 3 "
        "--spacing 0.15"
    )
    assert str(folder) not in json.dumps(provenance)


def test_finished_data_is_never_overwritten(folder, capsys):
    check_finished_data_is_never_overwritten(command_line, TWO, folder, capsys)


def test_a_run_stopped_while_it_saves_its_data_continues(folder, tmp_path, monkeypatch):
    stop_while_saving(command_line, TWO, tmp_path, "provenance.json", monkeypatch)
    command_line.main([*TWO, "--out", str(tmp_path)])
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {path.name for path in folder.iterdir()}
    for name in names:
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_it_runs_as_a_script(tmp_path):
    check_it_runs_as_a_script(command_line, "--spacing", tmp_path)
