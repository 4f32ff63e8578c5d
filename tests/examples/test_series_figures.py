# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""The figures of the benchmarks whose target is a series."""

import importlib

import matplotlib.pyplot as plt
import numpy as np
import pytest

from examples.icp_plasma import generate
from physicsnemo_cano.visualization import error_in_time
from tests.recipe.helpers import train, write_block, write_torus

FIGURES = {
    "navier_stokes": "clusters error_in_time errors training vorticity_median vorticity_worst",
    "navier_stokes_rollout": (
        "clusters error_in_time errors horizons training vorticity_median vorticity_worst"
    ),
    "icp_plasma": (
        "T_e_median T_e_worst T_median T_worst clusters error_in_time errors horizons n_e_median "
        "n_e_worst training v_median v_worst"
    ),
    "plasticity": "block_median block_worst clusters errors training",
}


def write_plasma(folder):
    options = ["--n-samples", "15", "--spacing", "0.25", "--frames", "12", "--workers", "1"]
    generate.PlasmaSet.main([*options, "--out", str(folder)])
    return folder


@pytest.mark.parametrize(
    ("benchmark", "write"),
    [
        ("navier_stokes", write_torus),
        ("navier_stokes_rollout", write_torus),
        ("icp_plasma", write_plasma),
        ("plasticity", write_block),
    ],
)
def test_the_figures_are_drawn(benchmark, write, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    output = tmp_path / "run"
    draw = importlib.import_module(f"examples.{benchmark}.figures").draw
    overrides = ("training.epochs=1", *(["model.ref=2"] if write is write_torus else []))
    train(write(data), output, *overrides, figures=draw, benchmark=benchmark)
    drawn = {file.stem: file for file in (output / "figures").glob("*.png")}
    assert sorted(drawn) == FIGURES[benchmark].split()
    for file in drawn.values():
        assert plt.imread(file)[..., :3].std() > 0.02  # not blank


def test_error_in_time_is_each_frames(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    seen = []

    def figures(results, folder):
        seen.append((error_in_time(results, np.arange(11, 21), "t").axes[0].lines, results))

    train(
        write_torus(data),
        tmp_path / "run",
        "training.epochs=1",
        "model.ref=2",
        figures=figures,
        benchmark="navier_stokes",
    )
    ((mean, repeated), results) = seen[0]
    first = []
    for index in range(3):
        last, target = results.field(index, "fx")[..., -1], results.field(index, "target")[..., 0]
        first.append(np.linalg.norm(last - target) / np.linalg.norm(target))
    assert repeated.get_ydata()[0] == pytest.approx(np.mean(first))
    np.testing.assert_allclose(mean.get_ydata(), results.frame_errors().mean(0))
    assert mean.get_xdata().tolist() == list(range(11, 21))
