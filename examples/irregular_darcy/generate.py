# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Generate the irregular Darcy benchmark's data with the reference solver.

The file is that of NORM's authors (Chen et al., 2024), ``Darcy.mat``: ``c_field``, the
permeability, and ``u_field``, the pressure, (n, N) at the nodes of one mesh; ``MeshNodes`` (2, N);
``MeshElements`` (3, M), the triangles' nodes, counted from 1. It is written as MATLAB's version
7.3 does, the fields in single precision.

    python examples/irregular_darcy/generate.py --n-samples 1200 --out data/irregular_darcy
"""

import functools
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))  # to run as a script

from examples.irregular_darcy.solver import (
    DEVIATION,
    KAPPA,
    SPACING,
    Darcy,
    domain_mesh,
    permeability_field,
)
from physicsnemo_cano.datapipes.generator import Generator, option


@functools.cache
def problem(spacing):
    """The mesh, what draws a permeability on it, and the equation: once a process."""
    mesh = domain_mesh(spacing)
    return mesh, permeability_field(mesh), Darcy(mesh)


@dataclass(frozen=True)
class IrregularDarcySet(Generator):
    """Permeabilities of an irregular domain, and the pressures."""

    n_samples: int = 1200
    spacing: float = option(SPACING, help="of the mesh's nodes")

    solver = "Darcy flow, linear triangles, log-normal permeability, zero on the boundary"
    files = ("Darcy.mat",)
    constants: ClassVar = {"deviation": DEVIATION, "kappa": KAPPA}
    # One process: a second would take longer to start than the samples to solve.
    mini_set = "--n-samples 300 --spacing 0.062 --workers 1"
    seconds = 0.01  # measured at full size
    batch_size = 50

    def draw(self, rng):
        """A permeability."""
        _, permeability, _ = problem(self.spacing)
        return permeability(rng)

    def solve(self, drawn):
        """The pressure."""
        _, _, equation = problem(self.spacing)
        return {"c_field": np.float32(drawn), "u_field": np.float32(equation.solve(drawn))}

    def layout(self, arrays):
        """The fields with the mesh that all samples have."""
        mesh, _, _ = problem(self.spacing)
        return [arrays | {"MeshNodes": mesh.p, "MeshElements": mesh.t + 1.0}]


mini_data = IrregularDarcySet.mini_data

if __name__ == "__main__":
    IrregularDarcySet.main()
