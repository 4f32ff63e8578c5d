# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Generate the pipe benchmark's data with the reference solver.

The files are those that Geo-FNO (Li et al., 2023) publishes: ``Pipe_X.npy`` and ``Pipe_Y.npy``
(n, 129, 129), the mesh, and ``Pipe_Q.npy`` (n, 2, 129, 129), the velocities, of which the first
channel, the horizontal one, is the benchmark's. The first index runs along the pipe, the second
upwards.

    python examples/pipe/generate.py --n-samples 1200 --out data/pipe --workers 8
"""

import functools
import sys
from pathlib import Path

import numpy as np
from scipy.interpolate import CubicHermiteSpline

sys.path.insert(0, str(Path(__file__).parents[2]))  # to run as a script

from examples.pipe.stream import LENGTH, VISCOSITY, solve
from physicsnemo_cano import __version__
from physicsnemo_cano.datapipes.generation import (
    command_line,
    generate,
    made_by,
    refuse_finished,
    save_set,
)

NODES = np.linspace(0, LENGTH, 5)  # of the centreline
ELEMENTS = (96, 24)  # along and across
SHAPE = (129, 129)
SECONDS = 3.0  # a sample's time on one CPU core with these elements, measured
LAYOUT = {"Pipe_X.npy": "x", "Pipe_Y.npy": "y", "Pipe_Q.npy": "q"}
SOLVER = "steady Navier-Stokes, stream function in Bogner-Fox-Schmit elements, Newton"
MINI = ["--n-samples", "200", "--shape", "65", "17", "--elements", "64", "16"]


def draw_centre(rng):
    """Draw a centreline: four cubics through 5 nodes of random height and slope.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of 5 heights from U[-2, 2], then of 5 slopes from U[-1, 1].

    Returns
    -------
    scipy.interpolate.CubicHermiteSpline
        Height of the centreline over x.
    """
    heights = rng.uniform(-2, 2, NODES.size)
    return CubicHermiteSpline(NODES, heights, rng.uniform(-1, 1, NODES.size))


def draw_and_solve(rngs, elements=ELEMENTS, shape=SHAPE):
    """Draw pipes and solve their flows.

    Parameters
    ----------
    rngs : list of numpy.random.Generator
        One a sample.
    elements : tuple of int
        Of the solver, along (a multiple of 4) and across.
    shape : tuple of int
        Points along and across on which to keep the flow.

    Returns
    -------
    dict of ndarray
        ``x``, ``y`` (B, *shape) and ``q`` (B, 2, *shape) of float32.
    """
    flows = [solve(draw_centre(rng), elements).on_grid(shape) for rng in rngs]
    x, y, u, v = np.moveaxis(np.array(flows, dtype=np.float32), 1, 0)
    return {"x": x, "y": y, "q": np.stack([u, v], axis=1)}


def mini_data(cache):
    """The folder of the mini set, which is made in ``cache`` at the first call."""
    return made_by(main, MINI, cache, __version__)


def main(argv=None):
    """Run the command line."""
    parser = command_line(__doc__, n_samples=1200)
    parser.add_argument("--shape", type=int, nargs=2, default=SHAPE, metavar=("NI", "NJ"))
    parser.add_argument("--elements", type=int, nargs=2, default=ELEMENTS, metavar=("NI", "NJ"))
    args = parser.parse_args(argv)
    if args.elements[0] % 4:
        parser.error(f"--elements: expected a multiple of 4 along, got {args.elements[0]}")

    outputs = [args.out / name for name in LAYOUT]
    refuse_finished(parser, outputs, args.out)
    # The factorisation's share grows faster than the number of elements.
    seconds = SECONDS * (np.prod(args.elements) / np.prod(ELEMENTS)) ** 1.5
    print(
        f"{args.n_samples} samples of {args.shape[0]} x {args.shape[1]} points, "
        f"{args.elements[0]} x {args.elements[1]} elements, seed {args.seed}, into "
        f"{', '.join(map(str, outputs))}; {args.workers} process(es); about "
        f"{args.n_samples * seconds / args.workers / 60:.0f} min. Interrupted, it continues from "
        f"{args.out / 'parts'}.",
        flush=True,
    )
    sizes = {"elements": tuple(args.elements), "shape": tuple(args.shape)}
    settings = {"version": __version__, "viscosity": VISCOSITY, **sizes}
    task = functools.partial(draw_and_solve, **sizes)
    arrays = generate(task, args.n_samples, args.out, settings, args.seed, workers=args.workers)
    provenance = {
        "solver": SOLVER,
        "viscosity": VISCOSITY,
        "seed": args.seed,
        "command": command(args),
        "version": __version__,
    }
    writers = {name: functools.partial(np.save, arr=arrays[key]) for name, key in LAYOUT.items()}
    save_set(args.out, writers, provenance)
    print("done")


def command(args):
    """The command that gives this data, without the paths of this machine."""
    shape, elements = (" ".join(map(str, pair)) for pair in (args.shape, args.elements))
    return (
        f"python examples/pipe/generate.py --n-samples {args.n_samples} --out DIR "
        f"--seed {args.seed} --shape {shape} --elements {elements}"
    )


if __name__ == "__main__":
    main()
