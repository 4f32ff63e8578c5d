# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""The training loop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import torch
from physicsnemo.datapipes import DataLoader, Dataset
from physicsnemo.distributed import DistributedManager
from tensordict import TensorDict
from torch.nn.parallel import DistributedDataParallel

from physicsnemo_cano.losses import LOSSES, gradient_error, relative_l2
from physicsnemo_cano.recipe.batches import PointSubsets, SharedBatches, collate
from physicsnemo_cano.recipe.checkpoint import Checkpoints, Progress
from physicsnemo_cano.recipe.config import Training
from physicsnemo_cano.recipe.distributed import derive_seed, gather, rank_zero_first, say
from physicsnemo_cano.recipe.evaluation import evaluate
from physicsnemo_cano.recipe.folder import RunFolder
from physicsnemo_cano.recipe.optimizers import build_optimizer
from physicsnemo_cano.recipe.prediction import Predictor
from physicsnemo_cano.recipe.report import Meter, duration


def fit(
    predict: Predictor,
    datasets: dict[str, Dataset],
    training: Training,
    seed: int,
    folder: RunFolder,
    patience: int | None = None,
) -> Progress:
    """Train a model, from its last checkpoint if there is one.

    What is reported is the relative L2 error, whatever the loss. Of a series, it is in training
    the mean error of the frames that a training step looks at, and in testing that of the whole
    series. Other losses than the relative L2 error compare values in units of the training
    targets' standard deviation.

    After every epoch the samples but the training's are measured and a checkpoint is written.
    ``best`` is the epoch with the lowest error on the validation samples. Test samples choose
    nothing.

    Parameters
    ----------
    predict : Predictor
        With the model, on the device, initialised; its weights are trained, or replaced by the
        checkpoint's and trained further.
    datasets : dict of str to Dataset
        ``train`` and what is to be measured after every epoch, ``validation`` and ``test``; with
        normalised inputs and raw targets.
    training : Training
        How.
    seed : int
        Sets, with the epoch, the order of the samples and all chance.
    folder : RunFolder
        Receives ``checkpoints/`` and ``metrics.jsonl``.
    patience : int, optional
        Epochs without a lower validation error after which to stop.

    Returns
    -------
    Progress
        How far it has come.

    Raises
    ------
    FloatingPointError
        If the training diverges.
    """
    dist, model = DistributedManager(), predict.model
    n_train = len(datasets["train"])
    measured = {name: dataset for name, dataset in datasets.items() if name != "train"}
    sizes, n_points = datasets["train"].reader.sizes(), training.points_per_step
    subsets = None if n_points is None else PointSubsets(n_points, seed, dist.rank)
    if sizes is not None and n_points is not None:
        sizes = [min(size, n_points) for size in sizes]
    batches = SharedBatches(n_train, training.batch_size, seed, dist.rank, dist.world_size, sizes)
    # Windows of trajectories are drawn from seed and epoch, too.
    datasets["train"].set_generator(torch.Generator().manual_seed(derive_seed(seed)))
    loader = DataLoader(
        datasets["train"],
        batch_size=batches.local_batch_size,
        sampler=batches,
        collate_fn=subsets or collate,
    )
    n_epochs, n_steps = training.epochs, training.epochs * batches.n_steps
    optimizer, schedule = build_optimizer(model, training, n_steps)
    companions = [folder.config, folder.statistics, folder.layout]
    checkpoints = Checkpoints(folder.checkpoints, [file for file in companions if file.exists()])
    with rank_zero_first():
        if dist.rank == 0:
            checkpoints.tidy()
        progress = checkpoints.load(model, optimizer, schedule, dist.device)
        if dist.rank == 0:
            folder.history.truncate(progress.epoch)

    runner = predict.calling(torch.compile(model) if training.compile else model)
    learner = runner.calling(_data_parallel(runner.model, dist))
    loss, shape = LOSSES[training.loss], datasets["train"].reader.spatial_shape
    done = progress.epoch * batches.n_steps
    if done:
        say(f"resuming after epoch {progress.epoch}")
    if done < n_steps:
        step, test = _seconds_a_batch(learner, next(iter(loader)))
        n_measured = sum(map(len, measured.values()))
        seconds = batches.n_steps * (step + test * n_measured / n_train)
        say(f"estimate  {duration((n_epochs - progress.epoch) * seconds)}")

    meter = Meter(n_steps, done, n_epochs, say, quiet=dist.rank != 0)
    begin, done_before = time.perf_counter(), progress.epoch
    for epoch in range(progress.epoch + 1, n_epochs + 1):
        if patience is not None and epoch - 1 - progress.best_epoch >= patience:
            say(f"stopped: {patience} epochs without a lower validation error")
            break
        # All chance follows from seed and epoch, so a resumed run needs no random state.
        loader.set_epoch(epoch)
        if subsets is not None:
            subsets.set_epoch(epoch)
        draw = torch.Generator().manual_seed(derive_seed(seed, epoch))
        torch.manual_seed(derive_seed(seed, epoch, dist.rank))
        learner.model.train()
        start = time.perf_counter()
        total = torch.zeros((), device=dist.device)
        for step, batch in enumerate(loader):
            prediction, target, mask = learner.training_step(batch, draw)
            losses = errors = relative_l2(prediction, target, mask)
            if training.loss != "relative_l2":
                losses = loss(
                    predict.in_deviations(prediction), predict.in_deviations(target), mask
                )
            if training.gradient_loss:
                gradients = gradient_error(prediction, target, shape)
                losses = losses + training.gradient_loss * gradients
            weight = batches.weight(step) * len(batch) / len(errors)
            (weight * losses.sum()).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), training.clip)
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
        line = {"epoch": epoch, "train_rel_l2": progress.train_rel_l2}
        for name, dataset in measured.items():
            line[f"{name}_rel_l2"] = float(
                evaluate(runner, dataset, training.batch_size).errors.mean()
            )
        line |= {"lr": schedule.get_last_lr()[0], "train_seconds": progress.train_seconds}
        progress.epoch = epoch
        if line.get("validation_rel_l2", math.inf) < progress.best_validation_rel_l2:
            progress.best_epoch = epoch
            progress.best_validation_rel_l2 = line["validation_rel_l2"]
        if dist.rank == 0:
            # In this order: after a kill in between, the epoch is trained again and its line
            # replaced.
            folder.history.append(line)
            checkpoints.save(progress, model, optimizer, schedule)
        a_epoch = (time.perf_counter() - begin) / (epoch - done_before)
        meter.epoch(line, seconds_left=a_epoch * (n_epochs - epoch))
    meter.close()
    return progress


def _seconds_a_batch(learn: Predictor, batch: TensorDict) -> tuple[float, float]:
    """Times of a training step and of a test batch, tried without changing the model."""

    def step() -> None:
        prediction, target, mask = learn.training_step(batch, torch.Generator())
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
