# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""What a run writes, repeats and refuses."""

import csv
import json
import os
import shutil

import h5py
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from filelock import FileLock
from hydra import compose, initialize_config_dir
from tensordict import TensorDict

from physicsnemo_cano.recipe import forward, run
from physicsnemo_cano.recipe.checkpoint import find_checkpoint
from physicsnemo_cano.recipe.config import CONF, MUON, Training
from physicsnemo_cano.recipe.evaluation import mean_predictor_error
from physicsnemo_cano.recipe.folder import History
from physicsnemo_cano.recipe.normalization import Statistics
from physicsnemo_cano.recipe.optimizers import build_optimizer, matrices
from tests.recipe.helpers import (
    TINY,
    composed,
    config,
    evaluate,
    history,
    metrics,
    train,
    train_embedded,
    weights,
    write_mini,
)

KEYS = (
    "benchmark model scale data seed epochs n_params train_rel_l2 test_rel_l2 test_rel_l2_std "
    "mean_predictor_rel_l2 train_seconds inference_ms_per_sample peak_memory_mb device "
    "test_fields"
)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_mini(tmp_path_factory.mktemp("data") / "mini.h5")


@pytest.fixture(scope="module")
def finished(data, tmp_path_factory):
    output = tmp_path_factory.mktemp("finished") / "run"
    train(data, output)
    return output


def test_files_of_a_run(finished):
    found = json.loads((finished / "metrics.json").read_text())
    assert list(found) == KEYS.split()
    assert (found["benchmark"], found["model"], found["scale"]) == ("airfoil", "cano", "mini")
    assert (found["data"], found["seed"], found["epochs"]) == ("generated", 0, 3)
    assert found["n_params"] == sum(
        v.numel() for v in weights(finished / "checkpoints/last").values()
    )
    assert found["inference_ms_per_sample"] > 0
    assert found["peak_memory_mb"] > 100
    field = found["test_fields"]["Mach number"]  # the one there is
    assert field["relative_l2"] == pytest.approx(found["test_rel_l2"], rel=1e-5)
    lines = [json.loads(text) for text in (finished / "metrics.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [1, 2, 3]
    assert lines[-1]["test_rel_l2"] == pytest.approx(found["test_rel_l2"], rel=1e-6)
    assert lines[-1]["train_rel_l2"] == found["train_rel_l2"]
    # Test samples choose nothing, so without validation samples there is no best.
    assert [p.name for p in (finished / "checkpoints").iterdir()] == ["last"]
    assert (finished / "checkpoints/last/CANO.0.3.mdlus").exists()
    assert (finished / "figures/drawn.txt").exists()


def test_numbers_follow_from_the_predictions(finished, data):
    found = metrics(finished)
    with h5py.File(finished / "predictions.h5") as file, h5py.File(data) as raw:
        errors = []
        mean = raw["mach"][:9].mean(0)
        baseline = []
        for index, group in enumerate(file.values()):
            target = raw["mach"][12 + index]  # the last 20 % of 15 samples
            np.testing.assert_array_equal(group["target"][..., 0], target)
            np.testing.assert_array_equal(group["embedding"][..., 0], raw["x"][12 + index])
            norm = np.linalg.norm(target)
            errors.append(np.linalg.norm(group["prediction"][..., 0] - target) / norm)
            baseline.append(np.linalg.norm(mean - target) / norm)
    assert found["test_rel_l2"] == pytest.approx(np.mean(errors), rel=1e-5)
    assert found["test_rel_l2_std"] == pytest.approx(np.std(errors), rel=1e-4)
    assert found["mean_predictor_rel_l2"] == pytest.approx(np.mean(baseline), rel=1e-5)
    with (finished / "test_errors.csv").open() as file:
        written = [float(row["rel_l2"]) for row in csv.DictReader(file)]
    np.testing.assert_allclose(written, errors, rtol=1e-5)


def test_training_lowers_the_error(data, tmp_path):
    found = train(data, tmp_path / "run", "training.epochs=80", "training.lr=1e-2")
    assert found["test_rel_l2"] < 0.5 * found["mean_predictor_rel_l2"]


def test_a_training_that_diverges_stops(data, tmp_path):
    with pytest.raises(FloatingPointError, match=r"lower training\.lr"):
        train(data, tmp_path / "run", "training=adamw", "training.lr=1e30", "training.epochs=3")
    assert not (tmp_path / "run" / "metrics.json").exists()


def test_a_finished_run_is_reported_again(finished, data, monkeypatch, caplog):
    before = {p: p.stat().st_mtime_ns for p in finished.rglob("*") if p.is_file()}
    monkeypatch.setattr("physicsnemo_cano.recipe.runs.fit", None)  # would fail if called
    with caplog.at_level("INFO", "cano"):
        again = train(data, finished)
    assert again == json.loads((finished / "metrics.json").read_text())
    assert "nothing is trained again" in caplog.text
    assert f"{again['test_rel_l2']:.5f}" in caplog.text
    assert {p: p.stat().st_mtime_ns for p in finished.rglob("*") if p.is_file()} == before


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("training.lr=0.1", r"training\.lr: 0\.004 there, 0\.1 now"),
        ("model=flare", r"model\.name: cano there, flare now"),
        ("data.n_train=8", r"data\.n_train: 9 there, 8 now"),
        ("seed=1", r"seed: 0 there, 1 now"),
        ("+model.dropout=0.2", r"model\.dropout: absent there, 0\.2 now"),
    ],
)
def test_another_configuration_is_refused(override, message, finished, data):
    with pytest.raises(FileExistsError, match=message):
        train(data, finished, override)


