# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""A composite part in space: temperature to deformation (NORM's set)."""

from __future__ import annotations

from physicsnemo_cano.datapipes.files import check_samples, locate
from physicsnemo_cano.datapipes.matlab import MatlabFile
from physicsnemo_cano.datapipes.one_mesh import OneMesh
from physicsnemo_cano.datapipes.reader import Channel, first_80_percent, source_of

_FILE, _MESH = "Composites.mat", "Composites_LBO_basis.mat"
_TRAIN, _TEST = 400, 100


class Composite(OneMesh):
    r"""Samples of the composite benchmark, from the published files or generated ones.

    A folder with ``Composites.mat``, in it ``T_field`` and ``D_field`` :math:`(n, N)`, temperature
    and deformation at the nodes of one mesh in space, and there or in a folder below
    ``Composites_LBO_basis.mat``, in it the mesh: ``Points`` :math:`(N, 3)` and ``Faces``
    :math:`(M, 4)`, tetrahedra, or :math:`(M, 3)`, triangles. It is published, with 8232 nodes,
    unless ``generate.py`` has left its mark there. The first 400 samples are for training, the
    last 100 for testing; of a generated set with fewer than 500, the first 80 % and the rest. The
    files are read into memory.

    A sample holds ``embedding`` :math:`(N, 3)`, the nodes; ``fx`` :math:`(N, 1)`, the temperature;
    ``target`` :math:`(N, 1)`, the deformation; and with ``data.weights=true`` ``weights``
    :math:`(N,)`, the integrals of the nodes' basis functions.
    """

    coordinates = (Channel("x", "m"), Channel("y", "m"), Channel("z", "m"))
    targets = (Channel("deformation", "mm"),)
    help = (
        f"Expected a folder with {_FILE} and {_MESH} (the published files) or one that "
        "python examples/composite/generate.py --out data/composite has made"
    )

    def open(self) -> tuple[range, range]:
        """Read the files."""
        self.source = source_of(self.path)
        published = self.source == "published"
        fields = ("n", 8232 if published else "N")
        expected = {"T_field": fields, "D_field": fields}
        file = locate(self.path, "composite", self.help, _FILE)
        with MatlabFile(file, expected, self.help) as matlab:
            n, n_nodes = matlab.shapes["T_field"]
            check_samples(n, _TRAIN + _TEST if published else 2, file, self.help)
            arrays = [matlab[name][:] for name in expected]
        file = locate(self.path, "composite", self.help, f"**/{_MESH}")
        expected = {"Points": (n_nodes, 3), "Faces": ("M", "vertices")}
        with MatlabFile(file, expected, self.help) as matlab:
            self.hold(*arrays, matlab["Points"][:], matlab.cells("Faces", n_nodes))
        if n < _TRAIN + _TEST:
            return first_80_percent(n)
        return range(_TRAIN), range(n - _TEST, n)
