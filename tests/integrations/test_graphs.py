# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Graphs of both libraries as clouds of points; CANO in MeshGraphNet's place."""

import inspect
import os

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from physicsnemo.core import Module
from torch_geometric.data import Batch, Data, HeteroData

from physicsnemo_cano import CANO
from physicsnemo_cano.integrations.graphs import (
    GraphCANO,
    clouds_of_similar_size,
    graph_of_nodes,
    node_data,
    pad,
)

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


def test_graph_of_every_node(library):
    assert graph_of_nodes(library(SIZES)).tolist() == [0] * 5 + [1] + [2] * 9
    assert graph_of_nodes(library(SIZES[:1])).tolist() == [0] * 5


def test_a_batch_vector_or_ends_are_enough():
    graph = pyg(SIZES)
    for bare in (Data(pos=graph.pos, batch=graph.batch), Data(pos=graph.pos, ptr=graph.ptr)):
        assert graph_of_nodes(bare).tolist() == [0] * 5 + [1] + [2] * 9


@given(st.lists(st.integers(0, 300), min_size=1, max_size=40).filter(any), st.integers(0, 9))
def test_clouds_hold_every_node_once_and_little_padding(sizes, seed):
    graphs = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    graphs = graphs[torch.randperm(len(graphs), generator=torch.Generator().manual_seed(seed))]
    seen = []
    for nodes, mask in clouds_of_similar_size(graphs):
        assert mask.numel() <= 1.5 * len(nodes)
        rows = graphs[nodes].split(mask.sum(1).tolist())
        assert all((row == row[0]).all() and len(row) == sizes[row[0]] for row in rows)
        seen.append(nodes)
    assert torch.cat(seen).sort().values.tolist() == list(range(len(graphs)))


def test_padding_is_undone_with_gradients():
    values = torch.rand(14, 2, dtype=torch.float64, requires_grad=True)
    mask = torch.arange(9) < torch.tensor([[5], [9]])
    padded = pad(values, mask)
    assert padded.shape == (2, 9, 2)
    assert not padded[~mask].any()
    assert torch.equal(padded[1], values[5:])
    assert torch.equal(padded[mask], values)
    torch.autograd.gradcheck(lambda v: pad(v, mask), values)


def test_nodes_in_any_order_of_graphs_of_any_size(model):
    """A graph of 2000 nodes among small ones, their nodes shuffled; graph 1 has no nodes."""
    sizes = [2000, 0, *[10] * 20, 7, 300]
    graphs = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    graphs = graphs[torch.randperm(len(graphs))]
    features, x = torch.rand(len(graphs), 2).double(), torch.rand(len(graphs), 3).double()
    together = model(features, None, Data(pos=x, batch=graphs))
    assert sum(mask.numel() for _, mask in clouds_of_similar_size(graphs)) <= 1.5 * len(graphs)
    for graph in graphs.unique():
        own = graphs == graph
        expected = model.cano(features[own][None], x[own][None])[0]
        torch.testing.assert_close(together[own], expected, rtol=1e-12, atol=1e-12)


def test_features_of_other_numbers_of_nodes_are_refused(library, model):
    with pytest.raises(ValueError, match="Expected node_features of 15 nodes, got 14"):
        model(torch.rand(14, 2).double(), None, library(SIZES))
    graph = Data(pos=torch.rand(14, 3), batch=torch.zeros(15, dtype=torch.long))
    with pytest.raises(ValueError, match="Expected pos of 15 nodes, got 14"):
        model(torch.rand(15, 2).double(), None, graph)


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


def test_arguments_are_canos(tmp_path):
    ours, canos = (inspect.signature(c.__init__).parameters for c in (GraphCANO, CANO))
    own = {"input_dim_nodes", "input_dim_edges", "output_dim", "position", "position_dim"}
    assert {k: v.default for k, v in ours.items() if k not in own} == {
        name: canos[name].default for name in ours if name not in own
    }
    grids = {"unified_pos", "ref", "structured_shape", "padding_mode"}
    elsewhere = {"functional_dim", "out_dim", "embedding_dim", "use_te", "time_input"}
    assert canos.keys() - ours.keys() == grids | elsewhere
    numbers = np.array([2, 3, 4])
    net = GraphCANO(*numbers, n_layers=np.int64(1), n_hidden=np.int64(16), n_head=numbers[0])
    net.save(str(tmp_path / "graph.mdlus"))
    assert len(Module.from_checkpoint(str(tmp_path / "graph.mdlus")).cano.blocks) == 1


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
        graph_of_nodes(hetero)
    library = pytest.importorskip("dgl")
    kinds = {("a", "to", "b"): (torch.tensor([0]), torch.tensor([1]))}
    with pytest.raises(TypeError, match="one kind of nodes"):
        graph_of_nodes(library.heterograph(kinds))
