# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

import json
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from examples.airfoil import generate as command_line
from examples.airfoil.euler import GAMMA
from examples.airfoil.mesh import c_mesh
from physicsnemo_cano.datapipes.generation import sample_rng
from tests.examples.generator_checks import (
    check_finished_data_is_never_overwritten,
    check_it_runs_as_a_script,
    stop_while_saving,
)

SMALL = ["--n-samples", "2", "--shape", "57", "13", "--workers", "1", "--seed", "3"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("airfoil")
    command_line.main([*SMALL, "--out", str(folder)])
    return folder


def test_the_published_layout_is_written(folder):
    x, y, q = (np.load(folder / f"NACA_Cylinder_{name}.npy") for name in "XYQ")
    assert x.shape == y.shape == (2, 57, 13)
    assert q.shape == (2, 5, 57, 13)
    assert x.dtype == y.dtype == q.dtype == np.float32
    rho, u, v, p, mach = np.moveaxis(q, 1, 0)
    np.testing.assert_allclose(mach, np.hypot(u, v) / np.sqrt(GAMMA * p / rho), rtol=1e-5)
    np.testing.assert_allclose(mach[:, :, -1], 0.8, atol=0.02)
    # The first index runs from the wake's upper side around the nose to its lower side.
    assert np.all(y[:, 15, 0] > y[:, -16, 0])
    assert np.all(y[:, 0, 1:] > y[:, -1, 1:])


def test_a_sample_is_its_own_draw_from_the_design_space(folder):
    x, y = (np.load(folder / f"NACA_Cylinder_{name}.npy") for name in "XY")
    control = np.load(folder / "NACA_Cylinder_control.npy")
    for k in range(2):
        drawn = sample_rng(3, k).uniform(-0.05, 0.05, 8)
        np.testing.assert_array_equal(control[k], drawn)
        mesh_x, mesh_y = c_mesh(drawn, (57, 13))
        np.testing.assert_array_equal(x[k], mesh_x[::-1].astype(np.float32))
        np.testing.assert_array_equal(y[k], mesh_y[::-1].astype(np.float32))


def test_provenance_names_the_command_but_no_path(folder):
    provenance = json.loads((folder / "provenance.json").read_text())
    assert provenance["command"] == (
        "python examples/airfoil/generate.py --n-samples 2 --out DIR --seed 3 --shape 57 13"
    )
    assert provenance["mach"] == 0.8
    assert provenance["redrawn"] == "none"
    assert str(folder) not in json.dumps(provenance)


def test_finished_data_is_never_overwritten(folder, capsys):
    check_finished_data_is_never_overwritten(command_line, SMALL, folder, capsys)


def test_a_run_stopped_while_it_saves_its_data_continues(folder, tmp_path, monkeypatch):
    stop_while_saving(command_line, SMALL, tmp_path, "NACA_Cylinder_Q.npy", monkeypatch)
    assert (tmp_path / "NACA_Cylinder_X.npy").exists()
    command_line.main([*SMALL, "--out", str(tmp_path)])
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {path.name for path in folder.iterdir()}
    for name in names:
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_mini_set_holds_every_second_node_of_the_same_samples(folder, tmp_path, capsys):
    mini = tmp_path / "mini.h5"
    command_line.main([*SMALL, "--out", str(tmp_path), "--mini", str(mini)])
    assert "2 samples of 57 x 13 nodes, seed 3" in capsys.readouterr().out
    full = [np.load(folder / f"NACA_Cylinder_{name}.npy") for name in "XYQ"]
    with h5py.File(mini) as file:
        assert set(file) == {"x", "y", "mach"}
        for name, array in {"x": full[0], "y": full[1], "mach": full[2][:, 4]}.items():
            assert file[name].dtype == np.float32
            np.testing.assert_array_equal(file[name][:], array[:, ::2, ::2])
        assert file.attrs["seed"] == 3
        assert str(tmp_path) not in str(dict(file.attrs))


def test_it_runs_as_a_script(tmp_path):
    check_it_runs_as_a_script(command_line, "--n-samples", tmp_path)


def test_a_flow_that_does_not_converge_is_drawn_anew(monkeypatch):
    calls = []

    def solve_but_the_first(x, y, **options):
        flow = real(x, y, **options)
        calls.append(len(x))
        return replace(flow, converged=flow.converged & (np.arange(len(x)) + len(calls) > 1))

    real = command_line.solve
    monkeypatch.setattr(command_line, "solve", solve_but_the_first)
    arrays = command_line.draw_and_solve([sample_rng(0, 0), sample_rng(0, 1)], shape=(57, 13))
    assert calls == [2, 1]
    np.testing.assert_array_equal(arrays["draws"], [2, 1])
    rng = sample_rng(0, 0)
    rng.uniform(-0.05, 0.05, 8)
    np.testing.assert_array_equal(arrays["control"][0], rng.uniform(-0.05, 0.05, 8))
    assert arrays["q"].shape == (2, 5, 57, 13)


def test_flows_that_never_converge_are_an_error_naming_seed_and_sample(monkeypatch, tmp_path):
    def never(x, y, **options):
        return replace(real(x, y, max_steps=10, **options), converged=np.zeros(len(x), bool))

    real = command_line.solve
    monkeypatch.setattr(command_line, "solve", never)
    with pytest.raises(RuntimeError, match="seed 3, samples 0 to 0: no flow converged in 5"):
        command_line.main([*SMALL, "--out", str(tmp_path)])
    assert not list(tmp_path.glob("*.npy"))


MINI = Path(command_line.__file__).parent / "data" / "naca_mini.h5"


def test_the_mini_set_in_the_repository_is_whole():
    assert MINI.stat().st_size < 4e6
    with h5py.File(MINI) as file:
        arrays = {name: file[name][:] for name in file}
        assert file.attrs["mach"] == 0.8
        assert file.attrs["redrawn"] == "none"
    assert set(arrays) == {"x", "y", "mach"}
    for array in arrays.values():
        assert array.shape == (100, 111, 26)
        assert array.dtype == np.float32
        assert np.isfinite(array).all()
    for k in (0, 99):
        x, _ = c_mesh(sample_rng(0, k).uniform(-0.05, 0.05, 8))
        np.testing.assert_array_equal(arrays["x"][k], x[::-2, ::2].astype(np.float32))
    np.testing.assert_array_less(arrays["mach"], 2)
    np.testing.assert_allclose(arrays["mach"][:, :, -1], 0.8, atol=0.02)
    assert len(np.unique(arrays["mach"].max(axis=(1, 2)))) == 100


@pytest.mark.slow
def test_the_mini_set_is_what_its_command_gives():
    arrays = command_line.draw_and_solve([sample_rng(0, 7)], stride=2)
    with h5py.File(MINI) as file:
        np.testing.assert_allclose(arrays["q"][0, 4], file["mach"][7], atol=1e-4)
