# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Generate the elasticity benchmark's data with the reference solver.

The files are those that Geo-FNO (Li et al., 2023) publishes, samples last:
``Random_UnitCell_XY_10.npy`` (972, 2, n), the mesh's vertices, and ``Random_UnitCell_sigma_10.npy``
(972, n), von Mises' stress there in Pa.

    python examples/elasticity/generate.py --n-samples 1200 --out data/elasticity --workers 8
"""

import functools
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))  # to run as a script

from examples.elasticity import hyperelastic
from examples.elasticity.cell import cell_mesh, draw_void, void_radius
from physicsnemo_cano.datapipes.generator import Generator

TRACTION = 100.0  # Pa


@dataclass(frozen=True)
class ElasticitySet(Generator):
    """Cells with a void, and the stress in them."""

    n_samples: int = 1200

    solver = "finite elements (Q2): thin incompressible Rivlin-Saunders sheet, random void, pulled"
    files = ("Random_UnitCell_XY_10.npy", "Random_UnitCell_sigma_10.npy")
    constants: ClassVar = {"traction": TRACTION}
    mini_set = "--n-samples 200"
    seconds = 0.5  # measured

    def draw(self, rng):
        """A void."""
        return draw_void(rng)

    def solve(self, drawn):
        """The mesh around the void, and von Mises' stress."""
        mesh = cell_mesh(functools.partial(void_radius, drawn))
        cell = hyperelastic.solve(mesh, TRACTION)
        return {"points": np.float32(cell.points), "stress": np.float32(cell.stress)}

    def layout(self, arrays):
        """Samples last."""
        return [np.ascontiguousarray(np.moveaxis(a, 0, -1)) for a in arrays.values()]


mini_data = ElasticitySet.mini_data

if __name__ == "__main__":
    ElasticitySet.main()
