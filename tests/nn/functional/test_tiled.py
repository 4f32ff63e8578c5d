# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""The tiled layer against the specification between two linear maps."""

import time

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from physicsnemo_cano.nn.functional.cluster_attention import cluster_attention_reference
from physicsnemo_cano.nn.functional.cluster_attention.tiled import layer as tiled
from physicsnemo_cano.nn.functional.cluster_attention.tiled import tiles


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


def specification(x, qkv_weight, qkv_bias, centroids, out_weight, out_bias, weights, normalize):
    heads = F.linear(x, qkv_weight, qkv_bias).unflatten(-1, (3, len(centroids), -1))
    y = cluster_attention_reference(
        *heads.permute(2, 0, 3, 1, 4), centroids, weights=weights, normalize_queries=normalize
    )
    return F.linear(y.transpose(1, 2).flatten(2), out_weight, out_bias)


def tiles_of(points):
    """Change the module's tile to so many points."""
    patch = pytest.MonkeyPatch()
    patch.setattr(tiles, "_tile_size", lambda heads, clusters: points)
    return patch


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
    with tiles_of(tile).context():
        out = tiled.tiled_layer(*tensors, normalize)
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
    with tiles_of(2).context():

        def layer(*wanted):
            return tiled.tiled_layer(*wanted, *tensors[len(wanted) :], normalize)

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
    with tiles_of(7).context():
        out = tiled.tiled_layer(*tensors, normalize)
        gradients = torch.autograd.grad(out.square().sum(), wanted)
    expected = specification(*tensors, normalize)
    torch.testing.assert_close(out, expected, rtol=1e-9, atol=1e-9)
    expected = torch.autograd.grad(expected.square().sum(), wanted)
    for gradient, other in zip(gradients[:6], expected[:6], strict=True):
        torch.testing.assert_close(gradient, other, rtol=1e-6, atol=1e-6 * other.abs().max())
    with pytest.MonkeyPatch.context() as patch:  # and it was not by luck
        patch.setattr(tiles, "_in_range", lambda total: True)
        assert not torch.allclose(
            tiled.tiled_layer(*(t.float() if t is not None else t for t in tensors), normalize),
            out.float(),
            rtol=1e-3,
        )


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
    with tiles_of(16).context():
        out = tiled.tiled_layer(*single, True)
        by_x = torch.autograd.grad(out.square().sum(), single[0])[0]
    expected = specification(*exact, True)
    torch.testing.assert_close(out.double(), expected, rtol=1e-5, atol=1e-5)
    expected = torch.autograd.grad(expected.square().sum(), exact[0])[0]
    error = (by_x - expected).abs().max()
    assert error < 1e-4 * expected.abs().max()


@pytest.mark.parametrize("which", ["queries", "keys", "absent points"])
def test_exponentials_out_of_range_cost_no_more(which):
    """MKL's exponential and products with denormal numbers are tens of times slower there."""
    x, *parameters, _ = inputs(1, 8192, 32, heads=4, dim=8, clusters=32, weighted=False)
    x = x.detach().float().requires_grad_()
    parameters = [p.detach().float() / 8 for p in parameters]
    weights = torch.ones(1, 8192)
    sharp = [p.clone() for p in parameters]
    far = weights.clone()
    if which == "absent points":
        far[:, 4500:] = 0
    else:
        sharp[0][:32] *= 1000 if which == "queries" else 1
        sharp[0][32:64] *= 100000 if which == "keys" else 1

    def seconds(parameters, weights):
        start = time.process_time()
        out = tiled.tiled_layer(x, *parameters, weights, True)
        torch.autograd.grad(out.sum(), x)
        return time.process_time() - start

    with tiles_of(1024).context():
        usual = min(seconds(parameters, weights) for _ in range(5))
        assert min(seconds(sharp, far) for _ in range(5)) < 4 * usual  # it was up to 22 times


@pytest.mark.parametrize("large", [0, 20, 29])
def test_one_point_with_large_logits(large):
    tensors = inputs(1, 30, dim=3)
    with torch.no_grad():
        tensors[0][0, large] *= 300
    wanted = tensors[:6]
    with tiles_of(7).context():
        out = tiled.tiled_layer(*tensors, True)
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
    with tiles_of(tile).context():
        out = tiled.tiled_layer(*single, True)
        by_x = torch.autograd.grad(out.square().sum(), single[0])[0]
    expected = specification(*exact, True)
    assert (out - expected).abs().max() < 1e-5 * expected.abs().max()
    expected = torch.autograd.grad(expected.square().sum(), exact[0])[0]
    assert (by_x - expected).abs().max() < 1e-4 * expected.abs().max()


def test_the_result_may_be_changed_in_place():
    for features in (5, 6):  # with the queries in memory of their own, and in the result's
        tensors = inputs(1, 9, features, weighted=False)
        tensors[4], tensors[5] = tensors[4][:6].detach(), tensors[5][:6].detach()
        expected = torch.autograd.grad(
            (tiled.tiled_layer(*tensors, True) + 1).square().sum(), tensors[0]
        )
        out = tiled.tiled_layer(*tensors, True)
        out += 1
        torch.testing.assert_close(torch.autograd.grad(out.square().sum(), tensors[0]), expected)


def test_per_sample_gradients():
    x, *parameters, _ = inputs(3, 9, weighted=False)

    def loss(parameters, x):
        return tiled.tiled_layer(x.unsqueeze(0), *parameters, None, True).square().sum()

    with tiles_of(4).context():
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
            tiled.tiled_layer(*tensors, True)
        kept[clusters] = sum(sizes)
    assert kept[4] == 2 * (500 + 4 * (3 + 1 + 3 + 1))  # heads × (points + clusters × …)
    assert kept[64] - kept[4] == 2 * 60 * 8


@pytest.mark.parametrize("tile", [3, 100])
def test_a_cluster_that_no_point_belongs_to_spoils_nothing(tile):
    tensors = inputs(1, 8, heads=1, weighted=False)
    with torch.no_grad():
        tensors[3][0, 0] = 1e3 * tensors[3][0, 0]  # far beyond the others, or the reverse
        tensors[0].mul_(30)
    with tiles_of(tile).context():
        out = tiled.tiled_layer(*tensors, True)
        gradients = torch.autograd.grad(out.sum(), tensors[:-1])
    assert all(t.isfinite().all() for t in (out, *gradients))


@pytest.mark.parametrize("normalize", [True, False])
def test_absent_points_influence_nothing(normalize):
    tensors = inputs(1, 12)
    with torch.no_grad():
        tensors[-1][:, 5:] = 0
    fewer = [tensors[0][:, :5], *tensors[1:-1], tensors[-1][:, :5]]
    upstream = torch.randn(1, 5, 6, dtype=torch.float64)
    with tiles_of(3).context():
        out = tiled.tiled_layer(*tensors, normalize)[:, :5]
        alone = tiled.tiled_layer(*fewer, normalize)
        torch.testing.assert_close(out, alone)
        for gradient, other in zip(
            torch.autograd.grad(out, tensors[:-1], upstream),
            torch.autograd.grad(alone, tensors[:-1], upstream),
            strict=True,
        ):
            torch.testing.assert_close(gradient, other)
