# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

r"""Traffic and memory of a process that holds a share of one sample's points.

    MALLOC_MMAP_THRESHOLD_=65536 \
    torchrun --standalone --nproc_per_node=2 benchmarks/domain_parallel.py

predicts and takes training steps on random clouds and grids, with 64 features, 4 heads, 64
clusters and chunks of 2048 points, and writes what the first process measured to ``--out``. The
variable makes the C library give freed memory back, so that peaks are those of live tensors.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
import torch.distributed as dist
from physicsnemo.domain_parallel import ShardTensor
from run import peak_bytes
from table import Table
from torch.distributed.tensor import Shard
from traffic import Traffic

from physicsnemo_cano import CANO
from physicsnemo_cano.recipe.distributed import initialize

DIM, HEADS, CLUSTERS, CHUNK = 64, 4, 64, 2048


def shards(tensor: torch.Tensor, mesh) -> ShardTensor:
    r"""A tensor of which every process holds as much, along its first axis of points."""
    shapes = {0: [tensor.shape] * mesh.size()}  # PhysicsNeMo 2.2 infers them on GPUs only
    return ShardTensor.from_local(tensor, mesh, [Shard(1)], sharding_shapes=shapes)


def measure(mesh, kind: str, which: str, layers: int, points: int) -> dict:
    r"""Measure a pass over ``points`` points a process; of a grid, as lines of 256."""
    size = (points,) if kind == "cloud" else (points // 256, 256)
    whole = None if kind == "cloud" else (size[0] * mesh.size(), 256)
    model = CANO(
        1,
        4,
        embedding_dim=3,
        n_layers=layers,
        n_hidden=DIM,
        n_head=HEADS,
        slice_num=CLUSTERS,
        structured_shape=whole,
        chunk_size=CHUNK,
    )
    fx, embedding = (shards(torch.randn(1, *size, channels), mesh) for channels in (1, 3))

    def predict():
        with torch.no_grad():
            model(fx, embedding)

    def train():
        model(fx, embedding).to_local().square().mean().backward()

    run = predict if which == "prediction" else train
    with Traffic() as traffic:
        peak = peak_bytes(run)
    gradients = sum(4 * p.numel() for p in model.parameters()) * (which == "training")
    return {
        "peak_mib": round(peak / 2**20, 1),
        "fields": round(peak / (4 * DIM * points), 2),  # of DIM features on the process's points
        "clusters_bytes_a_layer": (traffic.bytes["allreduce_"] - gradients) // layers,
        "halo_bytes_a_layer": traffic.bytes["alltoall_base_"] // layers,
        "gradients_bytes": gradients,
    }


def main() -> None:
    r"""Measure every case that ``--out`` lacks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, nargs="+", default=[65536, 131072])
    parser.add_argument("--layers", type=int, nargs="+", default=[2, 4])
    out = Path(__file__).with_name("results") / "domain_parallel.csv"
    parser.add_argument("--out", type=Path, default=out)
    arguments = parser.parse_args()

    initialize()
    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
    measure(mesh, "grid", "training", 1, 1024)  # what is allocated once is no part of a case
    table = Table(arguments.out)
    for kind in ("cloud", "grid"):
        for which in ("prediction", "training"):
            for layers in arguments.layers:
                for points in arguments.points:
                    case = {"processes": mesh.size(), "kind": kind, "pass": which}
                    case |= {"layers": layers, "points_a_process": points}
                    if table.has(case):
                        continue
                    row = case | measure(mesh, kind, which, layers, points)
                    if dist.get_rank() == 0:
                        table.add(row)
                    dist.barrier()


if __name__ == "__main__":
    main()
