# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
"""What holds for every reader of the benchmarks, on small sets of their layouts."""

import math
import re

import numpy as np
import pytest
import torch

from physicsnemo_cano import datapipes
from physicsnemo_cano.datapipes.quadrature import node_weights
from tests.datapipes.small_sets import PUBLISHED, SETS, write

ALL = {name: make() for name, make in SETS.items()}
# Numbers of nodes or kinds, and what is converted whatever it is.
ANY_TYPE = {"MeshElements", "elements", "Faces", "cells", "node_type", "t", "triangles.npy"}
published = pytest.mark.parametrize("name", PUBLISHED)


def some(condition):
    """Only the sets for which a condition holds."""
    names = [name for name, small in ALL.items() if condition(small)]
    return pytest.mark.parametrize("small", names, indirect=True)


@pytest.fixture(params=ALL)
def small(request, tmp_path):
    return ALL[request.param].write(tmp_path)


@pytest.fixture
def marked(small, tmp_path):
    """That the set is a generated one."""
    (tmp_path / "provenance.json").touch()
    return small


def read(small, folder):
    for split in ("train", "test"):
        reader = small.open(folder, split)
        for index in range(min(len(reader), 8)):
            reader[index]


def check(sample, small, i):
    """Compare a sample with the files' ``i``-th; of a trajectory return its first frame."""
    fields, first = {k: np.asarray(v[i], np.float32) for k, v in small.fields.items()}, 0
    if "frames" in fields:
        frames = fields.pop("frames").swapaxes(0, 1)  # (N, T, C)
        n, _, channels = frames.shape
        length = 5 + sample["target"].shape[1] // channels
        given = sample["fx"].numpy()[:, :channels]
        (first,) = (t for t in range(frames.shape[1]) if np.array_equal(frames[:, t], given))
        fx, target = np.split(frames[:, first : first + length], [5], axis=1)
        statics = fields.pop("statics", np.empty((n, 0)))
        fields |= {"fx": np.hstack([fx.reshape(n, -1), statics]), "target": target.reshape(n, -1)}
    fields.setdefault("fx", fields["embedding"][:, :0])
    assert set(sample.keys()) == set(fields)
    for key, values in fields.items():
        assert sample[key].dtype == torch.float32
        np.testing.assert_allclose(sample[key], values, rtol=1e-6)
    return first


def test_every_reader_is_here():
    bases = {"Channel", "FieldReader", "PhysGTOReader", "TrajectoryReader"}
    assert {small.reader.__name__ for small in ALL.values()} == set(datapipes.__all__) - bases


@pytest.mark.parametrize("mark", ["provenance.json", "parts"])
def test_samples_are_the_files(mark, small, tmp_path):
    (tmp_path / mark).mkdir()
    train, test = small.open(tmp_path), small.open(str(tmp_path), "test")
    assert (len(train), len(test)) == small.split
    assert train.source == test.source == small.marked
    assert train.spatial_shape == test.spatial_shape == small.shape
    for part, before in ((train, 0), (test, len(train))):
        for index in (0, 1, len(part) - 1):
            sample, metadata = part[index]
            assert metadata["index"] == index
            assert check(sample, small, before + index) == 0 or part is train
    points = small.fields["embedding"]
    assert len(train.coordinates) == points[0].shape[-1]
    same = len({len(x) for x in points}) == 1
    assert train.sizes() == (None if same else [len(x) for x in points[: len(train)]])


@some(lambda small: any(name.endswith(".mat") for name in small.files))
@pytest.mark.parametrize("old", [False, True])
def test_matlab_files_of_either_kind(old, marked, tmp_path):
    for kind in (np.float32, np.float64):
        for file, arrays in marked.files.items():
            write(tmp_path / file, {k: v.astype(kind) for k, v in arrays.items()}, old)
        for split, index, i in (("train", 3, 3), ("test", 1, 9)):
            check(marked.open(tmp_path, split)[index][0], marked, i)


