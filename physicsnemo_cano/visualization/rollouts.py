# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Figures of a field that is predicted frame by frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int, Real

from physicsnemo_cano.visualization.errors import error_curves
from physicsnemo_cano.visualization.fields import show_field, symmetric_limits
from physicsnemo_cano.visualization.style import MODEL, MUTED, figure, label, plain, save
from physicsnemo_cano.visualization.summary import draw_summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def time_strips(
    points: Float[np.ndarray, "*points 2"],
    target: Float[np.ndarray, "*points T"],
    prediction: Float[np.ndarray, "*points T"],
    *,
    frames: Mapping[int, str],
    coordinates: Sequence[object],
    titles: Sequence[str],
    triangles: Int[np.ndarray, "M 3"] | None = None,
) -> Figure:
    """Reference, prediction and their difference, a column a time.

    Reference and prediction share one scale over all times shown, the differences another.

    Parameters
    ----------
    points : numpy.ndarray
        As in :func:`show_field`.
    target, prediction : numpy.ndarray
        Of shape (n_i, n_j, T) or (N, T).
    frames : mapping of int to str
        Which frames, from 0, and what stands over them.
    coordinates : sequence
        Names of the two coordinates.
    titles : pair of str
        Beside the first two rows.
    triangles : numpy.ndarray, optional
        As in :func:`show_field`.

    Returns
    -------
    matplotlib.figure.Figure
        Three rows.
    """
    chosen = list(frames)
    target, prediction = target[..., chosen], prediction[..., chosen]
    shared = symmetric_limits(target)
    rows = (
        (titles[0], target, shared),
        (titles[1], prediction, shared),
        ("difference", prediction - target, symmetric_limits(prediction - target)),
    )
    drawing, panels = figure(3, len(chosen), size=(2.6, 2.5), sharex=True, sharey=True)
    for (name, field, limits), axes in zip(rows, panels, strict=True):
        for k, panel in enumerate(axes):
            image = show_field(
                panel, points, field[..., k], cmap="RdBu_r", limits=limits, triangles=triangles
            )
            label(panel, coordinates)
            panel.label_outer()
        axes[0].set_ylabel(f"{name}\n{axes[0].get_ylabel()}")
        drawing.colorbar(image, ax=axes.tolist(), pad=0.01, extend="both")
    for panel, title in zip(panels[0], frames.values(), strict=True):
        panel.set_title(title, fontsize=10)
    return drawing


def error_in_time(
    results, times: Real[np.ndarray, " T"], name: str, *, log: bool = False
) -> Figure:
    """Relative L2 error of every frame: the mean and the middle 80 % of the test set.

    Beside it the error of repeating the last input frame.

    Parameters
    ----------
    results : Results
        Of rollouts of one length.
    times : numpy.ndarray
        Of the predicted frames, (T,).
    name : str
        Of the time, for the axis.
    log : bool, optional, default=False
        Whether the errors are drawn on a logarithmic axis.

    Returns
    -------
    matplotlib.figure.Figure
    """
    errors, repeated, d_u = results.frame_errors(), [], len(results.reader.targets)
    for index in range(len(errors)):
        frames = results.field(index, "fx")
        frames = frames[..., : frames.shape[-1] - results.reader.n_static]
        repeated.append(results.frame_errors_of(index, frames[..., -d_u:]))
    drawing, ((axes,),) = figure(size=(6.0, 4.0))
    low, high = np.quantile(errors, (0.1, 0.9), axis=0)
    axes.fill_between(times, low, high, color=MODEL, alpha=0.2, linewidth=0)
    axes.plot(times, np.mean(errors, 0), color=MODEL, label=f"{results.metrics['model']}, mean")
    axes.plot(times, np.mean(repeated, 0), color=MUTED, linestyle=":", label="last input frame")
    if log:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.set_xlabel(name)
    axes.set_ylabel("relative L2 error of the frame")
    axes.legend(frameon=False)
    plain(axes)
    return drawing


def draw_rollout(
    results,
    folder: Path,
    steps: Sequence[int],
    *,
    triangles: Callable[[int], Int[np.ndarray, "M 3"]] | None = None,
    log: bool = False,
) -> None:
    """Draw what every rollout in the plane has to show.

    Parameters
    ----------
    results : Results
        Of rollouts of one length.
    folder : Path
        Where the figures go: ``<channel>_median.png`` and ``_worst.png``, some steps beside the
        truth; ``error_in_time.png``; ``horizons.png``, the errors of all samples at both
        horizons; and those of :func:`draw_summary`.
    steps : sequence of int
        Steps to show, from 1; those beyond the rollout's end are left out.
    triangles : callable, optional
        Takes the number of a sample and returns its triangles, as in :func:`show_field`.
    log : bool, optional, default=False
        Whether the errors of each step are drawn on a logarithmic axis.
    """
    reader, d_u = results.reader, len(results.reader.targets)
    n_steps = results.frame_errors().shape[1]
    frames = {step - 1: f"step +{step}" for step in steps if step <= n_steps}
    whole = "of all fields, " if d_u > 1 else ""
    for title, index in (("median", results.median), ("worst", results.worst)):
        points, target = (results.field(index, key) for key in ("embedding", "target"))
        prediction = results.shaped(results.predictions[index])
        for k, channel in enumerate(reader.targets):
            strips = time_strips(
                points,
                target[..., k::d_u],
                prediction[..., k::d_u],
                frames=frames,
                coordinates=reader.coordinates,
                titles=("reference", results.metrics["model"]),
                triangles=triangles and triangles(index),
            )
            error = f"{whole}relative L2 error {results.errors[index]:.4f}, {title} of the test set"
            strips.suptitle(f"{channel}; {error}" if d_u > 1 else error)
            save(strips, folder / f"{channel.name}_{title}.png")
    times = np.arange(1, n_steps + 1)
    save(error_in_time(results, times, "step", log=log), folder / "error_in_time.png")
    horizons = {f"steps 1 to {n}": results.horizon_errors(n) for n in (reader.n_output, n_steps)}
    save(error_curves(horizons), folder / "horizons.png")
    draw_summary(results, folder)
