# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""What holds for the command line of every generator."""

import subprocess
import sys
from pathlib import Path

import pytest

from physicsnemo_cano.datapipes import generation


def check_finished_data_is_never_overwritten(command_line, arguments, folder, capsys):
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    with pytest.raises(SystemExit):
        command_line.main([*arguments, "--out", str(folder)])
    assert "never overwritten" in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    assert not (folder / "parts").exists()


def stop_while_saving(command_line, arguments, folder, name, monkeypatch):
    """Interrupt a run at the moment it would write the file ``name``."""

    def stopped(path, write):
        if path.name == name:
            raise KeyboardInterrupt
        save_new(path, write)

    save_new = generation.save_new
    monkeypatch.setattr(generation, "save_new", stopped)
    with pytest.raises(KeyboardInterrupt):
        command_line.main([*arguments, "--out", str(folder)])
    monkeypatch.undo()


def check_it_runs_as_a_script(command_line, option, folder):
    script = Path(command_line.__file__)
    done = subprocess.run(
        [sys.executable, script, "--help"], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0
    assert option in done.stdout
