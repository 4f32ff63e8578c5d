# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
r"""The Triton operators without a GPU: interpreted, and on meta and fake tensors."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from physicsnemo_cano.nn.functional.cluster_attention.triton import (
    aggregate,
    attend,
    dispatch,
    sizes,
    supports,
)


def test_kernels_agree_with_the_equations():
    pytest.importorskip("triton")
    tests = Path(__file__).with_name("interpreted_triton.py")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-x", str(tests)]
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


def layer(query, key, value, centroids, weights):
    sums, masses, lse = aggregate(query, centroids, weights)
    values, _ = attend(sums / masses, key, value, weights)
    return dispatch(query, centroids, values, lse)


def arguments(points, device="meta", batch=2, heads=8, clusters=64, dim=16):
    tensors = [torch.empty(batch, heads, points, dim, device=device) for _ in range(3)]
    tensors.append(torch.empty(heads, clusters, dim, device=device))
    tensors.append(torch.empty(batch, points, device=device))
    return [t.requires_grad_() for t in tensors]


class Operations(TorchDispatchMode):
    r"""Names of the operations run, views left out."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if not func.is_view:
            self.names.append(func.name())
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("points", [65_536, 4_194_304])
def test_operations_do_not_grow_with_the_points(points):
    inputs = arguments(points)
    with Operations() as forward:
        out = layer(*inputs)
    gradient = torch.empty_like(out)
    with Operations() as backward:
        out.backward(gradient)
    assert [n for n in forward.names if n.startswith("cano")] == [
        "cano::aggregate", "cano::attend", "cano::dispatch"
    ]  # fmt: skip
    assert len(forward.names) <= 4  # and the mean
    assert [n for n in backward.names if n.startswith("cano")] == [
        "cano::dispatch_backward", "cano::attend_backward", "cano::aggregate_backward"
    ]  # fmt: skip
    assert len(backward.names) <= 20


def test_no_gradient_of_weights_that_nobody_asks_for():
    *others, weights = arguments(100)
    out = layer(*others, weights.detach())
    backward = out.grad_fn
    assert backward is not None
    out.backward(torch.empty_like(out))
    assert weights.grad is None
    assert all(t.grad.shape == t.shape for t in others)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_fake_tensors(device):
    with FakeTensorMode():
        out = layer(*arguments(100, device))
        assert out.device.type == device
        assert out.shape == (2, 8, 100, 16)
        if device == "cpu":  # without a GPU, PyTorch's engine takes no gradient on cuda
            out.sum().backward()


def test_flops_are_those_of_the_products():
    product = 2 * 2 * 8 * 1000 * 64 * 16  # 2 B H N K D
    with FlopCounterMode(display=False) as forward:
        out = layer(*arguments(1000))
    with FlopCounterMode(display=False) as backward:
        out.sum().backward()
    assert forward.get_total_flops() == 6 * product
    assert backward.get_total_flops() == 15 * product


@pytest.mark.parametrize(
    ("query", "centroids", "reason"),
    [
        ((1, 1, 9, 16), (1, 4, 16), None),
        ((1, 1, 9, 3), (1, 4, 3), "4 to 64 channels a head of torch.float32, not 3"),
        ((1, 1, 9, 65), (1, 4, 65), "4 to 64 channels a head of torch.float32, not 65"),
        ((1, 1, 9, 16), (1, 1025, 16), "1 to 1024 clusters, not 1025"),
        ((65536, 1, 9, 16), (1, 4, 16), "65535 samples at once, not 65536"),
    ],
)
def test_supports_sizes(query, centroids, reason):
    pytest.importorskip("triton")
    found = supports(torch.empty(query, device="meta"), torch.empty(centroids, device="meta"))
    assert found is reason is None or reason in found


def test_supports_types_and_devices(monkeypatch):
    pytest.importorskip("triton")
    query, centroids = torch.empty(1, 1, 9, 16, device="meta"), torch.empty(1, 4, 16, device="meta")
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        assert supports(query.to(dtype), centroids) is None
    assert "not torch.float64" in supports(query.double(), centroids)
    assert "not on cpu" in supports(torch.empty(query.shape), torch.empty(centroids.shape))
    monkeypatch.setattr(sizes, "INSTALLED", False)
    assert supports(query, centroids) == "triton is not installed"


def test_refusals_say_what_to_do():
    pytest.importorskip("triton")
    query, centroids = torch.empty(1, 1, 9, 16), torch.empty(1, 4, 16)
    with pytest.raises(RuntimeError, match=r'got cpu: use implementation="reference"'):
        aggregate(query, centroids, None)
    with pytest.raises(NotImplementedError, match=r'vmap.*use implementation="reference"'):
        torch.vmap(lambda q: aggregate(q, centroids, None)[0])(query[None])
    query = query.to("meta").requires_grad_()
    sums, *_ = aggregate(query, centroids.to("meta"), None)
    (grad,) = torch.autograd.grad(sums.sum(), query, create_graph=True)
    with pytest.raises(RuntimeError, match=r'no second derivatives: use implementation="ref'):
        grad.sum().backward()
