# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

r"""Mesh files as clouds of points with weights, and fields written back to them, by pyvista."""

from __future__ import annotations

import contextlib
import os
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from jaxtyping import Float

from physicsnemo_cano.datapipes.quadrature import node_weights

if TYPE_CHECKING:
    import pyvista
    from vtkmodules.vtkCommonCore import vtkStringOutputWindow

Location = Literal["points", "cells"]

# Of these a file that ends too early is found; VTK reads others, such as .ply, to uninitialised
# memory or a crash then.
_READABLE = (".vtp", ".vtu", ".vtk", ".stl")
# What can hold fields, by VTK's class of mesh.
_WRITABLE = {"PolyData": (".vtp", ".vtk"), "UnstructuredGrid": (".vtu", ".vtk")}


class MeshCloud:
    r"""The points, or the cells' centres, of a mesh file.

    Parameters
    ----------
    file : str or Path
        A surface or a volume: ``.vtp``, ``.vtu``, ``.vtk`` or ``.stl``.
    location : {"points", "cells"}, optional, default="points"
        Where fields are read and written.

    Attributes
    ----------
    mesh : pyvista.DataSet
        The mesh.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ImportError
        If pyvista is not installed.
    ValueError
        If the file is of another kind, or holds no mesh with points and cells.
    """

    def __init__(self, file: str | Path, location: Location = "points") -> None:
        if location not in ("points", "cells"):
            raise ValueError(f"location: choose from points, cells; got {location!r}")
        self.file, self.location = absolute(file), location
        if not self.file.is_file():
            raise FileNotFoundError(f"No mesh at {self.file}")
        if self.file.suffix.lower() not in _READABLE:
            raise ValueError(
                f"{self.file} is none of {', '.join(_READABLE)}; convert it: "
                "pyvista.read(...).save('mesh.vtp'), or mesh.vtu for a volume"
            )
        mesh = _read(self.file)
        kind = type(mesh).__name__
        if kind not in _WRITABLE:
            raise ValueError(
                f"{self.file} holds {kind}, expected a surface (PolyData) or an unstructured "
                "volume (UnstructuredGrid); convert it, by cast_to_unstructured_grid() of pyvista "
                "or so"
            )
        if not mesh.n_points or not mesh.n_cells:
            raise ValueError(
                f"{self.file} holds {mesh.n_points} points and {mesh.n_cells} cells, expected some "
                "of both: an empty mesh, or a file that is incomplete or of another kind than "
                f"{self.file.suffix}"
            )
        if location == "cells":
            from vtkmodules.util.numpy_support import vtk_to_numpy

            offsets = mesh.cast_to_unstructured_grid().GetCells().GetOffsetsArray()
            empty = np.flatnonzero(np.diff(vtk_to_numpy(offsets)) == 0)
            if len(empty):
                raise ValueError(
                    f"{self.file}: {len(empty)} cells have no points, the first at index "
                    f"{empty[0]}; remove them, or use location=points"
                )
        self.mesh: pyvista.DataSet = mesh

    @property
    def data(self):
        """The mesh's fields at the location, by name."""
        return self.mesh.point_data if self.location == "points" else self.mesh.cell_data

    def coordinates(self, dim: int) -> Float[torch.Tensor, "N dim"]:
        r"""Coordinates of the points or of the cells' centres.

        Parameters
        ----------
        dim : int
            Number of coordinates, 2 or 3; a mesh for 2 lies in a plane of constant z.

        Returns
        -------
        torch.Tensor
            Shape :math:`(N, dim)`, float64: far from zero, float32 would lose digits before the
            coordinates are centred.

        Raises
        ------
        ValueError
            If there are coordinates that vary beyond those asked for, or are not finite.
        """
        points = self.mesh.points.astype(np.float64)
        self._check_finite("coordinates", points, "points")
        x = points
        if self.location == "cells":
            mesh = self.mesh.copy(deep=False)
            mesh.points = points
            x = mesh.cell_centers().points
        reach = np.ptp(x, axis=0)
        if dim not in (2, 3) or (reach[dim:] > 1e-6 * reach.max()).any():
            raise ValueError(
                f"{self.file} reaches {', '.join(f'{r:g}' for r in reach)} in x, y and z; the "
                f"model takes {dim} coordinates"
            )
        return torch.from_numpy(np.array(x[:, :dim]))

    def _check_finite(self, name: str, values: np.ndarray, location: Location) -> None:
        wrong = np.flatnonzero(~np.isfinite(values.reshape(len(values), -1)).all(1))
        if len(wrong):
            raise ValueError(
                f"{self.file}: {name} of {len(wrong)} {location} are not finite, the first "
                f"{values[wrong[0]]} at index {wrong[0]}; remove these {location}, or give them "
                "values"
            )

    def weights(self) -> Float[torch.Tensor, " N"]:
        r"""Areas or volumes: those of the cells, or each point's share of the cells round it.

        Returns
        -------
        torch.Tensor
            Shape :math:`(N,)`, float64, in the units of the mesh.

        Raises
        ------
        ValueError
            If there are no faces or volumes, or points are asked for and belong to no cell: they
            have no share.
        """
        faceless = (
            f"{self.file} has no faces or volumes to take weights from, its {self.mesh.n_cells} "
            "cells are vertices or lines; give a mesh with faces, or weights=false"
        )
        if self.location == "cells":
            sizes = self.mesh.compute_cell_sizes(length=False).cell_data
            volume = np.asarray(sizes["Volume"])
            if not volume.any() and not sizes["Area"].any():
                raise ValueError(faceless)
            return torch.from_numpy(np.abs(volume if volume.any() else sizes["Area"]))
        simplices = self.mesh.triangulate()
        kinds = {int(kind): cells for kind, cells in _cells_by_type(simplices).items()}
        cells = kinds.get(10, kinds.get(5))  # VTK's tetrahedra, or triangles
        if cells is None or not len(cells):
            raise ValueError(faceless)
        points = torch.from_numpy(np.array(self.mesh.points, dtype=np.float64))
        weights = node_weights(points, cells=torch.from_numpy(np.array(cells)))
        if not (weights > 0).all():
            raise ValueError(
                f"{self.file}: {int((weights <= 0).sum())} points belong to no cell, or to cells "
                "without size, and have no weight; clean the mesh, or use location=cells"
            )
        return weights

    def fields(self, names: Sequence[str]) -> list[Float[torch.Tensor, "N C"]]:
        r"""Fields of the mesh at the location.

        Parameters
        ----------
        names : sequence of str
            Scalars and vectors, in the order of the model's input channels.

        Returns
        -------
        list of torch.Tensor
            Of each field, shape :math:`(N, C)`, float64.

        Raises
        ------
        KeyError
            If there is no such field; the message lists those that are there.
        ValueError
            If a field holds something else than finite numbers.
        """
        fields = []
        for name in names:
            if name not in self.data:
                raise KeyError(
                    f"{self.file} has no field {name!r} at its {self.location}, only "
                    f"{sorted(self.data.keys())}"
                )
            values = np.asarray(self.data[name])
            if values.dtype.kind not in "biuf":
                raise ValueError(f"{self.file}: field {name!r} holds {values.dtype}, not numbers")
            values = values.astype(np.float64).reshape(len(values), -1)
            self._check_finite(f"values of field {name!r}", values, self.location)
            fields.append(torch.from_numpy(values))
        return fields

    def check_output(self, file: str | Path, names: Sequence[str]) -> Path:
        r"""Check that fields can be written to a file, and that nothing is lost thereby.

        Parameters
        ----------
        file : str or Path
            Where to.
        names : sequence of str
            Of the new fields.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        FileExistsError
            If there is such a file.
        ValueError
            If its kind cannot hold this mesh's fields, or the mesh has fields of these names.
        """
        file = absolute(file)
        endings = _WRITABLE[type(self.mesh).__name__]
        if file.suffix.lower() not in endings:
            raise ValueError(
                f"output={file}: fields of this mesh can be written to {' or '.join(endings)}"
            )
        if file.exists():
            raise FileExistsError(f"output={file} is there already and is not overwritten")
        taken = [name for name in names if name in self.data]
        if taken:
            raise ValueError(
                f"{self.file} has fields {taken} already; give the new ones another name with "
                "suffix=_predicted or so"
            )
        return file

    def write(self, file: str | Path, fields: Mapping[str, Float[torch.Tensor, " N"]]) -> None:
        r"""Write the mesh, all that it held, and new fields; see :meth:`check_output`.

        Parameters
        ----------
        file : str or Path
            Where to.
        fields : mapping of str to torch.Tensor
            By name, each of shape :math:`(N,)`.

        Raises
        ------
        OSError
            If the file cannot be written; nothing is left of it.
        """
        file = self.check_output(file, list(fields))
        for name, values in fields.items():
            self.data[name] = values.numpy()
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".draft-", dir=file.parent) as folder:
            draft = Path(folder) / file.name
            with _vtk_messages() as window:
                self.mesh.save(draft)
            if "ERROR" in window.GetOutput() or not draft.is_file():
                raise OSError(f"output={file} cannot be written: {window.GetOutput().strip()}")
            os.replace(draft, file)


