# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Darcy flow: permeability to pressure (FNO's set, and neuraloperator's small one)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from physicsnemo_cano.datapipes.files import check_samples, check_shapes
from physicsnemo_cano.datapipes.matlab import MatlabFile
from physicsnemo_cano.datapipes.reader import Channel, FieldReader, Split, source_of

_FILES = {
    "train": "piececonst_r421_N1024_smooth1.mat",
    "test": "piececonst_r421_N1024_smooth2.mat",
}
_SIZES = {"train": 1000, "test": 200}
_NODES = 421


class Darcy(FieldReader):
    r"""Samples of the Darcy benchmark, from the published files, generated ones or small tensors.

    A folder with ``piececonst_r421_N1024_smooth1.mat`` (for training) and ``…_smooth2.mat`` (for
    testing), in each of them ``coeff`` and ``sol`` :math:`(n, 421, 421)`, is published, unless
    ``generate.py`` has left its mark there; then the grid may have any size. Of every axis each
    ``stride``-th node is kept; the first 1000 samples are for training, the first 200 for testing.

    A folder with ``darcy_train_<n>.pt`` is neuraloperator's, with tensors ``x`` and ``y``
    :math:`(\cdot, n, n)` on the points :math:`i / n` of an axis. It is tested on
    ``darcy_test_<n>.pt``, of the same grid; the path of another such file tests on that.

    A sample holds ``embedding`` :math:`(N, 2)`, coordinates on the unit square; ``fx``
    :math:`(N, 1)`, the permeability; ``target`` :math:`(N, 1)`, the pressure.

    Parameters
    ----------
    root, split, n_train, n_test, weights
        See :class:`FieldReader`; ``root`` may be a file to test on.
    stride : int, optional, default=5
        Nodes from one that is kept to the next, for MATLAB files; a divisor of the number of
        cells, so that both boundaries stay.
    """

    coordinates = (Channel("x"), Channel("y"))
    targets = (Channel("pressure"),)
    help = (
        f"Expected either a folder with {' and '.join(_FILES.values())} (the published files), one "
        "with darcy_train_<n>.pt and darcy_test_<n>.pt (neuraloperator's), or one file "
        "darcy_test_<n>.pt to test on. To make the former: "
        "python examples/darcy/generate.py --out data/darcy"
    )

    def __init__(
        self,
        root: str | Path | None,
        split: Split = "train",
        n_train: int | None = None,
        n_test: int | None = None,
        stride: int = 5,
        weights: bool = False,
    ) -> None:
        self.stride = stride
        super().__init__(root, split, n_train, n_test, weights)

    def open(self) -> tuple[range, range]:
        """Read the split."""
        self.source = source_of(self.path)
        if self.path.is_file() or any(self.path.glob("darcy_train_*.pt")):
            a, u = self._read_tensors()
            x = torch.arange(a.shape[1]) / a.shape[1]
        else:
            a, u = self._read_matlab()
            x = torch.linspace(0, 1, a.shape[1])
        self.spatial_shape = (len(x), len(x))
        self._embedding = torch.stack(torch.meshgrid(x, x, indexing="ij"), -1).flatten(0, 1)
        self._permeability, self._pressure = a.flatten(1), u.flatten(1)
        return tuple(range(min(len(a), size)) for size in _SIZES.values())

    def load(self, index: int) -> dict[str, torch.Tensor]:
        """A sample, by its index in the split's file."""
        return {
            "embedding": self._embedding,
            "fx": self._permeability[index, :, None],
            "target": self._pressure[index, :, None],
        }

    def _read_matlab(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Permeability and pressure of the split, (n, s, s) each, at every ``stride``-th node."""
        missing = [name for name in _FILES.values() if not (self.path / name).is_file()]
        if missing:
            raise FileNotFoundError(f"{self.path} lacks {', '.join(missing)}. {self.help}")
        file, most, stride = self.path / _FILES[self.split], _SIZES[self.split], self.stride
        any_size = self.source == "generated"
        shape = ("n", "s", "s") if any_size else ("n", _NODES, _NODES)
        with MatlabFile(file, {"coeff": shape, "sol": shape}, self.help) as matlab:
            n, nodes, _ = matlab.shapes["sol"]
            check_samples(n, 1 if any_size else most, file, self.help)
            if stride < 1 or (nodes - 1) % stride:
                raise ValueError(
                    f"data.stride={stride}: {file} has {nodes - 1} cells an axis, choose a divisor"
                )
            # In a file of version 7.3 samples may lie interleaved, so it is read once, here.
            return tuple(
                torch.from_numpy(matlab[name][:most, ::stride, ::stride].astype(np.float32))
                for name in ("coeff", "sol")
            )

    def _read_tensors(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Permeability and pressure of the split, (n, s, s) each, from neuraloperator's files."""
        file = self.path
        if file.is_file() and self.split == "train":
            raise ValueError(f"{file} is to test on; to train give its folder. {self.help}")
        if file.is_dir():
            found = sorted(file.glob("darcy_train_*.pt"))
            if len(found) != 1:
                names = ", ".join(name.name for name in found)
                raise ValueError(f"{file} holds {names}: which to train on? Keep one. {self.help}")
            name = found[0].name
            file /= name if self.split == "train" else name.replace("train", "test")
        if not file.is_file():
            raise FileNotFoundError(f"No file {file}. {self.help}")
        try:
            data = torch.load(file, weights_only=True)
        except Exception as error:  # torch has many for files of another format
            raise ValueError(f"{file} is no file of tensors ({error}). {self.help}") from error
        items = data.items() if isinstance(data, dict) else ()
        shapes = {name: tuple(getattr(item, "shape", ())) for name, item in items}
        check_shapes(shapes, dict.fromkeys("xy", ("n", "s", "s")), file, self.help)
        return data["x"].float(), data["y"].float()
