# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Inductively coupled plasma: five frames to the fifty that follow (PhysGTO's set)."""

from __future__ import annotations

from physicsnemo_cano.datapipes.physgto import PhysGTOReader
from physicsnemo_cano.datapipes.reader import Channel


class ICPPlasma(PhysGTOReader):
    r"""Trajectories of the ICP plasma benchmark, in the published container or generated.

    See :class:`PhysGTOReader` for the folder. The fields are ``ne``, ``Te``, ``v`` and ``T``,
    densities and temperatures of electrons, speed and temperature of the gas.

    A sample holds ``embedding`` :math:`(N, 2)`, the nodes; ``fx`` :math:`(N, 30)`: the four
    fields of five frames, the kind of the node (five inputs, of which one is 1), and five
    conditions, power, pressure, gas flow, position and width of the coil; ``target``, the frames
    that follow; and with ``data.weights=true`` ``weights`` :math:`(N,)`, the integrals of the
    nodes' basis functions.
    """

    coordinates = (Channel("x"), Channel("y"))
    targets = (Channel("n_e"), Channel("T_e"), Channel("v"), Channel("T"))
    datasets = ("ne", "Te", "v", "T")
    n_types = 5
    statics = (
        *(Channel(kind) for kind in ("interior", "wall", "window", "inlet", "outlet")),
        *(Channel(name) for name in ("power", "pressure", "flow", "position", "width")),
    )
    help = (
        "Expected a folder with train.txt, test.txt and the trajectories that they list, such as "
        "python examples/icp_plasma/generate.py --out data/icp_plasma has made"
    )
