# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

r"""Train on a coarse Darcy grid, test on finer ones without retraining.

``python benchmarks/resolution.py solved`` solves a Darcy set on 85×85 nodes, trains on every 4th
node of an axis and tests on every 4th, every 2nd and every node.
``python benchmarks/resolution.py public --data DIR`` does so with neuraloperator's public files
``darcy_train_16.pt``, ``darcy_test_16.pt`` and ``darcy_test_32.pt``.

Every model has the same data, sizes, optimiser and number of epochs; the FNO, whose sizes mean
something else, has no padding and knows the coordinates, as suits changing resolution. Rows are
appended to ``--out``; rows already there are not run again.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import torch
from physicsnemo.models.flare import FLARE
from physicsnemo.models.fno import FNO
from physicsnemo.models.transolver import Transolver
from table import Table
from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).parents[1]))  # to run as a script

from examples.darcy.solver import draw_permeability, solve_darcy
from physicsnemo_cano import CANO
from physicsnemo_cano.datapipes.quadrature import node_weights
from physicsnemo_cano.losses import relative_l2
from physicsnemo_cano.recipe.config import ADAMW, MUON, Training
from physicsnemo_cano.recipe.optimizers import build_optimizer

SIZES = {"n_layers": 4, "n_head": 4, "mlp_ratio": 2, "slice_num": 32}
MODELS = {"cano": CANO, "transolver": Transolver, "flare": FLARE}
OPTIMIZERS = {"adamw": ADAMW, "muon": MUON}
BATCH = 4


def solved_set(samples: int, n: int = 85, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    r"""Permeabilities and pressures, (samples, n, n) each."""
    rng = np.random.default_rng(seed)
    a, u = np.empty((2, samples, n, n), dtype=np.float32)
    for i in tqdm(range(samples), desc=f"solving Darcy {n}×{n}", mininterval=5):
        a[i] = draw_permeability(rng, n)
        u[i] = solve_darcy(a[i])
    return torch.from_numpy(a), torch.from_numpy(u)


def load_solved(args) -> tuple[tuple, dict[int, tuple]]:
    r"""Training pair on 22×22 nodes, and test pairs by the number of nodes an axis."""
    cache = Path(args.cache)
    if not cache.exists():
        cache.parent.mkdir(parents=True, exist_ok=True)
        torch.save(solved_set(700), cache)
    a, u = torch.load(cache, weights_only=True)
    # 15 and 29 points are neither a whole number of times coarser nor finer than 22.
    cut = {85: 1, 43: 2, 29: 3, 22: 4, 15: 6}
    tests = {n: (a[500:, ::s, ::s], u[500:, ::s, ::s]) for n, s in cut.items()}
    return (a[:500, ::4, ::4], u[:500, ::4, ::4]), dict(sorted(tests.items()))


def load_public(args) -> tuple[tuple, dict[int, tuple]]:
    r"""Training pair at 16×16, and test pairs by the number of points an axis."""

    def load(name):
        data = torch.load(Path(args.data) / name, weights_only=True)
        return data["x"].float(), data["y"].float()

    return load("darcy_train_16.pt"), {n: load(f"darcy_test_{n}.pt") for n in (16, 32)}


def grid(n: int, nodes: bool) -> torch.Tensor:
    r"""Coordinates (n, n, 2): nodes from 0 to 1, or, as in the public set, 0 to 1 - 1/n."""
    x = torch.linspace(0, 1, n) if nodes else torch.arange(n) / n
    return torch.stack(torch.meshgrid(x, x, indexing="ij"), -1)


def run(
    variant: str, seed: int, n_hidden: int, nodes: bool, train, tests, epochs: int, optimizer: str
) -> dict:
    r"""Train one variant and return its row of the table."""
    name, layout, *weighted = variant.split("-")
    torch.manual_seed(seed)
    a, u = train
    a_mean, a_std, u_mean, u_std = a.mean(), a.std(), u.mean(), u.std()
    shape = tuple(a.shape[1:]) if layout == "grid" else None
    if name == "fno":
        # The highest mode that a 16×16 grid resolves is its eighth.
        model = FNO(1, 1, num_fno_modes=8, padding=0, coord_features=True)
    else:
        extra = {} if name == "cano" else {"use_te": False}
        model = MODELS[name](1, 1, 2, structured_shape=shape, n_hidden=n_hidden, **SIZES, **extra)

    def errors(a, u):
        n, batch = a.shape[-1], len(a)
        x = grid(n, nodes)
        more = {}
        if weighted:
            more["weights"] = node_weights(x, structured=True).flatten().expand(batch, -1)
        if layout == "cloud":
            x = x.flatten(0, 1)
        elif name == "transolver":
            # Its convolution takes the grid from the module.
            for block in model.blocks:
                block.Attn.H, block.Attn.W = n, n
        fx = (a - a_mean) / a_std
        if name == "fno":
            out = model(fx.unsqueeze(1)).reshape(batch, -1, 1)
        else:
            fx = fx.reshape(batch, -1, 1)
            out = model(fx, x.expand(batch, *x.shape), **more).reshape(batch, -1, 1)
        return relative_l2(out * u_std + u_mean, u.reshape(batch, -1, 1))

    steps = epochs * len(a) // BATCH
    descend, schedule = build_optimizer(model, Training(**OPTIMIZERS[optimizer]), steps)
    order = torch.Generator().manual_seed(seed)
    start = time.perf_counter()
    with tqdm(total=steps, desc=f"{variant} seed {seed}", mininterval=10) as bar:
        for _ in range(epochs):
            for batch in torch.randperm(len(a), generator=order).split(BATCH):
                descend.zero_grad()
                errors(a[batch], u[batch]).mean().backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
                descend.step()
                schedule.step()
                bar.update()
    seconds = time.perf_counter() - start
    model.eval()
    with torch.no_grad():
        found = [
            torch.cat([errors(*part) for part in zip(a.split(10), u.split(10), strict=True)]).mean()
            for a, u in tests.values()
        ]
    return {
        "variant": variant,
        "optimizer": optimizer,
        "seed": seed,
        "epochs": epochs,
        "n_hidden": n_hidden,
        "n_params": sum(p.numel() for p in model.parameters()),
        "seconds": round(seconds),
        "points_per_axis": " ".join(map(str, tests)),
        "rel_l2": " ".join(f"{e:.5f}" for e in found),
    }


def main() -> None:
    r"""Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", choices=["solved", "public"])
    parser.add_argument("--data", help="folder of the public files")
    parser.add_argument(
        "--cache", default="outputs/darcy_85.pt", help="where the solved set is kept"
    )
    parser.add_argument("--out", type=Path, default="outputs/resolution.csv")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--optimizer", choices=list(OPTIMIZERS), default="muon")
    parser.add_argument("--epochs", type=int, help="20 (solved) or 15 (public) by default")
    parser.add_argument("--n-hidden", type=int, default=64, help="features of every model")
    parser.add_argument("--only", nargs="+", help="variants such as cano-grid-weighted")
    args = parser.parse_args()
    load, epochs = {"solved": (load_solved, 20), "public": (load_public, 15)}[args.study]
    epochs = args.epochs or epochs
    train, tests = load(args)
    variants = ["cano-grid", "cano-cloud", "transolver-grid", "transolver-cloud", "flare-cloud"]
    if args.study == "solved":
        variants = ["cano-grid-weighted", "cano-cloud-weighted", *variants]
    elif args.optimizer == "adamw":  # an FNO has no matrices for Muon
        variants.append("fno-grid")
    table = Table(args.out)
    for seed in args.seeds:
        for variant in args.only or variants:
            case = {"study": args.study, "variant": variant, "optimizer": args.optimizer}
            case |= {"seed": seed, "epochs": epochs, "n_hidden": args.n_hidden}
            if table.has(case):
                continue
            nodes = args.study == "solved"
            found = run(variant, seed, args.n_hidden, nodes, train, tests, epochs, args.optimizer)
            table.add({"study": args.study, **found})


if __name__ == "__main__":
    main()
