# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Readers of PhysGTO's container: lists, tested frames, what is read of a file."""

import tracemalloc

import h5py
import numpy as np
import pytest

from physicsnemo_cano.datapipes import HeatTransfer
from physicsnemo_cano.datapipes.physgto import write_trajectory

SIZES = {"a.h5": 3, "b.h5": 5, "c.h5": 4, "d.h5": 3}  # nodes an axis
N_FRAMES = 70


def trajectory(number, side, n_frames=N_FRAMES):
    """A square of side 2 in triangles, whose fields say trajectory, frame and node."""
    axis = np.linspace(0, 2, side)
    x, y = (part.ravel() for part in np.meshgrid(axis, axis, indexing="ij"))
    corner = (np.arange(side - 1)[:, None] * side + np.arange(side - 1)).ravel()
    lower = np.stack([corner, corner + side, corner + 1], 1)
    upper = np.stack([corner + side, corner + side + 1, corner + 1], 1)
    u = 1000 * number + np.arange(n_frames)[:, None] + np.arange(x.size) / 100
    return {
        "node_pos": np.stack([x, y], 1),
        "cells": np.concatenate([lower, upper]),
        "node_type": np.arange(x.size) % 5,
        "t": 0.1 * np.arange(n_frames)[:, None],
        "conditions": number + np.arange(5) / 10,
        **{"u": u, "v": -u, "p": u, "T": u},
    }


@pytest.fixture
def folder(tmp_path):
    for number, (name, side) in enumerate(SIZES.items()):
        with open(tmp_path / name, "w+b") as stream:
            write_trajectory(stream, trajectory(number, side))
    (tmp_path / "train.txt").write_text("a.h5\n\nb.h5\nc.h5\n")
    (tmp_path / "test.txt").write_text("d.h5")
    return tmp_path


def test_a_test_has_fifty_frames_from_the_first_on(folder):
    test, train = HeatTransfer(folder, "test"), HeatTransfer(folder)
    for reader, number in ((test, 3), (train.give(0.4), 2)):
        sample, _ = reader[0]
        assert sample["target"].shape[1] == 2 * 50
        np.testing.assert_allclose(sample["fx"][0, :10:2], 1000 * number + np.arange(5))
        np.testing.assert_allclose(sample["target"][0, ::2], 1000 * number + np.arange(5, 55))


def test_only_the_frames_of_a_window_are_read(folder, monkeypatch):
    read, get = [], h5py.Dataset.__getitem__

    def watched(dataset, key, **options):
        values = get(dataset, key, **options)
        read.append((dataset.name, values.shape))
        return values

    monkeypatch.setattr(h5py.Dataset, "__getitem__", watched)
    reader = HeatTransfer(folder)
    assert not read
    assert reader[1][0]["fx"].shape == (25, 20)
    assert {name: shape for name, shape in read if shape and shape[-1] == 25} == {
        "/u": (10, 25),
        "/v": (10, 25),
        "/node_type": (25,),
    }


@pytest.mark.parametrize("split", ["train", "test"])
def test_memory_does_not_grow_with_the_number_of_files(tmp_path, split):
    peaks = []
    for n in (4, 40):
        folder = tmp_path / str(n)
        folder.mkdir()
        for index in range(n):
            with open(folder / f"{index}.h5", "w+b") as stream:
                write_trajectory(stream, trajectory(index, 30))
        for name in ("train.txt", "test.txt"):
            kept = range(n - 1) if name.startswith(split) else [n - 1]
            (folder / name).write_text("\n".join(f"{index}.h5" for index in kept))
        reader = HeatTransfer(folder, split)
        tracemalloc.start()
        for index in range(len(reader)):
            reader[index]
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] - peaks[0] < N_FRAMES * 30**2 * 4  # bytes of one field of one file


def test_lists_of_other_machines_and_absolute_paths(folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("lists")
    (other / "train.txt").write_text(f"{folder}/a.h5\n/their/data/train/b.h5\n")
    (other / "test.txt").write_text("sub/d.h5\n")
    with pytest.raises(FileNotFoundError, match=r"names /their/data/train/b\.h5, .*\(1 of 2 files"):
        HeatTransfer(other)
    (other / "b.h5").write_bytes((folder / "b.h5").read_bytes())
    (other / "sub").mkdir()
    (other / "sub/d.h5").write_bytes((folder / "d.h5").read_bytes())
    train, test = HeatTransfer(other), HeatTransfer(other, "test")
    assert [len(train[i][0]["fx"]) for i in (0, 1)] == [9, 25]
    assert test[0][0]["fx"][0, 0] == 3000
    (other / "test.txt").write_text("/their/data/test/b.h5\n")
    with pytest.raises(ValueError, match=r"name .*b\.h5 more than once"):
        HeatTransfer(other)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("cells", np.array([[1, 2, 25]]), r"b\.h5: cells holds 1 to 25, expected .* 0 to 24"),
        ("node_type", np.full(25, 5), r"node_type holds 5 to 5, expected .* 0 to 4"),
        ("node_type", np.full(25, 0.5), r"node_type holds 0\.5 to 0\.5, expected whole"),
    ],
)
def test_numbers_of_nodes_and_kinds_are_in_their_ranges(folder, name, value, message):
    with h5py.File(folder / "b.h5", "a") as stream:
        del stream[name]
        stream[name] = value
    with pytest.raises(ValueError, match=message):
        HeatTransfer(folder)[1]
