# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
r"""Compile the Triton kernels ahead of time, as a machine without a GPU can, and report resources.

``python benchmarks/kernels.py`` compiles every choice of blocks for sm_80, sm_90 and sm_100 and
writes ``benchmarks/results/kernels.csv``: registers a thread, bytes of spilled registers and of
shared memory. Needs torch and triton; takes half an hour on one core.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import re
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

import torch
import triton
from torch import Tensor
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from physicsnemo_cano.nn.functional.cluster_attention.triton import passes, sizes

TARGETS = {80: 163 * 1024, 90: 227 * 1024, 100: 227 * 1024}
"""Compute capabilities, and the bytes of shared memory that a block may use there."""
POINTERS = {torch.float32: "*fp32", torch.bfloat16: "*bf16", torch.float16: "*fp16"}
RESULTS = Path(__file__).parent / "results" / "kernels.csv"


class Launch(NamedTuple):
    r"""What a pass would launch."""

    kernel: triton.JITFunction
    blocks: sizes.Blocks
    arguments: dict


class Resources(NamedTuple):
    r"""What a compiled kernel takes."""

    registers: int  # a thread
    spilled: int  # bytes a thread: stack and local memory
    shared: int  # bytes a block


def launches(dim: int, clusters: int, dtype: torch.dtype, weighted: bool) -> list[Launch]:
    r"""All launches of the six passes for a million points of given sizes."""
    found = []

    def record(kernel, grid, blocks, arguments):
        found.append(Launch(kernel, blocks, arguments))

    batch, heads, points = 2, 8, 2**20
    with torch.device("meta"):
        qkv = torch.empty(batch, points, 3, heads, dim, dtype=dtype)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
        centroids = torch.empty(heads, clusters, dim)
        weights = torch.empty(batch, points) if weighted else None
    sums, masses, lse = passes.aggregate(query, centroids, weights, record)
    values, values_lse = passes.attend(sums, key, value, weights, record)
    out = passes.dispatch(query, centroids, values, lse, record)
    passes.dispatch_backward(out, query, centroids, values, lse, record)
    passes.attend_backward(
        values, values_lse, sums, key, value, weights, values, values_lse, weighted, record
    )
    passes.aggregate_backward(sums, masses, query, centroids, weights, lse, weighted, record)
    return found


def source(launch: Launch) -> ASTSource:
    r"""The launch as Triton specialises it: aligned pointers, sizes divisible by 16, ones."""
    constants, attributes = {}, {}

    def kind(value, path):
        if isinstance(value, passes.Matrix):
            return passes.Matrix(*(kind(v, (*path, i)) for i, v in enumerate(value)))
        if isinstance(value, Tensor):
            attributes[path] = [["tt.divisibility", 16]]
            return POINTERS[value.dtype]
        if isinstance(value, float):
            return "fp32"
        name = launch.kernel.arg_names[path[0]]
        constant = launch.kernel.params[path[0]].is_constexpr or value is None
        if constant or (type(value) is int and value == 1):
            constants[path] = value
            return "constexpr"
        if type(value) is not int:
            raise TypeError(f"{name} is {value!r}")
        if value % 16 == 0:
            attributes[path] = [["tt.divisibility", 16]]
        return "i32" if value < 2**31 else "i64"

    signature = {
        name: kind(launch.arguments[name], (i,)) for i, name in enumerate(launch.kernel.arg_names)
    }
    return ASTSource(launch.kernel, signature, constants, attributes)


def resources(launch: Launch, capability: int) -> Resources:
    r"""Compile for a device, and read what the machine code takes."""
    options = {"num_warps": launch.blocks.warps, "num_stages": launch.blocks.stages}
    target = GPUTarget("cuda", capability, 32)
    compiled = triton.compile(source(launch), target=target, options=options)
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(compiled.asm["cubin"])
        file.flush()
        usage = subprocess.run(
            [triton.knobs.nvidia.cuobjdump.path, "--dump-resource-usage", file.name],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    used = {name: int(n) for name, n in re.findall(r"(REG|STACK|LOCAL):(\d+)", usage)}
    return Resources(used["REG"], used["STACK"] + used["LOCAL"], compiled.metadata.shared)


def row(launch: Launch, dtype: torch.dtype, capability: int) -> dict:
    r"""What tells a compiled kernel from the others; its resources come beside."""
    name = launch.kernel.__name__.removesuffix("_kernel")
    if name == "assignment_backward" or name == "assignment_backward_points":
        name += "_of_dispatch" if launch.arguments["upstream"] is not None else "_of_aggregate"
    return {
        "target": f"sm_{capability}",
        "dtype": str(dtype).removeprefix("torch."),
        "kernel": name,
        "fused": launch.arguments.get("FUSED", ""),
        "width": launch.arguments["WIDTH"],
        **launch.blocks._asdict(),
    }


def table(dtypes, capabilities, dims=(16, 32, 64, 128, 256)):
    r"""Every choice of blocks, each once: rows with the launches to compile."""
    rows = {}
    for dtype, capability, dim in itertools.product(dtypes, capabilities, dims):
        if dim > sizes.MAX_DIM[dtype]:
            continue
        for clusters in (1, 33, 65, sizes.MAX_CLUSTERS):
            for launch in launches(dim, clusters, dtype, weighted=True):
                found = row(launch, dtype, capability)
                rows.setdefault(tuple(found.values()), (found, launch, capability))
    return rows.values()


def main() -> None:
    r"""Compile the table and report it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtypes", nargs="+", default=["bfloat16", "float32", "float16"])
    parser.add_argument("--targets", nargs="+", type=int, default=list(TARGETS))
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    faults = 0
    with options.output.open("w", newline="") as file:
        writer = None
        dtypes = [getattr(torch, name) for name in options.dtypes]
        for found, launch, capability in table(dtypes, options.targets):
            used = resources(launch, capability)
            found |= used._asdict()
            if writer is None:
                writer = csv.DictWriter(file, found, lineterminator="\n")
                writer.writeheader()
                print(*found)
            writer.writerow(found)
            file.flush()
            print(*found.values(), flush=True)
            faults += used.spilled > 0 or used.shared > TARGETS[capability]
    print(f"{faults} kernels spill registers or take more shared memory than there is")


if __name__ == "__main__":
    main()
