# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""A folder of meshes predicted in one call, with parameters and forces, by what a training knew."""

import csv

import numpy as np
import pytest
import pyvista
import torch

from physicsnemo_cano import CANO
from physicsnemo_cano.datapipes.meshes import MeshFolder
from physicsnemo_cano.integrations.forces import References, integrate
from physicsnemo_cano.predict import main, parse, predict
from physicsnemo_cano.recipe.layout import Layout
from physicsnemo_cano.recipe.normalization import Statistics
from tests.datapipes.mesh_cases import body, parameters, write_cases

DATA = {"points": "point_data", "cells": "cell_data"}
SCALES = dict.fromkeys(("embedding", "fx", "target"), "channels")


def checkpoint(folder, root, **options):
    """A checkpoint as the recipe leaves it, and for each case what its model gives."""
    torch.manual_seed(1)
    readers = [MeshFolder(root, split, **options) for split in ("train", "test")]
    folder.mkdir()
    statistics = Statistics.measure(readers[0], SCALES)
    statistics.save(folder / "normalization.npz")
    (folder / "layout.json").write_text(Layout.of(readers[0]).text())
    sizes = {"n_layers": 1, "n_hidden": 16, "n_head": 2, "slice_num": 4}
    channels = readers[0][0][0]["fx"].shape[1]
    model = CANO(channels, len(readers[0].targets), 3, **sizes).eval()
    model.save(str(folder / "CANO.0.3.mdlus"))
    found = {}
    for reader in readers:
        for index in range(len(reader)):
            sample = statistics.inputs()(reader[index][0]).float().unsqueeze(0)
            with torch.no_grad():
                out = model(sample["fx"], sample["embedding"], weights=sample.get("weights"))[0]
            values = out * statistics.stds["target"] + statistics.means["target"]
            found[reader.cases[reader.indices[index]].name] = values.numpy()
    return found


def ask(folder, *more):
    predict(parse([f"checkpoint={folder}", "device=cpu", "suffix=_new", *more]))


