# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Generate the heat transfer benchmark's data with the reference solver.

The layout is PhysGTO's: a HDF5 file a trajectory, listed in ``train.txt`` and ``test.txt``; see
``physicsnemo_cano/datapipes/physgto.py``. Each trajectory has a mesh of its own.

    python examples/heat_transfer/generate.py --n-samples 872 --out data/heat_transfer
"""

import functools
import sys
from dataclasses import astuple
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
from physicsnemo_cano import __version__
from physicsnemo_cano.datapipes.generation import (
    command_line,
    generate,
    made_by,
    refuse_finished,
    save_new,
    save_set,
)
from physicsnemo_cano.datapipes.physgto import LISTS, file_name, list_writers, write_trajectory
from physicsnemo_cano.datapipes.reader import parts_of

SECONDS = 120.0  # a sample's time on one CPU core, from 60 frames of 3719 nodes
PUBLISHED = 740, 132  # trajectories for training and for testing
SIZES = 0.06, 0.07  # of the triangles, for 4700 nodes on average; published 4887
SOLVER = "Boussinesq flow round two hot cylinders, Taylor-Hood triangles, BDF2"
MINI = ["--n-samples", "90", "--sizes", "0.18", "0.24", "--interval", "0.1", "--frames", "61"]
# A steady inflow soon makes a steady flow.
MINI += ["--pulse", "0.3", "--skip", "20", "--workers", "1"]


def solve(conditions, size, frames, interval, **options):
    """A `Trajectory` in steps that grow with the triangles, or shorter where it needs them."""
    substeps = int(np.ceil(SUBSTEPS * interval / INTERVAL * SIZE / size))
    for shorter in (1, 2):
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                return simulate(conditions, frames, interval, size, shorter * substeps, **options)
        except FloatingPointError:
            continue
    return simulate(conditions, frames, interval, size, 4 * substeps, **options)


def draw_and_solve(rngs, folder, sizes, **options):
    """Draw conditions and the size of triangles, solve, and write a file a trajectory.

    Parameters
    ----------
    rngs : list of numpy.random.Generator
        Of `sample_rng`, one a trajectory.
    folder : Path
        Of the files.
    sizes : tuple of float
        Smallest and largest size of the triangles.
    **options
        See `simulate`.

    Returns
    -------
    dict of ndarray
        ``conditions`` (B, 5).
    """
    drawn = []
    for rng in rngs:
        conditions, size = draw_conditions(rng), rng.uniform(*sizes)
        drawn.append(astuple(conditions))
        file = folder / file_name(rng.bit_generator.seed_seq.spawn_key[0])
        if file.exists():  # whole, of a run stopped before the batch's end
            continue
        found = solve(conditions, size, **options)
        arrays = {
            "node_pos": found.points,
            "cells": found.cells,
            "node_type": found.node_type,
            "u": found.velocity[:, 0],
            "v": found.velocity[:, 1],
            "p": found.pressure,
            "T": found.temperature,
            "t": found.time[:, None],
            "conditions": np.array(drawn[-1]),
        }
        save_new(file, functools.partial(write_trajectory, arrays=arrays))
    return {"conditions": np.array(drawn)}


def mini_data(cache):
    """The folder of the mini set, which is made in ``cache`` at the first call."""
    return made_by(main, MINI, cache, __version__)


def main(argv=None):
    """Run the command line."""
    parser = command_line(__doc__, n_samples=sum(PUBLISHED))
    parser.add_argument(
        "--sizes",
        type=float,
        nargs=2,
        default=SIZES,
        metavar=("SMALLEST", "LARGEST"),
        help="of the triangles; each trajectory's is drawn between them",
    )
    parser.add_argument("--frames", type=int, default=FRAMES, help="of a trajectory")
    parser.add_argument("--interval", type=float, default=INTERVAL, help="time between frames")
    parser.add_argument("--pulse", type=float, default=0.0, help="of the inflow, its amplitude")
    parser.add_argument("--skip", type=int, default=0, help="frames before the first that is kept")
    args = parser.parse_args(argv)

    refuse_finished(parser, [args.out / name for name in LISTS], args.out)
    sizes = tuple(args.sizes)
    duration = (args.skip + args.frames) * args.interval / (FRAMES * INTERVAL)
    seconds = SECONDS * duration * (np.mean(SIZES) / np.mean(sizes)) ** 3
    print(
        f"{args.n_samples} trajectories of {args.frames} frames, a mesh each, seed {args.seed}, "
        f"into {args.out}; {args.workers} process(es); about "
        f"{args.n_samples * seconds / args.workers:.0f} s. Interrupted, it continues from "
        f"{args.out / 'parts'}.",
        flush=True,
    )
    options = {"sizes": sizes}
    options |= {key: getattr(args, key) for key in ("frames", "interval", "pulse", "skip")}
    task = functools.partial(draw_and_solve, folder=args.out, **options)
    settings = {"version": __version__} | options
    generate(task, args.n_samples, args.out, settings, args.seed, 5, args.workers)
    provenance = {
        "solver": SOLVER,
        "seed": args.seed,
        "command": f"python examples/heat_transfer/generate.py --n-samples {args.n_samples} "
        f"--out DIR --seed {args.seed} --sizes {sizes[0]} {sizes[1]} --frames {args.frames} "
        f"--interval {args.interval} --pulse {args.pulse} --skip {args.skip}",
        "version": __version__,
    }
    save_set(args.out, list_writers(*parts_of(args.n_samples, *PUBLISHED)), provenance)
    print("done")


if __name__ == "__main__":
    main()
