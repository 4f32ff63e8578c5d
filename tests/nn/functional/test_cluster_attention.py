# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""The functional against the paper's equations, its invariances, and its refusals."""

import math
import subprocess
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from physicsnemo_cano.nn.functional import cluster_attention
from physicsnemo_cano.nn.functional.cluster_attention import cluster_attention_reference


def inputs(batch=2, heads=2, points=7, dim=3, clusters=4, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, dtype=dtype, generator=generator)

    qkv = [normal(batch, heads, points, dim) for _ in range(3)]
    return *qkv, normal(heads, clusters, dim)


def loop(query, key, value, centroids, weights, normalize):
    """The equations as loops over plain numbers; ``weights`` have mean one."""
    batch, heads, points, dim = query.shape
    clusters = centroids.shape[1]
    out = torch.zeros_like(query)
    for b in range(batch):
        for h in range(heads):
            q, k, v = query[b, h].tolist(), key[b, h].tolist(), value[b, h].tolist()
            w_c, w = centroids[h].tolist(), weights[b].tolist()
            c = []  # eq. 13
            for n in range(points):
                e = [
                    math.exp(sum(x * y for x, y in zip(q[n], w_c[j], strict=True)))
                    for j in range(clusters)
                ]
                c.append([x / sum(e) for x in e])
            z = []
            for j in range(clusters):
                mass = sum(c[n][j] * w[n] for n in range(points)) if normalize else 1
                q_c = [
                    sum(c[n][j] * w[n] * q[n][d] for n in range(points)) / mass for d in range(dim)
                ]  # eq. 14
                a = [
                    w[n]
                    * math.exp(sum(x * y for x, y in zip(q_c, k[n], strict=True)) / math.sqrt(dim))
                    for n in range(points)
                ]
                z.append(
                    [sum(a[n] * v[n][d] for n in range(points)) / sum(a) for d in range(dim)]
                )  # eq. 15
            for n in range(points):  # eq. 16
                for d in range(dim):
                    out[b, h, n, d] = sum(c[n][j] * z[j][d] for j in range(clusters))
    return out


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("function", [cluster_attention, cluster_attention_reference])
def test_equals_the_equations_written_as_loops(function, normalize):
    q, k, v, c = inputs()
    w = torch.rand(2, 7, dtype=torch.float64) + 0.1
    expected = loop(q, k, v, c, w / w.mean(1, keepdim=True), normalize)
    torch.testing.assert_close(
        function(q, k, v, c, weights=w, normalize_queries=normalize), expected, rtol=0, atol=1e-12
    )
    expected = loop(q, k, v, c, torch.ones_like(w), normalize)
    torch.testing.assert_close(
        function(q, k, v, c, normalize_queries=normalize), expected, rtol=0, atol=1e-12
    )


