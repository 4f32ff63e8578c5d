# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""What needs no network: errors of simple models on the ICP plasma test trajectories.

python examples/icp_plasma/baselines.py data/icp_plasma
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))  # to run as a script

from examples.unsteady_heat.baselines import autoregression, last_frame
from physicsnemo_cano.datapipes import ICPPlasma

N_INPUT, N_OUTPUT = ICPPlasma.n_input, ICPPlasma.n_output


def read(split):
    """Trajectories (n, T, 4 N), as long as those tested."""
    reader = ICPPlasma(sys.argv[1], split)
    whole = slice(0, N_INPUT + reader.n_tested)
    return np.stack([reader.load(i, whole)["frames"] for i in reader.indices]).astype(float)


def main():
    """Print a line a model: mean relative L2 error of the first 5 steps, and of all."""
    train, test = read("train"), read("test")
    scale = train.std((0, 1, 2))
    joined = [(frames / scale).reshape(*frames.shape[:2], -1) for frames in (train, test)]
    target = test[:, N_INPUT:]
    for model in (last_frame, autoregression):
        found = model(joined[0], joined[1][:, :N_INPUT], target.shape[1])
        error = found.reshape(target.shape) * scale - target
        errors = []
        for n_steps in (N_OUTPUT, target.shape[1]):
            sizes = [
                np.linalg.norm(x[:, :n_steps].reshape(len(x), -1), axis=1) for x in (error, target)
            ]
            errors.append(f"{n_steps} steps {(sizes[0] / sizes[1]).mean():.4f}")
        print(f"{model.__name__:14}  {', '.join(errors)}")


if __name__ == "__main__":
    main()
