r"""Train on a coarse Darcy grid, test on finer ones without retraining.

``python benchmarks/resolution.py solved`` solves a Darcy set on 85×85 nodes, trains on every 4th
node of an axis and tests on every 4th, every 2nd and every node.
``python benchmarks/resolution.py public --data DIR`` does so with neuraloperator's public files
``darcy_train_16.pt``, ``darcy_test_16.pt`` and ``darcy_test_32.pt``.

Every model has the same data, sizes, optimiser and number of epochs. Rows are appended to
``--out``; rows already there are not run again.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch
from physicsnemo.models.flare import FLARE
from physicsnemo.models.transolver import Transolver
from physicsnemo.optim import CombinedOptimizer
from scipy.sparse.linalg import spsolve
from tqdm import tqdm

from physicsnemo_cano import CANO
from physicsnemo_cano.datapipes.quadrature import node_weights

SIZES = {"n_layers": 4, "n_hidden": 64, "n_head": 4, "mlp_ratio": 2, "slice_num": 32}
MODELS = {"cano": CANO, "transolver": Transolver, "flare": FLARE}
LEARNING_RATE = 4e-3
BATCH = 4


def solve_darcy(coefficient: np.ndarray) -> np.ndarray:
    r"""Solve :math:`-\nabla \cdot (a \nabla u) = 1`, u = 0 on the boundary of the unit square.

    Finite volumes around the nodes of an n×n grid, harmonic means of ``coefficient`` (n, n) on
    the faces. Returns u of shape (n, n).
    """
    n = len(coefficient)
    number = np.arange(n * n).reshape(n, n)
    rows, cols, values = [], [], []
    for a, b, left, right in (
        (number[:-1], number[1:], coefficient[:-1], coefficient[1:]),
        (number[:, :-1], number[:, 1:], coefficient[:, :-1], coefficient[:, 1:]),
    ):
        conductance = (2 * left * right / (left + right)).ravel()
        a, b = a.ravel(), b.ravel()
        rows += [a, b, a, b]
        cols += [a, b, b, a]
        values += [conductance, conductance, -conductance, -conductance]
    matrix = sp.csr_matrix(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(cols))), (n * n, n * n)
    )
    inner = number[1:-1, 1:-1].ravel()
    u = np.zeros(n * n)
    u[inner] = spsolve(matrix[inner][:, inner].tocsc(), np.full(len(inner), (n - 1.0) ** -2))
    return u.reshape(n, n)


def solved_set(samples: int, n: int = 85, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    r"""Coefficients 12 or 3 by the sign of N(0, (−Δ+9)^{-2}), Neumann; (samples, n, n) each."""
    rng = np.random.default_rng(seed)
    k = np.pi * np.arange(n)
    spectrum = 1 / (k[:, None] ** 2 + k**2 + 9)
    modes = np.cos(np.outer(np.linspace(0, 1, n), k))
    a, u = np.empty((2, samples, n, n), dtype=np.float32)
    for i in tqdm(range(samples), desc=f"solving Darcy {n}×{n}", mininterval=5):
        field = modes @ (spectrum * rng.standard_normal((n, n))) @ modes.T
        a[i] = np.where(field > 0, 12, 3)
        u[i] = solve_darcy(a[i].astype(np.float64))
    return torch.from_numpy(a), torch.from_numpy(u)


def load_solved(args) -> tuple[tuple, dict[int, tuple]]:
    cache = Path(args.cache)
    if not cache.exists():
        cache.parent.mkdir(parents=True, exist_ok=True)
        torch.save(solved_set(700), cache)
    a, u = torch.load(cache, weights_only=True)
    cut = {85: 1, 43: 2, 22: 4}
    tests = {n: (a[500:, ::s, ::s], u[500:, ::s, ::s]) for n, s in cut.items()}
    return (a[:500, ::4, ::4], u[:500, ::4, ::4]), dict(sorted(tests.items()))


def load_public(args) -> tuple[tuple, dict[int, tuple]]:
    def load(name):
        data = torch.load(Path(args.data) / name, weights_only=True)
        return data["x"].float(), data["y"].float()

    return load("darcy_train_16.pt"), {n: load(f"darcy_test_{n}.pt") for n in (16, 32)}


def grid(n: int, nodes: bool) -> torch.Tensor:
    r"""Coordinates (n, n, 2): nodes from 0 to 1, or, as in the public set, 0 to 1 - 1/n."""
    x = torch.linspace(0, 1, n) if nodes else torch.arange(n) / n
    return torch.stack(torch.meshgrid(x, x, indexing="ij"), -1)


def rel_l2(prediction, target):
    return torch.linalg.vector_norm(prediction - target, dim=1) / torch.linalg.vector_norm(
        target, dim=1
    )


def run(name: str, layout: str, weighted: bool, seed: int, study: str, train, tests, epochs: int):
    torch.manual_seed(seed)
    nodes = study == "solved"
    a, u = train
    n = a.shape[-1]
    a_mean, a_std, u_mean, u_std = a.mean(), a.std(), u.mean(), u.std()
    shape = (n, n) if layout == "grid" else None
    extra = {} if name == "cano" else {"use_te": False}
    model = MODELS[name](1, 1, 2, structured_shape=shape, **SIZES, **extra)

    def predict(model, a):
        n, batch = a.shape[-1], len(a)
        x = grid(n, nodes)
        fx = ((a - a_mean) / a_std).reshape(batch, -1, 1)
        more = {}
        if weighted:
            more["weights"] = node_weights(x, structured=True).reshape(1, -1).expand(batch, -1)
        if layout == "cloud":
            x = x.reshape(-1, 2)
        elif name == "transolver":
            # Its convolution takes the grid from the module.
            for block in model.blocks:
                block.Attn.H, block.Attn.W = n, n
        out = model(fx, x.expand(batch, *x.shape), **more)
        return out.reshape(batch, -1) * u_std + u_mean

    muon = [
        p
        for k, p in model.named_parameters()
        if p.ndim == 2 and "blocks" in k and "centroids" not in k
    ]
    chosen = {id(p) for p in muon}
    optimizer = CombinedOptimizer(
        [
            torch.optim.Muon(
                muon, lr=LEARNING_RATE, weight_decay=1e-5, adjust_lr_fn="match_rms_adamw"
            ),
            torch.optim.AdamW(
                [p for p in model.parameters() if id(p) not in chosen],
                lr=LEARNING_RATE,
                weight_decay=1e-5,
            ),
        ]
    )
    steps = epochs * (len(a) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, LEARNING_RATE, total_steps=steps, cycle_momentum=False
    )
    order = torch.Generator().manual_seed(seed)
    start = time.perf_counter()
    bar = tqdm(total=steps, desc=f"{name} {layout} seed {seed}", mininterval=10)
    for _ in range(epochs):
        for batch in torch.randperm(len(a), generator=order).split(BATCH):
            loss = rel_l2(predict(model, a[batch]), u[batch].flatten(1)).mean()
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
            schedule.step()
            bar.update()
    bar.close()
    model.eval()
    with torch.no_grad():
        errors = {
            m: torch.cat(
                [
                    rel_l2(predict(model, x), y.flatten(1))
                    for x, y in zip(a.split(10), u.split(10), strict=True)
                ]
            )
            .mean()
            .item()
            for m, (a, u) in tests.items()
        }
    return errors, time.perf_counter() - start, model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", choices=["solved", "public"])
    parser.add_argument("--data", help="folder of the public files")
    parser.add_argument(
        "--cache", default="outputs/darcy_85.pt", help="where the solved set is kept"
    )
    parser.add_argument("--out", default="outputs/resolution.csv")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--only", nargs="+", help="variants such as cano-grid-weighted")
    args = parser.parse_args()
    train, tests = {"solved": load_solved, "public": load_public}[args.study](args)
    epochs = {"solved": 20, "public": 15}[args.study]
    variants = ["cano-grid", "cano-cloud", "transolver-grid", "transolver-cloud", "flare-cloud"]
    if args.study == "solved":
        variants = ["cano-grid-weighted", "cano-cloud-weighted", *variants]
    out = Path(args.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    done = set()
    if out.exists():
        done = {(r["study"], r["variant"], r["seed"]) for r in csv.DictReader(out.open())}
    for seed in args.seeds:
        for variant in args.only or variants:
            if (args.study, variant, str(seed)) in done:
                continue
            name, layout, *weighted = variant.split("-")
            errors, seconds, model = run(
                name, layout, bool(weighted), seed, args.study, train, tests, epochs
            )
            row = {
                "study": args.study,
                "variant": variant,
                "seed": seed,
                "epochs": epochs,
                "n_params": sum(p.numel() for p in model.parameters()),
                "seconds": round(seconds),
                "points": " ".join(map(str, errors)),
                "rel_l2": " ".join(f"{e:.5f}" for e in errors.values()),
            }
            print(row, flush=True)
            new = not out.exists()
            with out.open("a", newline="") as file:
                writer = csv.DictWriter(file, row)
                if new:
                    writer.writeheader()
                writer.writerow(row)


if __name__ == "__main__":
    main()
