# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
"""A reader of plates with temperatures; change it to read your own files."""

import numpy as np

from physicsnemo_cano.datapipes import Channel, FieldReader
from physicsnemo_cano.datapipes.files import open_hdf5


class Plates(FieldReader):
    """Points of heated plates: the heat put in to the temperature."""

    coordinates = (Channel("x", "m"), Channel("y", "m"))
    targets = (Channel("temperature", "K"),)
    source = "made by make_data.py"  # goes with every number
    help = "Expected an HDF5 file with points, heat and temperature: python make_data.py"

    def open(self) -> int:
        """Open the file, whose arrays must have these shapes; say how many samples there are."""
        shapes = {"points": ("n", "N", 2), "heat": ("n", "N"), "temperature": ("n", "N")}
        self._file = open_hdf5(self.path, shapes, self.help)
        return len(self._file["heat"])

    def load(self, index: int) -> dict[str, np.ndarray]:
        """Read one sample: coordinates, input function and target, a row a point."""
        return {
            "embedding": self._file["points"][index],
            "fx": self._file["heat"][index][:, None],
            "target": self._file["temperature"][index][:, None],
        }

    def close(self) -> None:
        """Close the file."""
        self._file.close()
