# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""A folder of mesh files as samples, and all that is wrong with it named at once."""

import numpy as np
import pytest
import pyvista
import torch

from physicsnemo_cano.datapipes.cases import FaultyCases, describe, find_cases
from physicsnemo_cano.datapipes.meshes import MeshFolder
from tests.datapipes.mesh_cases import body, parameters, write_cases, write_table


def by_name(reader):
    return {reader.cases[i].name: reader[k][0] for k, i in enumerate(reader.indices)}


@pytest.mark.parametrize("location", ["points", "cells"])
def test_samples_are_what_the_files_hold(location, tmp_path):
    root = write_cases(tmp_path)
    options = {
        "targets": ["p", "shear"],
        "inputs": ["heat"],
        "normals": True,
        "parameters": tmp_path / "cases.csv",
        "location": location,
        "weights": True,
    }
    train, test = (MeshFolder(root, split, **options) for split in ("train", "test"))
    assert [c.name for c in train.coordinates] == ["x", "y", "z"]
    assert [c.name for c in train.targets] == ["p", "shear_x", "shear_y", "shear_z"]
    samples = by_name(train) | by_name(test)
    assert (len(train), len(test), len(samples)) == (8, 2, 10)
    for name, sample in samples.items():
        number = int(name[-1])
        mesh = body(number)
        x, data = (
            (mesh.points, mesh.point_data)
            if location == "points"
            else (mesh.cell_centers().points, mesh.cell_data)
        )
        np.testing.assert_allclose(sample["embedding"], x, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(sample["target"][:, 0], data["p"], rtol=1e-6)
        np.testing.assert_allclose(sample["target"][:, 1:], data["shear"], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(sample["fx"][:, 0], data["heat"], rtol=1e-6)
        normal = sample["fx"][:, 1:4]
        np.testing.assert_allclose(torch.linalg.norm(normal, dim=1), 1, rtol=1e-6)
        assert (torch.sum(normal * sample["embedding"], 1) > 0).all()
        np.testing.assert_allclose(
            sample["fx"][:, 4:], np.tile(parameters(number), (len(x), 1)), rtol=1e-6
        )
        assert sample["weights"].sum().item() == pytest.approx(mesh.area, rel=1e-5)
    for reader in (train, test):
        assert reader.sizes() == [len(reader[k][0]["embedding"]) for k in range(len(reader))]
    assert len(set(train.sizes())) > 1


def test_parameters_alone_are_one_token(tmp_path):
    root = write_cases(tmp_path, 3)
    write_table(tmp_path / "other.csv", 3, separator=";")
    for table in ("cases.csv", "other.csv"):
        for name, sample in by_name(
            MeshFolder(root, targets=["p"], parameters=str(tmp_path / table))
        ).items():
            expected = torch.tensor([parameters(int(name[-1]))]).float()
            torch.testing.assert_close(sample["fx"], expected)


def test_parameters_from_field_data(tmp_path):
    for number in range(4):
        mesh = body(number)
        mesh.field_data["wind"] = np.array([1.0, number])
        mesh.save(tmp_path / f"{number}.vtp")
    reader = MeshFolder(tmp_path, targets=["p"], parameters=["wind"])
    for name, sample in by_name(reader).items():
        torch.testing.assert_close(sample["fx"], torch.tensor([[1.0, float(name)]]))
    body(4).save(tmp_path / "4.vtp")
    with pytest.raises(FaultyCases, match=r"4: it has no field data wind, only \[\]"):
        MeshFolder(tmp_path, targets=["p"], parameters=["wind"])


def test_where_the_targets_are_and_plane_meshes(tmp_path):
    for number in range(3):
        mesh = pyvista.Plane(i_resolution=3 + number, j_resolution=2)
        mesh.clear_data()
        mesh.cell_data["u"] = np.arange(mesh.n_cells) + 1.0
        mesh.save(tmp_path / f"{number}.vtp")
    reader = MeshFolder(tmp_path, targets=["u"])
    assert [c.name for c in reader.coordinates] == ["x", "y"]
    assert reader.mesh["location"] == "cells"
    with pytest.raises(FaultyCases, match="all: it has no field 'u' at its points"):
        MeshFolder(tmp_path, targets=["u"], location="points")


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (["a.vtp", "b/c.vtp", "b/d/e.vtu"], ["a", "b/c", "b/d/e"]),
        (["b/VTK/x.vtp", "a/VTK/y.vtp"], ["a", "b"]),
        (["r/a/x.vtp", "r/b/x.vtp"], ["r/a", "r/b"]),
        (["a/x.vtp", "a/y.vtp", "b/x.vtp"], ["a/x", "a/y", "b/x"]),
        (["a.vtp", "a.stl", "b.stl", "notes.txt", ".hidden.vtp"], ["a.stl", "a.vtp", "b"]),
        (["a.vtm", "a/a_0.vtp", "a/b/b_1.vtp", "c.vtp"], ["a", "c"]),
        (["a/one.vtm", "a/one/x.vtp", "b/two.vtm"], ["a", "b"]),
    ],
)
def test_names_of_cases(files, names, tmp_path):
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("not yet looked at")
    found = find_cases(tmp_path)
    assert sorted(found) == names
    assert find_cases(tmp_path, "*.none") == {}


