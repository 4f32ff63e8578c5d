# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Flow through bent pipes: mesh points to horizontal velocity (Geo-FNO's set)."""

from __future__ import annotations

from physicsnemo_cano.datapipes.airfoil import MeshReader
from physicsnemo_cano.datapipes.reader import Channel

GRID = (129, 129)
_FILES = tuple(f"Pipe_{name}.npy" for name in "XYQ")
_HORIZONTAL = 0  # channel of Q


class Pipe(MeshReader):
    r"""Samples of the pipe benchmark, from the published files or generated ones.

    The folder holds ``Pipe_X.npy`` and ``Pipe_Y.npy`` :math:`(n, 129, 129)` and ``Pipe_Q.npy``
    :math:`(n, C, 129, 129)`, whose channel 0 is the horizontal velocity. It is published unless
    ``generate.py`` has left its mark there; then the mesh may be another. The files are mapped,
    not loaded. The first 1000 samples are for training, the next 200 for testing; of a generated
    set with fewer, the first 80 % and the rest. Coordinates are in pipe widths.
    """

    coordinates = (Channel("x / D"), Channel("y / D"))
    targets = (Channel("horizontal velocity"),)
    help = (
        f"Expected a folder with {', '.join(_FILES)} (the published files). "
        "To make it: python examples/pipe/generate.py --out data/pipe"
    )

    def open(self) -> tuple[range, range]:
        """Map the files."""
        self._field = self.map_folder(_FILES, GRID, "C")[:, _HORIZONTAL]
        return self.parts()
