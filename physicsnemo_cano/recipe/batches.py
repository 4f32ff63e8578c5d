# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Batches: which samples go together, each process's share, and clouds of different sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from tensordict import TensorDict
from torch.nn.functional import pad
from torch.utils.data import Sampler

from physicsnemo_cano.recipe.distributed import derive_seed

#: Share of a batch's points that may be padding, over an epoch.
MOST_PADDING = 0.15
_AT_POINTS = ("embedding", "fx", "target", "mask", "weights")


class SharedBatches(Sampler[int]):
    """One process's share of every global batch, in an order set by seed and epoch.

    Process r takes every ``world_size``-th sample of each global batch, starting from the r-th,
    so the batches are the same however many processes share them. Shares may differ in size;
    :meth:`weight` makes the average over processes, which is what data-parallel training forms
    of the gradients, exactly the mean over the global batch.

    Samples of different sizes are padded to the largest of their batch. Where that would be 15 %
    of all points or more, the shuffled samples are sorted by size within buckets, of as few
    batches each as keep it below; at the most within the whole epoch.

    Parameters
    ----------
    n_samples : int
        Size of the training set.
    batch_size : int
        Samples a step, all processes together.
    seed : int
        With the epoch, it sets the order.
    rank, world_size : int
        This process and their number.
    sizes : sequence of int, optional
        Number of points of each sample; the same for all by default.

    Raises
    ------
    ValueError
        If a batch has fewer samples than there are processes.
    """

    def __init__(
        self,
        n_samples: int,
        batch_size: int,
        seed: int,
        rank: int = 0,
        world_size: int = 1,
        sizes: Sequence[int] | None = None,
    ) -> None:
        if batch_size < world_size:
            raise ValueError(
                f"training.batch_size={batch_size} counts the samples of all processes together "
                f"and must be at least their number, {world_size}"
            )
        self.n_samples, self.batch_size, self.seed = n_samples, batch_size, seed
        self.rank, self.world_size = rank, world_size
        self.sizes = sizes or [1] * n_samples
        self.epoch = 0

    @property
    def local_batch_size(self) -> int:
        """Samples of a full batch that fall to this process."""
        return len(range(self.rank, self.batch_size, self.world_size))

    @property
    def n_steps(self) -> int:
        """Global batches an epoch; the last may be smaller."""
        return -(-self.n_samples // self.batch_size)

    def set_epoch(self, epoch: int) -> None:
        """Choose the order; called by PhysicsNeMo's DataLoader.

        Parameters
        ----------
        epoch : int
            From 1.
        """
        self.epoch = epoch

    def batches(self) -> list[list[int]]:
        """The epoch's global batches.

        Returns
        -------
        list of list of int
            Samples of each, ``batch_size`` but in the last.
        """
        generator = torch.Generator().manual_seed(derive_seed(self.seed, self.epoch))
        order = torch.randperm(self.n_samples, generator=generator).tolist()
        found = self._cut(order)
        # The loader cuts after every batch_size samples, so the smaller batch stays last.
        full = found[: self.n_samples // self.batch_size]
        rest, bucket = found[len(full) :], 1
        while padding_share(found, self.sizes) >= MOST_PADDING and bucket < len(full):
            bucket *= 2
            length = bucket * self.batch_size
            shuffled = order[: len(full) * self.batch_size]
            buckets = (shuffled[i : i + length] for i in range(0, len(shuffled), length))
            batches = [b for part in buckets for b in self._cut(sorted(part, key=self._size_of))]
            places = torch.randperm(len(full), generator=generator).tolist()
            found = [batches[place] for place in places] + rest
        return found

    def _cut(self, order: list[int]) -> list[list[int]]:
        return [order[i : i + self.batch_size] for i in range(0, len(order), self.batch_size)]

    def _size_of(self, sample: int) -> int:
        return self.sizes[sample]

    def _share(self, batch: list[int]) -> list[int]:
        # Where the last batch has nothing for a process, it still computes one sample, with
        # weight 0: in data-parallel training every process must take part in every step.
        return batch[self.rank :: self.world_size] or batch[:1]

    def __iter__(self) -> Iterator[int]:
        for batch in self.batches():
            yield from self._share(batch)

    def __len__(self) -> int:
        return sum(len(self._share(list(range(self._length(i))))) for i in range(self.n_steps))

    def _length(self, step: int) -> int:
        return min(self.batch_size, self.n_samples - step * self.batch_size)

    def weight(self, step: int) -> float:
        """Factor of this process's sum of sample losses in a step; see the class.

        Parameters
        ----------
        step : int
            Of the epoch, from 0.

        Returns
        -------
        float
            0 where this process only keeps the others company.
        """
        length = self._length(step)
        return self.world_size / length if self.rank < length else 0.0


def padding_share(batches: Sequence[Sequence[int]], sizes: Sequence[int]) -> float:
    """Share of padding among all points of batches.

    Parameters
    ----------
    batches : sequence of sequences of int
        Samples of each.
    sizes : sequence of int
        Number of points of each sample.

    Returns
    -------
    float
        From 0 to below 1.
    """
    counts = [[sizes[sample] for sample in batch] for batch in batches]
    return 1 - sum(map(sum, counts)) / sum(len(batch) * max(batch) for batch in counts)


def collate(samples: Sequence[tuple[TensorDict, dict[str, Any]]]) -> TensorDict:
    """Stack samples; those of fewer points than the largest are padded with zeros and get masks.

    Parameters
    ----------
    samples : sequence of pairs
        Samples and their metadata, as PhysicsNeMo's Dataset gives them.

    Returns
    -------
    TensorDict
        Of as many rows as samples. ``mask`` is false where there is padding.
    """
    rows = [sample for sample, _ in samples]
    sizes = [len(row["embedding"]) for row in rows]
    if min(sizes) < max(sizes):
        rows = [_padded(row, size, max(sizes)) for row, size in zip(rows, sizes, strict=True)]
    return torch.stack(rows)


class PointSubsets:
    """:func:`collate` for training steps that see some points of each sample alone.

    Every real point is drawn with the same probability, none twice. Weights grow by the ratio of
    all points to those drawn, so that in the mean over draws sums keep their value, and with them
    the integrals they stand for.

    Parameters
    ----------
    n_points : int
        Points drawn of each sample; smaller samples are taken whole.
    seed, rank : int, optional
        With the epoch, they set what is drawn.
    """

    def __init__(self, n_points: int, seed: int = 0, rank: int = 0) -> None:
        self.n_points, self.seed, self.rank = n_points, seed, rank
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Begin an epoch, whose draws do not depend on those before.

        Parameters
        ----------
        epoch : int
            Which.
        """
        seed = derive_seed(self.seed, epoch, self.rank)
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, samples: Sequence[tuple[TensorDict, dict[str, Any]]]) -> TensorDict:
        """Draw and stack."""
        return collate([(self._drawn(sample), about) for sample, about in samples])

    def _drawn(self, sample: TensorDict) -> TensorDict:
        size, mask = len(sample["embedding"]), sample.get("mask", None)
        n_real = size if mask is None else int(mask.sum())
        if n_real <= self.n_points:
            return sample
        chosen = torch.randperm(n_real, generator=self.generator)[: self.n_points].sort().values
        chosen = chosen.to(sample["embedding"].device)
        if mask is not None:
            chosen = mask.nonzero()[chosen, 0]
        sample = sample.copy()
        for key in _AT_POINTS:
            value = sample.get(key, None)
            if value is not None and len(value) == size:  # not inputs of all points together
                sample[key] = value[chosen]
        if "weights" in sample.keys():  # noqa: SIM118 - a TensorDict iterates over rows
            sample["weights"] = sample["weights"] * (n_real / self.n_points)
        return sample


def _padded(sample: TensorDict, size: int, most: int) -> TensorDict:
    sample = sample.copy()
    if "mask" not in sample.keys():  # noqa: SIM118 - a TensorDict iterates over rows
        sample["mask"] = sample["embedding"].new_ones(size, dtype=torch.bool)
    for key in _AT_POINTS:
        value = sample.get(key, None)
        if value is not None and len(value) == size:  # not inputs of all points together
            sample[key] = pad(value, (0, 0) * (value.ndim - 1) + (0, most - size))
    return sample
