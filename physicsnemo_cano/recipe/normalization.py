# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""What the recipe learns from the training set before it trains: scales and the mean field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Shaped
from physicsnemo.datapipes import Normalize
from physicsnemo.datapipes.transforms.base import Transform
from tensordict import TensorDict

from physicsnemo_cano.datapipes import FieldReader
from physicsnemo_cano.recipe.folder import replacing

_KEYS = ("embedding", "fx", "target")


def checked_samples(reader: FieldReader) -> Iterator[TensorDict]:
    """All samples of a reader, in order; one that cannot be trained or tested on is refused.

    Parameters
    ----------
    reader : FieldReader
        The samples.

    Yields
    ------
    TensorDict
        A sample, raw.

    Raises
    ------
    ValueError
        If a value at a real point is not finite (in float32), or a target vanishes: it has no
        relative error.
    """
    for index in range(len(reader)):
        sample, _ = reader[index]
        for key in sorted(sample.keys()):
            finite = real_points(sample, key).isfinite()
            if not finite.all():
                bad = (~finite).nonzero()
                raise ValueError(
                    f"{reader.path}: sample {index}{_split(reader)} has {len(bad)} values of {key} "
                    f"that are not finite in float32, the first at {tuple(bad[0].tolist())}"
                )
        if not real_points(sample, "target").any():
            raise ValueError(f"{reader.path}: the target of sample {index}{_split(reader)} is zero")
        yield sample


def _split(reader: FieldReader) -> str:
    split = getattr(reader, "split", None)
    return "" if split is None else f" of the {split} set"


def real_points(sample: TensorDict, key: str) -> Shaped[torch.Tensor, "n *channels"]:
    r"""A field of a sample without the padding of its cloud.

    Parameters
    ----------
    sample : TensorDict
        Not stacked.
    key : str
        Of the field.

    Returns
    -------
    torch.Tensor
        Shape :math:`(n, C)`, of the :math:`n` real points; what is not at the points as it is.
    """
    value, mask = sample[key], sample.get("mask", None)
    return value if mask is None or value.shape[:1] != mask.shape else value[mask]


