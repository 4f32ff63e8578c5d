# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
"""What holds for every reader of the benchmarks, on small sets of their layouts."""

from pathlib import Path

import h5py
import numpy as np
import pytest
import scipy.io
import torch
from skfem import MeshTet, MeshTri

from physicsnemo_cano.datapipes import (
    Airfoil,
    Channel,
    Composite,
    Darcy,
    Elasticity,
    FieldReader,
    IrregularDarcy,
    NavierStokes,
    NavierStokesRollout,
    Pipe,
    PipeTurbulence,
    Plasticity,
)
from physicsnemo_cano.datapipes.matlab import write_matlab
from physicsnemo_cano.datapipes.quadrature import node_weights

RNG = np.random.default_rng(0)


def _npy(folder, names, *shapes):
    arrays = [RNG.uniform(size=shape) for shape in shapes]
    for name, array in zip(names, arrays, strict=True):
        np.save(folder / name, array)
    return arrays


def mesh_set(folder, prefix, channel, channels):
    names = [f"{prefix}_{axis}.npy" for axis in "XYQ"]
    x, y, q = _npy(folder, names, (10, 9, 5), (10, 9, 5), (10, channels, 9, 5))
    points = np.stack([x, y], -1).reshape(10, 45, 2)
    return {"embedding": points, "target": q[:, channel].reshape(10, 45, 1)}


def airfoil(folder):
    return mesh_set(folder, "NACA_Cylinder", 4, 5)


def pipe(folder):
    return mesh_set(folder, "Pipe", 0, 2)


def elasticity(folder):
    names = ("Random_UnitCell_XY_10.npy", "Random_UnitCell_sigma_10.npy")
    xy, sigma = _npy(folder, names, (972, 2, 10), (972, 10))
    return {"embedding": np.moveaxis(xy, -1, 0), "target": sigma.T[..., None]}


def grid(*axes):
    return np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(axes))


def darcy(folder):
    fields = {}
    for split, number in (("train", 1), ("test", 2)):
        n = {"train": 8, "test": 2}[split]
        arrays = {k: RNG.uniform(size=(n, 11, 11)).astype(np.float32) for k in ("coeff", "sol")}
        write_matlab(folder / f"piececonst_r421_N1024_smooth{number}.mat", arrays)
        fields[split] = {k: v[:, ::5, ::5].reshape(n, 9, 1) for k, v in arrays.items()}
    both = {k: np.concatenate([fields[s][k] for s in ("train", "test")]) for k in ("coeff", "sol")}
    x = grid(*[np.linspace(0, 1, 3)] * 2)
    return {"embedding": np.stack([x] * 10), "fx": both["coeff"], "target": both["sol"]}


def navier_stokes(folder):
    u = RNG.normal(size=(10, 8, 8, 20)).astype(np.float32)
    write_matlab(folder / "NavierStokes_V1e-5_N10_T20.mat", {"u": u})
    u, x = u.reshape(10, 64, 20), grid(*[np.arange(8) / 8] * 2)
    return {"embedding": np.stack([x] * 10), "fx": u[..., :10], "target": u[..., 10:]}


def plasticity(folder):
    die = RNG.uniform(size=(10, 6)).astype(np.float32)
    output = RNG.uniform(size=(10, 6, 4, 20, 4)).astype(np.float32)
    write_matlab(folder / "plas_N10_T20.mat", {"input": die, "output": output})
    x = grid(np.linspace(0, 50, 6), np.linspace(0, 15, 4))
    return {
        "embedding": np.stack([x] * 10),
        "fx": np.repeat(die, 4, axis=1)[..., None],
        "times": np.stack([np.arange(1, 21) / 20] * 10),
        "target": output.reshape(10, 24, 80),
    }


def irregular_darcy(folder):
    mesh = MeshTri().refined(1)
    arrays = {k: RNG.uniform(size=(10, 9)).astype(np.float32) for k in ("c_field", "u_field")}
    mesh_arrays = {"MeshNodes": mesh.p, "MeshElements": mesh.t + 1.0}
    write_matlab(folder / "Darcy.mat", arrays | mesh_arrays)
    fields = {"fx": arrays["c_field"][..., None], "target": arrays["u_field"][..., None]}
    return {"embedding": np.stack([mesh.p.T] * 10), **fields}


