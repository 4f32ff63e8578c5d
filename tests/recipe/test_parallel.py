# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Two processes under torchrun do what one does."""

import csv

import h5py
import pytest
import torch

from physicsnemo_cano.recipe.batches import SharedBatches
from tests.recipe.helpers import evaluate, history, metrics, train_elsewhere, write_mini

# Plain AdamW: Muon's orthogonalisation of a nearly singular matrix magnifies rounding.
OVERRIDES = ("training.optimizer=adamw", "training.lr=1e-3", "training.epochs=2")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parallel")
    data = write_mini(folder / "mini.h5")
    for name, n_processes in (("one", 1), ("two", 2)):
        train_elsewhere(n_processes, "airfoil", data, folder / name, *OVERRIDES)
    return folder


def _gradients(folder, rank=0):
    return torch.load(folder / f"{rank}.pt")


def test_gradients_equal_those_of_one_process(runs):
    one, first, second = (
        _gradients(runs / name, rank)
        for name, rank in (("one_gradients", 0), ("two_gradients", 0), ("two_gradients", 1))
    )
    assert len(one) == len(first) == len(second) == 6  # 3 steps an epoch, the last of 1 sample
    # Steps 1 to 3: full batches of 4, and the last of one sample, which leaves rank 1 without.
    for step in range(3):
        for expected, found, same in zip(one[step], first[step], second[step], strict=True):
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)
            assert torch.equal(found, same)


def test_first_gradients_equal_to_rounding(runs):
    one, two = _gradients(runs / "one_gradients")[0], _gradients(runs / "two_gradients")[0]
    assert max(g.abs().max().item() for g in one) > 1e-3
    for expected, found in zip(one, two, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def test_metrics_equal_those_of_one_process(runs):
    one, two = metrics(runs / "one"), metrics(runs / "two")
    for key, value in one.items():
        if isinstance(value, float):
            assert two[key] == pytest.approx(value, rel=1e-4), key
        elif key == "test_fields":
            for name, errors in value.items():
                assert two[key][name] == pytest.approx(errors, rel=1e-4), name
        else:
            assert two[key] == value, key
    assert len(history(runs / "two")) == 2


def test_every_test_sample_is_counted_once(runs):
    with (runs / "two" / "test_errors.csv").open() as file:
        rows = list(csv.DictReader(file))
    errors = [float(row["rel_l2"]) for row in rows]
    assert [int(row["sample"]) for row in rows] == [0, 1, 2]  # 3 samples, 2 processes
    assert metrics(runs / "two")["test_rel_l2"] == pytest.approx(sum(errors) / 3, rel=1e-9)
    with h5py.File(runs / "two" / "predictions.h5") as file:
        assert sorted(file) == ["0000", "0001", "0002"]
        for name, error in zip(sorted(file), errors, strict=True):
            prediction, target = (file[name][key][()] for key in ("prediction", "target"))
            found = ((prediction - target) ** 2).sum() ** 0.5 / (target**2).sum() ** 0.5
            assert error == pytest.approx(found, rel=1e-5)


def test_evaluating_two_processes_checkpoint_alone_repeats_the_numbers(runs):
    result = evaluate(runs / "mini.h5", runs / "two" / "checkpoints" / "last")
    assert result["test_rel_l2"] == pytest.approx(metrics(runs / "two")["test_rel_l2"], abs=1e-6)


@pytest.mark.parametrize(
    ("n_samples", "batch_size", "world_size"), [(9, 4, 2), (10, 5, 3), (4, 8, 3)]
)
def test_shares_make_up_the_global_batches(n_samples, batch_size, world_size):
    whole = SharedBatches(n_samples, batch_size, seed=3)
    shares = [SharedBatches(n_samples, batch_size, 3, r, world_size) for r in range(world_size)]
    for epoch in (1, 2):
        for sampler in (whole, *shares):
            sampler.set_epoch(epoch)
        order = list(whole)
        assert sorted(order) == list(range(n_samples))
        parts = [list(share) for share in shares]
        assert [len(part) for part in parts] == [len(share) for share in shares]
        for step in range(whole.n_steps):
            batch = order[step * batch_size : (step + 1) * batch_size]
            counted, mean = [], 0.0
            for share, part in zip(shares, parts, strict=True):
                n = share.local_batch_size
                mine = part[step * n : (step + 1) * n]
                assert mine  # every process takes part in every step
                if share.weight(step):
                    counted += mine
                # Data-parallel training divides the sum over processes by their number.
                mean += share.weight(step) * sum(mine) / world_size
            assert sorted(counted) == sorted(batch)
            assert mean == pytest.approx(sum(batch) / len(batch))


def test_order_differs_between_epochs_and_seeds():
    orders = set()
    for seed, epoch in ((0, 0), (0, 1), (1, 0), (1, 1)):
        sampler = SharedBatches(50, 4, seed)
        sampler.set_epoch(epoch)
        orders.add(tuple(sampler))
    assert len(orders) == 4


def test_a_batch_smaller_than_the_number_of_processes_is_refused():
    with pytest.raises(ValueError, match=r"batch_size=2 .* at least their number, 3"):
        SharedBatches(10, 2, 0, rank=0, world_size=3)
