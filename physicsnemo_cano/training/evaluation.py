"""Errors, predictions and costs of a model on a set of samples."""

from __future__ import annotations

import time

import numpy as np
import torch
from physicsnemo.datapipes import DataLoader, Dataset
from physicsnemo.distributed import DistributedManager
from tensordict import TensorDict

from physicsnemo_cano.datapipes import BenchmarkReader
from physicsnemo_cano.losses import relative_l2
from physicsnemo_cano.training.distributed import gather
from physicsnemo_cano.training.forward import bare
from physicsnemo_cano.training.normalization import Statistics
from physicsnemo_cano.training.prediction import Predictor


@torch.no_grad()
def evaluate(
    predict: Predictor,
    dataset: Dataset,
    batch_size: int,
    dist: DistributedManager,
    keep_predictions: bool = False,
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Errors on all samples, each computed once, by all processes together.

    Parameters
    ----------
    predict : Predictor
        The model.
    dataset : Dataset
        The samples.
    batch_size : int
        Of all processes together.
    dist : DistributedManager
        This process and their number.
    keep_predictions : bool, optional, default=False
        Whether to collect the predictions too.

    Returns
    -------
    errors : numpy.ndarray
        Of shape (n,), in the order of the dataset; on every process.
    predictions : list of numpy.ndarray
        n targets (N, C), in physical units, or none; on every process.

    Raises
    ------
    FloatingPointError
        If an error is not finite.
    """
    predict.model.eval()
    mine = range(dist.rank, len(dataset), dist.world_size)
    batch_size = max(1, batch_size // dist.world_size)
    errors, predictions = [], []
    for batch in DataLoader(dataset, batch_size=batch_size, sampler=mine):
        error, prediction = predict.errors(batch)
        errors += error.tolist()
        if keep_predictions:
            predictions.extend(prediction.cpu().numpy())
    order = np.argsort(gather(list(mine)))
    errors, predictions = np.array(gather(errors))[order], gather(predictions)
    if not np.isfinite(errors).all():
        raise FloatingPointError(
            f"The error on test sample {int(np.argmin(np.isfinite(errors)))} is not finite: the "
            "training diverged (try a lower training.lr), or this sample's target is zero"
        )
    return errors, [predictions[index] for index in order] if keep_predictions else []


def mean_predictor_error(reader: BenchmarkReader, statistics: Statistics) -> float:
    """Mean relative L2 error of predicting the mean training field for every sample."""
    mean, errors = statistics.mean_target, []  # (N, C), or (1, C)
    for index in range(len(reader)):
        sample = reader[index][0].unsqueeze(0)
        target = sample["target"]
        if mean.shape[0] not in (1, target.shape[1]):  # a mesh of another size
            mean = mean.mean(0, keepdim=True)
        error = relative_l2(mean.expand_as(target), target, sample.get("mask", None))
        errors.append(error.item())
    return float(np.mean(errors))


@torch.no_grad()
def inference_ms(predict: Predictor, dataset: Dataset, n_samples: int = 20) -> float:
    """Median time of a prediction of one sample, data loading excluded, in milliseconds."""
    predict.model.eval()
    times = []
    for index in range(min(n_samples, len(dataset)) + 1):
        batch = dataset[max(index - 1, 0)][0].unsqueeze(0)
        start = time.perf_counter()
        predict(batch).cpu()  # waits for a GPU
        times.append(1e3 * (time.perf_counter() - start))
    return float(np.median(times[1:]))  # the first one warms up


@torch.no_grad()
def cluster_assignments(predict: Predictor, sample: TensorDict) -> np.ndarray | None:
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
    model = bare(predict.model)
    blocks = [m for m in model.modules() if hasattr(m, "cluster_maps")]
    if not blocks:
        return None
    seen: list[torch.Tensor] = []
    handle = blocks[-1].register_forward_pre_hook(
        lambda block, inputs: seen.append(block.cluster_maps(*inputs))
    )
    model.eval()
    try:
        predict(sample.unsqueeze(0))
    finally:
        handle.remove()
    return seen[-1][0].float().cpu().numpy()
