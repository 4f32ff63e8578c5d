# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""For each reader a small set in the layout it reads, and the shapes of the published files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import h5py
import numpy as np
import scipy.io
import torch
from skfem import MeshTet, MeshTri

from physicsnemo_cano import datapipes

RNG = np.random.default_rng(0)
TRIANGLES, TETRAHEDRA = MeshTri().refined(1), MeshTet().refined(1)
ELASTIC_NODES = 1346


@dataclass
class Small:
    """A set, with what its reader has to say of it.

    ``files`` are arrays by their names (of a ``.npy`` file "") or text. ``fields`` are those of
    all samples, first of those for training; trajectories have ``frames`` (T, N, C) and
    ``statics``. ``unmarked`` is the source that the reader names if no generator has left its
    mark, ``None`` if it refuses the small set then.
    """

    reader: type[datapipes.FieldReader]
    files: dict[str, str | dict[str, np.ndarray]]
    fields: Mapping[str, Sequence[np.ndarray]]
    shape: tuple[int, ...] | None = None
    cells: Sequence[np.ndarray] | None = None  # of each sample
    split: tuple[int, int] = (8, 2)
    least: int = 2  # samples
    root: str = ""
    marked: str = "generated"
    unmarked: str | None = None
    options: dict = field(default_factory=dict)

    def write(self, folder: Path, old: bool = False) -> "Small":
        for name, content in self.files.items():
            write(folder / name, content, old)
        return self

    def open(self, folder: str | Path, split="train", **options) -> datapipes.FieldReader:
        root = type(folder)(Path(folder) / self.root)
        return self.reader(root, split, **{**self.options, **options})


def write(file: Path, content: str | Mapping[str, np.ndarray], old: bool = False) -> None:
    """Write arrays as the file's ending says; MATLAB files up to version 7 if ``old``."""
    if isinstance(content, str):
        file.write_text(content)
    elif file.suffix == ".npy":
        np.save(file, content[""])
    elif file.suffix == ".pt":
        torch.save({name: torch.from_numpy(array) for name, array in content.items()}, file)
    elif old:
        scipy.io.savemat(file, content)
    else:
        with h5py.File(file, "w") as stream:
            for name, array in content.items():
                if np.iscomplexobj(array):  # as MATLAB has them
                    parts = np.dtype([("real", np.float64), ("imag", np.float64)])
                    array = np.ascontiguousarray(array, complex).view(parts)
                stream[name] = array.T if file.suffix == ".mat" else array


def uniform(*shape: int) -> np.ndarray:
    return RNG.uniform(0.1, 1, size=shape)


def grid(*axes: np.ndarray) -> np.ndarray:
    return np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(axes))


def on_meshes(reader, names, channel, channels, n) -> Small:
    x, y, q = uniform(n, 9, 5), uniform(n, 9, 5), uniform(n, channels, 9, 5)
    files = {name: {"": array} for name, array in zip(names, (x, y, q), strict=True)}
    points = np.stack([x, y], -1).reshape(n, 45, 2)
    target = q[:, channel].reshape(n, 45, 1)
    return Small(reader, files, {"embedding": points, "target": target}, (9, 5))


def airfoil(n=10):
    names = [f"NACA_Cylinder_{axis}.npy" for axis in "XYQ"]
    return on_meshes(datapipes.Airfoil, names, 4, 5, n)


def airfoil_in_one_file(n=10):
    small = airfoil(n)
    x, y, q = (arrays[""] for arrays in small.files.values())
    small.files, small.root = {"a.h5": {"x": x, "y": y, "mach": q[:, 4]}}, "a.h5"
    small.unmarked = "generated"
    return small


def pipe(n=10):
    return on_meshes(datapipes.Pipe, [f"Pipe_{axis}.npy" for axis in "XYQ"], 0, 2, n)


def elasticity(n=10):
    xy, sigma = uniform(972, 2, n), uniform(972, n)
    names = "Random_UnitCell_XY_10.npy", "Random_UnitCell_sigma_10.npy"
    files = {name: {"": array} for name, array in zip(names, (xy, sigma), strict=True)}
    fields = {"embedding": np.moveaxis(xy, -1, 0), "target": sigma.T[..., None]}
    return Small(datapipes.Elasticity, files, fields)


