# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

r"""What is timed: CANO's layer, its specification, PhysicsNeMo's layers, and the floor."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
import torch.nn as nn
from physicsnemo.models.flare import FLARE
from physicsnemo.models.transolver import Transolver
from physicsnemo.nn.module.flare_attention import FLARE as FLAREAttention
from physicsnemo.nn.module.physics_attention import PhysicsAttentionIrregularMesh

from physicsnemo_cano import CANO, ClusterAttention
from physicsnemo_cano.nn.functional.cluster_attention import cluster_attention_reference

DIM, HEADS, LAYERS = 128, 8, 8
DIM_HEAD = DIM // HEADS


class Specification(nn.Module):
    r"""The layer as the paper's equations are written, every matrix stored."""

    def __init__(self, slots: int) -> None:
        super().__init__()
        self.layer = ClusterAttention(DIM, HEADS, DIM_HEAD, n_clusters=slots)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        r"""Of (B, N, C), as all entries."""
        heads = self.layer.to_qkv(x).unflatten(-1, (3, HEADS, DIM_HEAD)).permute(2, 0, 3, 1, 4)
        attended = cluster_attention_reference(*heads, self.layer.centroids)
        return self.layer.to_out(attended.transpose(1, 2).flatten(2))


class OfPoints(nn.Module):
    r"""A whole model on points with three coordinates and no input function."""

    def __init__(self, model: type[nn.Module], slots: int, **options) -> None:
        super().__init__()
        self.model = model(
            0,
            4,
            embedding_dim=3,
            n_layers=LAYERS,
            n_hidden=DIM,
            n_head=HEADS,
            mlp_ratio=2,
            slice_num=slots,
            **options,
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        r"""Of coordinates (B, N, 3)."""
        return self.model(x[..., :0], x)


LAYER_ENTRIES: dict[str, Callable[[int], nn.Module]] = {
    "cano": lambda slots: ClusterAttention(DIM, HEADS, DIM_HEAD, n_clusters=slots),
    "specification": Specification,
    "transolver": lambda slots: PhysicsAttentionIrregularMesh(
        DIM, HEADS, DIM_HEAD, slice_num=slots, use_te=False, plus=False
    ),
    "flare": lambda slots: FLAREAttention(
        DIM, HEADS, DIM_HEAD, n_global_queries=slots, use_te=False
    ),
}
MODEL_ENTRIES: dict[str, Callable[[int], nn.Module]] = {
    "cano": lambda slots: OfPoints(CANO, slots),
    "cano_in_chunks": lambda slots: OfPoints(CANO, slots, chunk_size=4096),
    "transolver": lambda slots: OfPoints(Transolver, slots, use_te=False),
    "flare": lambda slots: OfPoints(FLARE, slots, use_te=False),
}
ENTRIES = {"layer": (LAYER_ENTRIES, DIM), "model": (MODEL_ENTRIES, 3)}


def floor_parts(points: int, slots: int) -> dict[str, Callable[[], None]]:
    r"""The products and exponentials that a layer's forward pass cannot do without, each alone.

    Each runs in the tile size and layout that are fastest for it, and into memory that is there
    already but for the layer's result, which no layer can help to allocate.

    Parameters
    ----------
    points, slots : int
        N and K_c.

    Returns
    -------
    dict
        A function to time by part.
    """
    h, n, k, d = HEADS, points, slots, DIM_HEAD
    x = torch.randn(n, DIM)
    query = torch.randn(h, n, d)  # stands for keys and values as well
    assignment = torch.rand(h, n, k)  # a tile of it is what a pass would hold
    of_slots = torch.randn(h, k, d)  # centroids, cluster queries or cluster values

    def linear(width, result):
        weight, bias = torch.randn(width, DIM), torch.randn(width)

        def way(tile):
            def run():
                for a, out in zip(x.split(tile), result().split(tile), strict=True):
                    torch.addmm(bias, a, weight.T, out=out)

            return run

        return way

    def product(operands, points_last):
        q, c = (t.mT.contiguous().mT if points_last else t for t in (query, assignment))

        def way(tile):
            # The same assignments for each tile: they stay in the cache, as in a real pass.
            first = c.mT[..., :tile].contiguous().mT if points_last else c[:, :tile].contiguous()
            pairs = [operands(part, first) for part in q.split(tile, 1)]
            out = torch.bmm(*pairs[0])

            def run():
                for pair in pairs:
                    torch.bmm(*pair, out=out)

            return run

        return way

    def products(*operands):
        return [product(o, points_last) for o in operands for points_last in (False, True)]

    def exponential(tile):
        logits = torch.randn(h, tile, k)
        out = torch.empty_like(logits)

        def run():
            for _ in range(n // tile):
                torch.exp(logits, out=out)

        return run

    kept = torch.empty(n, 3 * DIM)
    logits = _fastest(products(lambda q, c: (q, of_slots.mT), lambda q, c: (of_slots, q.mT)), n)
    gather = _fastest(products(lambda q, c: (c.mT, q), lambda q, c: (q.mT, c)), n)
    exp = _fastest([exponential], n)
    return {
        "project to q, k, v": _fastest([linear(3 * DIM, lambda: kept)], n),
        "cluster: Q W": logits,
        "cluster: exp": exp,
        "cluster: C'Q": gather,
        "attend: Q K'": logits,
        "attend: exp": exp,
        "attend: A V": gather,
        "dispatch: Q W": logits,
        "dispatch: exp": exp,
        "dispatch: C Z": _fastest(
            products(lambda q, c: (c, of_slots), lambda q, c: (of_slots.mT, c.mT)), n
        ),
        "project out": _fastest([linear(DIM, lambda: torch.empty(n, DIM))], n),
    }


def _fastest(ways, points):
    r"""The fastest of some ways to do a thing, each in several tile sizes."""

    def seconds(run):
        times = []
        for _ in range(4):
            start = time.perf_counter()
            run()
            times.append(time.perf_counter() - start)
        return min(times)

    tiles = [tile for tile in (256, 512, 1024, 2048, 4096, 16384, points) if points % tile == 0]
    return min((way(tile) for way in ways for tile in tiles), key=seconds)
