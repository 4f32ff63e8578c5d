# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Predictions on real VTK and STL files equal the model's in memory."""

import itertools
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import pyvista
import torch
from omegaconf import OmegaConf
from scipy.spatial import cKDTree

from physicsnemo_cano import CANO
from physicsnemo_cano.datapipes.quadrature import node_weights
from physicsnemo_cano.integrations.meshes import MeshCloud
from physicsnemo_cano.predict import Request, main, parse, predict
from physicsnemo_cano.recipe.normalization import Statistics
from tests.integrations.surfaces import FixedSizes, Surfaces

SCALES = dict.fromkeys(("embedding", "fx", "target"), "channels")
CARS = Path(__file__).parents[3] / "shared" / "data" / "mini_car.pt"


def checkpoint(
    folder, channels=0, dim=3, weights=True, reader="Surfaces", normalize=SCALES, **cano
):
    """A checkpoint as the recipe leaves it."""
    torch.manual_seed(1)
    clouds = [(2 * torch.rand(9, dim) + 1, torch.rand(9, channels)) for _ in range(3)]
    Statistics.measure(Surfaces(clouds), normalize).save(folder / "normalization.npz")
    settings = {"data": {"_target_": f"tests.integrations.surfaces.{reader}", "weights": weights}}
    OmegaConf.save(OmegaConf.create(settings), folder / "config.yaml")
    sizes = {"n_layers": 2, "n_hidden": 16, "n_head": 2, "slice_num": 4, **cano}
    model = CANO(channels, 2, dim, **sizes).eval()
    model.save(str(folder / "CANO.0.3.mdlus"))
    return model, Statistics.load(folder / "normalization.npz")


def by_hand(model, statistics, x, fx=None, weights=None):
    def normal(key, value):
        return (value - statistics.means[key]) / statistics.stds[key]

    fx = torch.zeros(len(x), 0) if fx is None else normal("fx", fx)
    weights = None if weights is None else weights[None]
    with torch.no_grad():
        out = model(fx[None], normal("embedding", x)[None], weights=weights)[0]
    return (out * statistics.stds["target"] + statistics.means["target"]).numpy()


def ask(folder, source, output, **more):
    options = {"chunk_size": 7, "device": "cpu", **more}
    return predict(Request(str(folder), str(source), str(output), **options))


def sphere():
    mesh = pyvista.Sphere(radius=2.0, theta_resolution=9, phi_resolution=8)
    mesh.clear_data()
    mesh.point_data["kept"] = np.arange(mesh.n_points)
    mesh.cell_data["kept too"] = np.arange(mesh.n_cells)
    return mesh


def volume():
    grid = pyvista.ImageData(dimensions=(4, 3, 5)).cast_to_unstructured_grid()
    return grid.triangulate()  # tetrahedra


@pytest.mark.parametrize("location", ["points", "cells"])
@pytest.mark.parametrize(
    ("make", "read", "write"),
    [
        (sphere, ".vtp", ".vtp"),
        (sphere, ".vtk", ".vtk"),
        (sphere, ".stl", ".vtp"),
        (volume, ".vtu", ".vtu"),
        (volume, ".vtk", ".vtu"),
    ],
)
def test_files_get_what_the_model_gives_in_memory(make, read, write, location, tmp_path):
    model, statistics = checkpoint(tmp_path)
    make().save(tmp_path / f"body{read}")
    mesh = pyvista.read(tmp_path / f"body{read}")
    names = ask(tmp_path, tmp_path / f"body{read}", tmp_path / f"out{write}", location=location)
    assert names == ["pressure", "shear"]
    if location == "points":
        x = torch.from_numpy(np.array(mesh.points, dtype=np.float32))
        cells = mesh.regular_faces if make is sphere else mesh.cells_dict[10]
        weights = node_weights(x.double(), cells=torch.from_numpy(np.array(cells))).float()
    else:
        x = torch.from_numpy(np.array(mesh.cell_centers().points, dtype=np.float32))
        size = mesh.compute_cell_sizes()["Area" if make is sphere else "Volume"]
        weights = torch.from_numpy(np.abs(size).astype(np.float32))
    expected = by_hand(model, statistics, x, weights=weights)
    written = pyvista.read(tmp_path / f"out{write}")
    data = written.point_data if location == "points" else written.cell_data
    found = np.stack([data[name] for name in names], -1)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(written.points, mesh.points)
    if read != ".stl" and make is sphere:
        np.testing.assert_array_equal(written.point_data["kept"], np.arange(mesh.n_points))
        np.testing.assert_array_equal(written.cell_data["kept too"], np.arange(mesh.n_cells))


