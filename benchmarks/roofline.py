# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
r"""Least time of a layer on NVIDIA GPUs, computed from what its operators move and multiply.

    python -m benchmarks.roofline       # results/roofline.csv and .png, tables of docs/roofline.md

Nothing is measured, and no GPU is needed: the layers run on ``meta`` tensors, as their code is,
and each operator is given its bytes and operations by a formula.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from benchmarks.entries import DIM, DIM_HEAD, HEADS, LAYER_ENTRIES
from benchmarks.operations import Operations
from physicsnemo_cano.nn.functional.cluster_attention.triton import sizes

RESULTS = Path(__file__).with_name("results")
PAGE = Path(__file__).parents[1] / "docs" / "roofline.md"
POINTS = (65_536, 1_048_576, 4_194_304)
SLOTS = (32, 64, 128, 256, 512)
DTYPES = (torch.bfloat16, torch.float32)
PASSES = ("forward", "training")
LAUNCH = 5e-6
"""Seconds that each operation is given beside its kernel's time."""


class Device(NamedTuple):
    r"""Peak rates of a GPU, dense, from NVIDIA's data sheets; docs/roofline.md names each."""

    bandwidth: float  # bytes a second of its memory
    bfloat16: float  # floating-point operations a second of matrix units
    tf32: float
    float32: float  # of vector units
    lanes: int  # float32 multiply-adds a clock and multiprocessor

    @property
    def exponentials(self) -> float:
        r"""A second: 16 a clock and multiprocessor (CUDA programming guide, 8.0 to 10.0)."""
        return self.float32 / (2 * self.lanes) * 16


DEVICES = {
    "A100": Device(2.039e12, 312e12, 156e12, 19.5e12, 64),
    "H100": Device(3.35e12, 989.5e12, 494.5e12, 67e12, 128),
    "H200": Device(4.8e12, 989.5e12, 494.5e12, 67e12, 128),
    "B200": Device(7.7e12, 2250e12, 1100e12, 75e12, 128),
}


class Cost(NamedTuple):
    r"""What an operator cannot do without."""

    name: str
    bytes: int  # read and written, each tensor once
    products: int = 0  # floating-point operations of its matrix products
    exponentials: int = 0
    unit: str = "float32"  # what does the products

    def times(self, device: Device) -> dict[str, float]:
        r"""Seconds by what could limit it."""
        rates = {
            "bfloat16": device.bfloat16,
            "float32": device.float32,
            # CUTLASS's OpMultiplyAddFastF32: a float32 product is three in TF32.
            "3xTF32": device.tf32 / 3,
        }
        return {
            "memory": self.bytes / device.bandwidth,
            "products": self.products / rates[self.unit],
            "exponentials": self.exponentials / device.exponentials,
        }

    def seconds(self, device: Device) -> float:
        r"""The largest of them: within a kernel they overlap, if it is a good one."""
        return max(self.times(device).values())


class Case(NamedTuple):
    r"""A layer's pass and size; one sample."""

    layer: str
    which: str
    dtype: torch.dtype
    points: int
    slots: int


LAYERS: dict[str, Callable[[int], torch.nn.Module]] = {
    "cano_triton": lambda slots: _cano(slots, "triton"),
    "cano_sdpa": lambda slots: _cano(slots, "sdpa"),
    "transolver": LAYER_ENTRIES["transolver"],
    "flare": LAYER_ENTRIES["flare"],
}


NAMES = {
    "cano_triton": "CANO, our kernels",
    "cano_sdpa": "CANO, torch alone",
    "transolver": "Transolver",
    "flare": "FLARE",
}
COLORS = {
    "cano_triton": "#0072b2",
    "cano_sdpa": "#56b4e9",
    "transolver": "#d55e00",
    "flare": "#009e73",
}


def _cano(slots: int, implementation: str) -> torch.nn.Module:
    layer = LAYER_ENTRIES["cano"](slots)
    layer.implementation = implementation
    return layer