def darcy(n=10):
    a, u = uniform(n, 11, 11), uniform(n, 11, 11)
    first = round(0.8 * n)
    parts = slice(first), slice(first, None)
    files = {
        f"piececonst_r421_N1024_smooth{k}.mat": {"coeff": a[part], "sol": u[part]}
        for k, part in zip((1, 2), parts, strict=True)
    }
    fx, target = (array[:, ::5, ::5].reshape(n, 9, 1) for array in (a, u))
    x = np.stack([grid(*[np.linspace(0, 1, 3)] * 2)] * n) if n else []
    fields = {"embedding": x, "fx": fx, "target": target}
    return Small(datapipes.Darcy, files, fields, (3, 3), least=1)


def darcy_of_tensors(n=10):
    a, u = uniform(n, 8, 8) > 0.5, uniform(n, 8, 8)
    first = round(0.8 * n)
    parts = slice(first), slice(first, None)
    files = {
        f"darcy_{name}_8.pt": {"x": a[part], "y": u[part]}
        for name, part in zip(("train", "test"), parts, strict=True)
    }
    x = np.stack([grid(*[np.arange(8) / 8] * 2)] * n) if n else []
    fields = {"embedding": x, "fx": a.reshape(n, 64, 1), "target": u.reshape(n, 64, 1)}
    return Small(datapipes.Darcy, files, fields, (8, 8), least=1, unmarked="published")


def navier_stokes(n=10):
    u = RNG.normal(size=(n, 8, 8, 20))
    series, x = u.reshape(n, 64, 20), grid(*[np.arange(8) / 8] * 2)
    fields = {"embedding": np.stack([x] * n), "fx": series[..., :10], "target": series[..., 10:]}
    files = {f"NavierStokes_V1e-5_N{n}_T20.mat": {"u": u}}
    return Small(datapipes.NavierStokes, files, fields, (8, 8))


def navier_stokes_rollout(n=10):
    small = navier_stokes(n)
    (arrays,) = small.files.values()
    frames = arrays["u"][:, ::2, ::2].reshape(n, 16, 20, 1).swapaxes(1, 2)
    fields = {"embedding": np.stack([grid(*[np.arange(4) / 4] * 2)] * n), "frames": frames}
    rollout = datapipes.NavierStokesRollout
    return Small(rollout, small.files, fields, (4, 4), options={"stride": 2})


def plasticity(n=10):
    die, output = uniform(n, 6), uniform(n, 6, 4, 20, 4)
    x = grid(np.linspace(0, 50, 6), np.linspace(0, 15, 4))
    fields = {
        "embedding": np.stack([x] * n),
        "fx": np.repeat(die, 4, axis=1)[..., None],
        "times": np.stack([np.arange(1, 21) / 20] * n),
        "target": output.reshape(n, 24, 80),
    }
    files = {f"plas_N{n}_T20.mat": {"input": die, "output": output}}
    return Small(datapipes.Plasticity, files, fields, (6, 4))


def on_one_mesh(reader, mesh, names, n, own, files) -> Small:
    """Of NORM: ``own`` is the file of the fields, ``files`` hold the mesh."""
    arrays = {name: uniform(n, mesh.p.shape[1]) for name in names}
    files = files | {own: arrays | files.get(own, {})}
    fx, target = (array[..., None] for array in arrays.values())
    fields = {"embedding": np.stack([mesh.p.T] * n), "fx": fx, "target": target}
    return Small(reader, files, fields, cells=[mesh.t.T] * n)


def irregular_darcy(n=10):
    mesh = {"MeshNodes": TRIANGLES.p, "MeshElements": TRIANGLES.t + 1.0}
    reader, names = datapipes.IrregularDarcy, ("c_field", "u_field")
    return on_one_mesh(reader, TRIANGLES, names, n, "Darcy.mat", {"Darcy.mat": mesh})


def pipe_turbulence(n=10):
    mesh = {"nodes": TRIANGLES.p.T, "elements": TRIANGLES.t.T + 1.0}
    reader, names = datapipes.PipeTurbulence, ("Input", "Output")
    return on_one_mesh(reader, TRIANGLES, names, n, "Turbulence.mat", {"Turbulence.mat": mesh})


