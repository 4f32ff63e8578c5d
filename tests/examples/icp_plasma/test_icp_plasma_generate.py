# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

import numpy as np

from examples.icp_plasma.solver import draw_conditions, inflow, node_types, reactor, simulate
from physicsnemo_cano.datapipes import ICPPlasma
from physicsnemo_cano.datapipes.generation import sample_rng


def test_the_reader_finds_the_solvers_fields(tiny_set):
    mesh, test = reactor(0.15), ICPPlasma(tiny_set("icp_plasma"), "test")
    conditions = draw_conditions(sample_rng(3, 4))  # of the last
    found = simulate(mesh, inflow(mesh), conditions, frames=12)
    frames = np.stack([found[name] for name in ("ne", "Te", "v", "T")], -1).swapaxes(0, 1)
    sample, _ = test[0]
    np.testing.assert_array_equal(test.cells(0), mesh.t.T)
    np.testing.assert_allclose(sample["embedding"], mesh.p.T, rtol=1e-6)
    given = frames[:, :5].reshape(mesh.nvertices, 20)
    np.testing.assert_allclose(sample["fx"][:, :20], given, rtol=1e-6, atol=1e-12)
    np.testing.assert_array_equal(sample["fx"][:, 20:25], np.eye(5)[node_types(mesh)])
    drawn = [getattr(conditions, name.name) for name in test.statics[5:]]
    np.testing.assert_allclose(sample["fx"][:, 25:], np.tile(drawn, (mesh.nvertices, 1)), rtol=1e-6)
    expected = frames[:, 5:].reshape(mesh.nvertices, 28)
    np.testing.assert_allclose(sample["target"], expected, rtol=1e-6, atol=1e-12)
