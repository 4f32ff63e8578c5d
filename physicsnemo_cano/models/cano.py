# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
r"""The Cluster Attention Neural Operator as a PhysicsNeMo module."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F
from jaxtyping import Bool, Float
from physicsnemo.core import ModelMetaData, Module
from physicsnemo.nn import Mlp, PositionalEmbedding
from torch.overrides import handle_torch_function, has_torch_function

from physicsnemo_cano.nn.functional.cluster_attention import PointWeights, prepare_weights
from physicsnemo_cano.nn.functional.cluster_attention.choice import is_autocast_enabled
from physicsnemo_cano.nn.functional.cluster_attention.streaming import by_chunks
from physicsnemo_cano.nn.module.cluster_attention import ClusterAttention, is_two_tensors
from physicsnemo_cano.parallel.shards import ALL_POINTS, Shards


@dataclass
class MetaData(ModelMetaData):
    r"""What CANO supports."""

    cuda_graphs: bool = True
    amp: bool = True
    bf16: bool = True
    onnx: bool = True
    onnx_runtime: bool = True


def plain_argument(value: Any) -> Any:
    r"""Convert numbers and sequences of NumPy, torch or Hydra to Python's own.

    Parameters
    ----------
    value : Any
        Argument of a constructor.

    Returns
    -------
    Any
        Number, or list for a sequence, of plain Python; other values as they are.
    """
    if hasattr(value, "tolist"):  # arrays and their scalars
        return value.tolist()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain_argument(item) for item in value]
    return value


def with_plain_arguments(function: Callable) -> Callable:
    r"""Let a function have its arguments as :func:`plain_argument` converts them.

    Parameters
    ----------
    function : Callable
        Such as a constructor.

    Returns
    -------
    Callable
        With the same signature.
    """

    @functools.wraps(function)
    def wrapper(first: Any, *args: Any, **kwargs: Any) -> Any:
        args = [plain_argument(value) for value in args]
        return function(first, *args, **{k: plain_argument(v) for k, v in kwargs.items()})

    return wrapper


class CANOBlock(nn.Module):
    r"""Attention and feed-forward network, each normalised before and added after (Algorithm 1).

    Parameters
    ----------
    dim : int
        Number of features.
    mlp_ratio : int
        Width of the feed-forward network in units of ``dim``.
    act : str
        Activation of the feed-forward network.
    attention : ClusterAttention
        Of ``dim`` features.

    Forward
    -------
    h : torch.Tensor
        Shape :math:`(B, N, C)`; the other arguments as in
        :class:`~physicsnemo_cano.ClusterAttention`'s.

    Outputs
    -------
    torch.Tensor
        Shape :math:`(B, N, C)`.
    """

    def __init__(self, dim: int, mlp_ratio: int, act: str, attention: ClusterAttention) -> None:
        super().__init__()
        self.norm_attention = nn.LayerNorm(dim)
        self.attention = attention
        self.norm_mlp = nn.LayerNorm(dim)
        self.mlp = Mlp(dim, dim * mlp_ratio, dim, act_layer=act)

    def forward(
        self,
        h: Float[torch.Tensor, "B N C"],
        mask: Bool[torch.Tensor, "B N"] | None = None,
        weights: PointWeights | None = None,
        spatial_shape: Sequence[int] | None = None,
        shards: Shards = ALL_POINTS,
    ) -> Float[torch.Tensor, "B N C"]:
        r"""Apply the block; see the class for the shapes."""
        attention, size = self.attention, self.attention.chunk_size
        if size is None:
            h = h + attention(self.norm_attention(h), mask, weights, spatial_shape, shards)
            return h + self.mlp(self.norm_mlp(h))

        # In chunks, nothing wider than h is held for more points than that.
        if attention.convolution is None:
            x = h

            def prepare(piece, mask):
                return attention.prepare(self.norm_attention(piece), mask)

        else:  # a convolution needs its neighbours
            x = attention.prepare(self.norm_attention(h), mask, spatial_shape, shards)

            def prepare(piece, mask):
                return piece

        attended = attention.summarize(prepare, x, mask, weights, shards)

        def update(h, x, mask):
            h = h + attention.dispatch(prepare(x, mask), attended)
            return h + self.mlp(self.norm_mlp(h))

        return by_chunks(update, size, h, x, mask)

    def cluster_maps(
        self,
        h: Float[torch.Tensor, "B N C"],
        mask: Bool[torch.Tensor, "B N"] | None = None,
        weights: PointWeights | None = None,
        spatial_shape: Sequence[int] | None = None,
        shards: Shards = ALL_POINTS,
    ) -> Float[torch.Tensor, "B H N K"]:
        r"""How the forward pass assigns the points to clusters (eq. 13).

        Parameters
        ----------
        h, mask, weights, spatial_shape, shards
            As in the forward pass.

        Returns
        -------
        torch.Tensor
            Shape :math:`(B, H, N, K_c)`; its rows sum to one.
        """
        return self.attention.assignments(self.norm_attention(h), mask, spatial_shape, shards)


class CANO(Module):
    r"""Cluster Attention Neural Operator, after `arXiv 2609.39914 <https://arxiv.org/abs/2609.39914>`_.

    Maps functions on a point cloud or a grid to functions on the same points, in time and memory
    linear in their number. The first fifteen arguments are those of PhysicsNeMo's
    :class:`~physicsnemo.models.transolver.Transolver` and
    :class:`~physicsnemo.models.flare.FLARE`, so a configuration changes its ``_target_`` alone.

    Parameters
    ----------
    functional_dim : int
        Number of channels of the input function; 0 where the geometry is the only input.
    out_dim : int
        Number of output channels.
    embedding_dim : int | None, optional, default=None
        Number of channels of the points' embedding (coordinates, normals, …). Required unless
        ``unified_pos``.
    n_layers : int, optional, default=8
        Number of blocks.
    n_hidden : int, optional, default=128
        Number of features; a multiple of ``n_head``.
    dropout : float, optional, default=0.0
        Dropout rate of the attention's output.
    n_head : int, optional, default=8
        Number of attention heads.
    act : str, optional, default="gelu"
        Activation function, a name of PhysicsNeMo's.
    mlp_ratio : int, optional, default=2
        Width of the feed-forward networks in units of ``n_hidden``.
    slice_num : int, optional, default=32
        Number of clusters :math:`K_c` per head.
    unified_pos : bool, optional, default=False
        Embed a grid's points by their distances to ``ref`` reference points an axis on the unit
        square (interval, cube) instead of an ``embedding``, whose values are then unused.
    ref : int, optional, default=8
        Reference points per axis for ``unified_pos``.
    structured_shape : Sequence[int] | None, optional, default=None
        Shape of the training grid, of 1, 2 or 3 axes; ``None`` for point clouds.
    use_te : bool, optional, default=False
        Transformer Engine is not supported: ``True`` raises.
    time_input : bool, optional, default=False
        Whether the model takes a time.
    normalize_queries : bool, optional, default=True
        Mean query per cluster; ``False`` for the paper's literal sum (eq. 14).
    padding_mode : str, optional, default="replicate"
        What convolutions meet outside the grid: ``"replicate"``, or ``"circular"`` on periodic
        domains.
    chunk_size : int | None, optional, default=None
        Handle this many points at a time, with the same result: nothing wider than ``n_hidden``
        features is held for more points than that. Can be overridden when a checkpoint is
        opened; training recomputes each chunk in the backward pass.

    Forward
    -------
    fx : torch.Tensor or None
        Input function of shape :math:`(B, N, C)`, or of the grid's layout
        :math:`(B, *, C)`, or :math:`(B, 1, C)` for global inputs beside a full ``embedding``;
        ``None`` where ``functional_dim`` is 0 and there is an ``embedding``.
    embedding : torch.Tensor, optional
        Embedding of the points, :math:`(B, N, C')` or of the grid's layout. The grid's shape is
        read from whichever of ``fx`` and ``embedding`` has the layout, so that a model may be
        evaluated on other grids than the one it was trained on.
    time : torch.Tensor, optional
        Shape :math:`(B,)`; required if and only if ``time_input``.
    mask : torch.Tensor, optional
        Boolean, :math:`(B, N)` or of the grid's layout; ``False`` on padding. Meant for clouds: a
        convolution meets zeros where a grid is masked.
    weights : torch.Tensor, optional
        Quadrature weights of the points (areas, volumes), non-negative, of any scale,
        :math:`(B, N)`, :math:`(B, 1, N)` or of the grid's layout.
    shards : Shards, optional
        Where processes share a sample's points, and the inputs are this process's share: who has
        which. Inputs that are PhysicsNeMo's ``ShardTensor`` say so themselves.

    Outputs
    -------
    torch.Tensor
        Output function with ``out_dim`` channels and the layout of ``fx`` (of ``embedding`` where
        ``fx`` is global); zero on padding.

    Raises
    ------
    TypeError
        If an input is no tensor.
    ValueError
        If an argument or input is not as above.

    Examples
    --------
    >>> import torch
    >>> model = CANO(functional_dim=1, out_dim=1, embedding_dim=2, structured_shape=(16, 16))
    >>> model(torch.randn(2, 16, 16, 1), torch.randn(2, 16, 16, 2)).shape
    torch.Size([2, 16, 16, 1])
    """

    _overridable_args = {"chunk_size"}  # noqa: RUF012, PhysicsNeMo's name and type

    # PhysicsNeMo keeps the arguments given to __new__, a subclass's too, for the checkpoint.
    __new__ = with_plain_arguments(Module.__new__)

    @with_plain_arguments
    def __init__(
        self,
        functional_dim: int,
        out_dim: int,
        embedding_dim: int | None = None,
        n_layers: int = 8,
        n_hidden: int = 128,
        dropout: float = 0.0,
        n_head: int = 8,
        act: str = "gelu",
        mlp_ratio: int = 2,
        slice_num: int = 32,
        unified_pos: bool = False,
        ref: int = 8,
        structured_shape: Sequence[int] | None = None,
        use_te: bool = False,
        time_input: bool = False,
        normalize_queries: bool = True,
        padding_mode: str = "replicate",
        chunk_size: int | None = None,
    ) -> None:
        super().__init__(meta=MetaData())
        if use_te:
            raise ValueError(
                "CANO does not support use_te=True (Transformer Engine); set use_te=False"
            )
        if n_head < 1 or n_hidden % n_head != 0:
            raise ValueError(
                f"CANO expects n_hidden divisible by n_head >= 1, got n_hidden={n_hidden}, "
                f"n_head={n_head}"
            )
        if unified_pos and structured_shape is None:
            raise ValueError("CANO expects a structured_shape with unified_pos=True, got None")
        if not unified_pos and embedding_dim is None:
            raise ValueError("CANO expects an embedding_dim unless unified_pos=True, got None")
        self.functional_dim = functional_dim
        self.embedding_dim = ref ** len(structured_shape) if unified_pos else embedding_dim
        self.unified_pos = unified_pos
        self.ref = ref
        self.structured_shape = structured_shape
        self.chunk_size = chunk_size

        self.encoder = Mlp(
            self.embedding_dim + functional_dim, 2 * n_hidden, n_hidden, act_layer=act
        )
        self.time_embedding = PositionalEmbedding(n_hidden, learnable=True) if time_input else None
        self.blocks = nn.ModuleList(
            CANOBlock(
                n_hidden,
                mlp_ratio,
                act,
                ClusterAttention(
                    n_hidden,
                    heads=n_head,
                    dim_head=n_hidden // n_head,
                    dropout=dropout,
                    n_clusters=slice_num,
                    spatial_shape=structured_shape,
                    padding_mode=padding_mode,
                    normalize_queries=normalize_queries,
                    chunk_size=chunk_size,
                ),
            )
            for _ in range(n_layers)
        )
        self.decoder = nn.Sequential(nn.LayerNorm(n_hidden), nn.Linear(n_hidden, out_dim))

    def set_chunk_size(self, chunk_size: int | None) -> None:
        r"""Handle so many points at a time from now on, or all at once; see the class.

        Parameters
        ----------
        chunk_size : int or None
            Points at a time.

        Raises
        ------
        ValueError
            If there are less than one.
        """
        if chunk_size is not None and chunk_size < 1:
            raise ValueError(f"CANO expects chunk_size >= 1 or None, got {chunk_size}")
        self.chunk_size = chunk_size
        for block in self.blocks:
            block.attention.chunk_size = chunk_size

    def forward(
        self,
        fx: Float[torch.Tensor, "B *points C"] | None,
        embedding: Float[torch.Tensor, "B *points C_emb"] | None = None,
        time: Float[torch.Tensor, " B"] | None = None,
        mask: Bool[torch.Tensor, "B *points"] | None = None,
        weights: Float[torch.Tensor, "B *points"] | None = None,
        shards: Shards = ALL_POINTS,
    ) -> Float[torch.Tensor, "B *points C_out"]:
        r"""Predict the output function; see the class for the shapes."""
        if fx is None and embedding is not None and not self.functional_dim:
            fx = embedding[..., :0]
        if not torch.compiler.is_compiling():
            inputs = {"fx": fx, "embedding": embedding, "time": time}
            self._check_types(inputs | {"mask": mask, "weights": weights})
            if has_torch_function((fx, embedding)):
                # Imported for those who shard alone: PhysicsNeMo's domain_parallel patches torch.
                if "physicsnemo.domain_parallel" in sys.modules:
                    from physicsnemo_cano.parallel.shard_tensor import register_handler

                    register_handler(CANO.forward)
                return handle_torch_function(
                    CANO.forward, (fx, embedding), self, fx, embedding, time, mask, weights
                )
            self._check(fx, embedding, time)
        shape = self._grid(fx, embedding)
        layout = fx if embedding is None or _points(fx) != 1 else embedding
        layout = layout.shape[1:-1]

        fx = fx.flatten(1, -2)  # (B, N, C), or (B, 1, C) for global inputs
        if self.unified_pos:
            lines = shards.own_lines(_lines(shards.grid_shape(shape), fx))
            embedding = _product(lines).expand(fx.shape[0], -1, -1)  # (B, N, axes)
        else:
            embedding = embedding.flatten(1, -2)  # (B, N, C_emb)
        mask, weights = (t if t is None or t.ndim < 2 else t.flatten(1) for t in (mask, weights))
        batch, points = embedding.shape[:2]
        weights = prepare_weights(
            mask, weights, batch=batch, points=points, dtype=embedding.dtype, shards=shards
        )
        if mask is not None:
            padding = ~mask.unsqueeze(-1)
            # Padding may hold anything, NaN included, and 0 × NaN would reach the gradients.
            embedding = embedding.masked_fill(padding, 0)
            fx = fx if fx.shape[1] == 1 else fx.masked_fill(padding, 0)

        size = self.chunk_size or embedding.shape[1]
        time = None if self.time_embedding is None else self.time_embedding(time).unsqueeze(1)

        def encode(embedding, own_fx):
            return self._encode(fx if own_fx is None else own_fx, embedding, time)

        h = by_chunks(encode, size, embedding, None if fx.shape[1] == 1 else fx)  # (B, N, d)
        for block in self.blocks:
            h = block(h, mask, weights, shape, shards)
        out = by_chunks(self.decoder, size, h)
        if mask is not None:
            out = out.masked_fill(padding, 0)
        return out.unflatten(1, layout)

    def _encode(self, fx, embedding, time):
        r"""Encode ``[embedding, fx]`` without joining them: a global fx is never spread out."""
        if self.unified_pos:
            embedding = unified_position(embedding, self.ref)
        first, *rest = self.encoder.layers
        if is_two_tensors(first):
            weights = first.weight.split([self.embedding_dim, self.functional_dim], 1)
            hidden = F.linear(embedding, weights[0], first.bias)
            if self.functional_dim:
                hidden = hidden + F.linear(fx, weights[1])
        else:  # an adapter has taken its place, or a hook expects the call: both want all inputs
            hidden = first(torch.cat([embedding, fx.expand(*embedding.shape[:2], -1)], -1))
        for layer in rest:
            hidden = layer(hidden)
        return hidden if time is None else hidden + time

    def _grid(self, fx, embedding) -> tuple[int, ...] | None:
        r"""Shape of the grid at hand, ``None`` for a cloud."""
        if self.structured_shape is None:
            return None
        axes = len(self.structured_shape)
        for points in (fx, embedding):
            if points is not None and points.ndim == axes + 2 and _points(points) > 1:
                return tuple(points.shape[1:-1])
        return tuple(self.structured_shape)

    def _check_types(self, inputs) -> None:
        for name, value in inputs.items():
            if value is not None and not isinstance(value, torch.Tensor):
                advice = f": pass torch.as_tensor({name})" if hasattr(value, "__array__") else ""
                raise ValueError(
                    f"CANO expects {name} as a tensor, got {type(value).__module__}."
                    f"{type(value).__qualname__}{advice}"
                )
        if inputs["fx"] is None:
            raise ValueError(
                f"CANO expects fx of {self.functional_dim} channels, got None; it may be left out "
                "where functional_dim=0 and there is an embedding"
            )

    def _check(self, fx, embedding, time) -> None:
        inputs = {"fx": (fx, self.functional_dim)}
        if not self.unified_pos:
            if embedding is None:
                raise ValueError(
                    f"CANO expects an embedding of {self.embedding_dim} channels, got None"
                )
            inputs["embedding"] = (embedding, self.embedding_dim)
        axes = () if self.structured_shape is None else (len(self.structured_shape) + 2,)
        dtype = self.decoder[0].weight.dtype
        for name, (tensor, channels) in inputs.items():
            if tensor.ndim not in (3, *axes) or tensor.shape[-1] != channels:
                layouts = f"(B, N, {channels})" + (f" or (B, *grid, {channels})" if axes else "")
                raise ValueError(
                    f"CANO expects {name} of shape {layouts}, got {tuple(tensor.shape)}"
                )
        if embedding is not None and embedding.shape[0] != fx.shape[0]:
            raise ValueError(
                "CANO expects fx and embedding of one batch size, "
                f"got {tuple(fx.shape)} and {tuple(embedding.shape)}"
            )
        points = _points(fx if embedding is None else embedding)
        if _points(fx) not in (1, points):
            raise ValueError(
                "CANO expects fx on the points of the embedding, or (B, 1, C), "
                f"got {tuple(fx.shape)} and {tuple(embedding.shape)}"
            )
        both = embedding is not None and fx.ndim == embedding.ndim > 3 and _points(fx) > 1
        if both and fx.shape[:-1] != embedding.shape[:-1]:
            raise ValueError(
                "CANO expects fx and embedding on one grid, "
                f"got {tuple(fx.shape)} and {tuple(embedding.shape)}"
            )
        grid = self._grid(fx, embedding)
        if grid is not None and math.prod(grid) != points:
            raise ValueError(
                f"CANO expects the {math.prod(grid)} points of the grid {grid}, got {points}; on "
                "another grid pass fx or embedding in the grid's layout (B, *grid, C)"
            )
        if (time is not None) != (self.time_embedding is not None):
            raise ValueError(
                "CANO expects a time if and only if time_input=True, "
                f"got time {None if time is None else tuple(time.shape)}"
            )
        if time is not None and tuple(time.shape) != (fx.shape[0],):
            raise ValueError(
                f"CANO expects time of shape (B,) = ({fx.shape[0]},), got {tuple(time.shape)}"
            )
        typed = {name: tensor for name, (tensor, _) in inputs.items()}
        typed |= {} if time is None else {"time": time}
        for name, tensor in typed.items():
            # Autocast casts what is less than float64.
            casts = is_autocast_enabled(tensor.device) and tensor.dtype != torch.float64
            if tensor.dtype != dtype and not casts:
                raise ValueError(
                    f"CANO expects {name} of dtype {dtype}, got {tensor.dtype}: pass "
                    f"{name}.to({dtype}), or convert the model"
                )


def grid_points(
    shape: Sequence[int], like: Float[torch.Tensor, "..."]
) -> Float[torch.Tensor, "N axes"]:
    r"""Points of a regular grid on the unit interval, square or cube.

    Parameters
    ----------
    shape : Sequence[int]
        The grid, of 1, 2 or 3 axes.
    like : torch.Tensor
        Gives dtype and device.

    Returns
    -------
    torch.Tensor
        Shape :math:`(N, \text{axes})`, in row-major order.
    """
    return _product(_lines(shape, like))


def _lines(shape: Sequence[int], like: torch.Tensor) -> list[torch.Tensor]:
    return [torch.linspace(0, 1, n, dtype=like.dtype, device=like.device) for n in shape]


def _product(lines: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.cartesian_prod(*lines).reshape(-1, len(lines))


def unified_position(
    points: Float[torch.Tensor, "*points axes"], ref: int
) -> Float[torch.Tensor, "*points distances"]:
    r"""Distances of points to a coarse grid on the unit cube, as in Transolver.

    Parameters
    ----------
    points : torch.Tensor
        Shape :math:`(*, \text{axes})`.
    ref : int
        Points of the coarse grid per axis.

    Returns
    -------
    torch.Tensor
        Shape :math:`(*, \text{ref}^{\text{axes}})`.
    """
    reference = grid_points([ref] * points.shape[-1], points)
    return torch.linalg.vector_norm(points.unsqueeze(-2) - reference, dim=-1)


def _points(tensor: torch.Tensor) -> int:
    return math.prod(tensor.shape[1:-1])
