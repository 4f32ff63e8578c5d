# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Every benchmark's paper scale is the paper's, and its command makes what it needs."""

import importlib

import matplotlib.pyplot as plt
import pytest

from tests.recipe.helpers import composed, public_set, train

#                 L, H, d, mlp ratio, K_c, batch, epochs
PAPER = {
    "airfoil": (8, 8, 128, 2, 32, 4, 500),
    "pipe": (8, 4, 128, 2, 16, 4, 500),
    "plasticity": (8, 8, 128, 2, 64, 8, 500),
    "navier_stokes": (8, 8, 256, 1, 32, 2, 500),
    "darcy": (8, 8, 128, 2, 128, 4, 500),
    "elasticity": (8, 8, 128, 2, 128, 1, 500),
    "irregular_darcy": (4, 4, 64, 4, 128, 16, 2000),
    "composite": (4, 4, 64, 4, 32, 16, 2000),
    "pipe_turbulence": (4, 4, 64, 4, 32, 16, 2000),
    "navier_stokes_rollout": (8, 8, 256, 1, 32, 2, 500),
    "icp_plasma": (8, 8, 256, 1, 32, 1, 1000),
    "heat_transfer": (8, 8, 256, 1, 16, 1, 1000),
}
OWN = {
    "navier_stokes": {"unified_pos": True, "ref": 8, "padding_mode": "circular"},
    "navier_stokes_rollout": {"unified_pos": True, "ref": 8, "padding_mode": "circular"},
    "darcy": {"unified_pos": True, "ref": 8, "padding_mode": "replicate"},
    "plasticity": {"time_input": True},
}
# Sets of the package smithers, and the figures that their examples draw.
PUBLIC = {
    "elastic_block": "block_median block_worst clusters error_by_modulus errors training",
    "unsteady_heat": (
        "clusters error_in_time errors horizons temperature_median temperature_worst training"
    ),
}


@pytest.mark.parametrize("benchmark", PAPER)
def test_paper_scale_is_the_papers(benchmark):
    cfg = composed(benchmark, "scale=paper", "data.root=somewhere")
    size, training = cfg.size, cfg.training
    sizes = (size.n_layers, size.n_head, size.n_hidden, size.mlp_ratio, size.n_clusters)
    assert (*sizes, training.batch_size, training.epochs) == PAPER[benchmark]
    assert (training.optimizer, training.lr) == ("adamw", 1e-3)
    assert training.gradient_loss == (0.1 if benchmark == "darcy" else None)
    for key, value in OWN.get(benchmark, {}).items():
        assert cfg.model[key] == value


@pytest.mark.parametrize("benchmark", [*PAPER, *PUBLIC])
@pytest.mark.parametrize("model", ["transolver", "flare"])
def test_all_models_have_the_same_budget(benchmark, model):
    cano, other = (composed(benchmark, f"model={name}") for name in ("cano", model))
    for group in ("size", "training", "data", "normalize", "as_cloud"):
        assert cano[group] == other[group]


@pytest.mark.parametrize("benchmark", PUBLIC)
@pytest.mark.parametrize("model", ["cano", "transolver", "flare"])
def test_public_sets_train_an_epoch(benchmark, model, tmp_path):
    folder = public_set(benchmark)
    draw = importlib.import_module(f"examples.{benchmark}.figures").draw
    options = (f"model={model}", "training.epochs=1")
    found = train(folder, tmp_path, *options, figures=draw, benchmark=benchmark)
    assert found["data"] == "published"
    assert 0 < found["test_rel_l2"] < 20
    drawn = {file.stem: file for file in (tmp_path / "figures").glob("*.png")}
    expected = PUBLIC[benchmark].split()
    assert sorted(drawn) == [name for name in expected if model == "cano" or name != "clusters"]
    for file in drawn.values():
        assert plt.imread(file)[..., :3].std() > 0.02  # not blank
