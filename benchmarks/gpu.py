# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
r"""Check and time CANO's layer on a GPU against Transolver's and FLARE's: one command, 8 minutes.

    python -m benchmarks.gpu                           # results/gpu.csv and a table
    python -m benchmarks.gpu --device cpu --quick      # the same steps at tiny sizes, without a GPU

From the repository's root. Needs torch alone: where PhysicsNeMo is installed the other two are
its layers, else those below, written from their papers. In order: equality with the equations in
float64, equal bits in repeated runs, CUDA graphs, ``torch.compile``, then times and peak memory,
the largest clouds last. What does not fit into ``--budget-seconds`` is left out and said.
"""

from __future__ import annotations

import argparse
import copy
import csv
import itertools
import math
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F

from physicsnemo_cano.nn.functional.cluster_attention import (
    IMPLEMENTATIONS,
    Projection,
    cluster_attention,
)

DIM, HEADS = 128, 8
DIM_HEAD = DIM // HEADS
PASSES = ("forward", "training")
DTYPES = (torch.bfloat16, torch.float32)
SIZES = {  # of points and slots; a check that only one tile passes would be none
    "checks": ([10_007], [64]),
    "times": ([16_384, 65_536, 262_144, 1_048_576, 4_194_304], [32, 128, 512]),
}
QUICK = {"checks": ([203], [8]), "times": ([32, 64], [8])}
COLUMNS = (
    *("device", "torch", "step", "layer", "pass", "dtype", "points", "slots"),
    *("outcome", "milliseconds", "peak_mib", "error", "error_of_equations"),
)


class Cano(nn.Module):
    r"""CANO's layer on point clouds (arXiv 2609.39914), from its functional form alone."""

    def __init__(self, slots: int, implementation: str | None = None) -> None:
        super().__init__()
        self.implementation = implementation
        self.to_qkv = nn.Linear(DIM, 3 * DIM)
        self.centroids = nn.Parameter(torch.randn(HEADS, slots, DIM_HEAD))
        self.to_out = nn.Linear(DIM, DIM)

    def forward(self, x: torch.Tensor, weights: torch.Tensor | None = None) -> torch.Tensor:
        r"""Of (B, N, C), as all layers here, and weights (B, N)."""
        projection = Projection(
            self.to_qkv.weight, self.to_qkv.bias, self.to_out.weight, self.to_out.bias
        )
        return cluster_attention(
            *(x, x, x, self.centroids),
            weights=weights,
            projection=projection,
            implementation=self.implementation,
        )


class Transolver(nn.Module):
    r"""Physics-Attention (arXiv 2402.02366, sec. 3.1): slices, attention among them, back."""

    def __init__(self, slots: int) -> None:
        super().__init__()
        self.to_x, self.to_features = nn.Linear(DIM, DIM), nn.Linear(DIM, DIM)
        self.to_slices = nn.Linear(DIM_HEAD, slots)
        self.temperature = nn.Parameter(torch.full((1, HEADS, 1, 1), 0.5))
        self.to_qkv = nn.Linear(DIM_HEAD, 3 * DIM_HEAD, bias=False)
        self.to_out = nn.Linear(DIM, DIM)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        r"""Of (B, N, C)."""
        points, features = (_heads(layer(x)) for layer in (self.to_x, self.to_features))
        slices = (self.to_slices(points) / self.temperature).softmax(-1)  # (B, H, N, S)
        tokens = slices.mT @ features / (slices.sum(-2).unsqueeze(-1) + 1e-5)  # (B, H, S, D)
        tokens = F.scaled_dot_product_attention(*self.to_qkv(tokens).chunk(3, -1))
        return self.to_out((slices @ tokens).transpose(1, 2).flatten(2))


class Flare(nn.Module):
    r"""FLARE's attention (arXiv 2508.12594, sec. 3): learned queries gather, then hand back.

    Its residual networks for keys and values are one linear layer each, as in PhysicsNeMo.
    """

    def __init__(self, slots: int) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.randn(1, HEADS, slots, DIM_HEAD))
        self.to_key, self.to_value = nn.Linear(DIM, DIM), nn.Linear(DIM, DIM)
        self.to_out = nn.Linear(DIM, DIM)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        r"""Of (B, N, C)."""
        query = self.query.expand(len(x), -1, -1, -1)
        key, value = _heads(self.to_key(x)), _heads(self.to_value(x))
        gathered = F.scaled_dot_product_attention(query, key, value, scale=1.0)
        out = F.scaled_dot_product_attention(key, query, gathered, scale=1.0)
        return self.to_out(out.transpose(1, 2).flatten(2))