class FusedAttention(TorchFunctionMode):
    r"""Within, attention is the operator that a GPU would choose, not ``meta``'s decomposition."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        r"""FlashAttention for half precision without a bias, else the memory-efficient kernels."""
        kwargs = kwargs or {}
        if func is not F.scaled_dot_product_attention:
            return func(*args, **kwargs)
        query, key, value = args
        bias, scale = kwargs.get("attn_mask"), kwargs.get("scale")
        aten = torch.ops.aten
        if query.dtype == torch.float32 or bias is not None:
            attend = aten._scaled_dot_product_efficient_attention
            return attend(query, key, value, bias, torch.is_grad_enabled(), scale=scale)[0]
        return aten._scaled_dot_product_flash_attention(query, key, value, scale=scale)[0]


def operators(case: Case) -> list[Cost]:
    r"""Costs of what a layer calls, in order.

    Parameters
    ----------
    case : Case
        ``training`` is the forward and backward pass, gradients of the input included.

    Returns
    -------
    list[Cost]
        Operators that move nothing, as allocations and profiler's marks, left out.
    """
    training = case.which == "training"
    layer = LAYERS[case.layer](case.slots).to("meta", case.dtype)
    x = torch.empty(1, case.points, DIM, device="meta", dtype=case.dtype, requires_grad=training)
    gradient = torch.empty_like(x)
    with Operations(partial(cost, case)) as operations, torch.set_grad_enabled(training):
        with FusedAttention():
            out = layer(x)
        if training:
            out.backward(gradient)
    return [c for costs in operations.calls for c in costs if c.bytes]


def cost(
    case: Case, operator: torch._ops.OpOverload, args: tuple, kwargs: dict, result
) -> list[Cost]:
    r"""Bytes and operations of one call: of one kernel, or of those of our own operators."""
    name = operator.name().partition("::")[2].partition(".")[0]
    if operator.namespace == "cano":
        return KERNELS[name](case)
    tensors = tree_leaves((args[1:] if name in OVERWRITING else args, kwargs, result))
    moved = 0 if "empty" in name else sum(map(_bytes, tensors))
    formula = flop_registry.get(operator.overloadpacket)
    products = formula(*args, **kwargs, out_val=result) if formula else 0
    unit = "bfloat16" if case.dtype == torch.bfloat16 else "float32"
    exponentials = 0
    if "attention" in name:
        # Keys and queries are the first tensors with points; the gradient comes before them.
        query, key = args[1:3] if name.endswith("backward") else args[:2]
        exponentials = query[..., 0].numel() * key.shape[-2]
        if "efficient" in name and case.dtype == torch.float32:
            unit = "3xTF32"
    elif name == "_softmax":
        exponentials = result.numel()
    shape = next((t.shape for t in tree_leaves(result) if isinstance(t, torch.Tensor)), ())
    name = f"{name.strip('_')} ({' × '.join(map(str, shape))})"  # of its first result
    return [Cost(name, moved, products, exponentials, unit)]


OVERWRITING = ("copy_", "fill_", "zero_")  # they do not read what they write to


def _bytes(leaf: object) -> int:
    r"""Of a tensor's memory; what is repeated by a stride of zero counts once."""
    if not isinstance(leaf, torch.Tensor):
        return 0
    own = 1
    for size, stride in zip(leaf.shape, leaf.stride(), strict=True):
        own *= size if stride else min(size, 1)
    return own * leaf.itemsize


class Sizes(NamedTuple):
    r"""What the formulas of our kernels are made of; one sample."""

    field: int  # bytes of queries, or of any other N H D numbers
    of_heads: int  # bytes of one float32 a point and head, N H: the logsumexp of its logits
    of_slots: int  # bytes of H K D float32: centroids, cluster queries, cluster values
    splits: int  # of the points, each with partial sums of its own
    product: int  # floating-point operations of one matrix product, 2 N H K D
    scores: int  # N H K
    fits: bool  # whether a program holds all slots; else they come in blocks, and passes repeat
    unit: str

    @classmethod
    def of(cls, case: Case, kernel: str) -> Sizes:
        r"""Of a case, cut as the kernel is."""
        inner = HEADS * DIM_HEAD
        query = torch.empty(1, HEADS, case.points, DIM_HEAD, device="meta", dtype=case.dtype)
        cut = sizes.cut(kernel, query, case.slots)
        return cls(
            field=case.points * inner * case.dtype.itemsize,
            of_heads=case.points * HEADS * 4,
            of_slots=case.slots * inner * 4,
            splits=cut.splits,
            product=2 * case.points * inner * case.slots,
            scores=case.points * HEADS * case.slots,
            fits=cut.blocks.clusters >= case.slots,
            unit="bfloat16" if case.dtype == torch.bfloat16 else "3xTF32",
        )


