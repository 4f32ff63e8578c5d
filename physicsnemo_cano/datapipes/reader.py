# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""The base of all readers: a reader is its files, their shapes and one ``load``."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import torch
from physicsnemo.datapipes import Reader

from physicsnemo_cano.datapipes.files import locate
from physicsnemo_cano.datapipes.quadrature import node_weights

Split = Literal["train", "test"]

# generate.py writes the published layout: parts/ first, provenance.json before it removes parts/.
_MARKS = ("parts", "provenance.json")
# Times its extent that a sample may lie from zero before float32 takes digits of the extent.
_FAR = 1e3


class Channel(NamedTuple):
    """Name and unit of one channel, for axes and files."""

    name: str
    unit: str = "-"

    def __str__(self) -> str:
        return self.name if self.unit == "-" else f"{self.name} [{self.unit}]"


class FieldReader(Reader):
    r"""A reader whose samples the recipe understands; a data set's own is a subclass.

    A subclass names its ``coordinates`` and ``targets``, and has two methods: :meth:`open` looks
    at the files and :meth:`load` reads one sample. ``docs/new_dataset.md`` shows one.

    A sample holds ``embedding`` :math:`(N, d_x)`, the coordinates; ``fx`` :math:`(N, d_a)`, the
    input function, or :math:`(1, d_a)` for inputs of all points; ``target`` :math:`(N, d_u)`; and,
    where they apply, ``mask`` :math:`(N,)`, true on the real points of padded clouds, and
    ``weights`` :math:`(N,)`, quadrature weights. All are raw, in physical units. Where ``target``
    is a series in time, it holds its frames one after the other, :math:`(N, T d_u)`; see
    ``series``.

    Parameters
    ----------
    root : str, Path or None
        Where the data are; ``None`` only earns the message that says what is needed.
    split : {"train", "test"}
        Which part.
    n_train, n_test : int, optional
        Take fewer samples; all by default.
    weights : bool, optional, default=False
        Whether samples carry quadrature weights. On structured meshes they follow from the
        coordinates; for clouds, ``load`` has to give them.

    Attributes
    ----------
    coordinates, targets : tuple of Channel
        Names and units of the channels of ``embedding`` and ``target``, of a series those of one
        frame.
    series : {None, "rollout", "instants"}
        ``None`` where ``target`` is one field. ``rollout`` where it holds the frames that follow
        those in ``fx`` :math:`(N, F d_u)`. ``instants`` where it holds those at the sample's
        ``times`` :math:`(T,)`.
    n_static : int
        Of a rollout, the last channels of ``fx`` that are no frames and stay as they are.
    spatial_shape : tuple of int or None
        Shape of the structured mesh whose points are flattened (last axis fastest) into
        :math:`N`; ``None`` for clouds.
    source : str
        Where the data come from, in words; it goes with every number.
    help : str
        What is expected at ``root`` and how to get it, for messages.
    path : Path
        What was read.

    Raises
    ------
    FileNotFoundError
        If there is nothing at ``root``, or a file is missing there.
    ValueError
        If a file is damaged or of another shape than expected, or has too few samples.
    """

    coordinates: tuple[Channel, ...]
    targets: tuple[Channel, ...]
    series: Literal["rollout", "instants"] | None = None
    n_static: int = 0
    spatial_shape: tuple[int, ...] | None = None
    source: str = "own data"
    help: str = ""

    def __init__(
        self,
        root: str | Path | None,
        split: Split = "train",
        n_train: int | None = None,
        n_test: int | None = None,
        weights: bool = False,
    ) -> None:
        # Pinned memory lets the copy to a GPU run beside the computation.
        super().__init__(pin_memory=torch.cuda.is_available())
        if split not in ("train", "test"):
            raise ValueError(f"split must be 'train' or 'test', got {split!r}")
        self.path = locate(root, type(self).__name__, self.help)
        self.split, self.weighted = split, weights
        self._wanted = n_train if split == "train" else n_test
        parts = self.open()
        self.indices = self.choose(first_80_percent(parts) if isinstance(parts, int) else parts)

    def open(self) -> int | tuple[Sequence[int], Sequence[int]]:
        """Look at the files of ``self.path`` and set what all samples share.

        Returns
        -------
        int or pair of sequences of int
            The number of samples, of which the first 80 % are for training and the others for
            testing; or the indices for training and those for testing.
        """
        raise NotImplementedError(f"{type(self).__name__} needs a method open")

    def load(self, index: int) -> Mapping[str, np.ndarray | torch.Tensor]:
        """Read a sample.

        Parameters
        ----------
        index : int
            In the files, one of those that :meth:`open` has returned.

        Returns
        -------
        mapping of str to array
            In physical units, with the keys that the class lists; ``fx`` may be left out.
        """
        raise NotImplementedError(f"{type(self).__name__} needs a method load")

    def n_points(self, index: int) -> int | None:
        """Number of points of a sample, found without reading its fields.

        Samples of different sizes need it, to be put into batches with others of about their
        size.

        Parameters
        ----------
        index : int
            In the files, one of those that :meth:`open` has returned.

        Returns
        -------
        int or None
            ``None`` where all samples have the same.
        """
        return None

    @property
    def names(self) -> list[str] | None:
        """Names of this reader's samples, for tables and figures; ``None`` where they have none."""
        return None

    def sizes(self) -> list[int] | None:
        """Number of points of each of this reader's samples.

        Returns
        -------
        list of int or None
            ``None`` if all have the same.
        """
        sizes = [self.n_points(index) for index in self.indices]
        return None if None in sizes else sizes

    def choose(self, parts: tuple[Sequence[int], Sequence[int]]) -> Sequence[int]:
        """This reader's samples of those for training and those for testing.

        The first ``n_train`` (``n_test``) are taken, so the test samples stay the same however
        few are trained on, and errors remain comparable.

        Parameters
        ----------
        parts : pair of sequences of int
            Indices for training and those for testing.

        Returns
        -------
        sequence of int
            Indices of this reader's samples.

        Raises
        ------
        ValueError
            If more are wanted than there are, or none.
        """
        indices = parts[self.split == "test"]
        if self._wanted is not None and not 1 <= self._wanted <= len(indices):
            raise ValueError(f"data.n_{self.split}={self._wanted}: choose from 1 to {len(indices)}")
        return indices[: self._wanted]

    def give(self, fraction: float) -> FieldReader:
        """Give the last samples away, to a reader of their own.

        Parameters
        ----------
        fraction : float
            Of the samples, above 0 and below 1; at least one is given and one kept.

        Returns
        -------
        FieldReader
            Of the same files, with the samples that this one no longer has.

        Raises
        ------
        ValueError
            If there is one sample alone.
        """
        n = len(self.indices)
        if n < 2:
            raise ValueError(f"{self.path}: {n} training sample leaves none for validation")
        n_kept = min(max(round((1 - fraction) * n), 1), n - 1)
        other = copy.copy(self)
        self.indices, other.indices = self.indices[:n_kept], self.indices[n_kept:]
        return other

    def __len__(self) -> int:
        return len(self.indices)

    def _load_sample(self, index: int) -> dict[str, torch.Tensor]:  # PhysicsNeMo's name
        loaded = self._read(index)
        where = f"{self.path}: sample {index} of the {self.split} set"
        sample = {key: _tensor(key, value, where) for key, value in loaded.items()}
        for key in ("embedding", "target"):
            if key not in sample or sample[key].ndim != 2:
                found = tuple(sample[key].shape) if key in sample else "nothing"
                raise ValueError(f"{where} has {found} as {key}, expected points x channels")
        sample.setdefault("fx", sample["embedding"][:, :0])
        if self.weighted and "weights" not in sample:
            sample["weights"] = self._node_weights(sample["embedding"], where)
        if not self.weighted:
            sample.pop("weights", None)
        self._check(sample, where)
        return sample

    def _read(self, index: int) -> Mapping[str, np.ndarray | torch.Tensor]:
        return self.load(self.indices[index])

    def _node_weights(self, points: torch.Tensor, where: str) -> torch.Tensor:
        if self.spatial_shape is None:
            raise ValueError(
                f"{where} is a cloud, whose points carry no known measure: set data.weights=false, "
                "or let load return weights, such as physicsnemo_cano.datapipes.quadrature's"
            )
        return node_weights(points.unflatten(0, self.spatial_shape), structured=True).flatten()

    def _check(self, sample: Mapping[str, torch.Tensor], where: str) -> None:
        """Raise a ``ValueError`` where a sample is not what the class says."""
        n, d_x = sample["embedding"].shape
        channels = sample["target"].shape[1]
        problems = []
        if d_x != len(self.coordinates):
            problems.append(f"{d_x} coordinates, the reader names {len(self.coordinates)}")
        if channels % len(self.targets) or (self.series is None and channels != len(self.targets)):
            problems.append(f"{channels} target channels, the reader names {len(self.targets)}")
        if self.spatial_shape is not None and n != np.prod(self.spatial_shape):
            problems.append(f"{n} points, a mesh of {self.spatial_shape} has others")
        if len(sample["target"]) != n:
            problems.append(f"{n} points and a target on {len(sample['target'])}")
        if sample["fx"].ndim != 2 or len(sample["fx"]) not in (1, n):
            problems.append(f"fx of shape {tuple(sample['fx'].shape)}, expected ({n} or 1, C)")
        for key in ("mask", "weights"):
            if key in sample and sample[key].shape != (n,):
                problems.append(f"{key} of shape {tuple(sample[key].shape)}, expected ({n},)")
        if "mask" in sample and (sample["mask"].dtype != torch.bool or self.spatial_shape):
            problems.append("a mask that is not bool, or is on a structured mesh, not a cloud")
        if self.series == "instants":
            frames = channels // len(self.targets)
            if "times" not in sample or sample["times"].shape != (frames,):
                problems.append(f"a target of {frames} frames without their times ({frames},)")
        if problems:
            raise ValueError(f"{where} has {'; '.join(problems)}")


