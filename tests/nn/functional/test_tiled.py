# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
"""The tiled layer against the specification between two linear maps."""

import ast
import inspect
import threading

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from physicsnemo_cano import ClusterAttention
from physicsnemo_cano.nn.functional.cluster_attention import cluster_attention_reference, passes
from physicsnemo_cano.nn.functional.cluster_attention.streaming import cluster_queries
from physicsnemo_cano.nn.functional.cluster_attention.tiled import (
    backward,
    base,
    forward,
    tiled_layer,
)
from physicsnemo_cano.nn.functional.cluster_attention.tiled.forward import SAFE_SUM_EXP
from physicsnemo_cano.nn.functional.cluster_attention.tiled.workspace import (
    BACKWARD,
    BUFFERS,
    FORWARD,
    Workspace,
)
from physicsnemo_cano.nn.functional.cluster_attention.weights import PointWeights, log_weights


def inputs(batch=2, points=11, features=5, heads=2, dim=3, clusters=4, seed=0, weighted=True):
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, dtype=torch.float64, generator=generator).requires_grad_()

    inner = heads * dim
    weights = None
    if weighted:
        weights = 0.1 + torch.rand(batch, points, dtype=torch.float64, generator=generator)
        weights = (weights / weights.mean(-1, keepdim=True)).requires_grad_()
    return [
        normal(batch, points, features),
        normal(3 * inner, features),
        normal(3 * inner),
        normal(heads, clusters, dim),
        normal(features + 1, inner),
        normal(features + 1),
        weights,
    ]


def rounding(tensors):
    """Of the sums in a layer, over features, channels, clusters and points, in float32."""
    x, _, _, centroids, *_ = tensors
    return torch.finfo(torch.float32).eps * (sum(x.shape[1:]) + sum(centroids.shape[1:]))


def specification(x, qkv_weight, qkv_bias, centroids, out_weight, out_bias, weights, normalize):
    heads = F.linear(x, qkv_weight, qkv_bias).unflatten(-1, (3, len(centroids), -1))
    y = cluster_attention_reference(
        *heads.permute(2, 0, 3, 1, 4), centroids, weights=weights, normalize_queries=normalize
    )
    return F.linear(y.transpose(1, 2).flatten(2), out_weight, out_bias)


