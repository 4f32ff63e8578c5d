import h5py
import numpy as np
import pytest
import scipy.io
import torch

from physicsnemo_cano.datapipes import Plasticity
from physicsnemo_cano.datapipes.matlab import write_matlab

NAME = "plas_N987_T20.mat"
FILLED = (0, 899, 907, 986)


def series(i):
    return np.random.default_rng(i).normal(size=(101, 31, 20, 4)).astype(np.float32)


def write(folder, n=10, ni=6, nj=4, name="plas_N10_T20.mat", seed=0):
    random = np.random.default_rng(seed)
    arrays = {
        "input": random.normal(size=(n, ni)).astype(np.float32),
        "output": random.normal(size=(n, ni, nj, 20, 4)).astype(np.float32),
    }
    write_matlab(folder / name, arrays)
    (folder / "provenance.json").touch()
    return arrays


@pytest.mark.slow
def test_published_round_trip(tmp_path):
    """As published, of version 7.3; all but a few samples are zeros that take no space."""
    die = np.random.default_rng(0).normal(size=(987, 101))
    with h5py.File(tmp_path / NAME, "w") as file:
        file["input"] = die.T
        output = file.create_dataset(
            "output", (4, 20, 31, 101, 987), np.float32, chunks=(4, 20, 31, 101, 1)
        )
        for i in FILLED:
            output[..., i] = series(i).T
    train, test = Plasticity(tmp_path, "train"), Plasticity(tmp_path, "test")
    assert (len(train), len(test), train.source) == (900, 80, "published")
    assert train.spatial_shape == (101, 31)
    for reader, index, i in ((train, 0, 0), (train, 899, 899), (test, 0, 907), (test, 79, 986)):
        sample, _ = reader[index]
        target = sample["target"].reshape(101, 31, 20, 4).numpy()
        np.testing.assert_array_equal(target, series(i))
        height = sample["fx"].reshape(101, 31).numpy()
        np.testing.assert_array_equal(height, np.tile(die[i, :, None].astype(np.float32), 31))


def test_a_sample_is_a_whole_series(tmp_path):
    arrays = write(tmp_path)
    train, test = Plasticity(tmp_path, "train"), Plasticity(tmp_path, "test")
    assert (len(train), len(test), test.source) == (8, 2, "generated")
    assert test.spatial_shape == (6, 4)
    sample, _ = test[1]
    assert {key: tuple(sample[key].shape) for key in sample.keys()} == {  # noqa: SIM118
        "embedding": (24, 2),
        "fx": (24, 1),
        "times": (20,),
        "target": (24, 80),
    }
    assert all(value.dtype == torch.float32 for value in sample.values())
    target = sample["target"].reshape(6, 4, 20, 4).numpy()
    np.testing.assert_array_equal(target, arrays["output"][9])
    height = sample["fx"].reshape(6, 4).numpy()
    np.testing.assert_array_equal(height, np.tile(arrays["input"][9, :, None], 4))
    points = sample["embedding"].reshape(6, 4, 2)
    assert points[1, 0].tolist() == [10, 0]
    assert points[5, 3].tolist() == [50, 15]
    torch.testing.assert_close(sample["times"], torch.linspace(0.05, 1, 20))
    assert [str(channel) for channel in test.targets][2] == "displacement x [mm]"


def test_files_before_version_73_load_too_and_fewer_samples_can_be_taken(tmp_path):
    arrays = write(tmp_path)
    scipy.io.savemat(tmp_path / "plas_N10_T20.mat", arrays)
    few = Plasticity(tmp_path, "test", n_test=1)
    assert len(few) == 1
    target = few[0][0]["target"].reshape(6, 4, 20, 4).numpy()
    np.testing.assert_array_equal(target, arrays["output"][8])
    with pytest.raises(ValueError, match=r"data\.n_train=9: choose from 1 to 8"):
        Plasticity(tmp_path, n_train=9)


def test_without_the_mark_a_small_set_is_not_taken_for_the_published_one(tmp_path):
    write(tmp_path)
    (tmp_path / "provenance.json").unlink()
    with pytest.raises(ValueError, match=r"input \(10, 6\).*expected input \(987, 101\)"):
        Plasticity(tmp_path)


def test_nothing_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"No plas_N\*_T20\.mat in .*absent.*generate\.py"):
        Plasticity(tmp_path / "absent")
    with pytest.raises(FileNotFoundError, match=r"data\.root is not given.*generate\.py"):
        Plasticity(None)


def test_wrong_files_are_refused(tmp_path):
    arrays = write(tmp_path)
    write(tmp_path, name="plas_N20_T20.mat")
    with pytest.raises(ValueError, match=r"plas_N10_T20\.mat, plas_N20_T20\.mat: keep one"):
        Plasticity(tmp_path)
    (tmp_path / "plas_N20_T20.mat").unlink()
    path = tmp_path / "plas_N10_T20.mat"
    write_matlab(path, {"output": arrays["output"]})
    with pytest.raises(ValueError, match=r"N10_T20\.mat holds output.*expected input \(n, i\)"):
        Plasticity(tmp_path)
    write_matlab(path, {"input": arrays["input"][:, :5], "output": arrays["output"]})
    with pytest.raises(ValueError, match=r"input \(10, 5\), output \(10, 6, 4, 20, 4\)"):
        Plasticity(tmp_path)
    write_matlab(path, {"input": arrays["input"][:1], "output": arrays["output"][:1]})
    with pytest.raises(ValueError, match="1 samples of 6 x 4 nodes"):
        Plasticity(tmp_path)