def pipe_turbulence(folder):
    mesh = MeshTri().refined(1)
    arrays = {k: RNG.uniform(size=(10, 9)).astype(np.float32) for k in ("Input", "Output")}
    mesh_arrays = {"nodes": mesh.p.T, "elements": mesh.t.T + 1.0}
    write_matlab(folder / "Turbulence.mat", arrays | mesh_arrays)
    fields = {"fx": arrays["Input"][..., None], "target": arrays["Output"][..., None]}
    return {"embedding": np.stack([mesh.p.T] * 10), **fields}


def composite(folder):
    mesh = MeshTet().refined(1)
    arrays = {k: RNG.uniform(size=(10, 26)).astype(np.float32) for k in ("T_field", "D_field")}
    write_matlab(folder / "Composites.mat", arrays)
    mesh_arrays = {"Points": mesh.p.T, "Faces": mesh.t.T.astype(float)}
    write_matlab(folder / "Composites_LBO_basis.mat", mesh_arrays)
    fields = {"fx": arrays["T_field"][..., None], "target": arrays["D_field"][..., None]}
    return {"embedding": np.stack([mesh.p.T] * 10), **fields}


READERS = {
    Airfoil: (airfoil, (9, 5)),
    Pipe: (pipe, (9, 5)),
    Elasticity: (elasticity, None),
    Darcy: (darcy, (3, 3)),
    NavierStokes: (navier_stokes, (8, 8)),
    Plasticity: (plasticity, (6, 4)),
    IrregularDarcy: (irregular_darcy, None),
    PipeTurbulence: (pipe_turbulence, None),
    Composite: (composite, None),
}


@pytest.fixture(params=READERS, ids=lambda reader: reader.__name__)
def made(request, tmp_path):
    write, shape = READERS[request.param]
    return request.param, write(tmp_path), shape


@pytest.mark.parametrize("mark", ["provenance.json", "parts"])
def test_samples_are_the_files(mark, made, tmp_path):
    reader, fields, shape = made
    (tmp_path / mark).mkdir()
    train, test = reader(tmp_path, "train"), reader(str(tmp_path), "test")
    assert (len(train), len(test)) == (8, 2)
    assert (train.source, train.spatial_shape) == ("generated", shape)
    for part, index, i in ((train, 0, 0), (train, 7, 7), (test, 0, 8), (test, 1, 9)):
        sample, metadata = part[index]
        assert metadata["index"] == index
        empty = {"fx": fields["embedding"][..., :0]}
        assert set(sample.keys()) == {"fx", *fields}
        for key, values in (empty | fields).items():
            assert sample[key].dtype == torch.float32
            np.testing.assert_allclose(sample[key], values[i].astype(np.float32), rtol=1e-7)
    assert len(train.coordinates) == fields["embedding"].shape[-1]
    assert fields["target"].shape[-1] % len(train.targets) == 0


def test_fewer_samples_leave_the_test_set_where_it_is(made, tmp_path):
    reader, fields, _ = made
    (tmp_path / "provenance.json").touch()
    train, test = (reader(tmp_path, split, n_train=3, n_test=1) for split in ("train", "test"))
    assert (len(train), len(test)) == (3, 1)
    np.testing.assert_allclose(test[0][0]["target"], fields["target"][8].astype(np.float32))
    for options, message in (
        ({"n_train": 9}, r"data\.n_train=9: choose from 1 to 8"),
        ({"n_train": 0}, r"data\.n_train=0: choose from 1 to 8"),
        ({"split": "val"}, "'train' or 'test', got 'val'"),
    ):
        with pytest.raises(ValueError, match=message):
            reader(tmp_path, **options)


def test_without_the_mark_a_small_set_is_not_taken_for_the_published_one(made, tmp_path):
    with pytest.raises(ValueError, match=r"expected"):
        made[0](tmp_path)


