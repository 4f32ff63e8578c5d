# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
r"""The Triton kernels on CPU tensors, against the equations in float64.

Run by ``test_triton.py`` in a process of its own, as Triton's interpreter is chosen when the
kernels load: ``TRITON_INTERPRET=1 pytest tests/nn/functional/interpreted_triton.py``.
"""

import math

import pytest
import torch

from physicsnemo_cano import ClusterAttention
from physicsnemo_cano.nn.functional.cluster_attention.triton import (
    aggregate,
    attend,
    dispatch,
    supports,
)

BATCH, HEADS = 2, 2


def chain(query, key, value, centroids, weights, passes=(aggregate, attend, dispatch)):
    sums, masses, lse = passes[0](query, centroids, weights)
    values, logsumexp = passes[1](sums / masses, key, value, weights)
    return passes[2](query, centroids, values, lse), sums, masses, values, logsumexp


def aggregate_float64(query, centroids, weights):
    logits = query @ centroids.mT
    assignment = logits.softmax(-1)
    if weights is not None:
        assignment = assignment * weights[:, None, :, None]
    return assignment.mT @ query, assignment.sum(2).unsqueeze(-1), logits.logsumexp(-1)


def attend_float64(cluster_queries, key, value, weights):
    exponentials = (cluster_queries @ key.mT / math.sqrt(key.shape[-1])).exp()
    if weights is not None:
        exponentials = exponentials * weights[:, None, None]
    normalizer = exponentials.sum(-1, keepdim=True)
    return exponentials @ value / normalizer, normalizer.log()


def dispatch_float64(query, centroids, values, lse):
    return (query @ centroids.mT).softmax(-1) @ values


FLOAT64 = (aggregate_float64, attend_float64, dispatch_float64)


def inputs(dim, clusters, points, dtype, weighted, batch=BATCH, heads=HEADS):
    r"""One projection (B, N, 3, H, D), centroids and weights, some of them zero."""
    projected = torch.randn(batch, points, 3, heads, dim).to(dtype)
    centroids = (torch.randn(heads, clusters, dim) / math.sqrt(dim)).to(dtype)
    weights = torch.rand(batch, points)
    weights[:, ::7] = 0
    return projected, centroids, weights if weighted else None


def gradients(function, *tensors):
    r"""Outputs of a function and the gradients of a fixed random product with them."""
    tensors = [None if t is None else t.detach().clone().requires_grad_() for t in tensors]
    outputs = function(*tensors)
    generator = torch.Generator().manual_seed(1)
    upstream = [torch.randn(o.shape, generator=generator) for o in outputs]
    upstream = [u.to(o.dtype) for u, o in zip(upstream, outputs, strict=True)]
    grads = torch.autograd.grad(outputs, [t for t in tensors if t is not None], upstream)
    return [o.detach() for o in outputs] + list(grads)


def bound(dtype, dim, clusters, points):
    r"""Of a relative error in the norm.

    Sums are float32 and their rounding grows as a random walk. Besides, bfloat16 rounds the
    factors of five products on the way (the interpreter truncates, which costs twice as much) and
    the results; float16 only the results.
    """
    walk = 2 * torch.finfo(torch.float32).eps * math.sqrt(dim + clusters + points)
    roundings = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 6}[dtype]
    return walk + roundings * torch.finfo(dtype).eps


def assert_close(results, references, bound, scale=None):
    for i, (result, reference) in enumerate(zip(results, references, strict=True)):
        error = (result.double() - reference).norm()
        assert error <= bound * max(reference.norm(), scale or 0), (i, error / reference.norm())


SIZES = [  # several splits, blocks of points and of clusters, and no multiple of a block
    (torch.float32, 4, 1, 70),
    (torch.float32, 7, 5, 150),
    (torch.float32, 16, 32, 150),
    (torch.float32, 33, 100, 70),
    (torch.float32, 64, 40, 40),
    (torch.float16, 128, 16, 40),
    (torch.float16, 256, 5, 20),
    (torch.float32, 8, 512, 20),
    (torch.bfloat16, 7, 5, 300),
    (torch.bfloat16, 16, 130, 70),
    (torch.bfloat16, 128, 32, 70),
    (torch.float16, 7, 100, 70),
    (torch.float16, 64, 32, 150),
]


