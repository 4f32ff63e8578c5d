"""The training loop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import torch
from physicsnemo.core import Module
from physicsnemo.datapipes import DataLoader, Dataset
from tensordict import TensorDict
from torch.nn.parallel import DistributedDataParallel

from physicsnemo_cano.losses import gradient_error, relative_l2
from physicsnemo_cano.training.checkpoint import Checkpoints, Progress
from physicsnemo_cano.training.context import Context
from physicsnemo_cano.training.distributed import (
    SharedBatches,
    derive_seed,
    gather,
    rank_zero_first,
)
from physicsnemo_cano.training.evaluation import evaluate
from physicsnemo_cano.training.files import History
from physicsnemo_cano.training.forward import grid_shape
from physicsnemo_cano.training.normalization import Statistics
from physicsnemo_cano.training.optimizers import build_optimizer
from physicsnemo_cano.training.prediction import Predictor, predictor_for
from physicsnemo_cano.training.report import Meter, duration


def fit(
    context: Context, model: Module, datasets: dict[str, Dataset], statistics: Statistics
) -> tuple[Predictor, Progress]:
    """Train a model, from its last checkpoint if there is one.

    The loss is the relative L2 error, on structured meshes with ``training.gradient_loss`` times
    the gradient's error added; what is reported is the relative L2 error alone. Of a series, it
    is the mean error of the frames that a training step looks at, and in testing that of the
    whole series.

    After every epoch the test errors are measured and a checkpoint is written. ``best`` is the
    epoch with the lowest test error, kept for those who want it; what a run reports is its last
    epoch, as choosing an epoch by its test error would leak the test set into the result.

    Parameters
    ----------
    context : Context
        Of the run; its folder receives ``checkpoints/`` and ``metrics.jsonl``.
    model : physicsnemo.core.Module
        On the device, initialised; its weights are replaced by the checkpoint's.
    datasets : dict of str to Dataset
        ``train`` and ``test``, with normalised inputs and raw targets.
    statistics : Statistics
        Of the training set.

    Returns
    -------
    Predictor, Progress
        The trained model and how far it has come.

    Raises
    ------
    FloatingPointError
        If the training diverges.
    """
    training, seed, dist = context.settings["training"], context.settings["seed"], context.dist
    n_train, n_test = len(datasets["train"]), len(datasets["test"])
    batches = SharedBatches(n_train, training["batch_size"], seed, dist.rank, dist.world_size)
    loader = DataLoader(datasets["train"], batch_size=batches.local_batch_size, sampler=batches)
    n_epochs, n_steps = training["epochs"], training["epochs"] * batches.n_steps
    optimizer, schedule = build_optimizer(
        model, training["optimizer"], training["lr"], training["weight_decay"], n_steps
    )
    companions = {name: context.folder / name for name in ("config.yaml", "normalization.npz")}
    checkpoints = Checkpoints(context.folder / "checkpoints", companions)
    history = History(context.folder / "metrics.jsonl")
    with rank_zero_first():
        progress = checkpoints.load(model, optimizer, schedule, dist.device)
        if dist.rank == 0:
            checkpoints.tidy(progress)
            history.truncate(progress.epoch)

    runner = torch.compile(model) if training["compile"] else model
    reader = datasets["train"].reader
    make, shape = predictor_for(reader), grid_shape(context.settings, reader)
    predict = make(runner, shape, statistics, dist.device, training["amp"])
    wrapped = _data_parallel(runner, dist)
    learn = make(wrapped, shape, statistics, dist.device, training["amp"])
    done = progress.epoch * batches.n_steps
    if done:
        context.say(f"resuming after epoch {progress.epoch}")
    if done < n_steps:
        step, test = _seconds_a_batch(learn, next(iter(loader)))
        seconds = batches.n_steps * (step + test * n_test / n_train)
        context.say(f"estimate  {duration((n_epochs - progress.epoch) * seconds)}")

    meter = Meter(n_steps, done, n_epochs, context.say, quiet=dist.rank != 0)
    begin, done_before = time.perf_counter(), progress.epoch
    for epoch in range(progress.epoch + 1, n_epochs + 1):
        # All chance follows from seed and epoch, so a resumed run needs no random state.
        loader.set_epoch(epoch)
        draw = torch.Generator().manual_seed(derive_seed(seed, epoch))
        torch.manual_seed(derive_seed(seed, epoch, dist.rank))
        wrapped.train()
        start = time.perf_counter()
        total = torch.zeros((), device=dist.device)
        for step, batch in enumerate(loader):
            prediction, target, mask = learn.lesson(batch, draw)
            losses = errors = relative_l2(prediction, target, mask)
            if training["gradient_loss"]:
                gradients = gradient_error(prediction, target, reader.spatial_shape)
                losses = errors + training["gradient_loss"] * gradients
            weight = batches.weight(step) * len(batch) / len(errors)
            (weight * losses.sum()).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), training["clip"])
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            if weight:
                total += errors.detach().mean() * len(batch)
            meter.step()
        progress.train_rel_l2 = sum(gather([total.item()])) / n_train
        progress.train_seconds += time.perf_counter() - start
        if not math.isfinite(progress.train_rel_l2):
            raise FloatingPointError(f"The training diverged in epoch {epoch}: lower training.lr")
        test_errors, _ = evaluate(predict, datasets["test"], training["batch_size"], dist)
        test_rel_l2 = float(test_errors.mean())
        progress.epoch = epoch
        if test_rel_l2 < progress.best_test_rel_l2:
            progress.best_epoch, progress.best_test_rel_l2 = epoch, test_rel_l2
        line = {
            "epoch": epoch,
            "train_rel_l2": progress.train_rel_l2,
            "test_rel_l2": test_rel_l2,
            "lr": schedule.get_last_lr()[0],
            "train_seconds": progress.train_seconds,
        }
        if dist.rank == 0:
            # In this order: after a kill in between, the epoch is trained again and its line
            # replaced.
            history.append(line)
            checkpoints.save(progress, model, optimizer, schedule)
        a_epoch = (time.perf_counter() - begin) / (epoch - done_before)
        meter.epoch(line, seconds_left=a_epoch * (n_epochs - epoch))
    meter.close()
    return predict, progress


def _seconds_a_batch(learn: Predictor, batch: TensorDict) -> tuple[float, float]:
    """Times of a training step and of a test batch, tried without changing the model."""

    def step() -> None:
        prediction, target, mask = learn.lesson(batch, torch.Generator())
        relative_l2(prediction, target, mask).sum().backward()
        learn.model.zero_grad()

    @torch.no_grad()
    def test() -> None:
        learn.errors(batch)[0].sum().item()  # waits for a GPU

    return _seconds(step), _seconds(test)


def _seconds(function: Callable[[], None]) -> float:
    for _ in range(2):  # the first one warms up
        start = time.perf_counter()
        function()
    return time.perf_counter() - start


def _data_parallel(model: torch.nn.Module, dist) -> torch.nn.Module:
    if not torch.distributed.is_initialized():
        return model
    devices = [dist.local_rank] if dist.device.type == "cuda" else None
    return DistributedDataParallel(model, device_ids=devices)
