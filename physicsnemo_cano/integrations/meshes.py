# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

r"""Mesh files as clouds of points with weights, and fields written back to them, by pyvista."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from jaxtyping import Float

from physicsnemo_cano.datapipes.quadrature import node_weights
from physicsnemo_cano.integrations.faces import normals
from physicsnemo_cano.integrations.mesh_files import READABLE, absolute, read_mesh, vtk_messages

if TYPE_CHECKING:
    import pyvista

Location = Literal["points", "cells"]

# What can hold fields, by VTK's class of mesh.
_WRITABLE = {"PolyData": (".vtp", ".vtk"), "UnstructuredGrid": (".vtu", ".vtk")}


class MeshCloud:
    r"""The points, or the cells' centres, of a mesh file.

    Parameters
    ----------
    file : str or Path
        A surface or a volume, of one of :data:`.mesh_files.READABLE`.
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
        if self.file.suffix.lower() not in READABLE:
            raise ValueError(
                f"{self.file} is none of {', '.join(READABLE)}; convert it: "
                "pyvista.read(...).save('mesh.vtp'), or mesh.vtu for a volume"
            )
        mesh = read_mesh(self.file)
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

    def inputs(
        self, names: Sequence[str], normal: bool, parameters: Sequence[float] | np.ndarray
    ) -> tuple[Float[torch.Tensor, "N C"], list[str]]:
        r"""What a model takes beside the coordinates.

        Parameters
        ----------
        names : sequence of str
            Fields, as for :meth:`fields`.
        normal : bool
            Whether the surface's unit normals come behind them; see :func:`.faces.normals`.
        parameters : sequence of float
            Of all points together; they come last.

        Returns
        -------
        tuple of torch.Tensor and list of str
            Shape :math:`(N, C)`, or :math:`(1, C)` of parameters alone, which are one token for
            all points, however many there are; float64. And what each channel is, for messages.

        Raises
        ------
        KeyError, ValueError
            As :meth:`fields`; or if normals are asked for and this is no surface.
        """
        given = self.fields(names)
        channels = [
            f"field {name!r}"
            for name, values in zip(names, given, strict=True)
            for _ in range(values.shape[1])
        ]
        if normal:
            try:
                given.append(torch.from_numpy(normals(self.mesh, self.location)))
            except ValueError as error:
                raise ValueError(f"{self.file} has no normals: {error}") from error
            channels += [f"normal {axis}" for axis in "xyz"]
        token = torch.as_tensor(np.asarray(parameters, dtype=np.float64))
        n_points = self.mesh.n_points if self.location == "points" else self.mesh.n_cells
        rows = n_points if given or not len(token) else 1
        empty = torch.empty(rows, 0, dtype=torch.float64)
        fx = torch.cat([empty, *given, token.expand(rows, -1)], 1)
        return fx, channels + [f"parameters[{i}]" for i in range(len(token))]

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

    @property
    def ending(self) -> str:
        """Of files that can hold this mesh and fields."""
        return _WRITABLE[type(self.mesh).__name__][0]

    def write(
        self,
        file: str | Path,
        fields: Mapping[str, Float[torch.Tensor, "N *C"]],
        numbers: Mapping[str, float] | None = None,
    ) -> None:
        r"""Write the mesh, all that it held, and new fields; see :meth:`check_output`.

        Parameters
        ----------
        file : str or Path
            Where to.
        fields : mapping of str to torch.Tensor
            By name, each of shape :math:`(N,)`, or :math:`(N, C)` of vectors.
        numbers : mapping of str to float, optional
            Field data: what belongs to the mesh as a whole.

        Raises
        ------
        OSError
            If the file cannot be written; nothing is left of it.
        """
        file = self.check_output(file, list(fields))
        for name, values in fields.items():
            self.data[name] = values.numpy()
        taken = [name for name in numbers or {} if name in self.mesh.field_data]
        if taken:
            raise ValueError(
                f"{self.file} has field data {taken} already; give the new ones another name with "
                "suffix=_predicted or so"
            )
        for name, number in (numbers or {}).items():
            self.mesh.field_data[name] = [number]
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".draft-", dir=file.parent) as folder:
            draft = Path(folder) / file.name
            with tempfile.TemporaryFile(dir=folder) as room:
                # VTK ends the process where there is no room: the arrays, uncompressed and in
                # base64, and the text around them.
                os.posix_fallocate(room.fileno(), 0, 1536 * self.mesh.actual_memory_size + 2**17)
            with vtk_messages() as window:
                self.mesh.save(draft)
            if "ERROR" in window.GetOutput() or not draft.is_file():
                raise OSError(f"output={file} cannot be written: {window.GetOutput().strip()}")
            os.replace(draft, file)


def _cells_by_type(mesh: pyvista.DataSet) -> dict[int, np.ndarray]:
    if type(mesh).__name__ == "PolyData":
        return {5: mesh.regular_faces}
    return mesh.cells_dict
