# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Generate the Darcy benchmark's data with the reference solver.

The files are those of FNO's authors (Li et al., 2021): ``piececonst_r421_N1024_smooth1.mat`` for
training and ``piececonst_r421_N1024_smooth2.mat`` for testing, each with ``coeff``, the
permeability, and ``sol``, the pressure, (n, 421, 421) at the nodes of a grid on the unit square.
They are written as MATLAB's version 7.3 does, in single precision.

    python examples/darcy/generate.py --out data/darcy --workers 8
"""

import functools
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))  # to run as a script

from examples.darcy.solver import HIGH, LOW, draw_permeability, solve_darcy
from physicsnemo_cano import __version__
from physicsnemo_cano.datapipes.generation import (
    command_line,
    generate,
    made_by,
    refuse_finished,
    save_set,
)
from physicsnemo_cano.datapipes.matlab import write_matlab

NODES = 421
TRAIN, TEST = "piececonst_r421_N1024_smooth1.mat", "piececonst_r421_N1024_smooth2.mat"
SECONDS = 1.2  # a sample's time on one CPU core at full size, measured
SOLVER = "Darcy flow, finite volumes, harmonic means; permeability 12 or 3 by a Gaussian's sign"
# One process: a second would take longer to start than the samples to solve.
MINI = ["--n-train", "400", "--n-test", "100", "--nodes", "85", "--workers", "1"]


def draw_and_solve(rngs, nodes=NODES):
    """Draw permeabilities and solve for the pressures.

    Parameters
    ----------
    rngs : list of numpy.random.Generator
        One a sample.
    nodes : int
        Of an axis.

    Returns
    -------
    dict of ndarray
        ``coeff`` and ``sol`` (B, nodes, nodes) of float32.
    """
    coeff = [draw_permeability(rng, nodes) for rng in rngs]
    return {
        "coeff": np.array(coeff, dtype=np.float32),
        "sol": np.array([solve_darcy(a) for a in coeff], dtype=np.float32),
    }


def write_set(directory, n_train, n_test, nodes, seed, workers=1):
    """Make the data set in a folder, or what is missing of it after an interruption."""
    settings = {"version": __version__, "nodes": nodes}
    task = functools.partial(draw_and_solve, nodes=nodes)
    arrays = generate(task, n_train + n_test, directory, settings, seed, 10, workers)
    parts = {TRAIN: np.s_[:n_train], TEST: np.s_[n_train:]}
    provenance = {
        "solver": SOLVER,
        "permeability": [LOW, HIGH],
        "seed": seed,
        "command": (
            f"python examples/darcy/generate.py --n-train {n_train} --n-test {n_test} --out DIR "
            f"--seed {seed} --nodes {nodes}"
        ),
        "version": __version__,
    }
    writers = {
        name: functools.partial(write_matlab, arrays={k: v[part] for k, v in arrays.items()})
        for name, part in parts.items()
    }
    save_set(directory, writers, provenance)


def mini_data(cache):
    """The folder of the mini set, which is made in ``cache`` at the first call."""
    return made_by(main, MINI, cache, __version__)


def main(argv=None):
    """Run the command line."""
    parser = command_line(__doc__)
    parser.add_argument("--n-train", type=int, default=1000)
    parser.add_argument("--n-test", type=int, default=200)
    parser.add_argument("--nodes", type=int, default=NODES, help="of an axis")
    args = parser.parse_args(argv)

    refuse_finished(parser, [args.out / TRAIN, args.out / TEST], args.out)
    n = args.n_train + args.n_test
    # The elimination's work grows with the power 3/2 of the unknowns.
    estimate = n * SECONDS * (args.nodes / NODES) ** 3 / args.workers
    print(
        f"{args.n_train} + {args.n_test} samples of {args.nodes} x {args.nodes} nodes, seed "
        f"{args.seed}, into {args.out}; {args.workers} process(es); about {estimate / 60:.0f} min. "
        f"Interrupted, it continues from {args.out / 'parts'}.",
        flush=True,
    )
    write_set(args.out, args.n_train, args.n_test, args.nodes, args.seed, args.workers)
    print("done")


if __name__ == "__main__":
    main()
