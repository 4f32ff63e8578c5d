# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""What needs no network: rollouts of simple models on the unsteady heat set's test runs."""

import numpy as np

from physicsnemo_cano.datapipes import UnsteadyHeat
from physicsnemo_cano.datapipes.files import installed
from physicsnemo_cano.datapipes.unsteady_heat import FOLDER

N_MODES, N_INPUT = 20, UnsteadyHeat.n_input


def read(split):
    """Whole runs (n, 100, 441)."""
    reader = UnsteadyHeat(installed("smithers", FOLDER), split)
    return np.array(
        [
            np.asarray(reader.load(index, slice(0, reader.n_frames(index)))["frames"])[..., 0]
            for index in reader.indices
        ]
    )


def last_frame(train, given, n_steps):
    """The last input frame, repeated."""
    return np.repeat(given[:, -1:], n_steps, axis=1)


def autoregression(train, given, n_steps):
    """A linear map from the POD amplitudes of five frames to those of the next, rolled out."""
    modes = np.linalg.svd(train.reshape(-1, train.shape[-1]), full_matrices=False)[2][:N_MODES]

    def joined(frames, first):
        return np.concatenate([frames[:, first + k] for k in range(N_INPUT)], -1)

    amplitudes = train @ modes.T
    n_pairs = train.shape[1] - N_INPUT
    inputs = np.concatenate([joined(amplitudes, first) for first in range(n_pairs)])
    outputs = np.concatenate([amplitudes[:, first + N_INPUT] for first in range(n_pairs)])
    step = np.linalg.lstsq(inputs, outputs, rcond=None)[0]
    frames = given @ modes.T
    for first in range(n_steps):
        frames = np.concatenate([frames, joined(frames, first)[:, None] @ step], 1)
    return frames[:, N_INPUT:] @ modes


def main():
    """Print a line a model: mean relative L2 error of the first 5 steps, and of all."""
    train, test = read("train"), read("test")
    given, target = test[:, :N_INPUT], test[:, N_INPUT:]
    for model in (last_frame, autoregression):
        error = model(train, given, target.shape[1]) - target
        errors = []
        for n_steps in (UnsteadyHeat.n_output, target.shape[1]):
            difference, truth = (values[:, :n_steps] for values in (error, target))
            ratio = np.linalg.norm(difference, axis=(1, 2)) / np.linalg.norm(truth, axis=(1, 2))
            errors.append(f"{n_steps} steps {ratio.mean():.4f}")
        print(f"{model.__name__:14}  {', '.join(errors)}")


if __name__ == "__main__":
    main()
