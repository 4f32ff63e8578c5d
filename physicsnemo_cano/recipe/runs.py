# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""The recipe that every example runs: train or evaluate, resume, report."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig, OmegaConf
from physicsnemo.core import Module
from physicsnemo.datapipes import Dataset
from physicsnemo.distributed import DistributedManager

from physicsnemo_cano.datapipes import FieldReader, TrajectoryReader
from physicsnemo_cano.recipe.batches import SharedBatches
from physicsnemo_cano.recipe.checkpoint import Progress, find_checkpoint, open_model, read_progress
from physicsnemo_cano.recipe.config import Recipe, build_model, given_overrides, open_reader
from physicsnemo_cano.recipe.distributed import initialize, rank_zero_first, say
from physicsnemo_cano.recipe.evaluation import (
    cluster_assignments,
    evaluate,
    inference_ms,
    mean_predictor_error,
)
from physicsnemo_cano.recipe.fit import fit
from physicsnemo_cano.recipe.folder import RunFolder, write_text
from physicsnemo_cano.recipe.layout import Layout
from physicsnemo_cano.recipe.normalization import Statistics, checked_samples
from physicsnemo_cano.recipe.prediction import Predictor, predictor_for
from physicsnemo_cano.recipe.report import Results, device_name, peak_memory_mb, table
from physicsnemo_cano.visualization import draw_results

Figures = Callable[[Results, Path], None]


def run(
    cfg: DictConfig,
    figures: Figures = draw_results,
    embedded_data: Path | Callable[[Path], Path] | None = None,
) -> dict[str, Any]:
    """Train a model on a data set, or evaluate one, as the configuration says.

    The same call resumes a run that was interrupted, and of a finished one repeats the report.

    Parameters
    ----------
    cfg : DictConfig
        As Hydra composes it from the configuration ``recipe``; see :class:`Recipe`.
    figures : callable, optional
        Draws the data set's figures: takes the :class:`Results` and the folder to write to. By
        default those that any fields can have.
    embedded_data : Path or callable, optional
        The data that come with an example, for ``data.root=null``; or a function that takes the
        folder ``cache``, makes them there unless it has done so before, and returns their path. A
        run remembers that it used them, not where they were, so it can be continued and evaluated
        elsewhere.

    Returns
    -------
    dict
        What ``metrics.json`` holds; on other processes than the first it may be empty.

    Raises
    ------
    FileExistsError
        If the output folder holds another run, something that is no run, or a running one.
    ImportError
        If what the recipe needs beside the package is not installed.
    ValueError
        If the configuration or the data cannot be used; the message says what to change.
    """
    _require("matplotlib", "tqdm", "filelock")
    settings = Recipe.of(cfg)
    root = settings.data["root"]
    settings.data["root"] = None if root is None else str(Path(root).expanduser().absolute())
    embedded = None
    if root is None and "root" in cfg.data and not OmegaConf.is_missing(cfg.data, "root"):
        cache = Path(settings.cache).expanduser().absolute()
        embedded = embedded_data(cache) if callable(embedded_data) else embedded_data
    if settings.mode == "train":
        return _train(settings, figures, embedded)
    return _evaluate(settings, given_overrides(cfg), figures, embedded)


