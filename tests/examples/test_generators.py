# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""What holds for every generator."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from physicsnemo_cano.datapipes import generator as base
from tests.examples.tiny_sets import TINY

EXAMPLES = Path(__file__).parents[2] / "examples"
all_sets = pytest.mark.parametrize("benchmark", TINY)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def stop_at(name, tiny, folder, monkeypatch):
    """Interrupt a run at the moment it would write the file ``name``."""

    def stopped(path, write):
        if path.name == name:
            raise KeyboardInterrupt
        save_new(path, write)

    save_new = base.save_new
    monkeypatch.setattr(base, "save_new", stopped)
    with pytest.raises(KeyboardInterrupt):
        tiny.run(folder)
    monkeypatch.undo()


def test_every_generator_is_here():
    assert set(TINY) == {path.parent.name for path in EXAMPLES.glob("*/generate.py")}


@all_sets
def test_the_reader_takes_it(benchmark, tiny_set):
    tiny = TINY[benchmark]
    folder = tiny_set(benchmark)
    train, test = (tiny.reader(folder, split) for split in ("train", "test"))
    assert (len(train), len(test), train.source) == (*tiny.split, "generated")
    for reader in (train, test):
        for index in range(len(reader)):
            sample, _ = reader[index]
            for values in sample.values():
                assert np.isfinite(values.numpy()).all()
            assert sample["target"].std() > 0
    first, last = train[0][0]["target"], train[len(train) - 1][0]["target"]
    assert not np.array_equal(first, last)


@all_sets
def test_provenance_names_the_command_but_no_path(benchmark, tiny_set):
    tiny, folder = TINY[benchmark], tiny_set(benchmark)
    provenance = json.loads((folder / "provenance.json").read_text())
    options = f" {tiny.options}" if tiny.options else ""
    assert provenance["command"] == (
        f"python examples/{benchmark}/generate.py {tiny.counts} --out DIR --seed 3{options}"
    )
    assert tiny.constants.items() <= provenance.items()
    assert str(folder) not in json.dumps(provenance)


@all_sets
def test_finished_data_is_never_overwritten(benchmark, tiny_set, capsys):
    folder = tiny_set(benchmark)
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    with pytest.raises(SystemExit):
        TINY[benchmark].run(folder)
    assert "never overwritten" in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before


@all_sets
def test_a_run_stopped_while_it_saves_its_data_continues(
    benchmark, tiny_set, tmp_path, monkeypatch
):
    """The same seed gives the same bytes, too."""
    whole = contents(tiny_set(benchmark))
    listed = [name for name in whole if not name.startswith(("trajectory", "body", "prov"))]
    stop_at(
        max(listed) if len(listed) > 1 else "provenance.json",
        TINY[benchmark],
        tmp_path,
        monkeypatch,
    )
    assert not (tmp_path / "provenance.json").exists()
    TINY[benchmark].run(tmp_path)
    assert contents(tmp_path) == whole


def test_trajectories_written_before_a_stop_are_kept(tiny_set, tmp_path, monkeypatch):
    stop_at("trajectory_0002.h5", TINY["icp_plasma"], tmp_path, monkeypatch)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.h5")}
    assert len(before) == 2
    TINY["icp_plasma"].run(tmp_path)
    assert before == {path: path.stat().st_mtime_ns for path in before}
    assert contents(tmp_path) == contents(tiny_set("icp_plasma"))


def test_two_processes_make_the_same_set(tiny_set, tmp_path):
    TINY["elasticity"].run(tmp_path, workers=2)
    assert contents(tmp_path) == contents(tiny_set("elasticity"))


@pytest.mark.parametrize(
    ("benchmark", "options", "message"),
    [
        ("navier_stokes", "--grid 63 --points 21", "multiple of --points"),
        ("navier_stokes", "--grid 64 --points 30", "multiple of --points"),
        ("navier_stokes", "--grid 32", "at least 64"),
        ("pipe", "--elements 18 6", "multiple of 4 along, got 18"),
        ("plasticity", "--shape 2 5", "at least 3 nodes each way"),
        ("darcy", "--n-test 0", "--n-test: expected more than 0, got 0"),
        ("composite", "--shape 4 -3 2", "--shape: expected more than 0, got -3"),
        ("irregular_darcy", "--spacing nan", "--spacing: expected more than 0, got nan"),
        ("icp_plasma", "--workers 0", "--workers: expected at least 1, got 0"),
    ],
)
def test_options_that_do_not_fit_are_refused(benchmark, options, message, tmp_path, capsys):
    with pytest.raises(SystemExit):
        TINY[benchmark].generator.main([*options.split(), "--out", str(tmp_path)])
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_they_run_as_scripts(tmp_path):
    """From elsewhere, each in a fresh namespace; one process, as importing takes long."""
    code = """
import runpy, sys
path = list(sys.path)
for script in sys.argv[1:]:
    sys.argv, sys.path[:] = [script, "--help"], path
    for name in [name for name in sys.modules if name.split(".")[0] == "examples"]:
        del sys.modules[name]
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        assert not end.code
"""
    scripts = [str(EXAMPLES / name / "generate.py") for name in TINY]
    done = subprocess.run(
        [sys.executable, "-c", code, *scripts], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("--workers WORKERS") == 2 * len(TINY)
    for tiny in TINY.values():
        assert tiny.counts.split()[0] in done.stdout
