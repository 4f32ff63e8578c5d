r"""Graphs of torch_geometric and of DGL as padded clouds of points, and back.

Single graphs and batches of them are understood alike: ``torch_geometric.data.Data`` and
``Batch``, and ``dgl.DGLGraph``. Neither library is imported here: who has a graph has its library.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from physicsnemo.core import Module

from physicsnemo_cano.models.cano import CANO, MetaData, make_arguments_plain


def graph_of_nodes(graph: Any) -> Int[torch.Tensor, " N"]:
    r"""Look up to which graph of a batch each node belongs.

    Parameters
    ----------
    graph : torch_geometric.data.Data, torch_geometric.data.Batch or dgl.DGLGraph
        With one kind of nodes; a single graph is a batch of one.

    Returns
    -------
    torch.Tensor
        Shape :math:`(N,)`, of integers from 0, in any order.

    Raises
    ------
    TypeError
        If it is something else, or a graph with several kinds of nodes.
    """
    if _is(graph, "dgl", "DGLGraph") and len(graph.ntypes) == 1:
        counts = graph.batch_num_nodes()
    elif _is(graph, "torch_geometric", "Data"):
        if graph.get("batch") is not None:
            return graph.batch
        ptr = graph.get("ptr")
        counts = torch.tensor([graph.num_nodes]) if ptr is None else ptr.diff()
    else:
        raise TypeError(
            "Expected a torch_geometric.data.Data or Batch, or a dgl.DGLGraph, with one kind of "
            "nodes (to have them: pip install torch_geometric, or physicsnemo-cano[dgl]); got "
            f"{type(graph).__module__}.{type(graph).__qualname__}"
        )
    return torch.arange(len(counts), device=counts.device).repeat_interleave(counts)


def of_similar_size(counts: Sequence[int]) -> list[list[int]]:
    r"""Group graphs so that padding each group to its largest less than doubles the nodes.

    Parameters
    ----------
    counts : sequence of int
        Nodes of each graph.

    Returns
    -------
    list of list of int
        The graphs that have nodes, each in one group, the largest first.
    """
    groups: list[list[int]] = []
    for graph in sorted(range(len(counts)), key=lambda graph: -counts[graph]):
        if not counts[graph]:
            continue
        if groups and 2 * counts[graph] > counts[groups[-1][0]]:
            groups[-1].append(graph)
        else:
            groups.append([graph])
    return groups


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
        Nodes of each graph; they sum to :math:`N`.

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
    n_layers, n_hidden, dropout, n_head, act, mlp_ratio, slice_num, normalize_queries, chunk_size
        As of :class:`~physicsnemo_cano.CANO`.

    Forward
    -------
    node_features : torch.Tensor
        Shape :math:`(N, D_{in})`, the nodes of all graphs of the batch, in the graph's order.
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
    TypeError
        If it is no graph of these libraries.
    ValueError
        If there are more or fewer features than the graph has nodes, or none.
    """

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
        make_arguments_plain(self)
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
        if not len(graphs) or len(graphs) != len(node_features):
            raise ValueError(
                f"Expected features of the graph's nodes, of which there are {len(graphs)}, got "
                f"{tuple(node_features.shape)}"
            )
        position = node_data(graph, self.position).to(node_features)
        counts = torch.bincount(graphs)
        own_nodes = graphs.argsort(stable=True).split(counts.tolist())
        nodes, outputs = [], []
        for group in of_similar_size(counts.tolist()):
            nodes.append(torch.cat([own_nodes[graph] for graph in group]))
            fx, mask = pad(node_features[nodes[-1]], counts[group])
            embedding, _ = pad(position[nodes[-1]], counts[group])
            outputs.append(self.cano(fx, embedding, mask=mask)[mask])
        return torch.cat(outputs)[torch.cat(nodes).argsort()]
