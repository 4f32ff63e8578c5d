# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Errors of channels and vectors, by hand."""

import math

import pytest
import torch

from physicsnemo_cano.losses import field_errors, fields_of


@pytest.mark.parametrize(
    ("names", "vectors"),
    [
        (["p", "tau_x", "tau_y", "tau_z"], {"tau": slice(1, 4)}),
        (["position x", "position y", "v x", "v y"], {"position": slice(0, 2), "v": slice(2, 4)}),
        (["u_x", "u_y", "w_z"], {"u": slice(0, 2)}),
        (["u_x", "p", "u_y"], {}),
        (["x", "y"], {}),
        (["u", "u_x", "u_y"], {}),  # the name is taken
        (["T_e", "max", "n_x"], {}),
        ([""], {}),
    ],
)
def test_vectors_are_told_by_their_components(names, vectors):
    alone = {name: slice(i, i + 1) for i, name in enumerate(names)}
    assert fields_of(names) == vectors | alone


def test_a_vector_before_its_components():
    assert list(fields_of(["p", "u_x", "u_y"])) == ["p", "u", "u_x", "u_y"]


def test_errors_by_hand():
    target = torch.tensor([[3.0, 0.0, 4.0], [0.0, 2.0, 0.0]])  # p, u_x, u_y at two points
    given = torch.tensor([[3.5, 0.0, -4.0], [1.0, 2.0, 6.0]])
    fields = fields_of(["p", "u_x", "u_y"])
    found = field_errors(given, target, fields, torch.tensor([1.0, 3.0]))
    assert found["p"] == pytest.approx(
        {
            "relative_l2": math.sqrt(0.25 + 1) / 3,
            "relative_l2_weighted": math.sqrt(0.25 + 3) / 3,
            "mae": 0.75,
            "max_error": 1.0,
        }
    )
    # A vector turned round is as long as before, and wrong by twice its length.
    assert found["u"] == pytest.approx(
        {
            "relative_l2": 10 / math.sqrt(20),
            "relative_l2_weighted": math.sqrt((64 + 3 * 36) / (16 + 3 * 4)),
            "mae": 7.0,
            "max_error": 8.0,
        }
    )
    assert found["u_x"]["relative_l2"] == found["u_x"]["max_error"] == 0
    assert found["u_y"]["relative_l2"] == pytest.approx(10 / 4)
    assert "relative_l2_weighted" not in field_errors(given, target, fields)["u"]


def test_small_units_zero_fields_and_frames():
    target = torch.tensor([[1e-30, 0.0], [2e-30, 0.0]])
    found = field_errors(2 * target, target, fields_of(["p", "q"]), torch.ones(2))
    assert found["p"]["relative_l2"] == pytest.approx(1)
    assert math.isnan(found["q"]["relative_l2"])
    assert math.isnan(found["q"]["relative_l2_weighted"])
    assert found["q"]["mae"] == 0
    # Two frames of a vector: all of them together.
    series = torch.tensor([[[3.0, 4.0], [0.0, 0.0]]])
    (errors,) = field_errors(series + 1, series, {"u": slice(0, 2)}).values()
    assert errors["relative_l2"] == pytest.approx(2 / 5)
    assert errors["mae"] == pytest.approx(math.sqrt(2))
