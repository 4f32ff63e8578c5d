"""Darcy flow: permeability to pressure (FNO's set, and neuraloperator's small one)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from physicsnemo_cano.datapipes.benchmark import (
    BenchmarkReader,
    Channel,
    Split,
    choose,
    locate,
    source_of,
)
from physicsnemo_cano.datapipes.matlab import MatlabFile
from physicsnemo_cano.datapipes.quadrature import node_weights

_FILES = {
    "train": "piececonst_r421_N1024_smooth1.mat",
    "test": "piececonst_r421_N1024_smooth2.mat",
}
_SIZES = {"train": 1000, "test": 200}
_NODES = 421
_HELP = (
    f"Expected either a folder with {' and '.join(_FILES.values())} (the published files), one "
    "with darcy_train_<n>.pt and darcy_test_<n>.pt (neuraloperator's), or one file "
    "darcy_test_<n>.pt to test on. To make the former: "
    "python examples/darcy/generate.py --out data/darcy"
)


class Darcy(BenchmarkReader):
    r"""Samples of the Darcy benchmark, from the published files, generated ones or small tensors.

    A folder with ``piececonst_r421_N1024_smooth1.mat`` (for training) and ``…_smooth2.mat`` (for
    testing), in each of them ``coeff`` and ``sol`` :math:`(n, 421, 421)`, is published, unless
    ``generate.py`` has left its mark there; then the grid may have any size. Of every axis each
    ``stride``-th node is kept; the first 1000 samples are for training, the first 200 for testing.

    A folder with ``darcy_train_<n>.pt`` is neuraloperator's, with tensors ``x`` and ``y``
    :math:`(\cdot, n, n)` on the points :math:`i / n` of an axis. It is tested on
    ``darcy_test_<n>.pt``, of the same grid; the path of another such file tests on that.

    A sample holds ``embedding`` :math:`(N, 2)`, coordinates on the unit square; ``fx``
    :math:`(N, 1)`, the permeability; ``target`` :math:`(N, 1)`, the pressure; with
    ``weights=True`` also ``weights`` :math:`(N,)`, areas.

    Parameters
    ----------
    root : str, Path or None
        The folder or the file to test on; ``None`` only earns the message that says what is
        needed.
    split : {"train", "test"}
        Which part.
    n_train, n_test : int, optional
        Take fewer samples; all by default.
    stride : int, optional, default=5
        Nodes from one that is kept to the next, for MATLAB files; a divisor of the number of
        cells, so that both boundaries stay.
    weights : bool, optional, default=False
        Whether samples carry quadrature weights.

    Raises
    ------
    FileNotFoundError
        If there is nothing at ``root``, or a file of the folder is missing.
    ValueError
        If a file has another key or shape than expected, or too few samples.
    """

    coordinates = (Channel("x"), Channel("y"))
    targets = (Channel("pressure"),)

    def __init__(
        self,
        root: str | Path | None,
        split: Split = "train",
        n_train: int | None = None,
        n_test: int | None = None,
        stride: int = 5,
        weights: bool = False,
    ) -> None:
        super().__init__()
        self.path = locate(root, "Darcy", _HELP)
        self.source = source_of(self.path)
        if self.path.is_file() or any(self.path.glob("darcy_train_*.pt")):
            a, u = _read_tensors(self.path, split)
            x = torch.arange(a.shape[1]) / a.shape[1]
        else:
            a, u = _read_matlab(self.path, split, stride, any_size=self.source == "generated")
            x = torch.linspace(0, 1, a.shape[1])
        points = torch.stack(torch.meshgrid(x, x, indexing="ij"), -1)  # (s, s, 2)
        self.spatial_shape = tuple(points.shape[:2])
        n_first, n_second = (min(len(a), size) for size in _SIZES.values())
        self._indices = choose(split, n_train, n_test, (range(n_first), range(n_second)))
        self._permeability, self._pressure = a.flatten(1), u.flatten(1)
        self._embedding = points.flatten(0, 1)
        self._weights = node_weights(points, structured=True).flatten() if weights else None

    def __len__(self) -> int:
        return len(self._indices)

    def _load_sample(self, index: int) -> dict[str, torch.Tensor]:
        i = self._indices[index]
        sample = {
            "embedding": self._embedding,
            "fx": self._permeability[i].unsqueeze(-1),
            "target": self._pressure[i].unsqueeze(-1),
        }
        if self._weights is not None:
            sample["weights"] = self._weights
        return sample


def _read_matlab(
    folder: Path, split: Split, stride: int, any_size: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Permeability and pressure of a split, (n, s, s) each, at every ``stride``-th node."""
    missing = [name for name in _FILES.values() if not (folder / name).is_file()]
    if missing:
        raise FileNotFoundError(f"{folder} lacks {', '.join(missing)}. {_HELP}")
    path, most = folder / _FILES[split], _SIZES[split]
    shape = ("n", "s", "s") if any_size else ("n", _NODES, _NODES)
    with MatlabFile(path, {"coeff": shape, "sol": shape}, _HELP) as file:
        n, nodes, _ = file.shapes["sol"]
        if n < most and not any_size:
            raise ValueError(f"{path} has {n} samples, expected at least {most}. {_HELP}")
        if stride < 1 or (nodes - 1) % stride:
            raise ValueError(
                f"data.stride={stride}: {path} has {nodes - 1} cells an axis, choose a divisor"
            )
        # In a file of version 7.3 samples may lie interleaved, so it is read once, here.
        return tuple(
            torch.from_numpy(file[name][:most, ::stride, ::stride].astype(np.float32))
            for name in ("coeff", "sol")
        )


def _read_tensors(path: Path, split: Split) -> tuple[torch.Tensor, torch.Tensor]:
    """Permeability and pressure of a split, (n, s, s) each, from neuraloperator's files."""
    if path.is_file() and split == "train":
        raise ValueError(f"{path} is to test on; to train give its folder. {_HELP}")
    if path.is_dir():
        found = sorted(path.glob("darcy_train_*.pt"))
        if len(found) != 1:
            names = ", ".join(file.name for file in found)
            raise ValueError(f"{path} holds {names}: which to train on? Keep one. {_HELP}")
        path = found[0] if split == "train" else path / found[0].name.replace("train", "test")
    if not path.is_file():
        raise FileNotFoundError(f"No file {path}. {_HELP}")
    try:
        data = torch.load(path, weights_only=True)
    except Exception as error:  # torch has many for files of another format
        raise ValueError(f"{path} is no file of tensors ({error}). {_HELP}") from error
    items = data.items() if isinstance(data, dict) else ()
    shapes = {name: tuple(getattr(item, "shape", ())) for name, item in items}
    shape = shapes.get("x", ())
    if len(shape) != 3 or shape[1] != shape[2] or shapes.get("y") != shape:
        raise ValueError(f"{path} holds {shapes}, expected x and y of one shape (n, s, s). {_HELP}")
    return data["x"].float(), data["y"].float()