def as_tensor(key: str, value: np.ndarray | torch.Tensor, where: str) -> torch.Tensor:
    """A tensor as it is, or of a copy of an array, which must hold numbers.

    Parameters
    ----------
    key, where : str
        Of the sample's field and the sample, for messages.
    value : numpy.ndarray or torch.Tensor
        The field.

    Returns
    -------
    torch.Tensor

    Raises
    ------
    ValueError
        If an array holds no numbers.
    """
    if isinstance(value, torch.Tensor):
        return value
    # Of a copy: torch warns of the arrays of mapped files, which cannot be written to.
    value = np.array(value)
    if value.dtype.kind not in "biufc":
        raise ValueError(f"{where} has {value.dtype} as {key}, expected numbers")
    return torch.as_tensor(value)


def _tensor(key: str, value: np.ndarray | torch.Tensor, where: str) -> torch.Tensor:
    """A tensor of float32 or bool; inputs that lie far from zero keep float64 and so their digits,
    until the recipe has taken their mean away."""
    tensor = as_tensor(key, value, where)
    if tensor.dtype == torch.bool:
        return tensor
    if tensor.is_complex():
        raise ValueError(f"{where} has a complex {key}: make two real channels of it")
    if tensor.dtype == torch.float64 and key in ("embedding", "fx") and tensor.numel():
        extent = tensor.amax(0) - tensor.amin(0)
        if ((tensor.abs().amax(0) > _FAR * extent) & (extent > 0)).any():
            return tensor
    return tensor.float()


def first_80_percent(n: int) -> tuple[range, range]:
    """Indices of a set of any size.

    Parameters
    ----------
    n : int
        Number of samples.

    Returns
    -------
    pair of range
        Those for training and those for testing.
    """
    n_first = round(0.8 * n)
    return range(n_first), range(n_first, n)


def parts_of(n: int, n_train: int = 1000, n_test: int = 200) -> tuple[range, range]:
    """Indices of a set that has the published size split as published, of others the first 80 %.

    Parameters
    ----------
    n : int
        Number of samples.
    n_train, n_test : int, optional, default=1000, 200
        Of the published set: the first are for training, the others for testing.

    Returns
    -------
    pair of range
        Those for training and those for testing.
    """
    return (range(n_train), range(n_train, n)) if n == n_train + n_test else first_80_percent(n)


def source_of(folder: Path) -> Literal["published", "generated"]:
    """Whether a folder's files are published ones, or ``generate.py`` has left its mark there.

    Parameters
    ----------
    folder : Path
        Of the files.

    Returns
    -------
    {"published", "generated"}
    """
    return "generated" if any((folder / name).exists() for name in _MARKS) else "published"