def test_weights_sum_to_the_area_or_volume(tmp_path):
    sphere().save(tmp_path / "a.vtp")
    volume().save(tmp_path / "b.vtu")
    for file, total in (("a.vtp", sphere().area), ("b.vtu", 3 * 2 * 4)):
        for location in ("points", "cells"):
            weights = MeshCloud(tmp_path / file, location).weights()
            assert weights.sum().item() == pytest.approx(total, rel=1e-5)


def test_faces_of_any_number_of_corners(tmp_path):
    box = pyvista.Box(bounds=(0, 2, 0, 1, 0, 1))  # six quadrilaterals
    box.save(tmp_path / "box.vtp")
    assert MeshCloud(tmp_path / "box.vtp").weights().sum().item() == pytest.approx(10)
    assert sorted(MeshCloud(tmp_path / "box.vtp", "cells").weights().tolist()) == [1, 1, 2, 2, 2, 2]
    checkpoint(tmp_path)
    ask(tmp_path, tmp_path / "box.vtp", tmp_path / "out.vtp")


def test_chunks_and_training_without_weights(tmp_path):
    model, statistics = checkpoint(tmp_path, weights=False)
    sphere().save(tmp_path / "body.vtp")
    x = torch.from_numpy(np.array(sphere().points))
    for number, chunk_size in enumerate((1, 10, 10**6)):
        output = tmp_path / f"{number}.vtp"
        ask(tmp_path, tmp_path / "body.vtp", output, chunk_size=chunk_size)
        found = pyvista.read(output)["pressure"]
        np.testing.assert_allclose(found, by_hand(model, statistics, x)[:, 0], rtol=1e-5, atol=1e-5)


def test_input_fields_and_plane_meshes(tmp_path):
    model, statistics = checkpoint(tmp_path, channels=4, dim=2)
    mesh = pyvista.Plane(i_resolution=5, j_resolution=4).triangulate()
    mesh.clear_data()
    random = np.random.default_rng(0)
    mesh["speed"], mesh["force"] = random.random(30), random.random((30, 3))
    mesh.save(tmp_path / "plate.vtp")
    mesh = pyvista.read(tmp_path / "plate.vtp")
    ask(tmp_path, tmp_path / "plate.vtp", tmp_path / "out.vtp", inputs=["speed", "force"])
    x = torch.from_numpy(np.array(mesh.points[:, :2]))
    fx = torch.from_numpy(np.column_stack([mesh["speed"], mesh["force"]]).astype(np.float32))
    weights = MeshCloud(tmp_path / "plate.vtp").weights()
    expected = by_hand(model, statistics, x, fx, weights)
    found = pyvista.read(tmp_path / "out.vtp")["shear"]
    np.testing.assert_allclose(found, expected[:, 1], rtol=1e-5, atol=1e-5)

    with pytest.raises(KeyError, match=r"no field 'heat' at its points, only \['force', 'speed'\]"):
        ask(tmp_path, tmp_path / "plate.vtp", tmp_path / "no.vtp", inputs=["heat"])
    with pytest.raises(ValueError, match=r"\['speed'\] and .* are 1 channels, the model takes 4"):
        ask(tmp_path, tmp_path / "plate.vtp", tmp_path / "no.vtp", inputs=["speed"])
    sphere().save(tmp_path / "body.vtp")
    with pytest.raises(ValueError, match="in x, y and z; the model takes 2 coordinates"):
        ask(tmp_path, tmp_path / "body.vtp", tmp_path / "no.vtp")