# Each formula: what is read and, after the semicolon, what is written, each once (programs on the
# same points run together, so that blocks of slots share the points in the cache); the products by
# name; the exponentials. C is the assignment (eq. 13), A the attention (eq. 15), L logits, d a
# gradient. One number a slot (masses, logsumexp) beside a row of D is left out.


def _merge(name: str, s: Sizes, matrices: int) -> Cost:
    r"""Partial sums of every split, read, added up in order and written."""
    return Cost(f"{name}, sum of splits", matrices * (s.splits + 1) * s.of_slots)


def _aggregate(s: Sizes) -> list[Cost]:
    logsumexp = Cost(
        "aggregate, logsumexp",
        s.field + s.of_slots + s.of_heads,  # Q, W; logsumexp
        s.product,  # Q W
        s.scores,
        s.unit,
    )
    sums = Cost(
        "aggregate",
        s.field + s.of_slots + s.of_heads + s.splits * s.of_slots,  # Q, W, logsumexp; C'Q
        2 * s.product,  # Q W, C'Q
        s.scores,
        s.unit,
    )
    return [*([] if s.fits else [logsumexp]), sums, _merge("aggregate", s, 1)]


def _attend(s: Sizes) -> list[Cost]:
    attended = Cost(
        "attend",
        2 * s.field + s.of_slots + s.splits * s.of_slots,  # K, V, Q_c; A V
        2 * s.product,  # Q_c K', A V
        s.scores,
        s.unit,
    )
    return [attended, _merge("attend", s, 1)]


def _dispatch(s: Sizes) -> list[Cost]:
    return [
        Cost(
            "dispatch",
            2 * s.field + s.of_heads + 2 * s.of_slots,  # Q, logsumexp, W, Z; Y
            2 * s.product,  # Q W, C Z
            s.scores,
            s.unit,
        )
    ]


def _dispatch_backward(s: Sizes) -> list[Cost]:
    sums = 2 * s.splits * s.of_slots  # dZ, dW
    if s.fits:
        one = Cost(
            "dispatch backward",
            3 * s.field + s.of_heads + 2 * s.of_slots + sums,  # Q, dY, logsumexp, W, Z; dQ, sums
            5 * s.product,  # Q W, dY Z', C'dY, dL W, dL'Q
            s.scores,
            s.unit,
        )
        return [one, _merge("dispatch backward", s, 2)]
    points = Cost(
        "dispatch backward, points",
        3 * s.field + 2 * s.of_heads + 2 * s.of_slots,  # Q, dY, logsumexp, W, Z; dQ, C . dC
        5 * s.product,  # Q W and dY Z' twice, dL W
        2 * s.scores,
        s.unit,
    )
    slots = Cost(
        "dispatch backward, slots",
        2 * s.field + 2 * s.of_heads + 2 * s.of_slots + sums,  # Q, dY, both, W, Z; sums
        4 * s.product,  # Q W, dY Z', C'dY, dL'Q
        s.scores,
        s.unit,
    )
    return [points, slots, _merge("dispatch backward", s, 2)]


def _attend_backward(s: Sizes) -> list[Cost]:
    inputs = 2 * s.field + 3 * s.of_slots  # K, V, Q_c, Z, dZ
    sums = s.splits * s.of_slots  # dQ_c
    if s.fits:
        one = Cost(
            "attend backward",
            inputs + 2 * s.field + sums,  # dK, dV, sums
            5 * s.product,  # Q_c K', dZ V', A'dZ, dL'Q_c, dL K
            s.scores,
            s.unit,
        )
        return [one, _merge("attend backward", s, 1)]
    points = Cost(
        "attend backward, points",
        inputs + 2 * s.field,  # dK, dV
        4 * s.product,  # Q_c K', dZ V', A'dZ, dL'Q_c
        s.scores,
        s.unit,
    )
    slots = Cost(
        "attend backward, slots",
        inputs + sums,
        3 * s.product,  # Q_c K', dZ V', dL K
        s.scores,
        s.unit,
    )
    return [points, slots, _merge("attend backward", s, 1)]


