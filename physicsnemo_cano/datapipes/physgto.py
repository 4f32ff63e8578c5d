# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Trajectories on meshes of triangles, a file each: the container of PhysGTO's data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import h5py
import numpy as np
import torch
from jaxtyping import Int

from physicsnemo_cano.datapipes.files import check_samples, locate, open_hdf5
from physicsnemo_cano.datapipes.quadrature import node_weights
from physicsnemo_cano.datapipes.reader import source_of
from physicsnemo_cano.datapipes.trajectories import TrajectoryReader

LISTS = ("train.txt", "test.txt")


def write_trajectory(stream: BinaryIO, arrays: Mapping[str, np.ndarray]) -> None:
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

    The folder holds ``train.txt`` and ``test.txt``, a path a line, absolute or from the folder;
    where there is none, as lists come from other machines, the file of that name in the folder is
    meant. Each is an HDF5 file of one trajectory: ``node_pos`` :math:`(N, 2)`, ``cells``
    :math:`(M, 3)`, the triangles' nodes counted from 0, ``node_type`` :math:`(N,)`, ``t``
    :math:`(T, 1)`, ``conditions`` :math:`(C,)` and a field :math:`(T, N)` for each target. N and M
    may differ between files. A file is opened when a sample is read, and of its fields only the
    window's frames are read.

    Test and validation samples start from the first frames of their trajectories, and end
    ``n_tested`` frames after those given.

    A subclass names ``datasets`` beside ``targets``, and its ``statics``: the kinds of nodes, each
    an input of its own that is 1 at its nodes and 0 elsewhere, then the conditions.

    Attributes
    ----------
    datasets : tuple of str
        Names of the targets in the files.
    n_types : int
        Kinds of nodes; ``node_type`` counts them from 0.
    n_tested : int
        Most frames that are predicted of a test trajectory.
    """

    datasets: tuple[str, ...]
    n_types: int
    n_tested: int = 50

    def open(self) -> tuple[range, range]:
        """Read the lists."""
        self.source = source_of(self.path)
        self._shapes: dict[int, dict[str, tuple[int, ...]]] = {}
        self._checked: set[int] = set()  # trajectories whose cells have been looked at
        train, test = map(self._listed, LISTS)
        self._files = train + test
        twice = [file for file, count in Counter(self._files).items() if count > 1]
        if twice:
            raise ValueError(
                f"{' and '.join(LISTS)} of {self.path} name {min(twice)} more than once: each "
                f"trajectory needs a file of its own. {self.help}"
            )
        return range(len(train)), range(len(train), len(self._files))

    def _listed(self, name: str) -> list[Path]:
        """Files that a list names."""
        text = locate(self.path, type(self).__name__, self.help, name).read_text()
        named = [self.path / line.strip() for line in text.splitlines() if line.strip()]
        check_samples(len(named), 1, self.path / name, self.help)
        files = [file if file.is_file() else self.path / file.name for file in named]
        absent = [path for path, file in zip(named, files, strict=True) if not file.is_file()]
        if absent:
            raise FileNotFoundError(
                f"{self.path / name} names {absent[0]}, which is neither there nor in {self.path} "
                f"({len(absent)} of {len(named)} files are missing). {self.help}"
            )
        return files

    def _shapes_of(self, index: int) -> dict[str, tuple[int, ...]]:
        """Shapes of a file's datasets, which are checked at the first call."""
        if index in self._shapes:
            return self._shapes[index]
        conditions = (len(self.statics) - self.n_types,)
        expected = {"node_pos": ("N", 2), "cells": ("M", 3), "node_type": ("N",), "t": ("T", 1)}
        expected |= {"conditions": conditions} | dict.fromkeys(self.datasets, ("T", "N"))
        integers = ("cells", "node_type", "t")
        with open_hdf5(self._files[index], expected, self.help, integers) as stream:
            found = {name: stream[name].shape for name in expected}
        return self._shapes.setdefault(index, found)

    def n_frames(self, index: int) -> int:
        """Length of a trajectory, of which a test looks at no more than ``n_tested`` predicted."""
        n = self._shapes_of(index)["t"][0]
        return n if self._windows else min(n, self.n_input + self.n_tested)

    def n_points(self, index: int) -> int:
        """Nodes of a trajectory's mesh."""
        return self._shapes_of(index)["node_pos"][0]

    def cells(self, index: int) -> Int[np.ndarray, "M 3"]:
        """The triangles of a sample's mesh.

        Parameters
        ----------
        index : int
            Of one of this reader's samples.

        Returns
        -------
        numpy.ndarray
            Of integers, (M, 3): their nodes, counted from 0.
        """
        with h5py.File(self._files[self.indices[index // (self._windows or 1)]]) as file:
            return file["cells"][()]

    def load(self, index: int, frames: slice) -> dict[str, np.ndarray | torch.Tensor]:
        """Read frames of a trajectory, by its index in the lists."""
        n_nodes = self.n_points(index)
        with h5py.File(self._files[index]) as stream:
            fields = np.stack([stream[name][frames] for name in self.datasets], -1)
            points, conditions = stream["node_pos"][()], stream["conditions"][()]
            kinds = _whole(stream, "node_type", self.n_types, self.help)
            if self.weighted or index not in self._checked:
                cells = _whole(stream, "cells", n_nodes, self.help)
                self._checked.add(index)
        statics = [np.eye(self.n_types)[kinds], np.tile(conditions, (n_nodes, 1))]
        sample = {"embedding": points, "frames": fields, "statics": np.concatenate(statics, -1)}
        if self.weighted:
            sample["weights"] = node_weights(torch.tensor(points), cells=torch.tensor(cells))
        return sample


def _whole(stream: h5py.File, name: str, count: int, hint: str) -> np.ndarray:
    """A dataset as integers, which are from 0 to ``count`` - 1."""
    values = stream[name][()]
    if not np.isin(values, np.arange(count)).all():
        raise ValueError(
            f"{stream.filename}: {name} holds {values.min()} to {values.max()}, expected whole "
            f"numbers from 0 to {count - 1}. {hint}"
        )
    return values.astype(np.int64)
