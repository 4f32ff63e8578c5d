# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Generate the airfoil benchmark's data with the reference solver.

The files are those that Geo-FNO (Li et al., 2023) publishes: ``NACA_Cylinder_X.npy`` and
``NACA_Cylinder_Y.npy`` (n, 221, 51), the mesh, and ``NACA_Cylinder_Q.npy`` (n, 5, 221, 51),
density, the velocities, pressure and Mach number at its nodes. As there, the first index runs
around the section from the wake's upper to its lower side.

    python examples/airfoil/generate.py --n-samples 1200 --out data/airfoil --workers 8
"""

import functools
import sys
from pathlib import Path

import h5py
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))  # to run as a script

from examples.airfoil.euler import solve
from examples.airfoil.mesh import SHAPE, c_mesh
from physicsnemo_cano import __version__
from physicsnemo_cano.datapipes.generation import (
    command_line,
    generate,
    refuse_finished,
    remove_parts,
    save_new,
    save_set,
)

MACH = 0.8
AMPLITUDE = 0.05  # of the control nodes' displacements, uniform
ATTEMPTS = 5  # draws of a sample until one converges
SECONDS = 6.0  # a sample's time on one CPU core at full size, measured
LAYOUT = {
    "NACA_Cylinder_X.npy": "x",
    "NACA_Cylinder_Y.npy": "y",
    "NACA_Cylinder_Q.npy": "q",
    "NACA_Cylinder_control.npy": "control",
}
SOLVER = "2D Euler, finite volumes: MUSCL, HLLC, LU-SGS; NACA 0012 in a design element"


def draw_and_solve(rngs, shape=SHAPE, device="cpu", stride=1):
    """Draw sections and solve their flows.

    Parameters
    ----------
    rngs : list of numpy.random.Generator
        One a sample.
    shape : tuple of int
        Nodes of the mesh, see `c_mesh`.
    device : str
        Warp device.
    stride : int
        Keep every so many-th node, in both directions.

    Returns
    -------
    dict of ndarray
        ``x``, ``y`` (B, ni, nj) and ``q`` (B, 5, ni, nj) of float32; the control nodes'
        displacements ``control`` (B, 8); ``draws`` (B,), 1 where the first draw converged.
    """
    kept = {}
    for attempt in range(1, ATTEMPTS + 1):
        left = [k for k in range(len(rngs)) if k not in kept]
        control = [rngs[k].uniform(-AMPLITUDE, AMPLITUDE, 8) for k in left]
        meshes = np.array([c_mesh(c, shape) for c in control])
        flow = solve(meshes[:, 0], meshes[:, 1], mach=MACH, device=device)
        fields = np.stack([flow.x, flow.y, flow.rho, flow.u, flow.v, flow.p, flow.mach], axis=1)
        fields = fields[:, :, ::-1][:, :, ::stride, ::stride].astype(np.float32)
        for row in np.flatnonzero(flow.converged):
            kept[left[row]] = fields[row], control[row], attempt
        if len(kept) == len(rngs):
            fields, control, draws = (
                np.array([kept[k][column] for k in range(len(rngs))]) for column in range(3)
            )
            return {
                "x": fields[:, 0],
                "y": fields[:, 1],
                "q": fields[:, 2:],
                "control": control,
                "draws": draws,
            }
    raise RuntimeError(f"no flow converged in {ATTEMPTS} draws; counted in the batch: {left}")


def save_mini(arrays, path, provenance):
    """Write the mesh and the Mach number into one HDF5 file, if missing."""
    if path.exists():
        return

    def write(file):
        with h5py.File(file, "w") as h5:
            h5.attrs.update(provenance)
            for name, array in (
                ("x", arrays["x"]),
                ("y", arrays["y"]),
                ("mach", arrays["q"][:, 4]),
            ):
                h5.create_dataset(name, data=array, compression="gzip", shuffle=True)

    save_new(path, write)


def main(argv=None):
    """Run the command line."""
    parser = command_line(__doc__, n_samples=1200)
    parser.add_argument("--shape", type=int, nargs=2, default=SHAPE, metavar=("NI", "NJ"))
    parser.add_argument("--batch-size", type=int, default=1, help="more fill a GPU")
    parser.add_argument("--device", default="cpu", help="of Warp: cpu or cuda")
    parser.add_argument("--mini", type=Path, help="write every second node to this HDF5 file")
    args = parser.parse_args(argv)

    outputs = [args.mini] if args.mini else [args.out / name for name in LAYOUT]
    refuse_finished(parser, outputs, args.out)
    workers = 1 if args.device.startswith("cuda") else args.workers
    estimate = args.n_samples * SECONDS * np.prod(args.shape) / np.prod(SHAPE) / workers
    print(
        f"{args.n_samples} samples of {args.shape[0]} x {args.shape[1]} nodes, seed {args.seed}, "
        f"into {', '.join(map(str, outputs))}; {workers} process(es) on {args.device}; "
        f"about {estimate / 60:.0f} min if that is a CPU. Interrupted, it continues from "
        f"{args.out / 'parts'}.",
        flush=True,
    )

    stride = 2 if args.mini else 1
    task = functools.partial(
        draw_and_solve, shape=tuple(args.shape), device=args.device, stride=stride
    )
    settings = {
        "version": __version__,
        "mach": MACH,
        "shape": list(args.shape),
        "stride": stride,
        "device": args.device,
    }
    arrays = generate(task, args.n_samples, args.out, settings, args.seed, args.batch_size, workers)
    redrawn = np.flatnonzero(arrays["draws"] > 1)
    provenance = {
        "solver": SOLVER,
        "mach": MACH,
        "seed": args.seed,
        "command": command(args),
        "version": __version__,
        "redrawn": redrawn.tolist() or "none",
    }
    if args.mini:
        args.mini.parent.mkdir(parents=True, exist_ok=True)
        save_mini(arrays, args.mini, provenance)
        remove_parts(args.out)
    else:
        writers = {
            name: functools.partial(np.save, arr=arrays[key]) for name, key in LAYOUT.items()
        }
        save_set(args.out, writers, provenance)
    print(f"done; {len(redrawn)} samples were drawn anew as their first draw did not converge")


def command(args):
    """The command that gives this data, without the paths of this machine."""
    shape = " ".join(map(str, args.shape))
    mini = f" --mini {args.mini.name}" if args.mini else ""
    return (
        f"python examples/airfoil/generate.py --n-samples {args.n_samples} --out DIR "
        f"--seed {args.seed} --shape {shape}{mini}"
    )


if __name__ == "__main__":
    main()
