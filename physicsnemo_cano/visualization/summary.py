# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""The figures that every benchmark ends with."""

from __future__ import annotations

from pathlib import Path

from physicsnemo_cano.visualization.clusters import draw_clusters
from physicsnemo_cano.visualization.errors import error_distribution, loss_curve
from physicsnemo_cano.visualization.fields import Window
from physicsnemo_cano.visualization.style import save


def draw_summary(results, folder: Path, window: Window | None = None) -> None:
    """Draw the test set's errors, the training, and the last layer's clusters, as far as known.

    Parameters
    ----------
    results : Results
        What the recipe hands to a benchmark's figures.
    folder : Path
        Where ``errors.png``, ``training.png`` and ``clusters.png`` go.
    window : Window, optional
        Part of the plane that the cluster maps show; all by default.
    """
    baseline = results.metrics["mean_predictor_rel_l2"]
    save(error_distribution(results.errors, baseline=baseline), folder / "errors.png")
    if results.history:
        save(loss_curve(results.history, baseline=baseline), folder / "training.png")
    if results.clusters is not None and len(results.reader.coordinates) == 2:
        points = results.field(results.median, "embedding")
        names = results.reader.coordinates
        maps = draw_clusters(points, results.clusters, coordinates=names, window=window)
        save(maps, folder / "clusters.png")
