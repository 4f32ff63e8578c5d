"""The files of a run: whose folder it is, and writing that a kill cannot spoil."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

# What a run is: two runs that differ in one of these do not share a folder.
_IDENTITY = ("benchmark", "scale", "seed", "normalize", "as_cloud", "model", "data", "training")


@contextlib.contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """Give the name of a draft, which takes the file's place in one step when the block ends."""
    draft = file.with_name(f".{file.name}.draft")
    yield draft
    os.replace(draft, file)


def write_text(file: Path, text: str) -> None:
    """Write a file in one step."""
    with replacing(file) as draft:
        draft.write_text(text)


def claim(folder: Path, settings: dict[str, Any]) -> None:
    """Take a folder for a run, unless it belongs to another.

    Parameters
    ----------
    folder : Path
        Made if absent.
    settings : dict
        The resolved configuration, which is kept there as ``config.yaml``.

    Raises
    ------
    FileExistsError
        If the folder holds a run with another configuration; the message names the differences.
        Or if it holds other files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "config.yaml"
    if not file.exists():
        if any(not path.name.startswith(".") for path in folder.iterdir()):
            raise FileExistsError(
                f"{folder} is not empty and holds no run; choose another output=<folder>"
            )
        write_text(file, OmegaConf.to_yaml(settings))
        return
    earlier = OmegaConf.to_container(OmegaConf.load(file))
    then, now = (_flat({key: s.get(key) for key in _IDENTITY}) for s in (earlier, settings))
    different = [
        f"{key}: {then.get(key, 'absent')} there, {now.get(key, 'absent')} now"
        for key in sorted(then.keys() | now.keys())
        if then.get(key) != now.get(key)
    ]
    if different:
        raise FileExistsError(
            f"{folder} holds a run with another configuration ({'; '.join(different)}). "
            "Repeat its command to resume it, or choose another output=<folder>."
        )


def _flat(tree: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(tree, dict):
        return {prefix: tree}
    return {
        key: value
        for name, branch in tree.items()
        for key, value in _flat(branch, f"{prefix}.{name}" if prefix else name).items()
    }


class History:
    """``metrics.jsonl``, a line an epoch, without gaps or doubles however often a run resumes."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def read(self, until: int | None = None) -> list[dict[str, Any]]:
        """Lines of the first ``until`` epochs; a line that a kill cut short is left out."""
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
        """Forget what came after the epoch from which a run resumes."""
        write_text(self.file, "".join(f"{json.dumps(line)}\n" for line in self.read(until)))

    def append(self, line: dict[str, Any]) -> None:
        """Add an epoch."""
        with self.file.open("a") as file:
            file.write(f"{json.dumps(line)}\n")