def composite(n=10):
    mesh = {"Points": TETRAHEDRA.p.T, "Faces": TETRAHEDRA.t.T.astype(float)}
    reader, names, files = datapipes.Composite, ("T_field", "D_field"), "Composites_LBO_basis.mat"
    return on_one_mesh(reader, TETRAHEDRA, names, n, "Composites.mat", {files: mesh})


def elastic_block(n=108):
    parameters, points = uniform(n, 11), uniform(ELASTIC_NODES, 2)
    displacement = uniform(n, 2, ELASTIC_NODES)
    triangles = RNG.permuted(np.tile(np.arange(ELASTIC_NODES), (40, 1)), axis=1)[:, :3]
    files = {"params": parameters, "snapshots": displacement.reshape(n, -1), "coords": points.T}
    inputs = np.concatenate([np.log(parameters[:, :8]), parameters[:, 8:]], 1)
    return Small(
        datapipes.ElasticBlock,
        {f"{name}.npy": {"": array} for name, array in (files | {"triangles": triangles}).items()},
        {
            "embedding": np.stack([points] * n),
            "fx": inputs[:, None],
            "target": displacement.swapaxes(1, 2),
        },
        cells=[triangles] * n,
        split=(8, 100),
        least=101,
        marked="published",
        unmarked="published",
    )


def unsteady_heat(n=10):
    axis = np.linspace(0, 1, 21)
    points = grid(axis, axis)[:, ::-1]  # x fastest
    order = np.lexsort(points.T[::-1])  # by x, then by y
    frames, parameters = uniform(n, 12, 441), uniform(n, 2)
    return Small(
        datapipes.UnsteadyHeat,
        {
            "params.npy": {"": parameters},
            "snapshots.npy": {"": frames},
            "coords.npy": {"": points},
        },
        {
            "embedding": np.stack([points[order]] * n),
            "frames": frames[..., order, None],
            "statics": np.repeat(parameters[:, None], 441, 1),
        },
        (21, 21),
        marked="published",
        unmarked="published",
    )


def of_physgto(reader, names, n) -> Small:
    """Squares in triangles whose numbers differ."""
    files, fields, cells = {}, {"embedding": [], "frames": [], "statics": []}, []
    for k in range(n):
        mesh = MeshTri.init_tensor(np.linspace(0, 2, 3 + k % 3), np.linspace(0, 2, 4))
        n_nodes = mesh.p.shape[1]
        kinds, conditions = RNG.integers(5, size=n_nodes), uniform(5)
        arrays = {name: uniform(12, n_nodes) for name in names}
        files[f"{k}.h5"] = {"node_pos": mesh.p.T, "cells": mesh.t.T, "node_type": kinds}
        files[f"{k}.h5"] |= {"t": uniform(12, 1), "conditions": conditions} | arrays
        fields["embedding"].append(mesh.p.T)
        fields["frames"].append(np.stack(list(arrays.values()), -1))
        fields["statics"].append(np.hstack([np.eye(5)[kinds], np.tile(conditions, (n_nodes, 1))]))
        cells.append(mesh.t.T)
    first = round(0.8 * n)
    for name, part in (("train.txt", range(first)), ("test.txt", range(first, n))):
        files[name] = "".join(f"{k}.h5\n\n" for k in part)
    return Small(reader, files, fields, cells=cells, least=1, unmarked="published")


def heat_transfer(n=10):
    return of_physgto(datapipes.HeatTransfer, ("u", "v"), n)


def icp_plasma(n=10):
    return of_physgto(datapipes.ICPPlasma, ("ne", "Te", "v", "T"), n)


SETS = {
    make.__name__: make
    for make in (
        *(airfoil, airfoil_in_one_file, pipe, elasticity, darcy, darcy_of_tensors),
        *(navier_stokes, navier_stokes_rollout, plasticity, irregular_darcy, pipe_turbulence),
        *(composite, elastic_block, unsteady_heat, heat_transfer, icp_plasma),
    )
}