def test_nothing_is_overwritten(tmp_path):
    checkpoint(tmp_path)
    sphere().save(tmp_path / "body.vtp")
    body = tmp_path / "body.vtp"
    before = body.read_bytes()
    with pytest.raises(FileExistsError, match="not overwritten"):
        ask(tmp_path, body, body)
    with pytest.raises(ValueError, match=r"can be written to \.vtp or \.vtk"):
        ask(tmp_path, body, tmp_path / "out.stl")
    ask(tmp_path, body, tmp_path / "once.vtp")
    with pytest.raises(ValueError, match=r"has fields \['pressure', 'shear'\] already.*suffix="):
        ask(tmp_path, tmp_path / "once.vtp", tmp_path / "twice.vtp")
    ask(tmp_path, tmp_path / "once.vtp", tmp_path / "twice.vtp", suffix="_again")
    twice = pyvista.read(tmp_path / "twice.vtp")
    np.testing.assert_array_equal(twice["pressure"], twice["pressure_again"])
    assert body.read_bytes() == before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"reader": "Series"}, "predicts series in time"),
        ({"structured_shape": [3, 3]}, r"trained on a grid of \(3, 3\) points.*as_cloud=true"),
        ({"normalize": {"target": "nodes"}}, r"node by node on 9 points.*normalize\.target="),
    ],
)
def test_models_that_cannot_take_meshes(changes, message, tmp_path):
    checkpoint(tmp_path, **changes)
    sphere().save(tmp_path / "body.vtp")
    with pytest.raises(ValueError, match=message):
        ask(tmp_path, tmp_path / "body.vtp", tmp_path / "out.vtp")


def test_files_that_are_no_such_meshes(tmp_path):
    checkpoint(tmp_path)
    with pytest.raises(FileNotFoundError, match="No mesh at"):
        ask(tmp_path, tmp_path / "absent.vtp", tmp_path / "out.vtp")
    pyvista.ImageData(dimensions=(3, 3, 3)).save(tmp_path / "image.vtk")
    with pytest.raises(ValueError, match=r"can be written to \.vtu or \.vtk"):
        ask(tmp_path, tmp_path / "image.vtk", tmp_path / "out.vtp")
    (tmp_path / "table.vtk").write_text("# vtk DataFile Version 3.0\n\nASCII\nDATASET TABLE\n")
    with pytest.raises(ValueError, match=r"holds Table, expected a surface or a volume|no mesh"):
        ask(tmp_path, tmp_path / "table.vtk", tmp_path / "out.vtp")
    sphere().save(tmp_path / "body.ply")
    with pytest.raises(ValueError, match=r"none of \.vtp, .*\.stl, \.vtm; convert it"):
        ask(tmp_path, tmp_path / "body.ply", tmp_path / "out.vtp")
    loose = pyvista.PolyData(np.vstack([sphere().points, [[9, 9, 9]]]), sphere().faces)
    loose.save(tmp_path / "loose.vtp")
    with pytest.raises(ValueError, match=r"1 points belong to no cell.*location=cells"):
        ask(tmp_path, tmp_path / "loose.vtp", tmp_path / "out.vtp")
    ask(tmp_path, tmp_path / "loose.vtp", tmp_path / "out.vtp", location="cells")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            np.nan,
            r"field 'heat' of 2 points are not finite, the first \[nan\] at index 4",
        ),
        (-np.inf, r"of 2 points are not finite, the first \[-inf\] at index 4"),
        (9.97e36, r"field 'heat' has 2 values more than .* first 9\.97e\+36 at index 4: .*fill"),
        (-1e300, r"field 'heat' has 2 values more than .* first -1e\+300 at index 4"),
    ],
)
def test_values_that_are_none(value, message, tmp_path):
    checkpoint(tmp_path, channels=1)
    mesh = sphere()
    mesh["heat"] = np.random.default_rng(0).random(mesh.n_points)
    mesh["heat"][[4, 7]] = value
    mesh.save(tmp_path / "body.vtp")
    with pytest.raises(ValueError, match=message):
        ask(tmp_path, tmp_path / "body.vtp", tmp_path / "out.vtp", inputs=["heat"])
    assert not (tmp_path / "out.vtp").exists()