@pytest.mark.parametrize(("dtype", "dim", "clusters", "points"), SIZES)
def test_results_and_gradients(dtype, dim, clusters, points):
    weighted = clusters != 32
    batch_heads = (1, 1) if clusters > 100 else (BATCH, HEADS)  # the interpreter is slow
    projected, centroids, weights = inputs(dim, clusters, points, dtype, weighted, *batch_heads)

    def run(passes):
        def function(projected, centroids, weights):
            query, key, value = projected.permute(2, 0, 3, 1, 4)
            return chain(query, key, value, centroids, weights, passes)

        return function

    assert supports(projected.transpose(1, 3)[:, :, 0], centroids) is None
    results = gradients(run((aggregate, attend, dispatch)), projected, centroids, weights)
    doubles = [None if t is None else t.double() for t in (projected, centroids, weights)]
    references = gradients(run(FLOAT64), *doubles)
    out, sums, masses, values, logsumexp = results[:5]
    assert out.dtype == dtype
    assert out.transpose(1, 2).is_contiguous()
    assert {t.dtype for t in (sums, masses, values, logsumexp)} == {torch.float32}
    # With one cluster the centroids' gradient is zero: the points' gives the scale.
    scale = references[5].norm() if clusters == 1 else None
    assert_close(results, references, bound(dtype, dim, clusters, points), scale)


@pytest.mark.parametrize("clusters", [5, 70])
def test_gradient_of_the_logsumexp_and_of_weights_that_are_zero(clusters):
    dim, points = 16, 90
    cluster_queries = torch.randn(BATCH, HEADS, clusters, dim)
    key, value = torch.randn(2, BATCH, HEADS, points, dim)
    weights = torch.rand(BATCH, points)
    weights[:, 10:70] = 0
    arguments = cluster_queries, key, value, weights
    results = gradients(attend, *arguments)
    references = gradients(attend_float64, *(t.double() for t in arguments))
    assert references[-1][:, 10:70].abs().min() > 0
    assert_close(results, references, bound(torch.float32, dim, clusters, points))


def merged(parts):
    values, logsumexp = (torch.stack(t) for t in zip(*parts, strict=True))
    return (values * logsumexp.softmax(0)).sum(0), logsumexp.logsumexp(0)


def test_attentions_to_chunks_merge_into_that_to_all():
    dim, clusters, points = 16, 5, 200
    cluster_queries = torch.randn(BATCH, HEADS, clusters, dim)
    key, value = torch.randn(2, BATCH, HEADS, points, dim)
    weights = torch.rand(BATCH, points)
    weights[:, 60:130] = 0  # the second chunk has no point at all

    def by_chunks(cluster_queries, key, value, weights):
        chunks = zip(
            key.split([60, 70, 70], 2),
            value.split([60, 70, 70], 2),
            weights.split([60, 70, 70], 1),
            strict=True,
        )
        return merged([attend(cluster_queries, *chunk) for chunk in chunks])

    arguments = cluster_queries, key, value, weights
    results = gradients(by_chunks, *arguments)
    references = gradients(attend_float64, *(t.double() for t in arguments))
    for grad_weights in (results[-1], references[-1]):  # without a point there is no softmax
        assert not results[-1][:, 60:130].any()
        grad_weights[:, 60:130] = 0
    assert_close(results, references, bound(torch.float32, dim, clusters, points))


def test_a_layer_under_autocast_computes_in_its_type():
    """With heads that the kernels hold in bfloat16 and not in float32."""
    layer = ClusterAttention(128, heads=1, dim_head=128, n_clusters=4)
    x = torch.randn(1, 40, 128)
    layer.implementation = "triton"
    with pytest.raises(ValueError, match=r"channels a head of torch\.float32, not 128"):
        layer(x)
    with torch.autocast("cpu", torch.bfloat16):
        found = layer(x)
    layer.implementation = "reference"
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), layer(x), rtol=0.02, atol=0.02)


def test_no_point_at_all():
    values, logsumexp = attend(
        torch.randn(1, 1, 3, 8), *torch.randn(2, 1, 1, 20, 8), torch.zeros(1, 20)
    )
    assert not values.any()
    assert (logsumexp == -torch.inf).all()


def test_large_logits():
    r"""Online maxima: exponentials of the logits themselves would overflow."""
    projected, centroids, weights = inputs(16, 40, 70, torch.float32, True)
    query, key, value = projected.permute(2, 0, 3, 1, 4)
    query[..., 0], centroids[..., 0], key[..., 0] = 10, 20, 80  # 200 in every logit
    arguments = query, key, value, centroids, weights
    results = chain(*arguments)
    references = chain(*(t.double() for t in arguments), FLOAT64)
    assert references[4].min() > 100
    # The rounding of a logit is an error of the exponential, and as large as the logit.
    assert_close(results, references, bound(torch.float32, 16, 40, 70) * 200)


