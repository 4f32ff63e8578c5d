# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

r"""Results that outlast their run."""

from __future__ import annotations

import csv
from pathlib import Path

from tqdm import tqdm


class Table:
    r"""A CSV file that grows by a row at a time."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self.rows = list(csv.DictReader(self.path.open())) if self.path.exists() else []

    def has(self, case: dict) -> bool:
        r"""Whether a row with these values is there."""
        return any(all(row[k] == str(v) for k, v in case.items()) for row in self.rows)

    def add(self, row: dict) -> None:
        r"""Append a row and print it."""
        tqdm.write(", ".join(f"{k} {v}" for k, v in row.items()))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = not self.path.exists()
        with self.path.open("a", newline="") as file:
            writer = csv.DictWriter(file, row, lineterminator="\n")
            if new:
                writer.writeheader()
            writer.writerow(row)
        self.rows.append({k: str(v) for k, v in row.items()})
