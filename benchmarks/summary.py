# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

r"""Print one table over all benchmarks from their ``scores.csv``.

``python benchmarks/summary.py examples/*/scores.csv`` gives, for each benchmark, the mean test
error of every model over its seeds and CANO's in units of the others', with geometric means.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from pathlib import Path

import numpy as np


def main() -> None:
    r"""Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+")
    args = parser.parse_args()
    others, ratios = ("transolver", "flare"), defaultdict(list)
    print("| benchmark | CANO | Transolver | FLARE | training mean | CANO / Transolver | / FLARE |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for file in args.files:
        with file.open(newline="") as stream:
            runs = list(csv.DictReader(stream))
        errors = defaultdict(list)
        for run in runs:
            errors[run["model"]].append(float(run["test_rel_l2"]))
        cells = [_with_spread(errors[model]) for model in ("cano", *others)]
        cells.append(f"{float(runs[0]['mean_predictor_rel_l2']):.3f}")
        for model in others:
            if errors[model]:
                ratios[model].append(np.mean(errors["cano"]) / np.mean(errors[model]))
            cells.append(f"{ratios[model][-1]:.2f}" if errors[model] else "")
        print(f"| {runs[0]['benchmark']} | {' | '.join(cells)} |")
    means = [f"{np.exp(np.mean(np.log(ratios[model]))):.2f}" for model in others if ratios[model]]
    print(f"| geometric mean | | | | | {' | '.join(means)} |")


def _with_spread(errors: list[float]) -> str:
    if not errors:
        return ""
    spread = f" ± {np.std(errors, ddof=1):.4f}" if len(errors) > 1 else ""
    return f"{np.mean(errors):.4f}{spread}"


if __name__ == "__main__":
    main()