def _aggregate_backward(s: Sizes) -> list[Cost]:
    sums = s.splits * s.of_slots  # dW
    if s.fits:
        one = Cost(
            "aggregate backward",
            2 * s.field + s.of_heads + 2 * s.of_slots + sums,  # Q, logsumexp, W, dsums; dQ, sums
            5 * s.product,  # Q W, Q dsums', dL W, C dsums, dL'Q
            s.scores,
            s.unit,
        )
        return [one, _merge("aggregate backward", s, 1)]
    points = Cost(
        "aggregate backward, points",
        2 * s.field + 2 * s.of_heads + 2 * s.of_slots,  # Q, logsumexp, W, dsums; dQ, C . dC
        6 * s.product,  # Q W and Q dsums' twice, dL W, C dsums
        2 * s.scores,
        s.unit,
    )
    slots = Cost(
        "aggregate backward, slots",
        s.field + 2 * s.of_heads + 2 * s.of_slots + sums,  # Q, both, W, dsums; sums
        3 * s.product,  # Q W, Q dsums', dL'Q
        s.scores,
        s.unit,
    )
    return [points, slots, _merge("aggregate backward", s, 1)]


class Kernel(NamedTuple):
    r"""A formula, and the kernel whose cut it takes."""

    costs: Callable[[Sizes], list[Cost]]
    cut_as: str

    def __call__(self, case: Case, **changes) -> list[Cost]:
        r"""Costs of a case."""
        return self.costs(Sizes.of(case, self.cut_as)._replace(**changes))


KERNELS = {
    "aggregate": Kernel(_aggregate, "aggregate"),
    "attend": Kernel(_attend, "attend"),
    "dispatch": Kernel(_dispatch, "dispatch"),
    "aggregate_backward": Kernel(_aggregate_backward, "assignment_backward"),
    "attend_backward": Kernel(_attend_backward, "attend_backward"),
    "dispatch_backward": Kernel(_dispatch_backward, "assignment_backward"),
}


class Fusion(NamedTuple):
    r"""Kernels that could be fewer, or cheaper."""

    what: str
    now: list[Cost]
    then: list[Cost]


def fusions(points: int) -> list[Fusion]:
    r"""What larger kernels would save, of the layer with our kernels as they are."""
    case = Case("cano_triton", "training", torch.bfloat16, points, 64)
    s = Sizes.of(case, "aggregate")
    linear = 2 * points * DIM * HEADS * DIM_HEAD  # operations of one projection of the points
    project = Cost("project to q, k, v", 4 * s.field, 3 * linear, 0, s.unit)
    project_out = Cost("project out", 2 * s.field, linear, 0, s.unit)
    aggregate, merged = KERNELS["aggregate"](case)
    attend, merged_too = KERNELS["attend"](case)
    (dispatch,) = KERNELS["dispatch"](case)
    aggregate_backward, _ = KERNELS["aggregate_backward"](case)

    def joined(*costs: Cost, saved: int = 0, more: int = 0) -> list[Cost]:
        sums = (sum(column) for column in list(zip(*costs, strict=True))[1:4])
        moved, products, exponentials = sums
        name = " + ".join(c.name for c in costs)
        return [Cost(name, moved - saved, products + more, exponentials, s.unit)]

    return [
        Fusion(
            "projection and aggregation: q is not read again",
            [project, aggregate],
            joined(project, aggregate, saved=s.field),
        ),
        Fusion(
            "dispatch and output projection, inference: Y is neither written nor read",
            [dispatch, project_out],
            joined(dispatch, project_out, saved=2 * s.field),
        ),
        Fusion(
            "dispatch and output projection, training: the gradient of W_O needs Y",
            [dispatch, project_out],
            joined(dispatch, project_out, saved=s.field),
        ),
        Fusion(
            "inference, all passes project for themselves: q, k, v and Y are never in memory",
            [project, aggregate, merged, attend, merged_too, dispatch, project_out],
            [
                *joined(aggregate, more=linear),  # reads x in place of q
                merged,
                *joined(attend, saved=s.field, more=2 * linear),  # x in place of k and v
                merged_too,
                *joined(dispatch, more=2 * linear),  # x in place of q, the result in place of Y
            ],
        ),
        Fusion(
            "gradients of q, k, v: added and stacked, or written into one tensor",
            [
                aggregate_backward,
                Cost("add both of q", 3 * s.field),
                Cost("stack", 6 * s.field),
            ],
            joined(aggregate_backward, saved=-s.field),  # reads the gradient that it adds to
        ),
        *(
            Fusion(
                f"{many.slots} slots, {_type(many.dtype)}, training, the six passes: slots in "
                "blocks, or all in a program",
                [c for kernel in KERNELS.values() for c in kernel(many)],
                [c for kernel in KERNELS.values() for c in kernel(many, fits=True)],
            )
            for many in (case._replace(slots=512), case._replace(dtype=torch.float32))
        ),
    ]


