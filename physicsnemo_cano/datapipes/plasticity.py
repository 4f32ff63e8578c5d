# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""A block pressed by a die: the die's shape and a time to the deformed block (Geo-FNO's set)."""

from __future__ import annotations

import numpy as np
import torch

from physicsnemo_cano.datapipes.files import check_samples, locate
from physicsnemo_cano.datapipes.matlab import MatlabFile
from physicsnemo_cano.datapipes.reader import Channel, FieldReader, first_80_percent, source_of

_PUBLISHED = {"input": (987, 101), "output": (987, 101, 31, 20, 4)}
_GENERATED = {"input": ("n", "i"), "output": ("n", "i", "j", 20, 4)}
_LENGTH, _HEIGHT = 50.0, 15.0  # mm


class Plasticity(FieldReader):
    r"""Samples of the plasticity benchmark, from the published file or a generated one.

    A folder with ``plas_N987_T20.mat``, in it ``input`` :math:`(987, 101)`, the die, and
    ``output`` :math:`(987, 101, 31, 20, 4)`, positions and displacements of the block's nodes at
    20 times, is published, unless ``generate.py`` has left its mark there; then the number of
    samples and the mesh may be others. Of 987 samples the first 900 are for training and the last
    80 for testing; of another number the first 80 % and the rest. The split is read into memory.

    A sample is a whole series. It holds ``embedding`` :math:`(N, 2)`, the nodes of the undeformed
    block in mm; ``fx`` :math:`(N, 1)`, the die's height over a node, the same in all its depth;
    ``times`` :math:`(20,)`, the share of the die's way that is done, 0.05 to 1; ``target``
    :math:`(N, 20 · 4)`, at each of them the position and the displacement.
    """

    coordinates = (Channel("x", "mm"), Channel("y", "mm"))
    targets = tuple(
        Channel(f"{name} {axis}", "mm") for name in ("position", "displacement") for axis in "xy"
    )
    series = "instants"
    help = (
        "Expected a folder with plas_N987_T20.mat (the published file) or one that "
        "python examples/plasticity/generate.py --out data/plasticity has made"
    )

    def open(self) -> tuple[range, range]:
        """Read the split."""
        file = locate(self.path, "plasticity", self.help, "plas_N*_T20.mat")
        self.source = source_of(self.path)
        expected = _GENERATED if self.source == "generated" else _PUBLISHED
        with MatlabFile(file, expected, self.help) as matlab:
            n, ni, nj, n_times, _ = matlab.shapes["output"]
            check_samples(n, 2, file, self.help)
            if min(ni, nj) < 2:
                raise ValueError(f"{file} has {ni} x {nj} nodes, expected at least 2 each way")
            parts = (range(900), range(n - 80, n)) if n == 987 else first_80_percent(n)
            chosen = self.choose(parts)
            self._first, part = chosen.start, slice(chosen.start, chosen.stop)
            die = matlab["input"][part].astype(np.float32)
            series = matlab["output"][part].astype(np.float32)
        self.spatial_shape = (ni, nj)
        self._die = torch.from_numpy(die).unsqueeze(-1).expand(-1, -1, nj).flatten(1)  # (n, N)
        self._series = torch.from_numpy(series).flatten(1, 2)  # (n, N, 20, 4)
        self._times = torch.arange(1, n_times + 1) / n_times
        axes = torch.linspace(0, _LENGTH, ni), torch.linspace(0, _HEIGHT, nj)
        self._embedding = torch.stack(torch.meshgrid(*axes, indexing="ij"), -1).flatten(0, 1)
        return parts

    def load(self, index: int) -> dict[str, torch.Tensor]:
        """A sample, by its index in the file."""
        return {
            "embedding": self._embedding,
            "fx": self._die[index - self._first].unsqueeze(-1),
            "times": self._times,
            "target": self._series[index - self._first].flatten(1),
        }
