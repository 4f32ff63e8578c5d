"""Flow through bent pipes: mesh points to horizontal velocity (Geo-FNO's set)."""

from __future__ import annotations

from pathlib import Path

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

_FILES = tuple(f"Pipe_{name}.npy" for name in "XYQ")
_GRID = (129, 129)
_HORIZONTAL = 0  # channel of Q
_HELP = (
    f"Expected a folder with {', '.join(_FILES)} (the published files). "
    "To make it: python examples/pipe/generate.py --out data/pipe"
)


class Pipe(BenchmarkReader):
    r"""Samples of the pipe benchmark, from the published files or generated ones.

    The folder holds ``Pipe_X.npy`` and ``Pipe_Y.npy`` :math:`(n, 129, 129)` and ``Pipe_Q.npy``
    :math:`(n, C, 129, 129)`, whose channel 0 is the horizontal velocity. It is published unless
    ``generate.py`` has left its mark there; then the mesh may be another. The files are mapped,
    not loaded. The first 1000 samples are for training, the next 200 for testing; of a generated
    set with fewer, the first 80 % and the rest.

    A sample holds ``embedding`` :math:`(n_i n_j, 2)`, coordinates in pipe widths; ``fx`` with 0
    channels, or the coordinates again; ``target`` :math:`(n_i n_j, 1)`, the velocity; with
    ``weights=True`` also ``weights`` :math:`(n_i n_j,)`, areas in square widths.

    Parameters
    ----------
    root : str, Path or None
        The folder; ``None`` only earns the message that says what is needed.
    split : {"train", "test"}
        Which part.
    n_train, n_test : int, optional
        Take fewer samples; all by default.
    weights : bool, optional, default=False
        Whether samples carry quadrature weights.
    coordinates_as_input : bool, optional, default=False
        Whether ``fx`` holds the coordinates. Normalised node by node they are the displacements
        from the mean mesh.

    Raises
    ------
    FileNotFoundError
        If there is nothing at ``root``, or a file of the folder is missing.
    ValueError
        If a file is damaged or of another shape than expected, or has too few samples.
    """

    coordinates = (Channel("x / D"), Channel("y / D"))
    targets = (Channel("horizontal velocity"),)

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
        self.path = locate(root, "pipe", _HELP)
        self.source = source_of(self.path)
        self.weights = weights
        self.coordinates_as_input = coordinates_as_input
        self._x, self._y, q = map_arrays(self.path, _FILES, _HELP)
        published = self.source == "published"
        grid = _GRID if published or self._x.ndim != 3 else self._x.shape[1:]
        arrays = dict(zip(_FILES, (self._x, self._y, q), strict=True))
        channels = max(q.shape[1], 1) if q.ndim == 4 else "C >= 1"
        expected = (("n", *grid), ("n", *grid), ("n", channels, *grid))
        check_shapes(self.path, arrays, expected, len(self._x), 1200 if published else 2, _HELP)
        self._velocity = q[:, _HORIZONTAL]
        self.spatial_shape = tuple(grid)
        self._indices = choose(split, n_train, n_test, parts_of(min(len(self._x), 1200)))

    def __len__(self) -> int:
        return len(self._indices)

    def _load_sample(self, index: int) -> dict[str, torch.Tensor]:
        i = self._indices[index]
        return mesh_sample(
            self._x[i], self._y[i], self._velocity[i], self.coordinates_as_input, self.weights
        )
