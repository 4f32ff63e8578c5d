# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

import math

import pytest
import torch

from physicsnemo_cano.losses import gradient_error

PI = math.pi


def grid(*shape):
    axes = [torch.linspace(0, 1, n, dtype=torch.float64) for n in shape]
    return torch.stack(torch.meshgrid(*axes, indexing="ij"), -1).flatten(0, -2)


def fields(points):
    """u = sin(πx) sin(2πy), its error e = 0.1 sin(3πx) cos(πy) + x²y, and their gradients."""
    x, y = points.T
    u = torch.sin(PI * x) * torch.sin(2 * PI * y)
    u_x = PI * torch.cos(PI * x) * torch.sin(2 * PI * y)
    u_y = 2 * PI * torch.sin(PI * x) * torch.cos(2 * PI * y)
    e = 0.1 * torch.sin(3 * PI * x) * torch.cos(PI * y) + x**2 * y
    e_x = 0.3 * PI * torch.cos(3 * PI * x) * torch.cos(PI * y) + 2 * x * y
    e_y = -0.1 * PI * torch.sin(3 * PI * x) * torch.sin(PI * y) + x**2
    return u, e, (u_x, u_y), (e_x, e_y)


def inner(field, shape):
    return field.reshape(shape)[1:-1, 1:-1]


def deviation(shape):
    """Between the loss and the error of the analytic gradients."""
    u, e, u_gradient, e_gradient = fields(grid(*shape))
    expected = sum(
        inner(de, shape).norm() / inner(du, shape).norm()
        for de, du in zip(e_gradient, u_gradient, strict=True)
    )
    found = gradient_error((u + e).reshape(1, -1, 1), u.reshape(1, -1, 1), shape)
    return (found - expected).abs().item() / expected.item()


def test_second_order_to_the_analytic_gradient():
    coarse, fine = deviation((33, 65)), deviation((65, 129))
    assert fine < 2e-3
    assert 1.9 < math.log2(coarse / fine) < 2.1


def test_closed_forms():
    """Central differences are exact for quadratic fields, in any number of axes."""
    for shape in ((5,), (6, 4), (3, 5, 4)):
        points = grid(*shape)
        target = torch.stack([points.sum(1) + 1, points.square().sum(1)], -1).unsqueeze(0)
        n = len(shape)
        torch.testing.assert_close(
            gradient_error(target + 3, target, shape), torch.zeros(1).double()
        )
        for factor, error in ((0.0, 1.0), (1.25, 0.25)):
            found = gradient_error(factor * target, target, shape)
            torch.testing.assert_close(found, torch.full((1,), n * error).double())


def test_samples_are_apart_and_borders_do_not_count():
    target = torch.randn(3, 20, 2)
    prediction = target + torch.randn(3, 20, 2)
    found = gradient_error(prediction, target, (4, 5))
    for k in range(3):
        one = gradient_error(prediction[k : k + 1], target[k : k + 1], (4, 5))
        torch.testing.assert_close(found[k : k + 1], one)
    corner = prediction.clone().requires_grad_(True)
    gradient_error(corner, target, (4, 5)).sum().backward()
    grad = corner.grad.reshape(3, 4, 5, 2)
    assert grad[:, [0, 0, -1, -1], [0, -1, 0, -1]].eq(0).all()  # corners meet no interior point
    assert grad[:, 1:-1, 1:-1].ne(0).any(dim=(1, 2)).all()


def test_shapes_are_checked():
    u = torch.ones(2, 12, 1)
    for shape in (None, (2, 6)):
        with pytest.raises(ValueError, match="at least 3 points an axis, got"):
            gradient_error(u, u, shape)
    with pytest.raises((ValueError, RuntimeError), match=r"unflatten"):
        gradient_error(u, u, (3, 5))
    with pytest.raises(ValueError, match="share one shape"):
        gradient_error(u.expand(-1, -1, 2), u, (3, 4))
