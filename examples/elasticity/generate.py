"""Generate the elasticity benchmark's data with the reference solver.

The files are those that Geo-FNO (Li et al., 2023) publishes, samples last:
``Random_UnitCell_XY_10.npy`` (972, 2, n), the mesh's vertices, and ``Random_UnitCell_sigma_10.npy``
(972, n), von Mises' stress there in Pa.

    python examples/elasticity/generate.py --n-samples 1200 --out data/elasticity --workers 8
"""

import argparse
import functools
import json
import os
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))  # to run as a script

from examples.elasticity.cell import ELEMENTS, cell_mesh, draw_void, void_radius
from examples.elasticity.hyperelastic import solve
from physicsnemo_cano import __version__
from physicsnemo_cano.datapipes.generation import generate, made_by, remove_parts, save_new

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


def save_layout(arrays, directory, provenance):
    """Write the published layout and the provenance, as far as missing."""
    for name, key in LAYOUT.items():
        if not (directory / name).exists():
            samples_last = np.ascontiguousarray(np.moveaxis(arrays[key], 0, -1))
            save_new(directory / name, functools.partial(np.save, arr=samples_last))
    if not (directory / "provenance.json").exists():
        text = json.dumps(provenance, indent=1).encode()
        save_new(directory / "provenance.json", lambda file: file.write(text))


def mini_data(cache):
    """The folder of the mini set, which is made in ``cache`` at the first call."""
    return made_by(main, MINI, cache, __version__)


def main(argv=None):
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--n-samples", type=int, default=1200)
    parser.add_argument("--out", type=Path, required=True, help="folder of the run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
    args = parser.parse_args(argv)

    outputs = [args.out / name for name in LAYOUT]
    for output in outputs:
        # Beside parts it is a whole file of this run, stopped while it saved its data.
        if output.exists() and not (args.out / "parts").exists():
            parser.error(f"{output} exists; finished data is never overwritten")
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
    save_layout(arrays, args.out, provenance)
    remove_parts(args.out)
    print("done")


if __name__ == "__main__":
    main()
