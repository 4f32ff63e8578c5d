# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""The Python code of the pages, run as it is written."""

import re
from pathlib import Path

import pytest

from physicsnemo_cano import CANO

ROOT = Path(__file__).parents[1]
TRAINED = Path("outputs/airfoil/cano/seed0/checkpoints/last/CANO.0.50.mdlus")


@pytest.mark.parametrize("page", ["README.md", "docs/deployment.md"])
def test_code_runs(page, tmp_path, monkeypatch):
    for package in ("onnx", "onnxruntime", "onnxscript"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    TRAINED.parent.mkdir(parents=True)  # as the example leaves it
    CANO(0, 1, 2, n_layers=1, n_hidden=8, n_head=2).save(str(TRAINED))

    text = (ROOT / page).read_text()
    blocks = list(re.finditer(r"^```python\n(.*?)^```", text, re.M | re.S))
    assert len(blocks) >= 2
    namespace = {}
    for block in blocks:
        before = "\n" * text[: block.start(1)].count("\n")  # so that errors name the page's line
        exec(compile(before + block[1], ROOT / page, "exec"), namespace)
