"""What the recipe learns from the training set before it trains: scales and the mean field."""

from __future__ import annotations

from collections.abc import Mapping
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
    r"""Means and standard deviations over the training set, and its mean target.

    Attributes
    ----------
    means, stds : dict of str to torch.Tensor
        For each of ``embedding``, ``fx`` and ``target`` a mean :math:`(C,)`, or :math:`(N, C)`
        where it is taken node by node, and a standard deviation :math:`(C,)` about it; 0 and 1
        for those that are not to be normalised, so that all are treated alike. All frames of a
        series share one scale: that of ``target`` has the :math:`d_u` channels of a frame, that
        of a rollout's ``fx`` repeats the same for every frame.
    mean_target : torch.Tensor
        The mean training target: node by node, :math:`(N, C)`, where all samples have the same
        number of points, else by channel, :math:`(1, C)`. To predict it is the least a model
        must beat.
    """

    means: dict[str, torch.Tensor]
    stds: dict[str, torch.Tensor]
    mean_target: torch.Tensor

    @classmethod
    def measure(cls, reader: BenchmarkReader, normalize: Mapping[str, str]) -> Statistics:
        """Read the training set once.

        Parameters
        ----------
        reader : BenchmarkReader
            The training samples.
        normalize : mapping of str to {"channels", "nodes"}
            Which of ``embedding``, ``fx`` and ``target`` to normalise, and whether about one
            mean a channel or, where all samples share a mesh, about the mean at each node.

        Returns
        -------
        Statistics
            In float32.

        Raises
        ------
        ValueError
            If ``normalize`` says something else, or ``nodes`` of series or of samples that differ
            in size; or if a sample holds a value that is not finite, or its target vanishes (it
            has no relative error).
        """
        for key, about in normalize.items():
            if key not in _KEYS or about not in ("channels", "nodes"):
                raise ValueError(
                    f"normalize: give some of {_KEYS} as channels or nodes, got {key}: {about}"
                )
        framed = {None: (), "instants": ("target",), "rollout": ("fx", "target")}[reader.series]
        sums, squares = dict.fromkeys(_KEYS, 0.0), dict.fromkeys(_KEYS, 0.0)
        counts, fields = dict.fromkeys(_KEYS, 0), dict.fromkeys(_KEYS, 0.0)
        for index in range(len(reader)):
            sample, _ = reader[index]
            for key in _KEYS:
                value = sample[key].double()  # (N, C), or (1, C) for global inputs
                if fields[key] is not None:
                    same = index == 0 or fields[key].shape == value.shape
                    fields[key] = fields[key] + value if same else None
                if "mask" in set(sample.keys()) and len(value) == len(sample["mask"]):
                    value = value[sample["mask"]]
                if not value.isfinite().all():
                    raise ValueError(
                        f"{reader.path}: sample {index} has a {key} that is not finite"
                    )
                if key == "target" and not value.any():
                    raise ValueError(f"{reader.path}: the target of sample {index} is zero")
                if key in framed:
                    value = value.reshape(-1, len(reader.targets))
                sums[key] = sums[key] + value.sum(0)
                squares[key] = squares[key] + value.square().sum(0)
                counts[key] += len(value)
        means, stds = {}, {}
        for key in _KEYS:
            mean, about = sums[key] / counts[key], normalize.get(key)
            spread = mean.square()
            if about == "nodes":
                if fields[key] is None or counts[key] != len(reader) * len(fields[key]):
                    raise ValueError(
                        f"normalize.{key}=nodes needs one field a sample, all on one mesh without "
                        f"padding; those of {reader.path} are not so: use channels"
                    )
                mean = fields[key] / len(reader)
                spread = mean.square().mean(0)
            std = (squares[key] / counts[key] - spread).clamp(min=0).sqrt()
            # A channel that never changes (up to rounding) carries nothing to scale.
            std[std <= 1e-6 * spread.sqrt()] = 1.0
            if about is None:
                mean, std = torch.zeros_like(mean), torch.ones_like(std)
            if key == "fx" and key in framed:
                n_frames = sample["fx"].shape[-1] // len(mean)
                mean, std = mean.repeat(n_frames), std.repeat(n_frames)
            means[key], stds[key] = mean.float(), std.float()
        field, channels = fields["target"], sums["target"] / counts["target"]
        n_frames = sample["target"].shape[-1] // len(channels)
        mean_target = channels.repeat(1, n_frames) if field is None else field / len(reader)
        return cls(means, stds, mean_target.float())

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

    def check(self, reader: BenchmarkReader) -> None:
        """Refuse data on another mesh than the training set's where the means belong to its nodes.

        Raises
        ------
        ValueError
            If the number of points differs.
        """
        sample, _ = reader[0]
        for key, mean in self.means.items():
            if mean.ndim == 2 and mean.shape != sample[key].shape:
                raise ValueError(
                    f"The {key} was normalised node by node on {len(mean)} points, and "
                    f"{reader.path} has {len(sample[key])}: for other meshes train with "
                    f"normalize.{key}=channels"
                )

    def inputs(self) -> Normalize:
        """PhysicsNeMo's transform for the model's inputs; targets stay in physical units."""
        return Normalize(["embedding", "fx"], means=self.means, stds=self.stds, method="mean_std")

    def scale(self, key: str, device: torch.device, channels: int | None = None) -> Scale:
        """The scale of a key's values, or of their first channels."""
        means, stds = {key: self.means[key][..., :channels]}, {key: self.stds[key][:channels]}
        return Scale(key, Normalize([key], means=means, stds=stds, method="mean_std").to(device))


@dataclass
class Scale:
    """Between physical and normalised units, by PhysicsNeMo's transform."""

    key: str
    transform: Normalize

    def normalize(self, value: torch.Tensor) -> torch.Tensor:
        """From physical units."""
        return self.transform(TensorDict({self.key: value}))[self.key]

    def restore(self, value: torch.Tensor) -> torch.Tensor:
        """To physical units."""
        return self.transform.inverse(TensorDict({self.key: value}))[self.key]
