# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

r"""Time and weigh CANO against PhysicsNeMo's Transolver and FLARE, on the CPU.

    python benchmarks/run.py layer                  # the attention layers, N = 4 k to 1 M
    python benchmarks/run.py model                  # whole models of 8 layers
    python benchmarks/run.py floor                  # the parts of a forward pass, each alone
    python benchmarks/run.py large                  # 10 million points in chunks

Entries of one case are timed in one process, one after the other in each round; what counts is
the median over the rounds, and the ratio. Peak memory is what a pass adds to the resident memory
of a fresh process. Rows go to ``--out``, a CSV; cases already there are not run again.
"""

from __future__ import annotations

import argparse
import multiprocessing
import platform
import re
import resource
import statistics
import time
from pathlib import Path

import torch
from entries import ENTRIES, HEADS, LAYER_ENTRIES, LAYERS, OfPoints, floor_parts
from physicsnemo.models.transolver import Transolver
from table import Table
from tqdm import tqdm

from physicsnemo_cano import CANO

RESULTS = Path(__file__).with_name("results")
PASSES = ("forward", "training")
MEMORY_SHARE = 0.85  # of the machine's memory; what needs more counts as out of memory
PATIENCE = 60.0  # seconds an entry's rounds may take together; the first is always finished


def seconds(passes: dict, rounds: int) -> dict[str, float | None]:
    r"""Median seconds of several functions, called in turn; ``None`` if out of memory."""
    times = {name: [] for name in passes}
    for round_ in range(rounds + 1):
        for name, function in passes.items():
            if times[name] is None or sum(times[name]) > PATIENCE:
                continue
            start = time.perf_counter()
            try:
                function()
            except RuntimeError as error:
                _only_memory(error)
                times[name] = None
                continue
            if round_:  # the first one warms up
                times[name].append(time.perf_counter() - start)
    return {name: t and statistics.median(t) for name, t in times.items()}


def peak_bytes(function) -> int | None:
    r"""What ``function`` adds to the resident memory at its peak; ``None`` if out of memory."""
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before = _resident("VmRSS")
    try:
        function()
    except RuntimeError as error:
        _only_memory(error)
        return None
    return _resident("VmHWM") - before


def make_pass(kind: str, entry: str, which: str, points: int, slots: int):
    r"""A function that runs one forward pass or one forward and backward pass."""
    torch.manual_seed(0)
    entries, channels = ENTRIES[kind]
    model = entries[entry](slots)
    x = torch.randn(1, points, channels)
    if which == "forward":

        @torch.no_grad()
        def call():
            model(x)

        return call
    x.requires_grad_()
    gradient = torch.randn(1, points, channels if kind == "layer" else 4)

    def step():
        model.zero_grad()
        x.grad = None
        model(x).backward(gradient)

    return step


def measure_time(kind: str, which: str, points: int, slots: int, rounds: int) -> dict:
    r"""Median seconds by entry."""
    names = ENTRIES[kind][0]
    return seconds({e: make_pass(kind, e, which, points, slots) for e in names}, rounds)


def measure_floor(points: int, slots: int, rounds: int) -> dict:
    r"""Median seconds by part of the floor, and of whole forward passes in turn with them."""
    layers = {e: make_pass("layer", e, "forward", points, slots) for e in ("cano", "flare")}
    with torch.no_grad():
        return seconds({**floor_parts(points, slots), **layers}, rounds)


def measure_memory(kind: str, entry: str, which: str, points: int, slots: int) -> int | None:
    r"""Peak bytes of one entry."""
    make_pass(kind, entry, which, 1024, slots)()  # what libraries set up at their first call
    return peak_bytes(make_pass(kind, entry, which, points, slots))


def measure_large(entry: str, points: int, chunk_size: int | None, keep: str | None) -> dict:
    r"""Predict on one very large cloud; peak of the whole process."""
    torch.manual_seed(0)
    if entry == "cano":
        model = OfPoints(CANO, 32, chunk_size=chunk_size)
    else:
        model = OfPoints(Transolver, 32, use_te=False)
    x = torch.rand(1, points, 3)
    start = time.perf_counter()
    try:
        with torch.no_grad():
            out = model(x)
    except RuntimeError as error:
        _only_memory(error)
        return {"seconds": None, "peak_gib": None, "outcome": f"out of memory: {error}"[:120]}
    elapsed = time.perf_counter() - start
    if keep:
        torch.save(out, keep)
    return {"seconds": elapsed, "peak_gib": _resident("VmHWM") / 2**30, "outcome": "done"}


