# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""What holds for every source file."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("physicsnemo_cano", "examples", "benchmarks", "tests")
HEADER = (
    "# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.\n"
    "# SPDX-License-Identifier: Apache-2.0\n"
)


def test_source_files_name_their_licence():
    files = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")]
    assert len(files) > 100
    missing = [
        str(file.relative_to(ROOT)) for file in files if HEADER not in file.read_text()[:300]
    ]
    assert not missing, f"these files do not start with the lines\n{HEADER}: {missing}"
