# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""A folder of ellipsoids with fields in closed form, which tests of the chain share."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pyvista


def body(number: int, offset: float = 0.0) -> pyvista.PolyData:
    """An ellipsoid of its own size and mesh, with a pressure and a shear that follow a wind."""
    random = np.random.default_rng(number)
    mesh = pyvista.Sphere(theta_resolution=8 + number % 4, phi_resolution=8).clean()
    mesh.clear_data()
    mesh.points = np.asarray(mesh.points, dtype=np.float64) * random.uniform(0.8, 1.2, 3)
    speed, angle = parameters(number)
    wind = speed * np.array([np.cos(angle), np.sin(angle), 0])
    for data, x in (
        (mesh.point_data, np.asarray(mesh.points)),
        (mesh.cell_data, np.asarray(mesh.cell_centers().points)),
    ):
        data["p"] = 1 + x @ wind
        data["shear"] = wind - 0.2 * x
        data["heat"] = np.cos(x[:, 2])
    mesh.points = mesh.points + offset
    return mesh


def parameters(number: int) -> tuple[float, float]:
    """Speed and angle of a case."""
    return tuple(np.random.default_rng(100 + number).uniform([1, -0.5], [2, 0.5]))


def write_cases(folder: Path, n: int = 10, **options) -> Path:
    """Write ``case_0.vtp``, … and ``cases.csv``; return the folder of the former."""
    root = folder / "cases"
    root.mkdir(parents=True)
    for number in range(n):
        body(number, **options).save(root / f"case_{number}.vtp")
    write_table(folder / "cases.csv", n)
    return root


def write_table(file: Path, n: int, separator: str = ",") -> None:
    """Write the parameters of all cases."""
    with file.open("w", newline="") as stream:
        writer = csv.writer(stream, delimiter=separator)
        writer.writerow(["case", "speed", "angle"])
        writer.writerows([f"case_{i}", *parameters(i)] for i in range(n))
