# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

r"""Mesh files, read whole or refused: of what is wrong with a file VTK says little."""

from __future__ import annotations

import contextlib
import os
import warnings
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

if TYPE_CHECKING:
    import pyvista
    from vtkmodules.vtkCommonCore import vtkStringOutputWindow

# Of these a file that ends too early is found; VTK reads others, such as .ply, to uninitialised
# memory or a crash then.
_BLOCKS = (".vtp", ".vtu", ".vts", ".vtr", ".vti")
#: Endings of the files that can be read.
READABLE = (*_BLOCKS, ".vtk", ".stl", ".vtm")


def read_mesh(file: Path) -> pyvista.DataSet:
    """Read a file as one surface or one unstructured mesh.

    Structured meshes become unstructured. Of a ``.vtm`` file all blocks are joined, in its order,
    with the fields that all of them have; points on their borders stay double. Volumes and surfaces
    in one such file are refused: the boundary would count twice.

    Parameters
    ----------
    file : Path
        Of one of :data:`READABLE`.

    Returns
    -------
    pyvista.PolyData or pyvista.UnstructuredGrid

    Raises
    ------
    ImportError
        If pyvista is not installed.
    ValueError
        If the file is incomplete, of another kind, or holds no mesh or no single one.
    """
    pyvista, parts = _pyvista(), _parts(file)
    meshes = [_unstructured(_read(part), part) for part in parts]
    if len(meshes) == 1:
        return meshes[0]
    _refuse_mixed(file, parts, meshes)
    kinds = {type(mesh).__name__ for mesh in meshes}
    if kinds == {"PolyData"}:
        return meshes[0].append_polydata(*meshes[1:])
    return pyvista.MultiBlock(meshes).combine(merge_points=False)


def _pyvista():
    try:
        import pyvista
    except ImportError as error:
        raise ImportError(
            "Mesh files need pyvista: pip install physicsnemo-cano[meshes]"
        ) from error
    return pyvista


def write_surface(stream: BinaryIO, arrays: Mapping[str, np.ndarray]) -> None:
    r"""Write triangles and fields as a ``.vtp`` file.

    Parameters
    ----------
    stream : binary file
        To be written.
    arrays : mapping of str to numpy.ndarray
        ``points`` :math:`(N, 3)` and ``faces`` :math:`(F, 3)`; all others are fields of the
        faces, :math:`(F, \dots)`, or else field data.

    Raises
    ------
    ImportError
        If pyvista is not installed.
    """
    pyvista = _pyvista()
    from vtkmodules.vtkIOXML import vtkXMLPolyDataWriter

    mesh = pyvista.PolyData.from_regular_faces(arrays["points"], arrays["faces"])
    for name in sorted(arrays.keys() - {"points", "faces"}):
        of_faces = len(arrays[name]) == len(arrays["faces"])
        (mesh.cell_data if of_faces else mesh.field_data)[name] = arrays[name]
    writer = vtkXMLPolyDataWriter()
    writer.SetInputData(mesh)
    writer.WriteToOutputStringOn()
    writer.SetDataModeToBinary()
    writer.Write()
    stream.write(writer.GetOutputString().encode())


def _parts(file: Path) -> list[Path]:
    """The file, or the files of its blocks."""
    if file.suffix.lower() != ".vtm":
        return [file]
    expected = "expected a .vtm file that names the files of its blocks; write or copy it again"
    try:
        tree = ElementTree.parse(file)
    except ElementTree.ParseError as error:
        raise ValueError(f"{file} is incomplete or no mesh ({error}): {expected}") from error
    parts = [file.parent / node.get("file") for node in tree.iter("DataSet") if node.get("file")]
    if not parts:
        raise ValueError(f"{file} names no blocks: {expected}")
    for part in parts:
        if not part.is_file():
            raise ValueError(f"{file} is incomplete, its block {part} is absent; copy it too")
        if part.suffix.lower() not in _BLOCKS:
            raise ValueError(f"{file}: its block {part} is none of {', '.join(_BLOCKS)}")
    return parts


def blocks_of(file: Path) -> list[Path]:
    """Files that a ``.vtm`` file stands for; none where it cannot be read.

    Parameters
    ----------
    file : Path
        A mesh file of any kind.

    Returns
    -------
    list of Path
    """
    try:
        return [part for part in _parts(file) if part != file]
    except (OSError, ValueError):
        return []


def _refuse_mixed(file: Path, parts: list[Path], meshes: list[pyvista.DataSet]) -> None:
    solid = [mesh.n_cells > 0 and mesh.GetMaxSpatialDimension() == 3 for mesh in meshes]
    filled = [mesh.n_cells > 0 for mesh in meshes]
    volumes = [part.name for part, is_solid in zip(parts, solid, strict=True) if is_solid]
    others = [
        part.name
        for part, is_solid, has_cells in zip(parts, solid, filled, strict=True)
        if has_cells and not is_solid
    ]
    if volumes and others:
        raise ValueError(
            f"{file} holds volumes ({', '.join(volumes)}) beside surfaces ({', '.join(others)}), "
            "expected blocks of one kind: choose the files of one, such as files=*.vtu or "
            "files=*.vtp, or save those blocks alone"
        )


def _unstructured(mesh: pyvista.DataSet, file: Path) -> pyvista.DataSet:
    kind = type(mesh).__name__
    if kind in ("PolyData", "UnstructuredGrid"):
        return mesh
    if kind in ("StructuredGrid", "RectilinearGrid", "ImageData"):
        return mesh.cast_to_unstructured_grid()
    raise ValueError(
        f"{file} holds {kind}, expected a surface or a volume: a PolyData, an UnstructuredGrid or "
        "a structured grid"
    )


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
def vtk_messages() -> Iterator[vtkStringOutputWindow]:
    """Keep what VTK says meanwhile, which would go to the terminal.

    Yields
    ------
    vtkStringOutputWindow
        Its ``GetOutput`` is the text.
    """
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
    import pyvista

    expected = f"expected a complete mesh of kind {file.suffix}; write or copy the file again"
    if not _holds_all(file):
        raise ValueError(f"{file} is incomplete or not what its name says: {expected}")
    try:
        with vtk_messages() as window, warnings.catch_warnings():
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
    if type(mesh).__name__ not in ("ImageData", "RectilinearGrid"):  # whose points are implied
        arrays.append(mesh.points)
    return there >= sum(array.size for array in arrays)