def _heads(x: torch.Tensor) -> torch.Tensor:
    return x.unflatten(-1, (HEADS, DIM_HEAD)).transpose(1, 2)  # (B, H, N, D)


def rivals() -> tuple[str, dict[str, Callable[[int], nn.Module]]]:
    r"""Where Transolver's and FLARE's layers come from, and what makes them of a slot number."""
    try:
        from physicsnemo.nn.module.flare_attention import FLARE
        from physicsnemo.nn.module.physics_attention import PhysicsAttentionIrregularMesh
    except ImportError as error:
        return f"written from their papers ({error})", {"transolver": Transolver, "flare": Flare}

    def transolver(slots):
        return PhysicsAttentionIrregularMesh(DIM, HEADS, DIM_HEAD, slice_num=slots, use_te=False)

    def flare(slots):
        return FLARE(DIM, HEADS, DIM_HEAD, n_global_queries=slots, use_te=False)

    return "PhysicsNeMo's", {"transolver": transolver, "flare": flare}


class Run:
    r"""Where the steps run, what time is left, and the rows that they leave."""

    def __init__(self, device: str, budget_seconds: float, out: Path, repeats: int) -> None:
        self.device = torch.device(device)
        self.repeats = repeats
        self.on_gpu = self.device.type == "cuda"
        self.name = torch.cuda.get_device_name() if self.on_gpu else "CPU"
        self.end = time.monotonic() + budget_seconds
        self.rows: list[dict[str, Any]] = []
        out.parent.mkdir(parents=True, exist_ok=True)
        self.file = out.open("w", newline="")
        self.writer = csv.DictWriter(self.file, COLUMNS, lineterminator="\n")
        self.writer.writeheader()

    def seconds_left(self) -> float:
        r"""Of the budget."""
        return self.end - time.monotonic()

    def add(self, step: str, case: dict[str, Any], **values) -> None:
        r"""Write and print a row."""
        row = {"device": self.name, "torch": torch.__version__, "step": step, **case, **values}
        self.rows.append(row)
        self.writer.writerow(row)
        self.file.flush()
        print(", ".join(f"{v}" for v in (step, *case.values())), end=": ")
        print(", ".join(f"{k} {v}" for k, v in values.items()), flush=True)

    def sample(self, points: int, dtype: torch.dtype) -> torch.Tensor:
        r"""Features of a cloud, the same every time."""
        generator = torch.Generator(self.device).manual_seed(points)
        return torch.randn(1, points, DIM, generator=generator, device=self.device, dtype=dtype)

    def layer(self, make: Callable[[int], nn.Module], slots: int, dtype: torch.dtype) -> nn.Module:
        r"""A layer, with the same parameters every time."""
        torch.manual_seed(0)
        return make(slots).to(self.device, dtype)


def gradients(
    layer: nn.Module, x: torch.Tensor, weights: torch.Tensor | None = None
) -> list[torch.Tensor]:
    r"""Output, and the gradients of its product with a fixed tensor: input's, parameters'."""
    upstream = x.flip(1)  # independent of a point's own features
    x = x.detach().requires_grad_()
    out = layer(x) if weights is None else layer(x, weights)
    return [out.detach(), *torch.autograd.grad(out, (x, *layer.parameters()), upstream)]


def against_equations(
    run: nn.Module, layer: nn.Module, x: torch.Tensor, weights: torch.Tensor | None = None
) -> dict[str, str]:
    r"""Largest error of ``run``, which is ``layer`` somehow, against the equations in float64.

    Four times the error of the equations in the layer's own type is allowed: it may round
    elsewhere, not more coarsely. Errors are relative to the norm of the output or of a gradient.
    """
    exact, plain = copy.deepcopy(layer).double(), copy.deepcopy(layer)
    exact.implementation = plain.implementation = "reference"
    truth = gradients(exact, x.double(), weights)

    def largest(results):
        pairs = zip(results, truth, strict=True)
        return max(((r.double() - t).norm() / t.norm()).item() for r, t in pairs)

    error, allowed = (largest(gradients(one, x, weights)) for one in (run, plain))
    return {
        "outcome": _verdict(error <= 4 * allowed),
        "error": f"{error:.1e}",
        "error_of_equations": f"{allowed:.1e}",
    }


