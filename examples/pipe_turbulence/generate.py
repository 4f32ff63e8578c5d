# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Generate the pipe turbulence benchmark's data with the reference solver.

The file is that of NORM's authors (Chen et al., 2024), ``Turbulence.mat``: ``Input`` and
``Output``, the length of the velocity at a time and a step later, (n, N) at the nodes of one mesh;
``nodes`` (N, 2); ``elements`` (M, 3), the triangles' nodes, counted from 1. It is written as
MATLAB's version 7.3 does, the fields in single precision. Ten pairs after one another are of one
run.

    python examples/pipe_turbulence/generate.py --n-runs 40 --out data/pipe_turbulence
"""

import functools
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))  # to run as a script

from examples.fem.flow import data_mesh
from examples.pipe_turbulence.solver import (
    PAIRS,
    SIZE,
    STEP,
    VISCOSITY,
    Pipe,
    draw_inflow,
    pair_times,
    pipe_mesh,
)
from physicsnemo_cano.datapipes.generator import Generator, option


@functools.cache
def problem(size, step):
    """The mesh and the flow's matrices: once a process."""
    mesh = pipe_mesh(size)
    return mesh, Pipe(mesh, step)


@dataclass(frozen=True)
class PipeTurbulenceSet(Generator):
    """Inflows of a pipe, and the flow in it."""

    n_runs: int = option(40, help=f"of {PAIRS} samples each")
    size: float = option(SIZE, help="of the triangles")
    step: float = option(STEP, help="of the time")

    solver = "unsteady incompressible flow, Taylor-Hood triangles, pipe with an obstacle and a bend"
    files = ("Turbulence.mat",)
    constants: ClassVar = {"viscosity": VISCOSITY}
    mini_set = "--n-runs 30 --size 0.18 --step 0.005"

    @property
    def seconds(self):
        """Of a run, measured at full size."""
        return 20 * STEP / self.step * (SIZE / self.size) ** 2

    def draw(self, rng):
        """An inflow."""
        return draw_inflow(rng)

    def solve(self, drawn):
        """The length of the velocity at the pairs of times."""
        _, pipe = problem(self.size, self.step)
        speeds = np.float32(np.linalg.norm(pipe.run(drawn, pair_times(PAIRS)), axis=1))
        return {"Input": speeds[::2], "Output": speeds[1::2]}

    def layout(self, arrays):
        """The pairs of all runs, with the mesh that they have."""
        points, cells = data_mesh(problem(self.size, self.step)[0])
        fields = {name: pairs.reshape(-1, len(points)) for name, pairs in arrays.items()}
        return [fields | {"nodes": points, "elements": cells + 1.0}]


mini_data = PipeTurbulenceSet.mini_data

if __name__ == "__main__":
    PipeTurbulenceSet.main()