@given(
    batch=st.integers(1, 3),
    heads=st.integers(1, 3),
    points=st.integers(1, 40),
    dim=st.integers(1, 9),
    clusters=st.integers(1, 50),
    normalize=st.booleans(),
    masked=st.booleans(),
    weighted=st.booleans(),
    chunk_size=st.one_of(st.none(), st.integers(1, 45)),
    seed=st.integers(0, 2**31),
)
def test_fast_path_equals_the_specification_with_gradients(
    batch, heads, points, dim, clusters, normalize, masked, weighted, chunk_size, seed
):
    tensors = [t.requires_grad_() for t in inputs(batch, heads, points, dim, clusters, seed=seed)]
    generator = torch.Generator().manual_seed(seed)
    mask = weights = None
    if masked:
        mask = torch.rand(batch, points, generator=generator) > 0.4
        mask[:, seed % points] = True
    if weighted:
        weights = torch.rand(batch, points, generator=generator) + 1e-3
    options = {"mask": mask, "weights": weights, "normalize_queries": normalize}
    expected = cluster_attention_reference(*tensors, **options)
    got = cluster_attention(*tensors, **options, chunk_size=chunk_size)
    torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-10)
    upstream = torch.randn(expected.shape, generator=generator, dtype=torch.float64)
    for a, b in zip(
        torch.autograd.grad(got, tensors, upstream),
        torch.autograd.grad(expected, tensors, upstream),
        strict=True,
    ):
        torch.testing.assert_close(a, b, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("chunk_size", [None, 3000, 1025, 64])
def test_many_tiles_in_single_precision(chunk_size):
    points = 3000
    exact = [t.requires_grad_() for t in inputs(1, 2, points, 8, 16)]
    single = [t.detach().float().requires_grad_() for t in exact]
    w = torch.rand(1, points) + 0.1
    expected = cluster_attention_reference(*exact, weights=w)
    got = cluster_attention(*single, weights=w, chunk_size=chunk_size)
    # Rounding of the sums over N points adds up like a random walk, in three passes and back.
    bound = 8 * torch.finfo(torch.float32).eps * points**0.5
    assert (got - expected).abs().max() <= bound * expected.abs().max()
    for found, truth in zip(
        torch.autograd.grad(got.square().sum(), single),
        torch.autograd.grad(expected.square().sum(), exact),
        strict=True,
    ):
        assert (found - truth).abs().max() <= bound * truth.abs().max()


@pytest.mark.parametrize("chunk_size", [None, 2])
@pytest.mark.parametrize("normalize", [True, False])
def test_gradcheck(normalize, chunk_size):
    tensors = [t.requires_grad_() for t in inputs(points=5)]
    mask = torch.tensor([[True] * 5, [True, False, True, True, False]])
    weights = (torch.rand(2, 5, dtype=torch.float64) + 0.5).requires_grad_()

    def function(*args):
        *args, weights = args
        return cluster_attention(
            *args, mask=mask, weights=weights, normalize_queries=normalize, chunk_size=chunk_size
        )

    assert torch.autograd.gradcheck(function, (*tensors, weights))


def test_permuting_points_permutes_the_output():
    q, k, v, c = inputs(points=30)
    order = torch.randperm(30)
    permuted = cluster_attention(*(t[:, :, order] for t in (q, k, v)), c)
    torch.testing.assert_close(permuted, cluster_attention(q, k, v, c)[:, :, order])


@given(seed=st.integers(0, 2**31), point=st.integers(0, 11), share=st.floats(0.01, 0.99))
def test_splitting_a_point_that_shares_its_weight_changes_nothing(seed, point, share):
    q, k, v, c = inputs(1, 2, 12, 3, 4, seed=seed)
    w = torch.rand(1, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) + 0.1
    whole = cluster_attention(q, k, v, c, weights=w)
    split = torch.cat([w, (1 - share) * w[:, point : point + 1]], 1)
    split[:, point] *= share
    more = [torch.cat([t, t[:, :, point : point + 1]], 2) for t in (q, k, v)]
    out = cluster_attention(*more, c, weights=split)
    torch.testing.assert_close(out[:, :, :12], whole, rtol=0, atol=1e-12)
    torch.testing.assert_close(out[:, :, 12], whole[:, :, point], rtol=0, atol=1e-12)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("scale", [1e-300, 1e-12, 3.7, 1e9])
def test_scaling_all_weights_changes_nothing(scale, normalize):
    q, k, v, c = inputs()
    w = torch.rand(2, 7, dtype=torch.float64) + 0.1
    torch.testing.assert_close(
        cluster_attention(q, k, v, c, weights=scale * w, normalize_queries=normalize),
        cluster_attention(q, k, v, c, weights=w, normalize_queries=normalize),
    )


@pytest.mark.parametrize("normalize", [True, False])
def test_a_point_of_weight_zero_influences_nothing(normalize):
    q, k, v, c = inputs(points=6)
    w = torch.rand(2, 6, dtype=torch.float64) + 0.1
    w[:, 4] = 0
    keep = [0, 1, 2, 3, 5]
    out = cluster_attention(q, k, v, c, weights=w)
    alone = cluster_attention(*(t[:, :, keep] for t in (q, k, v)), c, weights=w[:, keep])
    torch.testing.assert_close(out[:, :, keep], alone)


@pytest.mark.parametrize("chunk_size", [None, 4])
@pytest.mark.parametrize("normalize", [True, False])
def test_padding_changes_no_real_point_and_no_gradient(normalize, chunk_size):
    q, k, v, c = inputs(points=6)
    alone = [t.clone().requires_grad_() for t in (q, k, v, c)]
    expected = cluster_attention(*alone, normalize_queries=normalize)
    padded = [
        torch.cat([t, torch.full((2, 2, 5, 3), torch.nan, dtype=t.dtype)], 2).requires_grad_()
        for t in (q, k, v)
    ]
    centroids = c.clone().requires_grad_()
    mask = torch.arange(11).expand(2, -1) < 6
    got = cluster_attention(
        *padded, centroids, mask=mask, normalize_queries=normalize, chunk_size=chunk_size
    )
    torch.testing.assert_close(got[:, :, :6], expected)
    assert (got[:, :, 6:] == 0).all()
    got.square().sum().backward()
    expected.square().sum().backward()
    for a, b in zip(padded, alone, strict=False):
        torch.testing.assert_close(a.grad[:, :, :6], b.grad)
        assert (a.grad[:, :, 6:] == 0).all()
    torch.testing.assert_close(centroids.grad, alone[3].grad)


def test_two_clouds_in_a_padded_batch_equal_each_alone():
    (q1, k1, v1, c), (q2, k2, v2, _) = inputs(1, points=9), inputs(1, points=4, seed=1)
    padded = [
        torch.cat([a, torch.cat([b, torch.randn(1, 2, 5, 3, dtype=b.dtype)], 2)])
        for a, b in ((q1, q2), (k1, k2), (v1, v2))
    ]
    mask = torch.arange(9) < torch.tensor([[9], [4]])
    out = cluster_attention(*padded, c, mask=mask)
    torch.testing.assert_close(out[:1], cluster_attention(q1, k1, v1, c))
    torch.testing.assert_close(out[1:, :, :4], cluster_attention(q2, k2, v2, c))


def test_one_cluster_is_attention_of_the_mean_query():
    q, k, v, c = inputs(clusters=1)
    mean = q.mean(2, keepdim=True)
    expected = ((mean @ k.mT / math.sqrt(3)).softmax(-1) @ v).expand_as(q)
    torch.testing.assert_close(cluster_attention(q, k, v, c), expected)


def test_one_point_returns_its_value_and_more_clusters_than_points_are_fine():
    q, k, v, c = inputs(points=1, clusters=20)
    torch.testing.assert_close(cluster_attention(q, k, v, c), v)
    q, k, v, c = inputs(points=3, clusters=50)
    expected = loop(q, k, v, c, torch.ones(2, 3, dtype=q.dtype), True)
    torch.testing.assert_close(cluster_attention(q, k, v, c), expected)


@pytest.mark.parametrize("chunk_size", [None, 3])
def test_a_cluster_that_no_point_belongs_to_spoils_nothing(chunk_size):
    """Its mass underflows to zero in single precision; the rest stays as it is without it."""
    q, k, v, c = inputs(heads=1, dtype=torch.float32)
    q = q.abs() + 1
    dead = torch.full((1, 1, 3), -500.0)
    results = []
    for centroids in (c, torch.cat([c, dead], 1)):
        leaves = [t.clone().requires_grad_() for t in (q, k, v, centroids)]
        out = cluster_attention(*leaves, chunk_size=chunk_size)
        out.square().sum().backward()
        results.append([out, *(t.grad for t in leaves)])
    for without, with_dead in zip(*results, strict=True):
        torch.testing.assert_close(with_dead[:, : without.shape[1]], without)
    assert (results[1][-1][:, -1] == 0).all()


def test_literal_equation_14_is_the_plain_sum():
    q, k, v, c = inputs()
    assignment = (q @ c.mT).softmax(-1)
    clustered = assignment.mT @ q
    expected = assignment @ ((clustered @ k.mT / math.sqrt(3)).softmax(-1) @ v)
    torch.testing.assert_close(cluster_attention(q, k, v, c, normalize_queries=False), expected)


def test_vmap_and_half_precision():
    tensors = inputs(3, dtype=torch.float32)
    *qkv, c = tensors
    mapped = torch.func.vmap(lambda *t: cluster_attention(*(x[None] for x in t), c)[0])(*qkv)
    torch.testing.assert_close(mapped, cluster_attention(*tensors))
    half = cluster_attention(*(t.bfloat16() for t in tensors), weights=torch.rand(3, 7) + 0.1)
    assert half.dtype == torch.bfloat16
    # 50,000 points whose queries sum past float16's largest number, 65504
    q = torch.full((1, 1, 50_000, 8), 4.0, dtype=torch.float16)
    out = cluster_attention(q, q, q, torch.randn(1, 2, 8).half())
    torch.testing.assert_close(out, q)


def bad(**changes):
    q, k, v, c = inputs()
    arguments = {"query": q, "key": k, "value": v, "centroids": c} | changes
    return lambda: cluster_attention(**arguments)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (bad(key=torch.ones(2, 2, 8, 3)), r"one shape \(B, H, N, D\).*\(2, 2, 8, 3\)"),
        (bad(query=torch.ones(7, 3)), r"got \(7, 3\)"),
        (bad(centroids=torch.ones(2, 4, 5)), r"\(2, K_c, 3\), got \(2, 4, 5\)"),
        (bad(value=torch.ones(2, 2, 7, 3)), "one floating dtype.*float64 and torch.float32"),
        (bad(chunk_size=0), "chunk_size None or >= 1, got 0"),
        (bad(mask=torch.ones(2, 6, dtype=torch.bool)), r"\(2, 7\), got \(2, 6\)"),
        (bad(mask=torch.ones(2, 7)), "mask must be boolean.*float32"),
        (bad(mask=torch.tensor([[True] * 7, [False] * 7])), r"none in \[1\]"),
        (bad(weights=torch.ones(2, 7, 1)), r"\(2, 7\), got \(2, 7, 1\)"),
        (bad(weights=torch.ones(2, 7, dtype=torch.long)), "floating dtype, got torch.int64"),
        (bad(weights=-torch.ones(2, 7)), "not negative.*from -1 to -1"),
        (bad(weights=torch.full((2, 7), torch.nan)), "finite"),
        (bad(weights=torch.tensor([[0.0] * 7, [1.0] * 7])), r"all be zero.*\[0\]"),
    ],
)
def test_bad_input_is_refused_with_what_came_and_what_was_expected(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_imports_with_torch_alone():
    code = (
        "import sys\n"
        "for name in ('physicsnemo', 'jaxtyping', 'hydra', 'h5py'): sys.modules[name] = None\n"
        "import torch\n"
        "from physicsnemo_cano.nn.functional import cluster_attention\n"
        "q = torch.ones(1, 1, 2, 3)\n"
        "print(cluster_attention(q, q, q, q[0]).sum().item())\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(run.stdout) == pytest.approx(6)