def check_equations(layer: nn.Module, x: torch.Tensor) -> dict[str, str]:
    r"""Errors against the equations, points of equal weights."""
    return against_equations(layer, layer, x)


def check_weights(layer: nn.Module, x: torch.Tensor) -> dict[str, str]:
    r"""Errors against the equations with quadrature weights."""
    return against_equations(layer, layer, x, 0.5 + x[..., 0].float().sigmoid())


def check_repeats(layer: nn.Module, x: torch.Tensor) -> dict[str, str]:
    r"""Whether a second run gives the same bits."""
    return {"outcome": _verdict(_same_bits(gradients(layer, x), gradients(layer, x)))}


def check_graph(layer: nn.Module, x: torch.Tensor) -> dict[str, str]:
    r"""Whether a training step can be captured in a CUDA graph, and replays to the same bits."""
    if not x.is_cuda:
        return {"outcome": "skipped: it needs a GPU"}
    expected = gradients(layer, x)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):  # what libraries set up at their first calls
        for _ in range(3):
            gradients(layer, x)
    torch.cuda.current_stream().wait_stream(stream)
    graph, fed = torch.cuda.CUDAGraph(), torch.zeros_like(x)
    with torch.cuda.graph(graph):
        captured = gradients(layer, fed)
    fed.copy_(x)
    graph.replay()
    return {"outcome": _verdict(_same_bits(captured, expected))}


def check_compile(layer: nn.Module, x: torch.Tensor) -> dict[str, str]:
    r"""Errors of the compiled layer; on CPUs it is traced whole, and runs as it was traced."""
    torch.compiler.reset()
    backend = "inductor" if x.is_cuda else "eager"
    return against_equations(torch.compile(layer, fullgraph=True, backend=backend), layer, x)


CHECKS = {
    "equations": check_equations,
    "equations, weights": check_weights,
    "repeats": check_repeats,
    "CUDA graph": check_graph,
    "compile": check_compile,
}


def _same_bits(first: list[torch.Tensor], second: list[torch.Tensor]) -> bool:
    return all(map(torch.equal, first, second))


def _verdict(passed: bool) -> str:
    return "ok" if passed else "FAILED"


def measure(run: Run, layer: nn.Module, x: torch.Tensor, which: str) -> dict[str, float]:
    r"""Median milliseconds of a pass, and what it adds to the memory at its peak."""
    upstream = torch.randn_like(x)
    x.requires_grad_(which == "training")

    def step():
        layer.zero_grad()
        x.grad = None
        with torch.set_grad_enabled(which == "training"):
            out = layer(x)
        if which == "training":
            out.backward(upstream)

    if run.on_gpu:
        step()
        layer.zero_grad()
        x.grad = None
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
    step()
    peak = {}
    if run.on_gpu:
        torch.cuda.synchronize()
        peak["peak_mib"] = round((torch.cuda.max_memory_allocated() - before) / 2**20, 1)
    times = []
    while len(times) < run.repeats and sum(times) < 500:  # milliseconds
        times.append(_milliseconds(step, run.on_gpu))
    return {"outcome": "ok", "milliseconds": round(statistics.median(times), 3), **peak}


def _milliseconds(step: Callable[[], None], on_gpu: bool) -> float:
    if not on_gpu:
        start = time.perf_counter()
        step()
        return 1e3 * (time.perf_counter() - start)
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    step()
    stop.record()
    stop.synchronize()
    return start.elapsed_time(stop)


def run_checks(run: Run, implementations: list[str], sizes, reserve: float) -> None:
    r"""Every check of every implementation, until ``reserve`` seconds are left."""
    for step, name, dtype in itertools.product(CHECKS, implementations, DTYPES):
        for points, slots in itertools.product(*sizes):
            case = _case(f"cano {name}", "training", dtype, points, slots)
            if run.seconds_left() < reserve:
                run.add(step, case, outcome="skipped: what time is left is for times")
                continue
            layer = run.layer(partial(Cano, implementation=name), slots, dtype)
            try:
                values = CHECKS[step](layer, run.sample(points, dtype))
            except Exception as error:  # the other checks still say something
                values = {"outcome": f"FAILED: {_line(error)}"}
            run.add(step, case, **values)


