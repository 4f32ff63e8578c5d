"""What the readers of all benchmarks have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import torch
from physicsnemo.datapipes import Reader

from physicsnemo_cano.datapipes.quadrature import node_weights

Split = Literal["train", "test"]
Source = Literal["published", "generated"]

# generate.py writes the published layout: parts/ first, provenance.json before it removes parts/.
_MARKS = ("parts", "provenance.json")


class Channel(NamedTuple):
    """Name and unit of one channel, for axes and files."""

    name: str
    unit: str = "-"

    def __str__(self) -> str:
        return self.name if self.unit == "-" else f"{self.name} [{self.unit}]"


class BenchmarkReader(Reader):
    r"""A reader whose samples the recipe understands.

    A sample holds ``embedding`` :math:`(N, d_x)`, the coordinates; ``fx`` :math:`(N, d_a)`, the
    input function, with 0 channels where there is none; ``target`` :math:`(N, d_u)`; and, where
    they apply, ``mask`` and ``weights`` :math:`(N,)`. All are raw, in physical units. Where
    ``target`` is a series in time, it holds its frames one after the other,
    :math:`(N, T d_u)`; see ``series``.

    Attributes
    ----------
    spatial_shape : tuple of int or None
        Shape of the structured mesh whose points are flattened (last axis fastest) into
        :math:`N`; ``None`` for clouds.
    source : {"published", "generated"}
        Where the data come from; it goes with every number.
    path : Path
        What was read.
    coordinates, targets : tuple of Channel
        Names and units of the channels of ``embedding`` and ``target``, of a series those of one
        frame.
    series : {None, "rollout", "instants"}
        ``None`` where ``target`` is one field. ``rollout`` where it holds the frames that follow
        those in ``fx`` :math:`(N, F d_u)`. ``instants`` where it holds those at the sample's
        ``times`` :math:`(T,)`.
    """

    series: Literal["rollout", "instants"] | None = None
    spatial_shape: tuple[int, ...] | None = None
    source: Source
    path: Path
    coordinates: tuple[Channel, ...]
    targets: tuple[Channel, ...]

    def __init__(self) -> None:
        # Pinned memory lets the copy to a GPU run beside the computation.
        super().__init__(pin_memory=torch.cuda.is_available())


def choose(
    split: Split,
    n_train: int | None,
    n_test: int | None,
    available: tuple[Sequence[int], Sequence[int]],
) -> Sequence[int]:
    """Samples of a split: the first ``n_train`` (``n_test``) of those set aside for it.

    The test samples stay the same however few are trained on, so errors remain comparable.

    Parameters
    ----------
    split : {"train", "test"}
        Which part.
    n_train, n_test : int or None
        How many samples; ``None`` takes all.
    available : pair of sequences of int
        Indices in the file set aside for training and for testing.

    Returns
    -------
    sequence of int
        Indices in the file.

    Raises
    ------
    ValueError
        If the split is unknown, or more samples are asked for than there are.
    """
    if split not in ("train", "test"):
        raise ValueError(f"split must be 'train' or 'test', got {split!r}")
    indices, wanted = (available[0], n_train) if split == "train" else (available[1], n_test)
    if wanted is None:
        return indices
    if not 1 <= wanted <= len(indices):
        raise ValueError(f"data.n_{split}={wanted}: choose from 1 to {len(indices)}")
    return indices[:wanted]


def first_80_percent(n: int) -> tuple[range, range]:
    """Indices for training and for testing of a generated set, which may have any size."""
    n_first = round(0.8 * n)
    return range(n_first), range(n_first, n)


def parts_of(n: int) -> tuple[range, range]:
    """Indices for training and for testing: of 1200 samples 1000 and 200, else 80 % and 20 %."""
    return (range(1000), range(1000, 1200)) if n == 1200 else first_80_percent(n)


def locate(root: str | Path | None, what: str, hint: str) -> Path:
    """The path of data that exist.

    Parameters
    ----------
    root : str, Path or None
        Of the configuration's ``data.root``.
    what, hint : str
        Name of the data, and what is expected and how to get it, for the message.

    Returns
    -------
    Path

    Raises
    ------
    FileNotFoundError
        If nothing is given, or there is nothing.
    """
    if root is None:
        raise FileNotFoundError(f"data.root is not given. {hint}")
    if not Path(root).exists():
        raise FileNotFoundError(f"No {what} data at {root}. {hint}")
    return Path(root)


def only_file(root: str | Path | None, pattern: str, hint: str) -> Path:
    """The one file of a folder whose name fits a pattern.

    Parameters
    ----------
    root : str, Path or None
        Of the configuration's ``data.root``.
    pattern, hint : str
        As for ``Path.glob``, and what is expected and how to get it, for the messages.

    Returns
    -------
    Path

    Raises
    ------
    FileNotFoundError
        If nothing is given, or there is no such file.
    ValueError
        If there are several.
    """
    if root is None:
        raise FileNotFoundError(f"data.root is not given. {hint}")
    found = sorted(Path(root).glob(pattern))
    if not found:
        raise FileNotFoundError(f"No {pattern} in {root}. {hint}")
    if len(found) > 1:
        raise ValueError(f"{root} holds {', '.join(file.name for file in found)}: keep one")
    return found[0]


def source_of(folder: Path) -> Source:
    """Whether a folder's files are published ones, or ``generate.py`` has left its mark there."""
    return "generated" if any((folder / name).exists() for name in _MARKS) else "published"