def absolute(file: str | Path) -> Path:
    """A path as the shell understands it: from here, or from a home for a leading ``~``.

    pyvista does the same to any path, so a path is resolved before it is looked at.

    Parameters
    ----------
    file : str or Path
        As it was given.

    Returns
    -------
    Path
        Absolute; nothing need be there.
    """
    return Path(os.path.abspath(os.path.expanduser(file)))


@contextlib.contextmanager
def _vtk_messages() -> Iterator[vtkStringOutputWindow]:
    from vtkmodules.vtkCommonCore import vtkOutputWindow, vtkStringOutputWindow

    window, usual = vtkStringOutputWindow(), vtkOutputWindow.GetInstance()
    vtkOutputWindow.SetInstance(window)
    try:
        yield window
    finally:
        vtkOutputWindow.SetInstance(usual)


def _read(file: Path) -> pyvista.DataSet:
    r"""Read a file, or say why not.

    Of what is wrong VTK tells its output window at most, and gives what it has: less than the
    file should hold, or memory that it has not written to.
    """
    try:
        import pyvista
    except ImportError as error:
        raise ImportError(
            "Mesh files need pyvista: pip install physicsnemo-cano[meshes]"
        ) from error

    expected = f"expected a complete mesh of kind {file.suffix}; write or copy the file again"
    if not _holds_all(file):
        raise ValueError(f"{file} is incomplete or not what its name says: {expected}")
    try:
        with _vtk_messages() as window, warnings.catch_warnings():
            warnings.filterwarnings("error", message=".*raised an error while reading")
            mesh = pyvista.read(file)
            if file.suffix.lower() == ".vtk" and type(mesh).__name__ == "PolyData":
                # Where there are no cells pyvista makes a vertex of every point, also of a file
                # that ends before its faces.
                reader = pyvista.get_reader(file).reader
                reader.Update()
                if not reader.GetOutput().GetNumberOfCells():
                    raise ValueError(f"{mesh.n_points} points and no cells; a cloud has vertices")
    except Exception as error:
        raise ValueError(
            f"{file} is incomplete or no mesh ({str(error).splitlines()[0]}): {expected}"
        ) from error
    said = [line for line in window.GetOutput().splitlines() if "rror reading" in line]
    if said:
        raise ValueError(f"{file} is incomplete or no mesh ({said[0]}): {expected}")
    if file.suffix.lower() == ".vtk" and not _holds_numbers(file, mesh):
        raise ValueError(f"{file} is incomplete, it has less numbers than it announces: {expected}")
    return mesh


