# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
"""NORM's files as they are published: cells in rows or columns, of any number type."""

import numpy as np
import pytest
import scipy.io

from physicsnemo_cano.datapipes import Composite, PipeTurbulence
from physicsnemo_cano.datapipes.matlab import MatlabFile
from tests.datapipes.small_sets import TRIANGLES, uniform, write

CORNER = np.array([[0.0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3]])


@pytest.mark.parametrize("old", [False, True])
def test_elements_are_triangles_in_rows_or_columns(old, tmp_path):
    arrays = {name: uniform(5, 9) for name in ("Input", "Output")} | {"nodes": TRIANGLES.p.T}
    (tmp_path / "provenance.json").touch()
    for elements in (TRIANGLES.t + 1, TRIANGLES.t.T + 1.0):
        write(tmp_path / "Turbulence.mat", arrays | {"elements": elements}, old)
        np.testing.assert_array_equal(PipeTurbulence(tmp_path).cells, TRIANGLES.t.T)
    write(tmp_path / "Turbulence.mat", arrays | {"elements": np.array([[1, 2, 4, 3]])}, old)
    with pytest.raises(ValueError, match=r"elements \(1, 4\), expected \(M, 3\) or \(3, M\)"):
        PipeTurbulence(tmp_path)


@pytest.mark.parametrize("old", [False, True])
def test_cells_may_be_integers_and_name_nodes(old, tmp_path):
    (tmp_path / "provenance.json").touch()
    (tmp_path / "Composites_LBO_basis").mkdir()
    write(tmp_path / "Composites.mat", {"T_field": np.ones((5, 4)), "D_field": np.ones((5, 4))})

    def cells(faces):
        mesh = {"Points": CORNER, "Faces": np.array([faces])}
        write(tmp_path / "Composites_LBO_basis" / "Composites_LBO_basis.mat", mesh, old)
        return Composite(tmp_path, weights=True)

    for faces in ([3, 1, 0, 2], [4, 2, 1, 3], [4.0, 2.0, 1.0, 3.0]):
        reader = cells(faces)
        assert reader.cells.tolist() == [[3, 1, 0, 2]]
        np.testing.assert_allclose(reader[0][0]["weights"], 0.25, rtol=1e-6)  # of volume 1
    for faces in ([0, 1, 2, 4], [2, 3, 4, 5], [0.0, 1.0, 2.0, 2.5]):
        with pytest.raises(ValueError, match=r"Faces holds numbers from .* those of 4 nodes"):
            cells(faces)


def test_whole_numbers_of_type_double_stay_real(tmp_path):
    """MATLAB stores doubles that are whole numbers as small integers, as SciPy may not."""
    scipy.io.savemat(tmp_path / "Darcy.mat", {"c_field": np.array([[12, 3]], np.uint8)})
    stored = bytearray((tmp_path / "Darcy.mat").read_bytes())
    stored[128 + 16] = 6  # the array's class: from uint8 to double
    (tmp_path / "Darcy.mat").write_bytes(stored)
    with MatlabFile(tmp_path / "Darcy.mat", {"c_field": (1, 2)}) as file:
        found = file["c_field"]
    assert found.dtype == np.float64
    assert found.tolist() == [[12.0, 3.0]]
