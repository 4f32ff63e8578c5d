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
from pathlib import Path

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
from physicsnemo_cano import __version__
from physicsnemo_cano.datapipes.generation import (
    command_line,
    generate,
    made_by,
    refuse_finished,
    save_set,
)
from physicsnemo_cano.datapipes.matlab import write_matlab

FILE = "Turbulence.mat"
SECONDS = 20  # a run's time on one CPU core at full size, measured
SOLVER = "unsteady incompressible flow, Taylor-Hood triangles, pipe with an obstacle and a bend"
MINI = ["--n-runs", "30", "--size", "0.18", "--step", "0.005"]


@functools.cache
def problem(size, step):
    """The mesh and the flow's matrices: once a process."""
    mesh = pipe_mesh(size)
    return mesh, Pipe(mesh, step)


def draw_and_solve(rngs, size=SIZE, step=STEP):
    """Draw inflows and solve for the flows.

    Parameters
    ----------
    rngs : list of numpy.random.Generator
        One a run.
    size, step : float
        Of the triangles and of the time.

    Returns
    -------
    dict of ndarray
        ``Input`` and ``Output`` (B, PAIRS, N) of float32.
    """
    _, pipe = problem(size, step)
    runs = [pipe.run(draw_inflow(rng), pair_times(PAIRS)) for rng in rngs]
    speeds = np.linalg.norm(runs, axis=2).astype(np.float32)
    return {"Input": speeds[:, ::2], "Output": speeds[:, 1::2]}


def mini_data(cache):
    """The folder of the mini set, which is made in ``cache`` at the first call."""
    return made_by(main, MINI, cache, __version__)


def main(argv=None):
    """Run the command line."""
    parser = command_line(__doc__)
    parser.add_argument("--n-runs", type=int, default=40, help=f"of {PAIRS} samples each")
    parser.add_argument("--size", type=float, default=SIZE, help="of the triangles")
    parser.add_argument("--step", type=float, default=STEP, help="of the time")
    args = parser.parse_args(argv)

    refuse_finished(parser, [args.out / FILE], args.out)
    mesh, _ = problem(args.size, args.step)
    points, cells = data_mesh(mesh)
    seconds = args.n_runs * SECONDS * STEP / args.step * (SIZE / args.size) ** 2
    print(
        f"{args.n_runs} runs of {PAIRS} samples of {len(points)} nodes, seed {args.seed}, into "
        f"{args.out / FILE}; {args.workers} process(es); about {seconds / args.workers:.0f} s. "
        f"Interrupted, it continues from {args.out / 'parts'}.",
        flush=True,
    )
    settings = {"version": __version__, "size": args.size, "step": args.step}
    task = functools.partial(draw_and_solve, size=args.size, step=args.step)
    runs = generate(task, args.n_runs, args.out, settings, args.seed, 1, args.workers)
    arrays = {name: field.reshape(-1, len(points)) for name, field in runs.items()}
    arrays |= {"nodes": points, "elements": cells + 1.0}
    provenance = {
        "solver": SOLVER,
        "viscosity": VISCOSITY,
        "seed": args.seed,
        "command": f"python examples/pipe_turbulence/generate.py --n-runs {args.n_runs} --out DIR "
        f"--seed {args.seed} --size {args.size} --step {args.step}",
        "version": __version__,
    }
    save_set(args.out, {FILE: functools.partial(write_matlab, arrays=arrays)}, provenance)
    print("done")


if __name__ == "__main__":
    main()
