"""What the recipe learns from the training set before it trains: scales and the mean field."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from physicsnemo.datapipes import Normalize
from tensordict import TensorDict

from physicsnemo_cano.datapipes import BenchmarkReader
from physicsnemo_cano.training.files import replacing

_KEYS = ("embedding", "fx", "target")


@dataclass
class Statistics:
    r"""Per-channel mean and standard deviation over all training points, and the mean field.

    Attributes
    ----------
    means, stds : dict of str to torch.Tensor
        One tensor :math:`(C,)` for each of ``embedding``, ``fx`` and ``target``; 0 and 1 for
        those that are not to be normalised, so that all are treated alike.
    mean_target : torch.Tensor
        The mean training target: node by node, :math:`(N, d_u)`, where all samples have the same
        number of points, else by channel, :math:`(1, d_u)`. To predict it is the least a model
        must beat.
    """

    means: dict[str, torch.Tensor]
    stds: dict[str, torch.Tensor]
    mean_target: torch.Tensor

    @classmethod
    def measure(cls, reader: BenchmarkReader, normalize: Collection[str]) -> Statistics:
        """Read the training set once.

        Parameters
        ----------
        reader : BenchmarkReader
            The training samples.
        normalize : collection of str
            Which of ``embedding``, ``fx`` and ``target`` to normalise.

        Returns
        -------
        Statistics
            In float32.

        Raises
        ------
        ValueError
            If ``normalize`` names something else, or a sample holds a value that is not finite,
            or its target vanishes (it has no relative error).
        """
        unknown = set(normalize) - set(_KEYS)
        if unknown:
            raise ValueError(f"normalize: choose from {_KEYS}, got {sorted(unknown)}")
        sums, squares = dict.fromkeys(_KEYS, 0.0), dict.fromkeys(_KEYS, 0.0)
        counts = dict.fromkeys(_KEYS, 0)
        field, same_size = None, True
        for index in range(len(reader)):
            sample, _ = reader[index]
            for key in _KEYS:
                value = sample[key].double()  # (N, C), or (1, C) for global inputs
                if "mask" in set(sample.keys()) and len(value) == len(sample["mask"]):
                    value = value[sample["mask"]]
                if not value.isfinite().all():
                    raise ValueError(
                        f"{reader.path}: sample {index} has a {key} that is not finite"
                    )
                if key == "target" and not value.any():
                    raise ValueError(f"{reader.path}: the target of sample {index} is zero")
                sums[key] = sums[key] + value.sum(0)
                squares[key] = squares[key] + value.square().sum(0)
                counts[key] += len(value)
            target = sample["target"].double()
            same_size = same_size and (field is None or field.shape == target.shape)
            if same_size:
                field = target if field is None else field + target
        means = {key: sums[key] / counts[key] for key in _KEYS}
        variances = {key: squares[key] / counts[key] - means[key].square() for key in _KEYS}
        stds = {key: variances[key].clamp(min=0).sqrt() for key in _KEYS}
        mean_target = field / len(reader) if same_size else means["target"].unsqueeze(0)
        for key in _KEYS:
            if key not in normalize:
                means[key], stds[key] = torch.zeros_like(means[key]), torch.ones_like(stds[key])
            # A channel that never changes (up to rounding) carries nothing to scale.
            stds[key][stds[key] <= 1e-6 * means[key].abs()] = 1.0
        return cls(
            {key: value.float() for key, value in means.items()},
            {key: value.float() for key, value in stds.items()},
            mean_target.float(),
        )

    def save(self, file: Path) -> None:
        """Write an npz file with ``mean_<key>``, ``std_<key>`` and ``mean_target_field``."""
        with replacing(file) as draft, draft.open("wb") as stream:
            np.savez(
                stream,
                mean_target_field=self.mean_target.numpy(),
                **{f"mean_{key}": value.numpy() for key, value in self.means.items()},
                **{f"std_{key}": value.numpy() for key, value in self.stds.items()},
            )

    @classmethod
    def load(cls, file: Path) -> Statistics:
        """Read what :meth:`save` wrote."""
        with np.load(file) as data:
            arrays = {key: torch.from_numpy(data[key]) for key in data.files}
        return cls(
            {key: arrays[f"mean_{key}"] for key in _KEYS},
            {key: arrays[f"std_{key}"] for key in _KEYS},
            arrays["mean_target_field"],
        )

    def _normalize(self, keys: list[str]) -> Normalize:
        return Normalize(keys, means=self.means, stds=self.stds, method="mean_std")

    def inputs(self) -> Normalize:
        """PhysicsNeMo's transform for the model's inputs; targets stay in physical units."""
        return self._normalize(["embedding", "fx"])

    def denormalizer(self, device: torch.device) -> _Denormalizer:
        """A function from the model's output to physical units."""
        return _Denormalizer(self._normalize(["target"]).to(device))


@dataclass
class _Denormalizer:
    normalize: Normalize

    def __call__(self, output: torch.Tensor) -> torch.Tensor:
        return self.normalize.inverse(TensorDict({"target": output}))["target"]
