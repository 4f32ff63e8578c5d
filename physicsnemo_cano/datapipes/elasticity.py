# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Stress in a hyperelastic cell with a random void: points to stress (Geo-FNO's set)."""

from __future__ import annotations

import numpy as np

from physicsnemo_cano.datapipes.files import check_samples, map_arrays
from physicsnemo_cano.datapipes.reader import Channel, FieldReader, first_80_percent, source_of

_FILES = {
    "Random_UnitCell_XY_10.npy": (972, 2, "n"),
    "Random_UnitCell_sigma_10.npy": (972, "n"),
}


class Elasticity(FieldReader):
    r"""Samples of the elasticity benchmark, from the published files or generated ones.

    The folder holds ``Random_UnitCell_XY_10.npy`` :math:`(972, 2, n)` and
    ``Random_UnitCell_sigma_10.npy`` :math:`(972, n)`, samples last; it is published unless
    ``generate.py`` has left its mark there. The files are mapped, not loaded. The first 1000
    samples are for training, the last 200 for testing; of a generated set with fewer than 1200,
    the first 80 % and the rest.

    A sample holds ``embedding`` :math:`(972, 2)`, the undeformed positions in cell sides, and
    ``target`` :math:`(972, 1)`, the stress.
    """

    coordinates = (Channel("x"), Channel("y"))
    targets = (Channel("stress", "Pa"),)
    help = (
        f"Expected a folder with {' and '.join(_FILES)} (the published files). "
        "To make it: python examples/elasticity/generate.py --out data/elasticity"
    )

    def open(self) -> tuple[range, range]:
        """Map the files."""
        self.source = source_of(self.path)
        self._points, self._stress = map_arrays(self.path, _FILES, self.help).values()
        n = self._points.shape[-1]
        check_samples(n, 1200 if self.source == "published" else 2, self.path, self.help)
        return (range(1000), range(n - 200, n)) if n >= 1200 else first_80_percent(n)

    def load(self, index: int) -> dict[str, np.ndarray]:
        """Read a sample, by its index in the files."""
        return {"embedding": self._points[..., index], "target": self._stress[:, index, None]}