def test_float16_gradients_beyond_its_range():
    r"""A mean over many points has gradients below what float16 can hold, and weights above."""
    query = torch.randn(1, 1, 100, 8).half()
    centroids = torch.randn(1, 4, 8).half()
    weights = torch.rand(1, 100) * 1e6

    def mean(query, centroids, weights, function):
        sums, masses = function(query, centroids, weights)[:2]
        return (sums / masses,)

    results = gradients(lambda *a: mean(*a, aggregate), query, centroids, weights)
    doubles = query.double(), centroids.double(), weights.double()
    references = gradients(lambda *a: mean(*a, aggregate_float64), *doubles)
    assert_close(results, references, bound(torch.float16, 8, 4, 100))


def test_repeats_are_identical_however_the_inputs_lie():
    projected, centroids, weights = inputs(16, 20, 150, torch.float32, True)

    def run(query, key, value, centroids, weights):
        return chain(query, key, value, centroids, weights)

    views = (*projected.permute(2, 0, 3, 1, 4), centroids, weights)
    copies = [t.contiguous() for t in views[:3]]
    odd = [t.mT.contiguous().mT for t in views[:3]]  # channels apart: copied by the operators
    first = gradients(run, *views)
    for other in (views, (*copies, *views[3:]), (*odd, *views[3:])):
        assert all(map(torch.equal, first, gradients(run, *other)))


def test_logsumexp_is_computed_where_not_given():
    query, centroids = torch.randn(1, 2, 70, 8), torch.randn(2, 20, 8)
    values = torch.randn(1, 2, 20, 8)
    lse = aggregate(query, centroids, None)[2]
    results = gradients(lambda *a: (dispatch(*a),), query, centroids, values)
    references = gradients(lambda *a: (dispatch(*a, lse),), query, centroids, values)
    assert_close(results, [r.double() for r in references], bound(torch.float32, 8, 20, 70))


def test_operators_are_registered_correctly():
    projected, centroids, weights = inputs(8, 5, 40, torch.float32, True)
    query, key, value = (t.detach().requires_grad_() for t in projected.permute(2, 0, 3, 1, 4))
    centroids.requires_grad_()
    weights.requires_grad_()
    clusters = torch.randn(BATCH, HEADS, 5, 8, requires_grad=True)
    lse = aggregate(query, centroids, weights)[2]
    tests = ("test_schema", "test_autograd_registration", "test_faketensor")
    everything = (*tests, "test_aot_dispatch_dynamic")
    opcheck = torch.library.opcheck
    opcheck(torch.ops.cano.logsumexp, (query.detach(), centroids.detach()), test_utils=tests)
    opcheck(torch.ops.cano.aggregate, (query, centroids, weights), test_utils=tests)
    opcheck(torch.ops.cano.attend, (clusters, key, value, weights), test_utils=everything)
    opcheck(torch.ops.cano.dispatch, (query, centroids, clusters, lse), test_utils=everything)


def test_compiled_as_one_graph():
    arguments = inputs(8, 5, 40, torch.float32, True)

    def run(projected, centroids, weights):
        return chain(*projected.permute(2, 0, 3, 1, 4), centroids, weights)

    compiled = torch.compile(run, fullgraph=True, backend="aot_eager")
    assert all(map(torch.equal, gradients(run, *arguments), gradients(compiled, *arguments)))


def test_exported():
    class Layer(torch.nn.Module):
        def forward(self, query, key, value, centroids, weights):
            return chain(query, key, value, centroids, weights)[0]

    projected, centroids, weights = inputs(8, 5, 40, torch.float32, True)
    arguments = (*projected.permute(2, 0, 3, 1, 4), centroids, weights)
    points = torch.export.Dim("points", min=2)
    shapes = ({2: points}, {2: points}, {2: points}, None, {1: points})
    program = torch.export.export(Layer(), arguments, dynamic_shapes=shapes).module()
    projected, _, weights = inputs(8, 5, 64, torch.float32, True)
    others = (*projected.permute(2, 0, 3, 1, 4), centroids, weights)
    assert torch.equal(program(*others), Layer()(*others))