@settings(deadline=None, max_examples=40)
@given(
    st.integers(1, 3),
    st.integers(1, 13),
    st.integers(1, 3),
    st.integers(1, 6),
    st.integers(1, 14),
    st.booleans(),
    st.booleans(),
)
def test_equals_the_specification_with_gradients(
    batch, points, heads, clusters, tile, weighted, normalize
):
    tensors = inputs(batch, points, heads=heads, clusters=clusters, weighted=weighted)
    wanted = [t for t in tensors if t is not None]
    upstream = torch.randn(batch, points, 6, dtype=torch.float64)
    out = tiled_layer(*tensors, normalize, tile_size=tile)
    gradients = torch.autograd.grad(out, wanted, upstream)
    expected = specification(*tensors, normalize)
    torch.testing.assert_close(out, expected, rtol=1e-11, atol=1e-11)
    expected = list(torch.autograd.grad(expected, wanted, upstream))
    if weighted:
        # The specification makes the mean of the weights one, so it sees no change of scale.
        along = (gradients[-1] * tensors[-1]).sum(-1, keepdim=True) / points
        gradients = [*gradients[:-1], gradients[-1] - along]
    for gradient, other in zip(gradients, expected, strict=True):
        torch.testing.assert_close(gradient, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("weights", ["wanted", "fixed", None])
def test_gradients_once_and_twice(weights, normalize):
    tensors = inputs(1, 5, 2, heads=1, dim=2, clusters=2, weighted=weights is not None)
    if weights == "fixed":
        tensors[6].requires_grad_(False)

    def layer(*wanted):
        return tiled_layer(*wanted, *tensors[len(wanted) :], normalize, tile_size=2)

    wanted = [t for t in tensors if t is not None and t.requires_grad]
    assert torch.autograd.gradcheck(layer, wanted)
    assert torch.autograd.gradgradcheck(layer, wanted, atol=1e-4)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("which", ["queries", "keys"])
@pytest.mark.parametrize("shift", [-200, 200])
def test_logits_beyond_the_range_of_exponentials(which, shift, weighted, normalize):
    tensors = inputs(1, 30, dim=3, weighted=weighted)
    _, qkv_weight, qkv_bias, centroids, *_ = tensors
    with torch.no_grad():
        if which == "queries":  # all logits of eq. 13 lie near the shift
            centroids[..., 0] = 1 + 0.01 * centroids[..., 0]
            qkv_bias[0] = qkv_bias[3] = shift
            qkv_weight[6:12] /= abs(shift)
        else:  # those of eq. 15 lie tens to hundreds from zero, on both sides
            qkv_weight[6:12] *= shift
    wanted = [t for t in tensors if t is not None]
    out = tiled_layer(*tensors, normalize, tile_size=7)
    gradients = torch.autograd.grad(out.square().sum(), wanted)
    expected = specification(*tensors, normalize)
    torch.testing.assert_close(out, expected, rtol=1e-9, atol=1e-9)
    expected = torch.autograd.grad(expected.square().sum(), wanted)
    for gradient, other in zip(gradients[:6], expected[:6], strict=True):
        torch.testing.assert_close(gradient, other, rtol=1e-6, atol=1e-6 * other.abs().max())
    query, key, _ = F.linear(*tensors[:3]).unflatten(-1, (3, 2, 3)).permute(2, 0, 3, 1, 4)
    prepared = None if not weighted else PointWeights(tensors[6], log_weights(tensors[6]))
    if which == "queries":
        logits = query @ centroids.mT
    else:
        sums = passes.aggregate(query, centroids, prepared)
        logits = cluster_queries(*sums, normalize) @ key.mT / 3**0.5
    totals = logits.float().exp().sum(-1)  # and it was not by luck
    assert not ((totals > 1 / SAFE_SUM_EXP) & (totals < SAFE_SUM_EXP)).all()


@pytest.mark.parametrize("which", ["queries", "keys"])
@pytest.mark.parametrize("lowest", [20, 26, 30, 57])
def test_single_precision_where_most_exponentials_are_next_to_nothing(lowest, which):
    """One logit near ``-lowest``, all others hundreds below: each softmax is nearly one-hot."""
    tensors = inputs(1, 60, dim=3, clusters=6, weighted=False)
    x, qkv_weight, qkv_bias, centroids, *_ = tensors
    with torch.no_grad():
        if which == "queries":
            qkv_weight[:6] *= 0.01
            qkv_bias[:6] = -1
            centroids[:] = lowest / 3 * torch.tensor([1, 8, 8, 8, 8, 8])[:, None]
        else:  # the keys of all points but one are far
            qkv_weight[:6] = 0
            qkv_bias[:6] = 1
            qkv_weight[6:12] = 0
            qkv_weight[6:12, 0] = -lowest / 3**0.5
            x[..., 0] = 8
            x[0, 7, 0] = 1
    single = [t if t is None else t.detach().float().requires_grad_() for t in tensors]
    exact = [t if t is None else t.detach().double().requires_grad_() for t in single]
    out = tiled_layer(*single, True, tile_size=16)
    by_x = torch.autograd.grad(out.square().sum(), single[0])[0]
    expected = specification(*exact, True)
    assert (out - expected).abs().max() < rounding(tensors) * expected.abs().max()
    expected = torch.autograd.grad(expected.square().sum(), exact[0])[0]
    # Backward, each of those sums is there again, of values that the forward pass has rounded.
    assert (by_x - expected).abs().max() < 2 * rounding(tensors) * expected.abs().max()


@pytest.mark.parametrize("large", [0, 20, 29])
def test_one_point_with_large_logits(large):
    tensors = inputs(1, 30, dim=3)
    with torch.no_grad():
        tensors[0][0, large] *= 300
    wanted = tensors[:6]
    out = tiled_layer(*tensors, True, tile_size=7)
    gradients = torch.autograd.grad(out.sum(), wanted)
    expected = specification(*tensors, True)
    torch.testing.assert_close(out, expected, rtol=1e-9, atol=1e-9)
    for gradient, other in zip(gradients, torch.autograd.grad(expected.sum(), wanted), strict=True):
        torch.testing.assert_close(gradient, other, rtol=1e-6, atol=1e-6 * other.abs().max())


@pytest.mark.parametrize("tile", [5, 64])
def test_single_precision_with_logits_of_thousands(tile):
    """Products of different forms round differently, by as much as the logits are large.

    The forward pass has to agree with itself, and the backward pass with it.
    """
    tensors = inputs(1, 133, 128, heads=4, dim=32, clusters=32, weighted=False)
    x, qkv_weight, qkv_bias, centroids, *_ = tensors
    with torch.no_grad():
        centroids *= 30
        qkv_weight[:128] = torch.eye(128)
        qkv_weight[128:] /= 128**0.5
        qkv_bias[:] = 0
        near = torch.arange(133) % 32  # each query is near some centroid
        x[0] = centroids[:, near].transpose(0, 1).flatten(1) * 4 / 30 + 0.05 * x[0]
    single = [t if t is None else t.detach().float().requires_grad_() for t in tensors]
    exact = [t if t is None else t.detach().double().requires_grad_() for t in single]
    out = tiled_layer(*single, True, tile_size=tile)
    by_x = torch.autograd.grad(out.square().sum(), single[0])[0]
    expected = specification(*exact, True)
    assert (out - expected).abs().max() < rounding(tensors) * expected.abs().max()
    expected = torch.autograd.grad(expected.square().sum(), exact[0])[0]
    assert (by_x - expected).abs().max() < 2 * rounding(tensors) * expected.abs().max()


def test_the_result_may_be_changed_in_place():
    for features in (5, 6):  # with the queries in memory of their own, and in the result's
        tensors = inputs(1, 9, features, weighted=False)
        tensors[4], tensors[5] = tensors[4][:6].detach(), tensors[5][:6].detach()
        expected = torch.autograd.grad((tiled_layer(*tensors, True) + 1).square().sum(), tensors[0])
        out = tiled_layer(*tensors, True)
        out += 1
        torch.testing.assert_close(torch.autograd.grad(out.square().sum(), tensors[0]), expected)


def test_per_sample_gradients():
    x, *parameters, _ = inputs(3, 9, weighted=False)

    def loss(parameters, x):
        out = tiled_layer(x.unsqueeze(0), *parameters, None, True, tile_size=4)
        return out.square().sum()

    found = torch.func.vmap(torch.func.grad(loss), (None, 0))(tuple(parameters), x)
    for i in range(3):
        alone = torch.autograd.grad(loss(parameters, x[i]), parameters)
        for all_samples, one in zip(found, alone, strict=True):
            torch.testing.assert_close(all_samples[i], one)


def test_what_is_kept_for_the_backward_pass_does_not_grow_with_the_clusters():
    kept = {}
    for clusters in (4, 64):
        tensors = inputs(1, 500, clusters=clusters)
        own = {t.data_ptr() for t in tensors}
        sizes = []

        def pack(t, own=own, sizes=sizes):
            sizes.append(0 if t.data_ptr() in own else t.numel())
            return t

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            tiled_layer(*tensors, True)
        kept[clusters] = sum(sizes)
    assert kept[4] == 2 * (500 + 4 * (3 + 1 + 3 + 1))  # heads × (points + clusters × …)
    assert kept[64] - kept[4] == 2 * 60 * 8


@pytest.mark.parametrize("tile", [3, 100])
def test_a_cluster_that_no_point_belongs_to_spoils_nothing(tile):
    tensors = inputs(1, 8, heads=1, weighted=False)
    with torch.no_grad():
        tensors[3][0, 0] = 1e3 * tensors[3][0, 0]  # far beyond the others, or the reverse
        tensors[0].mul_(30)
    out = tiled_layer(*tensors, True, tile_size=tile)
    gradients = torch.autograd.grad(out.sum(), tensors[:-1])
    assert all(t.isfinite().all() for t in (out, *gradients))


@pytest.mark.parametrize("normalize", [True, False])
def test_absent_points_influence_nothing(normalize):
    tensors = inputs(1, 12)
    with torch.no_grad():
        tensors[-1][:, 5:] = 0
    fewer = [tensors[0][:, :5], *tensors[1:-1], tensors[-1][:, :5]]
    upstream = torch.randn(1, 5, 6, dtype=torch.float64)
    out = tiled_layer(*tensors, normalize, tile_size=3)[:, :5]
    alone = tiled_layer(*fewer, normalize, tile_size=3)
    torch.testing.assert_close(out, alone)
    for gradient, other in zip(
        torch.autograd.grad(out, tensors[:-1], upstream),
        torch.autograd.grad(alone, tensors[:-1], upstream),
        strict=True,
    ):
        torch.testing.assert_close(gradient, other)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("large", [1, 40])
def test_gradient_with_respect_to_a_weight_of_zero(large, normalize):
    """Against one-sided differences, the only ones there are at zero."""
    tensors = [t.detach() for t in inputs(2, 9)]
    *tensors, weights = tensors
    weights[0, 3] = weights[1, 0] = weights[1, 8] = 0
    weights[0] *= 1.5
    tensors[0][1, 8] *= large  # its exponentials are larger than the others' or next to nothing
    weights.requires_grad_()

    def loss(weights):
        return tiled_layer(*tensors, weights, normalize, tile_size=4)[:, :8].square().sum()

    (found,) = torch.autograd.grad(loss(weights), weights)
    for place in ((0, 3), (1, 0), (1, 4)):
        step = torch.zeros_like(weights)
        step[place] = 1e-5
        with torch.no_grad():
            ahead, here, two = loss(weights + step), loss(weights), loss(weights + 2 * step)
        expected = (-3 * here + 4 * ahead - two) / 2e-5  # second order, forward
        torch.testing.assert_close(found[place], expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_weight_of_zero_whose_exponential_overflows_spoils_no_gradient(dtype):
    tensors = [t.detach().to(dtype) for t in inputs(1, 9)]
    tensors[-1][0, 5:] = 0
    tensors[0][0, 5:] *= 1e4
    tensors = [t.requires_grad_() for t in tensors]
    upstream = torch.ones(1, 5, 6, dtype=dtype)
    found, expected = [], []
    for gradients, points in ((found, 9), (expected, 5)):
        x, *parameters, weights = tensors
        some = (x[:, :points], *parameters, weights[:, :points])
        out = tiled_layer(*some, True, tile_size=3)[:, :5]
        gradients += torch.autograd.grad(out, tensors, upstream)
    assert all(gradient.isfinite().all() for gradient in found)
    assert not found[0][0, 5:].any()
    for gradient, other in zip(found[:-1], expected[:-1], strict=True):
        torch.testing.assert_close(gradient, other)
    torch.testing.assert_close(found[-1][:, :5], expected[-1][:, :5])


def test_threads_that_call_one_layer_get_what_each_alone_gets():
    torch.manual_seed(0)
    layer = ClusterAttention(16, heads=4, dim_head=4, n_clusters=4).double()
    layer.implementation = "tiled"
    samples = torch.randn(2, 1, 65536, 16, dtype=torch.float64)

    def run(x):
        x = x.clone().requires_grad_()
        out = layer(x)
        return [out.detach(), *torch.autograd.grad(out.square().mean(), [x, *layer.parameters()])]

    alone = [run(x) for x in samples]
    together, start = [None, None], threading.Barrier(2)

    def in_thread(i):
        start.wait()
        together[i] = run(samples[i])

    threads = [threading.Thread(target=in_thread, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for found, expected in zip(together, alone, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)


def users(module):
    """The passes of a module and the attributes ``ws.…`` of each, those of helpers included."""
    tree = ast.parse(inspect.getsource(module))
    names = {}
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            names[function.name] = {
                node.attr
                for node in ast.walk(function)
                if isinstance(node, ast.Attribute) and getattr(node.value, "id", None) == "ws"
            }
    return names


def test_the_table_of_buffers_says_who_uses_each():
    used = users(forward) | users(backward) | users(base)
    for caller in ("dispatch_gradient", "aggregate_gradient"):
        used[caller] |= used["_assign"]
    for caller in ("attend", "attend_gradient"):
        used[caller] |= used["project_keys_values"]
    found = {name: set() for name in (b.name for b in BUFFERS)}
    owner = {view: b.name for b in BUFFERS for view in (b.name, *b.views)}
    assert len(owner) == sum(1 + len(b.views) for b in BUFFERS)  # no name twice
    for method in FORWARD + BACKWARD:
        for attribute in used[method]:
            found[owner[attribute]].add(method)
    assert set().union(*used.values()) >= {view for b in BUFFERS for view in b.views}
    for buffer in BUFFERS:
        assert set(buffer.written_by) | set(buffer.read_by) == found[buffer.name]


def test_buffers_share_no_memory():
    for direction in (FORWARD, BACKWARD):
        workspace = Workspace(direction, torch.empty(2, 5, 3), 7)
        buffers = [b.name for b in BUFFERS if set(b.written_by) & set(direction)]
        places = {getattr(workspace, name).untyped_storage().data_ptr() for name in buffers}
        assert len(places) == len(buffers)
