import functools

import numpy as np
import pytest

from physicsnemo_cano.datapipes.generation import generate, remove_parts, sample_rng, save_new


def draw(rngs, log=None, fail_at=None):
    """A solver of which every sample has its own random stream; may log calls and fail."""
    values = np.array([rng.normal(size=3) for rng in rngs])
    if log is not None:
        log.append(len(rngs))
    if fail_at is not None and len(log) == fail_at:
        raise ArithmeticError("diverged")
    return {"a": values, "sign": np.sign(values[:, 0])}


def test_a_sample_does_not_depend_on_number_batch_or_workers(tmp_path):
    reference = generate(draw, 7, tmp_path / "0", {}, seed=5, batch_size=1)
    batched = generate(draw, 7, tmp_path / "1", {}, seed=5, batch_size=3)
    parallel = generate(draw, 7, tmp_path / "2", {}, seed=5, batch_size=2, workers=2)
    fewer = generate(draw, 4, tmp_path / "3", {}, seed=5, batch_size=3)
    other = generate(draw, 7, tmp_path / "4", {}, seed=6)
    np.testing.assert_array_equal(batched["a"], reference["a"])
    np.testing.assert_array_equal(parallel["a"], reference["a"])
    np.testing.assert_array_equal(parallel["sign"], reference["sign"])
    np.testing.assert_array_equal(fewer["a"], reference["a"][:4])
    assert not np.any(other["a"] == reference["a"])
    assert len(np.unique(reference["a"])) == 21


def test_streams_are_the_spawned_ones():
    child = np.random.SeedSequence(11).spawn(3)[2]
    expected = np.random.default_rng(child).normal(size=4)
    np.testing.assert_array_equal(sample_rng(11, 2).normal(size=4), expected)


def test_a_stopped_run_continues_and_gives_identical_files(tmp_path):
    log = []
    with pytest.raises(RuntimeError, match="seed 5, samples 4 to 5: diverged"):
        generate(functools.partial(draw, log=log, fail_at=3), 7, tmp_path / "a", {}, 5, 2)
    parts = tmp_path / "a" / "parts"
    assert sorted(p.name for p in parts.glob("*.npz")) == ["part_000000.npz", "part_000002.npz"]
    assert not list(parts.glob(".*"))
    written = (parts / "part_000002.npz").stat().st_mtime_ns

    log.clear()
    resumed = generate(functools.partial(draw, log=log), 7, tmp_path / "a", {}, 5, 2)
    assert log == [2, 1]
    assert (parts / "part_000002.npz").stat().st_mtime_ns == written

    whole = generate(draw, 7, tmp_path / "b", {}, 5, 2)
    np.testing.assert_array_equal(resumed["a"], whole["a"])
    for path in (tmp_path / "b" / "parts").iterdir():
        with np.load(path) if path.suffix == ".npz" else open(path) as mine:
            if path.suffix == ".json":
                assert mine.read() == (parts / path.name).read_text()
                continue
            with np.load(parts / path.name) as other:
                assert {k: v.tobytes() for k, v in mine.items()} == {
                    k: v.tobytes() for k, v in other.items()
                }
    remove_parts(tmp_path / "b")
    assert not list((tmp_path / "b").iterdir())


@pytest.mark.parametrize(
    "change", [{"settings": {"mach": 0.7}}, {"seed": 6}, {"n": 5}, {"batch_size": 3}]
)
def test_other_settings_in_the_same_folder_are_refused(tmp_path, change):
    run = {"n": 4, "settings": {"mach": 0.8}, "seed": 5, "batch_size": 2}
    generate(draw, directory=tmp_path, **run)
    with pytest.raises(ValueError, match="other settings") as error:
        generate(draw, directory=tmp_path, **{**run, **change})
    assert "'mach': 0.8, 'n': 4, 'seed': 5, 'batch': 2} there" in str(error.value)
    assert str(tmp_path) in str(error.value)


def test_a_wrong_number_of_samples_is_refused(tmp_path):
    with pytest.raises(ValueError, match="a: 1 samples, expected 2"):
        generate(lambda rngs: {"a": np.zeros(1)}, 2, tmp_path, {}, batch_size=2)


def test_a_file_is_written_whole_or_not_at_all_and_never_over_another(tmp_path):
    path = tmp_path / "data"

    def broken(file):
        file.write(b"half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        save_new(path, broken)
    assert list(tmp_path.iterdir()) == []
    save_new(path, lambda file: file.write(b"first"))
    with pytest.raises(FileExistsError, match="data exists"):
        save_new(path, lambda file: file.write(b"second"))
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]
