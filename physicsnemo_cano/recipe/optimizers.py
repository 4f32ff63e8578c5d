# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Optimisers and the learning-rate schedule."""

from __future__ import annotations

import torch
from physicsnemo.optim import CombinedOptimizer, Muon
from torch.optim.lr_scheduler import OneCycleLR

from physicsnemo_cano.recipe.config import Training


def matrices(model: torch.nn.Module) -> list[torch.nn.Parameter]:
    """Weights of the hidden linear layers: the parameters that Muon is made for.

    Everything else (the first and the last layer, biases, norms, convolutions, CANO's centroids)
    is not a map from features to features, and orthogonalising its update has no meaning.

    Parameters
    ----------
    model : torch.nn.Module
        Possibly wrapped.

    Returns
    -------
    list of torch.nn.Parameter
        Each of two dimensions, in the order of the layers.
    """
    return [m.weight for m in model.modules() if isinstance(m, torch.nn.Linear)][1:-1]


def build_optimizer(
    model: torch.nn.Module, training: Training, total_steps: int
) -> tuple[torch.optim.Optimizer, OneCycleLR]:
    """Build the optimiser and its one-cycle schedule.

    Parameters
    ----------
    model : torch.nn.Module
        Whose parameters to train.
    training : Training
        Its ``optimizer`` is ``adamw``, AdamW for everything, as in the paper; or ``muon``, Muon
        for the matrices of hidden layers and AdamW for the rest. Muon's update is scaled to
        AdamW's size, so one learning rate, the highest, serves both.
    total_steps : int
        Length of the schedule.

    Returns
    -------
    torch.optim.Optimizer, torch.optim.lr_scheduler.OneCycleLR
        The schedule leaves momentum alone: Muon's has another meaning than Adam's.
    """
    options = {"lr": training.lr, "weight_decay": training.weight_decay}
    if training.optimizer == "muon":
        muon = matrices(model)
        chosen = {id(p) for p in muon}
        rest = [p for p in model.parameters() if id(p) not in chosen]
        optimizer = CombinedOptimizer(
            [
                Muon(muon, adjust_lr_fn="match_rms_adamw", **options),
                torch.optim.AdamW(rest, **options),
            ]
        )
    else:
        optimizer = torch.optim.AdamW(model.parameters(), **options)
    schedule = OneCycleLR(
        optimizer, max_lr=training.lr, total_steps=total_steps, cycle_momentum=False
    )
    return optimizer, schedule
