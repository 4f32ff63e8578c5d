# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

import os
from pathlib import Path

import pytest
import torch

from physicsnemo_cano.datapipes import Darcy
from tests.datapipes.small_sets import SETS, uniform, write


def test_coordinates_weights_and_strides(tmp_path):
    SETS["darcy"]().write(tmp_path)  # 11 nodes
    (tmp_path / "provenance.json").touch()
    sample, _ = Darcy(tmp_path, stride=2, weights=True)[0]
    grid = sample["embedding"].reshape(6, 6, 2)
    assert grid[3, 1].tolist() == pytest.approx([0.6, 0.2])  # the first axis of the array is x
    assert (grid[0, 0].tolist(), grid[-1, -1].tolist()) == ([0, 0], [1, 1])
    weights = sample["weights"].reshape(6, 6)
    assert weights.sum().item() == pytest.approx(1)
    assert weights[2, 2].item() == pytest.approx(1 / 25)
    assert weights[0, 0].item() == pytest.approx(1 / 100)
    for stride in (0, 4):
        with pytest.raises(ValueError, match=rf"data\.stride={stride}: .*mat has 10 cells an axis"):
            Darcy(tmp_path, stride=stride)


def test_permeability_and_pressure_have_one_size(tmp_path):
    SETS["darcy"]().write(tmp_path)
    (tmp_path / "parts").mkdir()  # generated: any size, but one size
    arrays = {"coeff": uniform(2, 9, 9), "sol": uniform(3, 9, 9)}
    write(tmp_path / "piececonst_r421_N1024_smooth1.mat", arrays)
    with pytest.raises(ValueError, match=r"sol \(3, 9, 9\), expected coeff \(n, s, s\)"):
        Darcy(tmp_path)


@pytest.fixture
def tensors(tmp_path):
    for name, n, s in (("train_16", 12, 16), ("test_16", 5, 16), ("test_32", 5, 32)):
        x, y = torch.rand(n, s, s) > 0.5, torch.rand(n, s, s)
        torch.save({"x": x, "y": y}, tmp_path / f"darcy_{name}.pt")
    return tmp_path


def test_tensor_files(tensors):
    train, test = Darcy(tensors), Darcy(str(tensors), "test")
    assert (len(train), len(test), train.source) == (12, 5, "published")
    assert train.spatial_shape == test.spatial_shape == (16, 16)
    finer = Darcy(tensors / "darcy_test_32.pt", "test")
    assert (len(finer), finer.spatial_shape, finer.path.stem) == (5, (32, 32), "darcy_test_32")
    for reader, name in ((train, "train_16"), (test, "test_16"), (finer, "test_32")):
        data = torch.load(tensors / f"darcy_{name}.pt")
        sample, _ = reader[2]
        s = reader.spatial_shape[0]
        assert sample["fx"].dtype == torch.float32
        torch.testing.assert_close(sample["fx"].reshape(s, s), data["x"][2].float())
        torch.testing.assert_close(sample["target"].reshape(s, s), data["y"][2])
        grid = sample["embedding"].reshape(s, s, 2)
        assert grid[3, s // 2].tolist() == [3 / s, 0.5]
    with pytest.raises(ValueError, match=r"darcy_test_32\.pt is to test on; to train give its"):
        Darcy(tensors / "darcy_test_32.pt")


def test_tensor_files_of_another_layout(tensors):
    torch.save({"x": torch.ones(3, 16, 16), "u": 1}, tensors / "darcy_test_16.pt")
    with pytest.raises(ValueError, match=r"test_16\.pt holds x \(3, 16, 16\), u \(\), expected"):
        Darcy(tensors, "test")
    (tensors / "darcy_test_16.pt").write_text("x and y")
    with pytest.raises(ValueError, match=r"darcy_test_16\.pt is no file of tensors"):
        Darcy(tensors, "test")
    (tensors / "darcy_test_16.pt").unlink()
    with pytest.raises(FileNotFoundError, match=r"No file .*darcy_test_16\.pt\. Expected either"):
        Darcy(tensors, "test")
    torch.save({}, tensors / "darcy_train_32.pt")
    with pytest.raises(ValueError, match=r"darcy_train_16\.pt, darcy_train_32\.pt: which"):
        Darcy(tensors)


@pytest.mark.skipif("NEURALOP_DARCY" not in os.environ, reason="needs neuraloperator's files")
def test_neuraloperators_own_files():
    folder = Path(os.environ["NEURALOP_DARCY"])
    assert (len(Darcy(folder)), len(Darcy(folder, "test"))) == (1000, 50)
    sample, _ = Darcy(folder / "darcy_test_32.pt", "test")[49]
    assert set(sample["fx"].unique().tolist()) == {0, 1}
    assert sample["target"].max() > 1
