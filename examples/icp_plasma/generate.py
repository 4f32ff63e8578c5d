# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Generate the ICP plasma benchmark's data with the reduced reference solver.

The layout is PhysGTO's: a HDF5 file a trajectory, listed in ``train.txt`` and ``test.txt``; see
``physicsnemo_cano/datapipes/physgto.py``.

    python examples/icp_plasma/generate.py --n-samples 649 --out data/icp_plasma
"""

import functools
import sys
from dataclasses import astuple
from pathlib import Path

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
from physicsnemo_cano import __version__
from physicsnemo_cano.datapipes.generation import (
    command_line,
    generate,
    made_by,
    refuse_finished,
    save_new,
    save_set,
)
from physicsnemo_cano.datapipes.physgto import LISTS, write_trajectory
from physicsnemo_cano.datapipes.reader import parts_of

SECONDS = 2.0  # a sample's time on one CPU core at full size, measured
PUBLISHED = 499, 150  # trajectories for training and for testing
SOLVER = "inductively coupled plasma, reduced model, linear triangles, second order in time"
# One process: a second would take longer to start than the samples to solve.
MINI = ["--n-samples", "80", "--spacing", "0.075", "--frames", "61", "--workers", "1"]


@functools.cache
def problem(spacing):
    """The mesh, the kinds of its nodes and the flow of gas: once a process."""
    mesh = reactor(spacing)
    return mesh, node_types(mesh), inflow(mesh)


def name_of(k):
    """File of trajectory ``k``."""
    return f"trajectory_{k:04d}.h5"


def draw_and_solve(rngs, folder, spacing=SPACING, frames=FRAMES):
    """Draw conditions, solve, and write a file a trajectory.

    Parameters
    ----------
    rngs : list of numpy.random.Generator
        Of `sample_rng`, one a trajectory.
    folder : Path
        Of the files.
    spacing : float
        Of the mesh's nodes.
    frames : int
        Of a trajectory.

    Returns
    -------
    dict of ndarray
        ``conditions`` (B, 5).
    """
    mesh, kinds, flow = problem(spacing)
    drawn = []
    for rng in rngs:
        conditions = draw_conditions(rng)
        drawn.append(astuple(conditions))
        file = folder / name_of(rng.bit_generator.seed_seq.spawn_key[0])
        if file.exists():  # whole, of a run stopped before the batch's end
            continue
        arrays = simulate(mesh, flow, conditions, frames) | {
            "node_pos": mesh.p.T,
            "cells": mesh.t.T,
            "node_type": kinds,
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
    parser.add_argument("--spacing", type=float, default=SPACING, help="of the mesh's nodes")
    parser.add_argument("--frames", type=int, default=FRAMES, help="of a trajectory")
    args = parser.parse_args(argv)

    refuse_finished(parser, [args.out / name for name in LISTS], args.out)
    mesh, _, _ = problem(args.spacing)
    seconds = SECONDS * args.n_samples * args.frames / FRAMES / args.workers
    print(
        f"{args.n_samples} trajectories of {args.frames} frames on {mesh.nvertices} nodes, seed "
        f"{args.seed}, into {args.out}; {args.workers} process(es); at most about {seconds:.0f} s. "
        f"Interrupted, it continues from {args.out / 'parts'}.",
        flush=True,
    )
    settings = {"version": __version__, "spacing": args.spacing, "frames": args.frames}
    options = {"spacing": args.spacing, "frames": args.frames}
    task = functools.partial(draw_and_solve, folder=args.out, **options)
    generate(task, args.n_samples, args.out, settings, args.seed, 5, args.workers)
    parts = parts_of(args.n_samples, *PUBLISHED)
    provenance = {
        "solver": SOLVER,
        "interval": INTERVAL,
        "substeps": SUBSTEPS,
        "seed": args.seed,
        "command": f"python examples/icp_plasma/generate.py --n-samples {args.n_samples} "
        f"--out DIR --seed {args.seed} --spacing {args.spacing} --frames {args.frames}",
        "version": __version__,
    }
    lists = {
        name: functools.partial(
            lambda file, text: file.write(text), text="\n".join(map(name_of, part)).encode()
        )
        for name, part in zip(LISTS, parts, strict=True)
    }
    save_set(args.out, lists, provenance)
    print("done")


if __name__ == "__main__":
    main()
