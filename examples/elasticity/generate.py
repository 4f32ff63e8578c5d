# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Generate the elasticity benchmark's data with the reference solver.

The files are those that Geo-FNO (Li et al., 2023) publishes, samples last:
``Random_UnitCell_XY_10.npy`` (972, 2, n), the mesh's vertices, and ``Random_UnitCell_sigma_10.npy``
(972, n), von Mises' stress there in Pa.

    python examples/elasticity/generate.py --n-samples 1200 --out data/elasticity --workers 8
"""

import functools
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))  # to run as a script

from examples.elasticity.cell import ELEMENTS, cell_mesh, draw_void, void_radius
from examples.elasticity.hyperelastic import solve
from physicsnemo_cano import __version__
from physicsnemo_cano.datapipes.generation import (
    command_line,
    generate,
    made_by,
    refuse_finished,
    save_set,
)

TRACTION = 100.0  # Pa
SECONDS = 0.5  # a sample's time on one CPU core, measured
LAYOUT = {"Random_UnitCell_XY_10.npy": "points", "Random_UnitCell_sigma_10.npy": "stress"}
SOLVER = "finite elements (Q2): thin incompressible Rivlin-Saunders sheet, random void, pulled"
MINI = ["--n-samples", "200"]


def draw_and_solve(rngs, elements=ELEMENTS):
    """Draw cells and solve for their stress.

    Parameters
    ----------
    rngs : list of numpy.random.Generator
        One a sample.
    elements : tuple of int
        Of the mesh, see `cell_mesh`.

    Returns
    -------
    dict of ndarray
        ``points`` (B, N, 2) and ``stress`` (B, N) of float32.
    """
    cells = []
    for rng in rngs:
        radius = functools.partial(void_radius, draw_void(rng))
        cells.append(solve(cell_mesh(radius, elements), TRACTION))
    return {
        "points": np.array([cell.points for cell in cells], dtype=np.float32),
        "stress": np.array([cell.stress for cell in cells], dtype=np.float32),
    }


def mini_data(cache):
    """The folder of the mini set, which is made in ``cache`` at the first call."""
    return made_by(main, MINI, cache, __version__)


def main(argv=None):
    """Run the command line."""
    parser = command_line(__doc__, n_samples=1200)
    args = parser.parse_args(argv)

    outputs = [args.out / name for name in LAYOUT]
    refuse_finished(parser, outputs, args.out)
    print(
        f"{args.n_samples} samples of 972 points, seed {args.seed}, into "
        f"{', '.join(map(str, outputs))}; {args.workers} process(es); about "
        f"{args.n_samples * SECONDS / args.workers / 60:.0f} min. Interrupted, it continues from "
        f"{args.out / 'parts'}.",
        flush=True,
    )
    settings = {"version": __version__, "traction": TRACTION}
    arrays = generate(
        draw_and_solve, args.n_samples, args.out, settings, args.seed, workers=args.workers
    )
    provenance = {
        "solver": SOLVER,
        "traction": TRACTION,
        "seed": args.seed,
        "command": f"python examples/elasticity/generate.py --n-samples {args.n_samples} "
        f"--out DIR --seed {args.seed}",
        "version": __version__,
    }
    samples_last = {
        name: np.ascontiguousarray(np.moveaxis(arrays[key], 0, -1)) for name, key in LAYOUT.items()
    }
    writers = {name: functools.partial(np.save, arr=a) for name, a in samples_last.items()}
    save_set(args.out, writers, provenance)
    print("done")


if __name__ == "__main__":
    main()
