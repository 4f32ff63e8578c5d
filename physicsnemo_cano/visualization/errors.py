# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Errors over a test set and over a training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from physicsnemo_cano.visualization.style import MODEL, MUTED, TRUTH, figure, plain, plain_numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def error_distribution(
    errors: Float[np.ndarray, " n"],
    *,
    baseline: float | None = None,
    name: str = "relative L2 error",
) -> Figure:
    """All test errors as points, with their density, quartiles and mean (a raincloud).

    Parameters
    ----------
    errors : numpy.ndarray
        One for each sample, (n,), positive.
    baseline : float, optional
        The error of predicting the mean training field, for comparison.
    name : str
        Of the error.

    Returns
    -------
    matplotlib.figure.Figure
        With a logarithmic axis of errors.
    """
    drawing, ((axes,),) = figure(size=(6.5, 3.0))
    axes.set_xscale("log")
    logs = np.log10(errors)
    if np.ptp(logs) > 0:
        # A Gaussian kernel of Silverman's width, on the logarithmic axis.
        width = 1.06 * logs.std() * len(logs) ** -0.2
        grid = np.linspace(logs.min() - 3 * width, logs.max() + 3 * width, 200)
        density = np.exp(-0.5 * ((grid[:, None] - logs) / width) ** 2).sum(1)
        axes.fill_between(10**grid, 0.35, 0.35 + density / density.max(), color=MODEL, alpha=0.25)
    height = np.random.default_rng(0).uniform(-0.25, 0.0, len(errors))  # only to tell points apart
    axes.scatter(errors, height, s=14, color=MODEL, alpha=0.7, linewidths=0)
    box = axes.boxplot(
        errors,
        positions=[0.17],
        widths=0.16,
        orientation="horizontal",
        showfliers=False,
        manage_ticks=False,
    )
    for parts in box.values():
        for part in parts:
            part.set_color(TRUTH)
    mean = errors.mean()
    axes.axvline(mean, color=TRUTH, linewidth=1.0, linestyle="--")
    axes.text(mean, 1.4, f" mean {mean:.4f}", color=TRUTH, fontsize=9, va="bottom")
    if baseline is not None:
        axes.axvline(baseline, color=MUTED, linewidth=1.0)
        axes.text(
            baseline,
            1.4,
            f"mean field {baseline:.3f} ",
            color=MUTED,
            fontsize=9,
            ha="right",
            va="bottom",
        )
    axes.set_ylim(-0.35, 1.6)
    axes.set_yticks([])
    plain_numbers(axes.xaxis)
    axes.set_xlabel(f"{name}, {len(errors)} test samples")
    plain(axes, grid=False)
    axes.spines["left"].set_visible(False)
    return drawing


def loss_curve(history: Sequence[dict[str, Any]], *, baseline: float | None = None) -> Figure:
    """Training and test error over the epochs.

    Parameters
    ----------
    history : sequence of dict
        Lines with ``epoch``, ``train_rel_l2`` and ``test_rel_l2``.
    baseline : float, optional
        The error of predicting the mean training field.

    Returns
    -------
    matplotlib.figure.Figure
        With a logarithmic axis of errors.
    """
    drawing, ((axes,),) = figure(size=(6.0, 4.0))
    epochs = [line["epoch"] for line in history]
    marker = "o" if len(epochs) == 1 else None
    for key, name, color in (
        ("train_rel_l2", "training set", MUTED),
        ("test_rel_l2", "test set", MODEL),
    ):
        values = [line[key] for line in history]
        axes.plot(epochs, values, color=color, marker=marker, label=f"{name}, {values[-1]:.4f}")
    if baseline is not None:
        axes.axhline(
            baseline, color=TRUTH, linewidth=1.0, linestyle=":", label=f"mean field, {baseline:.4f}"
        )
    axes.set_yscale("log")
    plain_numbers(axes.yaxis)
    axes.set_xlabel("epoch")
    axes.set_ylabel("relative L2 error")
    axes.legend(frameon=False)
    plain(axes)
    return drawing


def error_curves(
    errors: Mapping[str, Float[np.ndarray, " n"]], *, name: str = "relative L2 error"
) -> Figure:
    """Share of the test samples with no more than an error, a curve for each set of errors.

    Parameters
    ----------
    errors : mapping of str to numpy.ndarray
        Name and errors (n,), positive, such as those of a short and a long horizon.
    name : str
        Of the error.

    Returns
    -------
    matplotlib.figure.Figure
        With a logarithmic axis of errors; medians are marked.
    """
    drawing, ((axes,),) = figure(size=(6.0, 4.0))
    for (title, values), color in zip(errors.items(), (MUTED, MODEL), strict=False):
        found = np.sort(values)
        share = np.arange(1, len(found) + 1) / len(found)
        axes.step(
            np.concatenate([found[:1], found]),
            np.concatenate([[0.0], share]),
            where="post",
            color=color,
            label=f"{title}, mean {values.mean():.4f}",
        )
        axes.plot(np.median(found), 0.5, "o", color=color, markersize=5)
    axes.set_xscale("log")
    plain_numbers(axes.xaxis)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel(name)
    axes.set_ylabel("share of the test samples")
    axes.legend(frameon=False, loc="upper left")
    plain(axes)
    return drawing
