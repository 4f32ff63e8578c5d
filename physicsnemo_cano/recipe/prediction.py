# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Predictions in physical units: of a field, by rollout, or at given times."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Bool, Float
from tensordict import TensorDict

from physicsnemo_cano.datapipes import FieldReader
from physicsnemo_cano.losses import relative_l2
from physicsnemo_cano.recipe.forward import call_model
from physicsnemo_cano.recipe.normalization import Statistics

TrainingStep = tuple[
    Float[torch.Tensor, "rows N d_u"],
    Float[torch.Tensor, "rows N d_u"],
    Bool[torch.Tensor, "rows N"] | None,
]
"""Prediction, target and mask of a training step."""


class Predictor:
    """Predictions and errors in physical units, from a model that works in normalised ones.

    Parameters
    ----------
    model : torch.nn.Module
        Possibly wrapped.
    spatial_shape : tuple of int or None
        Shape of the samples' mesh; ``None`` for clouds.
    statistics : Statistics
        Of the training set.
    device : torch.device
        Where the model is.
    amp : {None, "bf16"}, optional
        Precision of the model's arithmetic; ``None`` is float32.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        spatial_shape: tuple[int, ...] | None,
        statistics: Statistics,
        device: torch.device,
        amp: str | None = None,
    ) -> None:
        self.model = model
        self.spatial_shape = spatial_shape
        self.d_u = statistics.stds["target"].shape[-1]
        self.target_scale = statistics.scale("target", device)
        self.input_scale = statistics.scale("fx", device, self.d_u)
        self.deviation = statistics.stds["target"].to(device)
        self.device = device
        self.amp = amp

    def calling(self, model: torch.nn.Module) -> Predictor:
        """The same with another model, such as the same wrapped.

        Parameters
        ----------
        model : torch.nn.Module
            To be called from now on.

        Returns
        -------
        Predictor
            A copy.
        """
        other = copy.copy(self)
        other.model = model
        return other

    def __call__(self, batch: TensorDict) -> Float[torch.Tensor, "B N C"]:
        """Prediction of the whole target, (B, N, C), in physical units."""
        return self._frame(batch)

    def errors(
        self, batch: TensorDict
    ) -> tuple[Float[torch.Tensor, " B"], Float[torch.Tensor, "B N C"]]:
        r"""Predict, and compare with the target.

        Parameters
        ----------
        batch : TensorDict
            Normalised inputs and raw targets, stacked.

        Returns
        -------
        errors : torch.Tensor
            Relative L2 errors, :math:`(B,)`.
        prediction : torch.Tensor
            Of the whole target, :math:`(B, N, C)`, in physical units.
        """
        prediction = self(batch)
        return relative_l2(prediction, batch["target"], batch.get("mask", None)), prediction

    def training_step(self, batch: TensorDict, draw: torch.Generator) -> TrainingStep:
        r"""What a training step compares.

        Every sample of the batch has the same number of consecutive rows in :math:`B'`.

        Parameters
        ----------
        batch : TensorDict
            Normalised inputs and raw targets, stacked.
        draw : torch.Generator
            For what a step leaves to chance; the same on all processes.

        Returns
        -------
        prediction, target : torch.Tensor
            In physical units, :math:`(B', N, d_u)`.
        mask : torch.Tensor or None
            True on the real points of padded clouds, :math:`(B', N)`.
        """
        return self(batch), batch["target"], batch.get("mask", None)

    def in_deviations(
        self, value: Float[torch.Tensor, "*shape d_u"]
    ) -> Float[torch.Tensor, "*shape d_u"]:
        r"""A target in units of the training targets' standard deviation.

        Parameters
        ----------
        value : torch.Tensor
            In physical units, :math:`(…, d_u)`: the channels of a frame.

        Returns
        -------
        torch.Tensor
            Of the same shape.
        """
        return value / self.deviation

    def _frame(self, batch: TensorDict) -> torch.Tensor:
        """One call of the model: (B, N, d_u), in physical units."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.amp == "bf16"):
            output = call_model(self.model, batch, self.spatial_shape)
        return self._physical(output, batch)

    def _physical(self, output: torch.Tensor, batch: TensorDict) -> torch.Tensor:
        """What the model has given for a batch, in physical units."""
        return self.target_scale.restore(output)


