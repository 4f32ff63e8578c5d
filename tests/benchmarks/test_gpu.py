# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from benchmarks import gpu

ROOT = Path(__file__).parents[2]
WITH_TORCH_ALONE = """
import sys
for package in ("physicsnemo", "jaxtyping", "einops", "hydra", "h5py", "tqdm", "matplotlib"):
    sys.modules[package] = None  # importing it raises an ImportError
import torch
from benchmarks import gpu
origin, makers = gpu.rivals()
for make in (gpu.Cano, *makers.values()):
    print(make(8)(torch.ones(2, 5, gpu.DIM)).shape)
print(origin)
"""


def read(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def test_quick_run(tmp_path, capsys):
    out = tmp_path / "gpu.csv"
    assert gpu.main(["--device", "cpu", "--quick", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "Transolver and FLARE: PhysicsNeMo's" in printed
    assert "0 checks failed" in printed
    rows = read(out)
    outcomes = {(row["step"], row["outcome"]) for row in rows}
    expected = dict.fromkeys([*gpu.CHECKS, "times"], "ok")
    expected["CUDA graph"] = "skipped: it needs a GPU"
    assert outcomes == set(expected.items())
    timed = {row["layer"] for row in rows if row["step"] == "times"}
    assert timed >= {"cano sdpa", "cano streaming", "transolver", "flare"}
    errors = {float(row["error"]) for row in rows if row["step"] == "equations"}
    assert 0 < min(errors) < 1e-5  # float32, relative to the norm


def test_needs_torch_alone():
    run = subprocess.run(
        [sys.executable, "-c", WITH_TORCH_ALONE],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert run.returncode == 0, run.stderr
    *shapes, origin = run.stdout.splitlines()
    assert shapes == [f"torch.Size([2, 5, {gpu.DIM}])"] * 3
    assert origin.startswith("written from their papers")


def test_a_wrong_layer_fails_and_does_not_stop_the_others(tmp_path, monkeypatch):
    right = gpu.cluster_attention

    def wrong(*tensors, implementation, **options):
        if implementation == "streaming":
            raise RuntimeError("broken")
        out = right(*tensors, implementation=implementation, **options)
        return out if implementation == "reference" else out * 1.1

    monkeypatch.setattr(gpu, "cluster_attention", wrong)
    run = gpu.Run("cpu", 60, tmp_path / "gpu.csv", repeats=1)
    gpu.run_checks(run, ["streaming", "sdpa"], gpu.QUICK["checks"], reserve=0)
    rows = read(tmp_path / "gpu.csv")
    outcomes = {(row["layer"], row["step"]): row["outcome"] for row in rows}
    for step in ("equations", "equations, weights", "repeats", "compile"):
        assert outcomes["cano streaming", step].startswith("FAILED: ")
    assert outcomes["cano sdpa", "equations"] == "FAILED"
    assert outcomes["cano sdpa", "repeats"] == "ok"


def test_no_time_is_said_and_not_spent(tmp_path):
    run = gpu.Run("cpu", 0, tmp_path / "gpu.csv", repeats=1)
    gpu.run_checks(run, ["sdpa"], gpu.QUICK["checks"], reserve=0)
    assert {row["outcome"].partition(":")[0] for row in run.rows} == {"skipped"}


def test_layers_are_those_of_physicsnemo_where_it_is_installed():
    origin, makers = gpu.rivals()
    assert origin == "PhysicsNeMo's"
    assert {type(make(4)).__module__.partition(".")[0] for make in makers.values()} == {
        "physicsnemo"
    }


@pytest.mark.parametrize(("ours", "name"), [(gpu.Transolver, "transolver"), (gpu.Flare, "flare")])
def test_own_layers_are_physicsnemos_functions(ours, name):
    # The layers of the papers, with PhysicsNeMo's parameters put where they belong.
    theirs = gpu.rivals()[1][name](6).double()
    own = ours(6).double()
    x = torch.randn(2, 50, gpu.DIM, dtype=torch.float64)
    with torch.no_grad():
        if name == "transolver":
            pairs = [
                (own.to_x, theirs.in_project_x),
                (own.to_features, theirs.in_project_fx),
                (own.to_slices, theirs.in_project_slice),
                (own.to_qkv, theirs.qkv_project),
                (own.to_out, theirs.out_linear),
            ]
        else:
            # PhysicsNeMo projects twice: to heads, then each head to its key and value.
            for layer, second in ((own.to_key, theirs.self_k), (own.to_value, theirs.self_v)):
                first = theirs.in_project_x
                each = torch.block_diag(*[second.weight] * gpu.HEADS)
                layer.weight.copy_(each @ first.weight)
                layer.bias.copy_(each @ first.bias + second.bias.repeat(gpu.HEADS))
            own.query.copy_(theirs.q_global)
            pairs = [(own.to_out, theirs.out_linear)]
        for layer, source in pairs:
            layer.load_state_dict(source.state_dict())
        # Transolver's paper has 1e-5 where PhysicsNeMo has 1e-2, beside slices of 50 / 6 points.
        bound = 1e-2 if name == "transolver" else 1e-12
        difference = (own(x) - theirs(x)).norm() / theirs(x).norm()
        assert difference < bound


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so(capsys):
    with pytest.raises(SystemExit) as stopped:
        gpu.main([])
    assert stopped.value.code != 0
    assert "needs an NVIDIA GPU" in capsys.readouterr().err
