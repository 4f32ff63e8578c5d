# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Solve the test bodies of a set again, on meshes with each face cut into four.

    python examples/bodies/refine.py data/bodies data/fine

With ``mode=evaluate data.root=data/fine data.test=1.0`` a model predicts on them. Bodies that are
there already are left out, so an interrupted run continues.
"""

import sys
from pathlib import Path

import numpy as np
from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).parents[2]))  # to run as a script

from examples.bodies.generate import BodySet, case
from examples.bodies.shape import Body
from physicsnemo_cano.datapipes.generator import save_as
from physicsnemo_cano.datapipes.meshes import MeshFolder
from physicsnemo_cano.integrations.mesh_files import read_mesh
from physicsnemo_cano.integrations.parameters import Parameters


def refine(file, direction):
    """What the file of a refined body holds."""
    mesh = read_mesh(file)
    body = Body(*(np.array(mesh.field_data[name]) for name in ("waves", "phases", "stretch")))
    points, faces = body.refine(mesh.points.astype(float), mesh.regular_faces)
    content = case(body, points, faces, direction)
    del content["parameters"]  # they are in the table
    return content


def main(root, out):
    """Refine the test cases of a folder into another."""
    root, out = Path(root), Path(out)
    out.mkdir(parents=True, exist_ok=True)
    table = Parameters(root / "cases.csv")
    reader = MeshFolder(root, "test", targets=["traction"])
    names = [reader.cases[index].name for index in sorted(reader.indices)]
    for name in tqdm(names):
        file = out / f"{name}.vtp"
        if not file.exists():
            save_as(file, refine(root / file.name, table.of([name], None)))
    lines = [("case", *BodySet.parameters), *((name, *table.table[name]) for name in names)]
    save_as(out / "cases.csv", "".join(",".join(line) + "\n" for line in lines))
    save_as(out / "provenance.json", {"command": "python examples/bodies/refine.py"})


if __name__ == "__main__":
    main(*sys.argv[1:])
