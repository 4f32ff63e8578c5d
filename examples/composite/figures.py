# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""The composite benchmark's figures: temperature and deformation on the part's surface."""

from pathlib import Path

import pyvista

from physicsnemo_cano.datapipes import Composite
from physicsnemo_cano.recipe import Results
from physicsnemo_cano.visualization import draw_summary, save, surface_comparison

VERTICES = {3: pyvista.CellType.TRIANGLE, 4: pyvista.CellType.TETRA}


def draw(results: Results, folder: Path) -> None:
    """Draw all figures into a folder."""
    mesh = part(results.reader)
    for title, index in (("median", results.median), ("worst", results.worst)):
        drawing = surface_comparison(
            mesh,
            results.field(index, "target")[:, 0],
            results.predictions[index][:, 0],
            name=str(results.reader.targets[0]),
            titles=("finite elements", results.metrics["model"]),
        )
        drawing.suptitle(f"relative L2 error {results.errors[index]:.4f}, {title} of the test set")
        save(drawing, folder / f"deformation_{title}.png")
    draw_summary(results, folder)


def part(reader: Composite) -> pyvista.UnstructuredGrid:
    """The mesh of the part."""
    kind = VERTICES[reader.cells.shape[1]]
    points = reader.load(reader.indices[0])["embedding"].numpy()
    return pyvista.UnstructuredGrid({kind: reader.cells}, points)
