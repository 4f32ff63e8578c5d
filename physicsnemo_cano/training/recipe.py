"""The recipe that every example runs: train or evaluate, resume, report."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from hydra.utils import get_class
from omegaconf import DictConfig, OmegaConf
from physicsnemo.core import Module
from physicsnemo.datapipes import Dataset

from physicsnemo_cano.datapipes import BenchmarkReader
from physicsnemo_cano.training.checkpoint import (
    Progress,
    find_checkpoint,
    open_model,
    read_progress,
)
from physicsnemo_cano.training.context import Context, Figures
from physicsnemo_cano.training.distributed import initialize, rank_zero_first
from physicsnemo_cano.training.evaluation import (
    cluster_assignments,
    evaluate,
    inference_ms,
    mean_predictor_error,
)
from physicsnemo_cano.training.files import History, claim, write_text
from physicsnemo_cano.training.fit import fit
from physicsnemo_cano.training.forward import grid_shape
from physicsnemo_cano.training.normalization import Statistics
from physicsnemo_cano.training.prediction import Predictor, predictor_for
from physicsnemo_cano.training.report import Results, device_name, peak_memory_mb, table


def run(
    cfg: DictConfig, figures: Figures, embedded_data: Path | Callable[[Path], Path]
) -> dict[str, Any]:
    """Train a model on a benchmark, or evaluate one, as the configuration says.

    The same call resumes a run that was interrupted, and of a finished one repeats the report.

    Parameters
    ----------
    cfg : DictConfig
        Composed from ``conf/<benchmark>.yaml``.
    figures : callable
        Draws the benchmark's figures: takes the :class:`Results` and the folder to write to.
    embedded_data : Path or callable
        The data that come with the example, for ``data.root=null``; or a function that takes the
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
        If the output folder holds another run, or something that is no run.
    ImportError
        If what the examples need beside the package is not installed.
    """
    _require("matplotlib", "tqdm")
    missing = OmegaConf.is_missing(cfg.data, "root")
    given = None if missing else _absolute(cfg.data.root)
    if cfg.mode == "train":
        settings = OmegaConf.to_container(cfg, resolve=True)
        settings["data"]["root"] = given
        # A mandatory value left out reaches the reader as None, and the reader says what it needs.
        embedded = None if missing else _embedded(cfg, settings, embedded_data)
        context = Context(settings, Path(cfg.output).absolute(), figures, embedded, initialize())
        return _train(context)
    if cfg.mode == "evaluate":
        if cfg.checkpoint is None:
            raise ValueError("mode=evaluate needs checkpoint=<folder or .mdlus file>")
        folder, file = find_checkpoint(Path(cfg.checkpoint).absolute())
        settings = OmegaConf.to_container(OmegaConf.load(folder / "config.yaml"))
        settings["data"]["root"] = given or settings["data"]["root"]
        embedded = _embedded(cfg, settings, embedded_data)
        return _evaluate(Context(settings, folder, figures, embedded, initialize()), file)
    raise ValueError(f"mode: choose from train, evaluate; got {cfg.mode!r}")


def _embedded(
    cfg: DictConfig, settings: dict[str, Any], data: Path | Callable[[Path], Path]
) -> Path | None:
    """Where the example's own data are, made now if need be; ``None`` if others are given."""
    if settings["data"]["root"] is not None:
        return None
    return data(Path(cfg.cache).expanduser().absolute()) if callable(data) else data


def _train(context: Context) -> dict[str, Any]:
    settings, folder, dist = context.settings, context.folder, context.dist
    readers = {split: open_reader(settings, split, context.embedded) for split in ("train", "test")}
    scales = folder / "normalization.npz"
    with rank_zero_first():
        if dist.rank == 0:
            claim(folder, settings)
            if not scales.exists():
                statistics = Statistics.measure(readers["train"], settings["normalize"])
                statistics.save(scales)
    if (folder / "metrics.json").exists():  # written last, so the run is complete
        metrics = json.loads((folder / "metrics.json").read_text())
        context.say(f"This run is finished; nothing is trained again.\n{table(metrics, folder)}")
        return metrics
    statistics = Statistics.load(scales)
    torch.manual_seed(settings["seed"])
    model = build_model(settings, readers["train"]).to(dist.device)
    _announce(context, model, readers)
    datasets = {
        split: Dataset(reader, transforms=statistics.inputs(), device=dist.device)
        for split, reader in readers.items()
    }
    predict, progress = fit(context, model, datasets, statistics)
    history = History(folder / "metrics.jsonl").read()
    return _report(context, predict, datasets["test"], statistics, progress, history)