@dataclass
class Published:
    """Shapes of published files, where an axis "n" is that of ``n`` samples; meshes as arrays.

    The target is the last shape; ``first`` is its first test sample.
    """

    reader: type[datapipes.FieldReader]
    files: dict[str, dict[str, tuple | np.ndarray]]
    n: int = 1200
    split: tuple[int, int] = (1000, 200)
    first: int = 1000
    options: dict = field(default_factory=dict)

    def write(self, folder: Path, n: int | None = None, files: Mapping | None = None) -> None:
        """Write files that take no space on disk: what is not written is zero."""
        for file, arrays in (files or self.files).items():
            shapes = {
                name: tuple((n or self.n) if axis == "n" else axis for axis in given)
                for name, given in arrays.items()
                if isinstance(given, tuple)
            }
            if file.endswith(".npy"):
                np.lib.format.open_memmap(folder / file, "w+", np.float32, shapes[""])
                continue
            write(folder / file, {k: v for k, v in arrays.items() if k not in shapes})
            with h5py.File(folder / file, "a") as stream:
                for name, shape in shapes.items():
                    chunks = (*shape[:0:-1], 1)
                    stream.create_dataset(name, shape[::-1], np.float32, chunks=chunks)

    def mark(self, folder: Path) -> None:
        """Set the first test sample's target to 5."""
        file, name, shape = [
            (folder / file, name, shape)
            for file, arrays in self.files.items()
            for name, shape in arrays.items()
            if isinstance(shape, tuple)
        ][-1]
        if file.suffix == ".npy":
            array = np.load(file, mmap_mode="r+")
            np.moveaxis(array, shape.index("n"), 0)[self.first] = 5
            array.flush()
        else:
            with h5py.File(file, "a") as stream:
                stream[name][..., self.first] = 5


def meshes(pattern, grid, channels):
    shapes = {"X": ("n", *grid), "Y": ("n", *grid), "Q": ("n", channels, *grid)}
    return {pattern.format(name): {"": shape} for name, shape in shapes.items()}


def nodes(n_nodes, dimensions=2):
    return np.random.default_rng(0).uniform(size=(n_nodes, dimensions))


CELL = np.array([[1, 2, 2290]])
DARCY, TURBULENCE, PART = (("n", n_nodes) for n_nodes in (2290, 2673, 8232))
PUBLISHED = {
    "airfoil": Published(datapipes.Airfoil, meshes("NACA_Cylinder_{}.npy", (221, 51), 5), 1210),
    "pipe": Published(datapipes.Pipe, meshes("Pipe_{}.npy", (129, 129), 3), 1210),
    "elasticity": Published(
        datapipes.Elasticity,
        {
            "Random_UnitCell_XY_10.npy": {"": (972, 2, "n")},
            "Random_UnitCell_sigma_10.npy": {"": (972, "n")},
        },
        2000,
        first=1800,
    ),
    "darcy": Published(
        datapipes.Darcy,
        {
            f"piececonst_r421_N1024_smooth{k}.mat": dict.fromkeys(("coeff", "sol"), ("n", 421, 421))
            for k in (1, 2)
        },
        1024,
        first=0,
        options={"stride": 210},
    ),
    "navier_stokes": Published(
        datapipes.NavierStokes, {"NavierStokes_V1e-5_N1200_T20.mat": {"u": ("n", 64, 64, 20)}}
    ),
    "plasticity": Published(
        datapipes.Plasticity,
        {"plas_N987_T20.mat": {"input": ("n", 101), "output": ("n", 101, 31, 20, 4)}},
        987,
        (900, 80),
        907,
    ),
    "irregular_darcy": Published(
        datapipes.IrregularDarcy,
        {
            "Darcy.mat": {"c_field": DARCY, "u_field": DARCY}
            | {"MeshNodes": nodes(2290).T, "MeshElements": CELL.T}
        },
    ),
    "pipe_turbulence": Published(
        datapipes.PipeTurbulence,
        {
            "Turbulence.mat": {"Input": TURBULENCE, "Output": TURBULENCE}
            | {"nodes": nodes(2673), "elements": CELL}
        },
        400,
        (300, 100),
        300,
    ),
    "composite": Published(
        datapipes.Composite,
        {
            "Composites.mat": {"T_field": PART, "D_field": PART},
            "Composites_LBO_basis.mat": {"Points": nodes(8232, 3), "Faces": CELL},
        },
        520,
        (400, 100),
        420,
    ),
}
