# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

r"""Gather the ``metrics.json`` of several runs into one table.

``python benchmarks/scores.py outputs/airfoil --csv examples/airfoil/scores.csv`` writes a line
a run and prints a Markdown table: mean and standard deviation over the seeds of each model.
"""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path

import numpy as np


def main() -> None:
    r"""Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="outputs/<benchmark>")
    parser.add_argument("--csv", type=Path, required=True)
    args = parser.parse_args()
    runs = [
        json.loads(file.read_text()) for file in sorted(args.folder.glob("*/seed*/metrics.json"))
    ]
    if not runs:
        parser.error(f"no <model>/seed<seed>/metrics.json in {args.folder}")
    with args.csv.open("w", newline="") as file:
        columns = [key for key, value in runs[0].items() if not isinstance(value, list)]
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(runs)

    models = sorted({run["model"] for run in runs})
    scores = {m: [run["test_rel_l2"] for run in runs if run["model"] == m] for m in models}
    cano = np.mean(scores["cano"])
    print("| model | parameters | test relative L2 | seeds | CANO / model | training |")
    print("| --- | --- | --- | --- | --- | --- |")
    for model in models:
        of_model = [run for run in runs if run["model"] == model]
        error, spread = np.mean(scores[model]), np.std(scores[model], ddof=1)
        seconds = np.median([run["train_seconds"] for run in of_model])
        print(
            f"| {model} | {of_model[0]['n_params']:,} | {error:.4f} ± {spread:.4f} "
            f"| {len(of_model)} | {cano / error:.2f} | {seconds:.0f} s |"
        )
    mean = runs[0]["mean_predictor_rel_l2"]
    print(f"| the training mean | | {mean:.4f} | | {cano / mean:.2f} | |")


if __name__ == "__main__":
    main()
