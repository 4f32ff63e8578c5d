# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

r"""Predict fields on mesh files with a trained model.

``physicsnemo-cano-predict checkpoint=outputs/…/checkpoints/best input=body.vtp output=new.vtp``
opens a checkpoint of the recipe, whose folder also says how the data were normalised, and writes
the mesh with the predicted fields, under the names of the model's targets. Where ``input`` is a
folder, so is ``output``, with the same files. ``forces.pressure=p`` and the other settings of
forces add coefficients of forces and moments.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path

import numpy as np
import torch

from physicsnemo_cano.datapipes.cases import find_cases
from physicsnemo_cano.integrations.forces import References, integrate
from physicsnemo_cano.integrations.mesh_files import absolute
from physicsnemo_cano.integrations.meshes import MeshCloud
from physicsnemo_cano.integrations.parameters import Parameters, names_of
from physicsnemo_cano.recipe.folder import replacing
from physicsnemo_cano.recipe.surrogate import Surrogate

_ERRORS = (OSError, KeyError, ValueError, ImportError)


@dataclass
class Request:
    """What the command line asks for.

    Attributes
    ----------
    checkpoint : str
        A folder of a run's ``checkpoints/``, or the ``.mdlus`` file in it.
    input, output : str
        Mesh files; the second must not exist. Or folders; nothing in the second is overwritten.
    location : str or None
        ``points`` or ``cells``; by default as in training.
    inputs : list of str or None
        Fields of the mesh that the model takes as its input function, in its order; by default
        those of the training.
    parameters : list of float or str
        Inputs of all points together, such as the free stream, behind ``inputs``: numbers, or a CSV
        file with a line a case. By default field data of the names they had in training.
    weights : bool or None
        Whether areas or volumes weigh the points; by default as in training.
    chunk_size : int
        Points at a time; it bounds the memory, not the result. For CANO.
    suffix : str
        Behind the names of the new fields.
    files : str
        Of a folder, pattern of the files' names, such as ``*.stl``.
    forces : References
        ``forces.pressure=p forces.shear=tau forces.area=2 …``: see that class.
    table : str or None
        A CSV file of the forces, a line a case; it must not exist.
    device : str
        Of torch.
    """

    checkpoint: str
    input: str
    output: str
    location: str | None = None
    inputs: list[str] | None = None
    parameters: list[float] | str = field(default_factory=list)
    weights: bool | None = None
    chunk_size: int = 65536
    suffix: str = ""
    files: str = "*"
    forces: References = field(default_factory=References)
    table: str | None = None
    device: str = "cuda" if torch.cuda.is_available() else "cpu"


def predict(request: Request) -> list[str]:
    """Do what is asked for.

    Parameters
    ----------
    request : Request
        Files, fields and settings.

    Returns
    -------
    list of str
        Names of the fields written.

    Raises
    ------
    FileExistsError, FileNotFoundError, KeyError, ValueError
        If files, fields or the model do not fit; the message says what came, what was expected
        and what to do. Of a folder, the other files are written and the message names all that
        were not.
    """
    device = _device(request.device)
    surrogate = Surrogate(absolute(request.checkpoint), device, request.chunk_size)
    names = [f"{name}{request.suffix}" for name, _ in surrogate.targets]
    source = absolute(request.input)
    outputs = _outputs(request, source)
    table = _table(request, surrogate)
    print(
        f"{type(surrogate.model).__name__} of {surrogate.file}, on {device}\n"
        f"writes {', '.join(names)} to {request.output}",
        flush=True,
    )
    rows, failed = {}, []
    for case, (file, output) in outputs.items():
        try:
            rows[case] = _predict_one(request, surrogate, case, file, output)
        except _ERRORS as error:
            if not source.is_dir():
                raise
            failed.append(f"  {case}: {error.args[0] if isinstance(error, KeyError) else error}")
    if table is not None and rows:
        table.parent.mkdir(parents=True, exist_ok=True)
        with replacing(table) as draft, draft.open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(["case", *next(iter(rows.values()))])
            writer.writerows([case, *row.values()] for case, row in rows.items())
    if failed:
        raise ValueError(
            f"{len(failed)} of {len(outputs)} files are not predicted:\n" + "\n".join(failed)
        )
    return names


def _outputs(request: Request, source: Path) -> dict[str, tuple[Path, Path]]:
    """Of each case the file and where its prediction goes, without an ending if that is open."""
    output = absolute(request.output)
    if not source.is_dir():
        return {source.stem: (source, output)}
    cases = find_cases(source, request.files)
    if not cases:
        raise FileNotFoundError(f"input={source} holds no mesh files {request.files}")
    if output.is_file():
        raise FileExistsError(f"output={output} is a file, input a folder; give a folder")
    found = {}
    for case, file in cases.items():
        path = output / file.relative_to(source)
        found[case] = (
            file,
            path if path.suffix.lower() in (".vtp", ".vtu", ".vtk") else (path.with_suffix("")),
        )
    endings = ("", ".vtp", ".vtu")
    there = [p for _, p in found.values() if any(Path(f"{p}{end}").is_file() for end in endings)]
    if there:
        raise FileExistsError(
            f"output={output} holds {', '.join(p.name for p in there)} already, and nothing is "
            "overwritten; give another folder"
        )
    count = Counter(path.with_suffix("") for _, path in found.values())
    twice = [case for case, (_, path) in found.items() if count[path.with_suffix("")] > 1]
    if twice:
        raise ValueError(
            f"input={source}: {', '.join(twice)} would be written to one file; choose the one "
            "kind with files=*.vtp or so"
        )
    return found


def _table(request: Request, surrogate: Surrogate) -> Path | None:
    forces = request.forces
    for name in (forces.pressure, forces.shear):
        known = [target for target, _ in surrogate.targets]
        if name is not None and name.removeprefix("-") not in known:
            raise ValueError(f"forces: the model predicts {', '.join(known)}, got {name}")
    if request.table is None:
        return None
    if not forces.wanted:
        raise ValueError(
            f"table={request.table} is for forces: give forces.pressure=, forces.shear= or both"
        )
    table = absolute(request.table)
    if table.exists():
        raise FileExistsError(f"table={table} is there already and is not overwritten")
    return table


def _predict_one(
    request: Request, surrogate: Surrogate, case: str, file: Path, output: Path
) -> dict[str, float]:
    """Predict and write one mesh; return its coefficients."""
    cloud = MeshCloud(file, request.location or surrogate.location)
    if not output.suffix and absolute(request.input).is_dir():
        output = output.with_name(output.name + cloud.ending)
    output = cloud.check_output(
        output, [f"{name}{request.suffix}" for name, _ in surrogate.targets]
    )
    numbers, named = _parameters(request, surrogate, case, cloud)
    inputs = surrogate.inputs if request.inputs is None else request.inputs
    weighted = surrogate.layout.weights if request.weights is None else request.weights
    predicted = surrogate(cloud, inputs, numbers, weighted)
    found, forces = {}, request.forces
    if forces.wanted:
        found = _forces(forces, cloud, {k: v.numpy() for k, v in predicted.items()}, named)
    fields, data = ({f"{k}{request.suffix}": v for k, v in d.items()} for d in (predicted, found))
    cloud.write(output, fields, data)
    said = ", ".join(f"{name} {value:.4g}" for name, value in found.items() if name[0] == "C")
    print(
        f"{case}: {len(next(iter(predicted.values()))):,} {cloud.location}"
        f"{', weighted' if weighted else ''}{'; ' if said else ''}{said}",
        flush=True,
    )
    return found


def _parameters(
    request: Request, surrogate: Surrogate, case: str, cloud: MeshCloud
) -> tuple[Sequence[float] | np.ndarray, dict[str, float]]:
    """Numbers of a case, in the model's order, and by name where they have names."""
    names = surrogate.parameters or []
    if isinstance(request.parameters, str):
        given = Parameters(request.parameters, names)
    elif request.parameters or not names:
        given = None
    else:
        given = Parameters(names)
    if given is None:
        numbers = request.parameters
    else:
        goes_by = list(dict.fromkeys([*names_of(case), cloud.file.parent.name]))
        try:
            numbers = given.of(goes_by, cloud.mesh)
        except ValueError as error:
            raise ValueError(
                f"{cloud.file}: {error}; give parameters=cases.csv, or numbers in brackets"
            ) from error
        names = given.names
    return numbers, dict(zip(names, map(float, numbers), strict=False))