def test_coordinates_that_are_none(tmp_path):
    checkpoint(tmp_path)
    for number, (value, message) in enumerate(
        ((np.nan, "coordinates of 1 points are not finite.*at index 3"), (1e30, "coordinate y"))
    ):
        mesh = sphere()
        mesh.points[3, 1] = value
        mesh.save(tmp_path / f"{number}.vtp")
        for location in ("points", "cells"):
            with pytest.raises(ValueError, match=message):
                ask(tmp_path, tmp_path / f"{number}.vtp", tmp_path / "no.vtp", location=location)
    assert not (tmp_path / "no.vtp").exists()


def test_a_prediction_that_is_not_finite_is_not_written(tmp_path):
    model, _ = checkpoint(tmp_path)
    with torch.no_grad():
        model.decoder[1].bias[1] = torch.inf
    model.save(str(tmp_path / "CANO.0.3.mdlus"))
    sphere().save(tmp_path / "body.vtp")
    with pytest.raises(ValueError, match="shear is not finite at 56 points, the first at index 0"):
        ask(tmp_path, tmp_path / "body.vtp", tmp_path / "out.vtp")
    assert not (tmp_path / "out.vtp").exists()


def cuts():
    plate = pyvista.Plane(i_resolution=3, j_resolution=2).triangulate()
    kinds = [(sphere, ".vtk"), (sphere, ".vtp"), (sphere, ".stl")]
    kinds += [(volume, ".vtk"), (volume, ".vtu"), (lambda: plate, ".stl")]
    return [(*kind, binary) for kind in kinds for binary in (True, False)]


@pytest.mark.parametrize(("make", "ending", "binary"), cuts())
def test_cut_files(make, ending, binary, tmp_path):
    make().save(tmp_path / f"whole{ending}", binary=binary)
    data = (tmp_path / f"whole{ending}").read_bytes()
    MeshCloud(tmp_path / f"whole{ending}")
    part = tmp_path / f"part{ending}"
    end = len(data) // 3 if ending == ".vtk" else len(data) - 60  # inside of points, or anywhere
    for length in (0, 30, *np.linspace(400, end, 9).astype(int)):
        part.write_bytes(data[:length])
        with pytest.raises(
            ValueError,
            match=r"is incomplete.*expected a complete|expected some of both.*incomplete",
        ):
            MeshCloud(part)


def test_triangles_that_a_file_announces_are_there(tmp_path):
    sphere().save(tmp_path / "whole.stl")
    data = (tmp_path / "whole.stl").read_bytes()
    (tmp_path / "part.stl").write_bytes(data[: 84 + 50 * 7])
    with pytest.raises(ValueError, match=r"part\.stl is incomplete"):
        MeshCloud(tmp_path / "part.stl")


def test_other_things_named_as_meshes(tmp_path):
    for ending in (".stl", ".vtk", ".vtp", ".vtu"):
        (tmp_path / f"page{ending}").write_text("<html>404 not found</html>\n" * 20)
        with pytest.raises(ValueError, match=rf"page\{ending} .*incomplete or"):
            MeshCloud(tmp_path / f"page{ending}")


def test_vertices_have_no_weights(tmp_path):
    checkpoint(tmp_path)
    pyvista.PolyData(sphere().points).save(tmp_path / "cloud.vtp")
    for location in ("points", "cells"):
        arguments = tmp_path, tmp_path / "cloud.vtp", tmp_path / f"{location}.vtp"
        with pytest.raises(ValueError, match=r"no faces or volumes.*56 cells are.*weights=false"):
            ask(*arguments, location=location)
        ask(*arguments, location=location, weights=False)


def test_cells_without_points(tmp_path):
    checkpoint(tmp_path)
    grid = volume()
    cells, kinds = np.append(grid.cells, 0), np.append(grid.celltypes, 0)
    pyvista.UnstructuredGrid(cells, kinds, grid.points).save(tmp_path / "a.vtu")
    with pytest.raises(ValueError, match=rf"1 cells have no points.* index {grid.n_cells}; rem"):
        ask(tmp_path, tmp_path / "a.vtu", tmp_path / "out.vtu", location="cells")
    ask(tmp_path, tmp_path / "a.vtu", tmp_path / "out.vtu")


@pytest.mark.parametrize("device", ["cuda:99", "gpu"])
def test_a_device_that_is_absent(device, tmp_path):
    with pytest.raises(ValueError, match=f"device={device} is not to be had here.*device=cpu"):
        ask(tmp_path, "a.vtp", "b.vtp", device=device)


