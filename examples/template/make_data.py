# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
"""Make plates.h5, to try the template before your own files are there."""

import h5py
import numpy as np

rng = np.random.default_rng(0)
points = rng.uniform(size=(50, 200, 2))
centre, width = rng.uniform(0.2, 0.8, (50, 1, 2)), rng.uniform(0.1, 0.3, (50, 1))
distance = np.linalg.norm(points - centre, axis=-1)
with h5py.File("plates.h5", "w") as file:
    file["points"] = points
    file["heat"] = np.exp(-((distance / width) ** 2))
    file["temperature"] = 300 + 50 * width / (width + distance)
