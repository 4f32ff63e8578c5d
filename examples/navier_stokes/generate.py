# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Generate the Navier-Stokes benchmark's data with the reference solver.

The file is that which FNO (Li et al., 2021) publishes, ``NavierStokes_V1e-5_N<n>_T20.mat``, of
MATLAB's version 7.3: ``u`` (n, 64, 64, 20), vorticity at the times 1, 2, … 20.

    python examples/navier_stokes/generate.py --n-samples 1200 --out data/navier_stokes --workers 8
"""

import functools
import multiprocessing
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[2]))  # to run as a script

from examples.navier_stokes.solver import SCALE, VISCOSITY, forcing, initial_vorticity, solve
from physicsnemo_cano import __version__
from physicsnemo_cano.datapipes.generation import (
    command_line,
    generate,
    made_by,
    refuse_finished,
    save_set,
)
from physicsnemo_cano.datapipes.matlab import write_matlab

GRID = 256  # points an axis of the solver's grid
POINTS = 64  # of the data
TIMES = range(1, 21)
SECONDS = 9.0  # a sample's time on one CPU core on 256 × 256 points, measured
SOLVER = "2D vorticity equation, pseudo-spectral, 2/3 rule, integrating-factor RK4, float32"
MINI = ["--n-samples", "200", "--grid", "128"]


def draw_and_solve(rngs, grid=GRID, points=POINTS, device="cpu"):
    """Draw initial vorticities and solve for their flows.

    Parameters
    ----------
    rngs : list of numpy.random.Generator
        One a sample.
    grid : int
        Points an axis of the solver's grid.
    points : int
        Points an axis of the result, a divisor of `grid`.
    device : str
        Device of torch.

    Returns
    -------
    dict of ndarray
        ``u`` (B, points, points, 20), vorticity, of float32: after 20 units of time its rounding
        makes less than 1e-4 of the vorticity.
    """
    if multiprocessing.parent_process() is not None:
        torch.set_num_threads(1)  # processes fill the cores
    start = initial_vorticity(rngs, grid, dtype=torch.float32).to(device)
    vorticity = solve(start, forcing(grid), TIMES)  # (B, 20, grid, grid)
    stride = grid // points
    kept = vorticity[:, :, ::stride, ::stride].permute(0, 2, 3, 1)
    return {"u": kept.cpu().contiguous().numpy()}


def mini_data(cache):
    """The folder of the mini set, which is made in ``cache`` at the first call."""
    return made_by(main, MINI, cache, __version__)


def main(argv=None):
    """Run the command line."""
    parser = command_line(__doc__, n_samples=1200)
    parser.add_argument("--grid", type=int, default=GRID, help="the solver's points an axis")
    parser.add_argument("--points", type=int, default=POINTS, help="the data's points an axis")
    parser.add_argument("--batch-size", type=int, default=5, help="more fill a GPU")
    parser.add_argument("--device", default="cpu", help="of torch: cpu or cuda")
    args = parser.parse_args(argv)
    if args.points < 1 or args.grid % args.points or args.grid % 2 or args.grid < 64:
        parser.error("--grid must be even, at least 64 and a multiple of --points")

    output = args.out / f"NavierStokes_V1e-5_N{args.n_samples}_T{len(TIMES)}.mat"
    refuse_finished(parser, [output], args.out)
    workers = 1 if args.device.startswith("cuda") else args.workers
    # Points times steps.
    estimate = args.n_samples * SECONDS * (args.grid / GRID) ** 3 / workers
    print(
        f"{args.n_samples} samples on {args.grid} x {args.grid} points, of which "
        f"{args.points} x {args.points} are kept, seed {args.seed}, into {output}; "
        f"{workers} process(es) on {args.device}; about {estimate / 60:.0f} min if that is a CPU. "
        f"Interrupted, it continues from {args.out / 'parts'}.",
        flush=True,
    )

    task = functools.partial(draw_and_solve, grid=args.grid, points=args.points, device=args.device)
    settings = {
        "version": __version__,
        "viscosity": VISCOSITY,
        "scale": SCALE,
        "grid": args.grid,
        "points": args.points,
        "device": args.device,
    }
    arrays = generate(task, args.n_samples, args.out, settings, args.seed, args.batch_size, workers)
    provenance = {
        "solver": SOLVER,
        "viscosity": VISCOSITY,
        "seed": args.seed,
        "command": command(args),
        "version": __version__,
    }
    save_set(args.out, {output.name: functools.partial(write_matlab, arrays=arrays)}, provenance)
    print("done")


def command(args):
    """The command that gives this data, without the paths of this machine."""
    return (
        f"python examples/navier_stokes/generate.py --n-samples {args.n_samples} --out DIR "
        f"--seed {args.seed} --grid {args.grid} --points {args.points}"
    )


if __name__ == "__main__":
    main()
