# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

import json

import numpy as np
import pytest

from examples.icp_plasma import generate as command_line
from examples.icp_plasma.solver import draw_conditions, inflow, node_types, reactor, simulate
from physicsnemo_cano.datapipes import ICPPlasma
from physicsnemo_cano.datapipes.generation import sample_rng
from tests.examples.generator_checks import (
    check_finished_data_is_never_overwritten,
    check_it_runs_as_a_script,
    stop_while_saving,
)

EIGHT = ["--n-samples", "8", "--workers", "1", "--seed", "3", "--spacing", "0.2", "--frames", "12"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("icp_plasma")
    command_line.main([*EIGHT, "--out", str(folder)])
    return folder


def test_the_reader_finds_the_solvers_fields(folder):
    mesh = reactor(0.2)
    train, test = ICPPlasma(folder), ICPPlasma(folder, "test")
    n_test = len(test)
    assert (train.source, len(train) + n_test) == ("generated", 8)
    assert n_test == round(8 * 150 / 649)
    conditions = draw_conditions(sample_rng(3, 7))  # of the last
    found = simulate(mesh, inflow(mesh), conditions, frames=12)
    frames = np.stack([found[name] for name in ("ne", "Te", "v", "T")], -1).swapaxes(0, 1)
    sample, _ = test[n_test - 1]
    np.testing.assert_array_equal(test.cells(n_test - 1), mesh.t.T)
    np.testing.assert_allclose(sample["embedding"], mesh.p.T, rtol=1e-6)
    given = frames[:, :5].reshape(mesh.nvertices, 20)
    np.testing.assert_allclose(sample["fx"][:, :20], given, rtol=1e-6, atol=1e-12)
    np.testing.assert_array_equal(sample["fx"][:, 20:25], np.eye(5)[node_types(mesh)])
    drawn = [getattr(conditions, name.name) for name in train.statics[5:]]
    np.testing.assert_allclose(sample["fx"][:, 25:], np.tile(drawn, (mesh.nvertices, 1)), rtol=1e-6)
    expected = frames[:, 5:].reshape(mesh.nvertices, 28)
    np.testing.assert_allclose(sample["target"], expected, rtol=1e-6, atol=1e-12)


def test_provenance_names_the_command_but_no_path(folder):
    provenance = json.loads((folder / "provenance.json").read_text())
    assert provenance["command"] == (
        "python examples/icp_plasma/generate.py --n-samples 8 --out DIR --seed 3 --spacing 0.2 "
        "--frames 12"
    )
    assert str(folder) not in json.dumps(provenance)


def test_finished_data_is_never_overwritten(folder, capsys):
    check_finished_data_is_never_overwritten(command_line, EIGHT, folder, capsys)


def test_a_run_stopped_while_it_saves_its_data_continues(folder, tmp_path, monkeypatch):
    stop_while_saving(command_line, EIGHT, tmp_path, "provenance.json", monkeypatch)
    command_line.main([*EIGHT, "--out", str(tmp_path)])
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {path.name for path in folder.iterdir()}
    for name in names - {"provenance.json"}:
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_it_runs_as_a_script(tmp_path):
    check_it_runs_as_a_script(command_line, "--spacing", tmp_path)
