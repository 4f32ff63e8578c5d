"""The relative L2 error, loss and measure of every benchmark."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float


def relative_l2(
    prediction: Float[torch.Tensor, "B N C"],
    target: Float[torch.Tensor, "B N C"],
    mask: Bool[torch.Tensor, "B N"] | None = None,
) -> Float[torch.Tensor, " B"]:
    r"""Relative L2 error of each sample, :math:`\|\hat u - u\|_2 / \|u\|_2`.

    The norms run over all points and channels of a sample together, without quadrature weights,
    as in the published results.

    Parameters
    ----------
    prediction, target : torch.Tensor
        Fields of shape :math:`(B, N, C)`, both in the units in which the error is meant.
    mask : torch.Tensor, optional
        Of shape :math:`(B, N)`, true on the real points of padded clouds; what the fields hold
        elsewhere (even NaN) does not count.

    Returns
    -------
    torch.Tensor
        Of shape :math:`(B,)`, without unit.

    Raises
    ------
    ValueError
        If the shapes do not fit one another; broadcasting them would be a silent mistake.

    Notes
    -----
    A target that vanishes everywhere has no relative error: the result is ``inf`` (``nan`` for a
    prediction that vanishes too). Nothing is raised here, as looking at the values would stall a
    GPU at every step; the recipe refuses such samples when it first reads the data.
    """
    if prediction.shape != target.shape or target.ndim != 3:
        raise ValueError(
            "prediction and target must share one shape (B, N, C), "
            f"got {tuple(prediction.shape)} and {tuple(target.shape)}"
        )
    if mask is not None:
        if mask.shape != target.shape[:2]:
            raise ValueError(
                f"mask must have shape {tuple(target.shape[:2])}, got {tuple(mask.shape)}"
            )
        outside = ~mask.bool().unsqueeze(-1)
        prediction = prediction.masked_fill(outside, 0.0)
        target = target.masked_fill(outside, 0.0)
    difference = torch.linalg.vector_norm(prediction - target, dim=(1, 2))
    return difference / torch.linalg.vector_norm(target, dim=(1, 2))
