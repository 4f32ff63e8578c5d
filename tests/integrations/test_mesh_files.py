# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Files of odd kinds, written by VTK itself: right values, or a message."""

import numpy as np
import pytest
import pyvista
from vtkmodules.vtkIOLegacy import vtkPolyDataWriter
from vtkmodules.vtkIOXML import vtkXMLPolyDataWriter, vtkXMLUnstructuredGridWriter

from physicsnemo_cano.integrations.mesh_files import blocks_of, read_mesh

FAR = 5e6


def body(offset=0.0):
    """A box of quadrilaterals with a field at points and one at cells."""
    mesh = pyvista.Box(bounds=(0, 2, 0, 1, 0, 1), level=2).clean()
    mesh.clear_data()
    mesh.points = np.asarray(mesh.points, dtype=np.float64) + offset
    mesh.point_data["p"] = np.asarray(mesh.points[:, 0]) - offset
    mesh.cell_data["shear"] = np.asarray(mesh.cell_centers().points) - offset
    return mesh


def check(found, offset=0.0):
    expected = body(offset)
    assert found.n_points == expected.n_points
    assert np.asarray(found.points).dtype == np.float64
    np.testing.assert_allclose(found.points, expected.points, rtol=0, atol=1e-9 * max(offset, 1))
    np.testing.assert_allclose(found.point_data["p"], expected["p"], atol=1e-9 * max(offset, 1))
    np.testing.assert_allclose(
        found.cell_data["shear"], expected["shear"], atol=1e-9 * max(offset, 1)
    )


def write_xml(file, mesh, mode="Appended", compressor="ZLib", order="LittleEndian", header=32):
    surface = isinstance(mesh, pyvista.PolyData)
    writer = vtkXMLPolyDataWriter() if surface else vtkXMLUnstructuredGridWriter()
    writer.SetInputData(mesh)
    writer.SetFileName(str(file))
    getattr(writer, f"SetDataModeTo{mode}")()
    getattr(writer, f"SetCompressorTypeTo{compressor}")()
    getattr(writer, f"SetByteOrderTo{order}")()
    getattr(writer, f"SetHeaderTypeToUInt{header}")()
    assert writer.Write()


XML = {
    "ascii": {"mode": "Ascii"},
    "base64": {"mode": "Binary", "compressor": "None"},
    "base64, zlib": {"mode": "Binary"},
    "raw": {"compressor": "None"},
    "zlib": {},
    "lz4": {"compressor": "LZ4"},
    "lzma": {"compressor": "LZMA"},
    "big-endian": {"order": "BigEndian", "compressor": "None"},
    "big-endian, zlib": {"order": "BigEndian"},
    "64-bit headers": {"header": 64},
}


@pytest.mark.parametrize("offset", [0, FAR])
@pytest.mark.parametrize("ending", [".vtp", ".vtu"])
@pytest.mark.parametrize("kind", XML)
def test_xml(kind, ending, offset, tmp_path):
    mesh = body(offset) if ending == ".vtp" else body(offset).cast_to_unstructured_grid()
    file = tmp_path / f"body{ending}"
    write_xml(file, mesh, **XML[kind])
    check(read_mesh(file), offset)
    whole = file.read_bytes()
    for share in (0.3, 0.6, 0.9):
        file.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(ValueError, match="is incomplete or no mesh"):
            read_mesh(file)


@pytest.mark.parametrize("version", [42, 51])
@pytest.mark.parametrize("binary", [True, False])
def test_legacy(version, binary, tmp_path):
    writer = vtkPolyDataWriter()
    writer.SetInputData(body())
    writer.SetFileName(str(tmp_path / "body.vtk"))
    writer.SetFileVersion(version)
    (writer.SetFileTypeToBinary if binary else writer.SetFileTypeToASCII)()
    assert writer.Write()
    check(read_mesh(tmp_path / "body.vtk"))


