# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Rollouts and series at given times: what is predicted, trained on, measured and written."""

import h5py
import numpy as np
import pytest
import torch
from physicsnemo.core import Module
from tensordict import TensorDict

from physicsnemo_cano.datapipes import Channel, NavierStokes, Plasticity
from physicsnemo_cano.recipe.fit import Meter
from physicsnemo_cano.recipe.normalization import Statistics
from physicsnemo_cano.recipe.prediction import Instants, Rollout
from tests.recipe.helpers import (
    evaluate,
    history,
    metrics,
    train,
    train_elsewhere,
    weights,
    write_block,
    write_torus,
)

CPU = torch.device("cpu")
ALL_CHANNELS = dict.fromkeys(("embedding", "fx", "target"), "channels")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return {
        "navier_stokes": write_torus(tmp_path_factory.mktemp("torus")),
        "plasticity": write_block(tmp_path_factory.mktemp("block")),
    }


SMALL = {
    "navier_stokes": ("training.batch_size=4", "model.ref=2"),
    "plasticity": ("training.batch_size=4",),
}


@pytest.fixture(scope="module", params=["navier_stokes", "plasticity"])
def finished(request, data, tmp_path_factory):
    output = tmp_path_factory.mktemp("finished") / "run"
    benchmark = request.param
    train(data[benchmark], output, *SMALL[benchmark], benchmark=benchmark)
    return benchmark, output


# Two channels a frame, three frames in, four out.
class _Frames:
    path, series, n_static = "frames", "rollout", 0
    targets = (Channel("u"), Channel("v"))

    def __len__(self):
        return 3

    def __getitem__(self, index):
        frames = torch.randn(7, 5, 2, generator=torch.Generator().manual_seed(index))
        frames = frames * torch.tensor([1.0, 10.0]) + torch.tensor([3.0, -2.0])
        frames[:3] += 1  # so that input and target have different means
        sample = {
            "embedding": torch.rand(5, 2),
            "fx": frames[:3].movedim(0, 1).flatten(1),
            "target": frames[3:].movedim(0, 1).flatten(1),
        }
        return TensorDict(sample), {}


def test_all_frames_share_one_scale():
    reader = _Frames()
    found = Statistics.measure(reader, ALL_CHANNELS)
    for key in ("fx", "target"):
        values = torch.cat([reader[i][0][key].reshape(-1, 2) for i in range(3)])
        repeats = 3 if key == "fx" else 1
        torch.testing.assert_close(found.means[key], values.mean(0).repeat(repeats))
        torch.testing.assert_close(found.stds[key], values.std(0, correction=0).repeat(repeats))
    assert found.mean_target.shape == (5, 8)
    with pytest.raises(ValueError, match=r"normalize\.target=nodes needs one field a sample"):
        Statistics.measure(reader, {"target": "nodes"})


class _Far(_Frames):
    """Inputs that readers leave in float64: far from zero beside how much they vary."""

    def __getitem__(self, index):
        sample, info = super().__getitem__(index)
        sample["fx"] = sample["fx"].double() + torch.tensor([1e7, 0.0]).double().repeat(3)
        return sample, info


def test_frames_far_from_zero_share_one_scale_too():
    near, far = (Statistics.measure(reader, ALL_CHANNELS) for reader in (_Frames(), _Far()))
    shift = torch.tensor([1e7, 0.0]).double().repeat(3)
    torch.testing.assert_close(
        far.means["fx"] - shift, near.means["fx"].double(), rtol=0, atol=1e-5
    )
    torch.testing.assert_close(far.stds["fx"], near.stds["fx"])
    assert torch.equal(far.means["target"], near.means["target"])


class _Law(torch.nn.Module):
    """The next frame is the mean of the last two, a factor and an offset, in physical units."""

    def __init__(self, statistics, factor=0.9, offset=0.3):
        super().__init__()
        self.statistics, self.factor, self.offset = statistics, factor, offset
        self.calls = 0

    def forward(self, fx, embedding):
        self.calls += 1
        means, stds = self.statistics.means, self.statistics.stds
        frames = (fx * stds["fx"] + means["fx"]).unflatten(-1, (-1, 2))
        following = self.factor * (frames[..., -1, :] + frames[..., -2, :]) / 2 + self.offset
        return (following - means["target"]) / stds["target"]


