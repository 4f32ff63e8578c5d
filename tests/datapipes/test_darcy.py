# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

import os
from pathlib import Path

import h5py
import numpy as np
import pytest
import scipy.io
import torch

from physicsnemo_cano.datapipes import Darcy
from physicsnemo_cano.datapipes.matlab import write_matlab

TRAIN, TEST = (f"piececonst_r421_N1024_smooth{k}.mat" for k in (1, 2))


def fields(n, s, seed=0, dtype=np.float32):
    random = np.random.default_rng(seed)
    coeff = np.where(random.normal(size=(n, s, s)) > 0, 12, 3).astype(dtype)
    return {"coeff": coeff, "sol": random.uniform(size=(n, s, s)).astype(dtype)}


def write_v5(path, arrays):
    scipy.io.savemat(path, arrays)


def write_generated(folder, n_train=6, n_test=4, s=9, write=write_matlab, dtype=np.float32):
    (folder / "provenance.json").write_text("{}")
    arrays = fields(n_train, s, 1, dtype), fields(n_test, s, 2, dtype)
    for name, part in zip((TRAIN, TEST), arrays, strict=True):
        write(folder / name, part)
    return arrays


def write_published(path, n=1024, s=421):
    """A file of full size that takes no space on disk: what is not written is zero."""
    coeff, sol = fields(1, s).values()
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, sample in (("coeff", coeff), ("sol", sol)):
            file.create_dataset(name, (s, s, n), dtype=np.float64, chunks=(s, s, 1))
            for k in (0, 199, 999):
                file[name][..., min(k, n - 1)] = (k + 1) * sample[0].T
    return coeff[0], sol[0]


@pytest.mark.parametrize(
    ("split", "name", "n", "more", "stride"),
    [("test", TEST, 200, {}, 5), ("train", TRAIN, 1000, {"stride": 20}, 20)],  # 5 takes seconds
)
def test_published_layout(split, name, n, more, stride, tmp_path):
    arrays = {name: write_published(tmp_path / name) for name in (TRAIN, TEST)}
    reader = Darcy(tmp_path, split, **more)
    s = 1 + 420 // stride
    assert (len(reader), reader.source, reader.spatial_shape) == (n, "published", (s, s))
    sample, _ = reader[n - 1]
    assert {key: tuple(sample[key].shape) for key in sample.keys()} == {  # noqa: SIM118
        "embedding": (s * s, 2),
        "fx": (s * s, 1),
        "target": (s * s, 1),
    }
    for key, whole in zip(("fx", "target"), arrays[name], strict=True):
        assert sample[key].dtype == torch.float32
        expected = n * whole[::stride, ::stride].astype(np.float64)
        np.testing.assert_array_equal(sample[key].reshape(s, s), expected.astype(np.float32))


@pytest.mark.parametrize("write", [write_v5, write_matlab])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_generated_layout(write, dtype, tmp_path):
    train, test = write_generated(tmp_path, write=write, dtype=dtype)
    for split, arrays, n in (("train", train, 6), ("test", test, 4)):
        reader = Darcy(tmp_path, split, stride=2)
        assert (len(reader), reader.source, reader.spatial_shape) == (n, "generated", (5, 5))
        for k in range(n):
            sample, metadata = reader[k]
            assert metadata["index"] == k
            for key, name in (("fx", "coeff"), ("target", "sol")):
                expected = arrays[name][k, ::2, ::2].astype(np.float32)
                np.testing.assert_array_equal(sample[key].reshape(5, 5), expected)
    fewer = [Darcy(tmp_path, split, n_train=2, n_test=3, stride=2) for split in ("train", "test")]
    assert [len(reader) for reader in fewer] == [2, 3]
    with pytest.raises(ValueError, match=r"data\.n_test=5: choose from 1 to 4"):
        Darcy(tmp_path, "test", n_test=5, stride=2)


def test_coordinates_and_weights(tmp_path):
    write_generated(tmp_path)
    sample, _ = Darcy(tmp_path, stride=2, weights=True)[0]
    grid = sample["embedding"].reshape(5, 5, 2)
    assert grid[3, 1].tolist() == [0.75, 0.25]  # the first axis of the array is x
    assert (grid[0, 0].tolist(), grid[-1, -1].tolist()) == ([0, 0], [1, 1])
    weights = sample["weights"].reshape(5, 5)
    assert weights.sum().item() == pytest.approx(1)
    assert weights[2, 2].item() == pytest.approx(1 / 16)
    assert weights[0, 0].item() == pytest.approx(1 / 64)
    with pytest.raises(ValueError, match=r"data\.stride=5: .*smooth1\.mat has 8 cells an axis"):
        Darcy(tmp_path)
    with pytest.raises(ValueError, match=r"data\.stride=0"):
        Darcy(tmp_path, stride=0)


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


def test_nothing_there(tmp_path):
    for root in (None, tmp_path / "absent", tmp_path):
        with pytest.raises(FileNotFoundError, match=r"smooth1\.mat.*generate\.py") as error:
            Darcy(root)
        assert str(root or "data.root is not given") in str(error.value)
    write_matlab(tmp_path / TRAIN, fields(2, 9))
    with pytest.raises(FileNotFoundError, match=r"lacks piececonst_r421_N1024_smooth2\.mat"):
        Darcy(tmp_path)


def test_published_files_of_another_layout(tmp_path):
    write_published(tmp_path / TRAIN, n=999)
    write_published(tmp_path / TEST, s=241)
    with pytest.raises(ValueError, match=r"smooth1\.mat holds 999 samples, expected at least 1000"):
        Darcy(tmp_path)
    with pytest.raises(
        ValueError,
        match=r"smooth2\.mat holds coeff \(1024, 241, 241\), .*expected coeff \(n, 421, 421\)",
    ):
        Darcy(tmp_path, "test")
    write_matlab(tmp_path / TRAIN, {"coeff": fields(2, 9)["coeff"]})
    with pytest.raises(ValueError, match=r"smooth1\.mat holds coeff .*expected coeff .*, sol"):
        Darcy(tmp_path)
    (tmp_path / "parts").mkdir()  # generated: any size, but one size
    write_matlab(tmp_path / TRAIN, {"coeff": fields(2, 9)["coeff"], "sol": fields(3, 9)["sol"]})
    with pytest.raises(ValueError, match=r"sol \(3, 9, 9\), expected coeff \(n, s, s\)"):
        Darcy(tmp_path)


@pytest.mark.skipif("NEURALOP_DARCY" not in os.environ, reason="needs neuraloperator's files")
def test_neuraloperators_own_files():
    folder = Path(os.environ["NEURALOP_DARCY"])
    assert (len(Darcy(folder)), len(Darcy(folder, "test"))) == (1000, 50)
    sample, _ = Darcy(folder / "darcy_test_32.pt", "test")[49]
    assert set(sample["fx"].unique().tolist()) == {0, 1}
    assert sample["target"].max() > 1
