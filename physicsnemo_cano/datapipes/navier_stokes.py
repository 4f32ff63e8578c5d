# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Vorticity of two-dimensional turbulence (FNO's set): ten frames to ten, or five to fifteen."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from physicsnemo_cano.datapipes.files import check_samples, locate
from physicsnemo_cano.datapipes.matlab import MatlabFile
from physicsnemo_cano.datapipes.reader import Channel, FieldReader, Split, parts_of, source_of
from physicsnemo_cano.datapipes.trajectories import TrajectoryReader

_SHAPE = (1200, 64, 64, 20)
_N_INPUT = 10  # frames


class _Vorticity(FieldReader):
    """The file and its split, in memory; ``stride`` is set by those who have it as an argument."""

    coordinates = (Channel("x"), Channel("y"))
    targets = (Channel("vorticity"),)
    stride: int
    help = (
        "Expected a folder with NavierStokes_V1e-5_N1200_T20.mat (the published file) or one that "
        "python examples/navier_stokes/generate.py --out data/navier_stokes has made"
    )

    def open(self) -> tuple[range, range]:
        """Read the split."""
        file = locate(self.path, "Navier-Stokes", self.help, "NavierStokes_V1e-5_N*_T20.mat")
        self.source = source_of(self.path)
        any_size = ("n", "points", "points", _SHAPE[-1])
        expected = any_size if self.source == "generated" else _SHAPE
        with MatlabFile(file, {"u": expected}, self.help) as matlab:
            n, points = matlab.shapes["u"][:2]
            check_samples(n, 2, file, self.help)
            if self.stride < 1 or points % self.stride:
                raise ValueError(
                    f"data.stride={self.stride}: {file} has {points} points an axis, choose a "
                    "divisor"
                )
            parts = parts_of(n)
            chosen = self.choose(parts)
            self._first, part = chosen.start, slice(chosen.start, chosen.stop)
            frames = matlab["u"][part, :: self.stride, :: self.stride]
        self._frames = torch.from_numpy(frames.astype(np.float32)).flatten(1, 2)  # (n, N, 20)
        axis = torch.arange(points // self.stride) * self.stride / points
        self.spatial_shape = (len(axis), len(axis))
        self._embedding = torch.stack(torch.meshgrid(axis, axis, indexing="ij"), -1).flatten(0, 1)
        return parts


class NavierStokes(_Vorticity):
    r"""Samples of the Navier-Stokes benchmark, from the published file or a generated one.

    A folder with ``NavierStokes_V1e-5_N1200_T20.mat``, in it ``u`` :math:`(1200, 64, 64, 20)`,
    vorticity on the unit torus at the times 1, 2, … 20, is published, unless ``generate.py`` has
    left its mark there; then the number of samples and the grid may be others. Of 1200 samples
    the first 1000 are for training and the last 200 for testing; of another number the first 80 %
    and the rest. The split is read into memory.

    A sample holds ``embedding`` :math:`(N, 2)`, the points :math:`i / n` of the torus; ``fx``
    :math:`(N, 10)`, the frames of the times 1 to 10; ``target`` :math:`(N, 10)`, those of 11 to 20.

    Parameters
    ----------
    root, split, n_train, n_test
        See :class:`FieldReader`. Weights would all be equal.
    stride : int, optional, default=1
        Keep every so many-th point of each axis.
    """

    series = "rollout"

    def __init__(
        self,
        root: str | Path | None,
        split: Split = "train",
        n_train: int | None = None,
        n_test: int | None = None,
        stride: int = 1,
    ) -> None:
        self.stride = stride
        super().__init__(root, split, n_train, n_test)

    def load(self, index: int) -> dict[str, torch.Tensor]:
        """A sample, by its index in the file."""
        frames = self._frames[index - self._first]
        fx, target = frames[:, :_N_INPUT], frames[:, _N_INPUT:]
        return {"embedding": self._embedding, "fx": fx, "target": target}


class NavierStokesRollout(TrajectoryReader, _Vorticity):
    r"""Trajectories of the Navier-Stokes benchmark's file: five frames to all that follow.

    File, split and points are those of :class:`NavierStokes`. A training sample is a window of
    five frames, ``fx`` :math:`(N, 5)`, and the five that follow, ``target`` :math:`(N, 5)`; a test
    sample holds the frames of the times 1 to 5 and of 6 to 20.

    Parameters
    ----------
    root, split, n_train, n_test, stride
        See :class:`NavierStokes`.
    windows : int, optional, default=1
        See :class:`TrajectoryReader`.
    """

    def __init__(
        self,
        root: str | Path | None,
        split: Split = "train",
        n_train: int | None = None,
        n_test: int | None = None,
        stride: int = 1,
        windows: int = 1,
    ) -> None:
        self.stride = stride
        super().__init__(root, split, n_train, n_test, windows=windows)

    def n_frames(self, index: int) -> int:
        """Length of a trajectory, the same for all."""
        return self._frames.shape[-1]

    def load(self, index: int, frames: slice) -> dict[str, torch.Tensor]:
        """Frames of a trajectory, by its index in the file."""
        chosen = self._frames[index - self._first, :, frames]  # (N, T)
        return {"embedding": self._embedding, "frames": chosen.T[..., None]}