@some(lambda small: "frames" in small.fields)
def test_windows_begin_anywhere_in_their_trajectories_and_tests_at_the_first_frame(
    marked, tmp_path
):
    train, test = marked.open(tmp_path, windows=3), marked.open(tmp_path, "test")
    n_frames, _, channels = marked.fields["frames"][0].shape
    assert (len(train), len(test)) == (24, 2)
    assert test[1][0]["target"].shape[1] == (n_frames - 5) * channels
    starts = set()
    for epoch in range(12):
        train.set_epoch(epoch)
        for index in range(24):
            sample, _ = train[index]
            assert sample["target"].shape[1] == 5 * channels
            starts.add(check(sample, marked, index // 3))
    assert starts == set(range(n_frames - 9))


def test_the_last_are_given_for_validation(marked, tmp_path):
    train = marked.open(tmp_path)
    given = train.give(0.25)
    assert (len(train), len(given)) == (6, 2)
    for reader, index, i in ((train, 5, 5), (given, 0, 6), (given, 1, 7)):
        first = check(reader[index][0], marked, i)
        assert first == 0 or reader is train


def test_fewer_samples_leave_the_test_set_where_it_is(marked, tmp_path):
    train, test = (marked.open(tmp_path, split, n_train=3, n_test=1) for split in ("train", "test"))
    assert (len(train), len(test)) == (3, 1)
    check(train[2][0], marked, 2)
    check(test[0][0], marked, 8)
    n_test = marked.split[1]
    for split, options, message in (
        ("train", {"n_train": 9}, r"data\.n_train=9: choose from 1 to 8"),
        ("train", {"n_train": 0}, r"data\.n_train=0: choose from 1 to 8"),
        ("test", {"n_test": 101}, rf"data\.n_test=101: choose from 1 to {n_test}"),
        ("val", {}, "'train' or 'test', got 'val'"),
    ):
        with pytest.raises(ValueError, match=message):
            marked.open(tmp_path, split, **options)


def test_without_the_mark_a_small_set_is_not_taken_for_the_published_one(small, tmp_path):
    if small.unmarked:
        assert small.open(tmp_path).source == small.unmarked
    else:
        with pytest.raises(ValueError, match="expected") as error:
            small.open(tmp_path)
        assert small.reader.help in str(error.value)


def test_nothing_there(marked, tmp_path):
    reader = marked.reader
    assert re.search(r"generate\.py|physicsnemo-cano\[data\]", reader.help)
    for root, message in ((tmp_path / "absent", "absent"), (None, "data.root is not given")):
        with pytest.raises(FileNotFoundError, match=message) as error:
            reader(root)
        assert reader.help in str(error.value)
    for name in marked.files:
        file = (tmp_path / name).rename(tmp_path / "elsewhere")
        with pytest.raises(
            FileNotFoundError, match=r"lacks|No .* (in|at) |No file|names "
        ) as error:
            read(marked, tmp_path)
        assert reader.help in str(error.value)
        file.rename(tmp_path / name)


def test_damaged_files(marked, tmp_path):
    for name, content in marked.files.items():
        if name.endswith(".txt"):
            continue
        (tmp_path / name).write_text("x, y")
        kind = r"no (whole \.npy file|MATLAB file|HDF5 file|file of tensors)"
        with pytest.raises(ValueError, match=rf"{name} is {kind}"):
            read(marked, tmp_path)
        write(tmp_path / name, content)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda array: array[None], "expected"),
        (lambda array: array[..., :0], "expected"),
        (lambda array: array.astype(np.int64), "int64, expected float32 or float64"),
        (lambda array: array.astype(complex), "complex.*, expected float32 or float64"),
        (None, "expected"),
    ],
    ids=["an axis more", "nothing in it", "integers", "complex", "no array"],
)
def test_arrays_of_another_shape_or_type(change, message, marked, tmp_path):
    layouts = {
        (file if "" in arrays else "", *arrays): (file, arrays)
        for file, arrays in marked.files.items()
        if not isinstance(arrays, str)
    }
    for file, arrays in layouts.values():
        for name, array in arrays.items():
            if "float" in message and ({file, name} & ANY_TYPE or file.endswith(".pt")):
                continue
            changed = {k: v for k, v in arrays.items() if k != name}
            if change is not None:
                changed[name] = change(array)
            elif file.endswith(".npy"):
                continue
            write(tmp_path / file, changed)
            with pytest.raises(ValueError, match=message) as error:
                read(marked, tmp_path)
            for word in (file, name, *([] if "float" in message else [marked.reader.help])):
                assert word in str(error.value)
        write(tmp_path / file, arrays)


