# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

r"""Predict fields on a mesh file with a trained model.

``python -m physicsnemo_cano.predict checkpoint=outputs/…/checkpoints/last input=body.vtp
output=predicted.vtp`` opens a checkpoint of the recipe, whose folder also says how the data were
normalised, and writes the mesh with the predicted fields, under the names of the model's targets.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path

import torch
from omegaconf import MISSING, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from physicsnemo.core import Module
from tensordict import TensorDict

from physicsnemo_cano.integrations.meshes import MeshCloud
from physicsnemo_cano.recipe.checkpoint import find_checkpoint
from physicsnemo_cano.recipe.layout import Layout
from physicsnemo_cano.recipe.normalization import Statistics
from physicsnemo_cano.recipe.prediction import Predictor


@dataclass
class Request:
    """What the command line asks for.

    Attributes
    ----------
    checkpoint : str
        A folder of a run's ``checkpoints/``, or the ``.mdlus`` file in it.
    input, output : str
        Mesh files; the second must not exist.
    location : str
        ``points`` or ``cells``.
    inputs : list of str
        Fields of the mesh that the model takes as its input function, in its order.
    weights : bool or None
        Whether areas or volumes weigh the points; by default as in training.
    chunk_size : int
        Points at a time; it bounds the memory, not the result. For CANO.
    suffix : str
        Behind the names of the new fields.
    device : str
        Of torch.
    """

    checkpoint: str = MISSING
    input: str = MISSING
    output: str = MISSING
    location: str = "points"
    inputs: list[str] = field(default_factory=list)
    weights: bool | None = None
    chunk_size: int = 65536
    suffix: str = ""
    device: str = "cuda" if torch.cuda.is_available() else "cpu"


@torch.no_grad()
def predict(request: Request) -> list[str]:
    """Do what is asked for.

    Returns
    -------
    list of str
        Names of the fields written.

    Raises
    ------
    FileExistsError, FileNotFoundError, KeyError, ValueError
        If files, fields or the model do not fit; the message says what came, what was expected
        and what to do.
    """
    folder, file = find_checkpoint(Path(request.checkpoint))
    layout = Layout.load(folder)
    statistics = Statistics.load(folder / "normalization.npz")
    model = Module.from_checkpoint(str(file))
    if hasattr(model, "chunk_size"):
        model = Module.from_checkpoint(str(file), override_args={"chunk_size": request.chunk_size})
    _check_model(model, layout, statistics)

    cloud = MeshCloud(request.input, request.location)
    names = [f"{channel.name}{request.suffix}" for channel in layout.targets]
    cloud.check_output(request.output, names)
    embedding, fx = (
        cloud.coordinates(len(statistics.means["embedding"])),
        cloud.fields(request.inputs),
    )
    if fx.shape[1] != len(statistics.means["fx"]):
        raise ValueError(
            f"inputs={request.inputs} are {fx.shape[1]} channels, the model takes "
            f"{len(statistics.means['fx'])} beside the coordinates; the mesh has "
            f"{sorted(cloud.data.keys())}"
        )
    fields = {"embedding": embedding, "fx": fx}
    weighted = request.weights
    if weighted is None:
        weighted = layout.weights
    if weighted:
        fields["weights"] = cloud.weights()
    device = torch.device(request.device)
    print(
        f"{type(model).__name__} of {file}\n"
        f"on {len(embedding):,} {request.location} of {request.input}"
        f"{', weighted' if weighted else ''}, on {device}\n"
        f"writes {', '.join(names)} to {request.output}",
        flush=True,
    )
    batch = statistics.inputs()(TensorDict(fields)).unsqueeze(0).to(device)
    predictor = Predictor(model.to(device).eval(), None, statistics, device)
    prediction = predictor(batch)[0].cpu()
    cloud.write(request.output, dict(zip(names, prediction.unbind(-1), strict=True)))
    return names


def _check_model(model: Module, layout: Layout, statistics: Statistics) -> None:
    if layout.series is not None:
        raise ValueError("The model predicts series in time, a mesh file has none")
    if getattr(model, "structured_shape", None) is not None:
        raise ValueError(
            f"The model was trained on a grid of {tuple(model.structured_shape)} points; for "
            "meshes of other kinds train with as_cloud=true"
        )
    for key, mean in statistics.means.items():
        if mean.ndim == 2:
            raise ValueError(
                f"The {key} was normalised node by node on {len(mean)} points of one mesh; for "
                f"other meshes train with normalize.{key}=channels"
            )


def main(arguments: list[str] | None = None) -> None:
    """Run the command line."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if not arguments or {"-h", "--help"} & set(arguments):
        print(f"{__doc__}\n{Request.__doc__}")
        return
    try:
        given = OmegaConf.merge(OmegaConf.structured(Request), OmegaConf.from_cli(arguments))
        predict(OmegaConf.to_object(given))
    except (OmegaConfBaseException, OSError, KeyError, ValueError, ImportError) as error:
        sys.exit(f"{error.args[0] if isinstance(error, KeyError) else error}")


if __name__ == "__main__":
    main()
