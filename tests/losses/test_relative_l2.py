# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

import math

import pytest
import torch

from physicsnemo_cano.losses import relative_l2


def test_closed_forms():
    target = torch.tensor([[[3.0], [4.0]], [[1.0], [0.0]]])
    assert relative_l2(target, target).tolist() == [0.0, 0.0]
    assert relative_l2(torch.zeros_like(target), target).tolist() == [1.0, 1.0]
    torch.testing.assert_close(relative_l2(1.1 * target, target), torch.tensor([0.1, 0.1]))
    shifted = target + torch.tensor([0.0, 1.0]).reshape(2, 1, 1)
    torch.testing.assert_close(relative_l2(shifted, target), torch.tensor([0.0, math.sqrt(2)]))


def test_norm_runs_over_points_and_channels_together():
    target = torch.tensor([[[3.0, 0.0], [0.0, 4.0]]])
    prediction = torch.tensor([[[3.0, 1.0], [2.0, 4.0]]])
    torch.testing.assert_close(relative_l2(prediction, target), torch.tensor([math.sqrt(5) / 5]))


def test_masked_points_do_not_count_nor_spoil_gradients():
    target = torch.randn(2, 5, 3)
    prediction = torch.randn(2, 5, 3)
    mask = torch.tensor([[True, True, True, False, False], [True] * 5])
    padded_target, padded = target.clone(), prediction.clone()
    padded_target[0, 3:] = torch.nan
    padded[0, 3:] = torch.inf
    padded.requires_grad_(True)
    found = relative_l2(padded, padded_target, mask)
    expected = torch.cat(
        [relative_l2(prediction[:1, :3], target[:1, :3]), relative_l2(prediction[1:], target[1:])]
    )
    torch.testing.assert_close(found, expected)
    found.sum().backward()
    assert padded.grad[0, 3:].eq(0).all()
    assert padded.grad[0, :3].ne(0).all()


def test_zero_target_is_infinite():
    zero = torch.zeros(1, 2, 1)
    assert relative_l2(zero + 1, zero).item() == math.inf
    assert math.isnan(relative_l2(zero, zero).item())


def test_shapes_are_checked():
    with pytest.raises(ValueError, match=r"share one shape .*\(2, 5, 1\) and \(2, 5\)"):
        relative_l2(torch.zeros(2, 5, 1), torch.ones(2, 5))
    with pytest.raises(ValueError, match=r"mask must have shape \(2, 5\), got \(2, 4\)"):
        relative_l2(torch.zeros(2, 5, 1), torch.ones(2, 5, 1), torch.ones(2, 4, dtype=torch.bool))
