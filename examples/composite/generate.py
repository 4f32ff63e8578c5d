# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Generate the composite benchmark's data with the reference solver.

The files are those of NORM's authors (Chen et al., 2024): ``Composites.mat`` with ``T_field``, the
change of temperature in K, and ``D_field``, the length of the displacement in mm, (n, N) at the
nodes of one mesh; and ``Composites_LBO_basis.mat`` with the mesh alone, ``Points`` (N, 3) in m and
``Faces`` (M, 4), the tetrahedra's nodes, counted from 0. They are written as MATLAB's version 7.3
does, the fields in single precision.

    python examples/composite/generate.py --n-samples 500 --out data/composite
"""

import functools
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))  # to run as a script

from examples.composite.solver import SHAPE, Plate, plate_mesh, temperature_field
from physicsnemo_cano.datapipes.generator import Generator, option


@functools.cache
def problem(shape):
    """The mesh, its cells, what draws a temperature on it, and the equation: once a process."""
    mesh, cells = plate_mesh(shape)
    return mesh, cells, temperature_field(mesh), Plate(mesh)


@dataclass(frozen=True)
class CompositeSet(Generator):
    """Temperatures of a plate, and how it deforms."""

    n_samples: int = 500
    shape: tuple[int, int, int] = option(
        SHAPE, metavar=("ALONG", "ACROSS", "THROUGH"), help="elements of the mesh"
    )

    solver = (
        "linear thermoelasticity, quadratic tetrahedra, curved plate of two plies, one end clamped"
    )
    files = ("Composites.mat", "Composites_LBO_basis.mat")
    # One process: a second would take longer to start than the samples to solve.
    mini_set = "--n-samples 250 --shape 9 7 2 --workers 1"
    seconds = 0.07  # measured at full size
    batch_size = 50

    def draw(self, rng):
        """A temperature in K."""
        _, _, temperature, _ = problem(self.shape)
        return temperature(rng)

    def solve(self, drawn):
        """The length of the displacement in mm."""
        *_, plate = problem(self.shape)
        length = np.linalg.norm(1e3 * plate.solve(drawn), axis=-1)
        return {"T_field": np.float32(drawn), "D_field": np.float32(length)}

    def layout(self, arrays):
        """The fields, and the mesh that all samples have."""
        mesh, cells, *_ = problem(self.shape)
        return [arrays, {"Points": mesh.doflocs.T, "Faces": cells.astype(float)}]


mini_data = CompositeSet.mini_data

if __name__ == "__main__":
    CompositeSet.main()
