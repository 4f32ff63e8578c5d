# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

r"""Predict fields on a mesh file with a trained model.

``python -m physicsnemo_cano.predict checkpoint=outputs/…/checkpoints/last input=body.vtp
output=predicted.vtp`` opens a checkpoint of the recipe, whose folder also says how the data were
normalised, and writes the mesh with the predicted fields, under the names of the model's targets.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, fields

import torch
from physicsnemo.core import Module
from tensordict import TensorDict

from physicsnemo_cano.integrations.mesh_files import absolute
from physicsnemo_cano.integrations.meshes import MeshCloud
from physicsnemo_cano.models.cano import CANO
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
    parameters : list of float
        Inputs of all points together, such as the free stream, behind ``inputs``.
    weights : bool or None
        Whether areas or volumes weigh the points; by default as in training.
    chunk_size : int
        Points at a time; it bounds the memory, not the result. For CANO.
    suffix : str
        Behind the names of the new fields.
    device : str
        Of torch.
    """

    checkpoint: str
    input: str
    output: str
    location: str = "points"
    inputs: list[str] = field(default_factory=list)
    parameters: list[float] = field(default_factory=list)
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
    device = _device(request.device)
    folder, file = find_checkpoint(absolute(request.checkpoint))
    layout = Layout.load(folder)
    statistics = Statistics.load(folder / "normalization.npz")
    model = Module.from_checkpoint(str(file))
    for module in model.modules():
        if isinstance(module, CANO):
            module.set_chunk_size(request.chunk_size)
    _check_model(model, layout, statistics)

    cloud = MeshCloud(request.input, request.location)
    names = [f"{channel.name}{request.suffix}" for channel in layout.targets]
    cloud.check_output(request.output, names)
    embedding = cloud.coordinates(len(statistics.means["embedding"]))
    fx, channels = cloud.inputs(request.inputs, False, request.parameters)
    if fx.shape[1] != len(statistics.means["fx"]):
        raise ValueError(
            f"inputs={request.inputs} and parameters={request.parameters} are {fx.shape[1]} "
            f"channels, the model takes {len(statistics.means['fx'])} beside the coordinates; the "
            f"mesh has {sorted(cloud.data.keys())}"
        )
    inputs = {"embedding": embedding, "fx": fx}
    # In float64, so that a position far from zero keeps its digits.
    batch = statistics.inputs()(TensorDict(inputs)).float()
    axes = [f"coordinate {axis}" for axis in "xyz"[: embedding.shape[1]]]
    for key, named in (("embedding", axes), ("fx", channels)):
        bare = (statistics.means[key] == 0) & (statistics.stds[key] == 1)
        _check_range(named, inputs[key], batch[key], bare)
    weighted = request.weights
    if weighted is None:
        weighted = layout.weights
    if weighted:
        weights = cloud.weights()
        batch["weights"] = (weights / weights.mean()).float()  # of any unit
    print(
        f"{type(model).__name__} of {file}\n"
        f"on {len(embedding):,} {request.location} of {request.input}"
        f"{', weighted' if weighted else ''}, on {device}\n"
        f"writes {', '.join(names)} to {request.output}",
        flush=True,
    )
    predictor = Predictor(model.to(device).eval(), None, statistics, device)
    prediction = predictor(batch.unsqueeze(0).to(device))[0].cpu()
    for name, values in zip(names, prediction.unbind(-1), strict=True):
        wrong = (~values.isfinite()).nonzero()
        if len(wrong):
            raise ValueError(
                f"The model's {name} is not finite at {len(wrong)} {request.location}, the first "
                f"at index {int(wrong[0])}; nothing is written: check the model on its test set"
            )
    cloud.write(request.output, dict(zip(names, prediction.unbind(-1), strict=True)))
    return names


def _device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:  # torch's two ways to say so
        raise ValueError(
            f"device={name} is not to be had here ({str(error).splitlines()[0]}); give "
            "device=cpu, or another that torch finds"
        ) from error
    return device


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


def _check_range(
    channels: list[str], values: torch.Tensor, normal: torch.Tensor, bare: torch.Tensor
) -> None:
    # Beyond 1/eps, float32 does not tell two values apart that differ by a standard deviation. What
    # was not normalised has no deviation to compare with; its square has to be finite.
    float32 = torch.finfo(torch.float32)
    limits = torch.where(bare, float32.max**0.5, 1 / float32.eps).tolist()
    columns = zip(channels, values.unbind(1), normal.unbind(1), limits, strict=True)
    for name, value, scaled, limit in columns:
        wrong = (~(scaled.abs() <= limit)).nonzero()
        if len(wrong):
            raise ValueError(
                f"{name} has {len(wrong)} values more than {limit:.0e} standard deviations from "
                f"the training data, the first {value[wrong[0]].item():g} at index "
                f"{int(wrong[0])}: replace fill values, or remove their points"
            )


def parse(arguments: Sequence[str]) -> Request:
    r"""Read ``key=value`` arguments; a value is what stands behind the ``=``, as it stands.

    Parameters
    ----------
    arguments : sequence of str
        Of the command line. ``inputs`` are names between commas, in brackets or not; a name with
        a comma stands in double quotes. ``parameters`` are numbers in the same form.

    Returns
    -------
    Request
        What is asked for.

    Raises
    ------
    ValueError
        If a key is unknown or missing, or its value of another type.
    """
    keys, given = [key.name for key in fields(Request)], {}
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if key not in keys or not equals:
            raise ValueError(f"{argument}: expected key=value, with a key of {', '.join(keys)}")
        try:
            given[key] = _READ.get(key, str)(value)
        except (KeyError, ValueError) as error:
            raise ValueError(f"{argument}: expected {_EXPECTED[key]}") from error
    missing = [f"{key}=" for key in ("checkpoint", "input", "output") if not given.get(key)]
    if missing:
        raise ValueError(f"{' '.join(missing)} missing, each with a path; --help lists all keys")
    return Request(**given)


def _names(text: str) -> list[str]:
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    return [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]


_READ = {
    "inputs": _names,
    "parameters": lambda text: [float(number) for number in _names(text)],
    "weights": lambda text: {"true": True, "false": False, "null": None}[text.lower()],
    "chunk_size": int,
}
_EXPECTED = {
    "weights": "true, false or null",
    "chunk_size": "a whole number",
    "inputs": "names",
    "parameters": "numbers, such as [0.8,1.5]",
}


def main(arguments: list[str] | None = None) -> None:
    """Run the command line."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if not arguments or {"-h", "--help"} & set(arguments):
        print(f"{__doc__}\n{Request.__doc__}")
        return
    try:
        predict(parse(arguments))
    except (OSError, KeyError, ValueError, ImportError) as error:
        sys.exit(f"{error.args[0] if isinstance(error, KeyError) else error}")


if __name__ == "__main__":
    main()
