# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Generate the pipe benchmark's data with the reference solver.

The files are those that Geo-FNO (Li et al., 2023) publishes: ``Pipe_X.npy`` and ``Pipe_Y.npy``
(n, 129, 129), the mesh, and ``Pipe_Q.npy`` (n, 2, 129, 129), the velocities, of which the first
channel, the horizontal one, is the benchmark's. The first index runs along the pipe, the second
upwards.

    python examples/pipe/generate.py --n-samples 1200 --out data/pipe --workers 8
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from scipy.interpolate import CubicHermiteSpline

sys.path.insert(0, str(Path(__file__).parents[2]))  # to run as a script

from examples.pipe import stream
from physicsnemo_cano.datapipes.generator import Generator, option

NODES = np.linspace(0, stream.LENGTH, 5)  # of the centreline
ELEMENTS = (96, 24)  # along and across


@dataclass(frozen=True)
class PipeSet(Generator):
    """Pipes about random centrelines, and the flows in them."""

    n_samples: int = 1200
    shape: tuple[int, int] = option((129, 129), metavar=("NI", "NJ"))
    elements: tuple[int, int] = option(ELEMENTS, metavar=("NI", "NJ"))

    solver = "steady Navier-Stokes, stream function in Bogner-Fox-Schmit elements, Newton"
    files = ("Pipe_X.npy", "Pipe_Y.npy", "Pipe_Q.npy")
    constants: ClassVar = {"viscosity": stream.VISCOSITY}
    mini_set = "--n-samples 200 --shape 65 17 --elements 64 16"

    def __post_init__(self):
        super().__post_init__()
        if self.elements[0] % 4:
            raise ValueError(f"--elements: expected a multiple of 4 along, got {self.elements[0]}")

    @property
    def seconds(self):
        """Measured at full size; the factorisation's share grows faster than the elements."""
        return 3.0 * (np.prod(self.elements) / np.prod(ELEMENTS)) ** 1.5

    def draw(self, rng):
        """A centreline: four cubics through 5 nodes of height U[-2, 2] and slope U[-1, 1]."""
        heights = rng.uniform(-2, 2, NODES.size)
        return CubicHermiteSpline(NODES, heights, rng.uniform(-1, 1, NODES.size))

    def solve(self, drawn):
        """The flow on a grid."""
        flow = stream.solve(drawn, self.elements).on_grid(self.shape)
        x, y, u, v = np.array(flow, dtype=np.float32)
        return {"x": x, "y": y, "q": np.stack([u, v])}


mini_data = PipeSet.mini_data

if __name__ == "__main__":
    PipeSet.main()