def study(kind: str, args) -> None:
    r"""Times and peak memory of a kind of entry over the asked sizes."""
    table = Table(args.out or RESULTS / f"{kind}.csv")
    cases = [(n, k, p) for n in args.points for k in args.slots for p in PASSES]
    for points, slots, which in tqdm(cases, desc=f"{kind}s, sizes"):
        case = {"kind": kind, "pass": which, "points": points, "slots": slots}
        names = list(ENTRIES[kind][0])
        if table.has(case):
            continue
        times = in_process(measure_time, kind, which, points, slots, args.rounds)
        times = times or {}  # the whole process was killed
        for entry in names:
            peak = in_process(measure_memory, kind, entry, which, points, slots)
            table.add(
                {
                    **case,
                    "entry": entry,
                    "milliseconds": times.get(entry) and round(1e3 * times[entry], 2),
                    "peak_mib": peak and round(peak / 2**20, 1),
                    "rounds": args.rounds,
                    "threads": torch.get_num_threads(),
                }
            )


def study_floor(args) -> None:
    r"""The parts of the floor, and whole layers in turn with them."""
    table = Table(args.out or RESULTS / "floor.csv")
    for points in args.points:
        for slots in args.slots:
            times = in_process(measure_floor, points, slots, args.rounds)
            floor = sum(t for part, t in times.items() if part not in LAYER_ENTRIES)
            for part, value in {**times, "floor": floor}.items():
                table.add(
                    {
                        "points": points,
                        "slots": slots,
                        "part": part,
                        "milliseconds": round(1e3 * value, 2),
                        "of_floor": round(value / floor, 3),
                    }
                )


def study_large(args) -> None:
    r"""CANO in chunks and Transolver on ``--points``; chunked against unchunked on a tenth."""
    table = Table(args.out or RESULTS / "large.csv")
    points, chunk = args.points[-1], 8192
    files = [str(RESULTS.parent / f".large_{name}.pt") for name in ("chunked", "whole")]
    runs = [
        ("cano", points // 10, chunk, files[0]),
        ("cano", points // 10, None, files[1]),
        ("cano", points, chunk, None),
        ("transolver", points, None, None),
    ]
    for entry, n, size, keep in runs:
        print(f"{entry}, {n:,} points, chunk_size {size}", flush=True)
        row = in_process(measure_large, entry, n, size, keep)
        row = row or {"seconds": None, "peak_gib": None, "outcome": "killed: out of memory"}
        table.add({"entry": entry, "layers": LAYERS, "points": n, "chunk_size": size, **row})
    chunked, whole = (torch.load(file) for file in files)
    print(f"chunked against whole: at most {(chunked - whole).abs().max() / whole.abs().max():.1e}")
    for file in files:
        Path(file).unlink()


def in_process(function, *arguments):
    r"""Call a function in a fresh process of bounded memory; ``None`` if it was killed."""
    # A fork of this process, which has imported everything and computed nothing.
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def call():
        limit = int(MEMORY_SHARE * _machine_memory())
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        sender.send(function(*arguments))

    process = context.Process(target=call)
    process.start()
    sender.close()
    try:
        return receiver.recv()
    except EOFError:
        process.join()
        if process.exitcode != -9:
            raise RuntimeError(f"{function.__name__}{arguments} failed") from None
        return None
    finally:
        process.join()


def describe_machine() -> str:
    r"""Processor, threads, memory and torch, for the record."""
    info = Path("/proc/cpuinfo").read_text()
    name = re.search(r"model name\s*: (.*)", info)
    memory = _machine_memory() / 2**30
    return (
        f"{name.group(1) if name else platform.machine()}, {torch.get_num_threads()} threads, "
        f"{memory:.0f} GiB, torch {torch.__version__}, {HEADS} heads, float32"
    )


def _machine_memory() -> int:
    return int(re.search(r"MemTotal:\s*(\d+)", Path("/proc/meminfo").read_text())[1]) * 1024


def _resident(field: str) -> int:
    status = Path("/proc/self/status").read_text()
    return int(re.search(rf"{field}:\s*(\d+)", status)[1]) * 1024


def _only_memory(error: RuntimeError) -> None:
    if "alloc" not in str(error):
        raise error


def main() -> None:
    r"""Run what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("study", choices=["layer", "model", "floor", "large"])
    parser.add_argument("--points", type=int, nargs="+")
    parser.add_argument("--slots", type=int, nargs="+")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    sizes = {
        "layer": ([4096, 16384, 65536, 262144, 1048576], [32, 128, 512]),
        "model": ([4096, 16384, 65536], [32, 128]),
        "floor": ([65536], [32, 128]),
        "large": ([10_000_000], [32]),
    }
    args.points, args.slots = (
        args.points or sizes[args.study][0],
        args.slots or sizes[args.study][1],
    )
    print(describe_machine(), flush=True)
    {"floor": study_floor, "large": study_large}.get(args.study, lambda a: study(a.study, a))(args)


if __name__ == "__main__":
    main()
