# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Temperature of a heated square in time: five frames to all that follow (smithers' set)."""

from __future__ import annotations

import numpy as np

from physicsnemo_cano.datapipes.files import check_samples, map_arrays
from physicsnemo_cano.datapipes.reader import Channel, first_80_percent
from physicsnemo_cano.datapipes.trajectories import TrajectoryReader

FOLDER = "smithers/dataset/datasets/unsteady_heat"
_AXIS = 21
_FILES = {
    "params.npy": ("n", 2),
    "snapshots.npy": ("n", "t", _AXIS**2),
    "coords.npy": (_AXIS**2, 2),
}


class UnsteadyHeat(TrajectoryReader):
    r"""Trajectories of the unsteady heat set, from the files of the package ``smithers`` 0.0.1.

    The folder holds ``snapshots.npy`` :math:`(100, 100, 441)`, the temperature of each of 100
    runs at 100 times on a grid of 21 × 21 points; ``params.npy`` :math:`(100, 2)`, two parameters
    of the run; and ``coords.npy`` :math:`(441, 2)`, x fastest. The files are mapped, not loaded.
    The first 80 runs are for training, the last 20 for testing.

    A sample holds ``embedding`` :math:`(441, 2)`, the points, here with y fastest, as structured
    meshes have it; ``fx`` :math:`(441, 7)`, five frames and the two parameters; and ``target``,
    the frames that follow.
    """

    coordinates = (Channel("x"), Channel("y"))
    targets = (Channel("temperature"),)
    statics = (Channel("parameter 1"), Channel("parameter 2"))
    spatial_shape = (_AXIS, _AXIS)
    source = "published"
    help = (
        f"Expected a folder with {', '.join(_FILES)}, such as {FOLDER} of the package "
        'smithers 0.0.1 (pip install "physicsnemo-cano[data]")'
    )

    def open(self) -> tuple[range, range]:
        """Map the files."""
        arrays = map_arrays(self.path, _FILES, self.help)
        self._parameters, self._frames, points = arrays.values()
        self._points = _y_fastest(points.T).T
        check_samples(len(self._frames), 2, self.path, self.help)
        return first_80_percent(len(self._frames))

    def n_frames(self, index: int) -> int:
        """Length of a run, the same for all."""
        return self._frames.shape[1]

    def load(self, index: int, frames: slice) -> dict[str, np.ndarray]:
        """Read frames of a run, by its index in the files."""
        return {
            "embedding": self._points,
            "frames": _y_fastest(self._frames[index, frames])[..., None],
            "statics": self._parameters[index],
        }


def _y_fastest(values: np.ndarray) -> np.ndarray:
    """Fields (…, N) with x fastest, in the order of structured meshes."""
    return values.reshape(-1, _AXIS, _AXIS).swapaxes(1, 2).reshape(values.shape)
