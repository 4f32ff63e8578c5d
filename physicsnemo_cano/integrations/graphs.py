# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

r"""Graphs of torch_geometric and of DGL as padded clouds of points, and back.

Single graphs and batches of them are understood alike: ``torch_geometric.data.Data`` and
``Batch``, and ``dgl.DGLGraph``. Neither library is imported here: who has a graph has its library.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from physicsnemo.core import Module

from physicsnemo_cano.models.cano import CANO, MetaData, with_plain_arguments


def graph_of_nodes(graph: Any) -> Int[torch.Tensor, " N"]:
    r"""Say to which graph of a batch each node belongs.

    Parameters
    ----------
    graph : torch_geometric.data.Data, torch_geometric.data.Batch or dgl.DGLGraph
        With one kind of nodes; a single graph is a batch of one.

    Returns
    -------
    torch.Tensor
        Shape :math:`(N,)`, of integers, in the order of the nodes.

    Raises
    ------
    TypeError
        If it is something else, or a graph with several kinds of nodes.
    """
    if _is(graph, "dgl", "DGLGraph") and len(graph.ntypes) == 1:
        return torch.repeat_interleave(graph.batch_num_nodes())
    if _is(graph, "torch_geometric", "Data"):
        if graph.get("batch") is not None:
            return graph.batch
        if graph.get("ptr") is not None:
            return torch.repeat_interleave(graph.ptr.diff())
        return torch.zeros(graph.num_nodes, dtype=torch.long)
    raise TypeError(
        "Expected a torch_geometric.data.Data or Batch, or a dgl.DGLGraph, with one kind of "
        "nodes (to have them: pip install torch_geometric, or physicsnemo-cano[dgl]); got "
        f"{type(graph).__module__}.{type(graph).__qualname__}"
    )


def _is(graph: Any, library: str, name: str) -> bool:
    return any(
        base.__name__ == name and base.__module__.split(".")[0] == library
        for base in type(graph).__mro__
    )


def node_data(graph: Any, name: str) -> Float[torch.Tensor, "N C"]:
    r"""Look up what a graph holds at its nodes.

    Parameters
    ----------
    graph : torch_geometric.data.Data, torch_geometric.data.Batch or dgl.DGLGraph
        The graph.
    name : str
        Such as ``pos``.

    Returns
    -------
    torch.Tensor
        Shape :math:`(N, C)`.

    Raises
    ------
    KeyError
        If the graph has no such data; the message lists what it has.
    """
    data = graph.ndata if _is(graph, "dgl", "DGLGraph") else graph
    if name not in data:
        there = sorted(data.keys())
        raise KeyError(f"The graph holds no {name!r} at its nodes, only {there}")
    return data[name]


def clouds_of_similar_size(
    graphs: Int[torch.Tensor, " N"],
) -> Iterator[tuple[Int[torch.Tensor, " n"], Bool[torch.Tensor, "B n_max"]]]:
    r"""Gather graphs of similar size into padded clouds: at most a third of the rows is padding.

    Parameters
    ----------
    graphs : torch.Tensor
        Shape :math:`(N,)`, the graph of each node in any order, as of :func:`graph_of_nodes`.

    Yields
    ------
    nodes : torch.Tensor
        Shape :math:`(n,)`, the nodes of some graphs, one graph after the other; every node
        comes once.
    mask : torch.Tensor
        Shape :math:`(B, n_{max})`, true where a cloud of these graphs has a node:
        ``mask.sum()`` is :math:`n`, and ``mask.numel()`` at most :math:`3n / 2`.
    """
    nodes = graphs.argsort(stable=True)
    counts = graphs.bincount()
    ends = counts.cumsum(0).tolist()
    sizes = counts.tolist()
    by_size = sorted((g for g, size in enumerate(sizes) if size), key=lambda g: -sizes[g])
    while by_size:
        largest, total, n = sizes[by_size[0]], 0, 0
        while n < len(by_size) and 2 * largest * (n + 1) <= 3 * (total + sizes[by_size[n]]):
            total += sizes[by_size[n]]
            n += 1
        similar, by_size = by_size[:n], by_size[n:]
        mask = torch.arange(largest, device=nodes.device) < counts[similar].unsqueeze(1)
        yield torch.cat([nodes[ends[g] - sizes[g] : ends[g]] for g in similar]), mask


def pad(
    values: Float[torch.Tensor, "n C"], mask: Bool[torch.Tensor, "B n_max"]
) -> Float[torch.Tensor, "B n_max C"]:
    r"""Spread values of nodes over padded clouds.

    Parameters
    ----------
    values : torch.Tensor
        Shape :math:`(n, C)`, for the nodes of one graph after the other.
    mask : torch.Tensor
        Shape :math:`(B, n_{max})`, true where a cloud has a node.

    Returns
    -------
    torch.Tensor
        Shape :math:`(B, n_{max}, C)`, zero beyond a graph's nodes; at ``mask`` it is ``values``.
    """
    padded = values.new_zeros(*mask.shape, *values.shape[1:])
    padded[mask] = values
    return padded


class GraphCANO(Module):
    r"""CANO in the place of PhysicsNeMo's MeshGraphNet.

    The nodes are a cloud of points; edges and their features, which tell MeshGraphNet where nodes
    are, are not used, and the graph has to hold the nodes' coordinates.

    Parameters
    ----------
    input_dim_nodes : int
        Number of node features.
    input_dim_edges : int
        Number of edge features; only there so that MeshGraphNet's arguments fit.
    output_dim : int
        Number of outputs.
    position : str, optional, default="pos"
        Name under which the graph holds the coordinates; ``mesh_pos`` in some of PhysicsNeMo's
        data sets.
    position_dim : int, optional, default=3
        Number of coordinates.
    n_layers, n_hidden, dropout, n_head, act, mlp_ratio, slice_num, normalize_queries, chunk_size
        As of :class:`~physicsnemo_cano.CANO`, those of its arguments that concern clouds.

    Forward
    -------
    node_features : torch.Tensor
        Shape :math:`(N, D_{in})`, in the order of the graph's nodes.
    edge_features : torch.Tensor
        Not used; may be ``None``.
    graph : torch_geometric.data.Data, torch_geometric.data.Batch or dgl.DGLGraph
        Single, or a batch, in which no graph sees another.

    Outputs
    -------
    torch.Tensor
        Shape :math:`(N, D_{out})`, in the same order.

    Raises
    ------
    KeyError
        If the graph does not hold the coordinates.
    ValueError
        If there are features of more or fewer nodes than the graph has.
    TypeError
        If it is no graph of these libraries.
    """

    __new__ = with_plain_arguments(Module.__new__)

    @with_plain_arguments
    def __init__(
        self,
        input_dim_nodes: int,
        input_dim_edges: int,
        output_dim: int,
        position: str = "pos",
        position_dim: int = 3,
        n_layers: int = 8,
        n_hidden: int = 128,
        dropout: float = 0.0,
        n_head: int = 8,
        act: str = "gelu",
        mlp_ratio: int = 2,
        slice_num: int = 32,
        normalize_queries: bool = True,
        chunk_size: int | None = None,
    ) -> None:
        super().__init__(meta=MetaData(onnx=False, onnx_runtime=False))
        self.position = position
        self.cano = CANO(
            input_dim_nodes,
            output_dim,
            position_dim,
            n_layers=n_layers,
            n_hidden=n_hidden,
            dropout=dropout,
            n_head=n_head,
            act=act,
            mlp_ratio=mlp_ratio,
            slice_num=slice_num,
            normalize_queries=normalize_queries,
            chunk_size=chunk_size,
        )

    def forward(
        self,
        node_features: Float[torch.Tensor, "N C_in"],
        edge_features: Float[torch.Tensor, "E C_edge"] | None,
        graph: Any,
    ) -> Float[torch.Tensor, "N C_out"]:
        r"""Apply the model; see the class for the shapes."""
        graphs = graph_of_nodes(graph).to(node_features.device)
        positions = node_data(graph, self.position).to(node_features)
        for name, values in (("node_features", node_features), (self.position, positions)):
            if len(values) != len(graphs):
                raise ValueError(f"Expected {name} of {len(graphs)} nodes, got {len(values)}")
        order, outputs = [], []
        for nodes, mask in clouds_of_similar_size(graphs):
            fx, embedding = pad(node_features[nodes], mask), pad(positions[nodes], mask)
            order.append(nodes)
            outputs.append(self.cano(fx, embedding, mask=mask)[mask])
        return torch.cat(outputs)[torch.cat(order).argsort()]
