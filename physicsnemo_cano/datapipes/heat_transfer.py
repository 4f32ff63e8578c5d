# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Flow round two hot cylinders: five frames to the fifty that follow (PhysGTO's set)."""

from __future__ import annotations

from physicsnemo_cano.datapipes.physgto import PhysGTOReader
from physicsnemo_cano.datapipes.reader import Channel


class HeatTransfer(PhysGTOReader):
    r"""Trajectories of the heat transfer benchmark, in the published container or generated.

    See :class:`PhysGTOReader` for the folder. Of the fields ``u`` and ``v``, the velocity, are
    predicted; the published files also hold pressure and temperature. Each trajectory has its own
    mesh and number of nodes N.

    A sample holds ``embedding`` :math:`(N, 2)`, the nodes; ``fx`` :math:`(N, 20)`: the velocity of
    five frames, the kind of the node (five inputs, of which one is 1), and five conditions, inlet
    velocity, temperature difference, spacing, radius and angle of the cylinders; ``target``, the
    frames that follow; and with ``data.weights=true`` ``weights`` :math:`(N,)`, the integrals of
    the nodes' basis functions.
    """

    coordinates = (Channel("x"), Channel("y"))
    targets = (Channel("u"), Channel("v"))
    datasets = ("u", "v")
    n_types = 5
    statics = (
        *(Channel(kind) for kind in ("fluid", "wall", "cylinder", "inlet", "outlet")),
        Channel("inlet velocity"),
        Channel("temperature difference", "K"),
        *(Channel(name) for name in ("spacing", "radius", "angle")),
    )
    help = (
        "Expected a folder with train.txt, test.txt and the trajectories that they list, such as "
        "python examples/heat_transfer/generate.py --out data/heat_transfer has made"
    )
