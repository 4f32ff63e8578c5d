# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
"""NORM's files as they are published: either kind of MATLAB file, cells of any number type."""

import h5py
import numpy as np
import pytest
import scipy.io

from physicsnemo_cano.datapipes import Composite, IrregularDarcy, PipeTurbulence
from physicsnemo_cano.datapipes.matlab import MatlabFile
from tests.datapipes.test_matlab import WRITERS

# Two triangles of areas 1/2 and 1, and one tetrahedron of volume 1.
SQUARE = np.array([[0.0, 1.0, 0.0, 2.0], [0.0, 0.0, 1.0, 1.0]])
CORNER = np.array([[0.0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3]])


@pytest.mark.parametrize("write", WRITERS)
def test_irregular_darcy_by_hand(write, tmp_path):
    c = np.arange(20.0).reshape(5, 4) + 1
    arrays = {"c_field": c, "u_field": c / 8, "MeshNodes": SQUARE}
    arrays["MeshElements"] = np.array([[1.0, 2], [2, 4], [3, 3]])
    write(tmp_path / "Darcy.mat", arrays)
    (tmp_path / "provenance.json").touch()
    test = IrregularDarcy(tmp_path, "test", weights=True)
    sample, _ = test[0]
    assert (len(IrregularDarcy(tmp_path)), len(test)) == (4, 1)
    assert sample["fx"][:, 0].tolist() == [17, 18, 19, 20]
    assert sample["target"][:, 0].tolist() == [17 / 8, 18 / 8, 19 / 8, 20 / 8]
    np.testing.assert_array_equal(sample["embedding"], SQUARE.T)
    assert test.cells.tolist() == [[0, 1, 2], [1, 3, 2]]
    np.testing.assert_allclose(sample["weights"], np.array([1, 3, 3, 2]) / 6, rtol=1e-6)


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("rows", [False, True])
def test_pipe_turbulence_by_hand(write, rows, tmp_path):
    speed = np.arange(20.0).reshape(5, 4)
    elements = np.array([[1.0, 2, 3], [2, 4, 3]])
    arrays = {"Input": speed, "Output": speed / 4 + 1, "nodes": SQUARE.T}
    write(tmp_path / "Turbulence.mat", arrays | {"elements": elements.T if rows else elements})
    (tmp_path / "provenance.json").touch()
    test = PipeTurbulence(tmp_path, "test", weights=True)
    sample, _ = test[0]
    assert (len(PipeTurbulence(tmp_path)), len(test)) == (4, 1)
    assert sample["fx"][:, 0].tolist() == [16, 17, 18, 19]
    assert sample["target"][:, 0].tolist() == [5, 5.25, 5.5, 5.75]
    np.testing.assert_array_equal(sample["embedding"], SQUARE.T)
    assert test.cells.tolist() == [[0, 1, 2], [1, 3, 2]]
    np.testing.assert_allclose(sample["weights"], np.array([1, 3, 3, 2]) / 6, rtol=1e-6)


def test_elements_that_are_no_triangles_are_refused(tmp_path):
    arrays = {"Input": np.ones((5, 4)), "Output": np.ones((5, 4)), "nodes": SQUARE.T}
    integers_v73(tmp_path / "Turbulence.mat", arrays | {"elements": np.array([[1, 2, 4, 3]])})
    (tmp_path / "provenance.json").touch()
    with pytest.raises(ValueError, match=r"elements \(1, 4\), expected \(M, 3\) or \(3, M\)"):
        PipeTurbulence(tmp_path)


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("first", [0, 1])
def test_composite_by_hand(write, first, tmp_path):
    t = np.arange(20.0).reshape(5, 4)
    write(tmp_path / "Composites.mat", {"T_field": t, "D_field": t**2 + 1})
    (tmp_path / "Composites_LBO_basis").mkdir()
    mesh = {"Points": CORNER, "Faces": first + np.array([[3.0, 1, 0, 2]])}
    write(tmp_path / "Composites_LBO_basis" / "Composites_LBO_basis.mat", mesh)
    (tmp_path / "provenance.json").touch()
    train = Composite(tmp_path, weights=True)
    sample, _ = train[3]
    assert (len(train), len(Composite(tmp_path, "test"))) == (4, 1)
    assert sample["fx"][:, 0].tolist() == [12, 13, 14, 15]
    assert sample["target"][:, 0].tolist() == [145, 170, 197, 226]
    np.testing.assert_array_equal(sample["embedding"], CORNER)
    assert train.cells.tolist() == [[3, 1, 0, 2]]
    np.testing.assert_allclose(sample["weights"], 0.25, rtol=1e-6)


