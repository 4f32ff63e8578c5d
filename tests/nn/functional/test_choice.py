# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
"""Which implementation runs where, and what each costs: operations, counted on meta tensors."""

import logging

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from benchmarks.operations import Operations, count_operations
from physicsnemo_cano import CANO, ClusterAttention
from physicsnemo_cano.nn.function_spec import ClusterAttentionFunction
from physicsnemo_cano.nn.functional import cluster_attention
from physicsnemo_cano.nn.functional.cluster_attention import choice


def layer_operations(points, implementation, weighted):
    with torch.device("meta"):
        layer = ClusterAttention(128, heads=8, dim_head=16, n_clusters=64)
        x = torch.empty(1, points, 128, requires_grad=True)
        weights = torch.empty(1, points) if weighted else None
    layer.implementation = implementation
    out = layer(x, weights=weights)  # again below: here for the gradient's shape alone
    gradient = torch.empty_like(out)
    forward = count_operations(lambda: layer(x, weights=weights))
    return forward, count_operations(lambda: out.backward(gradient))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("points", "implementation", "most"),
    [
        (2**16, None, (40, 90)),
        (2**20, None, (40, 90)),
        (2**22, None, (160, 360)),
        (2**16, "triton", (25, 45)),
        (2**20, "triton", (25, 45)),
        (2**22, "triton", (25, 45)),
    ],
)
def test_a_layer_has_a_handful_of_operations(points, implementation, most, weighted):
    forward, backward = layer_operations(points, implementation, weighted)
    assert 0 < forward <= most[0]
    assert 0 < backward <= most[1]


@pytest.mark.parametrize(
    ("options", "expected"),
    [({}, "aggregate"), ({"mask": True}, "aggregate"), ({"weights": True}, "aggregate")],
)
def test_on_nvidia_gpus_the_kernels_run_and_nothing_waits_for_the_device(options, expected):
    """A fake tensor has no values: who reads one, as .item() does, fails."""
    with FakeTensorMode(), torch.device("cuda"):
        layer = ClusterAttention(128, heads=8, dim_head=16, n_clusters=64)
        mask = torch.empty(2, 4096, dtype=torch.bool) if "mask" in options else None
        weights = torch.empty(2, 4096) if "weights" in options else None
        with Operations(lambda operator, *_: operator.name()) as operations:
            out = layer(torch.empty(2, 4096, 128), mask, weights)
    assert out.shape == (2, 4096, 128)
    assert out.device.type == "cuda"
    names = [name for name in operations.calls if name.startswith("cano::")]
    assert names == ["cano::aggregate", "cano::attend", "cano::dispatch"]


@pytest.mark.parametrize("chunk_size", [None, 1000])
@pytest.mark.parametrize("device", ["meta", "cpu"])
def test_a_model_runs_without_values_from_end_to_end(device, chunk_size):
    with FakeTensorMode() if device == "cpu" else torch.device(device):
        model = CANO(3, 4, embedding_dim=3, n_layers=2, n_hidden=32, chunk_size=chunk_size)
        mask = torch.empty(2, 4096, dtype=torch.bool)
        weights = torch.empty(2, 4096)
        out = model(torch.empty(2, 1, 3), torch.empty(2, 4096, 3), mask=mask, weights=weights)
        out.sum().backward()
    assert out.shape == (2, 4096, 4)
    assert all(p.grad.shape == p.shape for p in model.parameters())


def test_sizes_that_the_kernels_do_not_hold_fall_back_and_say_so_once(caplog):
    caplog.set_level(logging.DEBUG)
    with FakeTensorMode(), torch.device("cuda"):
        layer = ClusterAttention(6, heads=2, dim_head=3, n_clusters=4)
        for _ in range(2):
            with Operations(lambda operator, *_: operator.name()) as operations:
                layer(torch.empty(1, 50, 6))
    assert not [name for name in operations.calls if name.startswith("cano::")]
    (said,) = [r.getMessage() for r in caplog.records if r.name == choice.__name__]
    assert said.startswith("cluster attention without Triton kernels: the kernels take 4 to ")
    assert said.endswith("channels a head of torch.float32, not 3")


