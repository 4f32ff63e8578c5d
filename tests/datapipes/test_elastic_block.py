# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

import math
import shutil

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
    reader = ElasticBlock(folder, weights=True)
    sample, _ = reader[0]
    x, y = sample["embedding"].double().T
    weights = sample["weights"].double()
    assert (weights > 0).all()
    for integrand, integral in ((torch.ones_like(x), 1.0), (x, 0.5), (3 * y - x, 1.0)):
        assert (weights @ integrand).item() == pytest.approx(integral, rel=1e-5)


def test_the_first_samples_are_taken_where_fewer_are_wanted(folder):
    few = [ElasticBlock(folder, split, n_train=2, n_test=1) for split in ("train", "test")]
    assert [len(reader) for reader in few] == [2, 1]
    expected = ElasticBlock(folder, "test")[0][0]["target"]
    assert torch.equal(few[1][0][0]["target"], expected)


def test_missing_and_damaged_triangles(folder, tmp_path):
    for file in folder.glob("*.npy"):
        shutil.copy(file, tmp_path)
    (tmp_path / "triangles.npy").unlink()
    with pytest.raises(FileNotFoundError, match=r"lacks triangles\.npy.*physicsnemo-cano\[data\]"):
        ElasticBlock(tmp_path)
    np.save(tmp_path / "triangles.npy", np.zeros((7, 4), int))
    with pytest.raises(ValueError, match=r"triangles\.npy holds .*\(7, 4\), expected .*\(m, 3\)"):
        ElasticBlock(tmp_path)


def test_a_package_that_is_absent_is_named_with_its_extra():
    message = r"package no-such-package.*pip install \"physicsnemo-cano\[data\]\""
    with pytest.raises(FileNotFoundError, match=message):
        installed("no-such-package", "any/folder")
    with pytest.raises(FileNotFoundError, match=r"numpy \d.* has no folder numpy/absent"):
        installed("numpy", "numpy/absent")
