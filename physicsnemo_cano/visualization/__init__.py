# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Figures of fields, errors, trainings and clusters, from arrays alone.

Needs matplotlib, which comes with the ``examples`` extra. No function touches pyplot's global
state; each returns a figure, for :func:`save`, or draws into axes.
"""

from physicsnemo_cano.visualization.clusters import draw_clusters
from physicsnemo_cano.visualization.errors import error_curves, error_distribution, loss_curve
from physicsnemo_cano.visualization.fields import (
    Window,
    field_comparison,
    show_field,
    symmetric_limits,
)
from physicsnemo_cano.visualization.generic import draw_results, line_comparison, point_comparison
from physicsnemo_cano.visualization.rollouts import draw_rollout, error_in_time, time_strips
from physicsnemo_cano.visualization.style import figure, save
from physicsnemo_cano.visualization.summary import draw_summary
from physicsnemo_cano.visualization.surfaces import render_surface, surface_comparison

__all__ = [
    "Window",
    "draw_clusters",
    "draw_results",
    "draw_rollout",
    "draw_summary",
    "error_curves",
    "error_distribution",
    "error_in_time",
    "field_comparison",
    "figure",
    "line_comparison",
    "loss_curve",
    "point_comparison",
    "render_surface",
    "save",
    "show_field",
    "surface_comparison",
    "symmetric_limits",
    "time_strips",
]