def _measured(sample: TensorDict, reader: FieldReader, increments: bool) -> dict[str, torch.Tensor]:
    """What has a scale of its own: (N, C) each, or (1, C) for global inputs."""
    values = {key: sample[key] for key in _KEYS}
    if reader.n_static:
        sizes = (sample["fx"].shape[-1] - reader.n_static, reader.n_static)
        values["fx"], values["static"] = sample["fx"].split(sizes, -1)
    if increments:
        d_u = len(reader.targets)
        series = torch.cat([values["fx"][:, -d_u:].float(), sample["target"]], -1)
        values["increment"] = series[:, d_u:] - series[:, :-d_u]
    return values


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
        of a rollout's ``fx`` repeats the same for every frame, followed by its inputs that stay.
        Where a model is to predict them, also of ``increment``, :math:`(d_u,)`: from a frame of
        the target to the next.
    mean_target : torch.Tensor
        The mean training target: node by node, :math:`(N, C)`, where all samples have the same
        number of points and no padding, else by channel, :math:`(1, C)`. To predict it is the
        least a model must beat.
    """

    means: dict[str, torch.Tensor]
    stds: dict[str, torch.Tensor]
    mean_target: torch.Tensor

    @classmethod
    def measure(
        cls,
        reader: FieldReader,
        normalize: Mapping[str, str | None],
        increments: bool = False,
    ) -> Statistics:
        """Read the training set once.

        Parameters
        ----------
        reader : FieldReader
            The training samples.
        normalize : mapping of str to {"channels", "nodes", None}
            Which of ``embedding``, ``fx`` and ``target`` to normalise, and whether about one
            mean a channel or, where all samples share a mesh, about the mean at each node.
        increments : bool, optional, default=False
            Whether to measure those of a rollout, too.

        Returns
        -------
        Statistics
            In float32, but for the means of what lies far from zero.

        Raises
        ------
        ValueError
            If ``nodes`` is asked for series or samples that differ in size, or coordinates that
            lie far from zero are not to be normalised; or as :func:`checked_samples`.
        """
        rollout = ("fx", "target", "increment")
        framed = {None: (), "instants": ("target",), "rollout": rollout}[reader.series]
        about = {**normalize, "static": normalize.get("fx"), "increment": "channels"}
        sums, squares, nodes = ({} for _ in range(3))
        counts: dict[str, int] = {}
        origins: dict[str, torch.Tensor] = {}
        padded = False
        for index, sample in enumerate(checked_samples(reader)):
            mask = sample.get("mask", None)
            padded |= mask is not None and not mask.all()
            for key, value in _measured(sample, reader, increments).items():
                far = value.dtype == torch.float64
                if far and about.get(key) is None:
                    raise ValueError(
                        f"{reader.path}: the {key} lies so far from zero that float32 takes its "
                        f"digits; set normalize.{key}=channels"
                    )
                # Sums about a point nearby keep the digits of what lies far from zero.
                origin = value[:1].double() if far else value.new_zeros(())
                if far and key in framed:  # one for all frames
                    n_frames = value.shape[1] // len(reader.targets)
                    origin = origin[:, : len(reader.targets)].repeat(1, n_frames)
                origins.setdefault(key, origin)
                value = value.double() - origins[key]
                if nodes.setdefault(key, 0.0) is not None:
                    same = index == 0 or nodes[key].shape == value.shape
                    nodes[key] = nodes[key] + value if same and not padded else None
                if mask is not None and len(value) == len(mask):
                    value = value[mask]
                if key in framed:
                    value = value.reshape(-1, len(reader.targets))
                sums[key] = sums.get(key, 0.0) + value.sum(0)
                squares[key] = squares.get(key, 0.0) + value.square().sum(0)
                counts[key] = counts.get(key, 0) + len(value)
        means, stds = {}, {}
        for key in sums:
            mean = sums[key] / counts[key]
            spread = mean.square()
            if about.get(key) == "nodes":
                if nodes[key] is None or counts[key] != len(reader) * len(nodes[key]):
                    raise ValueError(
                        f"normalize.{key}=nodes needs one field a sample, all on one mesh without "
                        f"padding; those of {reader.path} are not so: use channels"
                    )
                mean = nodes[key] / len(reader)
                spread = mean.square().mean(0)
            std = (squares[key] / counts[key] - spread).clamp(min=0).sqrt()
            # A channel that never changes (up to rounding) carries nothing to scale.
            std[std <= 1e-6 * spread.sqrt()] = 1.0
            mean = mean + origins[key].flatten()[: len(mean)] if origins[key].ndim else mean
            if about.get(key) is None:
                mean, std = torch.zeros_like(mean), torch.ones_like(std)
            if key == "fx" and key in framed:
                n_frames = (sample["fx"].shape[-1] - reader.n_static) // len(mean)
                mean, std = mean.repeat(n_frames), std.repeat(n_frames)
            means[key] = mean if origins[key].ndim else mean.float()
            stds[key] = std.float()
        if "static" in means:
            for scales in (means, stds):
                scales["fx"] = torch.cat([scales["fx"], scales.pop("static")], -1)
        field, channels = nodes["target"], sums["target"] / counts["target"]
        n_frames = sample["target"].shape[-1] // len(channels)
        mean_target = channels.repeat(1, n_frames) if field is None else field / len(reader)
        return cls(means, stds, mean_target.float())

    def save(self, file: Path) -> None:
        """Write an npz file with ``mean_<key>``, ``std_<key>`` and ``mean_target_field``.

        Parameters
        ----------
        file : Path
            To be written.
        """
        with replacing(file) as draft, draft.open("wb") as stream:
            np.savez(
                stream,
                mean_target_field=self.mean_target.numpy(),
                **{f"mean_{key}": value.numpy() for key, value in self.means.items()},
                **{f"std_{key}": value.numpy() for key, value in self.stds.items()},
            )

    @classmethod
    def load(cls, file: Path) -> Statistics:
        """Read what :meth:`save` wrote.

        Parameters
        ----------
        file : Path
            The npz file.

        Returns
        -------
        Statistics
        """
        with np.load(file) as data:
            arrays = {key: torch.from_numpy(data[key]) for key in data.files}
        keys = [name.removeprefix("std_") for name in arrays if name.startswith("std_")]
        return cls(
            {key: arrays[f"mean_{key}"] for key in keys},
            {key: arrays[f"std_{key}"] for key in keys},
            arrays["mean_target_field"],
        )

    def check(self, reader: FieldReader) -> None:
        """Refuse data on another mesh than the training set's where the means belong to its nodes.

        Parameters
        ----------
        reader : FieldReader
            The data; their first sample is looked at.

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

    def inputs(self) -> Inputs:
        """The transform of the model's inputs; targets stay in physical units.

        Returns
        -------
        Inputs
        """
        return Inputs(self._normalize(["embedding", "fx"], self.means, self.stds))

    def scale(self, key: str, device: torch.device, channels: int | None = None) -> Scale:
        """The scale of a key's values, or of their first channels.

        Parameters
        ----------
        key : str
            ``embedding``, ``fx``, ``target`` or ``increment``.
        device : torch.device
            Where the values are.
        channels : int, optional
            How many; all by default.

        Returns
        -------
        Scale
        """
        means = {key: self.means[key][..., :channels].float()}
        stds = {key: self.stds[key][:channels]}
        return Scale(key, self._normalize([key], means, stds).to(device))

    @staticmethod
    def _normalize(keys: list[str], means: dict, stds: dict) -> Normalize:
        # PhysicsNeMo adds 1e-8 to every deviation, which drowns small units. Here it is added only
        # where it changes less than 1e-4 of it, so that stored models predict what they did.
        stds = {key: torch.where(std > 1e-4, std + 1e-8, std) for key, std in stds.items()}
        return Normalize(keys, means=means, stds=stds, method="mean_std", eps=0.0)


