# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""The layer: its closed forms, grids of other resolutions, refusals."""

import math

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.functional import conv2d, pad
from torch.nn.utils import prune

from physicsnemo_cano import ClusterAttention
from physicsnemo_cano.nn.functional.cluster_attention import choice
from physicsnemo_cano.nn.module import GridConvolution


def layer(**options):
    options = {"dim": 6, "heads": 2, "dim_head": 3, "n_clusters": 4} | options
    return ClusterAttention(**options).double()


@pytest.mark.parametrize("normalize", [True, False])
def test_layer_equals_its_linear_attention_form(normalize):
    """Appendix A: Y = φ(Q) (ψ(K)ᵀ V), φ the assignment, ψ the softmax over points."""
    attention = layer(normalize_queries=normalize)
    x = torch.randn(2, 11, 6, dtype=torch.float64)
    q, k, v = (
        part.unflatten(-1, (2, 3)).transpose(1, 2) for part in attention.to_qkv(x).chunk(3, -1)
    )
    phi = (q @ attention.centroids.mT).softmax(-1)
    clustered = phi.mT @ q
    if normalize:
        clustered = clustered / phi.sum(-2).unsqueeze(-1)
    psi = (clustered @ k.mT / math.sqrt(3)).softmax(-1).mT
    expected = attention.to_out((phi @ (psi.mT @ v)).transpose(1, 2).flatten(2))
    torch.testing.assert_close(attention(x), expected)
    torch.testing.assert_close(attention.assignments(x), phi)
    torch.testing.assert_close(phi.sum(-1), torch.ones_like(phi[..., 0]))


@pytest.mark.parametrize("shape", [(12,), (3, 4), (2, 2, 3)])
def test_chunks_and_batch_change_nothing_on_grids_and_clouds(shape):
    for spatial_shape in (None, shape):
        attention = layer(spatial_shape=spatial_shape)
        x = torch.randn(3, 12, 6, dtype=torch.float64)
        expected = attention(x)
        torch.testing.assert_close(torch.cat([attention(one) for one in x.split(1)]), expected)
        for chunk_size in (1, 5, 12, 100):
            attention.chunk_size = chunk_size
            torch.testing.assert_close(attention(x), expected, rtol=0, atol=1e-12)
        attention.chunk_size = None


@pytest.mark.parametrize("chunk_size", [None, 3])
def test_padding_is_zero_and_bad_masks_and_weights_are_refused(chunk_size):
    attention = layer(chunk_size=chunk_size)
    x = torch.randn(2, 8, 6, dtype=torch.float64)
    mask = torch.arange(8).expand(2, -1) < 6
    out = attention(x, mask)
    assert (out[:, 6:] == 0).all()
    torch.testing.assert_close(out[:, :6], attention(x[:, :6]))
    for options, message in (
        ({"mask": mask & False}, r"none in \[0, 1\]"),
        ({"mask": mask.double()}, "must be boolean"),
        ({"mask": mask[:, :5]}, r"got \(2, 5\)"),
        ({"weights": -torch.ones(2, 8)}, "not negative"),
        ({"weights": torch.ones(1, 8)}, r"got \(1, 8\)"),
    ):
        with pytest.raises(ValueError, match=message):
            attention(x, **options)


def test_dropout_in_chunks_is_the_same_forward_and_backward():
    """With W_O = 0 and a bias of ones an output is 0 or 2, and its sum is the bias's gradient."""
    attention = layer(dropout=0.5, chunk_size=4)
    torch.nn.init.zeros_(attention.to_out.weight)
    torch.nn.init.ones_(attention.to_out.bias)
    out = attention(torch.randn(1, 64, 6, dtype=torch.float64))
    out.sum().backward()
    assert 0 < out.sum() < out.numel() * 2
    torch.testing.assert_close(attention.to_out.bias.grad, out.detach().sum((0, 1)))


def test_cloud_is_permutation_equivariant_and_grid_is_not():
    x, order = torch.randn(1, 12, 6, dtype=torch.float64), torch.randperm(12)
    cloud, grid = layer(), layer(spatial_shape=(3, 4))
    torch.testing.assert_close(cloud(x[:, order]), cloud(x)[:, order])
    assert (grid(x[:, order]) - grid(x)[:, order]).abs().max() > 1e-3


@pytest.mark.parametrize("mode", ["replicate", "circular"])
def test_grid_convolution_on_the_training_grid_is_torchs(mode):
    convolution = GridConvolution(4, (5, 6), 3, mode).double()
    x = torch.randn(2, 4, 5, 6, dtype=torch.float64)
    padded = pad(x, (1, 1, 1, 1), mode=mode)
    expected = conv2d(padded, convolution.weight, convolution.bias)
    torch.testing.assert_close(convolution(x.flatten(2).mT), expected.flatten(2).mT)


