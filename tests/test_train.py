# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""The command that trains on a folder of mesh files."""

import csv
import json
from functools import partial

import h5py
import numpy as np
import pytest
import torch

from physicsnemo_cano import train
from physicsnemo_cano.recipe import run
from physicsnemo_cano.train import arguments_of, main
from tests.datapipes.mesh_cases import body, write_cases

TINY = [
    "size.n_layers=1",
    "size.n_hidden=16",
    "size.n_head=2",
    "size.n_clusters=4",
    "training.epochs=40",
    "location=points",
]


def test_settings_of_the_data_may_stand_alone():
    given = [
        "data.root=a",
        "targets=[p]",
        "model=flare",
        "skip=[b]",
        "training.epochs=3",
        "--check",
    ]
    rest, checks = arguments_of(given)
    assert checks
    assert rest == [
        "data.root=a",
        "data.targets=[p]",
        "model=flare",
        "data.skip=[b]",
        "training.epochs=3",
    ]
    assert arguments_of(["check=true", "check=false"]) == ([], True)
    assert arguments_of(["seed=1", "--cfg", "job"]) == (["seed=1", "--cfg", "job"], False)


def test_a_folder_is_trained_on(tmp_path, monkeypatch, capsys):
    torch.set_num_threads(1)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(train, "run", partial(run, figures=lambda results, folder: None))
    write_cases(tmp_path)
    command = ["data.root=cases", "targets=[p,shear]", "parameters=cases.csv", *TINY]
    main([*command, "check=true"])
    said = capsys.readouterr().out
    assert not (tmp_path / "outputs").exists()
    mesh = body(4)
    assert f"case_4  {mesh.n_points}      {mesh.n_cells}" in said
    p = mesh.point_data["p"]
    assert f"{p.min():.4g} … {p.max():.4g}" in said
    for line in (
        "train      case_2, case_7, case_3, case_5, case_9, case_0, case_8",
        "validation case_1",
        "test       case_4, case_6",
        "inputs     x, y, z, and 2 beside them of all points together",
        "predicts   p, shear_x, shear_y, shear_z",
        "40 epochs of 4 steps",
    ):
        assert line in said
    main(command)
    output = tmp_path / "outputs/meshes/cano/seed0"
    found = json.loads((output / "metrics.json").read_text())
    assert found["data"] == "mesh files"
    assert found["test_rel_l2"] < 0.8 * found["mean_predictor_rel_l2"]
    with (output / "test_errors.csv").open() as file:
        rows = {row["case"]: row for row in csv.DictReader(file)}
    assert set(rows) == {"case_4", "case_6"}
    fields = found["test_fields"]
    assert list(fields) == ["p", "shear", "shear_x", "shear_y", "shear_z"]
    with h5py.File(output / "predictions.h5") as file:
        assert {group.attrs["case"] for group in file.values()} == set(rows)
        for group in file.values():
            true, error = group["target"][()], group["prediction"][()] - group["target"][()]
            for name, channels in (("p", slice(0, 1)), ("shear", slice(1, 4))):
                row = rows[group.attrs["case"]]
                sizes = np.linalg.norm(error[:, channels], axis=1)
                relative = np.linalg.norm(sizes) / np.linalg.norm(true[:, channels])
                assert float(row[f"{name}_relative_l2"]) == pytest.approx(relative, rel=1e-5)
                assert float(row[f"{name}_max_error"]) == pytest.approx(sizes.max(), rel=1e-5)
    for name, errors in fields.items():
        mean = np.mean([float(row[f"{name}_mae"]) for row in rows.values()])
        assert errors["mae"] == pytest.approx(mean)
        largest = max(float(row[f"{name}_max_error"]) for row in rows.values())
        assert errors["largest_error"] == pytest.approx(largest)
    layout = json.loads((output / "checkpoints/best/layout.json").read_text())
    assert layout["mesh"] == {
        "location": "points",
        "targets": [["p", 1], ["shear", 3]],
        "inputs": [],
        "normals": False,
        "parameters": ["speed", "angle"],
    }


@pytest.mark.parametrize("checks", [[], ["--check"]])
def test_faulty_cases_end_it_before_it_begins(checks, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    root = write_cases(tmp_path, 4)
    mesh = body(2)
    mesh.point_data["p"][:2] = np.nan
    mesh.save(root / "case_2.vtp")
    with pytest.raises(SystemExit) as caught:
        main(["data.root=cases", "targets=[p]", *TINY, *checks])
    assert "\n  case_2: values of field 'p' of 2 points are not finite" in str(caught.value)
    assert "'skip=[case_2]'" in str(caught.value)
    assert ("FAULTY" in str(caught.value)) == bool(checks)
    assert not (tmp_path / "outputs").exists()
    if checks:
        main(["data.root=cases", "targets=[p]", "skip=[case_2]", *TINY, *checks])


def test_what_is_not_given_and_help(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match=r"Not given: data\.targets"):
        main(["data.root=cases"])
    with pytest.raises(SystemExit, match=r"No MeshFolder data at .*cases"):
        main(["data.root=cases", "targets=[p]"])
    main(["--help"])
    assert "test_seed" in capsys.readouterr().out
