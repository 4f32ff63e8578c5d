# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Graphs of both libraries as clouds of points; CANO in MeshGraphNet's place."""

import inspect
import os

import pytest
import torch
from physicsnemo.core import Module
from torch_geometric.data import Batch, Data, HeteroData

from physicsnemo_cano.integrations.graphs import GraphCANO, node_data, nodes_per_graph, pad

os.environ.setdefault("DGLBACKEND", "pytorch")  # else it says so, and writes to the home folder
SIZES = (5, 1, 9)


def pyg(sizes, name="pos"):
    graphs = []
    for n in sizes:
        edges = torch.stack([torch.arange(n), torch.arange(n).roll(1)])
        graphs.append(Data(edge_index=edges, num_nodes=n, **{name: torch.rand(n, 3)}))
    return graphs[0] if len(sizes) == 1 else Batch.from_data_list(graphs)


def dgl(sizes, name="pos"):
    library = pytest.importorskip("dgl", reason="there is no wheel for this Python")
    graphs = []
    for n in sizes:
        graph = library.graph((torch.arange(n), torch.arange(n).roll(1)), num_nodes=n)
        graph.ndata[name] = torch.rand(n, 3)
        graphs.append(graph)
    return graphs[0] if len(sizes) == 1 else library.batch(graphs)


@pytest.fixture(params=[pyg, dgl])
def library(request):
    return request.param


@pytest.fixture
def model():
    torch.manual_seed(0)
    arguments = {"n_layers": 2, "n_hidden": 16, "n_head": 2, "slice_num": 4}
    return GraphCANO(2, 3, 4, **arguments).double()


def edges(graph):
    return torch.rand(graph.num_edges if isinstance(graph.num_edges, int) else graph.num_edges(), 3)


def test_nodes_are_counted(library):
    assert nodes_per_graph(library(SIZES)).tolist() == list(SIZES)
    assert nodes_per_graph(library(SIZES[:1])).tolist() == [5]


def test_a_batch_vector_is_enough():
    graph = pyg(SIZES)
    bare = Data(pos=graph.pos, batch=graph.batch)
    assert nodes_per_graph(bare).tolist() == list(SIZES)


def test_padding_is_undone_with_gradients():
    values = torch.rand(15, 2, dtype=torch.float64, requires_grad=True)
    padded, mask = pad(values, torch.tensor(SIZES))
    assert padded.shape == (3, 9, 2)
    assert mask.sum(1).tolist() == list(SIZES)
    assert not padded[~mask].any()
    assert torch.equal(padded[2], values[6:])
    assert torch.equal(padded[mask], values)
    torch.autograd.gradcheck(lambda v: pad(v, torch.tensor(SIZES))[0], values)
    with pytest.raises(ValueError, match="Expected values of 15 nodes, got 14"):
        pad(values[:14], torch.tensor(SIZES))


def test_graphs_of_a_batch_do_not_see_each_other(library, model):
    graph, features = library(SIZES), torch.rand(15, 2, dtype=torch.float64)
    together = model(features, edges(graph), graph)
    assert together.shape == (15, 4)
    positions = node_data(graph, "pos").double().split(SIZES)
    for part, alone, x in zip(features.split(SIZES), together.split(SIZES), positions, strict=True):
        expected = model.cano(part[None], x[None])[0]
        torch.testing.assert_close(alone, expected, rtol=1e-12, atol=1e-12)


def test_both_libraries_give_the_same(model):
    one, other = pyg(SIZES), dgl(SIZES)
    other.ndata["pos"] = one.pos
    features = torch.rand(15, 2, dtype=torch.float64)
    assert torch.equal(model(features, None, one), model(features, None, other))


def test_it_trains_and_is_stored(library, model, tmp_path):
    graph, features = library(SIZES), torch.rand(15, 2)
    model = model.float()
    model(features, edges(graph), graph).square().mean().backward()
    assert all(p.grad.isfinite().all() and p.grad.any() for p in model.parameters())
    model.save(str(tmp_path / "graph.mdlus"))
    again = Module.from_checkpoint(str(tmp_path / "graph.mdlus"))
    assert torch.equal(again(features, None, graph), model(features, None, graph))


def test_meshgraphnets_arguments_and_call_fit():
    """Running PhysicsNeMo's own model needs torch_scatter, which has to be compiled."""
    from physicsnemo.models.meshgraphnet import MeshGraphNet

    for method, n in (("__init__", 4), ("forward", 4)):
        ours, theirs = (
            list(inspect.signature(getattr(model, method)).parameters)[:n]
            for model in (GraphCANO, MeshGraphNet)
        )
        assert ours == theirs


def test_other_positions_and_their_absence(library, model):
    graph = library(SIZES, name="mesh_pos")
    features = torch.rand(15, 2, dtype=torch.float64)
    with pytest.raises(KeyError, match=r"no 'pos' at its nodes, only \[.*mesh_pos"):
        model(features, None, graph)
    model.position = "mesh_pos"
    assert model(features, None, graph).shape == (15, 4)


def test_what_is_no_graph_is_refused(model):
    with pytest.raises(
        TypeError, match=r"torch_geometric.data.Data.*dgl.DGLGraph.*got builtins.dict"
    ):
        model(torch.rand(3, 2), None, {})
    hetero = HeteroData()
    hetero["a"].x, hetero["b"].x = torch.rand(2, 1), torch.rand(3, 1)
    with pytest.raises(TypeError, match="one kind of nodes"):
        nodes_per_graph(hetero)
    library = pytest.importorskip("dgl")
    kinds = {("a", "to", "b"): (torch.tensor([0]), torch.tensor([1]))}
    with pytest.raises(TypeError, match="one kind of nodes"):
        nodes_per_graph(library.heterograph(kinds))
