import h5py
import numpy as np
import pytest
import scipy.io
import torch

from physicsnemo_cano.datapipes import NavierStokes
from physicsnemo_cano.datapipes.matlab import write_matlab

NAME = "NavierStokes_V1e-5_N1200_T20.mat"
FILLED = (0, 1, 999, 1000, 1199)


def frames(i):
    return np.random.default_rng(i).normal(size=(64, 64, 20)).astype(np.float32)


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """As published, of version 7.3; all but a few samples are zeros that take no space."""
    folder = tmp_path_factory.mktemp("fno")
    with h5py.File(folder / NAME, "w") as file:
        u = file.create_dataset(
            "u", (20, 64, 64, 1200), np.float32, chunks=(20, 64, 64, 1), compression="gzip"
        )
        for i in FILLED:
            u[..., i] = frames(i).T
    return folder


def make(folder, n=10, points=12, name="NavierStokes_V1e-5_N10_T20.mat", **other):
    u = np.random.default_rng(0).normal(size=(n, points, points, 20)).astype(np.float32)
    write_matlab(folder / name, {"u": u, **other})
    (folder / "provenance.json").touch()
    return u


def test_published_round_trip(published):
    train, test = NavierStokes(published, "train"), NavierStokes(published, "test")
    assert (len(train), len(test), train.source) == (1000, 200, "published")
    assert train.spatial_shape == (64, 64)
    for reader, index, i in ((train, 1, 1), (train, 999, 999), (test, 0, 1000), (test, 199, 1199)):
        sample, _ = reader[index]
        assert {key: tuple(sample[key].shape) for key in sample.keys()} == {  # noqa: SIM118
            "embedding": (4096, 2),
            "fx": (4096, 10),
            "target": (4096, 10),
        }
        assert sample["fx"].dtype == sample["target"].dtype == torch.float32
        u = frames(i)
        np.testing.assert_array_equal(sample["fx"].reshape(64, 64, 10).numpy(), u[..., :10])
        np.testing.assert_array_equal(sample["target"].reshape(64, 64, 10).numpy(), u[..., 10:])
    points = sample["embedding"].reshape(64, 64, 2)
    assert points[16, 48].tolist() == [0.25, 0.75]
    assert points.max().item() == 63 / 64  # the torus: 1 is 0
    assert (train.series, [str(channel) for channel in train.targets]) == ("rollout", ["vorticity"])


def test_files_before_version_73_load_too(tmp_path):
    u = np.random.default_rng(1).normal(size=(5, 8, 8, 20))  # of float64
    scipy.io.savemat(tmp_path / "NavierStokes_V1e-5_N5_T20.mat", {"u": u})
    (tmp_path / "parts").mkdir()
    sample, _ = NavierStokes(tmp_path, "test")[0]
    assert sample["target"].dtype == torch.float32
    np.testing.assert_array_equal(
        sample["target"].reshape(8, 8, 10).numpy(), u[4, ..., 10:].astype(np.float32)
    )


def test_generated_sets_of_any_size_and_a_stride(tmp_path):
    u = make(tmp_path)
    train, test = NavierStokes(tmp_path, stride=3), NavierStokes(tmp_path, "test", stride=3)
    assert (len(train), len(test), test.source) == (8, 2, "generated")
    assert test.spatial_shape == (4, 4)
    sample, _ = test[1]
    np.testing.assert_array_equal(sample["fx"].reshape(4, 4, 10).numpy(), u[9, ::3, ::3, :10])
    torch.testing.assert_close(
        sample["embedding"].reshape(4, 4, 2)[1, 3], torch.tensor([0.25, 0.75])
    )
    few = NavierStokes(tmp_path, n_train=3)
    assert len(few) == 3
    with pytest.raises(ValueError, match=r"data\.n_test=3: choose from 1 to 2"):
        NavierStokes(tmp_path, "test", n_test=3)
    with pytest.raises(ValueError, match=r"12 x 12 points.*data\.stride=5 divides"):
        NavierStokes(tmp_path, stride=5)


def test_without_the_mark_a_small_set_is_not_taken_for_the_published_one(tmp_path):
    make(tmp_path)
    (tmp_path / "provenance.json").unlink()
    with pytest.raises(ValueError, match=r"u \(10, 12, 12, 20\), expected u \(1200, 64, 64, 20\)"):
        NavierStokes(tmp_path)


def test_nothing_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"No NavierStokes.*T20\.mat in .*absent.*generate"):
        NavierStokes(tmp_path / "absent")
    with pytest.raises(FileNotFoundError, match=r"data\.root is not given.*generate\.py"):
        NavierStokes(None)


def test_wrong_files_are_refused(tmp_path):
    make(tmp_path)
    make(tmp_path, name="NavierStokes_V1e-5_N20_T20.mat")
    with pytest.raises(ValueError, match=r"N10_T20\.mat, NavierStokes_V1e-5_N20_T20\.mat: keep"):
        NavierStokes(tmp_path)
    (tmp_path / "NavierStokes_V1e-5_N20_T20.mat").unlink()
    path = tmp_path / "NavierStokes_V1e-5_N10_T20.mat"
    write_matlab(path, {"a": np.zeros((4, 8, 8, 20), np.float32)})
    with pytest.raises(ValueError, match=r"N10_T20\.mat holds a \(4, 8, 8, 20\), expected u"):
        NavierStokes(tmp_path)
    write_matlab(path, {"u": np.zeros((4, 8, 8, 10), np.float32)})
    with pytest.raises(ValueError, match=r"\(n, points, points, 20\)"):
        NavierStokes(tmp_path)
    write_matlab(path, {"u": np.zeros((4, 8, 6, 20), np.float32)})
    with pytest.raises(ValueError, match=r"\(4, 8, 6, 20\)"):
        NavierStokes(tmp_path)
