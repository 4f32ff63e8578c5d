# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Generate the bodies benchmark's data with the reference solver.

A folder as users have it: ``body_0000.vtp``, ... and ``cases.csv``, the direction of the stream of
each case. A file holds ``traction`` (F, 3) on its triangles, and as field data what `refine.py`
needs to make the body again. The stream's speed and the viscosity are 1.

    python examples/bodies/generate.py --n-samples 250 --out data/bodies
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

sys.path.insert(0, str(Path(__file__).parents[2]))  # to run as a script

from examples.bodies.shape import draw_body, draw_triangulation
from examples.bodies.solver import VISCOSITY, tractions
from physicsnemo_cano.datapipes.generator import MeshGenerator, option


@dataclass(frozen=True)
class BodySet(MeshGenerator):
    """Bodies, their triangulations and streams, and the tractions."""

    n_samples: int = 250
    points: tuple = option(
        (402, 2002), metavar=("FEWEST", "MOST"), help="of a mesh, whose faces are twice as many"
    )

    solver = "Stokes flow, single-layer potential, constant tractions on flat triangles"
    sample_file = "body_{:04d}.vtp"
    parameters = ("x", "y", "z")
    constants: ClassVar = {"viscosity": VISCOSITY, "speed": 1.0}
    mini_set = "--n-samples 250 --points 152 452"

    @property
    def seconds(self):
        """Measured at 400 to 2000 points, where the solution of the equations takes most."""
        return 10.0 * (sum(self.points) / 2404) ** 2.5

    def draw(self, rng):
        """A body, a mesh of the unit sphere and a direction."""
        direction = rng.normal(size=3)
        direction /= (direction @ direction) ** 0.5
        n_points = rng.integers(self.points[0], self.points[1] + 1)
        return draw_body(rng), draw_triangulation(rng, n_points), direction

    def solve(self, drawn):
        """The traction on the body."""
        body, (sphere, faces), direction = drawn
        return case(body, body.surface(sphere, faces), faces, direction)


def case(body, points, faces, direction):
    """What a file holds of a body, a mesh of it and a stream."""
    return {
        "points": points,
        "faces": faces,
        "traction": tractions(points[faces], [direction])[0],
        "parameters": direction,
        "waves": body.waves,
        "phases": body.phases,
        "stretch": body.stretch,
    }


mini_data = BodySet.mini_data

if __name__ == "__main__":
    BodySet.main()
