# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Errors, predictions and costs of a model on a set of samples."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float
from physicsnemo.datapipes import DataLoader, Dataset
from physicsnemo.distributed import DistributedManager
from tensordict import TensorDict

from physicsnemo_cano.datapipes import FieldReader
from physicsnemo_cano.losses import LOSSES, field_errors, fields_of, relative_l2
from physicsnemo_cano.recipe.batches import collate
from physicsnemo_cano.recipe.distributed import gather
from physicsnemo_cano.recipe.forward import bare
from physicsnemo_cano.recipe.normalization import Statistics
from physicsnemo_cano.recipe.prediction import Predictor


@dataclass
class Evaluation:
    """A model on a set of samples, in the samples' order.

    Attributes
    ----------
    errors : numpy.ndarray
        Relative L2 errors, (n,).
    metrics : dict of str to numpy.ndarray
        What else was asked for, (n,) each, in physical units.
    predictions : list of numpy.ndarray
        n targets (N, C), in physical units, without padding; or none.
    fields : dict of str to dict of str to numpy.ndarray
        With predictions, of each field its errors by name, (n,) each; see :func:`.field_errors`.
    """

    errors: np.ndarray
    metrics: dict[str, np.ndarray]
    predictions: list[np.ndarray]
    fields: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)


@torch.no_grad()
def evaluate(
    predict: Predictor,
    dataset: Dataset,
    batch_size: int,
    metrics: Sequence[str] = (),
    keep_predictions: bool = False,
) -> Evaluation:
    """Measure all samples, each once, by all processes together.

    Parameters
    ----------
    predict : Predictor
        The model.
    dataset : Dataset
        The samples.
    batch_size : int
        Of all processes together.
    metrics : sequence of str, optional
        Names of losses to measure beside the relative L2 error.
    keep_predictions : bool, optional, default=False
        Whether to collect the predictions, and the errors by field, too.

    Returns
    -------
    Evaluation
        The same on every process.

    Raises
    ------
    FloatingPointError
        If an error is not finite; of series, the message says from which frame on.
    """
    dist = DistributedManager()
    predict.model.eval()
    order, sizes = range(len(dataset)), dataset.reader.sizes()
    if sizes is not None:  # alike go together, so that little is padded
        order = sorted(order, key=sizes.__getitem__)
    mine = order[dist.rank :: dist.world_size]
    batch_size = max(1, batch_size // dist.world_size)
    rows: list[tuple[int, list[float], np.ndarray | None, dict]] = []
    fields = fields_of([channel.name for channel in dataset.reader.targets])
    broken: list[tuple[int, int]] = []
    indices = iter(mine)
    for batch in DataLoader(dataset, batch_size=batch_size, sampler=mine, collate_fn=collate):
        errors, prediction = predict.errors(batch)
        target, mask = batch["target"].double(), batch.get("mask", None)
        values = [errors] + [LOSSES[name](prediction.double(), target, mask) for name in metrics]
        for k, row in enumerate(torch.stack([v.double() for v in values], 1).tolist()):
            index = next(indices)
            real = slice(None) if mask is None else mask[k]
            given, true = prediction[k][real], target[k][real]
            by_field = {}
            if keep_predictions:
                frames = (f.unflatten(-1, (-1, predict.d_u)) for f in (given, true))
                weights = batch.get("weights", None)
                by_field = field_errors(
                    *frames, fields, None if weights is None else weights[k][real]
                )
            kept = given.cpu().numpy() if keep_predictions else None
            rows.append((index, row, kept, by_field))
            if not np.isfinite(row[0]):
                broken.append((index, _first_broken_frame(given, predict.d_u)))
    rows, broken = sorted(gather(rows), key=lambda row: row[0]), sorted(gather(broken))
    if broken:
        series, names = target.shape[-1] > predict.d_u, dataset.reader.names or range(len(rows))
        named = [
            f"{names[i]}{f' from step {step} on' if series else ''}" for i, step in broken[:10]
        ]
        raise FloatingPointError(
            f"The prediction of sample {', '.join(named)} ({len(broken)} of {len(rows)}) of "
            f"{dataset.reader.path} is not finite: the training diverged (try a lower training.lr)"
        )
    table = np.array([row for _, row, *_ in rows])
    by_field = {
        name: {key: np.array([row[-1][name][key] for row in rows]) for key in errors}
        for name, errors in rows[0][-1].items()
    }
    return Evaluation(
        table[:, 0],
        dict(zip(metrics, table[:, 1:].T, strict=True)),
        [prediction for _, _, prediction, _ in rows] if keep_predictions else [],
        by_field,
    )


def _first_broken_frame(field: torch.Tensor, d_u: int) -> int:
    """Number, from 1, of the first frame of a series (N, T d_u) that is not finite."""
    broken = ~field.unflatten(-1, (-1, d_u)).isfinite().all(-1).all(0)
    return int(broken.int().argmax()) + 1


def mean_predictor_error(reader: FieldReader, statistics: Statistics) -> float:
    """Mean relative L2 error of predicting the mean training field for every sample.

    Parameters
    ----------
    reader : FieldReader
        The samples.
    statistics : Statistics
        With the mean field; on meshes of other sizes its mean over the points is predicted, for
        series of other lengths its mean over the frames.

    Returns
    -------
    float
    """
    mean, errors = statistics.mean_target, []  # (N, C), or (1, C)
    for index in range(len(reader)):
        sample = reader[index][0].unsqueeze(0)
        target = sample["target"]
        if mean.shape[0] not in (1, target.shape[1]):  # a mesh of another size
            mean = mean.mean(0, keepdim=True)
        if mean.shape[1] != target.shape[2]:  # a series of another length
            frame = mean.unflatten(1, (-1, len(reader.targets))).mean(1)
            mean = frame.repeat(1, target.shape[2] // len(reader.targets))
        error = relative_l2(mean.expand_as(target), target, sample.get("mask", None))
        errors.append(error.item())
    return float(np.mean(errors))


@torch.no_grad()
def inference_ms(predict: Predictor, dataset: Dataset, n_samples: int = 20) -> float:
    """Median time of a prediction of one sample, data loading excluded.

    Parameters
    ----------
    predict : Predictor
        The model.
    dataset : Dataset
        The samples.
    n_samples : int, optional, default=20
        How many to predict, at most; one more warms up.

    Returns
    -------
    float
        In milliseconds.
    """
    predict.model.eval()
    times = []
    for index in range(min(n_samples, len(dataset)) + 1):
        batch = dataset[max(index - 1, 0)][0].unsqueeze(0)
        start = time.perf_counter()
        predict(batch).cpu()  # waits for a GPU
        times.append(1e3 * (time.perf_counter() - start))
    return float(np.median(times[1:]))  # the first one warms up


@torch.no_grad()
def cluster_assignments(
    predict: Predictor, sample: TensorDict
) -> Float[np.ndarray, "H N K"] | None:
    """How the last layer with clusters assigns a sample's points to them.

    Parameters
    ----------
    predict : Predictor
        The model; its blocks with clusters are those that have a method ``cluster_maps``.
    sample : TensorDict
        One normalised sample, on the model's device.

    Returns
    -------
    numpy.ndarray or None
        Of shape (H, N, K_c), rows sum to 1, of a series those of the last frame; ``None`` for
        models without clusters.
    """
    model = bare(predict.model).eval()  # hooks of a compiled model are not called
    blocks = [m for m in model.modules() if hasattr(m, "cluster_maps")]
    if not blocks:
        return None
    seen: list[torch.Tensor] = []
    handle = blocks[-1].register_forward_pre_hook(
        lambda block, inputs: seen.append(block.cluster_maps(*inputs))
    )
    try:
        predict.calling(model)(sample.unsqueeze(0))
    finally:
        handle.remove()
    maps = seen[-1][0].float()  # (H, N, K_c)
    mask = sample.get("mask", None)
    return (maps if mask is None else maps[:, mask]).cpu().numpy()
