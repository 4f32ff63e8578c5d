# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Generate the airfoil benchmark's data with the reference solver.

The files are those that Geo-FNO (Li et al., 2023) publishes: ``NACA_Cylinder_X.npy`` and
``NACA_Cylinder_Y.npy`` (n, 221, 51), the mesh, and ``NACA_Cylinder_Q.npy`` (n, 5, 221, 51),
density, the velocities, pressure and Mach number at its nodes. As there, the first index runs
around the section from the wake's upper to its lower side.

    python examples/airfoil/generate.py --n-samples 1200 --out data/airfoil --workers 8
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import h5py
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))  # to run as a script

from examples.airfoil import euler
from examples.airfoil.mesh import SHAPE, c_mesh
from physicsnemo_cano.datapipes.generation import remove_parts, save_new
from physicsnemo_cano.datapipes.generator import Generator, option

MACH = 0.8
AMPLITUDE = 0.05  # of the control nodes' displacements, uniform


@dataclass(frozen=True)
class AirfoilSet(Generator):
    """Sections, and the flows around them."""

    n_samples: int = 1200
    shape: tuple[int, int] = option(SHAPE, metavar=("NI", "NJ"))
    batch_size: int = option(1, help="more fill a GPU")
    device: str = option("cpu", help="of Warp: cpu or cuda")
    mini: Path | None = option(None, type=Path, help="write every second node to this HDF5 file")

    solver = "2D Euler, finite volumes: MUSCL, HLLC, LU-SGS; NACA 0012 in a design element"
    constants: ClassVar = {"mach": MACH}
    attempts = 5

    @property
    def files(self):
        """As published, or the one file of the mini set, wherever it is."""
        names = tuple(f"NACA_Cylinder_{name}.npy" for name in ("X", "Y", "Q", "control"))
        return (str(self.mini.absolute()),) if self.mini else names

    @property
    def seconds(self):
        """Measured at full size."""
        return 6.0 * np.prod(self.shape) / np.prod(SHAPE)

    def draw(self, rng):
        """Displacements of the control nodes."""
        return rng.uniform(-AMPLITUDE, AMPLITUDE, 8)

    def solve_batch(self, drawn):
        """Mesh and flow, of the mini set on every second node in both directions."""
        meshes = np.array([c_mesh(control, self.shape) for control in drawn])
        flow = euler.solve(meshes[:, 0], meshes[:, 1], mach=MACH, device=self.device)
        fields = np.stack([flow.x, flow.y, flow.rho, flow.u, flow.v, flow.p, flow.mach], axis=1)
        stride = 2 if self.mini else 1
        fields = fields[:, :, ::-1][:, :, ::stride, ::stride].astype(np.float32)
        return [
            {"x": f[0], "y": f[1], "q": f[2:], "control": control} if converged else None
            for f, control, converged in zip(fields, drawn, flow.converged, strict=True)
        ]

    def save(self, directory, arrays, record):
        """Write the published files, or the mesh and the Mach number into one HDF5 file."""
        if not self.mini:
            return super().save(directory, arrays, record)

        def write(stream):
            with h5py.File(stream, "w") as h5:
                h5.attrs.update(record)
                mach = arrays["q"][:, 4]
                for name, array in {"x": arrays["x"], "y": arrays["y"], "mach": mach}.items():
                    h5.create_dataset(name, data=array, compression="gzip", shuffle=True)

        if not self.mini.exists():
            self.mini.parent.mkdir(parents=True, exist_ok=True)
            save_new(self.mini, write)
        remove_parts(directory)


if __name__ == "__main__":
    AirfoilSet.main()