def integers_v5(path, arrays):
    scipy.io.savemat(path, arrays)


def integers_v73(path, arrays):
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file[name] = array.T


@pytest.mark.parametrize("write", [integers_v5, integers_v73])
def test_cells_may_be_integers_and_name_nodes(write, tmp_path):
    fields = {"T_field": np.ones((5, 4)), "D_field": np.ones((5, 4))}
    write(tmp_path / "Composites.mat", fields)
    (tmp_path / "provenance.json").touch()
    for faces in ([[0, 1, 2, 3]], [[1, 2, 3, 4]]):
        write(tmp_path / "Composites_LBO_basis.mat", {"Points": CORNER, "Faces": np.array(faces)})
        assert Composite(tmp_path).cells.tolist() == [[0, 1, 2, 3]]
    for faces in ([[0, 1, 2, 4]], [[2, 3, 4, 5]], [[0.0, 1.0, 2.0, 2.5]]):
        write(tmp_path / "Composites_LBO_basis.mat", {"Points": CORNER, "Faces": np.array(faces)})
        with pytest.raises(ValueError, match=r"Faces holds numbers from .* those of 4 nodes"):
            Composite(tmp_path)


@pytest.mark.parametrize(
    ("reader", "shape", "train", "first_test"),
    [
        (IrregularDarcy, (1200, 2290), 1000, 1000),
        (PipeTurbulence, (400, 2673), 300, 300),
        (Composite, (520, 8232), 400, 420),
    ],
)
def test_published_splits(reader, shape, train, first_test, tmp_path):
    n, nodes = shape
    fields = np.zeros(shape, np.float32)
    fields[first_test] = 5
    points = np.random.default_rng(0).uniform(size=(nodes, 3))
    if reader is IrregularDarcy:
        mesh = {"MeshNodes": points[:, :2].T, "MeshElements": np.array([[1], [2], [nodes]])}
        integers_v73(tmp_path / "Darcy.mat", {"c_field": fields, "u_field": fields, **mesh})
    elif reader is PipeTurbulence:
        mesh = {"nodes": points[:, :2], "elements": np.array([[1, 2, nodes]])}
        integers_v73(tmp_path / "Turbulence.mat", {"Input": fields, "Output": fields, **mesh})
    else:
        integers_v73(tmp_path / "Composites.mat", {"T_field": fields, "D_field": fields})
        mesh = {"Points": points, "Faces": np.array([[0, 1, 2, nodes - 1]])}
        integers_v73(tmp_path / "Composites_LBO_basis.mat", mesh)
    test = reader(tmp_path, "test")
    assert (len(reader(tmp_path)), len(test), test.source) == (train, n - first_test, "published")
    assert (test[0][0]["target"] == 5).all()
    assert not test[1][0]["fx"].any()


def test_whole_numbers_of_type_double_stay_real(tmp_path):
    """MATLAB stores doubles that are whole numbers as small integers, as SciPy may not."""
    integers_v5(tmp_path / "Darcy.mat", {"c_field": np.array([[12, 3]], np.uint8)})
    stored = bytearray((tmp_path / "Darcy.mat").read_bytes())
    stored[128 + 16] = 6  # the array's class: from uint8 to double
    (tmp_path / "Darcy.mat").write_bytes(stored)
    with MatlabFile(tmp_path / "Darcy.mat", {"c_field": (1, 2)}) as file:
        found = file["c_field"]
    assert found.dtype == np.float64
    assert found.tolist() == [[12.0, 3.0]]
