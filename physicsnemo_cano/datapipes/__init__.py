# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Readers of the published files and of those our reference solvers write."""

from physicsnemo_cano.datapipes.airfoil import Airfoil
from physicsnemo_cano.datapipes.composite import Composite
from physicsnemo_cano.datapipes.darcy import Darcy
from physicsnemo_cano.datapipes.elastic_block import ElasticBlock
from physicsnemo_cano.datapipes.elasticity import Elasticity
from physicsnemo_cano.datapipes.heat_transfer import HeatTransfer
from physicsnemo_cano.datapipes.icp_plasma import ICPPlasma
from physicsnemo_cano.datapipes.irregular_darcy import IrregularDarcy
from physicsnemo_cano.datapipes.navier_stokes import NavierStokes, NavierStokesRollout
from physicsnemo_cano.datapipes.physgto import PhysGTOReader
from physicsnemo_cano.datapipes.pipe import Pipe
from physicsnemo_cano.datapipes.pipe_turbulence import PipeTurbulence
from physicsnemo_cano.datapipes.plasticity import Plasticity
from physicsnemo_cano.datapipes.reader import Channel, FieldReader
from physicsnemo_cano.datapipes.trajectories import TrajectoryReader
from physicsnemo_cano.datapipes.unsteady_heat import UnsteadyHeat

__all__ = [
    "Airfoil",
    "Channel",
    "Composite",
    "Darcy",
    "ElasticBlock",
    "Elasticity",
    "FieldReader",
    "HeatTransfer",
    "ICPPlasma",
    "IrregularDarcy",
    "NavierStokes",
    "NavierStokesRollout",
    "PhysGTOReader",
    "Pipe",
    "PipeTurbulence",
    "Plasticity",
    "TrajectoryReader",
    "UnsteadyHeat",
]
