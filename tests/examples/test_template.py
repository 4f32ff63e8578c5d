# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
"""The page on own data, followed word for word, far from the clone."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyvista

ROOT = Path(__file__).parents[2]


def test_the_page_on_own_data(tmp_path):
    for file in (ROOT / "examples" / "template").glob("*.*"):
        shutil.copyfile(file, tmp_path / file.name)
    cloud = pyvista.PolyData(np.random.default_rng(0).uniform(size=(30, 3)) * [1, 1, 0])
    cloud["heat"] = np.ones(30)
    cloud.save(tmp_path / "plate.vtp")
    page = (ROOT / "docs" / "new_dataset.md").read_text()
    blocks = re.findall(r"^```bash\n(.*?)^```", page, flags=re.S | re.M)
    commands = [line for block in blocks for line in block.splitlines()]
    assert commands.pop(0).startswith("pip install ")
    assert commands[:2] == [
        'python -c "import physicsnemo_cano as p, shutil; '
        "shutil.copytree(p.__path__[0] + '/template', 'plates')\"",
        "cd plates",
    ]
    del commands[:2]  # the template is in the wheel, not in an editable installation
    run = {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    for command in commands:
        program, rest = command.split(" ", 1)
        call = {"python": "", "physicsnemo-cano-predict": "-m physicsnemo_cano.predict "}[program]
        short = rest + (" training.epochs=3" if rest == "train.py" else "")
        if program.startswith("physicsnemo"):
            (tmp_path / "reader.py").unlink()  # the checkpoint says all
        done = subprocess.run(
            f"{sys.executable} {call}{short}",
            shell=True,
            cwd=tmp_path,
            env=os.environ | run,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
    output = tmp_path / "outputs/plates/cano/seed0"
    found = json.loads((output / "metrics.json").read_text())
    assert found["data"] == "made by make_data.py"
    assert found["test_rel_l2"] < 0.2
    (evaluated,) = (output / "evaluate").glob("*/metrics.json")
    assert json.loads(evaluated.read_text())["test_rel_l2"] == found["test_rel_l2"]
    drawn = {file.stem for file in (output / "figures").iterdir()}
    assert drawn == {"temperature_median", "temperature_worst", "errors", "training", "clusters"}
    written = pyvista.read(tmp_path / "predicted.vtp")["temperature"]
    assert np.isfinite(written).all()
    assert abs(written.mean() - 320) < 30
