"""Models of physicsnemo-cano."""

from .cano import CANO

__all__ = ["CANO"]
