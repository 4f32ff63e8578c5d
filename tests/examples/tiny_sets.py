# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""What a tiny set of each generator is made with, and what its reader and provenance say."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from examples.airfoil.generate import AirfoilSet
from examples.bodies.generate import BodySet
from examples.composite.generate import CompositeSet
from examples.darcy.generate import DarcySet
from examples.elasticity.generate import ElasticitySet
from examples.heat_transfer.generate import HeatSet
from examples.icp_plasma.generate import PlasmaSet
from examples.irregular_darcy.generate import IrregularDarcySet
from examples.navier_stokes.generate import NavierStokesSet
from examples.pipe.generate import PipeSet
from examples.pipe_turbulence.generate import PipeTurbulenceSet
from examples.plasticity.generate import PlasticitySet
from physicsnemo_cano import datapipes
from physicsnemo_cano.datapipes.generator import Generator
from physicsnemo_cano.datapipes.meshes import MeshFolder


@dataclass
class Tiny:
    generator: type[Generator]
    reader: Callable[..., datapipes.FieldReader]  # of a folder and a split
    counts: str
    options: str
    split: tuple[int, int]  # samples for training and for testing
    constants: dict = field(default_factory=dict)
    computing: str = ""

    def run(self, folder, workers=1):
        words = f"{self.counts} {self.options} {self.computing} --seed 3 --workers {workers}"
        self.generator.main([*words.split(), "--out", str(folder)])


TINY = {
    "airfoil": Tiny(
        AirfoilSet,
        datapipes.Airfoil,
        "--n-samples 2",
        "--shape 57 13",
        (2, 0),
        {"mach": 0.8, "redrawn": "none"},
    ),
    "bodies": Tiny(
        BodySet,
        partial(MeshFolder, targets=["traction"], parameters="cases.csv", weights=True),
        "--n-samples 5",
        "--points 20 40",
        (4, 1),
        {"viscosity": 1.0, "speed": 1.0},
    ),
    "composite": Tiny(CompositeSet, datapipes.Composite, "--n-samples 2", "--shape 4 3 2", (2, 0)),
    "darcy": Tiny(
        DarcySet,
        datapipes.Darcy,
        "--n-train 3 --n-test 2",
        "--nodes 16",
        (3, 2),
        {"permeability": [3.0, 12.0]},
    ),
    "elasticity": Tiny(
        ElasticitySet, datapipes.Elasticity, "--n-samples 2", "", (2, 0), {"traction": 100.0}
    ),
    "heat_transfer": Tiny(
        HeatSet,
        datapipes.HeatTransfer,
        "--n-samples 5",
        "--sizes 0.2 0.35 --frames 12 --interval 0.1 --pulse 0.3 --skip 2",
        (4, 1),
    ),
    "icp_plasma": Tiny(
        PlasmaSet,
        datapipes.ICPPlasma,
        "--n-samples 5",
        "--spacing 0.15 --frames 12",
        (4, 1),
        {"interval": 0.025, "substeps": 10},
    ),
    "irregular_darcy": Tiny(
        IrregularDarcySet, datapipes.IrregularDarcy, "--n-samples 2", "--spacing 0.15", (2, 0)
    ),
    "navier_stokes": Tiny(
        NavierStokesSet,
        datapipes.NavierStokes,
        "--n-samples 3",
        "--grid 64 --points 16",
        (2, 1),
        {"viscosity": 1e-5},
        "--batch-size 2",
    ),
    "pipe": Tiny(
        PipeSet,
        datapipes.Pipe,
        "--n-samples 2",
        "--shape 17 9 --elements 16 6",
        (2, 0),
        {"viscosity": 0.005},
    ),
    "pipe_turbulence": Tiny(
        PipeTurbulenceSet,
        datapipes.PipeTurbulence,
        "--n-runs 5",
        "--size 0.3 --step 0.02",
        (40, 10),
        {"viscosity": 0.002},
    ),
    "plasticity": Tiny(
        PlasticitySet,
        datapipes.Plasticity,
        "--n-samples 2",
        "--shape 11 4",
        (2, 0),
        {"yield": 70.0, "hardening": 500.0, "redrawn": "none"},
    ),
}
