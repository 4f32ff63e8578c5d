# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""What needs no network: errors of simple models on the heat transfer test trajectories.

python examples/heat_transfer/baselines.py data/heat_transfer
"""

import sys

import numpy as np

from physicsnemo_cano.datapipes import HeatTransfer

N_INPUT, N_OUTPUT = HeatTransfer.n_input, HeatTransfer.n_output


def read(split):
    """Velocities (T, N, 2), as long as those tested, and statics (N, C) of each trajectory."""
    reader = HeatTransfer(sys.argv[1], split)
    whole = slice(0, N_INPUT + reader.n_tested)
    for index in reader.indices:
        sample = reader.load(index, whole)
        yield sample["frames"].astype(float), sample["statics"].astype(float)


def window(frames, statics):
    """Inputs (N, 10 + C + 1) of the frame that follows."""
    ones = np.ones((len(statics), 1))
    return np.concatenate([*frames, statics, ones], -1)


def last_frame(train):
    """The last input frame, repeated."""
    return lambda frames, statics: frames[-1]


def linear(train):
    """One linear map for all nodes, from a node's five frames and statics to its next."""
    square, right = 0, 0
    for frames, statics in train:
        for first in range(len(frames) - N_INPUT):
            inputs = window(frames[first : first + N_INPUT], statics)
            square, right = square + inputs.T @ inputs, right + inputs.T @ frames[first + N_INPUT]
    matrix = np.linalg.lstsq(square, right, rcond=1e-12)[0]
    return lambda frames, statics: window(frames, statics) @ matrix


def main():
    """Print a line a model: mean relative L2 error of the first 5 steps, and of all."""
    train, test = list(read("train")), list(read("test"))
    for model in (last_frame, linear):
        step, errors = model(train), []
        for frames, statics in test:
            found = list(frames[:N_INPUT])
            while len(found) < len(frames):
                found.append(step(found[-N_INPUT:], statics))
            found, target = np.array(found)[N_INPUT:], frames[N_INPUT:]
            errors.append(
                [
                    np.linalg.norm(found[:n] - target[:n]) / np.linalg.norm(target[:n])
                    for n in (N_OUTPUT, len(target))
                ]
            )
        short, whole = np.mean(errors, 0)
        print(f"{model.__name__:10}  first {N_OUTPUT} steps {short:.4f}, all {whole:.4f}")


if __name__ == "__main__":
    main()
