# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""The bodies benchmark's figures: length of the traction on the body, and the drag."""

import json
from pathlib import Path

import numpy as np

from physicsnemo_cano.integrations.mesh_files import read_mesh
from physicsnemo_cano.recipe import Results
from physicsnemo_cano.visualization import draw_summary, save, surface_comparison
from physicsnemo_cano.visualization.style import MODEL, MUTED, figure, label, plain


def draw(results: Results, folder: Path) -> None:
    """Draw all figures into a folder, and write the drag's errors beside it."""
    for title, index in (("median", results.median), ("worst", results.worst)):
        drawing = surface_comparison(
            read_mesh(case_of(results, index).file),
            np.linalg.norm(results.field(index, "target"), axis=1),
            np.linalg.norm(results.predictions[index], axis=1),
            name="|f| / (μU/R)",
            titles=("boundary elements", results.metrics["model"]),
        )
        drawing.suptitle(f"relative L2 error {results.errors[index]:.4f}, {title} of the test set")
        save(drawing, folder / f"traction_{title}.png")
    solved, predicted = drags(results)
    save(parity(solved, predicted, results.metrics["model"]), folder / "drag.png")
    scores = drag_scores(solved, predicted)
    (folder.parent / "drag.json").write_text(json.dumps(scores, indent=2) + "\n")
    draw_summary(results, folder)


def case_of(results, index):
    """The case of a test sample."""
    return results.reader.cases[results.reader.indices[index]]


def drags(results):
    """Drag of every test sample, solved and predicted, over that of the unit sphere: (n,) each."""
    found = []
    for index, prediction in enumerate(results.predictions):
        sample, _ = results.reader[index]
        direction = sample["fx"][0, -3:].double().numpy()
        areas = read_mesh(case_of(results, index).file).compute_cell_sizes()["Area"]
        both = np.stack([sample["target"].numpy(), prediction]).astype(float)
        found.append(areas @ (both @ direction).T / (6 * np.pi))
    return np.array(found).T


def drag_scores(solved, predicted):
    """Coefficient of determination, and mean and largest relative error."""
    relative = np.abs(predicted / solved - 1)
    r2 = 1 - ((predicted - solved) ** 2).sum() / ((solved - solved.mean()) ** 2).sum()
    return {"r2": r2, "mean_error": relative.mean(), "largest_error": relative.max()}


def parity(solved, predicted, model):
    """Predicted drag over the solved."""
    drawing, ((axes,),) = figure(size=(4.4, 4.2))
    low, high = min(solved.min(), predicted.min()), max(solved.max(), predicted.max())
    axes.plot([low, high], [low, high], color=MUTED, linewidth=1)
    axes.scatter(solved, predicted, s=16, color=MODEL, alpha=0.8, linewidths=0)
    axes.set_aspect("equal")
    label(axes, ("drag / 6πμRU, boundary elements", f"drag / 6πμRU, {model}"))
    scores = drag_scores(solved, predicted)
    axes.set_title(f"R² {scores['r2']:.4f}, mean error {scores['mean_error']:.2%}")
    plain(axes)
    return drawing
