# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Batches of clouds of different sizes: padding changes nothing, and there is little of it."""

import numpy as np
import pytest
import torch
from hydra.utils import instantiate
from physicsnemo.datapipes import DataLoader, Dataset
from tensordict import TensorDict

from physicsnemo_cano.datapipes import Channel, TrajectoryReader
from physicsnemo_cano.losses import LOSSES, relative_l2
from physicsnemo_cano.recipe.batches import MOST_PADDING, SharedBatches, collate, padding_share
from physicsnemo_cano.recipe.distributed import initialize
from physicsnemo_cano.recipe.evaluation import evaluate
from physicsnemo_cano.recipe.forward import call_model
from physicsnemo_cano.recipe.normalization import Statistics
from physicsnemo_cano.recipe.prediction import predictor_for
from tests.recipe.helpers import Clouds, composed, metrics, train, train_elsewhere

SIZES = (500, 1300, 4000)
ABOUT_CHANNELS = dict.fromkeys(("embedding", "fx", "target"), "channels")


def model_of(name, functional_dim=3, embedding_dim=2, out_dim=2):
    torch.manual_seed(0)
    settings = ("size.n_layers=2", "size.n_head=2", "size.n_hidden=16", "size.n_clusters=8")
    model = composed("irregular_darcy", f"model={name}", *settings).model
    arguments = {key: value for key, value in model.items() if key != "name"}
    return instantiate({**arguments, "_partial_": True})(
        functional_dim=functional_dim,
        embedding_dim=embedding_dim,
        out_dim=out_dim,
        structured_shape=None,
    )


def clouds(*options):
    random = torch.Generator().manual_seed(1)

    def draw(*shape):
        return torch.rand(shape, generator=random, dtype=torch.float64)

    samples = []
    for size in SIZES:
        fields = {"embedding": draw(size, 2), "fx": draw(size, 3), "target": draw(size, 2)}
        if "global" in options:
            fields["fx"] = draw(1, 3)
        if "weights" in options:
            fields["weights"] = draw(size)
        samples.append((TensorDict(fields), {}))
    return samples


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("cano", ()),
        ("cano", ("weights",)),
        ("cano", ("global",)),
        ("transolver", ()),
        ("flare", ("global",)),
    ],
)
def test_a_padded_batch_is_its_samples_alone(name, options):
    model = model_of(name).double().eval()
    found = []
    for batches in (clouds(*options),), [[sample] for sample in clouds(*options)]:
        outputs, losses = [], []
        model.zero_grad()
        for samples in batches:
            batch = collate(samples)
            output = call_model(model, batch, None)
            mask = batch.get("mask", None)
            loss = relative_l2(output.double(), batch["target"], mask)
            loss.sum().backward()
            losses += loss.tolist()
            outputs += [
                o if mask is None else o[m]
                for o, m in zip(output, mask if mask is not None else output, strict=True)
            ]
        found.append((outputs, losses, [p.grad.clone() for p in model.parameters()]))
    (together, together_losses, together_gradients), (alone, losses, gradients) = found
    for one, other in zip(together, alone, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-6)
    assert together_losses == pytest.approx(losses, rel=1e-6)
    for one, other in zip(together_gradients, gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-6 * other.abs().max().item())


def test_what_is_padded_and_what_not():
    samples = clouds("weights", "global")
    batch = collate(samples)
    assert batch["fx"].shape == (3, 1, 3)
    assert batch["mask"].sum(1).tolist() == list(SIZES)
    for row, (sample, _) in zip(batch, samples, strict=True):
        for key in ("embedding", "target", "weights"):
            assert torch.equal(row[key][row["mask"]], sample[key])
            assert not row[key][~row["mask"]].any()
    assert set(samples[0][0].keys()) == {"embedding", "fx", "target", "weights"}  # as before
    assert "mask" not in collate(samples[:1])
    own = samples[0][0].copy()
    own["mask"] = torch.arange(500) < 400
    assert collate([(own, {}), samples[1]])["mask"].sum(1).tolist() == [400, 1300]


@pytest.mark.parametrize("name", LOSSES)
def test_losses_ignore_padding(name):
    samples = clouds()
    batch = collate(samples)
    prediction = torch.where(batch["mask"][..., None], batch["target"] * 1.1 + 0.1, torch.nan)
    found = LOSSES[name](prediction, batch["target"], batch["mask"])
    for value, (sample, _) in zip(found, samples, strict=True):
        alone = LOSSES[name](sample["target"][None] * 1.1 + 0.1, sample["target"][None])
        assert value.item() == pytest.approx(alone.item(), rel=1e-12)


