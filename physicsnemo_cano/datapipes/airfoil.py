"""Transonic flow round aerofoils: mesh points to Mach number (Geo-FNO's NACA set)."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import torch

from physicsnemo_cano.datapipes.benchmark import (
    BenchmarkReader,
    Channel,
    Split,
    check_shapes,
    choose,
    locate,
    map_arrays,
    mesh_sample,
    parts_of,
    source_of,
)

_FILES = tuple(f"NACA_Cylinder_{name}.npy" for name in "XYQ")
_GRID = (221, 51)
_MACH = 4  # channel of Q
_HELP = (
    f"Expected either a folder with {', '.join(_FILES)} (the published files) or an HDF5 file "
    "with x, y and mach. To make either: python examples/airfoil/generate.py --out data/airfoil"
)


class Airfoil(BenchmarkReader):
    r"""Samples of the airfoil benchmark, from the published files or a generated one.

    A folder with ``NACA_Cylinder_X.npy`` and ``NACA_Cylinder_Y.npy`` :math:`(n, 221, 51)` and
    ``NACA_Cylinder_Q.npy`` :math:`(n, 5, 221, 51)`, whose channel 4 is the Mach number, is
    published, unless ``generate.py`` has left its mark there; its files are mapped, not loaded.
    An HDF5 file with ``x``, ``y`` and ``mach``, each :math:`(n, n_i, n_j)`, is generated. The
    first 1000 samples are for training, the next 200 for testing; of a generated set with fewer,
    the first 80 % and the rest.

    A sample holds ``embedding`` :math:`(n_i n_j, 2)`, coordinates in chords; ``fx`` with 0
    channels, or the coordinates again; ``target`` :math:`(n_i n_j, 1)`, the Mach number; with
    ``weights=True`` also ``weights`` :math:`(n_i n_j,)`, areas in square chords.

    Parameters
    ----------
    root : str, Path or None
        The folder or the HDF5 file; ``None`` only earns the message that says what is needed.
    split : {"train", "test"}
        Which part.
    n_train, n_test : int, optional
        Take fewer samples; all by default.
    weights : bool, optional, default=False
        Whether samples carry quadrature weights.
    coordinates_as_input : bool, optional, default=False
        Whether ``fx`` holds the coordinates. Normalised node by node they are the displacements
        from the mean mesh, which a far field of 60 chords cannot drown.

    Raises
    ------
    FileNotFoundError
        If there is nothing at ``root``, or a file of the folder is missing.
    ValueError
        If a file has another key or shape than expected, or too few samples.
    """

    coordinates = (Channel("x / c"), Channel("y / c"))
    targets = (Channel("Mach number"),)

    def __init__(
        self,
        root: str | Path | None,
        split: Split = "train",
        n_train: int | None = None,
        n_test: int | None = None,
        weights: bool = False,
        coordinates_as_input: bool = False,
    ) -> None:
        super().__init__()
        self.path = locate(root, "airfoil", _HELP)
        self._file: h5py.File | None = None
        self.weights = weights
        self.coordinates_as_input = coordinates_as_input
        if self.path.is_dir():
            self.source = source_of(self.path)
            self._x, self._y, self._mach = self._open_folder()
        else:
            self.source = "generated"
            self._x, self._y, self._mach = self._open_hdf5()
        self.spatial_shape = tuple(self._x.shape[1:])
        self._indices = choose(split, n_train, n_test, parts_of(min(len(self._x), 1200)))

    def _open_folder(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        x, y, q = map_arrays(self.path, _FILES, _HELP)
        published = self.source == "published"
        grid = _GRID if published or x.ndim != 3 else x.shape[1:]
        arrays = dict(zip(_FILES, (x, y, q), strict=True))
        expected = (("n", *grid), ("n", *grid), ("n", 5, *grid))
        check_shapes(self.path, arrays, expected, len(x), 1200 if published else 2, _HELP)
        return x, y, q[:, _MACH]

    def _open_hdf5(self) -> tuple[h5py.Dataset, h5py.Dataset, h5py.Dataset]:
        try:
            self._file = h5py.File(self.path, "r")
        except OSError as error:
            raise ValueError(f"{self.path} is no HDF5 file ({error}). {_HELP}") from error
        found = {name: getattr(item, "shape", "a group") for name, item in self._file.items()}
        shapes = [found.get(name) for name in ("x", "y", "mach")]
        if len(set(shapes)) != 1 or shapes[0] is None or len(shapes[0]) != 3 or shapes[0][0] < 2:
            raise ValueError(
                f"{self.path} holds {found}, expected x, y and mach of one shape (n >= 2, i, j). "
                f"{_HELP}"
            )
        return self._file["x"], self._file["y"], self._file["mach"]

    def __len__(self) -> int:
        return len(self._indices)

    def _load_sample(self, index: int) -> dict[str, torch.Tensor]:
        i = self._indices[index]
        return mesh_sample(
            self._x[i], self._y[i], self._mach[i], self.coordinates_as_input, self.weights
        )

    def close(self) -> None:
        """Close the HDF5 file; mapped files need nothing."""
        if self._file is not None:
            self._file.close()
