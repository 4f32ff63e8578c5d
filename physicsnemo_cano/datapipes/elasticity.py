"""Stress in a hyperelastic cell with a random void: points to stress (Geo-FNO's set)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from physicsnemo_cano.datapipes.benchmark import (
    BenchmarkReader,
    Channel,
    Split,
    check_shapes,
    choose,
    first_80_percent,
    locate,
    map_arrays,
    source_of,
)

_FILES = ("Random_UnitCell_XY_10.npy", "Random_UnitCell_sigma_10.npy")
_POINTS = 972
_HELP = (
    f"Expected a folder with {' and '.join(_FILES)} (the published files). "
    "To make it: python examples/elasticity/generate.py --out data/elasticity"
)


class Elasticity(BenchmarkReader):
    r"""Samples of the elasticity benchmark, from the published files or generated ones.

    The folder holds ``Random_UnitCell_XY_10.npy`` :math:`(972, 2, n)` and
    ``Random_UnitCell_sigma_10.npy`` :math:`(972, n)`, samples last; it is published unless
    ``generate.py`` has left its mark there. The files are mapped, not loaded. The first 1000
    samples are for training, the last 200 for testing; of a generated set with fewer than 1200,
    the first 80 % and the rest.

    A sample holds ``embedding`` :math:`(972, 2)`, the undeformed positions in cell sides;
    ``fx`` with 0 channels; ``target`` :math:`(972, 1)`, the stress.

    Parameters
    ----------
    root : str, Path or None
        The folder; ``None`` only earns the message that says what is needed.
    split : {"train", "test"}
        Which part.
    n_train, n_test : int, optional
        Take fewer samples; all by default.

    Raises
    ------
    FileNotFoundError
        If there is nothing at ``root``, or a file of the folder is missing.
    ValueError
        If a file is damaged or of another shape than expected, or has too few samples.
    """

    coordinates = (Channel("x"), Channel("y"))
    targets = (Channel("stress", "Pa"),)

    def __init__(
        self,
        root: str | Path | None,
        split: Split = "train",
        n_train: int | None = None,
        n_test: int | None = None,
    ) -> None:
        super().__init__()
        self.path = locate(root, "elasticity", _HELP)
        self.source = source_of(self.path)
        self._points, self._stress = map_arrays(self.path, _FILES, _HELP)
        n, least = self._points.shape[-1], 1200 if self.source == "published" else 2
        arrays = dict(zip(_FILES, (self._points, self._stress), strict=True))
        check_shapes(self.path, arrays, ((_POINTS, 2, "n"), (_POINTS, "n")), n, least, _HELP)
        parts = (range(1000), range(n - 200, n)) if n >= 1200 else first_80_percent(n)
        self._indices = choose(split, n_train, n_test, parts)

    def __len__(self) -> int:
        return len(self._indices)

    def _load_sample(self, index: int) -> dict[str, torch.Tensor]:
        i = self._indices[index]
        points = torch.from_numpy(self._points[..., i].astype(np.float32))
        stress = torch.from_numpy(self._stress[:, i].astype(np.float32))
        return {"embedding": points, "fx": points[:, :0], "target": stress[:, None]}
