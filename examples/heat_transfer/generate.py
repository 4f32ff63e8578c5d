# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Generate the heat transfer benchmark's data with the reference solver.

The layout is PhysGTO's: a HDF5 file a trajectory, listed in ``train.txt`` and ``test.txt``; see
``physicsnemo_cano/datapipes/physgto.py``. Each trajectory has a mesh of its own.

    python examples/heat_transfer/generate.py --n-samples 872 --out data/heat_transfer
"""

import sys
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))  # to run as a script

from examples.heat_transfer.solver import (
    FRAMES,
    INTERVAL,
    SIZE,
    SUBSTEPS,
    draw_conditions,
    simulate,
)
from physicsnemo_cano.datapipes.generator import TrajectoryGenerator, option

SIZES = 0.06, 0.07  # of the triangles, for 4900 nodes on average, as published


@dataclass(frozen=True)
class HeatSet(TrajectoryGenerator):
    """Conditions and the size of a mesh's triangles, and how the flow evolves."""

    n_samples: int = 872
    sizes: tuple = option(
        SIZES,
        metavar=("SMALLEST", "LARGEST"),
        help="of the triangles; each trajectory's is drawn between them",
    )
    frames: int = option(FRAMES, help="of a trajectory")
    interval: float = option(INTERVAL, help="time between frames")
    pulse: float = option(0.0, help="of the inflow, its amplitude")
    skip: int = option(0, help="frames before the first that is kept")

    solver = "Boussinesq flow round two hot cylinders, Taylor-Hood triangles, BDF2"
    published = 740, 132
    # A steady inflow soon makes a steady flow.
    mini_set = "--n-samples 90 --sizes 0.18 0.24 --interval 0.1 --frames 61 --pulse 0.3 --skip 20"

    @property
    def seconds(self):
        """Measured at full size."""
        duration = (self.skip + self.frames) * self.interval / (FRAMES * INTERVAL)
        return 80.0 * duration * (np.mean(SIZES) / np.mean(self.sizes)) ** 3

    def draw(self, rng):
        """Conditions and a size."""
        return draw_conditions(rng), rng.uniform(*self.sizes)

    def solve(self, drawn):
        """A trajectory, in steps that grow with the triangles, or shorter where it needs them."""
        conditions, size = drawn
        substeps = int(np.ceil(SUBSTEPS * self.interval / INTERVAL * SIZE / size))
        for shorter in (1, 2, 4):
            try:
                with np.errstate(over="ignore", invalid="ignore"):
                    found = simulate(
                        conditions,
                        self.frames,
                        self.interval,
                        size,
                        shorter * substeps,
                        pulse=self.pulse,
                        skip=self.skip,
                    )
                break
            except FloatingPointError:
                if shorter == 4:
                    raise
        return {
            "node_pos": found.points,
            "cells": found.cells,
            "node_type": found.node_type,
            "u": found.velocity[:, 0],
            "v": found.velocity[:, 1],
            "p": found.pressure,
            "T": found.temperature,
            "t": found.time[:, None],
            "conditions": np.array(astuple(conditions)),
        }


mini_data = HeatSet.mini_data

if __name__ == "__main__":
    HeatSet.main()
