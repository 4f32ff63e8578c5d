import numpy as np
import pytest
import torch

from physicsnemo_cano.datapipes import Pipe

GRID = (129, 129)
FILLED = (0, 999, 1000, 1199)


def write(folder, **shapes):
    for name, shape in shapes.items():
        np.lib.format.open_memmap(folder / f"Pipe_{name}.npy", "w+", np.float64, shape)


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """Files in the published layout, of which only some samples hold more than zeros."""
    folder = tmp_path_factory.mktemp("pipe")
    write(folder, X=(1300, *GRID), Y=(1300, *GRID), Q=(1300, 3, *GRID))
    random = np.random.default_rng(0)
    for name in "XYQ":
        array = np.load(folder / f"Pipe_{name}.npy", mmap_mode="r+")
        for i in FILLED:
            array[i] = random.uniform(size=array.shape[1:])
        array.flush()
    return folder


def test_published_round_trip(published):
    x, y, q = (np.load(published / f"Pipe_{name}.npy", mmap_mode="r") for name in "XYQ")
    train, test = Pipe(published, "train"), Pipe(str(published), "test")
    assert (len(train), len(test)) == (1000, 200)
    assert (train.source, train.spatial_shape) == ("published", GRID)
    for reader, index, i in ((train, 0, 0), (train, 999, 999), (test, 0, 1000), (test, 199, 1199)):
        sample, _ = reader[index]
        assert {key: tuple(sample[key].shape) for key in sample.keys()} == {  # noqa: SIM118
            "embedding": (129 * 129, 2),
            "fx": (129 * 129, 0),
            "target": (129 * 129, 1),
        }
        assert sample["target"].dtype == sample["embedding"].dtype == torch.float32
        grid = sample["embedding"].unflatten(0, GRID).numpy()
        np.testing.assert_array_equal(grid[..., 0], x[i].astype(np.float32))
        np.testing.assert_array_equal(grid[..., 1], y[i].astype(np.float32))
        velocity = sample["target"].reshape(GRID).numpy()
        np.testing.assert_array_equal(velocity, q[i, 0].astype(np.float32))


def test_fewer_samples_leave_the_test_set_where_it_is(published):
    q = np.load(published / "Pipe_Q.npy", mmap_mode="r")
    test = Pipe(published, "test", n_train=2, n_test=1)
    assert (len(Pipe(published, n_train=2, n_test=1)), len(test)) == (2, 1)
    velocity = test[0][0]["target"].reshape(GRID).numpy()
    np.testing.assert_array_equal(velocity, q[1000, 0].astype(np.float32))
    with pytest.raises(ValueError, match=r"data\.n_test=201: choose from 1 to 200"):
        Pipe(published, "test", n_test=201)


@pytest.mark.parametrize("mark", ["provenance.json", "parts"])
def test_a_generated_folder_may_be_smaller_and_is_never_called_published(mark, tmp_path):
    write(tmp_path, X=(10, 9, 5), Y=(10, 9, 5), Q=(10, 2, 9, 5))
    q = np.random.default_rng(1).uniform(size=(10, 2, 9, 5))
    np.save(tmp_path / "Pipe_Q.npy", q)
    with pytest.raises(ValueError, match=r"expected \('n', 129, 129\) with the same n >= 1200"):
        Pipe(tmp_path)
    (tmp_path / mark).mkdir()
    test = Pipe(tmp_path, "test")
    assert (test.source, len(Pipe(tmp_path)), len(test)) == ("generated", 8, 2)
    assert test.spatial_shape == (9, 5)
    np.testing.assert_array_equal(
        test[1][0]["target"].reshape(9, 5).numpy(), q[9, 0].astype(np.float32)
    )


def test_coordinates_as_input_and_weights(tmp_path):
    xi, eta = np.meshgrid(np.linspace(0, 10, 9), np.linspace(-0.5, 0.5, 5), indexing="ij")
    np.save(tmp_path / "Pipe_X.npy", np.stack([xi] * 4))
    np.save(tmp_path / "Pipe_Y.npy", np.stack([eta + k * xi for k in range(4)]))
    np.save(tmp_path / "Pipe_Q.npy", np.ones((4, 1, 9, 5)))
    (tmp_path / "provenance.json").touch()
    sample, _ = Pipe(tmp_path, coordinates_as_input=True, weights=True)[1]
    torch.testing.assert_close(sample["fx"], sample["embedding"])
    assert sample["weights"].shape == (45,)
    assert sample["weights"].sum().item() == pytest.approx(10, rel=1e-6)  # shearing keeps the area
    assert "weights" not in set(Pipe(tmp_path)[0][0].keys())


def test_nothing_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"No pipe data at .*absent.*generate\.py"):
        Pipe(tmp_path / "absent")
    with pytest.raises(FileNotFoundError, match=r"data\.root is not given.*Pipe_X\.npy"):
        Pipe(None)
    write(tmp_path, X=(2, 3, 3))
    with pytest.raises(FileNotFoundError, match=r"lacks Pipe_Y\.npy, Pipe_Q\.npy"):
        Pipe(tmp_path)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("X", (1200, 129, 128)),
        ("Y", (1199, *GRID)),
        ("Q", (1200, *GRID)),
        ("Q", (1200, 0, *GRID)),
        ("Q", (1200, *GRID, 2)),
    ],
)
def test_a_published_file_of_another_shape(name, shape, tmp_path):
    shapes = {"X": (1200, *GRID), "Y": (1200, *GRID), "Q": (1200, 2, *GRID), name: shape}
    if 0 in shape:
        np.save(tmp_path / f"Pipe_{name}.npy", np.zeros(shape))
        del shapes[name]
    write(tmp_path, **shapes)
    with pytest.raises(ValueError, match=rf"Pipe_{name}\.npy has shape .* expected") as error:
        Pipe(tmp_path)
    assert str(shape) in str(error.value)
