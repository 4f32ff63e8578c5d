# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Unsteady flow in an irregular pipe: velocity to the velocity a step later (NORM's set)."""

from __future__ import annotations

from physicsnemo_cano.datapipes.files import check_samples, locate
from physicsnemo_cano.datapipes.matlab import MatlabFile
from physicsnemo_cano.datapipes.one_mesh import OneMesh
from physicsnemo_cano.datapipes.reader import Channel, parts_of, source_of

_FILE = "Turbulence.mat"
_TRAIN, _TEST = 300, 100


class PipeTurbulence(OneMesh):
    r"""Samples of the pipe turbulence benchmark, from the published file or a generated one.

    A folder with ``Turbulence.mat``, in it ``Input`` and ``Output`` :math:`(n, N)`, the velocity
    at a time and a step later, at the nodes of one mesh of triangles, ``nodes`` :math:`(N, 2)`
    and ``elements`` :math:`(M, 3)` or :math:`(3, M)`, is published, with 400 samples on 2673
    nodes, unless ``generate.py`` has left its mark there. Of 400 samples the first 300 are for
    training, the last 100 for testing; of a generated set of another size it is the first 80 % and
    the rest. The file is read into memory.

    A sample holds ``embedding`` :math:`(N, 2)`, the nodes; ``fx`` :math:`(N, 1)` and ``target``
    :math:`(N, 1)`, the velocity now and a step later; and with ``data.weights=true`` ``weights``
    :math:`(N,)`, the integrals of the nodes' basis functions.
    """

    coordinates = (Channel("x"), Channel("y"))
    targets = (Channel("velocity"),)
    help = (
        f"Expected a folder with {_FILE} (the published file) or one that "
        "python examples/pipe_turbulence/generate.py --out data/pipe_turbulence has made"
    )

    def open(self) -> tuple[range, range]:
        """Read the file."""
        self.source = source_of(self.path)
        fields = (_TRAIN + _TEST, 2673) if self.source == "published" else ("n", "N")
        expected = {
            "Input": fields,
            "Output": fields,
            "nodes": (fields[1], 2),
            "elements": ("M", "vertices"),
        }
        file = locate(self.path, "pipe turbulence", self.help, _FILE)
        with MatlabFile(file, expected, self.help) as matlab:
            n, n_nodes = matlab.shapes["Input"]
            check_samples(n, 2, file, self.help)
            cells = matlab.cells("elements", n_nodes)
            if 3 not in cells.shape:
                raise ValueError(
                    f"{file} holds elements {cells.shape}, expected (M, 3) or (3, M). {self.help}"
                )
            cells = cells if cells.shape[1] == 3 else cells.T
            self.hold(*(matlab[name][:] for name in ("Input", "Output", "nodes")), cells)
        return parts_of(n, _TRAIN, _TEST)
