# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Generate the composite benchmark's data with the reference solver.

The files are those of NORM's authors (Chen et al., 2024): ``Composites.mat`` with ``T_field``, the
change of temperature in K, and ``D_field``, the length of the displacement in mm, (n, N) at the
nodes of one mesh; and ``Composites_LBO_basis.mat`` with the mesh alone, ``Points`` (N, 3) in m and
``Faces`` (M, 4), the tetrahedra's nodes, counted from 0. They are written as MATLAB's version 7.3
does, the fields in single precision.

    python examples/composite/generate.py --n-samples 500 --out data/composite
"""

import functools
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))  # to run as a script

from examples.composite.solver import SHAPE, Plate, plate_mesh, temperature_field
from physicsnemo_cano import __version__
from physicsnemo_cano.datapipes.generation import (
    command_line,
    generate,
    made_by,
    refuse_finished,
    save_set,
)
from physicsnemo_cano.datapipes.matlab import write_matlab

FILE, MESH = "Composites.mat", "Composites_LBO_basis.mat"
SECONDS = 0.07  # a sample's time on one CPU core at full size, measured
SOLVER = "linear thermoelasticity, quadratic tetrahedra, curved plate of two plies, one end clamped"
# One process: a second would take longer to start than the samples to solve.
MINI = ["--n-samples", "250", "--shape", "9", "7", "2", "--workers", "1"]


@functools.cache
def problem(shape):
    """What draws a temperature and the equation: once a process."""
    mesh, _ = plate_mesh(shape)
    return temperature_field(mesh), Plate(mesh)


def draw_and_solve(rngs, shape=SHAPE):
    """Draw temperatures and solve for the deformations.

    Parameters
    ----------
    rngs : list of numpy.random.Generator
        One a sample.
    shape : tuple of int
        Of the mesh, see `plate_mesh`.

    Returns
    -------
    dict of ndarray
        ``T_field`` in K and ``D_field`` in mm, (B, N) of float32.
    """
    draw, plate = problem(shape)
    temperatures = [draw(rng) for rng in rngs]
    displacements = np.array([plate.solve(t) for t in temperatures])  # m
    return {
        "T_field": np.array(temperatures, dtype=np.float32),
        "D_field": np.linalg.norm(1e3 * displacements, axis=-1).astype(np.float32),
    }


def mini_data(cache):
    """The folder of the mini set, which is made in ``cache`` at the first call."""
    return made_by(main, MINI, cache, __version__)


def main(argv=None):
    """Run the command line."""
    parser = command_line(__doc__, n_samples=500)
    parser.add_argument(
        "--shape",
        type=int,
        nargs=3,
        default=SHAPE,
        metavar=("ALONG", "ACROSS", "THROUGH"),
        help="elements of the mesh",
    )
    args = parser.parse_args(argv)

    refuse_finished(parser, [args.out / FILE, args.out / MESH], args.out)
    shape = tuple(args.shape)
    mesh, cells = plate_mesh(shape)
    print(
        f"{args.n_samples} samples of {mesh.doflocs.shape[1]} nodes, seed {args.seed}, into "
        f"{args.out / FILE}; {args.workers} process(es); about "
        f"{args.n_samples * SECONDS / args.workers:.0f} s. Interrupted, it continues from "
        f"{args.out / 'parts'}.",
        flush=True,
    )
    settings = {"version": __version__, "shape": shape}
    task = functools.partial(draw_and_solve, shape=shape)
    fields = generate(task, args.n_samples, args.out, settings, args.seed, 50, args.workers)
    provenance = {
        "solver": SOLVER,
        "seed": args.seed,
        "command": f"python examples/composite/generate.py --n-samples {args.n_samples} --out DIR "
        f"--seed {args.seed} --shape {' '.join(map(str, shape))}",
        "version": __version__,
    }
    contents = {FILE: fields, MESH: {"Points": mesh.doflocs.T, "Faces": cells.astype(float)}}
    writers = {
        name: functools.partial(write_matlab, arrays=arrays) for name, arrays in contents.items()
    }
    save_set(args.out, writers, provenance)
    print("done")


if __name__ == "__main__":
    main()
