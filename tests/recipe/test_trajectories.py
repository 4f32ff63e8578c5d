# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Long trajectories: windows, static inputs, increments, errors a step, rollouts that break."""

import h5py
import numpy as np
import pytest
import torch
from physicsnemo.datapipes import DataLoader, Dataset

from physicsnemo_cano.datapipes import Channel, TrajectoryReader
from physicsnemo_cano.recipe import run
from physicsnemo_cano.recipe.distributed import initialize
from physicsnemo_cano.recipe.evaluation import evaluate, mean_predictor_error
from physicsnemo_cano.recipe.fit import Meter
from physicsnemo_cano.recipe.normalization import Statistics
from physicsnemo_cano.recipe.prediction import predictor_for
from physicsnemo_cano.recipe.report import Results
from tests.recipe.helpers import (
    composed,
    history,
    metrics,
    no_figures,
    train,
    weights,
    write_block,
)

CPU = torch.device("cpu")
ABOUT_CHANNELS = dict.fromkeys(("embedding", "fx", "target"), "channels")
N_RUNS, N_FRAMES, N_POINTS = 10, 13, 6
RNG = np.random.default_rng(2)


@pytest.fixture(scope="module", autouse=True)
def _one_process():
    initialize()


class Decay(TrajectoryReader):
    """Two channels that follow u' = a u + b, with a and b the run's: frames of a HDF5 file."""

    coordinates = (Channel("x"),)
    targets = (Channel("u"), Channel("v"))
    statics = (Channel("a"), Channel("b"))
    n_input, n_output = 2, 3

    def open(self):
        self.file = h5py.File(self.path)
        self.read = []
        return len(self.file["frames"])

    def n_frames(self, index):
        return self.file["frames"].shape[1]

    def load(self, index, frames):
        self.read.append((index, frames.start, frames.stop))
        return {
            "embedding": np.linspace(0, 1, N_POINTS)[:, None],
            "frames": self.file["frames"][index, frames],
            "statics": self.file["conditions"][index],
        }


def step(frame, conditions):
    return conditions[0] * frame + conditions[1]


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    rng = np.random.default_rng(0)
    conditions = np.stack([rng.uniform(0.8, 1.0, N_RUNS), rng.uniform(-0.3, 0.3, N_RUNS)], 1)
    frames = np.empty((N_RUNS, N_FRAMES, N_POINTS, 2))
    for run_, (a, b) in enumerate(conditions):
        frames[run_, 0] = rng.normal(size=(N_POINTS, 2)) * [1, 10]
        for t in range(1, N_FRAMES):
            frames[run_, t] = step(frames[run_, t - 1], (a, b))
    path = tmp_path_factory.mktemp("decay") / "decay.h5"
    with h5py.File(path, "w") as stream:
        stream["frames"], stream["conditions"] = frames, conditions
    return path


class Law(torch.nn.Module):
    """The true step, times a factor, from what the recipe gives: it undoes the scales."""

    def __init__(self, statistics, factor=1.0, breaks_at=None):
        super().__init__()
        self.statistics, self.factor, self.breaks_at = statistics, factor, breaks_at
        self.calls = 0

    def forward(self, fx, embedding):
        self.calls += 1
        means, stds = self.statistics.means, self.statistics.stds
        fx = fx * stds["fx"] + means["fx"]
        last, a, b = fx[..., 2:4], fx[..., 4:5], fx[..., 5:6]
        following = self.factor * (a * last + b)
        if self.calls == self.breaks_at:
            following[1, 2, 0] = torch.nan
        if "increment" in means:
            return (following - last - means["increment"]) / stds["increment"]
        return (following - means["target"]) / stds["target"]


def predictor(file, increments, pushforward=False, **options):
    reader = Decay(file)
    statistics = Statistics.measure(reader, ABOUT_CHANNELS, increments)
    return predictor_for(reader, pushforward)(
        Law(statistics, **options), None, statistics, CPU
    ), statistics


