from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

from physicsnemo_cano.datapipes import Airfoil
from physicsnemo_cano.datapipes.quadrature import node_weights

GRID = (221, 51)
FILLED = (0, 1, 999, 1000, 1001, 1199)


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """Files in the published layout, of which only some samples hold more than zeros."""
    folder = tmp_path_factory.mktemp("naca")
    random = np.random.default_rng(0)
    for name, shape in (("X", GRID), ("Y", GRID), ("Q", (5, *GRID))):
        array = np.lib.format.open_memmap(
            folder / f"NACA_Cylinder_{name}.npy", mode="w+", dtype=np.float64, shape=(1210, *shape)
        )
        for i in FILLED:
            array[i] = random.uniform(size=shape)
        array.flush()
    return folder


def _arrays(folder):
    return [np.load(folder / f"NACA_Cylinder_{name}.npy", mmap_mode="r") for name in "XYQ"]


def test_published_round_trip(published):
    x, y, q = _arrays(published)
    train, test = Airfoil(published, "train"), Airfoil(published, "test")
    assert (len(train), len(test)) == (1000, 200)
    assert train.source == "published"
    assert train.spatial_shape == GRID
    for reader, index, i in ((train, 1, 1), (train, 999, 999), (test, 0, 1000), (test, 199, 1199)):
        sample, _ = reader[index]
        assert {key: tuple(sample[key].shape) for key in sample.keys()} == {  # noqa: SIM118
            "embedding": (221 * 51, 2),
            "fx": (221 * 51, 0),
            "target": (221 * 51, 1),
        }
        assert sample["target"].dtype == sample["embedding"].dtype == torch.float32
        grid = sample["embedding"].unflatten(0, GRID).numpy()
        np.testing.assert_array_equal(grid[..., 0], x[i].astype(np.float32))
        np.testing.assert_array_equal(grid[..., 1], y[i].astype(np.float32))
        mach = sample["target"].reshape(GRID).numpy()
        np.testing.assert_array_equal(mach, q[i, 4].astype(np.float32))


def test_fewer_samples_leave_the_test_set_where_it_is(published):
    _, _, q = _arrays(published)
    train = Airfoil(published, "train", n_train=2, n_test=3)
    test = Airfoil(published, "test", n_train=2, n_test=3)
    assert (len(train), len(test)) == (2, 3)
    np.testing.assert_array_equal(
        test[1][0]["target"].reshape(GRID).numpy(), q[1001, 4].astype(np.float32)
    )
    with pytest.raises(ValueError, match=r"data\.n_train=1001: choose from 1 to 1000"):
        Airfoil(published, "train", n_train=1001)
    with pytest.raises(ValueError, match=r"data\.n_test=0: choose from 1 to 200"):
        Airfoil(published, "test", n_test=0)
    with pytest.raises(ValueError, match="'train' or 'test', got 'val'"):
        Airfoil(published, "val")


@pytest.mark.parametrize("mark", ["provenance.json", "parts"])
def test_a_generated_folder_is_never_called_published(mark, tmp_path):
    """However far generate.py came when it was stopped."""
    random = np.random.default_rng(2)
    for name, shape in (("X", (9, 5)), ("Y", (9, 5)), ("Q", (5, 9, 5))):
        np.save(tmp_path / f"NACA_Cylinder_{name}.npy", random.uniform(size=(10, *shape)))
    with pytest.raises(ValueError, match=r"expected \('n', 221, 51\) with the same n >= 1200"):
        Airfoil(tmp_path)
    (tmp_path / mark).mkdir()
    reader = Airfoil(tmp_path, "test")
    assert (reader.source, len(reader), reader.spatial_shape) == ("generated", 2, (9, 5))
    _, _, q = _arrays(tmp_path)
    mach = reader[1][0]["target"].reshape(9, 5).numpy()
    np.testing.assert_array_equal(mach, q[9, 4].astype(np.float32))


def test_the_embedded_set():
    file = Path(__file__).parents[2] / "examples" / "airfoil" / "data" / "naca_mini.h5"
    train, test = Airfoil(file, "train"), Airfoil(file, "test")
    assert (len(train), len(test), train.spatial_shape) == (80, 20, (111, 26))
    sample, _ = test[19]
    assert 1.1 < sample["target"].max() < 2.0  # supersonic pockets
    assert sample["embedding"].abs().max() > 20  # the far field, in chords


def _write(file, **arrays):
    with h5py.File(file, "w") as stream:
        for name, values in arrays.items():
            stream[name] = values
    return file


