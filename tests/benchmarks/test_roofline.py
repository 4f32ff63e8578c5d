# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode, flop_registry

from benchmarks import roofline
from benchmarks.entries import DIM, DIM_HEAD, HEADS
from benchmarks.roofline import DEVICES, KERNELS, LAYERS, PASSES, Case, Cost, operators

N, K = 4096, 64


def case(layer="flare", which="forward", dtype=torch.float32, points=N, slots=K):
    return Case(layer, which, dtype, points, slots)


def test_time_is_that_of_the_slowest_part():
    device = roofline.Device(bandwidth=10, bfloat16=40, tf32=60, float32=8, lanes=4)
    assert device.exponentials == 16  # of 2 operations on 4 lanes: one clock a second
    assert Cost("", 100, 40, 16, "bfloat16").seconds(device) == 10
    assert Cost("", 10, 240, 16, "bfloat16").seconds(device) == 6
    assert Cost("", 10, 240, 16, "3xTF32").seconds(device) == 12
    assert Cost("", 10, 240, 16, "float32").seconds(device) == 30
    assert Cost("", 10, 40, 48, "bfloat16").seconds(device) == 3


def test_exponentials_of_the_a100_are_its_clock_times_its_multiprocessors():
    assert DEVICES["A100"].exponentials == pytest.approx(108 * 16 * 1.41e9, rel=1e-3)


def test_linear_layer_by_hand(monkeypatch):
    monkeypatch.setitem(LAYERS, "linear", lambda slots: torch.nn.Linear(DIM, DIM))
    (forward,) = operators(case("linear"))
    field, weight = 4 * N * DIM, 4 * DIM * DIM
    assert forward[1:4] == (2 * field + weight + 4 * DIM, 2 * N * DIM * DIM, 0)
    _, to_x, to_weight, to_bias = operators(case("linear", "training"))
    assert to_x[1:4] == (2 * field + weight, 2 * N * DIM * DIM, 0)
    assert to_weight[1:4] == (2 * field + weight, 2 * N * DIM * DIM, 0)
    assert to_bias[1:4] == (field + 4 * DIM, 0, 0)


def test_what_is_repeated_or_overwritten_is_not_read(monkeypatch):
    class Filled(torch.nn.Module):
        def forward(self, x):
            return x.new_empty(x.shape).copy_(x[:, :1].expand_as(x))

    monkeypatch.setitem(LAYERS, "filled", lambda slots: Filled())
    (copied,) = operators(case("filled"))
    assert copied.bytes == 4 * DIM * (1 + N)


@pytest.mark.parametrize("dtype", roofline.DTYPES)
@pytest.mark.parametrize("which", PASSES)
def test_attention_of_flare_is_that_of_fused_kernels(which, dtype):
    attention = [c for c in operators(case("flare", which, dtype)) if "attention" in c.name]
    passes = 4 if which == "training" else 2
    assert [c.exponentials for c in attention] == [HEADS * N * K] * passes
    product = 2 * N * K * HEADS * DIM_HEAD
    assert [c.products for c in attention] == [p * product for p in (2, 2, 5, 5)[:passes]]
    assert {c.unit for c in attention} == {"bfloat16" if dtype == torch.bfloat16 else "3xTF32"}


@pytest.mark.parametrize("which", PASSES)
@pytest.mark.parametrize("layer", LAYERS)
def test_operations_are_linear_in_the_points_and_kernels_constant(layer, which):
    once, twice = (operators(case(layer, which, points=n * N)) for n in (1, 2))
    assert len(once) == len(twice)
    for column in ("products", "exponentials"):
        sums = [sum(getattr(c, column) for c in costs) for costs in (once, twice)]
        assert 0 < sums[0] < sums[1] <= 2 * sums[0]


@pytest.mark.parametrize("which", PASSES)
def test_our_kernels_have_the_products_that_their_operators_register(which):
    slots = 32  # which a program of each kernel holds; blocks of slots repeat products
    ours = case("cano_triton", which, slots=slots)
    layer = LAYERS["cano_triton"](slots).to("meta")
    x = torch.empty(1, N, DIM, device="meta", requires_grad=True)
    with FlopCounterMode(display=False) as counter:
        out = layer(x)
        if which == "training":
            out.backward(torch.empty_like(out))
    assert sum(c.products for c in operators(ours)) == counter.get_total_flops()


def test_every_operator_of_ours_has_a_formula():
    registered = {packet.__name__ for packet in flop_registry if "cano" in str(packet)}
    assert registered - {"logsumexp"} == set(KERNELS)


def test_blocks_of_slots_cost_products_and_exponentials():
    many = case("cano_triton", slots=512)
    for name, kernel in KERNELS.items():
        blocks, whole = (
            [sum(c[column] for c in kernel(many, fits=fits)) for column in (2, 3)]
            for fits in (False, True)
        )
        assert (blocks == whole) == (name in ("attend", "dispatch"))
        assert all(b >= w for b, w in zip(blocks, whole, strict=True))


def test_tables_go_to_their_places_in_the_page(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- x -->\nold\n<!-- y -->\n<!-- end -->\nb\n")
    roofline.fill(page, {"x": "| 1 |", "y": "| 2 |"})
    assert page.read_text() == "a\n<!-- x -->\n| 1 |\n<!-- y -->\n| 2 |\n<!-- end -->\nb\n"
    with pytest.raises(ValueError, match="no line <!-- z -->"):
        roofline.fill(page, {"z": ""})
