"""The recipe that every example runs."""

from physicsnemo_cano.training.recipe import build_model, run
from physicsnemo_cano.training.report import Results

__all__ = ["Results", "build_model", "run"]
