# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

import math

import numpy as np
import pytest
import torch

from physicsnemo_cano.datapipes import ElasticBlock
from physicsnemo_cano.datapipes.files import installed
from tests.recipe.helpers import public_set


@pytest.fixture(scope="module")
def folder():
    return public_set("elastic_block")


def test_samples_are_the_files(folder):
    train, test = ElasticBlock(folder), ElasticBlock(folder, "test", log_moduli=False)
    assert (len(train), len(test), train.source) == (400, 100, "published")
    parameters, fields = (np.load(folder / f"{name}.npy") for name in ("params", "snapshots"))
    sample, _ = test[3]
    assert {key: tuple(value.shape) for key, value in sample.items()} == {
        "embedding": (1346, 2),
        "fx": (1, 11),
        "target": (1346, 2),
    }
    np.testing.assert_array_equal(sample["fx"][0], parameters[403].astype(np.float32))
    np.testing.assert_array_equal(sample["target"][:, 0], fields[403, :1346].astype(np.float32))
    np.testing.assert_array_equal(sample["target"][:, 1], fields[403, 1346:].astype(np.float32))
    first, _ = train[0]
    assert first["target"][0].tolist() == pytest.approx([-0.0017244, 0.00262625], rel=1e-4)
    assert first["fx"][0, 0].item() == pytest.approx(math.log(55.08384402))
    assert first["fx"][0, 8].item() == pytest.approx(0.400471)  # a load


def test_the_block_is_clamped_on_its_left(folder):
    sample, _ = ElasticBlock(folder)[0]
    left = sample["embedding"][:, 0] == 0
    assert left.sum() == 37
    assert not sample["target"][left].any()
    assert sample["target"][~left].all()


def test_weights_integrate_over_the_block(folder):
    sample, _ = ElasticBlock(folder, weights=True)[0]
    x, y = sample["embedding"].double().T
    for integrand, integral in ((torch.ones_like(x), 1.0), (x, 0.5), (3 * y - x, 1.0)):
        found = sample["weights"].double() @ integrand
        assert found.item() == pytest.approx(integral, rel=1e-5)


def test_a_package_that_is_absent_is_named_with_its_extra():
    message = r"package no-such-package.*pip install \"physicsnemo-cano\[data\]\""
    with pytest.raises(FileNotFoundError, match=message):
        installed("no-such-package", "any/folder")
    with pytest.raises(FileNotFoundError, match=r"numpy \d.* has no folder numpy/absent"):
        installed("numpy", "numpy/absent")