@pytest.mark.parametrize("ending", [".vts", ".vtr", ".vti", ".vtk"])
def test_structured_meshes_become_unstructured(ending, tmp_path):
    image = pyvista.ImageData(dimensions=(4, 3, 5), spacing=(0.5, 1, 2))
    image.point_data["p"] = np.arange(60.0)
    axes = [np.unique(column) for column in np.asarray(image.points).T]
    made = {
        ".vts": image.cast_to_structured_grid,
        ".vtr": lambda: pyvista.RectilinearGrid(*axes),
        ".vti": lambda: image,
        ".vtk": lambda: image,
    }[ending]()
    made.point_data["p"] = np.arange(60.0)
    made.save(tmp_path / f"grid{ending}", binary=ending != ".vtk")
    found = read_mesh(tmp_path / f"grid{ending}")
    assert isinstance(found, pyvista.UnstructuredGrid)
    assert found.n_cells == 24
    np.testing.assert_allclose(found.points, image.points)
    np.testing.assert_array_equal(found["p"], np.arange(60.0))
    whole = (tmp_path / f"grid{ending}").read_bytes()
    (tmp_path / f"grid{ending}").write_bytes(whole[: int(0.6 * len(whole))])
    with pytest.raises(ValueError, match="is incomplete"):
        read_mesh(tmp_path / f"grid{ending}")


def blocks(offset=0.0):
    mesh = body(offset)
    parts = pyvista.MultiBlock()
    parts["body"] = mesh
    parts["inside"] = pyvista.MultiBlock([mesh.translate((5, 0, 0)), None])
    return parts


@pytest.mark.parametrize("offset", [0, FAR])
@pytest.mark.parametrize("mixed", [False, True])
def test_blocks(mixed, offset, tmp_path):
    parts = blocks(offset)
    if mixed:
        parts["inside"][0] = parts["inside"][0].cast_to_unstructured_grid()
    parts.save(tmp_path / "parts.vtm")
    found = read_mesh(tmp_path / "parts.vtm")
    assert isinstance(found, pyvista.UnstructuredGrid if mixed else pyvista.PolyData)
    assert np.asarray(found.points).dtype == np.float64
    one = body(offset)
    assert (found.n_points, found.n_cells) == (2 * one.n_points, 2 * one.n_cells)
    np.testing.assert_array_equal(found.points[: one.n_points], one.points)
    np.testing.assert_array_equal(found["p"], np.tile(one["p"], 2))
    np.testing.assert_array_equal(found["shear"], np.tile(one["shear"], (2, 1)))
    assert len(blocks_of(tmp_path / "parts.vtm")) == 2


def test_volumes_beside_surfaces_are_refused(tmp_path):
    parts = pyvista.MultiBlock()
    parts["internal"] = pyvista.ImageData(dimensions=(3, 3, 3)).cast_to_unstructured_grid()
    parts["walls"] = parts["internal"].extract_surface(algorithm="dataset_surface")
    parts.save(tmp_path / "case.vtm")
    message = r"holds volumes \(case_0\.vtu\) beside surfaces \(case_1\.vtp\).*files=\*\.vtp"
    with pytest.raises(ValueError, match=message):
        read_mesh(tmp_path / "case.vtm")
    parts["walls"] = parts["internal"].copy()
    parts.save(tmp_path / "volumes.vtm")
    assert read_mesh(tmp_path / "volumes.vtm").n_cells == 16


def test_blocks_that_are_not_there(tmp_path):
    blocks().save(tmp_path / "parts.vtm")
    lost = blocks_of(tmp_path / "parts.vtm")[1]
    whole = lost.read_bytes()
    lost.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="is incomplete or no mesh"):
        read_mesh(tmp_path / "parts.vtm")
    lost.unlink()
    with pytest.raises(ValueError, match=r"its block .* is absent; copy it too"):
        read_mesh(tmp_path / "parts.vtm")
    for text in ("<VTKFile", '<VTKFile type="vtkMultiBlockDataSet"></VTKFile>'):
        (tmp_path / "parts.vtm").write_text(text)
        with pytest.raises(ValueError, match=r"is incomplete|names no blocks"):
            read_mesh(tmp_path / "parts.vtm")
        assert blocks_of(tmp_path / "parts.vtm") == []
