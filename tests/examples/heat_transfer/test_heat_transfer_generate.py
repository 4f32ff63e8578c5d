# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

import importlib
from dataclasses import astuple

import matplotlib.pyplot as plt
import numpy as np
import pytest

from examples.heat_transfer import generate
from examples.heat_transfer.solver import draw_conditions, simulate
from physicsnemo_cano.datapipes import HeatTransfer
from physicsnemo_cano.datapipes.generation import sample_rng
from tests.recipe.helpers import train


def test_the_reader_finds_the_solvers_fields_on_a_mesh_of_each(tiny_set):
    folder = tiny_set("heat_transfer")
    train, test = HeatTransfer(folder), HeatTransfer(folder, "test")
    assert (train.source, len(train), len(test)) == ("generated", 4, 1)
    assert len(set(train.sizes() + test.sizes())) == 5
    rng = sample_rng(3, 4)
    conditions, size = draw_conditions(rng), rng.uniform(0.2, 0.35)
    found = simulate(conditions, 12, 0.1, size, int(np.ceil(40 * 0.075 / size)), pulse=0.3, skip=2)
    sample, _ = test[0]
    np.testing.assert_array_equal(test.cells(0), found.cells)
    np.testing.assert_allclose(sample["embedding"], found.points, rtol=1e-6)
    frames = found.velocity.transpose(2, 0, 1).reshape(len(found.points), -1)
    np.testing.assert_allclose(sample["fx"][:, :10], frames[:, :10], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(sample["target"], frames[:, 10:], rtol=1e-6, atol=1e-7)
    kinds = np.eye(5)[found.node_type]
    np.testing.assert_array_equal(sample["fx"][:, 10:15], kinds)
    np.testing.assert_allclose(sample["fx"][0, 15:], astuple(conditions), rtol=1e-6)


def test_a_flow_that_blows_up_is_solved_in_shorter_steps(monkeypatch):
    asked = []

    def fragile(conditions, frames, interval, size, substeps, **options):
        asked.append(substeps)
        raise FloatingPointError

    monkeypatch.setattr(generate, "simulate", fragile)
    with pytest.raises(FloatingPointError):
        generate.HeatSet().solve((None, 0.075))
    assert asked == [20, 40, 80]


def test_figures_are_drawn_of_clouds_that_differ(tiny_set, tmp_path):
    folder = tiny_set("heat_transfer")
    draw = importlib.import_module("examples.heat_transfer.figures").draw
    options = ("data.n_train=4", "data.n_test=1", "training.epochs=1", "training.batch_size=2")
    found = train(folder, tmp_path, *options, figures=draw, benchmark="heat_transfer")
    assert 0 < found["test_rel_l2"] < 20
    drawn = {file.stem: file for file in (tmp_path / "figures").glob("*.png")}
    fields = [f"{name}_{title}" for name in "uv" for title in ("median", "worst")]
    others = ["clusters", "error_in_time", "errors", "horizons", "training"]
    assert sorted(drawn) == others + fields
    for file in drawn.values():
        assert plt.imread(file)[..., :3].std() > 0.02  # not blank
