"""The training loop."""

from __future__ import annotations

import math
import time

import torch
from physicsnemo.core import Module
from physicsnemo.datapipes import DataLoader, Dataset
from tensordict import TensorDict
from torch.nn.parallel import DistributedDataParallel

from physicsnemo_cano.losses import gradient_error
from physicsnemo_cano.training.checkpoint import Checkpoints, Progress
from physicsnemo_cano.training.context import Context
from physicsnemo_cano.training.distributed import (
    SharedBatches,
    derive_seed,
    gather,
    rank_zero_first,
)
from physicsnemo_cano.training.evaluation import Predictor, evaluate
from physicsnemo_cano.training.files import History
from physicsnemo_cano.training.forward import grid_shape
from physicsnemo_cano.training.normalization import Statistics
from physicsnemo_cano.training.optimizers import build_optimizer
from physicsnemo_cano.training.report import Meter, duration


def fit(
    context: Context, model: Module, datasets: dict[str, Dataset], statistics: Statistics
) -> tuple[Predictor, Progress]:
    """Train a model, from its last checkpoint if there is one.

    The loss is the relative L2 error, on structured meshes with ``training.gradient_loss`` times
    the gradient's error added; what is reported is the relative L2 error alone.

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
    mesh = datasets["train"].reader.spatial_shape
    shape = grid_shape(context.settings, datasets["train"].reader)
    predict = Predictor(runner, shape, statistics, dist.device, training["amp"])
    wrapped = _data_parallel(runner, dist)
    learn = Predictor(wrapped, shape, statistics, dist.device, training["amp"])
    done = progress.epoch * batches.n_steps
    if done:
        context.say(f"resuming after epoch {progress.epoch}")
    if done < n_steps:
        # A test sample costs a forward pass, about a third of what a training sample costs.
        seconds = _seconds_a_step(learn, next(iter(loader))) * (1 + n_test / n_train / 3)
        context.say(f"estimate  {duration((n_steps - done) * seconds)}")

    meter = Meter(n_steps, done, n_epochs, context.say, quiet=dist.rank != 0)
    for epoch in range(progress.epoch + 1, n_epochs + 1):
        # Order and dropout follow from seed and epoch, so a resumed run needs no random state.
        loader.set_epoch(epoch)
        torch.manual_seed(derive_seed(seed, epoch, dist.rank))
        wrapped.train()
        start = time.perf_counter()
        total = torch.zeros((), device=dist.device)
        for step, batch in enumerate(loader):
            errors, prediction = learn.errors(batch)
            losses = errors
            if training["gradient_loss"]:
                gradients = gradient_error(prediction, batch["target"], mesh)
                losses = errors + training["gradient_loss"] * gradients
            weight = batches.weight(step)
            (weight * losses.sum()).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), training["clip"])
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            if weight:
                total += errors.detach().sum()
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
        meter.epoch(line, seconds_left=progress.train_seconds / epoch * (n_epochs - epoch))
    meter.close()
    return predict, progress


def _seconds_a_step(learn: Predictor, batch: TensorDict) -> float:
    """Time of a training step, tried without changing the model."""
    for _ in range(2):  # the first one warms up
        start = time.perf_counter()
        errors, _ = learn.errors(batch)
        errors.sum().backward()
        learn.model.zero_grad()
        errors.sum().item()  # waits for a GPU
    return time.perf_counter() - start


def _data_parallel(model: torch.nn.Module, dist) -> torch.nn.Module:
    if not torch.distributed.is_initialized():
        return model
    devices = [dist.local_rank] if dist.device.type == "cuda" else None
    return DistributedDataParallel(model, device_ids=devices)
