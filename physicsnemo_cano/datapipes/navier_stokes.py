"""Vorticity of two-dimensional turbulence: ten frames to the next ten (FNO's set)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from physicsnemo_cano.datapipes.benchmark import (
    BenchmarkReader,
    Channel,
    Split,
    choose,
    only_file,
    parts_of,
    source_of,
)
from physicsnemo_cano.datapipes.matlab import MatlabFile

_FILE = "NavierStokes_V1e-5_N*_T20.mat"
_SHAPE = (1200, 64, 64, 20)
_N_INPUT = 10  # frames
_HELP = (
    "Expected a folder with NavierStokes_V1e-5_N1200_T20.mat (the published file) or one that "
    "python examples/navier_stokes/generate.py --out data/navier_stokes has made"
)


class NavierStokes(BenchmarkReader):
    r"""Samples of the Navier-Stokes benchmark, from the published file or a generated one.

    A folder with ``NavierStokes_V1e-5_N1200_T20.mat``, in it ``u`` :math:`(1200, 64, 64, 20)`,
    vorticity on the unit torus at the times 1, 2, … 20, is published, unless ``generate.py`` has
    left its mark there; then the number of samples and the grid may be others. Of 1200 samples
    the first 1000 are for training and the last 200 for testing; of another number the first 80 %
    and the rest.

    A sample holds ``embedding`` :math:`(N, 2)`, the points :math:`i / n` of the torus; ``fx``
    :math:`(N, 10)`, the frames of the times 1 to 10; ``target`` :math:`(N, 10)`, those of 11 to 20.

    Parameters
    ----------
    root : str, Path or None
        The folder; ``None`` only earns the message that says what is needed.
    split : {"train", "test"}
        Which part; it is read into memory.
    n_train, n_test : int, optional
        Take fewer samples; all by default.
    stride : int, optional, default=1
        Keep every so many-th point of each axis.

    Raises
    ------
    FileNotFoundError
        If there is nothing at ``root``, or no such file in it.
    ValueError
        If the folder has several such files, or the file another key or shape than expected.
    """

    coordinates = (Channel("x"), Channel("y"))
    targets = (Channel("vorticity"),)
    series = "rollout"

    def __init__(
        self,
        root: str | Path | None,
        split: Split = "train",
        n_train: int | None = None,
        n_test: int | None = None,
        stride: int = 1,
    ) -> None:
        super().__init__()
        path = only_file(root, _FILE, _HELP)
        self.path = Path(root)
        self.source = source_of(self.path)
        generated = self.source == "generated"
        expected = ("n", "points", "points", _SHAPE[-1]) if generated else _SHAPE
        with MatlabFile(path, {"u": expected}, _HELP) as file:
            n, points = file.shapes["u"][:2]
            if n < 2 or points % stride:
                raise ValueError(
                    f"{path} has {n} samples of {points} x {points} points, expected at least "
                    f"2 samples, and a number of points that data.stride={stride} divides"
                )
            indices = choose(split, n_train, n_test, parts_of(n))
            frames = file["u"][indices.start : indices.stop, ::stride, ::stride]
        self._frames = torch.from_numpy(frames.astype(np.float32)).flatten(1, 2)  # (n, N, 20)
        axis = torch.arange(points // stride) * stride / points
        self.spatial_shape = (len(axis), len(axis))
        self._embedding = torch.stack(torch.meshgrid(axis, axis, indexing="ij"), -1).flatten(0, 1)

    def __len__(self) -> int:
        return len(self._frames)

    def _load_sample(self, index: int) -> dict[str, torch.Tensor]:
        frames = self._frames[index]
        return {
            "embedding": self._embedding,
            "fx": frames[:, :_N_INPUT],
            "target": frames[:, _N_INPUT:],
        }
