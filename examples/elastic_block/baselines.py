# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""What needs no network: errors of reduced-order models on the elastic block's test samples."""

import numpy as np
import torch
from scipy.interpolate import RBFInterpolator

from physicsnemo_cano.datapipes import ElasticBlock
from physicsnemo_cano.datapipes.elastic_block import FOLDER
from physicsnemo_cano.datapipes.files import installed
from physicsnemo_cano.losses import relative_l2

N_MODES = 20


def read(split, log_moduli):
    """Parameters (n, 11) and fields (n, N), one after the other."""
    reader = ElasticBlock(installed("smithers", FOLDER), split, log_moduli=log_moduli)
    samples = [reader[index][0] for index in range(len(reader))]
    return [np.array([s[key].numpy().ravel() for s in samples], float) for key in ("fx", "target")]


def relative_error(prediction, target):
    """Mean relative L2 error of fields (n, N)."""
    prediction, target = (torch.from_numpy(values)[..., None] for values in (prediction, target))
    return relative_l2(prediction.expand_as(target), target).mean().item()


def reduced(train, test, fields):
    """POD of the training fields, radial basis functions of the parameters for its amplitudes."""
    mean = fields.mean(0)
    modes = np.linalg.svd(fields - mean, full_matrices=False)[2][:N_MODES]
    return mean + RBFInterpolator(train, (fields - mean) @ modes.T)(test) @ modes


def bilinear(train, test, fields):
    """Least squares of the fields by products of a load and a modulus: displacements of an
    elastic block are linear in its loads."""

    def products(parameters):
        moduli, loads = parameters[:, :8], parameters[:, 8:]
        moduli = np.column_stack([np.ones(len(moduli)), moduli])
        return np.einsum("ni,nj->nij", moduli, loads).reshape(len(loads), -1)

    return products(test) @ np.linalg.lstsq(products(train), fields, rcond=None)[0]


def main():
    """Print a line a model."""
    for name, log in (("moduli", False), ("their logarithms", True)):
        (train, fields), (test, target) = read("train", log), read("test", log)
        mean, std = train.mean(0), train.std(0)
        scaled = [(p - mean) / std for p in (train, test)]
        for model in (reduced, bilinear):
            # The loads' zero is a zero of the displacement: the second model is not to shift it.
            inputs = scaled if model is reduced else (train, test)
            error = relative_error(model(*inputs, fields), target)
            print(f"{model.__name__:8}  {name:16}  {error:.4f}")


if __name__ == "__main__":
    main()
