# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""The page on a folder of meshes, followed word for word."""

import csv
import json
import re
import shlex
from functools import partial
from pathlib import Path

import numpy as np
import pyvista
import torch

from physicsnemo_cano import predict, train
from physicsnemo_cano.recipe import run

PAGE = Path(__file__).parents[2] / "docs" / "own_meshes.md"
PROGRAMS = {"physicsnemo-cano-train": train.main, "physicsnemo-cano-predict": predict.main}


def test_the_page_on_a_folder_of_meshes(tmp_path, monkeypatch, capsys):
    torch.set_num_threads(1)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(train, "run", partial(run, figures=lambda results, folder: None))
    blocks = re.findall(r"^```(bash|python)\n(.*?)^```", PAGE.read_text(), flags=re.S | re.M)
    assert blocks.pop(0)[1].startswith("pip install ")
    for language, text in blocks:
        if language == "python":
            exec(compile(text, PAGE, "exec"), {})
            continue
        program, *arguments = shlex.split(text)
        short = [a.replace("epochs=60", "epochs=25") for a in arguments]
        PROGRAMS[program](short)
        if "--check" in arguments:
            assert "predicts   p, wallShearStress_x" in capsys.readouterr().out
            assert not Path("outputs").exists()
    found = json.loads(Path("outputs/meshes/cano/seed0/metrics.json").read_text())
    assert found["test_rel_l2"] < 0.3 * found["mean_predictor_rel_l2"]
    said = capsys.readouterr().out
    (model,) = re.findall(r"drag of 5 test cases: mean error (.*)%, largest", said)
    (mesh,) = re.findall(r"against the formula: (.*)%", said)
    assert float(model) < 10
    assert 0.5 < float(mesh) < 4  # inscribed in the sphere, some 16 edges round it
    assert len(list(Path("predicted").iterdir())) == 24
    one, same = (pyvista.read(f) for f in ("sphere_03.vtp", "predicted/sphere_03.vtp"))
    np.testing.assert_array_equal(one["p_predicted"], same["p_predicted"])
    with open("forces.csv") as file:
        rows = {row["case"]: row for row in csv.DictReader(file)}
    assert same.field_data["CD_predicted"][0] == float(rows["sphere_03"]["CD"])
