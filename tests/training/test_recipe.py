"""What a run writes, repeats and refuses."""

import csv
import json
import shutil

import h5py
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from hydra import compose, initialize_config_dir
from tensordict import TensorDict

from physicsnemo_cano.training import forward
from physicsnemo_cano.training.checkpoint import find_checkpoint
from physicsnemo_cano.training.files import History
from physicsnemo_cano.training.normalization import Statistics
from physicsnemo_cano.training.optimizers import build_optimizer, matrices
from tests.training.recipe_helpers import (
    CONF,
    config,
    metrics,
    train,
    train_embedded,
    weights,
    write_mini,
)

KEYS = (
    "benchmark model scale data seed epochs n_params train_rel_l2 test_rel_l2 test_rel_l2_std "
    "mean_predictor_rel_l2 train_seconds inference_ms_per_sample peak_memory_mb device"
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
    lines = [json.loads(text) for text in (finished / "metrics.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [1, 2, 3]
    assert lines[-1]["test_rel_l2"] == pytest.approx(found["test_rel_l2"], rel=1e-6)
    assert lines[-1]["train_rel_l2"] == found["train_rel_l2"]
    best = 1 + int(np.argmin([line["test_rel_l2"] for line in lines]))
    assert (finished / "checkpoints/best").resolve().name == f"epoch{best:04d}"
    assert (finished / "checkpoints/last").resolve().name == "epoch0003"
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
    monkeypatch.setattr("physicsnemo_cano.training.recipe.fit", None)  # would fail if called
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


@pytest.mark.parametrize("name", ["last", "best", "file"])
def test_evaluate_repeats_the_numbers(name, finished, data, tmp_path, monkeypatch):
    checkpoint = finished / "checkpoints" / name
    if name == "file":
        (checkpoint,) = (finished / "checkpoints/last").glob("*.mdlus")
    # No training data are needed, nor the model's configuration.
    moved = data.rename(tmp_path / "moved.h5")
    overrides = ("mode=evaluate", f"checkpoint={checkpoint}", "model=flare", "seed=5")
    try:
        found = train(moved, tmp_path / "unused", *overrides)
    finally:
        moved.rename(data)
    lines = [json.loads(text) for text in (finished / "metrics.jsonl").read_text().splitlines()]
    line = min(lines, key=lambda line: line["test_rel_l2"]) if name == "best" else lines[-1]
    assert found["test_rel_l2"] == pytest.approx(line["test_rel_l2"], rel=1e-6)
    assert found["epochs"] == line["epoch"]
    assert (found["model"], found["seed"]) == ("cano", 0)
    folder = finished / "evaluate" / f"epoch{line['epoch']:04d}_moved"
    assert metrics(folder)["test_rel_l2"] == found["test_rel_l2"]
    if name == "last":
        for file in ("test_errors.csv", "figures/drawn.txt"):
            assert (folder / file).read_text() == (finished / file).read_text()
        assert metrics(folder) == metrics(finished)


def test_evaluate_on_a_finer_mesh(data, tmp_path):
    finer = write_mini(tmp_path / "finer.h5", shape=(25, 11))
    run = tmp_path / "run"
    train(data, run, "~normalize.fx", "normalize.target=channels", "as_cloud=false")
    checkpoint = f"checkpoint={run / 'checkpoints' / 'last'}"

    def figures(results, folder):
        assert results.clusters.shape == (2, 25 * 11, 4)
        np.testing.assert_allclose(results.clusters.sum(-1), 1.0, rtol=1e-5)

    found = train(finer, tmp_path / "unused", "mode=evaluate", checkpoint, figures=figures)
    # The same fields on the doubled mesh: the error is of the same size, not another model's.
    assert found["test_rel_l2"] == pytest.approx(metrics(run)["test_rel_l2"], rel=0.3)
    with h5py.File(run / "evaluate" / "epoch0003_finer" / "predictions.h5") as file:
        assert file["0002/prediction"].shape == (25, 11, 1)


def test_evaluate_on_another_mesh_than_the_means(finished, tmp_path):
    finer = write_mini(tmp_path / "finer.h5", shape=(25, 11))
    checkpoint = f"checkpoint={finished / 'checkpoints' / 'last'}"
    with pytest.raises(ValueError, match=r"on 78 points, and .* has 275.*normalize.fx=channels"):
        train(finer, tmp_path / "unused", "mode=evaluate", checkpoint)


def test_evaluate_without_checkpoint(finished, data, tmp_path):
    with pytest.raises(ValueError, match="needs checkpoint="):
        train(data, finished, "mode=evaluate")
    with pytest.raises(FileNotFoundError, match=r"expected a \.mdlus file or a folder"):
        find_checkpoint(tmp_path)


def test_unknown_choices_are_refused(data, tmp_path):
    for number, (override, message) in enumerate(
        (
            ("mode=test", "choose from train, evaluate; got 'test'"),
            ("training.optimizer=sgd", "choose from adamw, muon; got 'sgd'"),
            ("training.amp=fp8", "choose from null, bf16; got 'fp8'"),
            ("+normalize.mach=channels", "got mach: channels"),
            ("normalize.target=points", "got target: points"),
        )
    ):
        with pytest.raises(ValueError, match=message):
            train(data, tmp_path / str(number), override)


def test_paper_scale_says_what_it_needs(tmp_path, data):
    cfg = config(data, tmp_path / "run", "scale=paper", "data.root=???")
    from physicsnemo_cano.training import run

    with pytest.raises(FileNotFoundError, match=r"NACA_Cylinder_Q\.npy.*generate\.py"):
        run(cfg, None, embedded_data=data)
    assert not (tmp_path / "run").exists()


def test_paper_scale_is_the_papers():
    with initialize_config_dir(str(CONF), version_base="1.3"):
        cfg = compose("airfoil", ["scale=paper"])
    assert dict(cfg.size) == dict(n_layers=8, n_head=8, n_hidden=128, mlp_ratio=2, slice_num=32)
    assert (cfg.training.optimizer, cfg.training.lr) == ("adamw", 1e-3)
    assert (cfg.training.epochs, cfg.training.batch_size) == (500, 4)


def test_chunks_and_weights_change_only_what_they_should(finished, data, tmp_path):
    seen = {}

    def figures(results, folder):
        seen["clusters"] = results.clusters

    found = train(data, tmp_path / "chunked", "+model.chunk_size=20", figures=figures)
    assert found["test_rel_l2"] == pytest.approx(metrics(finished)["test_rel_l2"], rel=1e-3)
    assert seen["clusters"].shape == (2, 13 * 6, 4)
    weighted = train(data, tmp_path / "weighted", "data.weights=true")
    assert weighted["test_rel_l2"] != pytest.approx(found["test_rel_l2"], rel=1e-3)


def test_a_run_copied_without_links_and_data_moved_goes_on(finished, data, tmp_path):
    copy, moved = tmp_path / "copy", tmp_path / "moved.h5"
    embedded = train_embedded(data, tmp_path / "run")
    shutil.copytree(tmp_path / "run", copy)  # follows the links
    shutil.copyfile(data, moved)
    (copy / "metrics.json").unlink()
    again = train_embedded(moved, copy)
    assert again["test_rel_l2"] == embedded["test_rel_l2"]
    assert (copy / "checkpoints/last").is_symlink()
    assert weights(copy / "checkpoints/last").keys() == weights(copy / "checkpoints/best").keys()


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


@pytest.mark.parametrize("model", ["transolver", "flare"])
def test_other_models_run_on_the_same_data(model, data, tmp_path):
    found = train(data, tmp_path, f"model={model}", "training.epochs=1", "data.weights=true")
    assert found["model"] == model
    assert 0 < found["test_rel_l2"] < 1


def test_bf16_runs_and_differs(finished, data, tmp_path):
    found = train(data, tmp_path, "training.amp=bf16")
    assert found["test_rel_l2"] != metrics(finished)["test_rel_l2"]
    assert found["test_rel_l2"] == pytest.approx(metrics(finished)["test_rel_l2"], rel=0.3)


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
    optimizer, _ = build_optimizer(model, "muon", 1e-3, 0.0, 10)
    muon, adamw = optimizer.optimizers
    assert isinstance(muon, torch.optim.Muon)
    covered = [id(p) for o in (muon, adamw) for g in o.param_groups for p in g["params"]]
    assert sorted(covered) == sorted(names)


def test_schedule_is_one_cycle_and_leaves_momentum():
    model = torch.nn.Sequential(*(torch.nn.Linear(3, 3) for _ in range(3)))
    optimizer, schedule = build_optimizer(model, "muon", 4e-3, 0.0, 100)
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
    series = None

    def __len__(self):
        return 2

    def __getitem__(self, index):
        x = torch.tensor([[[0.0], [2.0], [99.0]], [[4.0], [6.0], [8.0]]])[index]
        mask = torch.tensor([[True, True, False], [True, True, True]])[index]
        sample = {"embedding": x, "fx": torch.ones(1, 1), "target": 2 * x, "mask": mask}
        return TensorDict(sample), {}


def test_statistics_leave_padding_out():
    found = Statistics.measure(_Clouds(), dict.fromkeys(("embedding", "fx", "target"), "channels"))
    values = torch.tensor([0.0, 2.0, 4.0, 6.0, 8.0])
    torch.testing.assert_close(found.means["embedding"], values.mean().reshape(1))
    torch.testing.assert_close(found.stds["target"], 2 * values.std(correction=0).reshape(1))
    assert found.stds["fx"].item() == 1.0  # a constant has no scale


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
        (torch.full((3, 1), torch.nan), "not finite"),
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
