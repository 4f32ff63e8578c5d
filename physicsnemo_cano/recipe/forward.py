# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""The one place where the recipe calls a model."""

from __future__ import annotations

import inspect

import torch
from jaxtyping import Float
from tensordict import TensorDict

from physicsnemo_cano.models import CANO

_OPTIONAL = ("time", "mask", "weights")


def bare(model: torch.nn.Module) -> torch.nn.Module:
    """The model inside the wrappers of data-parallel training and compilation.

    Parameters
    ----------
    model : torch.nn.Module
        Possibly wrapped.

    Returns
    -------
    torch.nn.Module
    """
    if isinstance(model, torch.nn.parallel.DistributedDataParallel):
        model = model.module
    return getattr(model, "_orig_mod", model)


def call_model(
    model: torch.nn.Module, batch: TensorDict, spatial_shape: tuple[int, ...] | None
) -> Float[torch.Tensor, "B N C_out"]:
    r"""Call a model on a batch.

    Structured samples hand over their coordinates in the mesh's shape, from which a model may
    read the grid it is on. ``time``, ``mask`` and ``weights`` go to the model if the batch has
    them and the model takes them, so models that know nothing of weights run on the same data.
    Inputs of all points together, ``fx`` of :math:`(B, 1, C)`, are repeated at every point for
    models other than CANO, which take them no other way. Of padded clouds, models that know no
    ``mask`` see the real points alone, samples of one mask at a time.

    Parameters
    ----------
    model : torch.nn.Module
        With the forward signature of PhysicsNeMo's Transolver; possibly wrapped.
    batch : TensorDict
        Normalised samples, stacked.
    spatial_shape : tuple of int or None
        Shape of the mesh whose points are flattened into :math:`N`.

    Returns
    -------
    torch.Tensor
        Of shape :math:`(B, N, d_u)`, in normalised units, in float32 also where the model
        computes in less; zero where there is padding.
    """
    accepted = inspect.signature(bare(model).forward).parameters
    present = set(batch.keys())
    if "mask" in present and "mask" not in accepted and not batch["mask"].all():
        return _without_padding(model, batch)
    optional = {key: batch[key] for key in _OPTIONAL if key in accepted and key in present}
    embedding = batch["embedding"]  # (B, N, d_x)
    n_batch, n_points = embedding.shape[:2]
    if spatial_shape is not None:
        embedding = embedding.unflatten(1, spatial_shape)  # (B, *spatial, d_x)
    fx = batch["fx"]
    if fx.shape[1] == 1 and not isinstance(bare(model), CANO):
        fx = fx.expand(-1, n_points, -1)
    output = model(fx=fx, embedding=embedding, **optional)
    output = output.reshape(n_batch, n_points, -1).float()
    return output.masked_fill(~batch["mask"][..., None], 0.0) if "mask" in present else output


def _without_padding(model: torch.nn.Module, batch: TensorDict) -> torch.Tensor:
    masks = batch["mask"]  # (B, N)
    n_points, parts = masks.shape[1], []
    for mask in masks.unique(dim=0):
        rows, points = (masks == mask).all(1).nonzero(), mask.nonzero()[:, 0]
        part = batch[rows[:, 0]].exclude("mask", "target")
        for key in ("embedding", "fx", "weights"):
            value = part.get(key, None)
            if value is not None and value.shape[1] == n_points:
                part[key] = value[:, points]
        parts.append((rows, points, call_model(model, part, None)))
    output = parts[0][2].new_zeros(*masks.shape, parts[0][2].shape[-1])
    for rows, points, values in parts:
        output[rows, points] = values
    return output