def run_times(run: Run, makers: dict[str, Callable[[int], nn.Module]], sizes) -> None:
    r"""Times and peak memory, small clouds first; the layers of a case one after the other."""
    spent = {}  # seconds that a series took at the last number of points; inf where it ended
    before = sizes[0][0]
    for points in sizes[0]:
        for slots, dtype, which, name in itertools.product(sizes[1], DTYPES, PASSES, makers):
            case, series = _case(name, which, dtype, points, slots), (slots, dtype, which, name)
            if spent.get(series, 0) * points / before > run.seconds_left():
                run.add("times", case, outcome="skipped: no time, or fewer points were too many")
                spent[series] = math.inf
                continue
            start = time.monotonic()
            layer, x = run.layer(makers[name], slots, dtype), run.sample(points, dtype)
            try:
                values = measure(run, layer, x, which)
                spent[series] = time.monotonic() - start
            except torch.OutOfMemoryError:
                values, spent[series] = {"outcome": "out of memory"}, math.inf
            except RuntimeError as error:  # the other layers still have times
                values, spent[series] = {"outcome": f"FAILED: {_line(error)}"}, math.inf
            run.add("times", case, **values)
            del layer, x
            if run.on_gpu:
                torch.cuda.empty_cache()
        before = points


def _case(layer: str, which: str, dtype: torch.dtype, points: int, slots: int) -> dict[str, Any]:
    return {
        "layer": layer,
        "pass": which,
        "dtype": str(dtype).removeprefix("torch."),
        "points": points,
        "slots": slots,
    }


def _line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


def available(run: Run) -> list[str]:
    r"""Implementations that run on this device; says why the others do not."""
    names = []
    for name in IMPLEMENTATIONS:
        if name == "tiled":  # it is for CPUs
            continue
        try:
            run.layer(partial(Cano, implementation=name), 8, torch.float32)(
                run.sample(64, torch.float32)
            )
        except ValueError as error:  # what the function says of an implementation that cannot
            print(f"cano {name}: left out: {error}")
        else:
            names.append(name)
    return names


def table(rows: list[dict[str, Any]]) -> str:
    r"""Milliseconds and, in brackets, MiB at the peak: a line a case, a column a layer."""
    rows = [row for row in rows if row["step"] == "times"]
    layers = list(dict.fromkeys(row["layer"] for row in rows))
    cells: dict[tuple, dict[str, str]] = {}
    for row in rows:
        case = tuple(row[k] for k in ("points", "slots", "dtype", "pass"))
        cell = str(row.get("milliseconds", row["outcome"].partition(":")[0]))
        cell += f" ({row['peak_mib']:.0f})" if "peak_mib" in row else ""
        cells.setdefault(case, {})[row["layer"]] = cell
    lines = [["points", "slots", "type", "pass", *layers], ["---"] * (4 + len(layers))]
    lines += [[*map(str, case), *map(line.get, layers)] for case, line in cells.items()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main(arguments: list[str] | None = None) -> int:
    r"""Run all steps; the number of checks that failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to try the script")
    parser.add_argument("--budget-seconds", type=float, default=450)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "gpu.csv")
    args = parser.parse_args(arguments)
    if args.device.startswith("cuda") and not torch.cuda.is_available():
        parser.error(
            f"--device {args.device} needs an NVIDIA GPU, and torch {torch.__version__} finds "
            "none: run it where nvidia-smi lists one with a CUDA build of torch, or try the "
            "script with --device cpu --quick"
        )
    run = Run(args.device, args.budget_seconds, args.out, repeats=2 if args.quick else 20)
    origin, others = rivals()
    print(f"{run.name}, torch {torch.__version__}; Transolver and FLARE: {origin}", flush=True)
    sizes = QUICK if args.quick else SIZES
    implementations = available(run)
    checked = [name for name in implementations if name != "reference"]
    run_checks(run, checked, sizes["checks"], reserve=args.budget_seconds / 2)
    layers = {f"cano {name}": partial(Cano, implementation=name) for name in implementations}
    run_times(run, {**layers, **others}, sizes["times"])
    print(table(run.rows))
    failures = [row for row in run.rows if row["outcome"].startswith("FAILED")]
    print(f"{len(failures)} checks failed; {args.out}")
    return len(failures)


if __name__ == "__main__":
    sys.exit(min(main(), 1))