def _forces(
    forces: References, cloud: MeshCloud, predicted: dict[str, np.ndarray], named: dict[str, float]
) -> dict[str, float]:
    given = {}
    for key in ("pressure", "shear"):
        name = getattr(forces, key)
        if name is not None:
            values = predicted[name.removeprefix("-")]
            given[key] = -values if name.startswith("-") else values
    for key, shape in (("pressure", ()), ("shear", (3,))):
        if key in given and given[key].shape[1:] != shape:
            raise ValueError(
                f"forces.{key}={getattr(forces, key)} has values of shape "
                f"{given[key].shape[1:]}, expected {shape}"
            )
    force, moment = integrate(
        cloud.mesh, **given, location=cloud.location, centre=forces.centre, flip=forces.flip
    )
    found = forces.coefficients(force, moment, named)
    for name, vector in (("force", force), ("moment", moment)):
        found |= {f"{name}_{axis}": float(v) for axis, v in zip("xyz", vector, strict=True)}
    return found


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


def parse(arguments: Sequence[str]) -> Request:
    r"""Read ``key=value`` arguments; a value is what stands behind the ``=``, as it stands.

    Parameters
    ----------
    arguments : sequence of str
        Of the command line. ``inputs`` are names between commas, in brackets or not; a name with
        a comma stands in double quotes. ``parameters`` are numbers in the same form, or a CSV file.

    Returns
    -------
    Request
        What is asked for.

    Raises
    ------
    ValueError
        If a key is unknown or missing, or its value of another type.
    """
    keys, given = [key.name for key in fields(Request) if key.name != "forces"], {}
    about = {f"forces.{key.name}": key.name for key in fields(References)}
    forces = {}
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if (key not in keys and key not in about) or not equals:
            allowed = ", ".join([*keys, *about])
            raise ValueError(f"{argument}: expected key=value, with a key of {allowed}")
        try:
            if key in about:
                forces[about[key]] = _READ_FORCES[about[key]](value)
            else:
                given[key] = _READ.get(key, str)(value)
        except (KeyError, ValueError) as error:
            expected = _EXPECTED.get(key, "numbers, such as forces.drag=[1,0,0]")
            raise ValueError(f"{argument}: expected {expected}") from error
    missing = [f"{key}=" for key in ("checkpoint", "input", "output") if not given.get(key)]
    if missing:
        raise ValueError(f"{' '.join(missing)} missing, each with a path; --help lists all keys")
    return Request(**given, forces=References(**forces))