def qkv(points=9, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shapes = [(2, 2, points, 4)] * 3 + [(2, 5, 4)]
    return [torch.randn(*s, dtype=dtype, generator=generator).requires_grad_() for s in shapes]


@pytest.mark.parametrize("implementation", ["reference", "sdpa", "streaming"])
@pytest.mark.parametrize("normalize", [True, False])
def test_implementations_agree_with_masks_and_weights(implementation, normalize):
    tensors = qkv()
    mask = torch.ones(2, 9, dtype=torch.bool)
    mask[1, 6:] = False
    weights = torch.rand(2, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    options = {"mask": mask, "weights": weights, "normalize_queries": normalize}
    expected = cluster_attention(*tensors, **options)
    out = cluster_attention(*tensors, **options, implementation=implementation)
    torch.testing.assert_close(out, expected)
    for a, b in zip(
        torch.autograd.grad(out.square().sum(), tensors),
        torch.autograd.grad(expected.square().sum(), tensors),
        strict=True,
    ):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("implementation", ["reference", "streaming", None])
@pytest.mark.parametrize("chunk_size", [None, 4])
def test_gradient_with_respect_to_a_weight_of_zero(implementation, chunk_size):
    """Against one-sided differences, the only ones there are at zero."""
    if implementation == "reference" and chunk_size:
        pytest.skip("the reference takes all points at once")
    tensors = [t.detach() for t in qkv()]
    weights = torch.rand(2, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    weights[0, 3] = weights[1, 0] = 0
    weights.requires_grad_()
    options = {"chunk_size": chunk_size, "implementation": implementation}

    def loss(weights):
        return cluster_attention(*tensors, weights=weights, **options).square().sum()

    (found,) = torch.autograd.grad(loss(weights), weights)
    for place in ((0, 3), (1, 0), (1, 4)):
        step = torch.zeros_like(weights)
        step[place] = 1e-5
        with torch.no_grad():
            ahead, here, two = loss(weights + step), loss(weights), loss(weights + 2 * step)
        expected = (-3 * here + 4 * ahead - two) / 2e-5  # second order, forward
        torch.testing.assert_close(found[place], expected, rtol=1e-4, atol=1e-6)


def test_vmap_takes_masks_and_weights():
    query, key, value, centroids = (t.detach() for t in qkv())
    mask = torch.ones(2, 9, dtype=torch.bool)
    mask[1, 6:] = False
    weights = torch.rand(2, 9, dtype=torch.float64)

    def one(q, k, v, m, w):
        return cluster_attention(
            q[None], k[None], v[None], centroids, mask=m[None], weights=w[None]
        )[0]

    mapped = torch.vmap(one)(query, key, value, mask, weights)
    expected = cluster_attention(query, key, value, centroids, mask=mask, weights=weights)
    torch.testing.assert_close(mapped, expected)


@pytest.mark.parametrize("implementation", ["reference"])
def test_second_derivatives(implementation):
    tensors = qkv(points=4)
    assert torch.autograd.gradgradcheck(
        lambda *t: cluster_attention(*t, implementation=implementation), tensors
    )


def test_second_derivatives_are_refused_where_torch_has_none():
    tensors = qkv()
    (gradient,) = torch.autograd.grad(
        cluster_attention(*tensors).square().sum(), tensors[0], create_graph=True
    )
    with pytest.raises(RuntimeError, match='implementation="reference"'):
        gradient.sum().backward()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"implementation": "fast"}, "must be one of .*'sdpa'.* got 'fast'"),
        ({"implementation": "sdpa", "chunk_size": 3}, 'chunk_size=3.*use "streaming"'),
        ({"implementation": "tiled"}, "expects a projection"),
        ({"implementation": "triton"}, "cannot run here: the kernels run on cuda tensors"),
    ],
)
def test_an_implementation_that_cannot_run_says_why(options, message):
    with pytest.raises(ValueError, match=message):
        cluster_attention(*qkv(), **options)


@pytest.mark.parametrize("chunk_size", [None, 3])
def test_no_points_are_refused(chunk_size):
    layer = ClusterAttention(6, 2, 3, n_clusters=4, chunk_size=chunk_size)
    with pytest.raises(ValueError, match="at least one point"):
        layer(torch.empty(2, 0, 6))


def test_the_registered_implementations_pass_physicsnemos_parity_checks():
    spec = ClusterAttentionFunction
    forward = {label: case for label, *case in spec.make_inputs_forward("cpu")}
    assert list(forward) == ["small", "medium", "large"]
    args, kwargs = forward["small"]
    expected = spec.dispatch(*args, **kwargs, implementation="reference")
    for name in ("sdpa", "streaming", "tiled", None):
        spec.compare_forward(spec.dispatch(*args, **kwargs, implementation=name), expected)
    with pytest.raises(AssertionError):
        spec.compare_forward(1.001 * expected, expected)
    _, args, kwargs = next(iter(spec.make_inputs_backward("cpu")))
    gradients = {}
    for name in ("reference", "sdpa", "streaming", "tiled"):
        out = spec.dispatch(*args, **kwargs, implementation=name)
        gradients[name] = torch.autograd.grad(out.square().sum(), [args[0], args[3]])
    for name in ("sdpa", "streaming", "tiled"):
        for found, wanted in zip(gradients[name], gradients["reference"], strict=True):
            spec.compare_backward(found, wanted)