@pytest.mark.parametrize("name", SETS)
def test_too_few_samples(name, tmp_path):
    least = ALL[name].least
    small = SETS[name](least - 1).write(tmp_path)
    (tmp_path / "provenance.json").touch()
    message = rf"holds {least - 1} samples, expected at least {least}|\(0, .*expected"
    with pytest.raises(ValueError, match=message):
        small.open(tmp_path)


@some(lambda small: small.shape and not small.reader.__name__.startswith("NavierStokes"))
def test_weights_of_grids_are_their_areas(marked, tmp_path):
    reader = marked.open(tmp_path, weights=True)
    points = torch.tensor(np.asarray(marked.fields["embedding"][3], np.float32))
    expected = node_weights(points.unflatten(0, marked.shape), structured=True).flatten()
    torch.testing.assert_close(reader[3][0]["weights"], expected)


@some(lambda small: not small.shape and small.cells is None)
def test_clouds_have_no_weights_of_themselves(marked, tmp_path):
    with pytest.raises(ValueError, match=r"cloud.*data\.weights=false"):
        marked.open(tmp_path, weights=True)[0]


@some(lambda small: small.cells is not None)
def test_cells_and_the_integrals_of_their_basis_functions(marked, tmp_path):
    reader = marked.open(tmp_path, "test", weights=True)
    i = marked.split[0] + 1
    points, cells = np.asarray(marked.fields["embedding"][i]), marked.cells[i]
    edges = points[cells][:, 1:] - points[cells][:, :1]
    measure = abs(np.linalg.det(edges)) / math.factorial(points.shape[1])
    expected = np.zeros(len(points))
    np.add.at(expected, cells, measure[:, None] / cells.shape[1])
    np.testing.assert_allclose(reader[1][0]["weights"], expected, rtol=1e-4, atol=1e-9)
    elastic = marked.reader is datapipes.ElasticBlock
    held = reader.triangles if elastic else reader.cells
    np.testing.assert_array_equal(held(1) if callable(held) else held, cells)


@some(lambda small: small.reader in (datapipes.Airfoil, datapipes.Pipe))
def test_coordinates_as_input(marked, tmp_path):
    sample, _ = marked.open(tmp_path, coordinates_as_input=True)[1]
    assert torch.equal(sample["fx"], sample["embedding"])


@published
def test_published_splits(name, tmp_path):
    given = PUBLISHED[name]
    given.write(tmp_path)
    given.mark(tmp_path)
    for split, n in zip(("train", "test"), given.split, strict=True):
        with pytest.raises(ValueError, match=rf"choose from 1 to {n}$"):
            given.reader(tmp_path, split, **{f"n_{split}": 10**6}, **given.options)
    test = given.reader(tmp_path, "test", n_test=2, **given.options)
    assert test.source == "published"
    assert (test[0][0]["target"] == 5).all()
    assert not test[1][0]["target"].any()


@published
def test_published_files_are_told_by_their_shapes(name, tmp_path):
    given = PUBLISHED[name]
    given.write(tmp_path, n=100)
    with pytest.raises(ValueError, match=r"holds 100 samples, expected at least|\(100, .*expected"):
        given.reader(tmp_path)
    given.write(tmp_path)
    for file, arrays in given.files.items():
        for array, shape in arrays.items():
            if isinstance(shape, tuple):
                given.write(tmp_path, files={file: arrays | {array: (*shape[:-1], 7)}})
                split = "test" if "smooth2" in file else "train"
                with pytest.raises(ValueError, match=r"7\).*expected"):
                    given.reader(tmp_path, split, n_train=1, n_test=1, **given.options)
        given.write(tmp_path, files={file: arrays})
