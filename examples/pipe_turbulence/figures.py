# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""The pipe turbulence benchmark's figures: the velocity on the mesh's own triangles."""

from pathlib import Path

from physicsnemo_cano.recipe import Results
from physicsnemo_cano.visualization import draw_summary, field_comparison, save


def draw(results: Results, folder: Path) -> None:
    """Draw all figures into a folder."""
    for title, index in (("median", results.median), ("worst", results.worst)):
        drawing = field_comparison(
            results.field(index, "embedding"),
            results.field(index, "target")[:, 0],
            results.predictions[index][:, 0],
            name=str(results.reader.targets[0]),
            coordinates=results.reader.coordinates,
            titles=("finite elements", results.metrics["model"]),
            triangles=results.reader.cells,
            size=(5.2, 3.2),
        )
        drawing.suptitle(f"relative L2 error {results.errors[index]:.4f}, {title} of the test set")
        save(drawing, folder / f"velocity_{title}.png")
    draw_summary(results, folder)
