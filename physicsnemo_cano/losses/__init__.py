"""Losses: pure functions of tensors."""

from physicsnemo_cano.losses.relative_l2 import relative_l2

__all__ = ["relative_l2"]