def _evaluate(context: Context, file: Path) -> dict[str, Any]:
    source, settings, device = context.folder, context.settings, context.dist.device
    reader = open_reader(settings, "test", context.embedded)
    statistics = Statistics.load(source / "normalization.npz")
    statistics.check(reader)
    model = open_model(file, device)
    progress = read_progress(source)
    # Results go beside the run they belong to, or into a checkpoint that was taken elsewhere.
    home = source.parent.parent
    home = home if (home / "config.yaml").exists() else source
    context.folder = home / "evaluate" / f"epoch{progress.epoch:04d}_{reader.path.stem}"
    _announce(context, model, {"test": reader})
    dataset = Dataset(reader, transforms=statistics.inputs(), device=device)
    amp = settings["training"]["amp"]
    predict = predictor_for(reader)(model, grid_shape(settings, reader), statistics, device, amp)
    history = History(home / "metrics.jsonl").read(progress.epoch)
    return _report(context, predict, dataset, statistics, progress, history)


def _report(
    context: Context,
    predict: Predictor,
    dataset: Dataset,
    statistics: Statistics,
    progress: Progress,
    history: list[dict[str, Any]],
) -> dict[str, Any]:
    """Evaluate the model as it is now and write everything but checkpoints."""
    settings, folder, dist, reader = context.settings, context.folder, context.dist, dataset.reader
    batch_size = settings["training"]["batch_size"]
    errors, predictions = evaluate(predict, dataset, batch_size, dist, keep_predictions=True)
    if dist.rank != 0:
        return {}
    metrics = {
        "benchmark": settings["benchmark"],
        "model": settings["model"]["name"],
        "scale": settings["scale"],
        "data": reader.source,
        "seed": settings["seed"],
        "epochs": progress.epoch,
        "n_params": _n_params(predict.model),
        "train_rel_l2": progress.train_rel_l2,
        "test_rel_l2": float(errors.mean()),
        "test_rel_l2_std": float(errors.std()),
        "mean_predictor_rel_l2": mean_predictor_error(reader, statistics),
        "train_seconds": progress.train_seconds,
        "inference_ms_per_sample": inference_ms(predict, dataset),
        "peak_memory_mb": peak_memory_mb(dist.device),
        "device": device_name(dist.device),
    }
    results = Results(reader, errors, predictions, metrics, history)
    if reader.series:
        metrics["test_frame_rel_l2"] = float(results.frame_errors().mean())
    results.clusters = cluster_assignments(predict, dataset[results.median][0])
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    results.write(folder)
    context.figures(results, folder / "figures")
    write_text(folder / "metrics.json", json.dumps(metrics, indent=2) + "\n")
    context.say(table(metrics, folder))
    return metrics


def build_model(settings: dict[str, Any], reader: BenchmarkReader) -> Module:
    """Build the configured model for a reader's samples, whose sizes it takes over.

    Parameters
    ----------
    settings : dict
        The resolved configuration; its ``model`` holds ``_target_``, ``name`` (for files and
        tables only) and the model's own arguments.
    reader : BenchmarkReader
        Gives ``functional_dim``, ``embedding_dim``, ``out_dim`` (of a series, one frame's) and
        ``structured_shape``.

    Returns
    -------
    physicsnemo.core.Module
        On the CPU, initialised from torch's current random state.
    """
    config = settings["model"]
    arguments = {key: value for key, value in config.items() if key not in ("_target_", "name")}
    sample, _ = reader[0]
    return get_class(config["_target_"])(
        functional_dim=sample["fx"].shape[-1],
        embedding_dim=sample["embedding"].shape[-1],
        out_dim=len(reader.targets),
        structured_shape=grid_shape(settings, reader),
        **arguments,
    )


def open_reader(
    settings: dict[str, Any], split: str, embedded: Path | None = None
) -> BenchmarkReader:
    """Open the configured data.

    Parameters
    ----------
    settings : dict
        The resolved configuration; its ``data`` holds the reader's ``_target_`` and arguments.
    split : str
        ``train`` or ``test``.
    embedded : Path, optional
        Where the data are if ``data.root`` names no place.

    Returns
    -------
    BenchmarkReader
    """
    data = settings["data"]
    arguments = {key: value for key, value in data.items() if key not in ("_target_", "root")}
    root = data["root"] or embedded
    return get_class(data["_target_"])(root=root, split=split, **arguments)


def _announce(context: Context, model: Module, readers: dict[str, BenchmarkReader]) -> None:
    settings, dist, reader = context.settings, context.dist, readers["test"]
    sizes = ", ".join(f"{len(r)} {split}" for split, r in readers.items())
    processes = f"{dist.world_size} processes, " if dist.world_size > 1 else ""
    context.say(
        f"{settings['benchmark']} with {settings['model']['name']}, scale {settings['scale']}, "
        f"seed {settings['seed']}\n"
        f"model     {type(model).__name__}, {_n_params(model):,} parameters\n"
        f"device    {processes}{device_name(dist.device)}\n"
        f"data      {reader.source}, {sizes} samples, {reader.path}\n"
        f"results   {context.folder}"
    )


def _n_params(model: torch.nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


def _absolute(path: str | Path | None) -> str | None:
    return None if path is None else str(Path(path).absolute())


def _require(*packages: str) -> None:
    absent = [name for name in packages if importlib.util.find_spec(name) is None]
    if absent:
        raise ImportError(
            f"The examples need {' and '.join(absent)}: pip install physicsnemo-cano[examples]"
        )
