# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

r"""What bfloat16 autocast changes, by relative L2 differences from float32.

Without arguments: output and gradient of untrained models, mean over three seeds; the gradient
also without LayerNorm's parameters, which PyTorch sums in bfloat16 on CPUs (not on GPUs). With
checkpoints of the examples: predictions on the test samples, and the errors of both.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from physicsnemo.datapipes import Dataset
from physicsnemo.models.transolver import Transolver

from physicsnemo_cano import CANO
from physicsnemo_cano.recipe import Recipe, open_reader
from physicsnemo_cano.recipe.checkpoint import find_checkpoint, open_model
from physicsnemo_cano.recipe.distributed import initialize
from physicsnemo_cano.recipe.evaluation import evaluate
from physicsnemo_cano.recipe.normalization import Statistics
from physicsnemo_cano.recipe.prediction import predictor_for

SIZES = {
    "4 layers, 32 features": {"n_layers": 4, "n_hidden": 32, "n_head": 4, "slice_num": 32},
    "8 layers, 128 features": {"n_layers": 8, "n_hidden": 128, "n_head": 8, "slice_num": 64},
}
MODELS = {"CANO": (CANO, {}), "Transolver": (Transolver, {"use_te": False})}
SIDE = 64


def difference(rough: torch.Tensor, exact: torch.Tensor) -> float:
    r"""Relative L2 difference."""
    return ((rough.float() - exact).norm() / exact.norm()).item()


def untrained(model: str, size: str, shape: tuple[int, int] | None, seed: int) -> list[float]:
    r"""Differences of output, gradient and gradient without LayerNorm, in the unit square."""
    torch.manual_seed(seed)
    points = torch.rand(1, SIDE**2, 2)
    if shape:
        points = torch.cartesian_prod(*(torch.linspace(0, 1, n) for n in shape))[None]
    fx, target = (6 * points[..., :1]).sin(), (6 * points[..., 1:]).cos()
    cls, options = MODELS[model]
    net = cls(1, 1, embedding_dim=2, structured_shape=shape, **SIZES[size], **options)
    norms = {p for m in net.modules() if isinstance(m, torch.nn.LayerNorm) for p in m.parameters()}
    results = []
    for enabled in (False, True):
        net.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            output = net(fx, points)
        ((output.float() - target) ** 2).mean().backward()
        used = [p for p in net.parameters() if p.grad is not None]
        kept = (used, [p for p in used if p not in norms])
        gradients = [torch.cat([p.grad.flatten() for p in some]) for some in kept]
        results.append((output.detach(), *gradients))
    exact, rough = results
    return [difference(r, e) for r, e in zip(rough, exact, strict=True)]


def trained(path: Path, root: Path | None) -> tuple[float, float, float]:
    r"""Mean difference of the predictions; test errors in float32 and in bfloat16."""
    folder, file = find_checkpoint(path)
    settings = Recipe.load(folder / "config.yaml")
    reader = open_reader(settings.data | {"root": root}, "test")
    statistics = Statistics.load(folder / "normalization.npz")
    device, shape = initialize().device, None if settings.as_cloud else reader.spatial_shape
    dataset = Dataset(reader, transforms=statistics.inputs(), device=device)
    model, results = open_model(file, device), []
    for amp in (None, "bf16"):
        predict = predictor_for(reader.series)(model, shape, statistics, device, amp)
        found = evaluate(predict, dataset, 1, keep_predictions=True)
        results.append((found.errors, found.predictions))
    (exact_errors, exact), (rough_errors, rough) = results
    pairs = zip(map(torch.as_tensor, rough), map(torch.as_tensor, exact), strict=True)
    differences = [difference(r, e) for r, e in pairs]
    return sum(differences) / len(differences), exact_errors.mean(), rough_errors.mean()


def main() -> None:
    r"""Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoints", type=Path, nargs="*")
    parser.add_argument("--data", type=Path, help="the set the checkpoints' benchmark is tested on")
    args = parser.parse_args()
    if args.checkpoints:
        print(
            "| checkpoint | prediction | error, float32 | error, bfloat16 |\n" + "| --- " * 4 + "|"
        )
        for path in args.checkpoints:
            print("| {} | {:.2e} | {:.5f} | {:.5f} |".format(path, *trained(path, args.data)))
        return
    print(
        "| points | size | model | output | gradient | without LayerNorm |\n" + "| --- " * 6 + "|"
    )
    for points, shape in (("cloud", None), ("grid", (SIDE, SIDE))):
        for size in SIZES:
            for model in MODELS:
                runs = torch.tensor([untrained(model, size, shape, seed) for seed in range(3)])
                row = " | ".join(f"{value:.1e}" for value in runs.mean(0).tolist())
                print(f"| {points} | {size} | {model} | {row} |")


if __name__ == "__main__":
    main()
