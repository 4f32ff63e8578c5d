# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""The folder of a run: whose it is, and what lies where in it."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from physicsnemo_cano.recipe.config import Recipe


@contextlib.contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """Give the name of a draft, which takes the file's place in one step when the block ends.

    Parameters
    ----------
    file : Path
        To be written; what was there stays if the block fails.

    Yields
    ------
    Path
        Of the draft, in the same folder.
    """
    draft = file.with_name(f".{file.name}.draft")
    yield draft
    os.replace(draft, file)


def write_text(file: Path, text: str) -> None:
    """Write a file in one step.

    Parameters
    ----------
    file : Path
        To be written.
    text : str
        What it shall hold.
    """
    with replacing(file) as draft:
        draft.write_text(text)


@dataclass(frozen=True)
class RunFolder:
    """A run's files.

    Parameters
    ----------
    path : Path
        The folder.
    """

    path: Path

    @property
    def config(self) -> Path:
        """The configuration."""
        return self.path / "config.yaml"

    @property
    def statistics(self) -> Path:
        """Scales of the training set; see :class:`Statistics`."""
        return self.path / "normalization.npz"

    @property
    def layout(self) -> Path:
        """What a sample holds; see :class:`Layout`."""
        return self.path / "layout.json"

    @property
    def metrics(self) -> Path:
        """The results, written last: where it is, the run is complete."""
        return self.path / "metrics.json"

    @property
    def figures(self) -> Path:
        """The folder of the figures."""
        return self.path / "figures"

    @property
    def checkpoints(self) -> Path:
        """The folder of the checkpoints; see :class:`Checkpoints`."""
        return self.path / "checkpoints"

    @property
    def history(self) -> History:
        """A line an epoch."""
        return History(self.path / "metrics.jsonl")

    def refuse_others(self, settings: Recipe) -> None:
        """Raise an error if the folder belongs to something else.

        Parameters
        ----------
        settings : Recipe
            Of the run that wants it.

        Raises
        ------
        FileExistsError
            If it holds something else than a run, or a checkpoint of another run, whose differences
            the message names.
        """
        if not self.config.exists():
            # Hidden files are this module's own drafts and lock.
            if self.path.exists() and any(p.name[0] != "." for p in self.path.iterdir()):
                raise FileExistsError(
                    f"{self.path} is not empty and holds no run; choose another output=<folder>"
                )
            return
        different = settings.differences(Recipe.load(self.config))
        if different and self._has_checkpoint():
            raise FileExistsError(
                f"{self.path} holds a run with another configuration ({'; '.join(different)}). "
                "Repeat its command to resume it, or choose another output=<folder>."
            )

    def _has_checkpoint(self) -> bool:
        return self.checkpoints.exists() and any(self.checkpoints.rglob("*.mdlus"))

    @contextlib.contextmanager
    def claimed(self, settings: Recipe) -> Iterator[None]:
        """Hold the folder for this run alone; the system frees it if this process dies.

        Parameters
        ----------
        settings : Recipe
            Kept in the folder.

        Yields
        ------
        None

        Raises
        ------
        FileExistsError
            See :meth:`refuse_others`; or if another process is running there.
        """
        from filelock import FileLock, Timeout

        self.refuse_others(settings)
        self.path.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.path / ".lock")
        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            raise FileExistsError(
                f"Another process is running in {self.path}: wait for it, or choose another "
                "output=<folder>"
            ) from error
        try:
            self.refuse_others(settings)
            if not self.config.exists() or settings.differences(Recipe.load(self.config)):
                for stale in (self.statistics, self.layout):
                    stale.unlink(missing_ok=True)
                write_text(self.config, settings.yaml())
            yield
        finally:
            lock.release()


class History:
    """``metrics.jsonl``, a line an epoch, without gaps or doubles however often a run resumes."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def read(self, until: int | None = None) -> list[dict[str, Any]]:
        """Read the lines; one that a kill cut short is left out.

        Parameters
        ----------
        until : int, optional
            The last epoch of interest; all by default.

        Returns
        -------
        list of dict
            A line each, in order.
        """
        lines = []
        for text in self.file.read_text().splitlines() if self.file.exists() else []:
            try:
                line = json.loads(text)
            except json.JSONDecodeError:
                break
            if until is None or line["epoch"] <= until:
                lines.append(line)
        return lines

    def truncate(self, until: int) -> None:
        """Forget what came after the epoch from which a run resumes.

        Parameters
        ----------
        until : int
            That epoch; 0 forgets all.
        """
        write_text(self.file, "".join(f"{json.dumps(line)}\n" for line in self.read(until)))

    def append(self, line: dict[str, Any]) -> None:
        """Add an epoch.

        Parameters
        ----------
        line : dict
            With ``epoch``, and what else is to be kept.
        """
        with self.file.open("a") as file:
            file.write(f"{json.dumps(line)}\n")
