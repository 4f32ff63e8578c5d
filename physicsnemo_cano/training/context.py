"""What all parts of a run share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from physicsnemo.distributed import DistributedManager
from physicsnemo.utils.logging import PythonLogger, RankZeroLoggingWrapper

from physicsnemo_cano.training.report import Results

Figures = Callable[[Results, Path], None]


@dataclass
class Context:
    """One run: what was asked for, where its results go, and which process this is.

    Attributes
    ----------
    settings : dict
        The resolved configuration.
    folder : Path
        Where results go.
    figures : callable
        Draws the benchmark's figures.
    embedded : Path or None
        The example's own data, for a run without ``data.root``.
    dist : DistributedManager
        Rank, world size and device.
    """

    settings: dict[str, Any]
    folder: Path
    figures: Figures
    embedded: Path | None
    dist: DistributedManager

    def say(self, message: str) -> None:
        """Print a line, once for all processes."""
        RankZeroLoggingWrapper(PythonLogger("cano"), self.dist).log(message)
