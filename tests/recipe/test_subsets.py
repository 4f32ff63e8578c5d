# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Training on some points of each sample: sums keep their value, and runs can be repeated."""

import math

import pytest
import torch
from tensordict import TensorDict

from physicsnemo_cano.recipe import fit
from physicsnemo_cano.recipe.batches import PointSubsets
from tests.recipe.helpers import history, metrics, train, weights, write_mini

OPTIONS = ("data._target_=tests.recipe.helpers.Clouds", "~data.weights")
CHANNELS = tuple(f"normalize.{key}=channels" for key in ("embedding", "fx", "target"))


def sample(size, mask=None, channels=2):
    random = torch.Generator().manual_seed(size)
    fields = {
        "embedding": torch.rand(size, 2, generator=random),
        "fx": torch.rand(1, channels, generator=random),
        "target": torch.rand(size, 1, generator=random),
        "weights": torch.rand(size, generator=random),
    }
    if mask is not None:
        fields["mask"] = mask
    return TensorDict(fields), {}


def test_rows_stay_together_and_none_is_drawn_twice():
    samples = [sample(50), sample(7), sample(30)]
    batch = PointSubsets(10)(samples)
    assert batch["embedding"].shape == (3, 10, 2)
    assert batch["mask"].sum(1).tolist() == [10, 7, 10]
    for row, (whole, _) in zip(batch, samples, strict=True):
        mask, size = row["mask"], len(whole["embedding"])
        place = (row["embedding"][mask][:, None] == whole["embedding"]).all(-1)
        assert place.sum(1).tolist() == [1] * int(mask.sum())
        chosen = place.int().argmax(1)
        assert len(chosen.unique()) == len(chosen)
        assert torch.equal(row["target"][mask], whole["target"][chosen])
        ratio = max(size / 10, 1)
        torch.testing.assert_close(row["weights"][mask], whole["weights"][chosen] * ratio)
        assert torch.equal(row["fx"], whole["fx"])
    assert len(samples[0][0]["embedding"]) == 50


def test_padding_is_never_drawn():
    mask = torch.arange(40) % 2 == 0
    batch = PointSubsets(15)([sample(40, mask)])
    assert batch["mask"].all()
    there = sample(40)[0]["embedding"][mask]
    assert (batch["embedding"][0][:, None] == there).all(-1).any(1).all()
    torch.testing.assert_close(PointSubsets(20)([sample(40, mask)])["mask"][0], mask)


def test_integrals_keep_their_value_in_the_mean():
    whole = sample(60)
    values = (whole[0]["weights"] * whole[0]["target"][:, 0]).double()
    draw, n = PointSubsets(20), 4000
    sums = [
        (b["weights"] * b["target"][..., 0]).sum().double()
        for b in (draw([whole]) for _ in range(n))
    ]
    # Variance of a sum of k of N values without replacement, times N / k.
    deviation = math.sqrt(60**2 * (1 - 20 / 60) * values.var().item() / 20)
    assert torch.stack(sums).mean().item() == pytest.approx(
        values.sum().item(), abs=5 * deviation / math.sqrt(n)
    )
    assert torch.stack(sums).std().item() == pytest.approx(deviation, rel=5 / math.sqrt(2 * n))


def test_draws_follow_from_seed_epoch_and_process():
    def drawn(*arguments, epoch):
        subsets = PointSubsets(5, *arguments)
        subsets.set_epoch(epoch)
        return subsets([sample(30)])["embedding"]

    assert torch.equal(drawn(0, 0, epoch=3), drawn(0, 0, epoch=3))
    for other in (((1, 0), 3), ((0, 1), 3), ((0, 0), 4)):
        assert not torch.equal(drawn(0, 0, epoch=3), drawn(*other[0], epoch=other[1]))


def test_a_run_that_resumes_is_the_same(tmp_path, monkeypatch):
    options = (*OPTIONS, "training.points_per_step=10", "training.batch_size=3")
    train(tmp_path, tmp_path / "one", *options, benchmark="irregular_darcy")
    with monkeypatch.context() as patch:
        done = fit.Checkpoints.save

        def save(self, progress, *rest):
            done(self, progress, *rest)
            if progress.epoch == 2:
                raise KeyboardInterrupt

        patch.setattr(fit.Checkpoints, "save", save)
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path, tmp_path / "two", *options, benchmark="irregular_darcy")
    train(tmp_path, tmp_path / "two", *options, benchmark="irregular_darcy")
    assert history(tmp_path / "one") == history(tmp_path / "two")
    assert metrics(tmp_path / "one") == metrics(tmp_path / "two")
    one, two = (weights(tmp_path / name / "checkpoints" / "last") for name in ("one", "two"))
    assert all(torch.equal(one[key], two[key]) for key in one)
    train(
        tmp_path, tmp_path / "all", *OPTIONS, "training.batch_size=3", benchmark="irregular_darcy"
    )
    assert history(tmp_path / "all") != history(tmp_path / "one")


@pytest.mark.parametrize(
    ("benchmark", "options", "message"),
    [
        (
            "airfoil",
            ("training.points_per_step=10", "as_cloud=false", *CHANNELS),
            r"draws points of clouds.*as_cloud=true",
        ),
        ("airfoil", ("training.points_per_step=0",), "must be above 0"),
        (
            "irregular_darcy",
            (*OPTIONS, "training.points_per_step=5", "normalize.target=nodes"),
            "by channels, not nodes",
        ),
    ],
)
def test_where_it_has_no_meaning(benchmark, options, message, tmp_path):
    data = write_mini(tmp_path / "mini.h5") if benchmark == "airfoil" else tmp_path
    with pytest.raises(ValueError, match=message):
        train(data, tmp_path / "run", *options, benchmark=benchmark)
