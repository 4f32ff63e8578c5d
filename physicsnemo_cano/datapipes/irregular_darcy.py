# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Darcy flow in an irregular domain: permeability to pressure (NORM's set)."""

from __future__ import annotations

from physicsnemo_cano.datapipes.files import check_samples, locate
from physicsnemo_cano.datapipes.matlab import MatlabFile
from physicsnemo_cano.datapipes.one_mesh import OneMesh
from physicsnemo_cano.datapipes.reader import Channel, parts_of, source_of

_FILE = "Darcy.mat"


class IrregularDarcy(OneMesh):
    r"""Samples of the irregular Darcy benchmark, from the published file or a generated one.

    A folder with ``Darcy.mat``, in it ``c_field`` and ``u_field`` :math:`(n, N)`, permeability and
    pressure at the nodes of one mesh of triangles, ``MeshNodes`` :math:`(2, N)` and
    ``MeshElements`` :math:`(3, M)`, is published, unless ``generate.py`` has left its mark there.
    The published file has 1200 samples on 2290 nodes; its first 1000 are for training, the last
    200 for testing. Of a generated set of another size it is the first 80 % and the rest. The
    file is read into memory.

    A sample holds ``embedding`` :math:`(N, 2)`, the nodes; ``fx`` :math:`(N, 1)`, the
    permeability; ``target`` :math:`(N, 1)`, the pressure; and with ``data.weights=true``
    ``weights`` :math:`(N,)`, the integrals of the nodes' basis functions.
    """

    coordinates = (Channel("x"), Channel("y"))
    targets = (Channel("pressure"),)
    help = (
        f"Expected a folder with {_FILE} (the published file) or one that "
        "python examples/irregular_darcy/generate.py --out data/irregular_darcy has made"
    )

    def open(self) -> tuple[range, range]:
        """Read the file."""
        self.source = source_of(self.path)
        published = self.source == "published"
        fields = (1200, 2290) if published else ("n", "N")
        expected = {
            "c_field": fields,
            "u_field": fields,
            "MeshNodes": (2, fields[1]),
            "MeshElements": (3, "M"),
        }
        file = locate(self.path, "irregular Darcy", self.help, _FILE)
        with MatlabFile(file, expected, self.help) as matlab:
            n, n_nodes = matlab.shapes["c_field"]
            check_samples(n, 2, file, self.help)
            fields = (matlab[name][:] for name in ("c_field", "u_field"))
            cells = matlab.cells("MeshElements", n_nodes)
            self.hold(*fields, matlab["MeshNodes"][:].T, cells.T)
        return parts_of(n)
