# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

r"""A trained model with what its checkpoint says of its data: predictions on meshes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from physicsnemo.core import Module
from tensordict import TensorDict

from physicsnemo_cano.integrations.meshes import MeshCloud
from physicsnemo_cano.models import CANO
from physicsnemo_cano.recipe.checkpoint import find_checkpoint
from physicsnemo_cano.recipe.layout import Layout
from physicsnemo_cano.recipe.normalization import Statistics
from physicsnemo_cano.recipe.prediction import Predictor


class Surrogate:
    r"""A model of the recipe, opened for mesh files.

    Parameters
    ----------
    checkpoint : Path
        A folder of a run's ``checkpoints/``, or the ``.mdlus`` file in it.
    device : torch.device
        Where it computes.
    chunk_size : int
        Points at a time, for CANO.

    Attributes
    ----------
    file : Path
        The model's.
    layout : Layout
        Of the samples it was trained on.
    model : physicsnemo.core.Module
        On the device.
    location : str
        ``points`` or ``cells``, where it was trained; points where the checkpoint does not say.
    inputs : list of str
        Fields that it takes, as far as the checkpoint says.
    normals : bool
        Whether it takes normals behind them.
    parameters : list of str or None
        Names of its parameters, where there are some.
    targets : list of tuple of str and int
        The fields it predicts, and their components.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no checkpoint, or its model cannot take meshes.
    """

    def __init__(self, checkpoint: Path, device: torch.device, chunk_size: int) -> None:
        folder, self.file = find_checkpoint(checkpoint)
        self.layout = Layout.load(folder)
        self.statistics = Statistics.load(folder / "normalization.npz")
        self.model = Module.from_checkpoint(str(self.file))
        for module in self.model.modules():
            if isinstance(module, CANO):
                module.set_chunk_size(chunk_size)
        _check_model(self.model, self.layout, self.statistics)
        self.model.to(device).eval()
        self.device = device
        known = self.layout.mesh or {}
        self.location = known.get("location", "points")
        self.inputs = known.get("inputs", [])
        self.normals = known.get("normals", False)
        self.parameters = known.get("parameters")
        alone = [(channel.name, 1) for channel in self.layout.targets]
        self.targets = [tuple(pair) for pair in known.get("targets", alone)]

    @torch.no_grad()
    def __call__(
        self,
        cloud: MeshCloud,
        inputs: Sequence[str],
        parameters: Sequence[float],
        weighted: bool,
    ) -> dict[str, torch.Tensor]:
        r"""Predict on a mesh.

        Parameters
        ----------
        cloud : MeshCloud
            Where.
        inputs : sequence of str
            Fields of the mesh that the model takes as its input function, in its order.
        parameters : sequence of float
            Inputs of all points together, behind ``inputs`` and normals.
        weighted : bool
            Whether areas or volumes weigh the points.

        Returns
        -------
        dict of str to torch.Tensor
            Of each field, shape :math:`(N,)`, or :math:`(N, C)` of a vector.

        Raises
        ------
        KeyError, ValueError
            If the mesh and the model do not fit, or the prediction is not finite.
        """
        statistics = self.statistics
        embedding = cloud.coordinates(len(statistics.means["embedding"]))
        fx, channels = cloud.inputs(inputs, self.normals, parameters)
        if fx.shape[1] != len(statistics.means["fx"]):
            raise ValueError(
                f"inputs={list(inputs)} and parameters={list(parameters)} are {fx.shape[1]} "
                f"channels, the model takes {len(statistics.means['fx'])} beside the coordinates; "
                f"the mesh has {sorted(cloud.data.keys())}"
            )
        given = {"embedding": embedding, "fx": fx}
        # In float64, so that a position far from zero keeps its digits.
        batch = statistics.inputs()(TensorDict(given)).float()
        axes = [f"coordinate {axis}" for axis in "xyz"[: embedding.shape[1]]]
        for key, names in (("embedding", axes), ("fx", channels)):
            bare = (statistics.means[key] == 0) & (statistics.stds[key] == 1)
            _check_range(names, given[key], batch[key], bare)
        if weighted:
            weights = cloud.weights()
            batch["weights"] = (weights / weights.mean()).float()  # of any unit
        predictor = Predictor(self.model, None, statistics, self.device)
        prediction = predictor(batch.unsqueeze(0).to(self.device))[0].cpu()
        for channel, values in zip(self.layout.targets, prediction.unbind(-1), strict=True):
            wrong = (~values.isfinite()).nonzero()
            if len(wrong):
                raise ValueError(
                    f"The model's {channel.name} is not finite at {len(wrong)} {cloud.location}, "
                    f"the first at index {int(wrong[0])}; nothing is written: check the model on "
                    "its test set"
                )
        parts = prediction.split([size for _, size in self.targets], -1)
        return {
            name: part[:, 0] if size == 1 else part
            for (name, size), part in zip(self.targets, parts, strict=True)
        }


def _check_model(model: Module, layout: Layout, statistics: Statistics) -> None:
    if layout.series is not None:
        raise ValueError("The model predicts series in time, a mesh file has none")
    if getattr(model, "structured_shape", None) is not None:
        raise ValueError(
            f"The model was trained on a grid of {tuple(model.structured_shape)} points; for "
            "meshes of other kinds train with as_cloud=true"
        )
    for key, mean in statistics.means.items():
        if mean.ndim == 2:
            raise ValueError(
                f"The {key} was normalised node by node on {len(mean)} points of one mesh; for "
                f"other meshes train with normalize.{key}=channels"
            )


def _check_range(
    channels: list[str], values: torch.Tensor, normal: torch.Tensor, bare: torch.Tensor
) -> None:
    # Beyond 1/eps, float32 does not tell two values apart that differ by a standard deviation. What
    # was not normalised has no deviation to compare with; its square has to be finite.
    float32 = torch.finfo(torch.float32)
    limits = torch.where(bare, float32.max**0.5, 1 / float32.eps).tolist()
    columns = zip(channels, values.unbind(1), normal.unbind(1), limits, strict=True)
    for name, value, scaled, limit in columns:
        wrong = (~(scaled.abs() <= limit)).nonzero()
        if len(wrong):
            raise ValueError(
                f"{name} has {len(wrong)} values more than {limit:.0e} standard deviations from "
                f"the training data, the first {value[wrong[0]].item():g} at index "
                f"{int(wrong[0])}: replace fill values, or remove their points"
            )
