# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Displacement of a block of nine materials under loads: parameters to field (smithers' set)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from physicsnemo_cano.datapipes.files import check_samples, map_arrays
from physicsnemo_cano.datapipes.quadrature import node_weights
from physicsnemo_cano.datapipes.reader import Channel, FieldReader, Split

FOLDER = "smithers/dataset/datasets/elastic_block"
_N_NODES, _N_MODULI, _N_TEST = 1346, 8, 100
_FILES = {
    "params.npy": ("n", 11),
    "snapshots.npy": ("n", 2 * _N_NODES),
    "coords.npy": (2, _N_NODES),
    "triangles.npy": ("m", 3),
}


class ElasticBlock(FieldReader):
    r"""Samples of the elastic block, from the files of the package ``smithers`` 0.0.1.

    The folder holds ``params.npy`` :math:`(500, 11)`: Young's moduli of eight of the nine squares
    of the block, row by row from the lower left, and three loads on thirds of its right edge;
    ``snapshots.npy`` :math:`(500, 2692)`: displacements, first all along x, then all along y;
    ``coords.npy`` :math:`(2, 1346)`; and ``triangles.npy`` :math:`(2560, 3)`, counted from 0. The
    files are mapped, not loaded. The last 100 samples are for testing.

    A sample holds ``embedding`` :math:`(1346, 2)`, the nodes; ``fx`` :math:`(1, 11)`, the
    parameters; ``target`` :math:`(1346, 2)`, the displacement; and, if asked for, ``weights``
    :math:`(1346,)`, a third of the areas of the triangles round a node.

    Parameters
    ----------
    root, split, n_train, n_test, weights
        See :class:`FieldReader`.
    log_moduli : bool, optional, default=True
        Whether ``fx`` has the moduli's natural logarithms in their place.

    Attributes
    ----------
    triangles : numpy.ndarray
        Nodes of each triangle, :math:`(2560, 3)`; some turn left, some right.
    """

    coordinates = (Channel("x"), Channel("y"))
    targets = (Channel("displacement x"), Channel("displacement y"))
    source = "published"
    help = (
        f"Expected a folder with {', '.join(_FILES)}, such as {FOLDER} of the package "
        'smithers 0.0.1 (pip install "physicsnemo-cano[data]")'
    )

    def __init__(
        self,
        root: str | Path | None,
        split: Split = "train",
        n_train: int | None = None,
        n_test: int | None = None,
        weights: bool = False,
        log_moduli: bool = True,
    ) -> None:
        self.log_moduli = log_moduli
        super().__init__(root, split, n_train, n_test, weights)

    def open(self) -> tuple[range, range]:
        """Map the files."""
        arrays = map_arrays(self.path, _FILES, self.help, integers=["triangles.npy"])
        self._parameters, self._fields, points, triangles = arrays.values()
        self._points = torch.from_numpy(np.array(points.T))
        self.triangles = triangles.astype(np.int64)
        self._weights = node_weights(self._points, cells=torch.from_numpy(self.triangles))
        n = len(self._fields)
        check_samples(n, _N_TEST + 1, self.path, self.help)
        return range(n - _N_TEST), range(n - _N_TEST, n)

    def load(self, index: int) -> dict[str, np.ndarray | torch.Tensor]:
        """Read a sample, by its index in the files."""
        parameters = np.array(self._parameters[index])
        if self.log_moduli:
            parameters[:_N_MODULI] = np.log(parameters[:_N_MODULI])
        return {
            "embedding": self._points,
            "fx": parameters[None],
            "target": self._fields[index].reshape(2, -1).T,
            "weights": self._weights,
        }