def _holds_all(file: Path) -> bool:
    """Whether a file has contents, and those of an STL file reach their end."""
    size = file.stat().st_size
    if file.suffix.lower() != ".stl":
        return size > 0
    with file.open("rb") as stream:
        head = stream.read(84)
        stream.seek(max(0, size - 256))
        tail = stream.read()
    # Binary: 80 bytes, the number of triangles and 50 bytes for each.
    binary = len(head) == 84 and size >= 84 + 50 * int.from_bytes(head[80:], "little")
    return binary or b"endsolid" in tail.lower()


def _holds_numbers(file: Path, mesh: pyvista.DataSet) -> bool:
    """Whether a legacy file in text has as many numbers as the mesh read from it."""
    with file.open("rb") as stream:
        if b"ASCII" not in [stream.readline().strip().upper() for _ in range(3)]:
            return True
        there = sum(
            word[:1] in (b"-", b".", b"n", b"i") or word[:1].isdigit()
            for line in stream
            for word in line.split()
        )
    arrays = [*mesh.point_data.values(), *mesh.cell_data.values()]
    return there >= mesh.points.size + sum(array.size for array in arrays)


def _cells_by_type(mesh: pyvista.DataSet) -> dict[int, np.ndarray]:
    if type(mesh).__name__ == "PolyData":
        return {5: mesh.regular_faces}
    return mesh.cells_dict
