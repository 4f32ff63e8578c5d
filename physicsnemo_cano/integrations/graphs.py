# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

r"""Graphs of torch_geometric and of DGL as padded clouds of points, and back.

Single graphs and batches of them are understood alike: ``torch_geometric.data.Data`` and
``Batch``, and ``dgl.DGLGraph``. Neither library is imported here: who has a graph has its library.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Bool, Float
from physicsnemo.core import Module

from physicsnemo_cano.models.cano import CANO, MetaData


def nodes_per_graph(graph: Any) -> torch.Tensor:
    r"""Count the nodes of every graph of a batch.

    Parameters
    ----------
    graph : torch_geometric.data.Data, torch_geometric.data.Batch or dgl.DGLGraph
        With one kind of nodes; a single graph is a batch of one.

    Returns
    -------
    torch.Tensor
        Shape :math:`(B,)`, of integers.

    Raises
    ------
    TypeError
        If it is something else, or a graph with several kinds of nodes.
    """
    if _is(graph, "dgl", "DGLGraph") and len(graph.ntypes) == 1:
        return graph.batch_num_nodes()
    if _is(graph, "torch_geometric", "Data"):
        if graph.get("ptr") is not None:
            return graph.ptr.diff()
        if graph.get("batch") is not None:
            return torch.bincount(graph.batch)
        return torch.tensor([graph.num_nodes])
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


def node_data(graph: Any, name: str) -> torch.Tensor:
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


def pad(
    values: Float[torch.Tensor, "N C"], counts: torch.Tensor
) -> tuple[Float[torch.Tensor, "B N_max C"], Bool[torch.Tensor, "B N_max"]]:
    r"""Spread the nodes of a batch of graphs over padded clouds.

    Parameters
    ----------
    values : torch.Tensor
        Shape :math:`(N, C)`, the nodes of all graphs one after the other.
    counts : torch.Tensor
        Nodes of each graph, as :func:`nodes_per_graph` gives them; they sum to :math:`N`.

    Returns
    -------
    padded : torch.Tensor
        Shape :math:`(B, N_{max}, C)`, zero beyond a graph's nodes.
    mask : torch.Tensor
        Shape :math:`(B, N_{max})`, true on nodes; ``padded[mask]`` is ``values`` again.

    Raises
    ------
    ValueError
        If there are more or fewer nodes than the graphs have.
    """
    if len(values) != int(counts.sum()):
        raise ValueError(f"Expected values of {int(counts.sum())} nodes, got {len(values)}")
    counts = counts.to(values.device)
    mask = torch.arange(int(counts.max()), device=values.device) < counts.unsqueeze(1)
    padded = values.new_zeros(*mask.shape, *values.shape[1:])
    padded[mask] = values
    return padded, mask


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
    **cano
        Further arguments of :class:`~physicsnemo_cano.CANO`, for clouds.

    Forward
    -------
    node_features : torch.Tensor
        Shape :math:`(N, D_{in})`, the nodes of all graphs of the batch one after the other.
    edge_features : torch.Tensor
        Not used; may be ``None``.
    graph : torch_geometric.data.Data, torch_geometric.data.Batch or dgl.DGLGraph
        Single, or a batch, in which no graph sees another.

    Outputs
    -------
    torch.Tensor
        Shape :math:`(N, D_{out})`.

    Raises
    ------
    KeyError
        If the graph does not hold the coordinates.
    TypeError
        If it is no graph of these libraries.
    """

    def __init__(
        self,
        input_dim_nodes: int,
        input_dim_edges: int,
        output_dim: int,
        position: str = "pos",
        position_dim: int = 3,
        **cano,
    ) -> None:
        super().__init__(meta=MetaData(onnx=False, onnx_runtime=False))
        self.position = position
        self.cano = CANO(input_dim_nodes, output_dim, position_dim, **cano)

    def forward(
        self,
        node_features: Float[torch.Tensor, "N C_in"],
        edge_features: Float[torch.Tensor, "E C_edge"] | None,
        graph: Any,
    ) -> Float[torch.Tensor, "N C_out"]:
        r"""Apply the model; see the class for the shapes."""
        counts = nodes_per_graph(graph)
        fx, mask = pad(node_features, counts)
        embedding, _ = pad(node_data(graph, self.position).to(fx), counts)
        return self.cano(fx, embedding, mask=mask)[mask]
