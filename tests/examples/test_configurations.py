# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Every benchmark's paper scale is the paper's, and its command makes what it needs."""

import pytest

from tests.recipe.helpers import composed

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
}
OWN = {
    "navier_stokes": {"unified_pos": True, "ref": 8, "padding_mode": "circular"},
    "darcy": {"unified_pos": True, "ref": 8, "padding_mode": "replicate"},
    "plasticity": {"time_input": True},
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


@pytest.mark.parametrize("benchmark", PAPER)
@pytest.mark.parametrize("model", ["transolver", "flare"])
def test_all_models_have_the_same_budget(benchmark, model):
    cano, other = (composed(benchmark, f"model={name}") for name in ("cano", model))
    for group in ("size", "training", "data", "normalize", "as_cloud"):
        assert cano[group] == other[group]
