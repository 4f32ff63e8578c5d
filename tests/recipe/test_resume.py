# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""A run that is killed at any moment and started again ends where an unbroken one does."""

import signal

import pytest
import torch

from tests.recipe.helpers import (
    child,
    die,
    history,
    metrics,
    train,
    weights,
    write_mini,
)


def _patched(moment: str) -> None:
    """Make this process kill itself at a certain moment of the second epoch."""
    from physicsnemo_cano.recipe import checkpoint, folder, normalization, report, runs

    def at_call(number, function, before=die):
        calls = iter(range(1, 1000))

        def wrapper(*args, **kwargs):
            if next(calls) == number:
                before(*args, **kwargs)
                die()
            return function(*args, **kwargs)

        return wrapper

    def half_line(history, line):
        with history.file.open("a") as file:
            file.write('{"epoch": 2, "train_re')

    def half_checkpoint(draft, *args, **kwargs):
        save(draft, *args, **kwargs)
        for file in draft.iterdir():
            file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])

    def half_copy(source, target, **kwargs):
        copytree(source, target, **kwargs)
        for file in target.glob("*.pt"):
            file.unlink()

    def nothing(*args, **kwargs): ...

    save, put = checkpoint.save_checkpoint, checkpoint.Checkpoints._put_in_place
    rmtree, copytree = checkpoint.shutil.rmtree, checkpoint.shutil.copytree
    # Every save and the start ask for `last` and `best`; an epoch that is the best once more.
    if moment == "while the folder is claimed":
        folder.write_text = at_call(1, folder.write_text)
    elif moment == "while the scales are written":
        normalization.np.savez = at_call(1, normalization.np.savez)
    elif moment == "in the first epoch":
        report.Meter.step = at_call(2, report.Meter.step)
    elif moment == "in the middle of an epoch":
        report.Meter.step = at_call(5, report.Meter.step)
    elif moment == "while a line of the history is written":
        folder.History.append = at_call(2, folder.History.append, half_line)
    elif moment == "while a checkpoint is written":
        checkpoint.save_checkpoint = at_call(2, save, half_checkpoint)
    elif moment == "before the first checkpoint is named":
        checkpoint.Checkpoints._put_in_place = at_call(3, put, nothing)
    elif moment == "before the best is copied":
        checkpoint.shutil.copytree = at_call(2, copytree, nothing)
    elif moment == "while the best is copied":
        checkpoint.shutil.copytree = at_call(2, copytree, half_copy)
    elif moment == "before a checkpoint is named last":
        checkpoint.Checkpoints._put_in_place = at_call(6, put, nothing)
    elif moment == "between the old and the new last":
        checkpoint.shutil.rmtree = at_call(4, rmtree, rmtree)
    elif moment == "in the final evaluation":
        runs.evaluate = at_call(1, runs.evaluate)
    elif moment == "while results are written":
        report.Results.write = at_call(1, report.Results.write)
    else:
        raise AssertionError(moment)


MOMENTS = (
    "while the folder is claimed",
    "while the scales are written",
    "in the first epoch",
    "in the middle of an epoch",
    "while a line of the history is written",
    "while a checkpoint is written",
    "before the first checkpoint is named",
    "before the best is copied",
    "while the best is copied",
    "before a checkpoint is named last",
    "between the old and the new last",
    "in the final evaluation",
    "while results are written",
)
# Dropout, so that the random state matters; validation, so that there is a best.
OVERRIDES = ("+model.dropout=0.1", "validation.fraction=0.2")


def _killed(moment, data, output):
    _patched(moment)
    train(data, output, *OVERRIDES)


def _whole(data, output):
    train(data, output, *OVERRIDES)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_mini(tmp_path_factory.mktemp("data") / "mini.h5")


@pytest.fixture(scope="module")
def unbroken(data, tmp_path_factory):
    output = tmp_path_factory.mktemp("unbroken") / "run"
    assert child(_whole, data, output) == 0
    return output


def _assert_same(output, unbroken):
    assert metrics(output) == metrics(unbroken)
    assert history(output) == history(unbroken)
    for name in ("last", "best"):
        found, expected = (weights(run / "checkpoints" / name) for run in (output, unbroken))
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            assert torch.equal(found[key], value), f"{name}: {key}"
    for name in ("test_errors.csv", "figures/drawn.txt"):
        assert (output / name).read_bytes() == (unbroken / name).read_bytes()
    # Nothing is left over, and links are not needed.
    left = list((output / "checkpoints").iterdir())
    assert {p.name for p in left} == {"last", "best"}
    assert not any(p.is_symlink() for p in left)


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_then_resumed(moment, data, unbroken, tmp_path):
    output = tmp_path / "run"
    assert child(_killed, moment, data, output) == -signal.SIGKILL
    assert not (output / "metrics.json").exists()
    assert child(_whole, data, output) == 0
    _assert_same(output, unbroken)


def test_killed_again_and_again(data, unbroken, tmp_path):
    output = tmp_path / "run"
    for moment in MOMENTS:
        # Some moments do not come again once an earlier attempt is past them.
        assert child(_killed, moment, data, output) in (-signal.SIGKILL, 0)
    assert child(_whole, data, output) == 0
    _assert_same(output, unbroken)
