# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

import functools
import json
import multiprocessing
import os
import runpy
import signal
import time

import numpy as np
import pytest

from physicsnemo_cano.datapipes.generation import (
    generate,
    made_data,
    remove_parts,
    sample_rng,
    save_new,
)


def draw(rngs, log=None, fail_at=None):
    """A solver of which every sample has its own random stream; may log calls and fail."""
    values = np.array([rng.normal(size=3) for rng in rngs])
    if log is not None:
        log.append(len(rngs))
    if fail_at is not None and len(log) == fail_at:
        raise ArithmeticError("diverged")
    return {"a": values, "sign": np.sign(values[:, 0])}


def test_a_sample_does_not_depend_on_number_or_batch(tmp_path):
    reference = generate(draw, 7, tmp_path / "0", {}, seed=5, batch_size=1)
    batched = generate(draw, 7, tmp_path / "1", {}, seed=5, batch_size=3)
    fewer = generate(draw, 4, tmp_path / "3", {}, seed=5, batch_size=3)
    other = generate(draw, 7, tmp_path / "4", {}, seed=6)
    np.testing.assert_array_equal(batched["a"], reference["a"])
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


def make_set(directory, log=None, die_before="", seconds=0.0):
    """Two files, as far as missing; logs what it writes, and may be killed before one of them."""
    for name in ("a", "b"):
        if name == die_before:
            os.kill(os.getpid(), signal.SIGKILL)
        if not (directory / name).exists():
            time.sleep(seconds)
            save_new(directory / name, lambda file, name=name: file.write(name.encode() * 9))
            with open(log, "a") as lines:
                lines.write(f"{name}\n")


def in_processes(n, *args):
    """Exit codes of n processes that ask for a data set at once."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["physicsnemo_cano.datapipes.generation"])  # once, not n times
    processes = [context.Process(target=made_data, args=args) for _ in range(n)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    return [process.exitcode for process in processes]


def test_data_are_made_once_for_each_settings(tmp_path):
    cache, log = tmp_path / "new" / "cache", tmp_path / "log"
    make = functools.partial(make_set, log=log)
    folder = made_data(cache, {"n": 3, "seed": 0}, make)
    assert folder.parent == cache
    assert (folder / "a").read_text() == "a" * 9
    assert set(json.loads((folder / "checksums.json").read_text())) == {"a", "b"}
    assert made_data(cache, {"seed": 0, "n": 3}, make) == folder
    assert log.read_text() == "a\nb\n"
    other = made_data(cache, {"n": 4, "seed": 0}, make)
    assert other != folder
    assert log.read_text() == "a\nb\na\nb\n"
    assert made_data(cache, {"n": 3, "seed": 0}, make) == folder


def _change(folder):
    (folder / "b").write_text("b" * 8 + "c")


def _cut(folder):
    (folder / "a").write_text("a")


def _remove(folder):
    (folder / "a").unlink()


def _spoil_checksums(folder):
    (folder / "checksums.json").write_text('{"a": ')


@pytest.mark.parametrize("damage", [_change, _cut, _remove, _spoil_checksums])
def test_damaged_data_are_made_anew(damage, tmp_path, capsys):
    log = tmp_path / "log"
    make = functools.partial(make_set, log=log)
    folder = made_data(tmp_path / "cache", {}, make)
    (folder / "note").write_text("not part of the set")
    assert made_data(tmp_path / "cache", {}, make) == folder
    assert log.read_text() == "a\nb\n"
    damage(folder)
    assert made_data(tmp_path / "cache", {}, make) == folder
    assert f"The data in {folder} are damaged" in capsys.readouterr().out
    assert log.read_text() == "a\nb\na\nb\n"
    assert [(folder / name).read_text() for name in "ab"] == ["a" * 9, "b" * 9]
    assert {path.suffix for path in (tmp_path / "cache").iterdir()} <= {"", ".lock"}


def test_an_interrupted_making_goes_on(tmp_path):
    log = tmp_path / "log"
    killed = functools.partial(make_set, log=log, die_before="b")
    assert in_processes(1, tmp_path / "cache", {}, killed) == [-signal.SIGKILL]
    assert log.read_text() == "a\n"
    folder = made_data(tmp_path / "cache", {}, functools.partial(make_set, log=log))
    assert log.read_text() == "a\nb\n"
    assert set(json.loads((folder / "checksums.json").read_text())) == {"a", "b"}


def test_of_several_processes_one_makes_the_data(tmp_path):
    log = tmp_path / "log"
    make = functools.partial(make_set, log=log, seconds=1.0)
    assert in_processes(3, tmp_path / "cache", {}, make) == [0, 0, 0]
    assert log.read_text() == "a\nb\n"


def test_a_changed_generator_makes_its_data_anew(tmp_path):
    example = tmp_path / "example"
    example.mkdir()
    (example / "generate.py").write_text(
        "from physicsnemo_cano.datapipes.generator import Generator\n"
        "class Ones(Generator):\n"
        "    solver, files, seconds, mini_set = 'none', ('a.npy',), 0, '--seed 4 --workers 1'\n"
        "    count = 1\n"
        "    def draw(self, rng): return rng.normal(size=3)\n"
        "    def solve(self, drawn): return {'a': drawn}\n"
    )

    def folder():
        ones = runpy.run_path(str(example / "generate.py"), run_name=__name__)["Ones"]
        return ones.mini_data(tmp_path / "cache")

    first = folder()
    np.testing.assert_array_equal(np.load(first / "a.npy"), [sample_rng(4, 0).normal(size=3)])
    for name in ("figures.py", "train.py"):
        (example / name).write_text("# makes no data")
    assert folder() == first
    (example / "solver.py").write_text("G = 9.81")
    second = folder()
    assert second != first
    (example / "solver.py").write_text("G = 9.82")
    assert folder() not in (first, second)
