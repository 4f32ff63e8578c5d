# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

r"""Draw ``results/layer.csv``: time and peak memory against the number of points.

python benchmarks/plot.py
"""

from __future__ import annotations

import csv
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

RESULTS = Path(__file__).with_name("results")
COLORS = {
    "cano": "#0072b2",
    "specification": "#56b4e9",
    "transolver": "#d55e00",
    "flare": "#009e73",
}
NAMES = {"cano": "CANO", "specification": "CANO, equations as written"}
NAMES |= {"transolver": "Transolver", "flare": "FLARE"}
QUANTITIES = {"milliseconds": "training step [ms]", "peak_mib": "peak memory [MiB]"}


def main() -> None:
    r"""Draw the picture."""
    rows = [r for r in csv.DictReader((RESULTS / "layer.csv").open()) if r["pass"] == "training"]
    slots = sorted({int(row["slots"]) for row in rows})
    figure = Figure(figsize=(3.6 * len(slots), 5.6), layout="constrained")
    axes = figure.subplots(2, len(slots), sharex=True, sharey="row", squeeze=False)
    for line, (quantity, label) in zip(axes, QUANTITIES.items(), strict=True):
        line[0].set_ylabel(label)
        for panel, k in zip(line, slots, strict=True):
            for entry, color in COLORS.items():
                points = sorted(
                    (int(row["points"]), float(row[quantity]))
                    for row in rows
                    if (row["entry"], int(row["slots"])) == (entry, k) and row[quantity]
                )
                panel.loglog(
                    *zip(*points, strict=True), "o-", color=color, label=NAMES[entry], ms=3
                )
            panel.grid(alpha=0.3, which="major")
            panel.xaxis.set_minor_formatter(NullFormatter())
            panel.spines[["top", "right"]].set_visible(False)
    for panel, k in zip(axes[0], slots, strict=True):
        panel.set_title(f"{k} slots", fontsize=10)
    for panel in axes[1]:
        panel.set_xlabel("points")
    axes[0, 0].legend(frameon=False, fontsize=8)
    figure.savefig(RESULTS / "layer.png", dpi=110)


if __name__ == "__main__":
    main()