def test_one_home_for_all_paths(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    checkpoint(tmp_path)
    sphere().save(tmp_path / "body.vtp")
    ask("~", "~/body.vtp", "~/new/out.vtp")
    before = (tmp_path / "new" / "out.vtp").read_bytes()
    for same in ("~/new/out.vtp", "new/out.vtp", "new/../new/out.vtp"):
        with pytest.raises(FileExistsError, match="not overwritten"):
            ask("~", "body.vtp", same)
    assert (tmp_path / "new" / "out.vtp").read_bytes() == before
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["out.vtp"]
    ask("~", "body.vtp", "~no one's.vtp")
    assert (tmp_path / "~no one's.vtp").is_file()


def test_a_write_that_fails_leaves_nothing(tmp_path, monkeypatch):
    checkpoint(tmp_path)
    sphere().save(tmp_path / "body.vtp")
    output = tmp_path / "new" / "out.vtp"

    def fill_the_disk(mesh, file):
        Path(file).write_text("half a")
        raise OSError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(pyvista.PolyData, "save", fill_the_disk)
        with pytest.raises(OSError, match="No space left"):
            ask(tmp_path, tmp_path / "body.vtp", output)
    assert not list(output.parent.iterdir())
    ask(tmp_path, tmp_path / "body.vtp", output)


@pytest.mark.parametrize("suffix", [".vtp", ".vtk"])
def test_a_full_disk_is_an_error(tmp_path, suffix):
    checkpoint(tmp_path)
    sphere().save(tmp_path / "body.vtp")
    output = tmp_path / "new" / f"out{suffix}"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            ask(tmp_path, tmp_path / "body.vtp", output)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list(output.parent.iterdir())


def test_what_vtk_cannot_write_is_an_error(tmp_path, monkeypatch):
    checkpoint(tmp_path)
    sphere().save(tmp_path / "body.vtp")
    monkeypatch.setattr(pyvista.PolyData, "save", lambda mesh, file: None)
    with pytest.raises(OSError, match=r"out\.vtp cannot be written"):
        ask(tmp_path, tmp_path / "body.vtp", tmp_path / "out.vtp")


def test_values_stand_as_they_are():
    odd = "runs/a=b [1] #2: {x}, 'y' null.vtp"
    given = parse([f"checkpoint={odd}", "input=1e3", "output=7", "suffix=[0]"])
    assert (given.checkpoint, given.input, given.output) == (odd, "1e3", "7")
    assert given.suffix == "[0]"
    assert (given.inputs, given.weights, given.chunk_size) == (None, None, 65536)
    paths = ["checkpoint=a", "input=b", "output=c"]
    for text, value in (("true", True), ("False", False), ("null", None)):
        assert parse([*paths, f"weights={text}"]).weights is value
    assert parse([*paths, "chunk_size=12"]).chunk_size == 12
    for text, names in (
        ("[a,b]", ["a", "b"]),
        ("a, b", ["a", "b"]),
        ("[]", []),
        ("", []),
        ('["a,b", 1]', ["a,b", "1"]),
        ("p [Pa]", ["p [Pa]"]),
    ):
        assert parse([*paths, f"inputs={text}"]).inputs == names


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("chunksize=3", r"chunksize=3: expected key=value.*checkpoint,.*device"),
        ("body.vtp", r"body\.vtp: expected key=value"),
        ("chunk_size=1e3", r"chunk_size=1e3: expected a whole number"),
        ("weights=areas", r"weights=areas: expected true, false or null"),
        ("input=", r"input= missing, each with a path"),
    ],
)
def test_values_that_do_not_fit(argument, message):
    with pytest.raises(ValueError, match=message):
        parse(["checkpoint=a", "input=b", "output=c", argument])


def test_paths_of_the_shell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    checkpoint(tmp_path)
    for number, name in enumerate(("[1].vtp", "Part #1.vtp", "a: b.vtp", "{x}=$y.vtp")):
        sphere().save(tmp_path / name)
        main(["checkpoint=.", f"input={name}", f"output={number} #{name}", "device=cpu"])
        assert "pressure" in pyvista.read(tmp_path / f"{number} #{name}").point_data


