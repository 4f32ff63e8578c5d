"""The recipe that every example runs."""

from physicsnemo_cano.training.report import Results
from physicsnemo_cano.training.run import build_model, run

__all__ = ["Results", "build_model", "run"]
