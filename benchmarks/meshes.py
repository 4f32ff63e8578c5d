# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

r"""Train on one mesh of the irregular Darcy domain, test on others without retraining.

``python benchmarks/meshes.py`` draws permeabilities and solves for the pressures on a fine mesh,
takes both to four coarser ones, trains the mini models of ``examples/irregular_darcy`` on one of
them and tests on all: with half and twice its nodes, and with twice its nodes, crowded on one side.
Rows are appended to ``--out``; rows already there are not run again.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from hydra import compose, initialize_config_dir
from scipy.interpolate import LinearNDInterpolator, NearestNDInterpolator
from skfem import MeshTri
from table import Table

sys.path.insert(0, str(Path(__file__).parents[1]))  # to run as a script

from examples.fem.mesh import spaced, triangulate
from examples.irregular_darcy.generate import IrregularDarcySet, problem
from examples.irregular_darcy.solver import domain_mesh, outline
from physicsnemo_cano.datapipes.generation import sample_rng
from physicsnemo_cano.datapipes.matlab import write_matlab
from physicsnemo_cano.recipe import run
from physicsnemo_cano.recipe.config import CONF

FINE, TRAINED = 0.022, 0.062  # spacing of the nodes
SAMPLES = 300  # 240 to train on
VARIANTS = {
    "cano-weighted": ["model=cano", "data.weights=true"],
    **{name: [f"model={name}"] for name in ("cano", "transolver", "flare")},
}


def crowded_mesh() -> MeshTri:
    r"""Twice the nodes of the training mesh, closer together where x is smaller."""

    def size(points):
        return 0.046 * np.exp(0.5 * points[:, 0])

    return triangulate([spaced(outline, size)], size)


def write_sets(folder: Path) -> dict[str, Path]:
    r"""A folder a mesh, all with the same samples."""
    meshes = {
        "trained": domain_mesh(TRAINED),
        "half": domain_mesh(TRAINED * 2**0.5),
        "twice": domain_mesh(TRAINED / 2**0.5),
        "crowded": crowded_mesh(),
    }
    missing = [name for name in meshes if not (folder / name / "provenance.json").exists()]
    if missing:
        rngs = [sample_rng(0, k) for k in range(SAMPLES)]
        fields = IrregularDarcySet(spacing=FINE).sample(rngs)
        del fields["draws"]
        nodes = problem(FINE)[0].p.T
    for name in missing:
        mesh, at = meshes[name], meshes[name].p.T
        arrays = {"MeshNodes": mesh.p, "MeshElements": mesh.t + 1.0}
        for key, values in fields.items():
            inside = LinearNDInterpolator(nodes, values.T)(at).T
            # Nodes on the outline lie a little outside of the fine mesh's polygon.
            nearest = NearestNDInterpolator(nodes, values.T)(at).T
            arrays[key] = np.where(np.isnan(inside), nearest, inside).astype(np.float32)
        arrays["u_field"][:, mesh.boundary_nodes()] = 0
        (folder / name).mkdir(parents=True, exist_ok=True)
        write_matlab(folder / name / "Darcy.mat", arrays)
        (folder / name / "provenance.json").write_text("{}")
    return {name: folder / name for name in meshes}


def errors(variant: str, seed: int, sets: dict[str, Path], output: Path) -> dict[str, float]:
    r"""Train a variant, or take a finished training, and return its error on every mesh."""

    def recipe(*overrides):
        with initialize_config_dir(str(CONF), version_base="1.3"):
            asked = [*VARIANTS[variant], f"seed={seed}", *overrides]
            cfg = compose("irregular_darcy", asked, return_hydra_config=True)
        return run(cfg, figures=lambda results, folder: None)["test_rel_l2"]

    found = {"trained": recipe(f"data.root={sets['trained']}", f"output={output}")}
    checkpoint = f"checkpoint={output}/checkpoints/last"
    for name in [name for name in sets if name != "trained"]:
        found[name] = recipe("mode=evaluate", checkpoint, f"data.root={sets[name]}")
    return found


def main() -> None:
    r"""Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("outputs/meshes"))
    parser.add_argument("--out", type=Path, default=Path("outputs/meshes.csv"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--only", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    args = parser.parse_args()
    sets = write_sets(args.folder / "data")
    table = Table(args.out)
    for seed in args.seeds:
        for variant in args.only:
            case = {"variant": variant, "seed": seed}
            if not table.has(case):
                output = args.folder / variant / f"seed{seed}"
                table.add(case | errors(variant, seed, sets, output))


if __name__ == "__main__":
    main()