@pytest.fixture
def rollout():
    reader = _Frames()
    statistics = Statistics.measure(reader, ALL_CHANNELS)
    raw = torch.stack([reader[i][0] for i in range(3)])
    batch = statistics.inputs()(raw.clone())
    return Rollout(_Law(statistics), None, statistics, CPU), raw, batch


def law(last, before):
    return 0.9 * (last + before) / 2 + 0.3


def test_a_rollout_feeds_on_its_own_frames(rollout):
    predict, raw, batch = rollout
    fed = batch["fx"].clone()
    errors, prediction = predict.errors(batch)
    frames = list(raw["fx"].unflatten(-1, (3, 2)).unbind(-2))
    for _ in range(4):
        frames.append(law(frames[-1], frames[-2]))
    expected = torch.cat(frames[3:], -1)
    torch.testing.assert_close(prediction, expected, rtol=1e-5, atol=1e-5)
    difference = (expected - raw["target"]).flatten(1).norm(dim=1)
    torch.testing.assert_close(errors, difference / raw["target"].flatten(1).norm(dim=1))
    assert torch.equal(batch["fx"], fed)  # nothing of the batch has changed
    assert predict.model.calls == 4


def test_a_rollout_is_trained_on_true_frames(rollout):
    predict, raw, batch = rollout
    prediction, target, mask = predict.training_step(batch, torch.Generator())
    frames = torch.cat([raw["fx"], raw["target"]], -1).unflatten(-1, (7, 2))
    expected = law(frames[..., 2:6, :], frames[..., 1:5, :]).movedim(2, 1).flatten(0, 1)
    torch.testing.assert_close(prediction, expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(target, frames[..., 3:, :].movedim(2, 1).flatten(0, 1))
    assert mask is None
    assert predict.model.calls == 1


def test_each_row_of_a_training_step_has_its_samples_mask(rollout):
    predict, _, batch = rollout
    batch["mask"] = torch.rand(3, 5) > 0.5
    _, _, mask = predict.training_step(batch, torch.Generator())
    assert torch.equal(mask, batch["mask"].repeat_interleave(4, 0))


class _Clock(torch.nn.Module):
    def forward(self, fx, embedding, time):
        return time[:, None, None] * embedding


def test_a_series_is_called_at_its_times():
    times = torch.tensor([[0.5, 1.0, 2.0], [0.1, 0.2, 0.3]])
    x = torch.rand(2, 6, 2) + 0.1
    series = torch.cat([times[:, i, None, None] * x for i in range(3)], -1)
    fields = {"embedding": x, "fx": torch.zeros(2, 6, 0), "times": times, "target": series}
    batch = TensorDict(fields, batch_size=[2])

    class Reader(_Frames):
        series = "instants"

        def __getitem__(self, index):
            return batch[index % 2], {}

    statistics = Statistics.measure(Reader(), {})
    predict = Instants(_Clock(), None, statistics, CPU)
    errors, prediction = predict.errors(batch)
    torch.testing.assert_close(prediction, series)
    assert errors.max() < 1e-6
    seen = set()
    for seed in range(20):
        pred, target, _ = predict.training_step(batch, torch.Generator().manual_seed(seed))
        torch.testing.assert_close(pred, target)
        (index,) = (i for i in range(3) if torch.equal(target, series[..., 2 * i : 2 * i + 2]))
        seen.add(index)
    assert seen == {0, 1, 2}


def test_errors_follow_from_the_predictions(finished):
    _, output = finished
    found, channels = metrics(output), {"navier_stokes": 1, "plasticity": 4}[finished[0]]
    whole, frames = [], []
    with h5py.File(output / "predictions.h5") as file:
        for group in file.values():
            target = group["target"][()].reshape(
                -1, group["target"].shape[-1] // channels, channels
            )
            error = group["prediction"][()].reshape(target.shape) - target
            whole.append(np.linalg.norm(error) / np.linalg.norm(target))
            norms = np.linalg.norm(target, axis=(0, 2))
            frames.append(np.linalg.norm(error, axis=(0, 2)) / norms)
    assert np.shape(frames) == (3, {"navier_stokes": 10, "plasticity": 20}[finished[0]])
    assert found["test_rel_l2"] == pytest.approx(np.mean(whole), rel=1e-5)
    assert found["test_frame_rel_l2"] == pytest.approx(np.mean(frames), rel=1e-5)


def test_predictions_are_the_checkpoints(finished, data):
    """Called by hand, frame by frame, the stored model gives what the run has written."""
    benchmark, output = finished
    (file,) = (output / "checkpoints/last").glob("*.mdlus")
    model, scales = Module.from_checkpoint(str(file)).eval(), np.load(output / "normalization.npz")
    scale = {key: torch.from_numpy(scales[key]) for key in scales.files}

    def normal(key, value):
        return (value - scale[f"mean_{key}"]) / scale[f"std_{key}"]

    reader = {"navier_stokes": NavierStokes, "plasticity": Plasticity}[benchmark]
    options = {"stride": 2} if benchmark == "navier_stokes" else {}
    sample = reader(data[benchmark], "test", **options)[2][0].unsqueeze(0)
    shape = {"navier_stokes": (4, 4), "plasticity": (6, 4)}[benchmark]
    x = normal("embedding", sample["embedding"]).unflatten(1, shape)
    frames = []
    with torch.no_grad():
        if benchmark == "navier_stokes":
            window = sample["fx"]
            for _ in range(10):
                output_ = model(normal("fx", window), x).reshape(1, -1, 1)
                frames.append(output_ * scale["std_target"] + scale["mean_target"])
                window = torch.cat([window[..., 1:], frames[-1]], -1)
        else:
            for time in sample["times"][0]:
                output_ = model(normal("fx", sample["fx"]), x, time=time.reshape(1))
                output_ = output_.reshape(1, -1, 4)
                frames.append(output_ * scale["std_target"] + scale["mean_target"])
    with h5py.File(output / "predictions.h5") as file:
        written = file["0002/prediction"][()].reshape(frames[0].shape[1], -1)
    np.testing.assert_allclose(written, torch.cat(frames, -1)[0], rtol=1e-4, atol=1e-4)


def test_evaluating_repeats_the_numbers(finished, data):
    benchmark, output = finished
    again = evaluate(data[benchmark], output / "checkpoints" / "last", benchmark=benchmark)
    for key in ("test_rel_l2", "test_frame_rel_l2"):
        assert again[key] == pytest.approx(metrics(output)[key], rel=1e-6)


def test_a_stopped_run_ends_where_an_unbroken_one_does(finished, data, tmp_path, monkeypatch):
    benchmark, output = finished
    calls = iter(range(1, 100))

    def stop(meter):
        if next(calls) == 5:  # in the middle of the second epoch
            raise KeyboardInterrupt

    again = tmp_path / "run"
    arguments = (data[benchmark], again, *SMALL[benchmark])
    monkeypatch.setattr(Meter, "step", stop)
    with pytest.raises(KeyboardInterrupt):
        train(*arguments, benchmark=benchmark)
    monkeypatch.undo()
    assert not (again / "metrics.json").exists()
    train(*arguments, benchmark=benchmark)
    expected = weights(output / "checkpoints/last")
    for name, value in weights(again / "checkpoints/last").items():
        assert torch.equal(value, expected[name]), name
    assert metrics(again) == metrics(output)


@pytest.mark.parametrize("model", ["transolver", "flare"])
def test_other_models_run_on_the_same_series(model, finished, data, tmp_path):
    benchmark, _ = finished
    overrides = (*SMALL[benchmark], f"model={model}", "training.epochs=1")
    found = train(data[benchmark], tmp_path, *overrides, benchmark=benchmark)
    assert 0 < found["test_rel_l2"] < 20


def test_training_lowers_the_error(finished, data, tmp_path):
    benchmark, _ = finished
    overrides = (*SMALL[benchmark], "training.epochs=40")
    train(data[benchmark], tmp_path, *overrides, benchmark=benchmark)
    errors = [line["test_rel_l2"] for line in history(tmp_path)]
    assert errors[-1] < 0.3 * errors[0]


def test_two_processes_draw_the_same_times(data, tmp_path):
    overrides = ("training.optimizer=adamw", "training.lr=1e-3", "training.epochs=2")
    for name, n_processes in (("one", 1), ("two", 2)):
        train_elsewhere(
            n_processes,
            "plasticity",
            data["plasticity"],
            tmp_path / name,
            *SMALL["plasticity"],
            *overrides,
        )
    one, two = metrics(tmp_path / "one"), metrics(tmp_path / "two")
    for key in ("train_rel_l2", "test_rel_l2", "test_frame_rel_l2"):
        assert two[key] == pytest.approx(one[key], rel=1e-4), key
