# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""The base of readers of long trajectories: windows to train on, whole ones to test on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from physicsnemo_cano.datapipes.reader import Channel, FieldReader, Split, as_tensor


class TrajectoryReader(FieldReader):
    r"""A reader of trajectories, of which it reads no more than the frames it gives.

    Training samples are windows of ``n_input`` frames and the ``n_output`` that follow; where
    they begin is drawn from seed, epoch and sample, so that a resumed training sees the same.
    Test and validation samples are whole trajectories: the first ``n_input`` frames, and all
    others to be predicted.

    A subclass names its ``coordinates``, ``targets`` and ``statics``, and has :meth:`open`, which
    returns the number or the indices of trajectories, :meth:`n_frames`, and :meth:`load`, which
    reads frames of one, from a file that stays open or is opened anew.

    Parameters
    ----------
    root, split, n_train, n_test, weights
        See :class:`FieldReader`; they count trajectories.
    windows : int, optional, default=1
        Of each trajectory in an epoch.

    Attributes
    ----------
    n_input, n_output : int
        Frames of a window that are given, and those that are predicted.
    statics : tuple of Channel
        Inputs that stay the same over the trajectory, such as its conditions.

    Raises
    ------
    ValueError
        If ``windows`` is not positive; when a sample is read, if a trajectory has fewer frames
        than a window.
    """

    series = "rollout"
    n_input: int = 5
    n_output: int = 5
    statics: tuple[Channel, ...] = ()

    def __init__(
        self,
        root: str | Path | None,
        split: Split = "train",
        n_train: int | None = None,
        n_test: int | None = None,
        weights: bool = False,
        windows: int = 1,
    ) -> None:
        if windows < 1:
            raise ValueError(f"data.windows={windows}: each trajectory needs one an epoch, or more")
        super().__init__(root, split, n_train, n_test, weights)
        self.n_static = len(self.statics)
        self._windows = windows if split == "train" else None  # whole trajectories
        self._seed, self._epoch = 0, 0

    def n_frames(self, index: int) -> int:
        """Length of a trajectory.

        Parameters
        ----------
        index : int
            In the files, one of those that :meth:`open` has returned.

        Returns
        -------
        int
        """
        raise NotImplementedError(f"{type(self).__name__} needs a method n_frames")

    def load(self, index: int, frames: slice) -> Mapping[str, np.ndarray | torch.Tensor]:
        r"""Read consecutive frames of a trajectory, and no others.

        Parameters
        ----------
        index : int
            In the files, one of those that :meth:`open` has returned.
        frames : slice
            Which.

        Returns
        -------
        mapping of str to array
            ``frames`` :math:`(T, N, d_u)`, ``embedding`` :math:`(N, d_x)`, and where they apply
            ``statics`` :math:`(C,)` or :math:`(N, C)`, ``mask`` and ``weights``, in physical units.
        """
        raise NotImplementedError(f"{type(self).__name__} needs a method load")

    def set_generator(self, generator: torch.Generator) -> None:
        """Take the seed of the windows; called by PhysicsNeMo's Dataset.

        Parameters
        ----------
        generator : torch.Generator
            Its initial seed is the seed.
        """
        self._seed = generator.initial_seed()

    def set_epoch(self, epoch: int) -> None:
        """Choose other windows; called by PhysicsNeMo's DataLoader.

        Parameters
        ----------
        epoch : int
            From 1; the statistics are measured on the windows of epoch 0.
        """
        self._epoch = epoch

    def give(self, fraction: float) -> FieldReader:
        """Give the last trajectories away, to a reader of whole ones.

        Parameters
        ----------
        fraction : float
            Of the trajectories; see :class:`FieldReader`.

        Returns
        -------
        TrajectoryReader
        """
        other = super().give(fraction)
        other._windows = None
        return other

    def sizes(self) -> list[int] | None:
        """Number of points of each of this reader's samples; ``None`` if all have the same."""
        sizes = super().sizes()
        return sizes and [size for size in sizes for _ in range(self._windows or 1)]

    def __len__(self) -> int:
        return len(self.indices) * (self._windows or 1)

    def _read(self, index: int) -> dict[str, np.ndarray | torch.Tensor]:
        trajectory = self.indices[index // (self._windows or 1)]
        n, first, length = self.n_frames(trajectory), 0, self.n_input + self.n_output
        where = f"{self.path}: trajectory {trajectory}"
        if n < length:
            raise ValueError(f"{where} has {n} frames, a window needs {length}")
        if self._windows is None:
            length = n
        else:
            draw = np.random.default_rng((self._seed, self._epoch, index))
            first = int(draw.integers(n - length, endpoint=True))
        sample = dict(self.load(trajectory, slice(first, first + length)))
        frames = as_tensor("frames", sample.pop("frames"), where).movedim(0, 1)  # (N, T, d_u)
        fx = frames[:, : self.n_input].flatten(1)
        if self.statics:
            statics = as_tensor("statics", sample.pop("statics"), where)
            fx = torch.cat([fx, statics.expand(len(fx), -1)], 1)
        return sample | {"fx": fx, "target": frames[:, self.n_input :].flatten(1)}
