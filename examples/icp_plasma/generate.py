# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Generate the ICP plasma benchmark's data with the reduced reference solver.

The layout is PhysGTO's: a HDF5 file a trajectory, listed in ``train.txt`` and ``test.txt``; see
``physicsnemo_cano/datapipes/physgto.py``.

    python examples/icp_plasma/generate.py --n-samples 649 --out data/icp_plasma
"""

import functools
import sys
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))  # to run as a script

from examples.icp_plasma.solver import (
    FRAMES,
    INTERVAL,
    SPACING,
    SUBSTEPS,
    draw_conditions,
    inflow,
    node_types,
    reactor,
    simulate,
)
from physicsnemo_cano.datapipes.generator import TrajectoryGenerator, option


@functools.cache
def problem(spacing):
    """The mesh, the kinds of its nodes and the flow of gas: once a process."""
    mesh = reactor(spacing)
    return mesh, node_types(mesh), inflow(mesh)


@dataclass(frozen=True)
class PlasmaSet(TrajectoryGenerator):
    """Conditions of a reactor, and how its plasma evolves."""

    n_samples: int = 649
    spacing: float = option(SPACING, help="of the mesh's nodes")
    frames: int = option(FRAMES, help="of a trajectory")

    solver = "inductively coupled plasma, reduced model, linear triangles, second order in time"
    constants: ClassVar = {"interval": INTERVAL, "substeps": SUBSTEPS}
    published = 499, 150
    # One process: a second would take longer to start than the samples to solve.
    mini_set = "--n-samples 80 --spacing 0.075 --frames 61 --workers 1"

    @property
    def seconds(self):
        """Measured at full size."""
        return 2.0 * self.frames / FRAMES

    def draw(self, rng):
        """Conditions."""
        return draw_conditions(rng)

    def solve(self, drawn):
        """A trajectory."""
        mesh, kinds, flow = problem(self.spacing)
        return simulate(mesh, flow, drawn, self.frames) | {
            "node_pos": mesh.p.T,
            "cells": mesh.t.T,
            "node_type": kinds,
            "conditions": np.array(astuple(drawn)),
        }


mini_data = PlasmaSet.mini_data

if __name__ == "__main__":
    PlasmaSet.main()
