# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Generate the Navier-Stokes benchmark's data with the reference solver.

The file is that which FNO (Li et al., 2021) publishes, ``NavierStokes_V1e-5_N<n>_T20.mat``, of
MATLAB's version 7.3: ``u`` (n, 64, 64, 20), vorticity at the times 1, 2, … 20.

    python examples/navier_stokes/generate.py --n-samples 1200 --out data/navier_stokes --workers 8
"""

import multiprocessing
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch

sys.path.insert(0, str(Path(__file__).parents[2]))  # to run as a script

from examples.navier_stokes.solver import VISCOSITY, forcing, initial_vorticity, solve
from physicsnemo_cano.datapipes.generator import Generator, option

GRID = 256  # points an axis of the solver's grid
TIMES = range(1, 21)


@dataclass(frozen=True)
class NavierStokesSet(Generator):
    """Initial vorticities on the torus, and the flows from them.

    In single precision: after 20 units of time its rounding makes less than 1e-4 of the vorticity.
    """

    n_samples: int = 1200
    grid: int = option(GRID, help="the solver's points an axis")
    points: int = option(64, help="the data's points an axis")
    batch_size: int = option(5, help="more fill a GPU")
    device: str = option("cpu", help="of torch: cpu or cuda")

    solver = "2D vorticity equation, pseudo-spectral, 2/3 rule, integrating-factor RK4, float32"
    constants: ClassVar = {"viscosity": VISCOSITY}
    mini_set = "--n-samples 200 --grid 128"

    def __post_init__(self):
        super().__post_init__()
        if self.grid % self.points or self.grid % 2 or self.grid < 64:
            raise ValueError("--grid must be even, at least 64 and a multiple of --points")

    @property
    def files(self):
        """The published name says how many samples."""
        return (f"NavierStokes_V1e-5_N{self.n_samples}_T{len(TIMES)}.mat",)

    @property
    def seconds(self):
        """Measured at full size; points times steps."""
        return 9.0 * (self.grid / GRID) ** 3

    def draw(self, rng):
        """An initial vorticity."""
        return initial_vorticity([rng], self.grid, dtype=torch.float32)

    def solve_batch(self, drawn):
        """Vorticity at the times, on the data's points."""
        if multiprocessing.parent_process() is not None:
            torch.set_num_threads(1)  # processes fill the cores
        start = torch.cat(drawn).to(self.device)
        vorticity = solve(start, forcing(self.grid), TIMES)  # (B, 20, grid, grid)
        stride = self.grid // self.points
        kept = vorticity[:, :, ::stride, ::stride].permute(0, 2, 3, 1)
        return [{"u": u} for u in kept.cpu().contiguous().numpy()]

    def layout(self, arrays):
        """All in one file."""
        return [arrays]


mini_data = NavierStokesSet.mini_data

if __name__ == "__main__":
    NavierStokesSet.main()
