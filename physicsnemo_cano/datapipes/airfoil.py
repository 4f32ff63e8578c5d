# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Transonic flow round aerofoils: mesh points to Mach number (Geo-FNO's NACA set)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import h5py
import numpy as np
from jaxtyping import Float

from physicsnemo_cano.datapipes.files import check_samples, map_arrays, open_hdf5
from physicsnemo_cano.datapipes.reader import Channel, FieldReader, Split, parts_of, source_of

GRID = (221, 51)
_FILES = tuple(f"NACA_Cylinder_{name}.npy" for name in "XYQ")
_MACH = 4  # channel of Q


class MeshReader(FieldReader):
    r"""A scalar at the nodes of structured meshes of one shape.

    Subclasses set ``_x``, ``_y`` and ``_field``, each :math:`(n, n_i, n_j)`. A sample holds
    ``embedding`` :math:`(n_i n_j, 2)`, the nodes; ``fx`` with 0 channels, or the nodes again;
    ``target`` :math:`(n_i n_j, 1)`.

    Parameters
    ----------
    root, split, n_train, n_test, weights
        See :class:`FieldReader`.
    coordinates_as_input : bool, optional, default=False
        Whether ``fx`` holds the coordinates. Normalised node by node they are the displacements
        from the mean mesh, which a far field cannot drown.
    """

    def __init__(
        self,
        root: str | Path | None,
        split: Split = "train",
        n_train: int | None = None,
        n_test: int | None = None,
        weights: bool = False,
        coordinates_as_input: bool = False,
    ) -> None:
        self.coordinates_as_input = coordinates_as_input
        super().__init__(root, split, n_train, n_test, weights)

    def map_folder(
        self, files: Sequence[str], grid: tuple[int, int], channels: int | str
    ) -> Float[np.ndarray, "n C n_i n_j"]:
        r"""Map the coordinates, which are kept, and the fields.

        Parameters
        ----------
        files : sequence of str
            Two of coordinates :math:`(n, n_i, n_j)`, and one of fields :math:`(n, C, n_i, n_j)`.
        grid : tuple of int
            :math:`(n_i, n_j)` of the published files; generated ones may have any.
        channels : int or str
            :math:`C`, or a letter for any.

        Returns
        -------
        numpy.ndarray
            The fields.
        """
        self.source = source_of(self.path)
        published = self.source == "published"
        axes = grid if published else ("i", "j")
        shapes = (("n", *axes), ("n", *axes), ("n", channels, *axes))
        arrays = map_arrays(self.path, dict(zip(files, shapes, strict=True)), self.help)
        self._x, self._y, fields = arrays.values()
        check_samples(len(self._x), 1200 if published else 2, self.path, self.help)
        return fields

    def parts(self) -> tuple[range, range]:
        """Split what has been mapped or opened.

        Returns
        -------
        pair of range
            Indices for training and for testing.
        """
        self.spatial_shape = tuple(self._x.shape[1:])
        return parts_of(min(len(self._x), 1200))

    def load(self, index: int) -> dict[str, np.ndarray]:
        """Read a sample, by its index in the files."""
        points = np.stack([self._x[index], self._y[index]], axis=-1).reshape(-1, 2)
        sample = {"embedding": points, "target": self._field[index].reshape(-1, 1)}
        return sample | ({"fx": points} if self.coordinates_as_input else {})


class Airfoil(MeshReader):
    r"""Samples of the airfoil benchmark, from the published files or a generated one.

    A folder with ``NACA_Cylinder_X.npy`` and ``NACA_Cylinder_Y.npy`` :math:`(n, 221, 51)` and
    ``NACA_Cylinder_Q.npy`` :math:`(n, 5, 221, 51)`, whose channel 4 is the Mach number, is
    published, unless ``generate.py`` has left its mark there; its files are mapped, not loaded.
    An HDF5 file with ``x``, ``y`` and ``mach``, each :math:`(n, n_i, n_j)`, is generated. The
    first 1000 samples are for training, the next 200 for testing; of a generated set with fewer,
    the first 80 % and the rest. Coordinates are in chords.
    """

    coordinates = (Channel("x / c"), Channel("y / c"))
    targets = (Channel("Mach number"),)
    help = (
        f"Expected either a folder with {', '.join(_FILES)} (the published files) or an HDF5 file "
        "with x, y and mach. To make either: python examples/airfoil/generate.py --out data/airfoil"
    )
    _file: h5py.File | None = None

    def open(self) -> tuple[range, range]:
        """Map the folder's files, or open the HDF5 file."""
        if self.path.is_dir():
            self._field = self.map_folder(_FILES, GRID, 5)[:, _MACH]
        else:
            self.source = "generated"
            expected = dict.fromkeys(("x", "y", "mach"), ("n", "i", "j"))
            self._file = open_hdf5(self.path, expected, self.help)
            self._x, self._y, self._field = (self._file[name] for name in expected)
            check_samples(len(self._x), 2, self.path, self.help)
        return self.parts()

    def close(self) -> None:
        """Close the HDF5 file; mapped files need nothing."""
        if self._file is not None:
            self._file.close()
