# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Figures are judged by eye; these tests hold what an eye may miss."""

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.collections import QuadMesh, TriMesh

from physicsnemo_cano.visualization import (
    Window,
    draw_clusters,
    error_distribution,
    field_comparison,
    figure,
    loss_curve,
    render_surface,
    save,
    show_field,
    surface_comparison,
    symmetric_limits,
)

GRID = np.stack(np.meshgrid(np.linspace(0, 2, 9), np.linspace(0, 1, 5), indexing="ij"), axis=-1)
FIELD = GRID[..., 0] ** 2 + GRID[..., 1]
WINDOW = Window((0.0, 1.0), (0.0, 1.0))
NAMES = ("x", "y")


def _meshes(axes, kind=QuadMesh):
    return [artist for artist in axes.collections if isinstance(artist, kind)]


def test_window_is_closed():
    points = np.array([[0.0, 0.0], [1.0, 1.0], [1.01, 0.5], [0.5, -0.01]])
    assert WINDOW.holds(points).tolist() == [True, True, False, False]


def test_colours_span_what_is_visible():
    _, ((axes,),) = figure()
    image = show_field(axes, GRID, FIELD, window=WINDOW)
    assert image.get_clim() == (0.0, 2.0)  # up to x = 1, not 2
    assert axes.get_xlim() == (0.0, 1.0)
    assert axes.get_aspect() == 1.0


def test_clouds_are_triangulated():
    _, ((axes,),) = figure()
    image = show_field(axes, GRID.reshape(-1, 2), FIELD.ravel())
    assert isinstance(image, TriMesh)
    np.testing.assert_array_equal(image.get_array(), FIELD.ravel())


def test_comparison_shares_one_scale_and_centres_the_difference():
    prediction = FIELD + 0.1 * GRID[..., 1] - 0.3
    drawing = field_comparison(
        GRID, FIELD, prediction, name="u", coordinates=NAMES, contour=1.5, window=WINDOW
    )
    left, middle, right = (_meshes(axes)[0] for axes in drawing.axes[:3])
    assert left.get_clim() == middle.get_clim() == (0.0, 2.0)
    low, high = right.get_clim()
    assert low == -high
    assert 0.25 < high <= 0.3 + 1e-9
    np.testing.assert_allclose(right.get_array(), prediction - FIELD)
    np.testing.assert_allclose(middle.get_array(), prediction)


def test_symmetric_limits_leave_a_few_points_out():
    values = np.zeros(1000)
    values[:500], values[0] = 1.0, -100.0
    assert symmetric_limits(values) == (-1.0, 1.0)
    assert symmetric_limits(np.zeros(3)) == (-1.0, 1.0)


def test_draw_clusters_say_how_many_clusters_are_used():
    assignments = np.zeros((2, 45, 6))
    assignments[0, :, 3] = 1.0  # one cluster
    assignments[1, :20, 0], assignments[1, 20:, 1] = 1.0, 1.0
    drawing = draw_clusters(GRID, assignments, coordinates=NAMES)
    titles = [axes.get_title() for axes in drawing.axes]
    assert titles == [
        "1 of 6 clusters, mean weight 1.00",
        "2 of 6 clusters, mean weight 1.00",
    ]
    colors = _meshes(drawing.axes[1])[0].get_array().reshape(45, 3)
    assert len(np.unique(colors[:20], axis=0)) == len(np.unique(colors[20:], axis=0)) == 1
    assert not np.array_equal(colors[0], colors[20])
    with pytest.raises(ValueError, match="44 points"):
        draw_clusters(GRID, assignments[:, :44], coordinates=NAMES)


def test_error_distribution_shows_every_sample():
    errors = np.array([0.01, 0.02, 0.03, 0.1])
    axes = error_distribution(errors, baseline=0.2).axes[0]
    points = axes.collections[-1].get_offsets()
    np.testing.assert_allclose(points[:, 0], errors)
    assert any("mean 0.0400" in text.get_text() for text in axes.texts)
    error_distribution(np.array([0.5]))  # a single sample has no density


def test_loss_curve_draws_both_errors():
    history = [{"epoch": e, "train_rel_l2": 1 / e, "test_rel_l2": 2 / e} for e in (1, 2, 4)]
    axes = loss_curve(history, baseline=0.1).axes[0]
    train, test, baseline = axes.lines
    np.testing.assert_allclose(train.get_xydata(), [[1, 1], [2, 0.5], [4, 0.25]])
    np.testing.assert_allclose(test.get_ydata(), [2, 1, 0.5])
    assert baseline.get_ydata()[0] == 0.1


def test_files_are_png(tmp_path):
    drawing, _ = figure()
    assert save(drawing, tmp_path / "empty.png").read_bytes()[:4] == b"\x89PNG"


def test_without_matplotlib_the_error_says_what_to_install():
    code = (
        "import sys; sys.modules['matplotlib'] = None; sys.modules['matplotlib.figure'] = None\n"
        "import physicsnemo_cano.visualization as v\n"
        "try: v.figure()\n"
        "except ImportError as e: print(e)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install physicsnemo-cano[examples]" in done.stdout


def test_surfaces_show_the_values_that_face_the_eye():
    pyvista = pytest.importorskip("pyvista")
    cube = pyvista.ImageData(dimensions=(3, 3, 3)).cast_to_unstructured_grid()
    top = (cube.points[:, 2] == 2).astype(float)
    for view, shown in (((0.01, 0, 1), "red"), ((0.01, 0, -1), "blue")):
        image = render_surface(cube, top, cmap="bwr", view=view).astype(int)
        red, _, blue = image.reshape(-1, 3).T
        assert (np.mean(red > blue), np.mean(blue > red))[shown == "blue"] > 0.9
        height, width = image.shape[:2]
        assert 0.9 < height / width < 1.1  # a square, cut out of a wider window
    drawing = surface_comparison(cube, top, 2 * top, name="u")
    left, middle, right = (axes.images[0].get_array() for axes in drawing.axes[:3])
    assert left.shape == middle.shape == right.shape
    bars = [axes.get_xlim() for axes in drawing.axes[3:]]
    assert bars == [(0, 1), (0, 1), (-1, 1)]
