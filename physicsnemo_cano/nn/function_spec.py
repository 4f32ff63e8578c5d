# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
r"""The implementations of cluster attention in PhysicsNeMo's registry of functionals.

So its parity checks and benchmarks run on them. What runs in a model does not pass through here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from physicsnemo.core.function_spec import FunctionSpec

from physicsnemo_cano.nn.functional.cluster_attention import Projection, cluster_attention

_SIZES = {"small": (1, 1024, 32), "medium": (2, 16384, 64), "large": (1, 65536, 128)}
_HEADS, _DIM_HEAD = 8, 16


class ClusterAttentionFunction(FunctionSpec):
    r"""Cluster attention between two linear maps (arXiv 2609.39914, eq. 9 and 13 to 16).

    Arguments and result as of
    :func:`~physicsnemo_cano.nn.functional.cluster_attention`, which also chooses where no
    ``implementation`` is named.
    """

    @FunctionSpec.register(name="triton", required_imports=("triton>=3.0",), rank=0)
    def triton_forward(*args, **kwargs) -> torch.Tensor:
        r"""Kernels for NVIDIA GPUs."""
        return cluster_attention(*args, implementation="triton", **kwargs)

    @FunctionSpec.register(name="tiled", rank=1)
    def tiled_forward(*args, **kwargs) -> torch.Tensor:
        r"""Tiles of points, on CPUs."""
        return cluster_attention(*args, implementation="tiled", **kwargs)

    @FunctionSpec.register(name="sdpa", rank=2)
    def sdpa_forward(*args, **kwargs) -> torch.Tensor:
        r"""Torch's fused attention."""
        return cluster_attention(*args, implementation="sdpa", **kwargs)

    @FunctionSpec.register(name="streaming", rank=3)
    def streaming_forward(*args, **kwargs) -> torch.Tensor:
        r"""Chunks of points, merged."""
        return cluster_attention(*args, implementation="streaming", **kwargs)

    @FunctionSpec.register(name="reference", rank=4, baseline=True)
    def reference_forward(*args, **kwargs) -> torch.Tensor:
        r"""The equations."""
        return cluster_attention(*args, implementation="reference", **kwargs)

    @classmethod
    def dispatch(cls, *args, implementation: str | None = None, **kwargs) -> torch.Tensor:
        r"""Run an implementation; by default the one that the package's models run."""
        return cluster_attention(*args, implementation=implementation, **kwargs)

    @classmethod
    def make_inputs_forward(
        cls, device: torch.device | str = "cpu"
    ) -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
        r"""Features, centroids, projections and weights, from small to large."""
        yield from _inputs(device, requires_grad=False)

    @classmethod
    def make_inputs_backward(
        cls, device: torch.device | str = "cpu"
    ) -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
        r"""The same, with gradients of features and centroids."""
        yield from _inputs(device, requires_grad=True)

    @classmethod
    def compare_forward(cls, output: torch.Tensor, reference: torch.Tensor) -> None:
        r"""Whether two outputs agree in half of their digits."""
        _compare(output, reference)

    @classmethod
    def compare_backward(cls, output: torch.Tensor, reference: torch.Tensor) -> None:
        r"""Whether two gradients agree in half of their digits."""
        _compare(output, reference)


def _inputs(device, requires_grad):
    for label, (batch, points, clusters) in _SIZES.items():
        generator = torch.Generator(device).manual_seed(0)
        inner = _HEADS * _DIM_HEAD

        def normal(*shape, generator=generator):
            return torch.randn(*shape, device=device, generator=generator)

        x = normal(batch, points, inner).requires_grad_(requires_grad)
        centroids = normal(_HEADS, clusters, _DIM_HEAD).requires_grad_(requires_grad)
        projection = Projection(
            normal(3 * inner, inner) / inner**0.5,
            normal(3 * inner),
            normal(inner, inner) / inner**0.5,
            normal(inner),
        )
        weights = torch.rand(batch, points, device=device, generator=generator) + 0.1
        yield label, (x, x, x, centroids), {"projection": projection, "weights": weights}


def _compare(output, reference):
    # Half of the digits, of the largest value: each is a sum over up to all points.
    bound = torch.finfo(output.dtype).eps ** 0.5 * reference.abs().max().item()
    torch.testing.assert_close(output, reference, rtol=0, atol=bound)
