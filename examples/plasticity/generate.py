# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Generate the plasticity benchmark's data with the reference solver.

The file is that which Geo-FNO (Li et al., 2023) publishes, ``plas_N<n>_T20.mat``, of MATLAB's
version 7.3: ``input`` (n, 101), heights of the die over the block, and ``output``
(n, 101, 31, 20, 4), positions (x, y) and displacements (x, y) of the block's nodes at 20 times,
all in mm.

    python examples/plasticity/generate.py --n-samples 987 --out data/plasticity --workers 8
"""

import functools
import sys
from pathlib import Path

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
from physicsnemo_cano import __version__
from physicsnemo_cano.datapipes.generation import (
    command_line,
    generate,
    made_by,
    refuse_finished,
    save_set,
)
from physicsnemo_cano.datapipes.matlab import write_matlab

KNOTS = np.linspace(-10, 60, 8)  # mm; the block bulges beyond its 50 mm
RELIEF = 4.0  # mm; the die's heights at the knots are uniform from 0 to it
ATTEMPTS = 5  # draws of a sample until one converges
SECONDS = 25.0  # a sample's time on one CPU core at full size, measured
SOLVER = (
    "plane strain, finite elastoplasticity (Hencky, von Mises, exponential return), bilinear "
    "elements of mean dilatation, frictionless contact by an active set"
)
MINI = ["--n-samples", "100", "--shape", "51", "16"]


def draw_die(rng):
    """Draw a die: the profile that `press` takes, a cubic spline whose lowest point is 0."""
    spline = CubicSpline(KNOTS, rng.uniform(0, RELIEF, len(KNOTS)))
    turns = spline.derivative().roots(extrapolate=False)
    candidates = np.concatenate([[0, LENGTH], turns[(turns > 0) & (turns < LENGTH)]])
    lowest = spline(candidates).min()
    return lambda x, k: spline(x, k) - (lowest if k == 0 else 0)


def draw_and_solve(rngs, shape=SHAPE):
    """Draw dies and press them into the block.

    Parameters
    ----------
    rngs : list of numpy.random.Generator
        One a sample.
    shape : tuple of int
        Nodes along the block and in its depth.

    Returns
    -------
    dict of ndarray
        ``input`` (B, ni) and ``output`` (B, ni, nj, 20, 4) of float32, and ``draws`` (B,), 1
        where the first draw converged.
    """
    nodes = rectangle(shape)[0].reshape(*shape, 1, 2)
    inputs, outputs, draws = [], [], []
    for rng in rngs:
        for attempt in range(1, ATTEMPTS + 1):
            profile = draw_die(rng)
            try:
                positions = np.moveaxis(press(profile, shape), 0, 2)  # (ni, nj, 20, 2)
            except NotConverged:
                continue
            inputs.append(profile(nodes[:, 0, 0, 0], 0))
            outputs.append(np.concatenate([positions, positions - nodes], axis=-1))
            draws.append(attempt)
            break
        else:
            raise RuntimeError(f"no die of {ATTEMPTS} could be pressed into the block")
    return {
        "input": np.array(inputs, np.float32),
        "output": np.array(outputs, np.float32),
        "draws": np.array(draws),
    }


def mini_data(cache):
    """The folder of the mini set, which is made in ``cache`` at the first call."""
    return made_by(main, MINI, cache, __version__)


def main(argv=None):
    """Run the command line."""
    parser = command_line(__doc__, n_samples=987)
    parser.add_argument("--shape", type=int, nargs=2, default=SHAPE, metavar=("NI", "NJ"))
    args = parser.parse_args(argv)
    if min(args.shape) < 3:
        parser.error("--shape needs at least 3 nodes each way")

    output = args.out / f"plas_N{args.n_samples}_T{STEPS}.mat"
    refuse_finished(parser, [output], args.out)
    # The power was measured: a factorisation's, and more steps to converge.
    work = (np.prod(args.shape) / np.prod(SHAPE)) ** 1.6
    estimate = args.n_samples * SECONDS * work / args.workers
    print(
        f"{args.n_samples} samples of {args.shape[0]} x {args.shape[1]} nodes, seed {args.seed}, "
        f"into {output}; {args.workers} process(es); about {estimate / 60:.0f} min. "
        f"Interrupted, it continues from {args.out / 'parts'}.",
        flush=True,
    )

    task = functools.partial(draw_and_solve, shape=tuple(args.shape))
    settings = {
        "version": __version__,
        "yield": YIELD,
        "hardening": HARDENING,
        "shape": list(args.shape),
    }
    arrays = generate(task, args.n_samples, args.out, settings, args.seed, workers=args.workers)
    redrawn = np.flatnonzero(arrays.pop("draws") > 1)
    provenance = {
        "solver": SOLVER,
        "yield": YIELD,
        "hardening": HARDENING,
        "seed": args.seed,
        "command": command(args),
        "version": __version__,
        "redrawn": redrawn.tolist() or "none",
    }
    save_set(args.out, {output.name: functools.partial(write_matlab, arrays=arrays)}, provenance)
    print(f"done; {len(redrawn)} samples were drawn anew as their first draw did not converge")


def command(args):
    """The command that gives this data, without the paths of this machine."""
    shape = " ".join(map(str, args.shape))
    return (
        f"python examples/plasticity/generate.py --n-samples {args.n_samples} --out DIR "
        f"--seed {args.seed} --shape {shape}"
    )


if __name__ == "__main__":
    main()