def map_arrays(folder: Path, names: Sequence[str], hint: str) -> list[np.ndarray]:
    """Map the ``.npy`` files of a folder; nothing is loaded.

    Parameters
    ----------
    folder : Path
        Where they are.
    names : sequence of str
        Of the files.
    hint : str
        What is expected and how to get it, for the messages.

    Returns
    -------
    list of numpy.ndarray
        Read-only, of a floating dtype.

    Raises
    ------
    FileNotFoundError
        If files are missing.
    ValueError
        If a file is no ``.npy`` file, is cut off, or holds something else than real numbers.
    """
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise FileNotFoundError(f"{folder} lacks {', '.join(missing)}. {hint}")
    arrays = []
    for name in names:
        try:
            arrays.append(np.load(folder / name, mmap_mode="r"))
        except (ValueError, OSError, EOFError) as error:
            raise ValueError(f"{folder / name} is no whole .npy file ({error}). {hint}") from error
        if not np.issubdtype(arrays[-1].dtype, np.floating):
            raise ValueError(
                f"{folder / name} holds {arrays[-1].dtype}, expected float32 or float64. {hint}"
            )
    return arrays


def check_shapes(
    folder: Path,
    arrays: Mapping[str, np.ndarray],
    expected: Sequence[tuple[int | str, ...]],
    n: int,
    least: int,
    hint: str,
) -> None:
    """Raise a ``ValueError`` unless files hold ``n`` samples, of the expected shapes.

    Parameters
    ----------
    folder : Path
        Where they are.
    arrays : mapping of str to numpy.ndarray
        What each file holds.
    expected : sequence of tuple
        The shape of each, in which ``"n"`` stands for the number of samples.
    n, least : int
        Samples there are, and there must be.
    hint : str
        What is expected and how to get it, for the message.
    """
    for (name, array), shape in zip(arrays.items(), expected, strict=True):
        if array.shape != tuple(n if size == "n" else size for size in shape) or n < least:
            raise ValueError(
                f"{folder / name} has shape {array.shape}, expected {shape} with the same "
                f"n >= {least} in all files. {hint}"
            )


def mesh_sample(
    x: np.ndarray,
    y: np.ndarray,
    field: np.ndarray,
    coordinates_as_input: bool,
    weights: bool,
) -> dict[str, torch.Tensor]:
    """A sample on a structured mesh: its nodes, a scalar there and, if asked for, areas.

    Parameters
    ----------
    x, y, field : numpy.ndarray
        Coordinates and scalar of shape :math:`(n_i, n_j)`.
    coordinates_as_input : bool
        Whether ``fx`` holds the coordinates; else it has 0 channels.
    weights : bool
        Whether to add quadrature weights.

    Returns
    -------
    dict of str to torch.Tensor
        See :class:`BenchmarkReader`; of float32.
    """
    points = torch.from_numpy(np.stack([x, y], axis=-1).astype(np.float32))  # (n_i, n_j, 2)
    embedding = points.flatten(0, 1)
    sample = {
        "embedding": embedding,
        "fx": embedding if coordinates_as_input else embedding[:, :0],
        "target": torch.from_numpy(np.array(field, dtype=np.float32)).reshape(-1, 1),
    }
    if weights:
        sample["weights"] = node_weights(points, structured=True).flatten()
    return sample
