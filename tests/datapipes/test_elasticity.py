import numpy as np
import pytest
import torch

from physicsnemo_cano.datapipes import Elasticity

XY, SIGMA = "Random_UnitCell_XY_10.npy", "Random_UnitCell_sigma_10.npy"
N = 2000  # as published


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    folder = tmp_path_factory.mktemp("elasticity")
    random = np.random.default_rng(0)
    np.save(folder / XY, random.uniform(size=(972, 2, N)))
    np.save(folder / SIGMA, random.uniform(1, 100, size=(972, N)))
    return folder


def test_published_round_trip(published):
    points, stress = np.load(published / XY), np.load(published / SIGMA)
    train, test = Elasticity(published, "train"), Elasticity(str(published), "test")
    assert (len(train), len(test)) == (1000, 200)
    assert (train.source, train.spatial_shape) == ("published", None)
    for reader, index, i in ((train, 0, 0), (train, 999, 999), (test, 0, 1800), (test, 199, 1999)):
        sample, _ = reader[index]
        assert {key: tuple(sample[key].shape) for key in sample.keys()} == {  # noqa: SIM118
            "embedding": (972, 2),
            "fx": (972, 0),
            "target": (972, 1),
        }
        assert sample["target"].dtype == sample["embedding"].dtype == torch.float32
        np.testing.assert_array_equal(sample["embedding"], points[..., i].astype(np.float32))
        np.testing.assert_array_equal(sample["target"][:, 0], stress[:, i].astype(np.float32))
    assert str(train.targets[0]) == "stress [Pa]"


def test_fewer_samples_leave_the_test_set_where_it_is(published):
    stress = np.load(published / SIGMA, mmap_mode="r")
    test = Elasticity(published, "test", n_train=2, n_test=3)
    assert (len(Elasticity(published, n_train=2, n_test=3)), len(test)) == (2, 3)
    np.testing.assert_array_equal(test[1][0]["target"][:, 0], stress[:, 1801].astype(np.float32))
    with pytest.raises(ValueError, match=r"data\.n_train=1001: choose from 1 to 1000"):
        Elasticity(published, n_train=1001)


@pytest.mark.parametrize("mark", ["provenance.json", "parts"])
def test_a_generated_folder_may_be_smaller_and_is_never_called_published(mark, tmp_path):
    stress = np.random.default_rng(1).uniform(size=(972, 10)).astype(np.float32)
    np.save(tmp_path / XY, np.zeros((972, 2, 10), np.float32))
    np.save(tmp_path / SIGMA, stress)
    with pytest.raises(ValueError, match=r"XY_10\.npy has shape \(972, 2, 10\).*n >= 1200"):
        Elasticity(tmp_path)
    (tmp_path / mark).mkdir()
    test = Elasticity(tmp_path, "test")
    assert (test.source, len(Elasticity(tmp_path)), len(test)) == ("generated", 8, 2)
    np.testing.assert_array_equal(test[1][0]["target"][:, 0], stress[:, 9])


def test_nothing_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"No elasticity data at .*absent.*generate\.py"):
        Elasticity(tmp_path / "absent")
    with pytest.raises(FileNotFoundError, match=r"data\.root is not given.*Random_UnitCell_XY_10"):
        Elasticity(None)
    np.save(tmp_path / XY, np.zeros((972, 2, 3)))
    with pytest.raises(FileNotFoundError, match=rf"lacks {SIGMA}"):
        Elasticity(tmp_path)


@pytest.mark.parametrize(
    ("name", "shape"),
    [(XY, (1200, 972, 2)), (SIGMA, (1200, 972)), (SIGMA, (972, 1199)), (XY, (971, 2, 1200))],
)
def test_a_file_of_another_shape(name, shape, tmp_path):
    for key, right in ((XY, (972, 2, 1200)), (SIGMA, (972, 1200))):
        np.lib.format.open_memmap(tmp_path / key, "w+", np.float64, shape if key == name else right)
    with pytest.raises(ValueError, match=r"has shape .* expected \(972,.*'n'\)") as error:
        Elasticity(tmp_path)
    assert str(tmp_path) in str(error.value)


def test_damaged_files(published, tmp_path):
    (tmp_path / XY).write_bytes((published / XY).read_bytes()[:1000])
    np.save(tmp_path / SIGMA, np.zeros((972, 1200)))
    with pytest.raises(ValueError, match=r"XY_10\.npy is no whole \.npy file"):
        Elasticity(tmp_path)
    (tmp_path / XY).write_text("x, y")
    with pytest.raises(ValueError, match=r"XY_10\.npy is no whole \.npy file"):
        Elasticity(tmp_path)
    np.save(tmp_path / XY, np.zeros((972, 2, 1200), int))
    with pytest.raises(ValueError, match=r"XY_10\.npy holds int64, expected float32 or float64"):
        Elasticity(tmp_path)
