"""A block pressed by a die: the die's shape and a time to the deformed block (Geo-FNO's set)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from physicsnemo_cano.datapipes.benchmark import (
    BenchmarkReader,
    Channel,
    Split,
    choose,
    first_80_percent,
    only_file,
    source_of,
)
from physicsnemo_cano.datapipes.matlab import MatlabFile

_FILE = "plas_N*_T20.mat"
_SHAPES = {"input": (987, 101), "output": (987, 101, 31, 20, 4)}
_N, _N_TRAIN, _N_TEST = 987, 900, 80
_LENGTH, _HEIGHT = 50.0, 15.0  # mm
_HELP = (
    "Expected a folder with plas_N987_T20.mat (the published file) or one that "
    "python examples/plasticity/generate.py --out data/plasticity has made"
)


class Plasticity(BenchmarkReader):
    r"""Samples of the plasticity benchmark, from the published file or a generated one.

    A folder with ``plas_N987_T20.mat``, in it ``input`` :math:`(987, 101)`, the die, and
    ``output`` :math:`(987, 101, 31, 20, 4)`, positions and displacements of the block's nodes at
    20 times, is published, unless ``generate.py`` has left its mark there; then the number of
    samples and the mesh may be others. Of 987 samples the first 900 are for training and the last
    80 for testing; of another number the first 80 % and the rest.

    A sample is a whole series. It holds ``embedding`` :math:`(N, 2)`, the nodes of the undeformed
    block in mm; ``fx`` :math:`(N, 1)`, the die's height over a node, the same in all its depth;
    ``times`` :math:`(20,)`, the share of the die's way that is done, 0.05 to 1; ``target``
    :math:`(N, 20 · 4)`, at each of them the position and the displacement.

    Parameters
    ----------
    root : str, Path or None
        The folder; ``None`` only earns the message that says what is needed.
    split : {"train", "test"}
        Which part; it is read into memory.
    n_train, n_test : int, optional
        Take fewer samples; all by default.

    Raises
    ------
    FileNotFoundError
        If there is nothing at ``root``, or no such file in it.
    ValueError
        If the folder has several such files, or the file another key or shape than expected.
    """

    coordinates = (Channel("x", "mm"), Channel("y", "mm"))
    targets = (
        Channel("position x", "mm"),
        Channel("position y", "mm"),
        Channel("displacement x", "mm"),
        Channel("displacement y", "mm"),
    )
    series = "instants"

    def __init__(
        self,
        root: str | Path | None,
        split: Split = "train",
        n_train: int | None = None,
        n_test: int | None = None,
    ) -> None:
        super().__init__()
        path = only_file(root, _FILE, _HELP)
        self.path = Path(root)
        self.source = source_of(self.path)
        generated = self.source == "generated"
        any_size = {"input": ("n", "i"), "output": ("n", "i", "j", 20, 4)}
        with MatlabFile(path, any_size if generated else _SHAPES, _HELP) as file:
            n, ni, nj, n_times, _ = file.shapes["output"]
            if n < 2 or min(ni, nj) < 2:
                raise ValueError(
                    f"{path} has {n} samples of {ni} x {nj} nodes, expected at least 2 of each"
                )
            published = range(_N_TRAIN), range(n - _N_TEST, n)
            parts = published if n == _N else first_80_percent(n)
            indices = choose(split, n_train, n_test, parts)
            part = slice(indices.start, indices.stop)
            die = file["input"][part].astype(np.float32)
            series = file["output"][part].astype(np.float32)
        self.spatial_shape = (ni, nj)
        self._die = torch.from_numpy(die).unsqueeze(-1).expand(-1, -1, nj).flatten(1)  # (n, N)
        self._series = torch.from_numpy(series).flatten(1, 2)  # (n, N, 20, 4)
        self._times = torch.arange(1, n_times + 1) / n_times
        axes = torch.linspace(0, _LENGTH, ni), torch.linspace(0, _HEIGHT, nj)
        self._embedding = torch.stack(torch.meshgrid(*axes, indexing="ij"), -1).flatten(0, 1)

    def __len__(self) -> int:
        return len(self._series)

    def _load_sample(self, index: int) -> dict[str, torch.Tensor]:
        return {
            "embedding": self._embedding,
            "fx": self._die[index].unsqueeze(-1),
            "times": self._times,
            "target": self._series[index].flatten(1),
        }
