# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from examples.airfoil import euler
from examples.airfoil.generate import AirfoilSet
from examples.airfoil.mesh import c_mesh
from physicsnemo_cano.datapipes.generation import sample_rng


@pytest.fixture
def folder(tiny_set):
    return tiny_set("airfoil")


def test_the_published_layout_is_written(folder):
    x, y, q = (np.load(folder / f"NACA_Cylinder_{name}.npy") for name in "XYQ")
    assert x.shape == y.shape == (2, 57, 13)
    assert q.shape == (2, 5, 57, 13)
    assert x.dtype == y.dtype == q.dtype == np.float32
    rho, u, v, p, mach = np.moveaxis(q, 1, 0)
    np.testing.assert_allclose(mach, np.hypot(u, v) / np.sqrt(euler.GAMMA * p / rho), rtol=1e-5)
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


def test_mini_set_holds_every_second_node_of_the_same_samples(folder, tmp_path, capsys):
    mini = tmp_path / "mini.h5"
    AirfoilSet(n_samples=2, shape=(57, 13), mini=mini).make(tmp_path, seed=3)
    assert "--seed 3 --shape 57 13 --mini mini.h5\n2 samples" in capsys.readouterr().out
    full = [np.load(folder / f"NACA_Cylinder_{name}.npy") for name in "XYQ"]
    with h5py.File(mini) as file:
        assert set(file) == {"x", "y", "mach"}
        for name, array in {"x": full[0], "y": full[1], "mach": full[2][:, 4]}.items():
            assert file[name].dtype == np.float32
            np.testing.assert_array_equal(file[name][:], array[:, ::2, ::2])
        assert file.attrs["seed"] == 3
        assert str(tmp_path) not in str(dict(file.attrs))


def test_a_flow_that_does_not_converge_is_drawn_anew(monkeypatch):
    calls = []

    def solve_but_the_first(x, y, **options):
        flow = real(x, y, **options)
        calls.append(len(x))
        return replace(flow, converged=flow.converged & (np.arange(len(x)) + len(calls) > 1))

    real = euler.solve
    monkeypatch.setattr(euler, "solve", solve_but_the_first)
    arrays = AirfoilSet(shape=(57, 13)).sample([sample_rng(0, 0), sample_rng(0, 1)])
    assert calls == [2, 1]
    np.testing.assert_array_equal(arrays["draws"], [2, 1])
    rng = sample_rng(0, 0)
    rng.uniform(-0.05, 0.05, 8)
    np.testing.assert_array_equal(arrays["control"][0], rng.uniform(-0.05, 0.05, 8))
    assert arrays["q"].shape == (2, 5, 57, 13)


def test_flows_that_never_converge_are_an_error_naming_seed_and_sample(monkeypatch, tmp_path):
    def never(x, y, **options):
        return replace(real(x, y, max_steps=10, **options), converged=np.zeros(len(x), bool))

    real = euler.solve
    monkeypatch.setattr(euler, "solve", never)
    with pytest.raises(RuntimeError, match="seed 3, samples 0 to 0: no draw of 5 converged"):
        AirfoilSet(n_samples=2, shape=(57, 13)).make(tmp_path, seed=3)
    assert not list(tmp_path.glob("*.npy"))


MINI = Path(euler.__file__).parent / "data" / "naca_mini.h5"


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
    arrays = AirfoilSet(mini=MINI).sample([sample_rng(0, 7)])
    with h5py.File(MINI) as file:
        np.testing.assert_allclose(arrays["q"][0, 4], file["mach"][7], atol=1e-4)
