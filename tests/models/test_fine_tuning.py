# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""PhysicsNeMo's LoRA on CANO."""

import pytest
import torch
from physicsnemo.experimental.peft import (
    LoRAConfig,
    apply_lora,
    load_adapter,
    merge_lora,
    save_adapter,
    set_adapter_enabled,
)

from physicsnemo_cano import CANO
from physicsnemo_cano.nn.functional.cluster_attention import choice

PROJECTIONS = r"attention\.to_(qkv|out)$"
EVERY_LINEAR = r"(layers\.\d|decoder\.1|to_qkv|to_out)$"


def model(chunk_size=None):
    torch.manual_seed(0)
    sizes = {"n_layers": 2, "n_hidden": 16, "n_head": 2, "slice_num": 4}
    return CANO(3, 2, 2, **sizes, chunk_size=chunk_size)


def adapted(pattern, chunk_size=None):
    """LoRA with trained factors: fresh ones change nothing."""
    net = model(chunk_size)
    result = apply_lora(net, LoRAConfig(rank=2, target_pattern=pattern))
    for name, p in net.named_parameters():
        if name.endswith("lora_B"):
            torch.nn.init.normal_(p, std=0.3)
    return net, result


@pytest.fixture
def inputs():
    torch.manual_seed(1)
    return torch.randn(2, 1, 3), torch.rand(2, 30, 2)


@pytest.mark.parametrize(("pattern", "n_wrapped"), [(PROJECTIONS, 4), (EVERY_LINEAR, 11)])
@pytest.mark.parametrize("chunk_size", [None, 7])
def test_adapters_act_as_their_merged_weights(pattern, n_wrapped, chunk_size, inputs):
    net, result = adapted(pattern, chunk_size)
    assert result.n_wrapped == n_wrapped
    with_adapters = net(*inputs)
    set_adapter_enabled(net, False)
    torch.testing.assert_close(net(*inputs), model()(*inputs))
    set_adapter_enabled(net, True)
    merged = merge_lora(net)(*inputs)
    torch.testing.assert_close(with_adapters, merged, rtol=1e-4, atol=1e-5)
    assert (merged - model()(*inputs)).abs().max() > 0.01


def test_large_inputs_too(inputs):
    condition, _ = inputs
    points = choice.TILED_BYTES // (16 * 4)  # in tiles, were it not for the adapters
    x = torch.rand(2, points, 2)
    net, _ = adapted(PROJECTIONS)
    with_adapters = net(condition, x)
    torch.testing.assert_close(with_adapters, merge_lora(net)(condition, x), rtol=1e-4, atol=1e-5)


def test_a_hook_on_the_encoder_runs(inputs):
    net, calls = model(), []
    expected = net(*inputs)
    net.encoder.layers[0].register_forward_hook(lambda *_: calls.append(1))
    torch.testing.assert_close(net(*inputs), expected)
    assert calls


def test_only_adapters_learn_and_travel(inputs, tmp_path):
    net, result = adapted(PROJECTIONS)
    net(*inputs).square().mean().backward()
    learning = {name for name, p in net.named_parameters() if p.grad is not None}
    assert len(learning) == 8
    assert all("lora_" in name for name in learning)
    assert result.n_trainable < result.n_frozen / 4
    save_adapter(net, tmp_path / "adapter")
    again = model()
    load_adapter(again, tmp_path / "adapter")
    torch.testing.assert_close(again(*inputs), net(*inputs))