def test_nothing_there(made, tmp_path):
    reader = made[0]
    with pytest.raises(FileNotFoundError, match=r"absent.*generate\.py"):
        reader(tmp_path / "absent")
    with pytest.raises(FileNotFoundError, match=r"data\.root is not given.*generate\.py"):
        reader(None)
    (tmp_path / "provenance.json").touch()
    data = sorted(path for path in tmp_path.iterdir() if path.suffix != ".json")
    data[-1].rename(tmp_path / "elsewhere")
    with pytest.raises(FileNotFoundError, match=r"lacks|No .* in "):
        reader(tmp_path)


def test_damaged_files(made, tmp_path):
    reader = made[0]
    (tmp_path / "provenance.json").touch()
    for file in tmp_path.glob("*.[nm][pa][yt]"):
        file.write_text("x, y")
    with pytest.raises(ValueError, match=r"is no (whole \.npy|MATLAB) file"):
        reader(tmp_path)


@pytest.mark.parametrize("reader", [Airfoil, Pipe, Plasticity, Darcy])
def test_weights_are_the_areas(reader, tmp_path):
    fields = READERS[reader][0](tmp_path)
    (tmp_path / "provenance.json").touch()
    sample, _ = reader(tmp_path, weights=True)[3]
    points = torch.from_numpy(fields["embedding"][3]).float().unflatten(0, READERS[reader][1])
    expected = node_weights(points, structured=True).flatten()
    torch.testing.assert_close(sample["weights"], expected)


@pytest.mark.parametrize("reader", [IrregularDarcy, PipeTurbulence, Composite])
def test_weights_on_cells_integrate_linear_functions_over_the_unit_square_or_cube(reader, tmp_path):
    points = READERS[reader][0](tmp_path)["embedding"][0]
    (tmp_path / "provenance.json").touch()
    weights = reader(tmp_path, weights=True)[3][0]["weights"].numpy()
    assert weights.min() > 0
    assert weights.sum() == pytest.approx(1, rel=1e-6)
    np.testing.assert_allclose(weights @ points, 0.5, rtol=1e-6)


def test_a_cloud_has_no_weights_of_itself(tmp_path):
    elasticity(tmp_path)
    (tmp_path / "provenance.json").touch()
    with pytest.raises(ValueError, match=r"cloud.*data\.weights=false"):
        Elasticity(tmp_path, weights=True)[0]


@pytest.mark.parametrize("reader", [Airfoil, Pipe])
def test_coordinates_as_input(reader, tmp_path):
    READERS[reader][0](tmp_path)
    (tmp_path / "provenance.json").touch()
    sample, _ = reader(tmp_path, coordinates_as_input=True)[1]
    assert torch.equal(sample["fx"], sample["embedding"])


# Names, and shapes in which a published set has n samples, the test samples' indices.
PUBLISHED = {
    Airfoil: ("NACA_Cylinder_{}.npy", {"X": (221, 51), "Y": (221, 51), "Q": (5, 221, 51)}),
    Pipe: ("Pipe_{}.npy", {"X": (129, 129), "Y": (129, 129), "Q": (3, 129, 129)}),
}


@pytest.mark.parametrize("reader", PUBLISHED)
def test_published_files_are_told_by_their_shapes(reader, tmp_path):
    pattern, shapes = PUBLISHED[reader]

    def write(name, shape):
        np.lib.format.open_memmap(tmp_path / pattern.format(name), "w+", np.float64, shape)

    for name, shape in shapes.items():
        write(name, (1210, *shape))
    q = np.load(tmp_path / pattern.format("Q"), mmap_mode="r+")
    q[1001] = 7.0
    q.flush()
    test = reader(tmp_path, "test")
    assert (len(reader(tmp_path)), len(test), test.source) == (1000, 200, "published")
    assert test.spatial_shape == shapes["X"]
    assert (test[1][0]["target"] == 7).all()
    assert not test[0][0]["target"].any()
    for name, shape in (("X", (1210, 51, 9)), ("Y", (1209, *shapes["Y"])), ("Q", (1210, 3, 4))):
        write(name, shape)
        with pytest.raises(ValueError, match=rf"{name}\.npy \({shape[0]}, {shape[1]}.*expected"):
            reader(tmp_path)
        write(name, (1210, *shapes[name]))
    for name, shape in shapes.items():
        write(name, (2, *shape))
    with pytest.raises(ValueError, match="holds 2 samples, expected at least 1200"):
        reader(tmp_path)