def study() -> list[dict]:
    r"""A row for each type, size, pass and layer."""
    return [
        row(Case(layer, which, dtype, points, slots))
        for dtype in DTYPES
        for points in POINTS
        for slots in SLOTS
        for which in PASSES
        for layer in LAYERS
    ]


def _type(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def row(case: Case) -> dict:
    r"""Of the table: sums over the kernels, and milliseconds by GPU."""
    costs = operators(case)
    totals = {
        "layer": case.layer,
        "pass": case.which,
        "dtype": _type(case.dtype),
        "points": case.points,
        "slots": case.slots,
        "kernels": len(costs),
        "gigabytes": round(sum(c.bytes for c in costs) / 1e9, 3),
        "gigaflops": round(sum(c.products for c in costs) / 1e9, 1),
        "exponentials_1e9": round(sum(c.exponentials for c in costs) / 1e9, 3),
    }
    for name, device in DEVICES.items():
        totals[f"{name}_ms"] = round(1e3 * _seconds(costs, device), 2)
    return totals


def markdown(head: list[str], lines: list[list]) -> str:
    r"""A table."""
    lines = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def describe_layers(rows: list[dict], points: int, slots: int) -> str:
    r"""A line for each type, pass and layer at one size, and what limits it on an H100."""
    head = ["type", "pass", "layer", "kernels", "GB", "GFLOP", "10⁹ exp"]
    lines = []
    for row in rows:
        if (row["points"], row["slots"]) == (points, slots):
            layer, which, dtype, _, _, *numbers = row.values()
            costs = operators(Case(layer, which, getattr(torch, dtype), points, slots))
            lines.append([dtype, which, NAMES[layer], *numbers, limits(costs, DEVICES["H100"])])
    return markdown([*head, *(f"{d}, ms" for d in DEVICES), "of it on the H100"], lines)


def limits(costs: list[Cost], device: Device) -> str:
    r"""Share of the time that each limit takes, where it is the largest of its kernel."""
    seconds = Counter(launches=LAUNCH * len(costs))
    for c in costs:
        times = c.times(device)
        limit = max(times, key=times.get)
        seconds[limit] += times[limit]
    return ", ".join(
        f"{limit} {share:.0%}"
        for limit, time in seconds.most_common()
        if (share := time / seconds.total()) >= 0.005
    )


def describe_sizes(rows: list[dict], dtype: str, device: str) -> str:
    r"""Milliseconds on one GPU: a line a size, a column for each pass and layer."""
    columns = [(which, layer) for which in PASSES for layer in LAYERS]
    head = ["points", "slots", *(f"{which}, {NAMES[layer]}" for which, layer in columns)]
    of = {tuple(row.values())[:5]: row[f"{device}_ms"] for row in rows}
    lines = [
        [f"{n:,}", k, *(of[layer, which, dtype, n, k] for which, layer in columns)]
        for n in POINTS
        for k in SLOTS
    ]
    return markdown(head, lines)


def describe_operators(costs: list[Cost]) -> str:
    r"""A line a kernel with what limits it on each GPU; those under 10 MB together."""
    small = [c for c in costs if c.bytes < 1e7]
    together = Cost(f"smaller ones: {len(small)}", sum(c.bytes for c in small))
    lines = []
    for c in [*(c for c in costs if c.bytes >= 1e7), together]:
        line = [c.name, f"{c.bytes / 1e6:.0f}", f"{c.products / 1e9:.0f}"]
        line.append(f"{c.exponentials / 1e9:.2f}")
        for device in DEVICES.values():
            times = c.times(device)
            limit = max(times, key=times.get)
            line.append(f"{1e6 * times[limit]:.0f} {limit}")
        lines.append(line)
    return markdown(["kernel", "MB", "GFLOP", "10⁹ exp", *(f"{d}, µs" for d in DEVICES)], lines)


def describe_fusions(points: int) -> str:
    r"""A line a fusion: kernels, bytes and microseconds by GPU, now → then, launches included."""

    def arrow(both, form):
        return " → ".join(map(form, both))

    lines = []
    for what, *both in fusions(points):
        line = [what, arrow(both, lambda costs: str(len(costs)))]
        line.append(arrow(both, lambda costs: f"{sum(c.bytes for c in costs) / 1e6:.0f}"))
        for device in DEVICES.values():
            line.append(arrow(both, lambda costs, d=device: f"{1e6 * _seconds(costs, d):.0f}"))
        lines.append(line)
    return markdown(["what", "kernels", "MB", *(f"{d}, µs" for d in DEVICES)], lines)


def _seconds(costs: list[Cost], device: Device) -> float:
    return sum(c.seconds(device) + LAUNCH for c in costs)


def fill(page: Path, tables: dict[str, str]) -> None:
    r"""Put each table between ``<!-- its name -->`` and the next comment of a page."""
    text = page.read_text()
    for name, table in tables.items():
        before, mark, rest = text.partition(f"<!-- {name} -->\n")
        if not mark:
            raise ValueError(f"{page} has no line <!-- {name} -->")
        text = f"{before}{mark}{table}\n<!--{rest.partition('<!--')[2]}"
    page.write_text(text)


def draw(rows: list[dict], picture: Path) -> None:
    r"""Time against slots at a million points in bfloat16, by GPU."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullLocator

    figure = Figure(figsize=(11, 5), layout="constrained")
    axes = figure.subplots(2, len(DEVICES), sharex=True, sharey="row")
    for which, line in zip(PASSES, axes, strict=True):
        for device, panel in zip(DEVICES, line, strict=True):
            for layer, name in NAMES.items():
                case = (layer, which, "bfloat16", POINTS[1])
                times = [row[f"{device}_ms"] for row in rows if tuple(row.values())[:4] == case]
                panel.loglog(SLOTS, times, "o-", color=COLORS[layer], label=name, ms=3)
            panel.set_xticks(SLOTS, SLOTS)
            panel.xaxis.set_minor_locator(NullLocator())
            panel.grid(alpha=0.3)
            panel.spines[["top", "right"]].set_visible(False)
        line[0].set_ylabel(f"{which} [ms], computed")
    for device, panel in zip(DEVICES, axes[0], strict=True):
        panel.set_title(device, fontsize=10)
    for panel in axes[1]:
        panel.set_xlabel("slots")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    figure.savefig(picture, dpi=110)


def main() -> None:
    r"""Write the table, the picture and the page's tables."""
    rows = study()
    with (RESULTS / "roofline.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    draw(rows, RESULTS / "roofline.png")
    points, slots = POINTS[1], 64
    tables = {
        "layers": describe_layers(rows, points, slots),
        "sizes in bfloat16": describe_sizes(rows, "bfloat16", "H100"),
        "sizes in float32": describe_sizes(rows, "float32", "H100"),
        "fusions": describe_fusions(points),
    }
    for layer in ("cano_triton", "flare"):
        costs = operators(Case(layer, "training", torch.bfloat16, points, slots))
        tables[f"operators of {layer}"] = describe_operators(costs)
    fill(PAGE, tables)


if __name__ == "__main__":
    main()