@pytest.mark.parametrize(
    ("location", "inputs", "normals"),
    [("points", [], False), ("cells", [], False), ("points", ["heat"], True)],
)
def test_a_folder_gets_what_training_would_see(location, inputs, normals, tmp_path):
    root = write_cases(tmp_path, 5)
    expected = checkpoint(
        tmp_path / "run",
        root,
        targets=["p", "shear"],
        parameters=str(tmp_path / "cases.csv"),
        location=location,
        inputs=inputs,
        normals=normals,
        weights=True,
    )
    table = f"parameters={tmp_path / 'cases.csv'}"
    ask(tmp_path / "run", f"input={root}", f"output={tmp_path / 'out'}", table)
    assert sorted(f.name for f in (tmp_path / "out").iterdir()) == sorted(
        f.name for f in root.iterdir()
    )
    for name, values in expected.items():
        mesh = pyvista.read(tmp_path / "out" / f"{name}.vtp")
        data = getattr(mesh, DATA[location])
        np.testing.assert_allclose(data["p_new"], values[:, 0], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(data["shear_new"], values[:, 1:], rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(
            data["heat"], getattr(body(int(name[-1])), DATA[location])["heat"]
        )
    # One file by itself is the same, with the line of its name, or with numbers.
    for number, given in enumerate((table, f"parameters={[float(v) for v in parameters(3)]}")):
        output = tmp_path / f"{number}.vtp"
        ask(tmp_path / "run", f"input={root / 'case_3.vtp'}", f"output={output}", given)
        mesh = pyvista.read(output)
        data = getattr(mesh, DATA[location])
        np.testing.assert_allclose(data["p_new"], expected["case_3"][:, 0], rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match=r"no field data speed.*give parameters=cases\.csv"):
        ask(tmp_path / "run", f"input={root / 'case_3.vtp'}", f"output={tmp_path / 'no.vtp'}")


def test_field_data_are_parameters_without_a_word(tmp_path):
    root = tmp_path / "cases"
    root.mkdir()
    for number in range(4):
        mesh = body(number)
        mesh.field_data["wind"] = parameters(number)
        mesh.save(root / f"{number}.vtp")
    options = {"targets": ["p"], "parameters": ["wind"], "location": "points"}
    expected = checkpoint(tmp_path / "run", root, **options)
    ask(tmp_path / "run", f"input={root}", f"output={tmp_path / 'out'}")
    for name, values in expected.items():
        found = pyvista.read(tmp_path / "out" / f"{name}.vtp").point_data["p_new"]
        np.testing.assert_allclose(found, values[:, 0], rtol=1e-5, atol=1e-5)


def test_files_of_all_kinds_and_one_that_is_cut(tmp_path):
    checkpoint(tmp_path / "run", write_cases(tmp_path, 3), targets=["p"], location="points")
    new = tmp_path / "new"
    for folder in ("a/deep", "b"):
        (new / folder).mkdir(parents=True)
    body(5).save(new / "a/deep/one.stl")
    body(6).save(new / "a/two.vtk")
    body(7).cast_to_unstructured_grid().save(new / "b/three.vtu")
    pyvista.MultiBlock([body(8), body(9)]).save(new / "b/four.vtm")
    body(0).save(new / "cut.vtp")
    whole = (new / "cut.vtp").read_bytes()
    (new / "cut.vtp").write_bytes(whole[: len(whole) // 2])
    output = tmp_path / "out"
    with pytest.raises(ValueError, match=r"1 of 5 files are not predicted:\n  cut: .*incomplete"):
        ask(tmp_path / "run", f"input={new}", f"output={output}")
    written = sorted(f.relative_to(output).as_posix() for f in output.rglob("*.*"))
    assert written == ["a/deep/one.vtp", "a/two.vtk", "b/four.vtp", "b/three.vtu"]
    assert pyvista.read(output / "b/four.vtp").n_points == body(8).n_points + body(9).n_points
    before = {f: f.read_bytes() for f in output.rglob("*.*")}
    (new / "cut.vtp").unlink()
    with pytest.raises(FileExistsError, match=r"one, two\.vtk.* already"):
        ask(tmp_path / "run", f"input={new}", f"output={output}")
    assert {f: f.read_bytes() for f in output.rglob("*.*")} == before
    ask(tmp_path / "run", f"input={new}", f"output={tmp_path / 'stl'}", "files=*.stl")
    assert [f.name for f in (tmp_path / "stl").rglob("*.*")] == ["one.vtp"]
    body(5).save(new / "a/deep/one.vtp")
    with pytest.raises(ValueError, match=r"one\.stl, .*one\.vtp would be written to one file"):
        ask(tmp_path / "run", f"input={new}", f"output={tmp_path / 'twice'}")
    with pytest.raises(FileNotFoundError, match=r"holds no mesh files \*\.ply"):
        ask(tmp_path / "run", f"input={new}", f"output={tmp_path / 'no'}", "files=*.ply")


@pytest.mark.parametrize("location", ["points", "cells"])
def test_forces_of_the_predicted_fields(location, tmp_path, capsys):
    root = write_cases(tmp_path, 4)
    checkpoint(
        tmp_path / "run",
        root,
        targets=["p", "shear"],
        parameters=str(tmp_path / "cases.csv"),
        location=location,
    )
    table = tmp_path / "forces.csv"
    command = [
        f"input={root}",
        f"parameters={tmp_path / 'cases.csv'}",
        "forces.pressure=p",
        "forces.shear=-shear",
        "forces.area=0.5",
        "forces.length=2",
        "forces.density=1.2",
        "forces.speed=speed",
        "forces.drag=[0,1,0]",
        "forces.centre=[1,2,3]",
        f"table={table}",
    ]
    ask(tmp_path / "run", f"output={tmp_path / 'out'}", *command)
    assert "case_0: " in capsys.readouterr().out
    with table.open() as stream:
        rows = {row.pop("case"): row for row in csv.DictReader(stream)}
    assert list(rows) == [f"case_{i}" for i in range(4)]
    for name, row in rows.items():
        mesh = pyvista.read(tmp_path / "out" / f"{name}.vtp")
        data = getattr(mesh, DATA[location])
        force, moment = integrate(
            mesh, data["p_new"], -data["shear_new"], location=location, centre=[1, 2, 3]
        )
        scale = 0.5 * 1.2 * parameters(int(name[-1]))[0] ** 2 * 0.5
        about = References(area=0.5, length=2, density=1.2, speed="U", drag=[0, 1, 0])
        expected = about.coefficients(force, moment, {"U": parameters(int(name[-1]))[0]})
        expected |= dict(zip(("force_x", "force_y", "force_z"), force, strict=True))
        expected |= dict(zip(("moment_x", "moment_y", "moment_z"), moment, strict=True))
        assert {k: float(v) for k, v in row.items()} == pytest.approx(expected, rel=1e-6, abs=1e-9)
        assert float(row["CD"]) == pytest.approx(force[1] / scale, rel=1e-6)
        for key, value in expected.items():
            assert mesh.field_data[f"{key}_new"][0] == pytest.approx(value, rel=1e-6, abs=1e-9)
    with pytest.raises(FileExistsError, match=r"forces\.csv is there already"):
        ask(tmp_path / "run", f"output={tmp_path / 'again'}", *command)
    assert not (tmp_path / "again").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["forces.pressure=q"], "the model predicts p, shear, got q"),
        (["forces.pressure=shear"], r"forces.pressure=shear has values of shape \(3,\)"),
        (["table=f.csv"], "is for forces: give forces.pressure="),
        (["forces.drag=x", "forces.pressure=p"], "forces.drag=x: expected numbers, such as"),
        (["forces.flip=maybe"], "expected true or false"),
        (["forces.aera=2"], "expected key=value, with a key of .*forces.area"),
    ],
)
def test_forces_that_cannot_be_had(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    root = write_cases(tmp_path, 3)
    checkpoint(tmp_path / "run", root, targets=["p", "shear"], location="points")
    with pytest.raises(SystemExit, match=message):
        main(
            [
                "checkpoint=run",
                "input=cases/case_0.vtp",
                "output=out.vtp",
                "suffix=_new",
                "device=cpu",
                *arguments,
            ]
        )
    assert not (tmp_path / "out.vtp").exists()
