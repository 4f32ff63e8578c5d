"""Checkpoints that are complete at every moment, whenever the process is killed.

``checkpoints/`` holds one folder an epoch kept, ``epoch0007/``, with the model (``.mdlus``), the
state of the optimiser (``.pt``), both written by PhysicsNeMo, and the files needed to use the
model elsewhere. ``last`` and ``best`` are links to such folders. A folder is written under
another name and renamed when complete, and a link is replaced in one step, so whatever ``last``
names can be resumed from.
"""

from __future__ import annotations

import logging
import os
import shutil
from dataclasses import dataclass, field
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
    best_test_rel_l2: float = float("inf")
    train_rel_l2: float = float("nan")
    train_seconds: float = 0.0


@dataclass
class Checkpoints:
    """The checkpoints of one run.

    Parameters
    ----------
    folder : Path
        ``checkpoints/`` of the run.
    companions : dict of str to Path
        Files to copy into every checkpoint, by the name they get there.
    """

    folder: Path
    companions: dict[str, Path] = field(default_factory=dict)

    def save(
        self,
        progress: Progress,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        schedule: torch.optim.lr_scheduler.LRScheduler,
    ) -> None:
        """Write a checkpoint, name it ``last`` (and ``best``), then delete what neither names."""
        draft = self.folder / "draft"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        save_checkpoint(
            draft, model, optimizer, schedule, epoch=progress.epoch, metadata=vars(progress)
        )
        for name, file in self.companions.items():
            shutil.copyfile(file, draft / name)
        draft.rename(self.folder / _name(progress.epoch))
        self._publish(progress)

    def load(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        schedule: torch.optim.lr_scheduler.LRScheduler,
        device: torch.device,
    ) -> Progress:
        """Restore the last checkpoint; without one, leave everything as it is at epoch 0."""
        progress = Progress()
        last = self.folder / "last"
        if last.exists():
            stored: dict = {}
            load_checkpoint(last, model, optimizer, schedule, metadata_dict=stored, device=device)
            progress = Progress(**stored)
        return progress

    def tidy(self, progress: Progress) -> None:
        """Finish what a kill interrupted: set the links and delete left-overs."""
        if self.folder.exists():
            self._publish(progress)

    def _publish(self, progress: Progress) -> None:
        if progress.epoch:
            self._link("last", progress.epoch)
            self._link("best", progress.best_epoch)
        keep = {_name(progress.epoch), _name(progress.best_epoch)}
        for path in self.folder.glob("epoch[0-9]*"):
            if path.name not in keep:
                shutil.rmtree(path)

    def _link(self, name: str, epoch: int) -> None:
        new = self.folder / f"{name}.new"
        new.unlink(missing_ok=True)
        new.symlink_to(_name(epoch), target_is_directory=True)
        link = self.folder / name
        if link.is_dir() and not link.is_symlink():
            # The run was copied, and its links became folders.
            target = self.folder / _name(epoch)
            shutil.rmtree(link) if target.exists() else link.rename(target)
        os.replace(new, link)


def _name(epoch: int) -> str:
    return f"epoch{epoch:04d}"


def read_progress(folder: Path) -> Progress:
    """What a checkpoint's folder says about its run."""
    (state,) = folder.glob("checkpoint.*.pt")
    stored = torch.load(state, map_location="cpu", weights_only=True)
    return Progress(**stored["metadata"])


def find_checkpoint(path: Path) -> tuple[Path, Path]:
    """The folder and the ``.mdlus`` file of a checkpoint, given either.

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
    """The model of a ``.mdlus`` file; the file itself says which class and arguments."""
    return Module.from_checkpoint(file).to(device).eval()