class Inputs(Transform):
    """From physical units to what a model takes: normalised, in float32, zero where padded.

    Parameters
    ----------
    normalize : physicsnemo.datapipes.Normalize
        Of ``embedding`` and ``fx``.
    """

    def __init__(self, normalize: Normalize) -> None:
        super().__init__()
        self.normalize = normalize

    def __call__(self, data: TensorDict) -> TensorDict:
        """Transform a sample or a batch."""
        data = self.normalize(data)
        for key in ("embedding", "fx"):
            value, mask = data[key].float(), data.get("mask", None)
            if mask is not None and value.shape[:-1] == mask.shape:
                value = value.masked_fill(~mask.unsqueeze(-1), 0.0)
            data[key] = value
        return data

    def to(self, device: torch.device | str) -> Inputs:
        """Move the scales to a device.

        Parameters
        ----------
        device : torch.device or str
            Which.

        Returns
        -------
        Inputs
            This one.
        """
        self.normalize.to(device)
        return super().to(device)


@dataclass
class Scale:
    """Between physical and normalised units, by PhysicsNeMo's transform."""

    key: str
    transform: Normalize

    def normalize(self, value: Float[torch.Tensor, "*shape C"]) -> Float[torch.Tensor, "*shape C"]:
        r"""From physical units.

        Parameters
        ----------
        value : torch.Tensor
            Of any shape :math:`(…, C)`, in physical units.

        Returns
        -------
        torch.Tensor
            Of the same shape.
        """
        return self.transform(TensorDict({self.key: value}))[self.key]

    def restore(self, value: Float[torch.Tensor, "*shape C"]) -> Float[torch.Tensor, "*shape C"]:
        r"""To physical units.

        Parameters
        ----------
        value : torch.Tensor
            Of any shape :math:`(…, C)`, normalised.

        Returns
        -------
        torch.Tensor
            Of the same shape.
        """
        return self.transform.inverse(TensorDict({self.key: value}))[self.key]
