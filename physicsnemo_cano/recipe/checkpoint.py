# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Checkpoints that are complete at every moment, whenever the process is killed.

``checkpoints/last`` and, where a validation set chooses it, ``checkpoints/best`` are folders with
the model (``.mdlus``), the state of the optimiser (``.pt``), both written by PhysicsNeMo, and the
files needed to use the model elsewhere. A folder is written under another name. When it is
complete it is renamed to ``last.new``, then takes the place of ``last``; a kill in between is
made good when the run is continued. No links are needed.
"""

from __future__ import annotations

import logging
import shutil
from dataclasses import dataclass, field, fields
from pathlib import Path

import torch
from physicsnemo.core import Module
from physicsnemo.utils.checkpoint import load_checkpoint, save_checkpoint

# PhysicsNeMo reports every file it writes; at every epoch that is noise.
logging.getLogger("checkpoint").setLevel(logging.WARNING)


@dataclass
class Progress:
    """How far a run has come; stored with every checkpoint."""

    epoch: int = 0
    best_epoch: int = 0
    best_validation_rel_l2: float = float("inf")
    train_rel_l2: float = float("nan")
    train_seconds: float = 0.0

    @classmethod
    def _stored(cls, values: dict) -> Progress:
        """From a checkpoint; those of version 0.1 named a best epoch by its test error."""
        if "best_test_rel_l2" in values:
            values = values | {"best_epoch": 0}
        return cls(**{f.name: values[f.name] for f in fields(cls) if f.name in values})


@dataclass
class Checkpoints:
    """The checkpoints of one run.

    Parameters
    ----------
    folder : Path
        ``checkpoints/`` of the run.
    companions : list of Path
        Files to copy into every checkpoint.
    """

    folder: Path
    companions: list[Path] = field(default_factory=list)

    def save(
        self,
        progress: Progress,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        schedule: torch.optim.lr_scheduler.LRScheduler,
    ) -> None:
        """Write ``last``, and ``best`` if this epoch is.

        Parameters
        ----------
        progress : Progress
            How far the run has come.
        model : torch.nn.Module
            A PhysicsNeMo module, not wrapped.
        optimizer : torch.optim.Optimizer
            With its state.
        schedule : torch.optim.lr_scheduler.LRScheduler
            Of its learning rate.
        """
        draft = self._empty("draft")
        save_checkpoint(
            draft, model, optimizer, schedule, epoch=progress.epoch, metadata=vars(progress)
        )
        for file in self.companions:
            shutil.copyfile(file, draft / file.name)
        draft.rename(self.folder / "last.new")
        self.tidy()

    def load(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        schedule: torch.optim.lr_scheduler.LRScheduler,
        device: torch.device,
    ) -> Progress:
        """Restore the last checkpoint; without one, leave everything as it is at epoch 0.

        Parameters
        ----------
        model, optimizer, schedule
            As of :meth:`save`; they are filled in place.
        device : torch.device
            Where to.

        Returns
        -------
        Progress
            How far the run had come.
        """
        last, stored = self.folder / "last", {}
        if last.exists():
            load_checkpoint(last, model, optimizer, schedule, metadata_dict=stored, device=device)
        return Progress._stored(stored)

    def tidy(self) -> None:
        """Finish what a kill interrupted."""
        last = self.folder / "last"
        if last.is_symlink():  # version 0.1 linked to a folder an epoch
            shutil.copytree(last, self._empty("draft"), dirs_exist_ok=True)
            (self.folder / "draft").rename(self.folder / "last.new")
        self._put_in_place("last")
        self._put_in_place("best")
        progress = read_progress(last) if last.exists() else Progress()
        if progress.epoch and progress.best_epoch == progress.epoch:
            best = self.folder / "best"
            if not best.exists() or read_progress(best).epoch != progress.epoch:
                shutil.copytree(last, self._empty("draft"), dirs_exist_ok=True)
                (self.folder / "draft").rename(self.folder / "best.new")
                self._put_in_place("best")

    def _empty(self, name: str) -> Path:
        folder = self.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def _put_in_place(self, name: str) -> None:
        new, place = self.folder / f"{name}.new", self.folder / name
        if not new.exists():
            return
        if place.is_symlink():
            place.unlink()
        elif place.exists():
            shutil.rmtree(place)
        new.rename(place)


def read_progress(folder: Path) -> Progress:
    """What a checkpoint's folder says about its run.

    Parameters
    ----------
    folder : Path
        Of the checkpoint.

    Returns
    -------
    Progress
    """
    (state,) = folder.glob("checkpoint.*.pt")
    stored = torch.load(state, map_location="cpu", weights_only=True)
    return Progress._stored(stored["metadata"])


def find_checkpoint(path: Path) -> tuple[Path, Path]:
    """Find the folder and the model's file of a checkpoint, given either.

    Parameters
    ----------
    path : Path
        The folder, or the ``.mdlus`` file in it.

    Returns
    -------
    Path, Path
        The folder and the file.

    Raises
    ------
    FileNotFoundError
        If there is no such checkpoint; the message says what was expected.
    """
    files = [path] if path.is_file() else sorted(path.glob("*.mdlus"))
    if len(files) != 1:
        raise FileNotFoundError(
            f"No checkpoint at {path}: expected a .mdlus file or a folder with one, such as "
            "outputs/airfoil/cano/seed0/checkpoints/last"
        )
    return files[0].parent, files[0]


def open_model(file: Path, device: torch.device) -> Module:
    """The model of a ``.mdlus`` file; the file itself says which class and arguments.

    Parameters
    ----------
    file : Path
        The ``.mdlus`` file.
    device : torch.device
        Where to.

    Returns
    -------
    physicsnemo.core.Module
        In evaluation mode.
    """
    return Module.from_checkpoint(file).to(device).eval()