@pytest.mark.parametrize("offset", [5e6, -5e6])
def test_coordinates_far_from_zero(offset, tmp_path):
    model, statistics = checkpoint(tmp_path)
    mesh = sphere()
    near = torch.from_numpy(mesh.points.astype(np.float64))
    statistics.means["embedding"] = torch.full((3,), offset)
    statistics.save(tmp_path / "normalization.npz")
    mesh.points = near.numpy() + offset
    mesh.save(tmp_path / "body.vtp")
    assert pyvista.read(tmp_path / "body.vtp").points.dtype == np.float64
    for location in ("points", "cells"):
        output = tmp_path / f"{location}.vtp"
        ask(tmp_path, tmp_path / "body.vtp", output, location=location)
        written = pyvista.read(output)
        mesh.points = near.numpy()
        x = near if location == "points" else torch.from_numpy(mesh.cell_centers().points)
        mesh.save(tmp_path / f"near {location}.vtp")
        weights = MeshCloud(tmp_path / f"near {location}.vtp", location).weights().float()
        z = (x / statistics.stds["embedding"]).float()
        with torch.no_grad():
            out = model(torch.zeros(1, len(z), 0), z[None], weights=weights[None])[0, :, 0]
        expected = out * statistics.stds["target"][0] + statistics.means["target"][0]
        # Positions in float64 are right to 1e-9 here, in float32 to 0.5.
        data = written.point_data if location == "points" else written.cell_data
        np.testing.assert_allclose(data["pressure"], expected, rtol=1e-5, atol=1e-5)


def test_models_made_of_cano(tmp_path):
    model, statistics = checkpoint(tmp_path, weights=False)
    fixed = FixedSizes(3)
    fixed.load_state_dict(model.state_dict())
    fixed.save(str(tmp_path / "CANO.0.3.mdlus"))
    sphere().save(tmp_path / "body.vtp")
    ask(tmp_path, tmp_path / "body.vtp", tmp_path / "out.vtp")
    expected = by_hand(model, statistics, torch.from_numpy(np.array(sphere().points)))
    found = pyvista.read(tmp_path / "out.vtp")["pressure"]
    np.testing.assert_allclose(found, expected[:, 0], rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="chunk_size >= 1 or None, got 0"):
        ask(tmp_path, tmp_path / "body.vtp", tmp_path / "no.vtp", chunk_size=0)


