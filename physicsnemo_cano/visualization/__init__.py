"""Figures of fields, errors, trainings and clusters, from arrays alone.

Needs matplotlib, which comes with the ``examples`` extra. No function touches pyplot's global
state; each returns a figure, for :func:`save`, or draws into axes.
"""

from physicsnemo_cano.visualization.clusters import cluster_maps
from physicsnemo_cano.visualization.errors import error_distribution, loss_curve
from physicsnemo_cano.visualization.fields import (
    Window,
    field_comparison,
    show_field,
    symmetric_limits,
)
from physicsnemo_cano.visualization.style import figure, save
from physicsnemo_cano.visualization.summary import draw_summary

__all__ = [
    "Window",
    "cluster_maps",
    "draw_summary",
    "error_distribution",
    "field_comparison",
    "figure",
    "loss_curve",
    "save",
    "show_field",
    "symmetric_limits",
]
