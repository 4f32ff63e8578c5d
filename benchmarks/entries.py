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
from physicsnemo_cano.nn.functional.specification import cluster_attention_specification

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
        attended = cluster_attention_specification(*heads, self.layer.centroids)
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
    "transolver": lambda slots: OfPoints(Transolver, slots, use_te=False),
    "flare": lambda slots: OfPoints(FLARE, slots, use_te=False),
}
ENTRIES = {"layer": (LAYER_ENTRIES, DIM), "model": (MODEL_ENTRIES, 3)}


def floor(points: int, slots: int, repeats: int) -> dict[str, float]:
    r"""Seconds of the products and exponentials that a layer's forward pass cannot do without.

    Each is measured alone, at its best tile size and layout, into memory that is already there.

    Parameters
    ----------
    points, slots, repeats : int
        N, K_c, and how often each is timed.

    Returns
    -------
    dict
        Seconds by part: the median at the best tile and layout.
    """
    h, n, k, d = HEADS, points, slots, DIM_HEAD
    x = torch.randn(n, DIM)
    query = torch.randn(h, n, d)  # stands for keys and values as well
    assignment = torch.rand(h, n, k)  # a tile of it is what a pass would hold
    slots_ = torch.randn(h, k, d)  # centroids, cluster queries or cluster values

    def linear(width):
        weight, bias = torch.randn(width, DIM), torch.randn(width)
        result = torch.empty(n, width)

        def prepare(tile):
            parts = (slice(a, a + tile) for a in range(0, n, tile))
            return [(bias, x[part], weight.T, result[part]) for part in parts]

        return prepare, lambda b, a, w, out: torch.addmm(b, a, w, out=out)

    def product(operands, points_last=False):
        r"""Products of what ``operands`` gives for the queries and assignments of a tile."""
        q, c = (t.mT.contiguous().mT if points_last else t for t in (query, assignment))

        def prepare(tile):
            # The same assignments for each tile: they stay in the cache, as in a real pass.
            first = (c.mT[..., :tile].contiguous().mT) if points_last else c[:, :tile].contiguous()
            pairs = [operands(q[:, a : a + tile], first) for a in range(0, n, tile)]
            out = torch.bmm(*pairs[0])
            return [(*pair, out) for pair in pairs]

        return prepare, lambda a, b, out: torch.bmm(a, b, out=out)

    def either_way(*operands):
        r"""As many layouts of the same product as there are."""
        return [product(o, last) for o in operands for last in (False, True)]

    def exponential():
        def prepare(tile):
            logits = torch.randn(h, tile, k)
            return [(logits, torch.empty_like(logits))] * (n // tile)

        return prepare, lambda logits, out: torch.exp(logits, out=out)

    logits = either_way(lambda q, c: (q, slots_.mT), lambda q, c: (slots_, q.mT))
    gather = either_way(lambda q, c: (c.mT, q), lambda q, c: (q.mT, c))
    spread = either_way(lambda q, c: (c, slots_), lambda q, c: (slots_.mT, c.mT))
    parts = {
        "project to q, k, v": [linear(3 * DIM)],
        "project out": [linear(DIM)],
        "cluster: Q W": logits,
        "cluster: exp": [exponential()],
        "cluster: C'Q": gather,
        "attend: Q K'": logits,
        "attend: exp": [exponential()],
        "attend: A V": gather,
        "dispatch: Q W": logits,
        "dispatch: exp": [exponential()],
        "dispatch: C Z": spread,
    }
    return {name: min(_best(*way, n, repeats) for way in ways) for name, ways in parts.items()}


def new_result(points: int, repeats: int) -> float:
    r"""Seconds to fill a new (N, C) tensor: what any layer pays, and the floor leaves out."""
    return _median(lambda: torch.empty(points, DIM).zero_(), repeats)


def _median(function, repeats):
    seconds = []
    for _ in range(repeats + 1):  # the first one warms up
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return sorted(seconds[1:])[repeats // 2]


def _best(prepare, operation, points, repeats):
    best = float("inf")
    for tile in (256, 512, 1024, 2048, 4096, 16384, points):
        if points % tile:
            continue
        operands = prepare(tile)

        def run(operands=operands):
            for arguments in operands:
                operation(*arguments)

        best = min(best, _median(run, repeats))
    return best
