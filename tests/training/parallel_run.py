"""Started by test_parallel.py, alone and under torchrun: train, and keep every gradient."""

import sys
from pathlib import Path

import torch

from tests.training.recipe_helpers import train

data, output, gradients = map(Path, sys.argv[1:4])
seen = []
clip = torch.nn.utils.clip_grad_norm_


def remember(parameters, max_norm):
    parameters = list(parameters)
    seen.append([p.grad.clone() for p in parameters])
    return clip(parameters, max_norm)


torch.nn.utils.clip_grad_norm_ = remember
train(data, output, *sys.argv[4:])
rank = torch.distributed.get_rank() if torch.distributed.is_initialized() else 0
torch.save(seen, gradients / f"{rank}.pt")