@pytest.mark.parametrize(
    ("trained", "fine", "mode"),
    [
        ((9,), (17,), "replicate"),  # nodes, both ends included
        ((8,), (24,), "circular"),  # a periodic axis
        ((5, 7), (9, 13), "replicate"),
        ((5, 7), (9, 7), "replicate"),  # one axis refined
        ((4, 5, 6), (7, 9, 11), "replicate"),
        ((9, 9), (5, 5), "replicate"),  # coarser by two: taps share the nearest points
        ((9, 9), (13, 13), "replicate"),  # finer by three halves
    ],
)
def test_convolution_keeps_its_physical_reach(trained, fine, mode):
    """A linear field on any grid convolves to the training grid's values, away from its ends."""
    convolution = GridConvolution(1, trained, 3, mode).double()

    def on(shape):
        # Coordinates of nodes with both ends, or of a periodic axis; a training cell is left out
        # at the ends, where the taps leave the domain.
        periodic = mode == "circular"
        axes, inner = [], torch.ones(shape, dtype=torch.bool)
        for axis, (n, m) in enumerate(zip(shape, trained, strict=True)):
            x = torch.arange(n, dtype=torch.float64) / (n if periodic else n - 1)
            cell = 1 / m if periodic else 1 / (m - 1)
            keep = (x > cell - 1e-9) & (x < x[-1] - cell + 1e-9)
            inner &= keep.reshape([-1 if a == axis else 1 for a in range(len(shape))])
            axes.append(x)
        mesh = torch.stack(torch.meshgrid(*axes, indexing="ij"), -1)
        field = (mesh * torch.arange(1, len(shape) + 1)).sum(-1)
        out = convolution(field.reshape(1, -1, 1), shape).reshape(shape)
        assert inner.any()
        return mesh[inner], out[inner]

    slopes = (convolution.weight.sum() * torch.arange(1, len(trained) + 1)).double()
    mesh, values = on(trained)
    offset = (values - mesh @ slopes)[:1]
    torch.testing.assert_close(values - mesh @ slopes, offset.expand(len(values)))
    mesh, values = on(fine)
    torch.testing.assert_close(values - mesh @ slopes, offset.expand(len(values)))


def test_whole_refinement_agrees_at_the_shared_nodes():
    """Every second node of a doubled grid sees exactly the training grid's neighbours."""
    convolution = GridConvolution(2, (5, 6), 3, "replicate").double()
    fine = torch.randn(1, 9, 11, 2, dtype=torch.float64)
    coarse = fine[:, ::2, ::2].reshape(1, -1, 2)
    on_fine = convolution(fine.reshape(1, -1, 2), (9, 11)).reshape(1, 9, 11, 2)
    torch.testing.assert_close(
        on_fine[:, 2:-2:2, 2:-2:2], convolution(coarse).reshape(1, 5, 6, 2)[:, 1:-1, 1:-1]
    )


def test_circular_padding_commutes_with_shifts():
    attention = layer(spatial_shape=(6, 8), padding_mode="circular")
    x = torch.randn(1, 6, 8, 6, dtype=torch.float64)
    shifted = x.roll((2, 3), (1, 2)).flatten(1, 2)
    expected = attention(x.flatten(1, 2)).reshape(x.shape).roll((2, 3), (1, 2)).flatten(1, 2)
    torch.testing.assert_close(attention(shifted), expected)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: layer(heads=0), "heads >= 1, got 0"),
        (lambda: layer(chunk_size=0), "chunk_size >= 1, got 0"),
        (lambda: layer()(torch.ones(2, 5, 6)), "dtype torch.float64, got torch.float32"),
        (lambda: layer(spatial_shape=(2, 2, 2, 2)), "1, 2 or 3 positive"),
        (lambda: layer(spatial_shape=(2, -1)), "1, 2 or 3 positive"),
        (lambda: layer(spatial_shape=(2, 2), kernel=2), "odd number, got 2"),
        (lambda: layer(spatial_shape=(2, 2), padding_mode="same"), "'same'"),
        (lambda: layer()(torch.ones(2, 5, 7).double()), r"\(B, N, 6\), got \(2, 5, 7\)"),
        (lambda: layer(spatial_shape=(2, 2))(torch.ones(2, 5, 6).double()), "5 points"),
    ],
)
def test_bad_input_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("shape", [None, (6, 5)])
def test_tiles_change_nothing(shape):
    torch.manual_seed(0)
    attention = layer(spatial_shape=shape, dropout=0.3)
    x = torch.randn(2, 30, 6, dtype=torch.float64, requires_grad=True)
    mask = torch.ones(2, 30, dtype=torch.bool)
    mask[1, 20:] = False
    weights = torch.rand(2, 30, dtype=torch.float64)

    def run():
        torch.manual_seed(1)
        out = attention(x, mask, weights)
        return out, *torch.autograd.grad(out.square().sum(), [x, *attention.parameters()])

    whole = run()
    attention.implementation = "tiled"
    for value, expected in zip(run(), whole, strict=True):
        torch.testing.assert_close(value, expected)


IN_TILES = choice.TILED_BYTES // (6 * 4) + 1  # points of 6 features, of float32 or more


@pytest.mark.parametrize("points", [9, IN_TILES])
@pytest.mark.parametrize("name", ["to_qkv", "to_out"])
def test_hooks_on_the_projections_run_as_does_pruning(name, points):
    attention, x = layer(), torch.randn(1, points, 6, dtype=torch.float64)
    expected, calls = attention(x), []
    getattr(attention, name).register_forward_hook(lambda *_: calls.append(1))
    torch.testing.assert_close(attention(x), expected)
    assert calls

    attention = layer()
    prune.random_unstructured(getattr(attention, name), "weight", 0.5)
    for _ in range(2):  # a weight made once for all has no graph left the second time
        attention(x).sum().backward()


@pytest.mark.filterwarnings("ignore")  # of the tracer: deprecated, constants
def test_a_traced_layer_is_not_in_tiles():
    attention = layer().requires_grad_(False)
    x = torch.randn(2, 1, IN_TILES, 6, dtype=torch.float64)
    traced = torch.jit.trace(attention, x[0])
    torch.testing.assert_close(traced(x[1]), attention(x[1]))


def test_a_layer_of_fake_tensors_is_not_in_tiles():
    with FakeTensorMode():
        attention = ClusterAttention(6, 2, 3, n_clusters=4)
        assert attention(torch.empty(1, IN_TILES, 6)).shape == (1, IN_TILES, 6)
