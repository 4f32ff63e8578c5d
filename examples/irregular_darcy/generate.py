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
from pathlib import Path

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
from physicsnemo_cano import __version__
from physicsnemo_cano.datapipes.generation import (
    command_line,
    generate,
    made_by,
    refuse_finished,
    save_set,
)
from physicsnemo_cano.datapipes.matlab import write_matlab

FILE = "Darcy.mat"
SECONDS = 0.01  # a sample's time on one CPU core at full size, measured
SOLVER = "Darcy flow, linear triangles, log-normal permeability, zero on the boundary"
# One process: a second would take longer to start than the samples to solve.
MINI = ["--n-samples", "300", "--spacing", "0.062", "--workers", "1"]


@functools.cache
def problem(spacing):
    """The mesh, what draws a permeability on it, and the equation: once a process."""
    mesh = domain_mesh(spacing)
    return mesh, permeability_field(mesh), Darcy(mesh)


def draw_and_solve(rngs, spacing=SPACING):
    """Draw permeabilities and solve for the pressures.

    Parameters
    ----------
    rngs : list of numpy.random.Generator
        One a sample.
    spacing : float
        Of the mesh's nodes.

    Returns
    -------
    dict of ndarray
        ``c_field`` and ``u_field`` (B, N) of float32.
    """
    _, draw, equation = problem(spacing)
    permeabilities = [draw(rng) for rng in rngs]
    return {
        "c_field": np.array(permeabilities, dtype=np.float32),
        "u_field": np.array([equation.solve(a) for a in permeabilities], dtype=np.float32),
    }


def mini_data(cache):
    """The folder of the mini set, which is made in ``cache`` at the first call."""
    return made_by(main, MINI, cache, __version__)


def main(argv=None):
    """Run the command line."""
    parser = command_line(__doc__, n_samples=1200)
    parser.add_argument("--spacing", type=float, default=SPACING, help="of the mesh's nodes")
    args = parser.parse_args(argv)

    refuse_finished(parser, [args.out / FILE], args.out)
    mesh, _, _ = problem(args.spacing)
    print(
        f"{args.n_samples} samples of {mesh.nvertices} nodes, seed {args.seed}, into "
        f"{args.out / FILE}; {args.workers} process(es); about "
        f"{args.n_samples * SECONDS / args.workers:.0f} s. Interrupted, it continues from "
        f"{args.out / 'parts'}.",
        flush=True,
    )
    settings = {"version": __version__, "spacing": args.spacing}
    task = functools.partial(draw_and_solve, spacing=args.spacing)
    arrays = generate(task, args.n_samples, args.out, settings, args.seed, 50, args.workers)
    arrays |= {"MeshNodes": mesh.p, "MeshElements": mesh.t + 1.0}
    provenance = {
        "solver": SOLVER,
        "deviation": DEVIATION,
        "kappa": KAPPA,
        "seed": args.seed,
        "command": f"python examples/irregular_darcy/generate.py --n-samples {args.n_samples} "
        f"--out DIR --seed {args.seed} --spacing {args.spacing}",
        "version": __version__,
    }
    save_set(args.out, {FILE: functools.partial(write_matlab, arrays=arrays)}, provenance)
    print("done")


if __name__ == "__main__":
    main()
