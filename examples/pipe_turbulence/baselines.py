# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""What needs no network: errors of simple models on the pipe turbulence test samples.

python examples/pipe_turbulence/baselines.py data/pipe_turbulence
"""

import sys

import numpy as np
import torch

from physicsnemo_cano.datapipes import PipeTurbulence
from physicsnemo_cano.losses import relative_l2

MODES = (10, 20, 40, 80)


def read(root, split):
    """Velocities (n, N) at a time and a step later."""
    reader = PipeTurbulence(root, split)
    samples = [reader[index][0] for index in range(len(reader))]
    return [np.array([s[key].numpy().ravel() for s in samples], float) for key in ("fx", "target")]


def relative_error(prediction, target):
    """Mean relative L2 error of fields (n, N)."""
    prediction, target = (torch.from_numpy(values)[..., None] for values in (prediction, target))
    return relative_l2(prediction.expand_as(target), target).mean().item()


def linear(train, output, test, n_modes):
    """Least squares of the output by the amplitudes of the inputs' POD modes."""
    mean = train.mean(0)
    modes = np.linalg.svd(train - mean, full_matrices=False)[2][:n_modes]
    matrix = np.linalg.lstsq((train - mean) @ modes.T, output - output.mean(0), rcond=None)[0]
    return output.mean(0) + (test - mean) @ modes.T @ matrix


def main():
    """Print a line a model."""
    (train, output), (test, target) = (read(sys.argv[1], split) for split in ("train", "test"))
    print(f"the training mean      {relative_error(output.mean(0), target):.4f}")
    print(f"persistence            {relative_error(test, target):.4f}")
    for n_modes in MODES:
        error = relative_error(linear(train, output, test, n_modes), target)
        print(f"linear, {n_modes:3} modes      {error:.4f}")


if __name__ == "__main__":
    main()