def _names(text: str) -> list[str]:
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    return [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]


def _numbers(text: str) -> list[float]:
    return [float(number) for number in _names(text)]


def _parameters_of(text: str) -> list[float] | str:
    return text if text.lower().endswith(".csv") else _numbers(text)


def _speed(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


_TRUE = {"true": True, "false": False}
_READ = {
    "inputs": _names,
    "parameters": _parameters_of,
    "weights": lambda text: {**_TRUE, "null": None}[text.lower()],
    "chunk_size": int,
}
_READ_FORCES = {
    "pressure": str,
    "shear": str,
    "speed": _speed,
    **dict.fromkeys(("area", "length", "density"), float),
    **dict.fromkeys(("drag", "lift", "centre"), _numbers),
    "flip": lambda text: _TRUE[text.lower()],
}
_EXPECTED = {
    "weights": "true, false or null",
    "chunk_size": "a whole number",
    "inputs": "names",
    "parameters": "numbers, such as [0.8,1.5], or a .csv file",
    "forces.flip": "true or false",
}


def main(arguments: list[str] | None = None) -> None:
    """Run the command line.

    Parameters
    ----------
    arguments : list of str, optional
        Of the command; by default those the process was started with.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    if not arguments or {"-h", "--help"} & set(arguments):
        print(f"{__doc__}\n{Request.__doc__}\n{References.__doc__}")
        return
    try:
        predict(parse(arguments))
    except _ERRORS as error:
        sys.exit(f"{error.args[0] if isinstance(error, KeyError) else error}")


if __name__ == "__main__":
    main()
