"""Losses: pure functions of tensors."""

from physicsnemo_cano.losses.gradient import gradient_error
from physicsnemo_cano.losses.relative_l2 import relative_l2

__all__ = ["gradient_error", "relative_l2"]