def test_the_command_line(tmp_path, capsys):
    checkpoint(tmp_path)
    sphere().save(tmp_path / "body.vtp")
    output = tmp_path / "new" / "out.vtp"
    command = ["-m", "physicsnemo_cano.predict", f"checkpoint={tmp_path}", "device=cpu"]
    done = subprocess.run(
        [sys.executable, *command, f"input={tmp_path / 'body.vtp'}", f"output={output}"],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    assert f"writes pressure, shear to {output}" in done.stdout
    assert "pressure" in pyvista.read(output).point_data
    for arguments, message in (
        (["inptu=a.vtp"], "inptu"),
        (["input=a.vtp"], "checkpoint"),
        ([f"checkpoint={tmp_path}", "input=a.vtp", "output=b.vtp"], r"No mesh at .*a\.vtp"),
    ):
        with pytest.raises(SystemExit, match=message):
            main(arguments)
    main(["--help"])
    assert "chunk_size" in capsys.readouterr().out


@pytest.mark.parametrize("binary", [True, False])
def test_legacy_files_that_end_before_their_faces(binary, tmp_path):
    """pyvista gives them a vertex at every point, as if they were clouds."""
    checkpoint(tmp_path)
    sphere().save(tmp_path / "whole.vtk", binary=binary)
    data = (tmp_path / "whole.vtk").read_bytes()
    (tmp_path / "cut.vtk").write_bytes(data[: data.index(b"POLYGONS")])
    with pytest.raises(ValueError, match=r"incomplete or no mesh .*56 points and no cells"):
        ask(tmp_path, tmp_path / "cut.vtk", tmp_path / "out.vtk", weights=False)
    assert not (tmp_path / "out.vtk").exists()


def test_large_values_of_models_without_normalisation(tmp_path):
    """A pressure of 1e7 Pa is no fill value where the model takes it as it is; 9.97e36 is."""
    model, statistics = checkpoint(tmp_path, channels=1, normalize={"embedding": "channels"})
    mesh = sphere()
    mesh["p"] = np.linspace(1e7, 2e7, mesh.n_points)
    mesh.save(tmp_path / "body.vtp")
    ask(tmp_path, tmp_path / "body.vtp", tmp_path / "out.vtp", inputs=["p"], weights=False)
    fx, x = (torch.from_numpy(np.array(a, dtype=np.float32)) for a in (mesh["p"], mesh.points))
    expected = by_hand(model, statistics, x, fx[:, None])[:, 0]
    found = pyvista.read(tmp_path / "out.vtp")["pressure"]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    mesh["p"][3] = 9.96921e36
    mesh.save(tmp_path / "body.vtp")
    with pytest.raises(ValueError, match=r"9.96921e\+36 at index 3"):
        ask(tmp_path, tmp_path / "body.vtp", tmp_path / "no.vtp", inputs=["p"], weights=False)


def car_surface(car):
    """The file has vertices and the triangles' centroids, but not which vertices they join."""
    vertices, centroids = car["vertices"].double().numpy(), car["centroids"].double().numpy()
    _, near = cKDTree(vertices).query(centroids, k=20)
    triples = np.array(list(itertools.combinations(range(20), 3)))
    faces = []
    for around, centroid in zip(near, centroids, strict=True):
        candidates = around[triples]
        off = np.abs(vertices[candidates].mean(1) - centroid).max(1)
        assert off.min() < 2e-6
        faces.append(candidates[off.argmin()])
    return pyvista.PolyData.from_regular_faces(vertices.astype(np.float32), np.array(faces))


@pytest.mark.skipif(not CARS.exists(), reason="real cars are not part of the project")
def test_a_real_car(tmp_path):
    car = torch.load(CARS, weights_only=True)[0]
    mesh = car_surface(car)
    mesh["measured"] = car["press"][0].numpy()
    mesh.save(tmp_path / "car.vtp")
    model, statistics = checkpoint(tmp_path, weights=False)
    ask(tmp_path, tmp_path / "car.vtp", tmp_path / "out.vtp", chunk_size=1000)
    written = pyvista.read(tmp_path / "out.vtp")
    expected = by_hand(model, statistics, car["vertices"])
    np.testing.assert_allclose(written["pressure"], expected[:, 0], rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(written["measured"], car["press"][0])


def test_parameters_are_inputs_of_all_points(tmp_path):
    model, statistics = checkpoint(tmp_path, channels=3, weights=False)
    mesh = sphere()
    mesh.point_data["heat"] = np.linspace(0, 1, mesh.n_points)
    mesh.save(tmp_path / "in.vtp")
    request = parse(
        [
            f"checkpoint={tmp_path}",
            f"input={tmp_path / 'in.vtp'}",
            f"output={tmp_path / 'out.vtp'}",
            "inputs=heat",
            "parameters=[0.25, 1e-1]",
            "device=cpu",
        ]
    )
    names = predict(request)
    written = pyvista.read(tmp_path / "out.vtp")
    fx = np.column_stack([mesh["heat"], np.full(mesh.n_points, 0.25), np.full(mesh.n_points, 0.1)])
    expected = by_hand(model, statistics, torch.tensor(mesh.points), torch.tensor(fx).float())
    found = np.column_stack([written[name] for name in names])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_parameters_alone_equal_one_token(tmp_path):
    model, statistics = checkpoint(tmp_path, channels=2, weights=False)
    sphere().save(tmp_path / "in.vtp")
    names = ask(tmp_path, tmp_path / "in.vtp", tmp_path / "out.vtp", parameters=[0.5, 0.75])
    written = pyvista.read(tmp_path / "out.vtp")
    token = torch.tensor([[0.5, 0.75]])
    expected = by_hand(model, statistics, torch.tensor(sphere().points), token)
    found = np.column_stack([written[name] for name in names])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_parameters_are_numbers():
    with pytest.raises(ValueError, match="parameters=fast: expected numbers"):
        parse(["parameters=fast"])
