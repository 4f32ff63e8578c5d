# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""The example through the recipe: its configuration, figures, cached data and all models."""

import shutil

import matplotlib.pyplot as plt
import pytest
import torch

from examples.darcy import generate
from examples.darcy.figures import draw
from physicsnemo_cano.recipe import run
from tests.recipe.helpers import composed, history, metrics, no_figures

TINY = (
    "size.n_layers=1",
    "size.n_hidden=16",
    "size.n_head=2",
    "size.n_clusters=4",
    "training.epochs=2",
)


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """A mini set of ten samples."""
    small = "--n-train 6 --n-test 4 --nodes 16 --workers 1"
    monkeypatch.setattr(generate.DarcySet, "mini_set", small)
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


def start(*overrides, figures=no_figures):
    return run(composed("darcy", *overrides), figures, embedded_data=generate.mini_data)


def train(*overrides, figures=no_figures):
    return start(*TINY, *overrides, figures=figures)


@pytest.mark.parametrize("model", ["cano", "transolver", "flare"])
def test_all_models_run_on_the_cached_data(model, cache, tmp_path):
    found = train(f"model={model}", f"cache={cache}", f"output={tmp_path / 'run'}")
    assert (found["benchmark"], found["data"]) == ("darcy", "generated")
    assert 0 < found["test_rel_l2"] < 2
    (folder,) = (path for path in cache.iterdir() if path.is_dir())  # made once for all
    assert (folder / "checksums.json").exists()


def test_the_figures_are_drawn(cache, tmp_path):
    train(f"cache={cache}", f"output={tmp_path / 'run'}", figures=draw)
    drawn = {file.stem: file for file in (tmp_path / "run" / "figures").glob("*.png")}
    assert sorted(drawn) == ["clusters", "errors", "pressure_median", "pressure_worst", "training"]
    for file in drawn.values():
        assert plt.imread(file)[..., :3].std() > 0.02  # not blank


def test_a_run_goes_on_where_there_is_another_cache(cache, tmp_path):
    one, moved = tmp_path / "one", tmp_path / "moved"
    found = train(f"cache={cache}", f"output={one}")
    shutil.copytree(one, moved)
    (moved / "metrics.json").unlink()
    elsewhere = f"cache={tmp_path / 'elsewhere'}"
    assert train(elsewhere, f"output={moved}")["test_rel_l2"] == found["test_rel_l2"]
    again = start(elsewhere, "mode=evaluate", f"checkpoint={one / 'checkpoints' / 'last'}")
    assert again["test_rel_l2"] == pytest.approx(found["test_rel_l2"], rel=1e-6)


def test_the_cache_is_not_asked_for_where_data_are_given(cache, tmp_path):
    folder = generate.mini_data(cache)
    nowhere = tmp_path / "nowhere"
    found = train(f"data.root={folder}", f"cache={nowhere}", f"output={tmp_path / 'run'}")
    assert found["test_rel_l2"] > 0
    with pytest.raises(FileNotFoundError, match=r"data\.root is not given.*smooth1\.mat"):
        train("scale=paper", f"cache={nowhere}", f"output={tmp_path / 'paper'}")
    assert not nowhere.exists()


def test_the_gradient_loss_is_learned_from_but_not_reported(cache, tmp_path):
    """In an epoch of one step the reported training error is that of the initial weights."""
    runs = {weight: tmp_path / f"{weight}" for weight in ("null", "0.1")}
    for weight, output in runs.items():
        train(
            f"training.gradient_loss={weight}",
            "training.batch_size=6",
            "training.lr=0.1",
            f"cache={cache}",
            f"output={output}",
        )
    without, with_it = (history(output) for output in runs.values())
    assert with_it[0]["train_rel_l2"] == without[0]["train_rel_l2"]
    assert with_it[1]["train_rel_l2"] != without[1]["train_rel_l2"]
    assert metrics(runs["0.1"])["test_rel_l2"] != metrics(runs["null"])["test_rel_l2"]


def test_trained_at_16_and_tested_at_32(tmp_path):
    for name, n, s in (("train_16", 6, 16), ("test_16", 3, 16), ("test_32", 3, 32)):
        tensors = {"x": torch.rand(n, s, s) > 0.5, "y": torch.rand(n, s, s)}
        torch.save(tensors, tmp_path / f"darcy_{name}.pt")
    output = tmp_path / "run"
    found = train(f"data.root={tmp_path}", f"output={output}", "model.unified_pos=false")
    assert found["data"] == "published"
    checkpoint = f"checkpoint={output / 'checkpoints' / 'last'}"
    finer = start("mode=evaluate", checkpoint, f"data.root={tmp_path / 'darcy_test_32.pt'}")
    assert finer["test_rel_l2"] != found["test_rel_l2"]
    (folder,) = (output / "evaluate").iterdir()
    assert folder.name.startswith("epoch0002_darcy_test_32_")
