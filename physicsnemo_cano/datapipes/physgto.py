# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Trajectories on meshes of triangles, a file each: the container of PhysGTO's data."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import h5py
import numpy as np
import torch

from physicsnemo_cano.datapipes.files import check_samples, check_shapes, locate
from physicsnemo_cano.datapipes.quadrature import node_weights
from physicsnemo_cano.datapipes.reader import source_of
from physicsnemo_cano.datapipes.trajectories import TrajectoryReader

LISTS = ("train.txt", "test.txt")
_TESTED = 50  # steps of a test rollout


def write_trajectory(stream, arrays: Mapping[str, np.ndarray]) -> None:
    """Write a trajectory as the published files hold it, fields in single precision.

    Parameters
    ----------
    stream : file
        Binary, readable and seekable.
    arrays : mapping of str to numpy.ndarray
        ``node_pos`` (N, 2), ``cells`` (M, 3), ``node_type`` (N,), ``t`` (T, 1), ``conditions``
        (C,) and the fields (T, N).
    """
    with h5py.File(stream, "w") as file:
        for name, array in arrays.items():
            whole = np.issubdtype(array.dtype, np.integer)
            file.create_dataset(name, data=array.astype(np.int64 if whole else np.float32))


class PhysGTOReader(TrajectoryReader):
    r"""The base of readers of PhysGTO's container.

    The folder holds ``train.txt`` and ``test.txt``, a path a line: absolute, or from the folder.
    Each path is an HDF5 file of one trajectory: ``node_pos`` :math:`(N, 2)`, ``cells``
    :math:`(M, 3)`, the triangles' nodes counted from 0, ``node_type`` :math:`(N,)`, ``t``
    :math:`(T, 1)`, ``conditions`` and a field :math:`(T, N)` for each target. N may differ between
    files. A file is opened when a sample is read, and only a window's frames are.

    A subclass names ``datasets`` and ``conditions`` beside ``targets``.

    Attributes
    ----------
    datasets : tuple of str
        Names of the targets in the files.
    conditions : tuple of Channel
        Of a trajectory.
    n_types : int
        Kinds of nodes, counted from 0; each is an input of its own, 1 at its nodes and else 0.
    """

    datasets: tuple[str, ...]
    n_types: int

    def open(self) -> tuple[range, range]:
        """Read the lists."""
        self.source = source_of(self.path)
        self._files, counts = [], []
        for name in LISTS:
            lines = locate(self.path, type(self).__name__, self.help, name).read_text().split("\n")
            named = [self.path / line.strip() for line in lines if line.strip()]
            check_samples(len(named), 1, self.path / name, self.help)
            missing = [str(file) for file in named if not file.is_file()]
            if missing:
                raise FileNotFoundError(
                    f"{self.path / name} names {missing[0]} and {len(missing) - 1} others that do "
                    f"not exist. Its lines are paths, absolute or from {self.path}. {self.help}"
                )
            self._files += named
            counts.append(len(named))
        return range(counts[0]), range(counts[0], sum(counts))

    @functools.cache  # noqa: B019 - as long as the reader
    def _shapes(self, index: int) -> dict[str, tuple[int, ...]]:
        """Shapes of a file's datasets, which are checked at the first call."""
        file = self._files[index]
        n_conditions = len(self.statics) - self.n_types
        expected = {"node_pos": ("N", 2), "cells": ("M", 3), "node_type": ("N",), "t": ("T", 1)}
        expected |= {"conditions": (n_conditions,)} | dict.fromkeys(self.datasets, ("T", "N"))
        try:
            with h5py.File(file) as stream:
                found = {name: getattr(item, "shape", "(a group)") for name, item in stream.items()}
        except OSError as error:
            raise ValueError(f"{file} is no HDF5 file ({error}). {self.help}") from error
        check_shapes(found, expected, file, self.help)
        return found

    def n_frames(self, index: int) -> int:
        """Length of a trajectory, of those for testing no more than 50 steps beyond the input."""
        n = self._shapes(index)["t"][0]
        return n if self._windows else min(n, self.n_input + _TESTED)

    def cells(self, index: int) -> np.ndarray:
        """Triangles (M, 3) of one of this reader's samples, their nodes counted from 0."""
        with h5py.File(self._files[self.indices[index // (self._windows or 1)]]) as file:
            return file["cells"][:]

    def load(self, index: int, frames: slice) -> dict[str, np.ndarray | torch.Tensor]:
        """Read frames of a trajectory, by its index in the lists."""
        n_nodes = self._shapes(index)["node_pos"][0]
        with h5py.File(self._files[index]) as file:
            fields = np.stack([file[name][frames] for name in self.datasets], -1)
            points, cells = file["node_pos"][:].astype(np.float32), file["cells"][:]
            kinds, conditions = file["node_type"][:], file["conditions"][:]
        for name, found, count in (("cells", cells, n_nodes), ("node_type", kinds, self.n_types)):
            if found.min() < 0 or found.max() >= count:
                raise ValueError(
                    f"{self._files[index]}: {name} holds {found.min()} to {found.max()}, expected "
                    f"0 to {count - 1}. {self.help}"
                )
        statics = [np.eye(self.n_types)[kinds.astype(int)], np.tile(conditions, (n_nodes, 1))]
        sample = {"embedding": points, "frames": fields, "statics": np.concatenate(statics, -1)}
        if self.weighted:
            triangles = torch.from_numpy(cells.astype(np.int64))
            sample["weights"] = node_weights(torch.from_numpy(points), cells=triangles)
        return sample