def test_cases_in_folders_find_their_lines_of_the_table(tmp_path):
    write_table(tmp_path / "cases.csv", 3)
    for number in range(3):
        (tmp_path / f"runs/a/case_{number}").mkdir(parents=True)
        body(number).save(tmp_path / f"runs/a/case_{number}/surface.vtp")
    reader = MeshFolder(tmp_path / "runs", targets=["p"], parameters=tmp_path / "cases.csv")
    for name, sample in by_name(reader).items():
        assert name.startswith("a/case_")
        torch.testing.assert_close(sample["fx"][0], torch.tensor(parameters(int(name[-1]))).float())


def faulty(folder):
    """Ten good cases and one of each fault."""
    root = write_cases(folder)
    for name, change in (
        ("lacks", lambda m: m.point_data.remove("p")),
        ("nan", lambda m: m.point_data["p"].__setitem__(3, np.nan)),
        ("kilo", lambda m: m.point_data.__setitem__("p", m.point_data["p"] / 1000)),
        ("millimetres", lambda m: m.points.__imul__(1000)),
        ("scalar", lambda m: m.point_data.__setitem__("shear", m.point_data["shear"][:, 0].copy())),
        ("zero", lambda m: (m.point_data["p"].fill(0), m.point_data["shear"].fill(0))),
        ("unused", lambda m: m.point_data["heat"].fill(np.nan)),
    ):
        mesh = body(1)
        change(mesh)
        mesh.save(root / f"{name}.vtp")
    whole = (root / "case_0.vtp").read_bytes()
    (root / "cut.vtp").write_bytes(whole[: len(whole) // 2])
    (root / "page.vtu").write_text("<html>404</html>")
    return root


def test_all_faults_are_named_at_once(tmp_path):
    root = faulty(tmp_path)
    with pytest.raises(FaultyCases) as caught:
        MeshFolder(root, targets=["p", "shear"])
    text = str(caught.value)
    assert text.startswith(f"8 of 19 cases of {root} cannot be used:")
    for name, fault in (
        ("lacks", "it has no field 'p' at its points"),
        ("nan", "values of field 'p' of 1 points are not finite"),
        ("kilo", "p range over 0.00"),
        ("millimetres", "the coordinates range over 1"),
        ("scalar", "shear has 1 components, in most cases 3"),
        ("zero", "zero everywhere"),
        ("cut", "it is incomplete or no mesh"),
        ("page", "it is incomplete or no mesh"),
    ):
        (line,) = [line for line in text.splitlines() if line.startswith(f"  {name}: ")]
        assert fault in line
    assert "unused" not in text
    skip = text.splitlines()[-1].partition("skip=[")[2].partition("]")[0].split(",")
    assert len(MeshFolder(root, targets=["p", "shear"], skip=skip)) == 9
    (tmp_path / "skip.txt").write_text("\n".join(skip))
    reader = MeshFolder(root, targets=["p", "shear"], skip=str(tmp_path / "skip.txt"))
    assert len(reader.cases) == 11
    table = describe(caught.value.cases).splitlines()
    assert len(table) == 20
    assert sum("FAULTY" in line for line in table) == 8
    assert table[0].split() == ["case", "points", "cells", "size", "x,", "y,", "z", "p", "shear"]


def test_a_file_that_is_repaired_is_read_again(tmp_path):
    root = write_cases(tmp_path, 3)
    body(1).save(root / "case_1.vtp")
    mesh = body(1)
    mesh.point_data["p"][0] = np.nan
    mesh.save(root / "case_1.vtp")
    with pytest.raises(FaultyCases, match="case_1"):
        MeshFolder(root, targets=["p"])
    body(5).save(root / "case_1.vtp")
    assert len(MeshFolder(root, targets=["p"])) == 2


def test_faults_of_a_table(tmp_path):
    root = write_cases(tmp_path, 4)
    table = tmp_path / "cases.csv"
    lines = table.read_text().splitlines()
    table.write_text("\n".join([*lines[:2], "case_1,fast,0.1", lines[3]]))
    with pytest.raises(FaultyCases) as caught:
        MeshFolder(root, targets=["p"], parameters=table)
    assert "case_1: its parameter speed is 'fast', expected a number" in str(caught.value)
    assert f"case_3: {table} has no line of case_3" in str(caught.value)
    table.write_text("case,speed\ncase_0,1\ncase_0.vtp,2\n")
    with pytest.raises(ValueError, match="two lines of case_0"):
        MeshFolder(root, targets=["p"], parameters=table)
    table.write_text("case\n")
    with pytest.raises(ValueError, match=r"columns \['case'\], expected the case's name and then"):
        MeshFolder(root, targets=["p"], parameters=table)
    with pytest.raises(FileNotFoundError, match="no table at"):
        MeshFolder(root, targets=["p"], parameters="absent.csv")


def test_shares_and_names_for_testing(tmp_path):
    root = write_cases(tmp_path)

    def names(**options):
        readers = [MeshFolder(root, s, targets=["p"], **options) for s in ("train", "test")]
        return [[r.cases[i].name for i in r.indices] for r in readers]

    train, test = names(test=0.3)
    assert (len(train), len(test)) == (7, 3)
    assert sorted(train + test) == [f"case_{i}" for i in range(10)]
    assert names(test=0.3) == [train, test]
    assert names(test=0.3, test_seed=1) != [train, test]
    assert names(n_train=3, test=0.3) == [train[:3], test]
    train, test = names(test=["case_7", "case_2"])
    assert set(test) == {"case_2", "case_7"}
    assert len(train) == 8
    (tmp_path / "test.txt").write_text("case_4\n\ncase_5\n")
    assert set(names(test=str(tmp_path / "test.txt"))[1]) == {"case_4", "case_5"}
    for options, message in (
        ({"test": 1.5}, "test: must be above 0 and at most 1"),
        ({"test": ["case_99"]}, "test: .* has no cases case_99, only case_0, "),
        ({"test": [], "split": "test"}, "10 are for training and 0 for testing"),
        ({"skip": ["body"]}, "skip: .* has no cases body"),
        ({"location": "faces"}, "choose from points, cells"),
        ({"files": "*.stl"}, r"No mesh files \*\.stl"),
        ({"targets": []}, r"such as targets=\[p\]"),
    ):
        with pytest.raises((ValueError, FileNotFoundError), match=message):
            MeshFolder(root, **{"targets": ["p"], **options})


def test_normals_of_volumes_are_refused(tmp_path):
    for number in range(2):
        grid = pyvista.ImageData(dimensions=(3, 3, 3 + number)).cast_to_unstructured_grid()
        grid["u"] = np.arange(grid.n_points) + 1.0
        grid.save(tmp_path / f"{number}.vtu")
    assert MeshFolder(tmp_path, targets="u", weights=True)[0][0]["weights"].sum() >= 8
    with pytest.raises(FaultyCases, match=r"all: it has no normals: cells of VTK's kinds \[11\]"):
        MeshFolder(tmp_path, targets=["u"], normals=True)


def test_far_from_zero(tmp_path):
    root = write_cases(tmp_path, 3, offset=5e6)
    sample = MeshFolder(root, targets=["p"], test=["case_0", "case_1"])[0][0]
    assert sample["embedding"].dtype == torch.float64
    np.testing.assert_allclose(sample["embedding"] - 5e6, body(2).points, atol=2e-9)


def test_repeated_points_have_no_weight_of_their_own_but_cells_do(tmp_path):
    """STL-like meshes, in which every face has its own corners."""
    for number in range(2):
        mesh = body(number)
        loose = pyvista.PolyData.from_regular_faces(
            mesh.points[mesh.regular_faces].reshape(-1, 3),
            np.arange(mesh.n_cells * 3).reshape(-1, 3),
        )
        loose.point_data["p"] = mesh.point_data["p"][mesh.regular_faces].ravel()
        loose.save(tmp_path / f"{number}.vtp")
    sample = MeshFolder(tmp_path, targets=["p"], weights=True)[0][0]
    area = min(abs(sample["weights"].sum().item() - body(n).area) for n in range(2))
    assert area < 1e-5
