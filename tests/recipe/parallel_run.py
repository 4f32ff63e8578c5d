# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Started by `train_elsewhere`, alone and under torchrun: train, and keep every gradient."""

import sys
from pathlib import Path

import torch

from tests.recipe.helpers import train

benchmark, (data, output, gradients) = sys.argv[1], map(Path, sys.argv[2:5])
seen = []
clip = torch.nn.utils.clip_grad_norm_


def remember(parameters, max_norm):
    parameters = list(parameters)
    seen.append([p.grad.clone() for p in parameters])
    return clip(parameters, max_norm)


torch.nn.utils.clip_grad_norm_ = remember
train(data, output, *sys.argv[5:], benchmark=benchmark)
rank = torch.distributed.get_rank() if torch.distributed.is_initialized() else 0
torch.save(seen, gradients / f"{rank}.pt")
