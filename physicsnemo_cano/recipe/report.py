# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""What a run leaves behind: tables, files and lines on the screen."""

from __future__ import annotations

import csv
import resource
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from jaxtyping import Float

from physicsnemo_cano.datapipes import FieldReader, TrajectoryReader
from physicsnemo_cano.losses import LOSSES
from physicsnemo_cano.recipe.folder import replacing
from physicsnemo_cano.recipe.normalization import real_points


@dataclass
class Results:
    r"""A model on the test set: what figures are drawn from.

    Attributes
    ----------
    reader : FieldReader
        The test samples.
    errors : numpy.ndarray
        Relative L2 error of each, :math:`(n,)`.
    predictions : list of numpy.ndarray
        n targets :math:`(N, C)`, in physical units, of the real points.
    metrics : dict
        What ``metrics.json`` holds.
    history : list of dict
        The lines of ``metrics.jsonl``.
    clusters : numpy.ndarray or None
        Assignments :math:`(H, N, K_c)` of the median sample's points to the last layer's clusters.
    fields : dict of str to dict of str to numpy.ndarray
        Errors by field; see :class:`.Evaluation`.
    """

    reader: FieldReader
    errors: np.ndarray
    predictions: list[np.ndarray]
    metrics: dict[str, Any]
    history: list[dict[str, Any]] = field(default_factory=list)
    clusters: np.ndarray | None = None
    fields: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)

    def name(self, index: int) -> str:
        """A sample in words: its name, or its number.

        Parameters
        ----------
        index : int
            Of the sample.

        Returns
        -------
        str
        """
        return self.reader.names[index] if self.reader.names else f"sample {index}"

    @property
    def median(self) -> int:
        """The sample whose error is the median."""
        return int(np.argsort(self.errors)[len(self.errors) // 2])

    @property
    def worst(self) -> int:
        """The sample with the largest error."""
        return int(np.argmax(self.errors))

    def write(self, folder: Path) -> None:
        """Write ``predictions.h5`` and ``test_errors.csv``.

        The HDF5 file has a group a sample (``0000``, …) with ``embedding``, ``target`` and
        ``prediction``, in the mesh's shape where there is one; of series the last axis holds one
        frame after the other. The table has each sample's error, for trajectories that of as
        many steps as a training sample has, and the errors of each field. Samples that have names
        go by them.

        Parameters
        ----------
        folder : Path
            Where the files go.
        """
        names = self.reader.names
        with replacing(folder / "predictions.h5") as draft, h5py.File(draft, "w") as file:
            file.attrs["coordinates"] = [str(channel) for channel in self.reader.coordinates]
            file.attrs["targets"] = [str(channel) for channel in self.reader.targets]
            for index, prediction in enumerate(self.predictions):
                group = file.create_group(f"{index:04d}")
                group.attrs["rel_l2"] = self.errors[index]
                if names:
                    group.attrs["case"] = names[index]
                group["prediction"] = self.shaped(prediction)
                group["target"] = self.field(index, "target")
                group["embedding"] = self.field(index, "embedding")
        with replacing(folder / "test_errors.csv") as draft, draft.open("w", newline="") as file:
            writer = csv.writer(file)
            columns = {"rel_l2": self.errors}
            if isinstance(self.reader, TrajectoryReader):
                columns["rel_l2_short"] = self.horizon_errors(self.reader.n_output)
            for name, errors in self.fields.items():
                columns |= {f"{name}_{key}": values for key, values in errors.items()}
            writer.writerow(["case" if names else "sample", *columns])
            rows = zip(*(values.tolist() for values in columns.values()), strict=True)
            rows = zip(names or range(len(self.errors)), rows, strict=True)
            writer.writerows((name, *row) for name, row in rows)

    def field_metrics(self) -> dict[str, dict[str, float | None]]:
        """What ``metrics.json`` says of each field, as ``test_fields``.

        Returns
        -------
        dict of str to dict of str to float or None
            ``relative_l2``, ``relative_l2_weighted`` where there are weights, and ``mae``: means
            over the samples, of relative errors over those where the field is not zero
            everywhere. ``largest_error``: the largest of all samples.
        """
        found = {}
        for name, errors in self.fields.items():
            known = {key: values[np.isfinite(values)] for key, values in errors.items()}
            largest = float(known.pop("max_error").max())
            means = {k: float(v.mean()) if len(v) else None for k, v in known.items()}
            found[name] = means | {"largest_error": largest}
        return found

    def frame_errors(self) -> Float[np.ndarray, "n T"]:
        """Relative L2 error of every frame of a series on its own.

        Returns
        -------
        numpy.ndarray
            Shape (n, T).
        """
        return np.array([self.frame_errors_of(i, p) for i, p in enumerate(self.predictions)])

    def frame_errors_of(
        self, index: int, prediction: Float[np.ndarray, "*points C"]
    ) -> Float[np.ndarray, " T"]:
        """Relative L2 error of every frame of one sample, for any prediction of it.

        Parameters
        ----------
        index : int
            The sample.
        prediction : numpy.ndarray
            A series, (N, T d_u), or one frame, (N, d_u), which is compared with all; or either in
            the mesh's shape.

        Returns
        -------
        numpy.ndarray
            Shape (T,).
        """
        target = self._points(index, "target")
        prediction = prediction.reshape(len(target), -1)
        repeats = target.shape[1] // prediction.shape[1]
        difference = np.tile(prediction, repeats) - target
        return self._by_frame(difference) / self._by_frame(target)

    def horizon_errors(self, n_steps: int) -> Float[np.ndarray, " n"]:
        """Relative L2 error of the first steps of a series together.

        Parameters
        ----------
        n_steps : int
            How many.

        Returns
        -------
        numpy.ndarray
            Shape (n,).
        """
        channels, errors = n_steps * len(self.reader.targets), []
        for index, prediction in enumerate(self.predictions):
            target = self._points(index, "target")[:, :channels].astype(float)
            difference = prediction[:, :channels] - target
            errors.append(np.linalg.norm(difference) / np.linalg.norm(target))
        return np.array(errors)

    def rollout_metrics(self, n_trained: int) -> dict[str, Any]:
        """What ``metrics.json`` says of rollouts beside the error of the whole.

        Parameters
        ----------
        n_trained : int
            Steps of a training sample.

        Returns
        -------
        dict
            ``test_rel_l2_short``, the error of the first ``steps_short`` steps together, no more
            than were trained on, where ``test_rel_l2`` is that of all ``steps_long``; and
            ``test_step_rel_l2`` and ``test_step_rel_l2_std``, mean and standard deviation over
            the samples of each step's error.
        """
        steps = self.frame_errors()
        short = min(n_trained, steps.shape[1])
        return {
            "test_rel_l2_short": float(self.horizon_errors(short).mean()),
            "steps_short": short,
            "steps_long": steps.shape[1],
            "test_step_rel_l2": steps.mean(0).tolist(),
            "test_step_rel_l2_std": steps.std(0).tolist(),
        }

    def _by_frame(self, series: np.ndarray) -> np.ndarray:
        frames = series.astype(float).reshape(len(series), -1, len(self.reader.targets))
        return np.linalg.norm(frames, axis=(0, 2))

    def field(self, index: int, key: str) -> Float[np.ndarray, "*points C"]:
        """A raw field of a test sample.

        Parameters
        ----------
        index : int
            The sample.
        key : str
            Of the field, such as ``embedding`` or ``target``.

        Returns
        -------
        numpy.ndarray
            At the real points, (N, C), or in the mesh's shape where there is one.
        """
        return self.shaped(self._points(index, key))

    def _points(self, index: int, key: str) -> np.ndarray:
        return real_points(self.reader[index][0], key).numpy()

    def shaped(self, points: Float[np.ndarray, "N C"]) -> Float[np.ndarray, "*points C"]:
        """Give a field the mesh's shape where there is one.

        Parameters
        ----------
        points : numpy.ndarray
            Shape (N, C).

        Returns
        -------
        numpy.ndarray
            Of shape (n_1, …, C) on structured meshes.
        """
        shape = self.reader.spatial_shape
        return points if shape is None else points.reshape(*shape, points.shape[-1])


class Meter:
    """How far a training is: a bar on a terminal, about twenty lines elsewhere.

    Parameters
    ----------
    n_steps, done : int
        Steps in all, and those done before (a resumed run).
    n_epochs : int
        Epochs in all.
    say : callable
        Prints a line.
    quiet : bool
        Say nothing; for all processes but the first.
    """

    def __init__(
        self, n_steps: int, done: int, n_epochs: int, say: Callable[[str], None], quiet: bool
    ) -> None:
        from tqdm import tqdm

        terminal = sys.stderr.isatty()
        self.bar = tqdm(
            total=n_steps, initial=done, unit="step", disable=quiet or not terminal, smoothing=0.05
        )
        self.say = None if quiet or terminal else say
        self.every = max(1, n_epochs // 20)
        self.n_epochs = n_epochs

    def step(self) -> None:
        """One more step."""
        self.bar.update()

    def epoch(self, line: dict[str, Any], seconds_left: float) -> None:
        """One more epoch.

        Parameters
        ----------
        line : dict
            Of the history.
        seconds_left : float
            Till the end of the training, estimated.
        """
        errors = {key.removesuffix("_rel_l2"): value for key, value in line.items() if "rel" in key}
        state = ", ".join(f"{name} {error:.4f}" for name, error in errors.items())
        self.bar.set_postfix_str(state)
        if self.say and (line["epoch"] % self.every == 0 or line["epoch"] == self.n_epochs):
            left = duration(seconds_left)
            self.say(f"epoch {line['epoch']:4d} / {self.n_epochs}: {state}, {left} left")

    def close(self) -> None:
        """End the bar."""
        self.bar.close()


def duration(seconds: float) -> str:
    """Seconds in words.

    Parameters
    ----------
    seconds : float
        Not negative.

    Returns
    -------
    str
        In seconds, minutes or hours, with the unit.
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.1f} min"
    return f"{seconds / 3600:.1f} h"


def peak_memory_mb(device: torch.device) -> float:
    """Most memory used so far, in MB (1e6 bytes): the GPU's, or the process's on a CPU.

    Parameters
    ----------
    device : torch.device
        Where the run is.

    Returns
    -------
    float
    """
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6


def device_name(device: torch.device) -> str:
    """The device in words.

    Parameters
    ----------
    device : torch.device
        Where the run is.

    Returns
    -------
    str
    """
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"CPU, {torch.get_num_threads()} threads"


_OF_FIELDS = {
    "relative_l2": "relative L2",
    "relative_l2_weighted": "weighted",
    "mae": "mean absolute",
    "largest_error": "largest",
}


def _field_line(errors: dict[str, float | None]) -> str:
    given = {key: text for key, text in _OF_FIELDS.items() if key in errors}
    return ", ".join(
        f"{text} {'none' if errors[key] is None else f'{errors[key]:.4g}'}"
        for key, text in given.items()
    )


# Rows of the table that not every run has.
_OPTIONAL = {
    "test_frame_rel_l2": "  of a single frame",
    "test_rel_l2_short": "  of as many steps as trained on",
    "validation_rel_l2": "relative L2, validation set",
    **{f"test_{name}": f"{name}, test set" for name in LOSSES if name != "relative_l2"},
}


def table(metrics: dict[str, Any], folder: Path) -> str:
    """The table at the end of a run.

    Parameters
    ----------
    metrics : dict
        What ``metrics.json`` holds.
    folder : Path
        Of the run.

    Returns
    -------
    str
        Of several lines.
    """
    m, fields = metrics, metrics.get("test_fields", {})
    rows = [
        ("model", f"{m['model']}, {m['n_params']:,} parameters, seed {m['seed']}"),
        ("data", f"{m['benchmark']}, {m['data']}"),
        ("trained", f"{m['epochs']} epochs in {duration(m['train_seconds'])} ({m['device']})"),
        ("relative L2, training set", f"{m['train_rel_l2']:.5f}"),
        (
            "relative L2, test set",
            f"{m['test_rel_l2']:.5f}  (± {m['test_rel_l2_std']:.5f} between samples)",
        ),
        *((name, f"{m[key]:.5g}") for key, name in _OPTIONAL.items() if key in m),
        ("  of the mean training field", f"{m['mean_predictor_rel_l2']:.5f}"),
        *((f"  {name}", _field_line(errors)) for name, errors in fields.items()),
        ("a prediction takes", f"{m['inference_ms_per_sample']:.2f} ms"),
        ("peak memory", f"{m['peak_memory_mb']:.0f} MB"),
        ("results", str(folder)),
    ]
    width = max(len(name) for name, _ in rows)
    lines = [f"{name:<{width}}  {value}" for name, value in rows]
    rule = "-" * max(map(len, lines))
    return "\n".join(["", rule, *lines, rule])