class Rollout(Predictor):
    """Frames one after the other, from those before; trained with teacher forcing or push-forward.

    Where the statistics hold the scale of ``increment``, the model gives the difference to the
    frame before, else the frame.

    Parameters
    ----------
    model, spatial_shape, statistics, device, amp
        See :class:`Predictor`.
    n_static : int, optional, default=0
        The last channels of ``fx``, which are no frames and stay as they are.
    pushforward : bool, optional, default=False
        Train on what the model itself predicts from true frames, without gradients through that
        prediction (Brandstetter et al. 2022, `arXiv 2202.03376 <https://arxiv.org/abs/2202.03376>`_).
    """

    def __init__(
        self,
        model: torch.nn.Module,
        spatial_shape: tuple[int, ...] | None,
        statistics: Statistics,
        device: torch.device,
        amp: str | None = None,
        n_static: int = 0,
        pushforward: bool = False,
    ) -> None:
        super().__init__(model, spatial_shape, statistics, device, amp)
        self.n_static, self.pushforward = n_static, pushforward
        self.increments = "increment" in statistics.means
        if self.increments:
            self.increment_scale = statistics.scale("increment", device)

    def __call__(self, batch: TensorDict) -> Float[torch.Tensor, "B N C"]:
        """All frames, each predicted from the input frames and the predictions so far."""
        batch, frames = batch.copy(), []
        for _ in range(batch["target"].shape[-1] // self.d_u):
            frames.append(self._frame(batch))
            batch["fx"] = self._following(batch["fx"], frames[-1])
        return torch.cat(frames, -1)

    def training_step(self, batch: TensorDict, draw: torch.Generator) -> TrainingStep:
        """Every frame, predicted from those before it, true or its own: a row a frame."""
        frames = batch["target"].split(self.d_u, -1)
        rows = batch.repeat_interleave(len(frames), dim=0)
        rows["fx"] = self._windows(batch["fx"], frames)
        if self.pushforward:
            with torch.no_grad():
                own = self._frame(rows).unflatten(0, (-1, len(frames))).unbind(1)
            rows["fx"] = self._windows(batch["fx"], own)
        return self._frame(rows), torch.stack(frames, 1).flatten(0, 1), rows.get("mask", None)

    def _windows(self, first: torch.Tensor, frames: Sequence[torch.Tensor]) -> torch.Tensor:
        """The inputs from which each of the frames is predicted: a row a frame."""
        windows = [first]
        for frame in frames[:-1]:
            windows.append(self._following(windows[-1], frame))
        return torch.stack(windows, 1).flatten(0, 1)

    def _following(self, window: torch.Tensor, frame: torch.Tensor) -> torch.Tensor:
        """The next input: without the oldest frame, with the newest, normalised as the input is."""
        frames, statics = self._frames_and_statics(window)
        return torch.cat([frames[..., self.d_u :], self.input_scale.normalize(frame), statics], -1)

    def _frames_and_statics(self, window: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return window.split([window.shape[-1] - self.n_static, self.n_static], -1)

    def _physical(self, output: torch.Tensor, batch: TensorDict) -> torch.Tensor:
        if not self.increments:
            return super()._physical(output, batch)
        frames, _ = self._frames_and_statics(batch["fx"])
        last = self.input_scale.restore(frames[..., -self.d_u :])
        return last + self.increment_scale.restore(output)


class Instants(Predictor):
    """A series at given times, each an input of its own; trained at one random time a step."""

    def __call__(self, batch: TensorDict) -> Float[torch.Tensor, "B N C"]:
        """All frames, one call of the model for each."""
        return torch.cat([self._frame(_at(batch, i)) for i in range(batch["times"].shape[1])], -1)

    def training_step(self, batch: TensorDict, draw: torch.Generator) -> TrainingStep:
        """The frame at one time, the same for the whole batch."""
        index = int(torch.randint(batch["times"].shape[1], (), generator=draw))
        target = batch["target"].split(self.d_u, -1)[index]
        return self._frame(_at(batch, index)), target, batch.get("mask", None)


def _at(batch: TensorDict, index: int) -> TensorDict:
    batch = batch.copy()
    batch["time"] = batch["times"][:, index]
    return batch


def predictor_for(reader: FieldReader, pushforward: bool = False) -> Callable[..., Predictor]:
    """The kind of predictor that a reader's samples need.

    Parameters
    ----------
    reader : FieldReader
        The samples.
    pushforward : bool, optional, default=False
        Of rollouts; see :class:`Rollout`.

    Returns
    -------
    callable
        :class:`Predictor` or a subclass; takes what it takes.
    """
    rollout = functools.partial(Rollout, n_static=reader.n_static, pushforward=pushforward)
    return {None: Predictor, "rollout": rollout, "instants": Instants}[reader.series]
