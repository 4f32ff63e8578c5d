"""Functional cluster attention; needs torch alone."""

from .cluster_attention import cluster_attention

__all__ = ["cluster_attention"]