def test_published_elasticity_is_tested_on_the_last_samples(tmp_path):
    names = ("Random_UnitCell_XY_10.npy", "Random_UnitCell_sigma_10.npy")
    for name, shape in zip(names, ((972, 2, 2000), (972, 2000)), strict=True):
        np.lib.format.open_memmap(tmp_path / name, "w+", np.float32, shape)
    sigma = np.load(tmp_path / names[1], mmap_mode="r+")
    sigma[:, 1800] = 5.0
    sigma.flush()
    test = Elasticity(tmp_path, "test")
    assert (len(Elasticity(tmp_path)), len(test), test.source) == (1000, 200, "published")
    assert (test[0][0]["target"] == 5).all()
    assert str(test.targets[0]) == "stress [Pa]"


def test_the_embedded_airfoils():
    file = Path(__file__).parents[2] / "examples" / "airfoil" / "data" / "naca_mini.h5"
    with Airfoil(file) as train, Airfoil(file, "test") as test:
        assert (len(train), len(test), train.spatial_shape) == (80, 20, (111, 26))
        sample, _ = test[19]
    assert 1.1 < sample["target"].max() < 2.0  # supersonic pockets
    assert sample["embedding"].abs().max() > 20  # the far field, in chords


def test_an_hdf5_file_of_another_layout(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"], file["y"] = np.zeros((2, 10, 4, 3))
    with pytest.raises(ValueError, match=r"a\.h5 holds x \(10, 4, 3\).*expected x \(n, i, j\)"):
        Airfoil(tmp_path / "a.h5")
    (tmp_path / "text.h5").write_text("x, y, mach")
    with pytest.raises(ValueError, match=r"text\.h5 is no HDF5 file"):
        Airfoil(tmp_path / "text.h5")


def test_files_before_version_73_load_too_and_strides_divide(tmp_path):
    u = np.random.default_rng(1).normal(size=(5, 8, 8, 20))  # of float64
    scipy.io.savemat(tmp_path / "NavierStokes_V1e-5_N5_T20.mat", {"u": u})
    (tmp_path / "parts").mkdir()
    test = NavierStokes(tmp_path, "test", stride=2)
    sample, _ = test[0]
    assert test.spatial_shape == (4, 4)
    found = sample["target"].reshape(4, 4, 10).numpy()
    np.testing.assert_array_equal(found, u[4, ::2, ::2, 10:].astype(np.float32))
    assert sample["embedding"].reshape(4, 4, 2)[1, 3].tolist() == [0.25, 0.75]
    with pytest.raises(ValueError, match=r"data\.stride=3: .* 8 points an axis, choose a divisor"):
        NavierStokes(tmp_path, stride=3)
    write_matlab(tmp_path / "NavierStokes_V1e-5_N20_T20.mat", {"u": u.astype(np.float32)})
    with pytest.raises(ValueError, match=r"N20_T20\.mat, NavierStokes_V1e-5_N5_T20\.mat: keep one"):
        NavierStokes(tmp_path)


def test_rollouts_are_of_the_same_file(tmp_path):
    fields = navier_stokes(tmp_path)
    (tmp_path / "parts").mkdir()
    u = np.concatenate([fields["fx"], fields["target"]], -1).reshape(10, 8, 8, 20)
    train = NavierStokesRollout(tmp_path, stride=2, windows=3)
    test = NavierStokesRollout(tmp_path, "test", stride=2)
    assert (len(train), len(test), train.source) == (24, 2, "generated")
    assert train.spatial_shape == test.spatial_shape == (4, 4)
    same = NavierStokes(tmp_path, "test", stride=2)
    for index in (0, 1):
        sample, _ = test[index]
        flow = u[8 + index, ::2, ::2].reshape(16, 20)
        np.testing.assert_array_equal(sample["fx"], flow[:, :5])
        np.testing.assert_array_equal(sample["target"], flow[:, 5:])
        assert torch.equal(sample["embedding"], same[index][0]["embedding"])
    starts = set()
    for epoch in range(20):
        train.set_epoch(epoch)
        for index in range(24):
            sample, _ = train[index]
            window = torch.cat([sample["fx"], sample["target"]], 1)
            flow = u[index // 3, ::2, ::2].reshape(16, 20)
            (first,) = np.flatnonzero(flow[0, :11] == window[0, 0].item())
            np.testing.assert_array_equal(window, flow[:, first : first + 10])
            starts.add(int(first))
    assert starts == set(range(11))


def test_what_is_no_array_of_real_numbers_is_refused(tmp_path):
    elasticity(tmp_path)
    (tmp_path / "provenance.json").touch()
    sigma = tmp_path / "Random_UnitCell_sigma_10.npy"
    np.savez(tmp_path / "archive.npz", stress=np.zeros((972, 10)))
    (tmp_path / "archive.npz").rename(sigma)
    with pytest.raises(ValueError, match=r"\.npz archive of \['stress'\] under the name of an"):
        Elasticity(tmp_path)
    for kind, message in ((int, "int64"), (complex, "complex128")):
        np.save(sigma, np.zeros((972, 10), kind))
        with pytest.raises(ValueError, match=f"holds {message}, expected float32 or float64"):
            Elasticity(tmp_path)


def test_complex_numbers_of_version_73_are_refused(tmp_path):
    with h5py.File(tmp_path / "NavierStokes_V1e-5_N4_T20.mat", "w") as file:
        kind = np.dtype([("real", np.float64), ("imag", np.float64)])
        file["u"] = np.zeros((20, 8, 8, 4), kind)
    (tmp_path / "provenance.json").touch()
    with pytest.raises(ValueError, match=r"N4_T20\.mat: u holds complex numbers, expected float32"):
        NavierStokes(tmp_path)


class Own(FieldReader):
    """A reader of whatever a test gives it."""

    coordinates = (Channel("x", "m"),)
    targets = (Channel("T", "K"), Channel("p", "Pa"))
    sample = None

    def open(self):
        return 5

    def load(self, index):
        return self.sample


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"embedding": np.zeros((4, 2))}, "2 coordinates, the reader names 1"),
        ({"target": np.zeros((4, 3))}, "3 target channels, the reader names 2"),
        ({"target": np.zeros((3, 2))}, "4 points and a target on 3"),
        ({"target": np.zeros(4)}, r"\(4,\) as target, expected points x channels"),
        ({"fx": np.zeros((2, 1))}, r"fx of shape \(2, 1\), expected \(4 or 1, C\)"),
        ({"mask": np.ones(4)}, "a mask that is not bool"),
        ({"mask": np.ones(3, bool)}, r"mask of shape \(3,\), expected \(4,\)"),
        ({"target": np.zeros((4, 2), complex)}, "complex target"),
        ({"target": np.full((4, 2), "a")}, "<U1 as target, expected numbers"),
    ],
)
def test_a_sample_that_is_not_what_its_reader_says(changed, message, tmp_path):
    reader = Own(tmp_path, "test")
    reader.sample = {"embedding": np.zeros((4, 1)), "target": np.zeros((4, 2))}
    assert reader[0][0]["fx"].shape == (4, 0)
    reader.sample |= changed
    with pytest.raises(ValueError, match=rf"sample 0 of the test set.*{message}"):
        reader[0]


def test_coordinates_far_from_zero_keep_float64(tmp_path):
    reader = Own(tmp_path)
    for offset, dtype in ((0.0, torch.float32), (5e6, torch.float64)):
        x = offset + np.linspace(-10, 10, 4)[:, None]
        reader.sample = {"embedding": x, "target": np.ones((4, 2)) * 1e5 + np.arange(2)}
        sample, _ = reader[0]
        assert (sample["embedding"].dtype, sample["target"].dtype) == (dtype, torch.float32)
        spread = (sample["embedding"] - sample["embedding"].mean()).numpy()
        np.testing.assert_allclose(spread, x - x.mean(), rtol=1e-6)