@pytest.fixture
def fields():
    random = np.random.default_rng(1)
    i, j = np.meshgrid(np.arange(7.0), np.arange(4.0), indexing="ij")
    x = np.stack([(1 + 0.1 * n) * i for n in range(10)]).astype(np.float32)
    y = np.stack([(2 + 0.1 * n) * j for n in range(10)]).astype(np.float32)
    return {"x": x, "y": y, "mach": random.uniform(size=x.shape).astype(np.float32)}


def test_generated_round_trip(fields, tmp_path):
    file = _write(tmp_path / "mini.h5", **fields)
    train, test = Airfoil(file, "train"), Airfoil(str(file), "test")
    assert (len(train), len(test)) == (8, 2)
    assert test.source == "generated"
    assert test.spatial_shape == (7, 4)
    sample, metadata = test[1]
    assert metadata["index"] == 1
    np.testing.assert_array_equal(sample["target"].reshape(7, 4).numpy(), fields["mach"][9])
    np.testing.assert_array_equal(sample["embedding"].numpy()[:, 1], fields["y"][9].ravel())
    test.close()


def test_a_folder_closes(published):
    with Airfoil(published) as reader:
        assert len(reader) == 1000


def test_coordinates_as_input(published):
    sample, _ = Airfoil(published, coordinates_as_input=True)[1]
    assert sample["fx"].shape == (221 * 51, 2)
    torch.testing.assert_close(sample["fx"], sample["embedding"])


def test_weights_are_the_areas(fields, tmp_path):
    file = _write(tmp_path / "mini.h5", **fields)
    sample, _ = Airfoil(file, weights=True)[3]
    assert sample["weights"].shape == (28,)
    assert sample["weights"].sum().item() == pytest.approx(6 * 1.3 * 3 * 2.3, rel=1e-5)
    points = sample["embedding"].unflatten(0, (7, 4))
    torch.testing.assert_close(
        sample["weights"].reshape(7, 4), node_weights(points, structured=True)
    )
    assert "weights" not in set(Airfoil(file)[3][0].keys())


def test_nothing_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"absent\.h5.*NACA_Cylinder_X\.npy.*generate\.py"):
        Airfoil(tmp_path / "absent.h5")
    with pytest.raises(FileNotFoundError, match=r"data\.root is not given.*generate\.py"):
        Airfoil(None)


def test_a_folder_without_all_files(tmp_path):
    np.save(tmp_path / "NACA_Cylinder_X.npy", np.zeros((2, 3)))
    with pytest.raises(
        FileNotFoundError, match=r"lacks NACA_Cylinder_Y\.npy, NACA_Cylinder_Q\.npy"
    ):
        Airfoil(tmp_path)


@pytest.mark.parametrize(
    ("name", "shape"), [("X", (1200, 51, 221)), ("Q", (1200, 4, 221, 51)), ("Y", (1199, 221, 51))]
)
def test_a_published_file_of_another_shape(name, shape, tmp_path):
    shapes = {"X": (1200, *GRID), "Y": (1200, *GRID), "Q": (1200, 5, *GRID), name: shape}
    for key, value in shapes.items():
        np.lib.format.open_memmap(
            tmp_path / f"NACA_Cylinder_{key}.npy", mode="w+", dtype=np.float32, shape=value
        )
    with pytest.raises(
        ValueError, match=rf"{name}\.npy has shape .*{shape[1]}.* expected"
    ) as error:
        Airfoil(tmp_path)
    assert str(shape) in str(error.value)


def test_too_few_published_samples(tmp_path):
    for key, shape in (("X", GRID), ("Y", GRID), ("Q", (5, *GRID))):
        np.save(tmp_path / f"NACA_Cylinder_{key}.npy", np.zeros((2, *shape), np.float32))
    with pytest.raises(ValueError, match="n >= 1200"):
        Airfoil(tmp_path)


def test_a_generated_file_of_another_layout(fields, tmp_path):
    del fields["mach"]
    file = _write(tmp_path / "no_mach.h5", **fields)
    with pytest.raises(ValueError, match=r"no_mach\.h5 holds \{'x'.*expected x, y and mach"):
        Airfoil(file)
    file = _write(tmp_path / "short.h5", **fields, mach=fields["x"][:, :3])
    with pytest.raises(ValueError, match=r"'mach': \(10, 3, 4\).*of one shape"):
        Airfoil(file)
    file = tmp_path / "text.h5"
    file.write_text("x, y, mach")
    with pytest.raises(ValueError, match=r"text\.h5 is no HDF5 file"):
        Airfoil(file)
