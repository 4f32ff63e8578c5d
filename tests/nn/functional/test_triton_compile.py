# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
r"""The Triton kernels compile for GPUs without spilled registers, which needs none of them.

A sample of what ``benchmarks/kernels.py`` compiles: every kernel, type and target.
"""

import pytest
import torch

pytest.importorskip("triton")

from benchmarks import kernels

SAMPLE = [  # target, dtype, D, K: all clusters at once, or in blocks
    (90, torch.bfloat16, 16, 64),
    (80, torch.float32, 16, 65),
    (100, torch.float16, 24, 32),
]


@pytest.mark.parametrize(("target", "dtype", "dim", "clusters"), SAMPLE)
def test_kernels_fit_registers_and_shared_memory(target, dtype, dim, clusters):
    names = set()
    for launch in kernels.launches(dim, clusters, dtype, weighted=True):
        used = kernels.resources(launch, target)
        names.add(launch.kernel.__name__)
        assert used.registers <= 255, (launch, used)
        assert used.spilled == 0, (launch, used)
        assert 0 < used.shared <= kernels.TARGETS[target], (launch, used)
    passes = {"aggregate", "attend", "dispatch", "assignment_backward", "attend_backward"}
    in_blocks = {"logsumexp", "assignment_backward_points", "attend_backward_points"}
    expected = {"merge"} | passes | (in_blocks if clusters == 65 else set())
    assert names == {f"{name}_kernel" for name in expected}


def test_the_report_reads_what_the_compiler_prints(tmp_path):
    r"""A kernel that must keep far more numbers than there are registers is reported to spill."""
    launch = next(
        launch
        for launch in kernels.launches(64, 64, torch.bfloat16, weighted=True)
        if launch.kernel.__name__ == "attend_backward_kernel"
    )
    clusters = launch.blocks._replace(points=128, warps=4)
    greedy = launch._replace(blocks=clusters, arguments=launch.arguments | {"POINTS": 128})
    assert kernels.resources(greedy, 90).spilled > 0
