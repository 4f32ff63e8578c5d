# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Generate the plasticity benchmark's data with the reference solver.

The file is that which Geo-FNO (Li et al., 2023) publishes, ``plas_N<n>_T20.mat``, of MATLAB's
version 7.3: ``input`` (n, 101), heights of the die over the block, and ``output``
(n, 101, 31, 20, 4), positions (x, y) and displacements (x, y) of the block's nodes at 20 times,
all in mm.

    python examples/plasticity/generate.py --n-samples 987 --out data/plasticity --workers 8
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from scipy.interpolate import CubicSpline

sys.path.insert(0, str(Path(__file__).parents[2]))  # to run as a script

from examples.plasticity.solver import (
    HARDENING,
    LENGTH,
    SHAPE,
    STEPS,
    YIELD,
    NotConverged,
    press,
    rectangle,
)
from physicsnemo_cano.datapipes.generator import Generator, option

KNOTS = np.linspace(-10, 60, 8)  # mm; the block bulges beyond its 50 mm
RELIEF = 4.0  # mm; the die's heights at the knots are uniform from 0 to it


@dataclass(frozen=True)
class PlasticitySet(Generator):
    """Dies, and the block that they are pressed into."""

    n_samples: int = 987
    shape: tuple[int, int] = option(SHAPE, metavar=("NI", "NJ"))

    solver = (
        "plane strain, finite elastoplasticity (Hencky, von Mises, exponential return), bilinear "
        "elements of mean dilatation, frictionless contact by an active set"
    )
    constants: ClassVar = {"yield": YIELD, "hardening": HARDENING}
    mini_set = "--n-samples 100 --shape 51 16"
    attempts = 5

    def __post_init__(self):
        super().__post_init__()
        if min(self.shape) < 3:
            raise ValueError("--shape needs at least 3 nodes each way")

    @property
    def files(self):
        """The published name says how many samples."""
        return (f"plas_N{self.n_samples}_T{STEPS}.mat",)

    @property
    def seconds(self):
        """Measured, also the power: a factorisation's, and more steps to converge."""
        return 25.0 * (np.prod(self.shape) / np.prod(SHAPE)) ** 1.6

    def draw(self, rng):
        """A die: the profile that `press` takes, a cubic spline whose lowest point is 0."""
        spline = CubicSpline(KNOTS, rng.uniform(0, RELIEF, len(KNOTS)))
        turns = spline.derivative().roots(extrapolate=False)
        candidates = np.concatenate([[0, LENGTH], turns[(turns > 0) & (turns < LENGTH)]])
        lowest = spline(candidates).min()
        return lambda x, k: spline(x, k) - (lowest if k == 0 else 0)

    def solve(self, drawn):
        """Heights of the die; positions and displacements of the block's nodes."""
        nodes = rectangle(self.shape)[0].reshape(*self.shape, 1, 2)
        try:
            positions = np.moveaxis(press(drawn, self.shape), 0, 2)  # (ni, nj, 20, 2)
        except NotConverged:
            return None
        return {
            "input": np.float32(drawn(nodes[:, 0, 0, 0], 0)),
            "output": np.float32(np.concatenate([positions, positions - nodes], axis=-1)),
        }

    def layout(self, arrays):
        """All in one file."""
        return [arrays]


mini_data = PlasticitySet.mini_data

if __name__ == "__main__":
    PlasticitySet.main()
