# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

import csv

import numpy as np
import pytest
import pyvista

from examples.bodies.figures import drag_scores
from examples.bodies.generate import BodySet
from examples.bodies.refine import main as refine
from examples.bodies.solver import areas_and_normals, tractions
from physicsnemo_cano.datapipes.generation import sample_rng
from physicsnemo_cano.datapipes.meshes import MeshFolder


def reader(folder, split, **options):
    return MeshFolder(
        folder, split, targets=["traction"], parameters="cases.csv", weights=True, **options
    )


def corners_of(file):
    mesh = pyvista.read(file)
    return mesh.points.astype(float)[mesh.regular_faces]


def test_a_file_a_case_and_its_direction_in_the_table(tiny_set):
    folder = tiny_set("bodies")
    with open(folder / "cases.csv") as file:
        rows = list(csv.DictReader(file))
    assert [row["case"] for row in rows] == [f"body_{k:04d}" for k in range(5)]
    body, (sphere, faces), direction = BodySet(5, (20, 40)).draw(sample_rng(3, 2))
    assert [float(rows[2][axis]) for axis in "xyz"] == direction.tolist()
    mesh = pyvista.read(folder / "body_0002.vtp")
    points = body.surface(sphere, faces)
    np.testing.assert_allclose(mesh.points, points, rtol=1e-6)
    np.testing.assert_array_equal(mesh.regular_faces, faces)
    np.testing.assert_array_equal(
        mesh.cell_data["traction"], tractions(points[faces], [direction])[0]
    )


def test_the_reader_gives_faces_with_areas_and_one_token(tiny_set):
    folder = tiny_set("bodies")
    train = reader(folder, "train")
    for row, index in enumerate(train.indices):
        sample, _ = train[row]
        corners = corners_of(train.cases[index].file)
        areas, _ = areas_and_normals(corners)
        np.testing.assert_allclose(sample["weights"], areas, rtol=1e-5)
        np.testing.assert_allclose(sample["embedding"], corners.mean(1), atol=1e-6)
        assert sample["fx"].shape == (1, 3)
        np.testing.assert_allclose(sample["fx"].norm(), 1, rtol=1e-6)
        drag = areas @ sample["target"].numpy() @ sample["fx"][0].numpy()
        assert 0.9 < drag / (6 * np.pi) < 2  # of no body of its volume much below the sphere's


def test_the_test_bodies_refined(tiny_set, tmp_path):
    folder = tiny_set("bodies")
    refine(folder, tmp_path)
    (coarse, _), (fine, _) = reader(folder, "test")[0], reader(tmp_path, "test", test=1.0)[0]
    assert len(reader(tmp_path, "test", test=1.0)) == 1
    assert len(fine["target"]) == 4 * len(coarse["target"])
    np.testing.assert_array_equal(fine["fx"], coarse["fx"])
    drags = [s["weights"] @ s["target"] @ s["fx"][0] for s in (coarse, fine)]
    np.testing.assert_allclose(drags[0], drags[1], rtol=0.03)
    with pytest.raises(ValueError, match="expected some for training"):
        reader(tmp_path, "train", test=1.0)


def test_scores_of_the_drag():
    solved = np.array([1.0, 2.0, 3.0])
    assert drag_scores(solved, solved) == {"r2": 1, "mean_error": 0, "largest_error": 0}
    assert drag_scores(solved, np.full(3, 2.0))["r2"] == 0
    assert drag_scores(solved, solved * [1, 1, 1.1])["largest_error"] == pytest.approx(0.1)
