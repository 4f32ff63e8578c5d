# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""The plasticity benchmark's figures: the deformed block in the course of the pressing."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from physicsnemo_cano.recipe import Results
from physicsnemo_cano.visualization import (
    draw_summary,
    figure,
    save,
    show_field,
)
from physicsnemo_cano.visualization.style import TRUTH, label

TIMES = (4, 9, 19)  # a quarter, half and all of the die's way


def draw(results: Results, folder: Path) -> None:
    """Draw all figures into a folder."""
    for title, index in (("median", results.median), ("worst", results.worst)):
        block = deformed_block(results, index)
        block.suptitle(f"relative L2 error {results.errors[index]:.5f}, {title} of the test set")
        save(block, folder / f"block_{title}.png")
    draw_summary(results, folder)


def deformed_block(results: Results, index: int) -> Figure:
    """The deformed mesh: solution, prediction and the prediction's error, a row a time.

    The first two are coloured by the length of the displacement, with one scale, each on its own
    positions; the third, on the solution's, by the length of the displacement's error.
    """
    sample, _ = results.reader[index]
    shape = (*results.reader.spatial_shape, -1, 4)
    series = (sample["target"].numpy(), results.predictions[index])
    truth, prediction = (np.moveaxis(s.reshape(shape), 2, 0) for s in series)
    lengths = [np.linalg.norm(field[..., 2:], axis=-1) for field in (truth, prediction)]
    error = np.linalg.norm((prediction - truth)[..., 2:], axis=-1)
    # The same colours for 99.5 % of the error's values; a few nodes would fade all else.
    scales = (lengths[0].max(), lengths[0].max(), np.quantile(error[list(TIMES)], 0.995))
    columns = (
        ("elastoplastic block", truth, lengths[0], "viridis"),
        (results.metrics["model"], prediction, lengths[1], "viridis"),
        ("error", truth, error, "magma_r"),
    )
    drawing, panels = figure(len(TIMES), 3, size=(4.8, 1.9), sharex=True, sharey=True)
    for (name, field, values, cmap), axes, scale in zip(columns, panels.T, scales, strict=True):
        for panel, time in zip(axes, TIMES, strict=True):
            mesh = field[time, ..., :2]
            image = show_field(panel, mesh, values[time], cmap=cmap, limits=(0.0, float(scale)))
            for lines in (mesh[::2], mesh[:, ::2].swapaxes(0, 1)):
                panel.plot(lines[..., 0].T, lines[..., 1].T, color=TRUTH, linewidth=0.3, alpha=0.6)
            label(panel, results.reader.coordinates)
            panel.label_outer()
        axes[0].set_title(name)
        bar = drawing.colorbar(image, ax=axes.tolist(), location="bottom", aspect=40, pad=0.02)
        bar.set_label("length of the displacement [mm]" if name != "error" else "its error [mm]")
    for panel, time in zip(panels[:, 0], TIMES, strict=True):
        share = sample["times"][time]
        panel.text(0.02, 0.96, f"{share:.0%} of the way", transform=panel.transAxes, va="top")
    reach = np.concatenate([truth, prediction])[..., :2].reshape(-1, 2)
    low, high = reach.min(0), reach.max(0)
    panel.set_xlim(low[0] - 1, high[0] + 1)
    panel.set_ylim(low[1] - 1, high[1] + 5)  # with space for the text
    return drawing
