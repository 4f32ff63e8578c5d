# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Arrays from MATLAB files of either kind.

Files up to version 7 have a format of their own, which SciPy reads. Version 7.3 is HDF5, which
SciPy refuses; MATLAB stores the first axis fastest and HDF5 the last, so there the axes come
reversed. Here they have MATLAB's order in both.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import h5py
import numpy as np
from jaxtyping import Int

from physicsnemo_cano.datapipes.files import check_real, check_shapes


class MatlabFile:
    """Named arrays of a MATLAB file, read when asked for.

    Parameters
    ----------
    path : str or Path
        The file.
    expected : mapping of str to tuple
        The arrays needed, with their shapes in MATLAB's order, as for :func:`check_shapes`.
    hint : str, optional
        What to add to a message of error, such as where to get the right file.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ImportError
        If SciPy is needed and not installed.
    ValueError
        If it is no MATLAB file, lacks an array or has one of another shape. The message names the
        file, what it holds and what was expected.

    Examples
    --------
    >>> with MatlabFile(path, {"u": ("n", 64, 64, 20)}) as file:  # doctest: +SKIP
    ...     first = file["u"][0]  # (64, 64, 20)
    """

    def __init__(
        self,
        path: str | Path,
        expected: Mapping[str, tuple[int | str, ...]],
        hint: str = "",
    ) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise FileNotFoundError(f"No file {self.path}. {hint}".rstrip())
        self._hdf5: h5py.File | None = None
        scipy_io = None if h5py.is_hdf5(self.path) else _scipy_io()
        try:
            if scipy_io is None:
                self._hdf5 = h5py.File(self.path, "r")
                found = {
                    name: item.shape[::-1] if isinstance(item, h5py.Dataset) else "(no array)"
                    for name, item in self._hdf5.items()
                }
            else:
                found = {name: tuple(shape) for name, shape, _ in scipy_io.whosmat(self.path)}
        except Exception as error:  # SciPy has many for files of another format
            self.close()
            raise ValueError(f"{self.path} is no MATLAB file ({error}). {hint}".rstrip()) from error
        try:
            check_shapes(found, expected, self.path, hint)
        except ValueError:
            self.close()
            raise
        self.shapes: dict[str, tuple[int, ...]] = {name: found[name] for name in expected}

    def __getitem__(self, name: str) -> np.ndarray | ReversedDataset:
        """An array: of version 7.3 one that reads what is sliced from it, else all in memory."""
        array = self._array(name)
        check_real(array.dtype, f"{self.path}: {name}")
        return array

    def cells(self, name: str, n_nodes: int) -> Int[np.ndarray, "*shape"]:
        """The nodes of a mesh's cells, counted from 0; in the file from 0 or from 1.

        Parameters
        ----------
        name : str
            Of an array of node numbers, of any type.
        n_nodes : int
            Nodes of the mesh.

        Returns
        -------
        numpy.ndarray
            Of int64, in the array's shape.

        Raises
        ------
        ValueError
            If they are not whole numbers that name nodes of the mesh.
        """
        found = self._array(name)[:]
        cells = found.astype(np.int64)
        first = cells.min()
        if (cells != found).any() or first not in (0, 1) or cells.max() - first >= n_nodes:
            raise ValueError(
                f"{self.path}: {name} holds numbers from {found.min()} to {found.max()}, expected "
                f"those of {n_nodes} nodes, whole and counted from 0 or 1"
            )
        return cells - first

    def _array(self, name: str) -> np.ndarray | ReversedDataset:
        if self._hdf5 is not None:
            return ReversedDataset(self._hdf5[name])
        # MATLAB stores whole numbers of type double as small integers; they shall be doubles again.
        return _scipy_io().loadmat(self.path, variable_names=[name], mat_dtype=True)[name]

    def __enter__(self) -> MatlabFile:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; what was sliced from it stays."""
        if self._hdf5 is not None:
            self._hdf5.close()


class ReversedDataset:
    """An HDF5 dataset with its axes in the other order, read where it is sliced.

    Parameters
    ----------
    dataset : h5py.Dataset
        Of an open file.
    """

    def __init__(self, dataset: h5py.Dataset) -> None:
        self._dataset = dataset
        self.shape: tuple[int, ...] = dataset.shape[::-1]
        self.dtype: np.dtype = dataset.dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> np.ndarray:
        """A part, chosen by numbers and slices, one an axis; axes left out are taken whole."""
        index = index if isinstance(index, tuple) else (index,)
        whole = (slice(None),) * (len(self.shape) - len(index))
        return self._dataset[(index + whole)[::-1]].T


def write_matlab(file: str | Path | BinaryIO, arrays: Mapping[str, np.ndarray]) -> None:
    """Write a MATLAB file of version 7.3, compressed, from which single samples read fast.

    Parameters
    ----------
    file : path_like or binary file
        Where to write.
    arrays : mapping of str to numpy.ndarray
        Of float32, float64 or uint8, the samples along the first axis.
    """
    kinds = {"float32": b"single", "float64": b"double", "uint8": b"uint8"}
    with h5py.File(file, "w", userblock_size=512) as hdf5:
        for name, array in arrays.items():
            dataset = hdf5.create_dataset(
                name,
                shape=array.shape[::-1],
                dtype=array.dtype,
                chunks=(*array.shape[:0:-1], 1),
                compression="gzip",
                shuffle=True,
            )
            dataset.attrs["MATLAB_class"] = np.bytes_(kinds[array.dtype.name])
            for k, sample in enumerate(array):
                dataset[..., k] = sample.T
    # MATLAB knows its files by these bytes before HDF5 begins: a text, a version, the byte order.
    header = b"MATLAB 7.3 MAT-file".ljust(116) + bytes(8) + b"\x00\x02IM"
    if isinstance(file, str | Path):
        with open(file, "r+b") as stream:
            stream.write(header)
    else:
        file.seek(0)
        file.write(header)


def _scipy_io():
    try:
        from scipy import io
    except ImportError as error:
        raise ImportError(
            "MATLAB files before version 7.3 need scipy: pip install physicsnemo-cano[examples]"
        ) from error
    return io
