# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
"""Files that readers open, and the one place where their shapes are checked."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np

Shapes = Mapping[str, tuple[int | str, ...]]


def locate(root: str | Path | None, what: str, hint: str, pattern: str = "") -> Path:
    """The path of data that exist, or of the one file there whose name fits a pattern.

    Parameters
    ----------
    root : str, Path or None
        Of the configuration's ``data.root``.
    what, hint : str
        Name of the data, and what is expected and how to get it, for the message.
    pattern : str, optional
        As for ``Path.glob``.

    Returns
    -------
    Path

    Raises
    ------
    FileNotFoundError
        If nothing is given, or there is nothing.
    ValueError
        If several files fit the pattern.
    """
    if root is None:
        raise FileNotFoundError(f"data.root is not given. {hint}")
    path = Path(root).expanduser()
    if not path.exists():
        raise FileNotFoundError(f"No {what} data at {path}. {hint}")
    if not pattern:
        return path
    found = sorted(path.glob(pattern))
    if not found:
        raise FileNotFoundError(f"No {pattern} in {path}. {hint}")
    if len(found) > 1:
        raise ValueError(f"{path} holds {', '.join(file.name for file in found)}: keep one")
    return found[0]


def installed(package: str, folder: str) -> Path:
    """A folder with data of an installed package; nothing of the package is imported.

    Parameters
    ----------
    package : str
        Its name on PyPI.
    folder : str
        From where packages are installed, such as ``smithers/dataset/datasets/elastic_block``.

    Returns
    -------
    Path

    Raises
    ------
    FileNotFoundError
        If the package is not installed, or has no such folder.
    """
    hint = 'Install it: pip install "physicsnemo-cano[data]"'
    try:
        files = importlib.metadata.files(package) or []
    except importlib.metadata.PackageNotFoundError:
        raise FileNotFoundError(
            f"The data are files of the package {package}, which is not installed. {hint}"
        ) from None
    for file in files:
        if file.parent.as_posix() == folder:
            return Path(file.locate()).parent
    raise FileNotFoundError(
        f"{package} {importlib.metadata.version(package)} has no folder {folder}. {hint}"
    )


def check_shapes(found: Mapping[str, Any], expected: Shapes, where: Path, hint: str = "") -> None:
    """Check that named arrays have the expected shapes.

    Parameters
    ----------
    found : mapping of str to tuple
        Shapes by name; what is no array has something else than a tuple.
    expected : mapping of str to tuple
        The shapes needed. An axis is a number, or a letter, which may be any number of at least
        one but the same wherever it stands: ``("n", 421, 421)``.
    where : Path
        What holds the arrays, for the message.
    hint : str, optional
        What is expected and how to get it, for the message.

    Raises
    ------
    ValueError
        If one is missing or has another shape.
    """
    letters: dict[str, int] = {}

    def fits(shape: Any, wanted: tuple[int | str, ...]) -> bool:
        return (
            isinstance(shape, tuple)
            and len(shape) == len(wanted)
            and all(
                size == (letters.setdefault(axis, size) if isinstance(axis, str) else axis) > 0
                for size, axis in zip(shape, wanted, strict=True)
            )
        )

    if not all(fits(found.get(name), wanted) for name, wanted in expected.items()):
        held = ", ".join(f"{name} {shape}" for name, shape in found.items()) or "nothing"
        needed = ", ".join(f"{name} {shape}" for name, shape in expected.items()).replace("'", "")
        raise ValueError(f"{where} holds {held}, expected {needed}. {hint}".rstrip())


def check_samples(n: int, least: int, where: Path, hint: str) -> None:
    """Check that there are enough samples.

    Parameters
    ----------
    n, least : int
        Samples there are, and those needed.
    where : Path
        What holds them, for the message.
    hint : str
        What is expected and how to get it, for the message.

    Raises
    ------
    ValueError
        If there are too few.
    """
    if n < least:
        raise ValueError(f"{where} holds {n} samples, expected at least {least}. {hint}")


def map_arrays(
    folder: Path, expected: Shapes, hint: str, integers: Sequence[str] = ()
) -> dict[str, np.ndarray]:
    """Map the ``.npy`` files of a folder; nothing is loaded.

    Parameters
    ----------
    folder : Path
        Where they are.
    expected : mapping of str to tuple
        Names of the files and shapes, as for :func:`check_shapes`.
    hint : str
        What is expected and how to get it, for the messages.
    integers : sequence of str, optional
        Those that need not be of a floating dtype.

    Returns
    -------
    dict of str to numpy.ndarray
        Read-only, by name of the file.

    Raises
    ------
    FileNotFoundError
        If files are missing.
    ValueError
        If a file is no ``.npy`` file, is cut off, or holds something else than real numbers of
        the expected shape.
    """
    missing = [name for name in expected if not (folder / name).is_file()]
    if missing:
        raise FileNotFoundError(f"{folder} lacks {', '.join(missing)}. {hint}")
    arrays = {}
    for name in expected:
        try:
            array = np.load(folder / name, mmap_mode="r")
        except (ValueError, OSError, EOFError) as error:
            raise ValueError(f"{folder / name} is no whole .npy file ({error}). {hint}") from error
        if not isinstance(array, np.ndarray):
            raise ValueError(
                f"{folder / name} is an .npz archive of {sorted(array)} under the name of an .npy "
                f"file: save the one array with numpy.save. {hint}"
            )
        if name not in integers:
            check_real(array.dtype, folder / name, hint)
        arrays[name] = array
    check_shapes({name: array.shape for name, array in arrays.items()}, expected, folder, hint)
    return arrays


def open_hdf5(file: Path, expected: Shapes, hint: str, integers: Sequence[str] = ()) -> h5py.File:
    """Open an HDF5 file whose datasets have the expected shapes.

    Parameters
    ----------
    file : Path
        The file.
    expected : mapping of str to tuple
        Names of the datasets and shapes, as for :func:`check_shapes`.
    hint : str
        What is expected and how to get it, for the messages.
    integers : sequence of str, optional
        Those that need not be of a floating dtype.

    Returns
    -------
    h5py.File

    Raises
    ------
    ValueError
        If it is no HDF5 file, or lacks a dataset of real numbers of the expected shape.
    """
    try:
        stream = h5py.File(file, "r")
    except OSError as error:
        raise ValueError(f"{file} is no HDF5 file ({error}). {hint}") from error
    try:
        shapes = {name: getattr(item, "shape", "(a group)") for name, item in stream.items()}
        check_shapes(shapes, expected, file, hint)
        for name in expected:
            if name not in integers:
                check_real(stream[name].dtype, f"{file}: {name}", hint)
    except ValueError:
        stream.close()
        raise
    return stream


def check_real(dtype: np.dtype, where: object, hint: str = "") -> None:
    """Check that a dtype is one of real floating numbers.

    Parameters
    ----------
    dtype : numpy.dtype
        Of an array.
    where : object
        What holds the array, for the message.
    hint : str, optional
        What is expected and how to get it, for the message.

    Raises
    ------
    ValueError
        If it is another.
    """
    if not np.issubdtype(dtype, np.floating):
        kind = "complex numbers" if {"real", "imag"} <= set(dtype.names or ()) else str(dtype)
        raise ValueError(f"{where} holds {kind}, expected float32 or float64. {hint}".rstrip())
