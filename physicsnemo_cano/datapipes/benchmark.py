"""What the readers of all benchmarks have in common."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import torch
from physicsnemo.datapipes import Reader

Split = Literal["train", "test"]


class Channel(NamedTuple):
    """Name and unit of one channel, for axes and files."""

    name: str
    unit: str = "-"

    def __str__(self) -> str:
        return self.name if self.unit == "-" else f"{self.name} [{self.unit}]"


class BenchmarkReader(Reader):
    r"""A reader whose samples the recipe understands.

    A sample holds ``embedding`` :math:`(N, d_x)`, the coordinates; ``fx`` :math:`(N, d_a)`, the
    input function, with 0 channels where there is none; ``target`` :math:`(N, d_u)`; and, where
    they apply, ``time``, ``mask`` and ``weights`` :math:`(N,)`. All are raw, in physical units.

    Attributes
    ----------
    spatial_shape : tuple of int or None
        Shape of the structured mesh whose points are flattened (last axis fastest) into
        :math:`N`; ``None`` for clouds.
    source : {"published", "generated"}
        Where the data come from; it goes with every number.
    path : Path
        What was read.
    coordinates, targets : tuple of Channel
        Names and units of the channels of ``embedding`` and ``target``.
    """

    spatial_shape: tuple[int, ...] | None = None
    source: Literal["published", "generated"]
    path: Path
    coordinates: tuple[Channel, ...]
    targets: tuple[Channel, ...]

    def __init__(self) -> None:
        # Pinned memory lets the copy to a GPU run beside the computation.
        super().__init__(pin_memory=torch.cuda.is_available())


def choose(
    split: Split,
    n_train: int | None,
    n_test: int | None,
    available: tuple[Sequence[int], Sequence[int]],
) -> Sequence[int]:
    """Samples of a split: the first ``n_train`` (``n_test``) of those set aside for it.

    The test samples stay the same however few are trained on, so errors remain comparable.

    Parameters
    ----------
    split : {"train", "test"}
        Which part.
    n_train, n_test : int or None
        How many samples; ``None`` takes all.
    available : pair of sequences of int
        Indices in the file set aside for training and for testing.

    Returns
    -------
    sequence of int
        Indices in the file.

    Raises
    ------
    ValueError
        If the split is unknown, or more samples are asked for than there are.
    """
    if split not in ("train", "test"):
        raise ValueError(f"split must be 'train' or 'test', got {split!r}")
    indices, wanted = (available[0], n_train) if split == "train" else (available[1], n_test)
    if wanted is None:
        return indices
    if not 1 <= wanted <= len(indices):
        raise ValueError(f"data.n_{split}={wanted}: choose from 1 to {len(indices)}")
    return indices[:wanted]
