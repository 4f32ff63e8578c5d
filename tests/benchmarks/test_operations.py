# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
import pytest
import torch

from benchmarks.operations import count_operations


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_counts_calls_without_views(device):
    a, b = torch.ones(3, 4, device=device), torch.ones(4, 5, device=device)

    def compute():
        product = a @ b  # 1
        columns = product.T.reshape(5, 3)[1:].unsqueeze(0)
        return columns.exp().sum() + 1  # 3

    assert count_operations(compute) == 4


def test_counts_the_backward_pass_and_copies_no_gradient():
    layer = torch.nn.Linear(4, 5, device="meta")
    x = torch.ones(2, 3, 4, device="meta", requires_grad=True)
    total = layer(x).sum()
    # of the sum: ones and expand, a view; of the layer: with respect to x, weight and bias
    assert count_operations(total.backward) == 4
