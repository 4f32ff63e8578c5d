# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Generate the Darcy benchmark's data with the reference solver.

The files are those of FNO's authors (Li et al., 2021): ``piececonst_r421_N1024_smooth1.mat`` for
training and ``piececonst_r421_N1024_smooth2.mat`` for testing, each with ``coeff``, the
permeability, and ``sol``, the pressure, (n, 421, 421) at the nodes of a grid on the unit square.
They are written as MATLAB's version 7.3 does, in single precision.

    python examples/darcy/generate.py --out data/darcy --workers 8
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))  # to run as a script

from examples.darcy.solver import HIGH, LOW, draw_permeability, solve_darcy
from physicsnemo_cano.datapipes.generator import Generator, option

NODES = 421


@dataclass(frozen=True)
class DarcySet(Generator):
    """Permeabilities of two values, and the pressures."""

    n_train: int = 1000
    n_test: int = 200
    nodes: int = option(NODES, help="of an axis")

    solver = "Darcy flow, finite volumes, harmonic means; permeability 12 or 3 by a Gaussian's sign"
    files = ("piececonst_r421_N1024_smooth1.mat", "piececonst_r421_N1024_smooth2.mat")
    constants: ClassVar = {"permeability": [LOW, HIGH]}
    # One process: a second would take longer to start than the samples to solve.
    mini_set = "--n-train 400 --n-test 100 --nodes 85 --workers 1"
    batch_size = 10

    @property
    def seconds(self):
        """Measured at full size; the elimination's work is the unknowns to the power 3/2."""
        return 1.2 * (self.nodes / NODES) ** 3

    def draw(self, rng):
        """A permeability."""
        return draw_permeability(rng, self.nodes)

    def solve(self, drawn):
        """The pressure."""
        return {"coeff": np.float32(drawn), "sol": np.float32(solve_darcy(drawn))}

    def layout(self, arrays):
        """The first samples are for training."""
        n = self.n_train
        return [{k: a[part] for k, a in arrays.items()} for part in (np.s_[:n], np.s_[n:])]


mini_data = DarcySet.mini_data

if __name__ == "__main__":
    DarcySet.main()