@pytest.mark.parametrize("batch_size", [4, 8])
def test_little_is_padded_and_every_sample_is_seen_once(batch_size):
    sizes = np.random.default_rng(0).lognormal(7, 0.7, 203).astype(int).tolist()
    batches, seen = SharedBatches(203, batch_size, 0, sizes=sizes), set()
    for epoch in range(1, 6):
        batches.set_epoch(epoch)
        found = batches.batches()
        assert sorted(index for batch in found for index in batch) == list(range(203))
        assert [len(batch) for batch in found[:-1]] == [batch_size] * (203 // batch_size)
        assert list(batches) == [index for batch in found for index in batch]
        assert 0 < padding_share(found, sizes) < MOST_PADDING
        order = np.random.default_rng(epoch).permutation(203)
        at_random = [order[i : i + batch_size] for i in range(0, 203, batch_size)]
        assert padding_share(at_random, sizes) > 2 * MOST_PADDING
        seen |= {tuple(sorted(batch)) for batch in found}
    assert len(seen) > 0.9 * 5 * len(found)  # other samples together in every epoch
    again = SharedBatches(203, batch_size, 0, sizes=sizes)
    again.set_epoch(5)
    assert again.batches() == found


def test_samples_are_only_sorted_where_it_is_needed():
    plain = SharedBatches(50, 4, 0)
    for sizes in ([7] * 50, list(range(1000, 1050))):
        assert SharedBatches(50, 4, 0, sizes=sizes).batches() == plain.batches()


def test_padding_share():
    assert padding_share([[0, 1], [2]], [500, 1300, 4000]) == pytest.approx(800 / 6600)


def test_processes_share_the_same_batches():
    sizes = np.random.default_rng(0).integers(500, 4000, 41).tolist()
    whole = SharedBatches(41, 4, 3, sizes=sizes).batches()
    first, second = (list(SharedBatches(41, 4, 3, rank, 2, sizes)) for rank in (0, 1))
    for step, batch in enumerate(whole[:-1]):
        assert (first[2 * step : 2 * step + 2], second[2 * step : 2 * step + 2]) == (
            batch[::2],
            batch[1::2],
        )


def test_scales_are_those_of_all_points():
    reader = Clouds(".")
    found = Statistics.measure(reader, ABOUT_CHANNELS)
    for key in ABOUT_CHANNELS:
        values = torch.cat([reader[i][0][key] for i in range(len(reader))]).double()
        torch.testing.assert_close(found.means[key].double(), values.mean(0), rtol=1e-6, atol=1e-7)
        deviation = values.std(0, correction=0)
        torch.testing.assert_close(found.stds[key].double(), deviation, rtol=1e-6, atol=0)
    assert found.mean_target.shape == (1, 1)


class Drifting(TrajectoryReader):
    """Frames at 5 to 16 points, which drift; a window starts anywhere."""

    coordinates, targets, statics = (Channel("x"),), (Channel("u"),), (Channel("a"),)
    n_input, n_output = 2, 2

    def open(self):
        return 12

    def n_points(self, index):
        return 5 + index

    def n_frames(self, index):
        return 8

    def load(self, index, frames):
        x = np.linspace(0, 1, self.n_points(index))
        u = 1 + np.sin(x + index + 0.3 * np.arange(8)[:, None])
        return {"embedding": x[:, None], "frames": u[frames, :, None], "statics": [index]}


def test_windows_have_the_sizes_of_their_trajectories():
    reader = Drifting(".", windows=2)
    assert reader.sizes() == [5 + index // 2 for index in range(20)]
    assert [len(reader[i][0]["fx"]) for i in range(20)] == reader.sizes()
    assert reader.give(0.2).sizes() == [13, 14]
    assert reader.sizes() == [5 + index // 2 for index in range(16)]


def test_rollouts_of_padded_batches_are_those_of_samples_alone():
    initialize()
    reader = Drifting(".", "train", windows=2)
    statistics = Statistics.measure(reader, ABOUT_CHANNELS, increments=True)
    model = model_of("cano", embedding_dim=1, out_dim=1)
    predict = predictor_for(reader)(model, None, statistics, torch.device("cpu"))
    dataset = Dataset(reader, transforms=statistics.inputs())
    (batch,) = DataLoader(dataset, batch_size=20, collate_fn=collate)
    prediction, target, mask = predict.training_step(batch, torch.Generator())
    losses = relative_l2(prediction, target, mask).unflatten(0, (20, 2))
    for index in range(20):
        prediction, target, mask = predict.training_step(
            dataset[index][0].unsqueeze(0), torch.Generator()
        )
        assert mask is None
        torch.testing.assert_close(
            losses[index], relative_l2(prediction, target), rtol=1e-5, atol=1e-6
        )
    test = Dataset(Drifting(".", "test"), transforms=statistics.inputs())
    together, alone = (evaluate(predict, test, size, keep_predictions=True) for size in (2, 1))
    np.testing.assert_allclose(together.errors, alone.errors, rtol=1e-5)
    assert [p.shape for p in together.predictions] == [(15, 6), (16, 6)]
    for one, other in zip(together.predictions, alone.predictions, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


OPTIONS = (
    "data._target_=tests.recipe.helpers.Clouds",
    "~data.weights",
    "training.optimizer=adamw",
    "training.epochs=2",
)


def test_two_processes_train_a_baseline_as_one_does(tmp_path):
    """They call it once for each size, and not equally often."""
    options = (*OPTIONS, "model=transolver")
    train(tmp_path, tmp_path / "one", *options, benchmark="irregular_darcy")
    train_elsewhere(2, "irregular_darcy", tmp_path, tmp_path / "two", *options)
    one, two = metrics(tmp_path / "one"), metrics(tmp_path / "two")
    for key in ("train_rel_l2", "test_rel_l2"):
        assert two[key] == pytest.approx(one[key], rel=1e-4)