def test_training_reads_windows_and_testing_all(file):
    train, test = Decay(file, windows=3), Decay(file, "test")
    assert (len(train), len(test)) == (24, 2)
    with h5py.File(file) as stream:
        frames, conditions = stream["frames"][()], stream["conditions"][()]
    starts = set()
    for epoch in range(6):
        train.set_epoch(epoch)
        for index in range(24):
            sample, _ = train[index]
            run_, first, stop = train.read[-1]
            assert (run_, stop - first) == (index // 3, 5)
            starts.add(first)
            window = frames[run_, first:stop]
            given = np.concatenate([*window[:2], np.tile(conditions[run_], (N_POINTS, 1))], 1)
            np.testing.assert_allclose(sample["fx"], given, rtol=1e-6)
            np.testing.assert_allclose(
                sample["target"], np.concatenate([*window[2:]], 1), rtol=1e-6
            )
    assert starts == set(range(N_FRAMES - 5 + 1))
    sample, _ = test[1]
    assert test.read == [(9, 0, N_FRAMES)]
    np.testing.assert_allclose(sample["target"], np.concatenate([*frames[9, 2:]], 1), rtol=1e-6)


def test_windows_follow_from_seed_and_epoch(file):
    def seen(seed, epoch, before=()):
        reader = Decay(file, windows=2)
        dataset = Dataset(reader)
        dataset.set_generator(torch.Generator().manual_seed(seed))
        loader = DataLoader(dataset, batch_size=4)
        for earlier in (*before, epoch):
            loader.set_epoch(earlier)
            reader.read.clear()
            for _ in loader:
                pass
        return sorted(reader.read)

    resumed, unbroken = seen(0, 3), seen(0, 3, before=(1, 2))
    assert resumed == unbroken
    assert resumed != seen(0, 4)
    assert resumed != seen(1, 3)
    assert [index for index, *_ in resumed] == [i for i in range(8) for _ in range(2)]


def test_validation_samples_are_whole(file):
    train = Decay(file, windows=2)
    validation = train.give(0.25)
    assert (len(train), len(validation)) == (12, 2)
    assert validation[0][0]["target"].shape == (N_POINTS, 2 * (N_FRAMES - 2))
    assert validation.read[-1] == (6, 0, N_FRAMES)
    assert train[11][0]["target"].shape == (N_POINTS, 6)


@pytest.mark.parametrize("increments", [False, True])
def test_a_rollout_of_the_true_law_is_the_trajectory(file, increments):
    predict, statistics = predictor(file, increments)
    assert ("increment" in statistics.means) == increments
    dataset = Dataset(Decay(file, "test"), transforms=statistics.inputs())
    found = evaluate(predict, dataset, 2, keep_predictions=True)
    assert predict.model.calls == N_FRAMES - 2
    assert found.errors.max() < 1e-5


@pytest.mark.parametrize("increments", [False, True])
def test_a_rollout_has_its_closed_form(file, increments):
    """A law that is too large by a factor: its frames are those of another linear law."""
    predict, statistics = predictor(file, increments, factor=1.02)
    reader = Decay(file, "test")
    dataset = Dataset(reader, transforms=statistics.inputs())
    found = evaluate(predict, dataset, 2, keep_predictions=True)
    results = Results(reader, found.errors, found.predictions, {})
    with h5py.File(file) as stream:
        frames, conditions = stream["frames"][8:], stream["conditions"][8:]
    by_hand, norms = np.empty((2, N_FRAMES - 2)), np.empty((2, N_FRAMES - 2))
    for k, (a, b) in enumerate(conditions):
        a, b = 1.02 * a, 1.02 * b
        for n in range(1, N_FRAMES - 1):
            expected = a**n * frames[k, 1] + b * (1 - a**n) / (1 - a)
            predicted = found.predictions[k].reshape(N_POINTS, -1, 2)[:, n - 1]
            np.testing.assert_allclose(predicted, expected, rtol=1e-3, atol=1e-4)
            truth = frames[k, n + 1]
            norms[k, n - 1] = np.linalg.norm(truth)
            by_hand[k, n - 1] = np.linalg.norm(expected - truth) / norms[k, n - 1]
    np.testing.assert_allclose(results.frame_errors(), by_hand, rtol=1e-2)
    said = results.rollout_metrics(3)
    assert said["test_step_rel_l2"] == pytest.approx(by_hand.mean(0), rel=1e-2)
    assert said["test_step_rel_l2_std"] == pytest.approx(by_hand.std(0), rel=1e-2, abs=1e-6)
    assert (said["steps_short"], said["steps_long"]) == (3, N_FRAMES - 2)
    together = [
        np.sqrt(((by_hand * norms)[:, :n] ** 2).sum(1) / (norms[:, :n] ** 2).sum(1)).mean()
        for n in (3, N_FRAMES - 2)
    ]
    assert said["test_rel_l2_short"] == pytest.approx(together[0], rel=1e-2)
    assert found.errors.mean() == pytest.approx(together[1], rel=1e-2)


@pytest.mark.parametrize("increments", [False, True])
def test_a_training_step_starts_from_true_frames(file, increments):
    predict, statistics = predictor(file, increments, factor=1.1)
    raw = torch.stack([Decay(file)[i][0] for i in range(3)])
    batch = statistics.inputs()(raw.clone())
    prediction, target, _ = predict.training_step(batch, torch.Generator())
    frames = torch.cat([raw["fx"][..., :4], raw["target"]], -1).unflatten(-1, (5, 2)).movedim(2, 1)
    a, b = (raw["fx"][:, None, :, i : i + 1] for i in (4, 5))
    expected = (1.1 * (a * frames[:, 1:-1] + b)).flatten(0, 1)
    torch.testing.assert_close(prediction, expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(target, frames[:, 2:].flatten(0, 1))


@pytest.mark.parametrize("increments", [False, True])
def test_pushforward_starts_from_own_frames_after_the_first(file, increments):
    predict, statistics = predictor(file, increments, pushforward=True, factor=1.1)
    raw = torch.stack([Decay(file)[i][0] for i in range(3)])
    prediction, target, _ = predict.training_step(statistics.inputs()(raw.clone()), None)
    frames = torch.cat([raw["fx"][..., :4], raw["target"]], -1).unflatten(-1, (5, 2)).movedim(2, 1)
    a, b = (raw["fx"][:, None, :, i : i + 1] for i in (4, 5))
    own = 1.1 * (a * frames[:, 1:-2] + b)
    before = torch.cat([frames[:, 1:2], own], 1)
    torch.testing.assert_close(
        prediction, (1.1 * (a * before + b)).flatten(0, 1), rtol=1e-4, atol=1e-4
    )
    torch.testing.assert_close(target, frames[:, 2:].flatten(0, 1))


def test_no_gradient_flows_through_the_frames_of_pushforward(file):
    gradients = []
    for pushforward in (False, True):
        predict, statistics = predictor(file, False, pushforward)
        predict.model.factor = torch.nn.Parameter(torch.ones(()))  # own frames are the true ones
        batch = statistics.inputs()(torch.stack([Decay(file)[0][0]]))
        prediction, _, _ = predict.training_step(batch, None)
        prediction.square().sum().backward()
        gradients.append(predict.model.factor.grad)
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=0)


def test_scales_of_frames_statics_and_increments(file):
    reader = Decay(file)
    found = Statistics.measure(reader, ABOUT_CHANNELS, increments=True)
    samples = [reader[i][0] for i in range(len(reader))]
    fx, target = (torch.stack([s[key] for s in samples]) for key in ("fx", "target"))
    statics, given = fx[..., 4:], fx[..., :4].unflatten(-1, (2, 2))
    series = torch.cat([given, target.unflatten(-1, (3, 2))], 2)
    differences = series.diff(dim=2)[:, :, 1:]  # from the last given frame on
    for key, values, repeats in (("fx", given, 2), ("increment", differences, 1)):
        mean, std = values.flatten(0, 2).mean(0), values.flatten(0, 2).std(0, correction=0)
        torch.testing.assert_close(found.means[key][: 2 * repeats], mean.repeat(repeats))
        torch.testing.assert_close(found.stds[key][: 2 * repeats], std.repeat(repeats))
    torch.testing.assert_close(found.means["fx"][4:], statics.flatten(0, 1).mean(0))
    torch.testing.assert_close(found.stds["fx"][4:], statics.flatten(0, 1).std(0, correction=0))


def test_scales_survive_their_file(file, tmp_path):
    found = Statistics.measure(Decay(file), ABOUT_CHANNELS, increments=True)
    found.save(tmp_path / "scales.npz")
    again = Statistics.load(tmp_path / "scales.npz")
    assert set(again.means) == {"embedding", "fx", "target", "increment"}
    for key, value in found.means.items():
        assert torch.equal(again.means[key], value)
        assert torch.equal(again.stds[key], found.stds[key])


def test_the_baseline_is_the_mean_frame_throughout(file):
    train, test = Decay(file), Decay(file, "test")
    statistics = Statistics.measure(train, {})
    targets = torch.stack([train[i][0]["target"] for i in range(len(train))])
    mean = targets.mean(0).unflatten(-1, (3, 2)).mean(1).repeat(1, N_FRAMES - 2)
    errors = [(mean - test[i][0]["target"]).norm() / test[i][0]["target"].norm() for i in (0, 1)]
    assert mean_predictor_error(test, statistics) == pytest.approx(np.mean(errors), rel=1e-5)


def test_a_broken_rollout_is_named_with_its_step(file):
    predict, statistics = predictor(file, False, breaks_at=4)
    dataset = Dataset(Decay(file, "test"), transforms=statistics.inputs())
    with pytest.raises(FloatingPointError, match=r"sample 1 from step 4 on \(1 of 2\) of .*decay"):
        evaluate(predict, dataset, 2)


def test_mapped_files_give_no_warning(tmp_path, recwarn):
    for name, shape in (("frames", (5, N_FRAMES, N_POINTS, 2)), ("statics", (5, 2))):
        np.save(tmp_path / f"{name}.npy", RNG.normal(size=shape))

    class Mapped(Decay):
        def open(self):
            self.frames, self.conditions = (
                np.load(self.path / f"{name}.npy", mmap_mode="r") for name in ("frames", "statics")
            )
            return len(self.frames)

        def n_frames(self, index):
            return N_FRAMES

        def load(self, index, frames):
            embedding = np.zeros((N_POINTS, 1))
            conditions, chosen = self.conditions[index], self.frames[index, frames]
            return {"embedding": embedding, "frames": chosen, "statics": conditions}

    sample, _ = Mapped(tmp_path)[0]
    assert not recwarn.list
    statics = np.load(tmp_path / "statics.npy")[0].astype(np.float32)
    assert (sample["fx"][:, 4:].numpy() == statics).all()


def test_what_does_not_fit(file, tmp_path):
    with pytest.raises(ValueError, match=r"data\.windows=0"):
        Decay(file, windows=0)

    class Long(Decay):
        n_output = N_FRAMES

    with pytest.raises(ValueError, match=rf"trajectory 0 has {N_FRAMES} frames, a window needs 15"):
        Long(file)[0]


TINY = (
    "size.n_layers=1",
    "size.n_hidden=16",
    "size.n_head=2",
    "size.n_clusters=4",
    "training.batch_size=4",
    "data._target_=tests.recipe.test_trajectories.Decay",
    "normalize.embedding=channels",
)


def train_decay(file, output, *overrides):
    torch.set_num_threads(1)
    settings = (*TINY, f"data.root={file}", f"output={output}", *overrides)
    return run(composed("unsteady_heat", *settings), no_figures)


@pytest.mark.parametrize(
    "option", ["increments=false", "increments=true", "training.pushforward=true"]
)
def test_a_stopped_run_ends_where_an_unbroken_one_does(file, tmp_path, monkeypatch, option):
    overrides = (
        option,
        "data.windows=2",
        "training.epochs=3",
        "validation.fraction=0.25",
    )
    found = train_decay(file, tmp_path / "unbroken", *overrides)
    calls = iter(range(1, 100))

    def stop(meter):
        if next(calls) == 9:  # in the second epoch, of six steps
            raise KeyboardInterrupt

    monkeypatch.setattr(Meter, "step", stop)
    with pytest.raises(KeyboardInterrupt):
        train_decay(file, tmp_path / "stopped", *overrides)
    monkeypatch.undo()
    again = train_decay(file, tmp_path / "stopped", *overrides)
    expected = weights(tmp_path / "unbroken/checkpoints/last")
    for name, value in weights(tmp_path / "stopped/checkpoints/last").items():
        assert torch.equal(value, expected[name]), name
    assert metrics(tmp_path / "stopped") == metrics(tmp_path / "unbroken")
    assert len(found["test_step_rel_l2"]) == N_FRAMES - 2
    assert again["test_step_rel_l2"] == found["test_step_rel_l2"]
    assert (found["steps_short"], found["steps_long"]) == (3, N_FRAMES - 2)
    assert len(history(tmp_path / "stopped")) == 3


@pytest.mark.parametrize("option", ["increments=true", "training.pushforward=true"])
def test_what_is_of_rollouts_alone(tmp_path, option):
    folder = tmp_path / "block"
    folder.mkdir()
    with pytest.raises(ValueError, match=f"{option}: Plasticity has no frames that follow"):
        train(write_block(folder), tmp_path / "run", option, benchmark="plasticity")