def _train(settings: Recipe, figures: Figures, embedded: Path | None) -> dict[str, Any]:
    folder = RunFolder(Path(settings.output).expanduser().absolute())
    dist = initialize()
    readers = open_readers(settings, embedded)
    SharedBatches(len(readers["train"]), settings.training.batch_size, 0, 0, dist.world_size)
    torch.manual_seed(settings.seed)
    model = build_model(settings, readers["train"]).to(dist.device)
    folder.refuse_others(settings)
    if folder.metrics.exists():
        metrics = json.loads(folder.metrics.read_text())
        say(f"This run is finished; nothing is trained again.\n{table(metrics, folder.path)}")
        return metrics
    for name, reader in readers.items():
        if name != "train":
            for _ in checked_samples(reader):
                pass
    with contextlib.ExitStack() as stack:
        with rank_zero_first():
            if dist.rank == 0:
                stack.enter_context(folder.claimed(settings))
                if not folder.layout.exists():
                    write_text(folder.layout, Layout.of(readers["train"]).text())
                if not folder.statistics.exists():
                    measured = Statistics.measure(
                        readers["train"], vars(settings.normalize), settings.increments
                    )
                    measured.save(folder.statistics)
        statistics = Statistics.load(folder.statistics)
        _announce(settings, model, readers, folder.path)
        transform = statistics.inputs()
        datasets = {
            name: Dataset(reader, transforms=transform, device=dist.device)
            for name, reader in readers.items()
        }
        predict = _predictor(settings, readers["train"], model, statistics)
        patience = settings.validation.patience
        progress = fit(predict, datasets, settings.training, settings.seed, folder, patience)
        if settings.validation.wanted:
            with rank_zero_first():
                best, file = find_checkpoint(folder.checkpoints / "best")
                predict = predict.calling(open_model(file, dist.device))
                progress = read_progress(best)
        history = folder.history.read()
        return _report(
            settings, figures, predict, datasets["test"], statistics, progress, history, folder
        )


def open_readers(settings: Recipe, embedded: Path | None = None) -> dict[str, FieldReader]:
    """Training, validation (if wanted) and test samples, in this order.

    Parameters
    ----------
    settings : Recipe
        Of a training.
    embedded : Path, optional
        Where the data are if ``data.root`` names no place.

    Returns
    -------
    dict of str to FieldReader

    Raises
    ------
    ValueError
        If what is wanted does not suit the data.
    """
    validation = settings.validation
    readers = {"train": open_reader(settings.data, "train", embedded)}
    of_rollouts = {
        "increments": settings.increments,
        "training.pushforward": settings.training.pushforward,
    }
    for key, wanted in of_rollouts.items():
        if wanted and readers["train"].series != "rollout":
            raise ValueError(
                f"{key}=true: {type(readers['train']).__name__} has no frames that follow one "
                "another, as rollouts have; leave it out"
            )
    if settings.training.points_per_step is not None and (
        settings.training.gradient_loss
        or (readers["train"].spatial_shape is not None and not settings.as_cloud)
    ):
        raise ValueError(
            "training.points_per_step draws points of clouds, and these are structured meshes: "
            "leave it out, or train with as_cloud=true and without gradient_loss"
        )
    if validation.fraction is not None:
        readers["validation"] = readers["train"].give(validation.fraction)
    elif validation.root is not None:
        data = settings.data | {"root": validation.root, "n_test": None}
        readers["validation"] = open_reader(data, "test")
    readers["test"] = open_reader(settings.data, "test", embedded)
    if validation.root is not None and readers["validation"].path == readers["test"].path:
        raise ValueError(
            f"validation.root={validation.root} holds the test samples, which must choose nothing"
        )
    return readers


def _evaluate(
    asked: Recipe, overrides: list[str], figures: Figures, embedded: Path | None
) -> dict[str, Any]:
    source, file = find_checkpoint(Path(asked.checkpoint).expanduser().absolute())
    settings = asked.evaluating(Recipe.load(source / "config.yaml"), overrides)
    device = initialize().device
    reader = open_reader(settings.data, "test", embedded)
    statistics = Statistics.load(source / "normalization.npz")
    statistics.check(reader)
    for _ in checked_samples(reader):
        pass
    model, progress = open_model(file, device), read_progress(source)
    # Results go beside the run they belong to, or into a checkpoint that was taken elsewhere.
    run_folder = RunFolder(source.parent.parent)
    home = run_folder if run_folder.config.exists() else RunFolder(source)
    # Named after the data with all their settings: two files may share a name.
    data = json.dumps({**settings.data, "path": str(reader.path)}, sort_keys=True)
    digest = hashlib.sha256(data.encode()).hexdigest()[:6]
    name = f"epoch{progress.epoch:04d}_{reader.path.stem}_{digest}"
    folder = RunFolder(home.path / "evaluate" / name)
    folder.path.mkdir(parents=True, exist_ok=True)
    write_text(folder.config, settings.yaml())
    _announce(settings, model, {"test": reader}, folder.path)
    dataset = Dataset(reader, transforms=statistics.inputs(), device=device)
    predict = _predictor(settings, reader, model, statistics)
    history = home.history.read(progress.epoch)
    return _report(settings, figures, predict, dataset, statistics, progress, history, folder)


