# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""The base of readers whose samples share one unstructured mesh, as NORM's sets do."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Int

from physicsnemo_cano.datapipes.quadrature import node_weights
from physicsnemo_cano.datapipes.reader import FieldReader


class OneMesh(FieldReader):
    r"""A reader of fields on one mesh, which its :meth:`open` gives to :meth:`hold`.

    Attributes
    ----------
    cells : numpy.ndarray
        The cells' nodes, :math:`(M, 3)` or :math:`(M, 4)`, counted from 0.
    """

    def hold(
        self,
        inputs: Float[np.ndarray, "n N"],
        outputs: Float[np.ndarray, "n N"],
        points: Float[np.ndarray, "N d"],
        cells: Int[np.ndarray, "M vertices"],
    ) -> None:
        """Keep all samples in memory.

        Parameters
        ----------
        inputs, outputs : numpy.ndarray
            (n, N) at the nodes.
        points : numpy.ndarray
            (N, d) the nodes.
        cells : numpy.ndarray
            (M, vertices) their numbers, counted from 0.
        """
        self._inputs, self._outputs, self._embedding = (
            torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))
            for array in (inputs, outputs, points)
        )
        self.cells = cells
        self._weights = node_weights(self._embedding, cells=torch.from_numpy(cells))

    def load(self, index: int) -> dict[str, torch.Tensor]:
        """A sample, by its index in the file."""
        return {
            "embedding": self._embedding,
            "fx": self._inputs[index, :, None],
            "target": self._outputs[index, :, None],
            "weights": self._weights,
        }