def test_a_folder_with_other_files_is_refused(data, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="not empty and holds no run"):
        train(data, tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["notes.txt"]


@pytest.mark.parametrize("name", ["last", "file"])
def test_evaluate_repeats_the_numbers(name, finished, data, tmp_path):
    checkpoint = finished / "checkpoints/last"
    if name == "file":
        (checkpoint,) = checkpoint.glob("*.mdlus")
    # No training data are needed.
    moved = data.rename(tmp_path / "moved.h5")
    try:
        found = evaluate(moved, checkpoint)
    finally:
        moved.rename(data)
    assert found["test_rel_l2"] == pytest.approx(metrics(finished)["test_rel_l2"], rel=1e-6)
    folders = list((finished / "evaluate").glob("epoch0003_moved_*"))
    assert metrics(folders[-1]) == metrics(finished)
    for file in ("test_errors.csv", "figures/drawn.txt"):
        assert (folders[-1] / file).read_text() == (finished / file).read_text()


def test_evaluate_applies_what_it_can_and_refuses_the_rest(finished, data):
    checkpoint = finished / "checkpoints/last"
    fewer = evaluate(data, checkpoint, "data.n_test=2", "metrics=[mae]", "training.batch_size=1")
    with (finished / "test_errors.csv").open() as file:
        errors = [float(row["rel_l2"]) for row in csv.DictReader(file)]
    assert fewer["test_rel_l2"] == pytest.approx(np.mean(errors[:2]), rel=1e-6)
    assert fewer["test_mae"] > 0
    evaluate(data, checkpoint, "scale=mini", "size.n_layers=1")  # as trained
    for override, had in (("seed=5", "seed=0"), ("model=flare", "model.name=cano")):
        with (
            pytest.raises(ValueError, match=rf"{had}|model\.").value.__class__
            if False
            else (
                pytest.raises(ValueError, match=r"mode=evaluate: the checkpoint was trained with")
            )
        ):
            evaluate(data, checkpoint, override)
    with pytest.raises(ValueError, match=r"return_hydra_config=True"):
        run(config_without_hydra("mode=evaluate", f"checkpoint={checkpoint}", f"data.root={data}"))


def config_without_hydra(*overrides):
    cfg = composed("airfoil", *overrides)
    from omegaconf import OmegaConf

    return OmegaConf.masked_copy(cfg, [key for key in cfg if key != "hydra"])


def test_evaluations_of_two_files_of_one_name_are_kept_apart(finished, data, tmp_path):
    checkpoint = finished / "checkpoints/last"
    for number in range(2):
        (tmp_path / str(number)).mkdir()
        shutil.copyfile(data, tmp_path / str(number) / "same.h5")
        evaluate(tmp_path / str(number) / "same.h5", checkpoint)
    assert len(list((finished / "evaluate").glob("epoch0003_same_*"))) == 2


def test_evaluate_on_a_finer_mesh(data, tmp_path):
    finer = write_mini(tmp_path / "finer.h5", shape=(25, 11))
    output = tmp_path / "run"
    train(data, output, "normalize.fx=null", "normalize.target=channels", "as_cloud=false")

    def figures(results, folder):
        assert results.clusters.shape == (2, 25 * 11, 4)
        np.testing.assert_allclose(results.clusters.sum(-1), 1.0, rtol=1e-5)

    found = evaluate(finer, output / "checkpoints/last", figures=figures)
    # The same fields on the doubled mesh: the error is of the same size, not another model's.
    assert found["test_rel_l2"] == pytest.approx(metrics(output)["test_rel_l2"], rel=0.3)
    (folder,) = (output / "evaluate").iterdir()
    with h5py.File(folder / "predictions.h5") as file:
        assert file["0002/prediction"].shape == (25, 11, 1)


def test_evaluate_on_another_mesh_than_the_means(finished, tmp_path):
    finer = write_mini(tmp_path / "finer.h5", shape=(25, 11))
    with pytest.raises(ValueError, match=r"on 78 points, and .* has 275.*normalize.fx=channels"):
        evaluate(finer, finished / "checkpoints/last")


def test_evaluate_without_checkpoint(finished, data, tmp_path):
    with pytest.raises(ValueError, match="needs checkpoint="):
        train(data, finished, "mode=evaluate")
    with pytest.raises(FileNotFoundError, match=r"expected a \.mdlus file or a folder"):
        find_checkpoint(tmp_path)


def test_a_validation_set_chooses_the_best_epoch(data, tmp_path):
    found = train(data, tmp_path / "run", "validation.fraction=0.3", "training.lr=0.05")
    lines = history(tmp_path / "run")
    errors = [line["validation_rel_l2"] for line in lines]
    assert found["epochs"] == 1 + int(np.argmin(errors))
    assert found["validation_rel_l2"] == min(errors)
    expected = lines[found["epochs"] - 1]["test_rel_l2"]
    assert found["test_rel_l2"] == pytest.approx(expected, rel=1e-6)
    # Six samples of nine are left to train on.
    with h5py.File(data) as raw, np.load(tmp_path / "run/normalization.npz") as scales:
        mean = raw["mach"][:6].mean(0).reshape(-1, 1)
        np.testing.assert_allclose(scales["mean_target_field"], mean, rtol=1e-6)


def test_training_stops_when_the_validation_error_does_not_fall(data, tmp_path):
    other = write_mini(tmp_path / "other.h5", n=20)
    options = (f"validation.root={other}", "validation.patience=2", "training.epochs=30")
    found = train(data, tmp_path / "run", *options, "training.lr=0.5")
    lines = history(tmp_path / "run")
    assert len(lines) == found["epochs"] + 2 < 30
    with pytest.raises(ValueError, match="holds the test samples, which must choose nothing"):
        train(data, tmp_path / "same", f"validation.root={data}")
    assert not (tmp_path / "same").exists()


def test_a_stopped_training_stays_stopped(data, tmp_path):
    options = ("validation.fraction=0.3", "validation.patience=1", "training.lr=0.5")
    found = train(data, tmp_path, *options, "training.epochs=20")
    (tmp_path / "metrics.json").unlink()
    again = train(data, tmp_path, *options, "training.epochs=20")
    assert again["test_rel_l2"] == found["test_rel_l2"]


def test_a_refused_setting_leaves_no_folder(data, tmp_path):
    with pytest.raises(ValueError, match="choose from null, bf16; got 'fp16'"):
        train(data, tmp_path / "run", "training.amp=fp16")
    assert not (tmp_path / "run").exists()


def test_before_the_first_checkpoint_a_folder_is_free(data, tmp_path, monkeypatch):
    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("physicsnemo_cano.recipe.fit.Meter.step", stop)
    with pytest.raises(KeyboardInterrupt):
        train(data, tmp_path / "run", "data.n_train=8")
    monkeypatch.undo()
    found = train(data, tmp_path / "run", "training.batch_size=3")
    expected = train(data, tmp_path / "other", "training.batch_size=3")
    assert found["test_rel_l2"] == expected["test_rel_l2"]


def test_a_second_command_says_that_the_first_is_running(data, tmp_path):
    with (
        FileLock(tmp_path / ".lock"),
        pytest.raises(FileExistsError, match=r"Another process is running in .*choose another"),
    ):
        train(data, tmp_path)
    assert os.listdir(tmp_path) == [".lock"]
    assert train(data, tmp_path)["epochs"] == 3


@pytest.mark.parametrize("split", ["train", "test"])
def test_samples_that_cannot_be_used_are_refused_before_training(split, data, tmp_path):
    shutil.copyfile(data, tmp_path / "nan.h5")
    with h5py.File(tmp_path / "nan.h5", "r+") as file:
        file["mach"][{"train": 2, "test": 13}[split], 3, 4] = np.nan
    index = {"train": 2, "test": 1}[split]
    message = rf"nan\.h5: sample {index} of the {split} set has 1 values of target .*\(22, 0\)"
    with pytest.raises(ValueError, match=message):
        train(tmp_path / "nan.h5", tmp_path / "run")
    assert not (tmp_path / "run" / "metrics.jsonl").exists()


@pytest.mark.parametrize("power", [-30, -12, 30])
def test_units_do_not_matter(power, data, tmp_path, finished):
    """The data in other units, of all fields or of the target alone."""
    unit = 10.0**power
    for keys in (("x", "y", "mach"), ("mach",)):
        with h5py.File(data) as raw, h5py.File(tmp_path / f"{len(keys)}.h5", "w") as file:
            for key in ("x", "y", "mach"):
                value = raw[key][()].astype(np.float64)
                file[key] = (value * (unit if key in keys else 1)).astype(np.float32)
        overrides = ("normalize.embedding=channels", "training=adamw")
        expected = train(data, tmp_path / f"{len(keys)}_one", *overrides)
        found = train(tmp_path / f"{len(keys)}.h5", tmp_path / f"{len(keys)}_run", *overrides)
        for key in ("test_rel_l2", "mean_predictor_rel_l2"):
            assert found[key] == pytest.approx(expected[key], rel=1e-3), key


def test_coordinates_far_from_zero_keep_their_digits(data, tmp_path):
    """Of float64 at 5e6 ± 3: the same score as round the origin."""
    with h5py.File(data) as raw, h5py.File(tmp_path / "far.h5", "w") as file:
        for key in ("x", "y", "mach"):
            file[key] = raw[key][()].astype(np.float64) + (5e6 if key != "mach" else 0)
    overrides = ("normalize.embedding=channels", "normalize.fx=channels", "training=adamw")
    expected = train(data, tmp_path / "near", *overrides)
    found = train(tmp_path / "far.h5", tmp_path / "run", *overrides)
    assert found["test_rel_l2"] == pytest.approx(expected["test_rel_l2"], rel=1e-4)
    with pytest.raises(ValueError, match=r"embedding lies so far .*normalize\.embedding=channels"):
        train(tmp_path / "far.h5", tmp_path / "refused")


# Each changes the default; together they are every setting of training that there is.
SETTINGS = (
    "training.optimizer=adamw",
    "training.weight_decay=0.1",
    "training.clip=1e9",
    "training.loss=mse",
    "training.loss=mae",
    "training.loss=max_error",
    "training.gradient_loss=0.1",
    "training.amp=bf16",
    "training.compile=true",
    "padding_mode=circular",
    "metrics=[mse,mae,max_error]",
    "data.weights=true",
    "model=transolver",
    "model=flare",
)


@pytest.mark.parametrize("setting", SETTINGS)
def test_every_setting_runs(setting, finished, data, tmp_path):
    found = train(data, tmp_path, setting, "as_cloud=false", "training.epochs=1")
    assert 0 < found["test_rel_l2"] < 1
    assert found["model"] == (setting[6:] if setting.startswith("model=") else "cano")
    if "compile" in setting or "metrics" in setting:
        same = train(data, tmp_path / "as_it_is", "as_cloud=false", "training.epochs=1")
        assert found["test_rel_l2"] == pytest.approx(same["test_rel_l2"], rel=1e-3)
    if "compile" in setting:
        (tmp_path / "metrics.json").unlink()  # a resumed run looks at the clusters, too
        again = train(data, tmp_path, setting, "as_cloud=false", "training.epochs=1")
        assert again["test_rel_l2"] == found["test_rel_l2"]


def test_metrics_follow_from_the_predictions(data, tmp_path):
    found = train(data, tmp_path, "metrics=[mse,mae,max_error]", "training.epochs=1")
    with h5py.File(tmp_path / "predictions.h5") as file:
        errors = np.array([g["prediction"][()] - g["target"][()] for g in file.values()])
    errors = np.abs(errors.reshape(3, -1).astype(float))
    assert found["test_mse"] == pytest.approx((errors**2).mean(), rel=1e-5)
    assert found["test_mae"] == pytest.approx(errors.mean(), rel=1e-5)
    assert found["test_max_error"] == pytest.approx(errors.max(1).mean(), rel=1e-5)


def test_paper_scale_says_what_it_needs(tmp_path, data):
    cfg = config(data, tmp_path / "run", "scale=paper", "data.root=???")
    with pytest.raises(FileNotFoundError, match=r"NACA_Cylinder_Q\.npy.*generate\.py"):
        run(cfg, embedded_data=data)
    assert not (tmp_path / "run").exists()


def test_chunks_and_weights_change_only_what_they_should(finished, data, tmp_path):
    seen = {}

    def figures(results, folder):
        seen["clusters"] = results.clusters

    found = train(data, tmp_path / "chunked", "+model.chunk_size=20", figures=figures)
    assert found["test_rel_l2"] == pytest.approx(metrics(finished)["test_rel_l2"], rel=1e-3)
    assert seen["clusters"].shape == (2, 13 * 6, 4)
    weighted = train(data, tmp_path / "weighted", "data.weights=true")
    assert weighted["test_rel_l2"] != pytest.approx(found["test_rel_l2"], rel=1e-3)


def test_a_run_copied_and_data_moved_goes_on(finished, data, tmp_path):
    copy, moved = tmp_path / "copy", tmp_path / "moved.h5"
    embedded = train_embedded(data, tmp_path / "run")
    shutil.copytree(tmp_path / "run", copy)
    shutil.copyfile(data, moved)
    (copy / "metrics.json").unlink()
    again = train_embedded(moved, copy)
    assert again["test_rel_l2"] == embedded["test_rel_l2"]


def test_what_else_is_in_the_checkpoints_folder_stays(data, tmp_path):
    mine = tmp_path / "checkpoints" / "mine"
    train(data, tmp_path, "training.epochs=1")
    mine.mkdir()
    (mine.parent / "notes.txt").write_text("kept")
    (tmp_path / "metrics.json").unlink()
    train(data, tmp_path, "training.epochs=1")
    assert mine.is_dir()
    assert (mine.parent / "notes.txt").read_text() == "kept"


def test_the_examples_figures_are_drawn(data, tmp_path):
    from examples.airfoil.figures import draw

    train(data, tmp_path, "training.epochs=1", figures=draw)
    expected = "clusters errors mach_median mach_worst training wall_median wall_worst"
    drawn = {file.stem: file for file in (tmp_path / "figures").glob("*.png")}
    assert sorted(drawn) == expected.split()
    for file in drawn.values():
        pixels = plt.imread(file)
        assert min(pixels.shape[:2]) > 300
        assert pixels[..., :3].std() > 0.02  # not blank


class _Model(torch.nn.Module):
    def forward(self, fx, embedding, weights=None):
        self.seen = {"fx": fx, "embedding": embedding, "weights": weights}
        return embedding.sum(-1, keepdim=True)


def test_call_model_gives_what_the_model_takes():
    batch = TensorDict(
        {
            "fx": torch.zeros(2, 12, 0),
            "embedding": torch.arange(48.0).reshape(2, 12, 2),
            "weights": torch.ones(2, 12),
            "mask": torch.ones(2, 12, dtype=torch.bool),
        }
    )
    model = _Model()
    output = forward.call_model(model, batch, (3, 4))
    assert model.seen["embedding"].shape == (2, 3, 4, 2)
    assert model.seen["weights"] is batch["weights"]
    torch.testing.assert_close(output, batch["embedding"].sum(-1, keepdim=True))
    del batch["weights"]
    forward.call_model(model, batch, None)
    assert model.seen["embedding"].shape == (2, 12, 2)
    assert model.seen["weights"] is None


def test_inputs_of_all_points_are_repeated_for_models_that_need_it():
    from physicsnemo_cano import CANO

    fx = torch.tensor([[[1.0, 2.0]], [[3.0, 4.0]]])
    batch = TensorDict({"fx": fx, "embedding": torch.rand(2, 5, 3)})
    model = _Model()
    forward.call_model(model, batch, None)
    assert torch.equal(model.seen["fx"], fx.repeat(1, 5, 1))
    cano = CANO(2, 1, 3, n_layers=1, n_hidden=8, n_head=2).eval()
    seen = []
    cano.register_forward_pre_hook(lambda _, args, kw: seen.append(kw["fx"]), with_kwargs=True)
    once = forward.call_model(cano, batch, None)
    assert seen[0].shape == (2, 1, 2)
    batch["fx"] = fx.repeat(1, 5, 1)
    repeated = forward.call_model(cano, batch, None)
    torch.testing.assert_close(once, repeated)


def test_muon_gets_the_matrices_only():
    from physicsnemo_cano import CANO

    model = CANO(0, 1, 2, n_layers=1, n_hidden=16, n_head=2, slice_num=4, structured_shape=(6, 5))
    names = {id(p): name for name, p in model.named_parameters()}
    chosen = {names[id(p)] for p in matrices(model)}
    assert "blocks.0.attention.to_qkv.weight" in chosen
    assert not chosen & {"encoder.layers.0.weight", "decoder.1.weight"}
    for name, p in model.named_parameters():
        if name.endswith("bias") or "norm" in name or "centroids" in name or p.ndim != 2:
            assert name not in chosen
    optimizer, _ = build_optimizer(model, Training(**MUON), 10)
    muon, adamw = optimizer.optimizers
    assert isinstance(muon, torch.optim.Muon)
    covered = [id(p) for o in (muon, adamw) for g in o.param_groups for p in g["params"]]
    assert sorted(covered) == sorted(names)


def test_schedule_is_one_cycle_and_leaves_momentum():
    model = torch.nn.Sequential(*(torch.nn.Linear(3, 3) for _ in range(3)))
    optimizer, schedule = build_optimizer(model, Training(**MUON), 100)
    rates, momenta = [], set()
    for _ in range(99):
        optimizer.step()
        schedule.step()
        rates.append([group["lr"] for group in optimizer.param_groups])
        momenta.add((optimizer.param_groups[0]["momentum"], optimizer.param_groups[1]["betas"]))
    assert max(rates)[0] == pytest.approx(4e-3)
    assert rates[-1][0] < 1e-6
    assert all(a == b for a, b in rates)
    assert momenta == {(0.95, (0.9, 0.999))}


class _Clouds:
    """Two clouds of different size, one of them padded."""

    path = "clouds"
    series, n_static = None, 0

    def __init__(self, padding=99.0):
        self.padding = padding

    def __len__(self):
        return 2

    def __getitem__(self, index):
        x = torch.tensor([[[0.0], [2.0], [self.padding]], [[4.0], [6.0], [8.0]]])[index]
        mask = torch.tensor([[True, True, False], [True, True, True]])[index]
        sample = {"embedding": x, "fx": torch.ones(1, 1), "target": 2 * x, "mask": mask}
        return TensorDict(sample), {}


def test_statistics_leave_padding_out():
    found = Statistics.measure(_Clouds(), dict.fromkeys(("embedding", "fx", "target"), "channels"))
    values = torch.tensor([0.0, 2.0, 4.0, 6.0, 8.0])
    torch.testing.assert_close(found.means["embedding"], values.mean().reshape(1))
    torch.testing.assert_close(found.stds["target"], 2 * values.std(correction=0).reshape(1))
    assert found.stds["fx"].item() == 1.0  # a constant has no scale


@pytest.mark.parametrize("padding", [99.0, float("nan")])
def test_the_baseline_leaves_padding_out(padding):
    clouds = _Clouds(padding)
    channels = dict.fromkeys(("embedding", "fx", "target"), "channels")
    found = mean_predictor_error(clouds, Statistics.measure(clouds, channels))
    # The mean is 8, the targets are (0, 4) and (8, 12, 16).
    errors = np.sqrt([(8**2 + 4**2) / (0 + 4**2), (0 + 4**2 + 8**2) / (8**2 + 12**2 + 16**2)])
    assert found == pytest.approx(errors.mean(), rel=1e-6)


def test_what_the_padding_holds_changes_no_number(tmp_path):
    """With the figures that any fields have."""
    found = {}
    sizes = [override for override in TINY if not override.startswith("data")]
    reader = ["data._target_=tests.recipe.helpers.PaddedClouds", f"data.root={tmp_path}"]
    for padding in ("0.0", "1e20", "nan"):
        own = ["+model=cano", "+training=adamw", "size.mlp_ratio=2", "benchmark=clouds"]
        with initialize_config_dir(str(CONF), version_base="1.3"):
            cfg = compose("recipe", [*own, *sizes, *reader, f"+data.padding={padding}"])
        cfg.output = str(tmp_path / padding)
        run(cfg)
        assert len(list((tmp_path / padding / "figures").glob("*.png"))) > 2
        found[padding] = metrics(tmp_path / padding)
    assert 0 < found["0.0"]["test_rel_l2"] < 2
    assert found["1e20"] == found["0.0"]
    assert found["nan"] == found["0.0"]


class _OneMesh(_Clouds):
    def __getitem__(self, index):
        target = torch.tensor([[1.0], [5.0]]) + (-1) ** index * torch.tensor([[1.0], [3.0]])
        return TensorDict({"embedding": target, "fx": torch.ones(2, 0), "target": target}), {}


def test_statistics_node_by_node():
    found = Statistics.measure(_OneMesh(), {"target": "nodes"})
    torch.testing.assert_close(found.means["target"], torch.tensor([[1.0], [5.0]]))
    torch.testing.assert_close(found.stds["target"], torch.tensor([5.0]).sqrt())  # of 1 and 3
    torch.testing.assert_close(found.mean_target, found.means["target"])
    with pytest.raises(ValueError, match=r"normalize\.target=nodes needs one field a sample"):
        Statistics.measure(_Clouds(), {"target": "nodes"})


def test_statistics_survive_the_file_and_invert(tmp_path):
    found = Statistics.measure(_Clouds(), {"target": "channels"})
    found.save(tmp_path / "normalization.npz")
    loaded = Statistics.load(tmp_path / "normalization.npz")
    assert loaded.means["embedding"].item() == 0.0
    assert loaded.stds["embedding"].item() == 1.0
    torch.testing.assert_close(loaded.mean_target, found.mean_target)
    output = torch.tensor([[[0.5]]])
    expected = 0.5 * found.stds["target"] + found.means["target"]
    result = loaded.scale("target", torch.device("cpu")).restore(output)
    torch.testing.assert_close(result, expected.reshape(1, 1, 1))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["normalization.npz"]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (torch.zeros(3, 1), "target of sample 0 is zero"),
        (torch.full((3, 1), torch.nan), "not finite in float32"),
    ],
)
def test_statistics_refuse_samples_without_an_error(target, message):
    class Reader(_Clouds):
        def __getitem__(self, index):
            sample, _ = super().__getitem__(index)
            return sample.set("target", target), {}

    with pytest.raises(ValueError, match=message):
        Statistics.measure(Reader(), {"target": "channels"})


def test_history_drops_a_cut_line_and_what_came_later(tmp_path):
    history = History(tmp_path / "metrics.jsonl")
    assert history.read() == []
    for epoch in (1, 2, 3):
        history.append({"epoch": epoch})
    with history.file.open("a") as file:
        file.write('{"epo')
    assert history.read() == [{"epoch": 1}, {"epoch": 2}, {"epoch": 3}]
    history.truncate(2)
    assert history.file.read_text() == '{"epoch": 1}\n{"epoch": 2}\n'