def _predictor(
    settings: Recipe, reader: FieldReader, model: Module, statistics: Statistics
) -> Predictor:
    shape = None if settings.as_cloud else reader.spatial_shape
    device, amp = DistributedManager().device, settings.training.amp
    kind = predictor_for(reader, settings.training.pushforward)
    return kind(model, shape, statistics, device, amp)


def _report(
    settings: Recipe,
    figures: Figures,
    predict: Predictor,
    dataset: Dataset,
    statistics: Statistics,
    progress: Progress,
    history: list[dict[str, Any]],
    folder: RunFolder,
) -> dict[str, Any]:
    """Evaluate the model as it is now and write everything but checkpoints."""
    dist, reader = DistributedManager(), dataset.reader
    found = evaluate(predict, dataset, settings.training.batch_size, settings.metrics, True)
    if dist.rank != 0:
        return {}
    best = progress.best_validation_rel_l2
    metrics = {
        "benchmark": settings.benchmark,
        "model": settings.model["name"],
        "scale": settings.scale,
        "data": reader.source,
        "seed": settings.seed,
        "epochs": progress.epoch,
        "n_params": _n_params(predict.model),
        "train_rel_l2": progress.train_rel_l2,
        **({"validation_rel_l2": best} if progress.best_epoch else {}),
        "test_rel_l2": float(found.errors.mean()),
        "test_rel_l2_std": float(found.errors.std()),
        **{f"test_{name}": float(values.mean()) for name, values in found.metrics.items()},
        "mean_predictor_rel_l2": mean_predictor_error(reader, statistics),
        "train_seconds": progress.train_seconds,
        "inference_ms_per_sample": inference_ms(predict, dataset),
        "peak_memory_mb": peak_memory_mb(dist.device),
        "device": device_name(dist.device),
    }
    results = Results(
        reader, found.errors, found.predictions, metrics, history, fields=found.fields
    )
    metrics["test_fields"] = results.field_metrics()
    if reader.series:
        metrics["test_frame_rel_l2"] = float(results.frame_errors().mean())
    if isinstance(reader, TrajectoryReader):
        metrics |= results.rollout_metrics(reader.n_output)
    results.clusters = cluster_assignments(predict, dataset[results.median][0])
    folder.figures.mkdir(parents=True, exist_ok=True)
    results.write(folder.path)
    figures(results, folder.figures)
    write_text(folder.metrics, json.dumps(metrics, indent=2, allow_nan=False) + "\n")
    say(table(metrics, folder.path))
    return metrics


def _announce(
    settings: Recipe, model: Module, readers: dict[str, FieldReader], folder: Path
) -> None:
    dist, reader = DistributedManager(), readers["test"]
    sizes = ", ".join(f"{len(r)} {split}" for split, r in readers.items())
    processes = f"{dist.world_size} processes, " if dist.world_size > 1 else ""
    say(
        f"{settings.benchmark} with {settings.model['name']}, scale {settings.scale}, "
        f"seed {settings.seed}\n"
        f"model     {type(model).__name__}, {_n_params(model):,} parameters\n"
        f"device    {processes}{device_name(dist.device)}\n"
        f"data      {reader.source}, {sizes} samples, {reader.path}\n"
        f"results   {folder}"
    )


def _n_params(model: torch.nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


def _require(*packages: str) -> None:
    absent = [name for name in packages if importlib.util.find_spec(name) is None]
    if absent:
        raise ImportError(
            f"The recipe needs {' and '.join(absent)}: pip install physicsnemo-cano[examples]"
        )
