# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

r"""Cases of a folder of mesh files: what each holds, and what is wrong with it."""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from physicsnemo_cano.integrations.mesh_files import READABLE, absolute, blocks_of
from physicsnemo_cano.integrations.meshes import Location, MeshCloud
from physicsnemo_cano.integrations.parameters import Parameters, names_of

#: Times the median range from which a field is taken for one in other units. Pa and kPa, m and mm
#: are a thousandfold apart, the cases of a study up to some thirtyfold.
OTHER_UNITS = 300.0


@dataclass(frozen=True)
class Case:
    """A mesh file.

    Attributes
    ----------
    name : str
        Its path below the folder without ending, or that of the folder it is alone in.
    file : Path
        The file.
    n_points, n_cells : int
        Of the mesh; 0 if it cannot be read.
    low, high : tuple of float
        Of the coordinates x, y, z.
    ranges : dict of str to tuple of (int, float, float)
        By field, the number of its components, the least and the greatest value.
    faults : tuple of str
        What is wrong with it.
    """

    name: str
    file: Path
    n_points: int = 0
    n_cells: int = 0
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    ranges: dict[str, tuple[int, float, float]] = field(default_factory=dict)
    faults: tuple[str, ...] = ()


@dataclass(frozen=True)
class Wanted:
    """What every case has to hold; see :class:`.meshes.MeshFolder`."""

    location: Location
    targets: tuple[str, ...]
    inputs: tuple[str, ...]
    normals: bool
    weights: bool


class FaultyCases(ValueError):
    """Cases that cannot be used.

    Parameters
    ----------
    message : str
        Names them all.
    cases : list of Case
        These and the others.
    """

    def __init__(self, message: str, cases: list[Case]) -> None:
        super().__init__(message)
        self.cases = cases


def find_cases(root: Path, files: str = "*") -> dict[str, Path]:
    r"""Mesh files of a folder, at any depth.

    Parameters
    ----------
    root : Path
        The folder, or one file.
    files : str, optional
        Pattern of the files' names, as for ``Path.rglob``.

    Returns
    -------
    dict of str to Path
        By the case's name, in order. Where every file has a folder of its own, that is the case:
        its name is that of the folder, without what all of them end in. Else it is the file,
        without its ending if that leaves it the only one of the name. Blocks of a ``.vtm`` file
        belong to it.
    """
    if root.is_file():
        return {root.stem: root}
    found = [
        file
        for file in sorted(root.rglob(files))
        if file.suffix.lower() in READABLE and file.is_file() and not file.name.startswith(".")
    ]
    lists = [file for file in found if file.suffix.lower() == ".vtm"]
    blocks = {part.resolve() for file in lists for part in blocks_of(file)}
    beside = {file.with_suffix("") for file in lists}  # where VTK puts them
    found = [f for f in found if f.resolve() not in blocks and not beside & set(f.parents)]
    paths = [file.relative_to(root) for file in found]
    folders = [path.parent.parts for path in paths]
    if len(found) > 1 and all(folders) and len(set(folders)) == len(folders):
        while min(map(len, folders)) > 1 and len({parts[-1] for parts in folders}) == 1:
            folders = [parts[:-1] for parts in folders]
        return dict(zip(map("/".join, folders), found, strict=True))
    count = Counter(path.with_suffix("").as_posix() for path in paths)
    short = [path.with_suffix("").as_posix() for path in paths]
    names = [s if count[s] == 1 else p.as_posix() for s, p in zip(short, paths, strict=True)]
    return dict(zip(names, found, strict=True))


def survey(
    cases: dict[str, Path], wanted: Wanted, parameters: Parameters | None = None
) -> list[Case]:
    """Look at all cases, each read once in a process as long as its file stays as it is.

    Parameters
    ----------
    cases : dict of str to Path
        As :func:`find_cases` gives them.
    wanted : Wanted
        What they have to hold.
    parameters : Parameters, optional
        Of each.

    Returns
    -------
    list of Case
        In the same order, with what is wrong with each.
    """
    found = []
    for name, file in cases.items():
        stamps = [(f.stat().st_mtime_ns, f.stat().st_size) for f in (file, *blocks_of(file))]
        case = _examined(file, tuple(stamps), wanted)
        faults = case.faults
        if parameters is not None and case.n_points:
            # Field data are in the file, a table is at hand.
            try:
                mesh = MeshCloud(file).mesh if parameters.table is None else None
                parameters.of(names_of(name), mesh)
            except ValueError as error:
                faults = (*faults, str(error))
        found.append(dataclasses.replace(case, name=name, faults=faults))
    strange = _compared(found, (*wanted.targets, *wanted.inputs))
    return [
        dataclasses.replace(case, faults=(*case.faults, *faults))
        for case, faults in zip(found, strange, strict=True)
    ]


@functools.cache
def _examined(file: Path, stamps: tuple, wanted: Wanted) -> Case:
    faults: list[str] = []
    file = absolute(file)  # as the messages have it

    def tried(function, *arguments):
        try:
            return function(*arguments)
        except (KeyError, ValueError, OSError) as error:
            text = str(error.args[0] if isinstance(error, KeyError) else error)
            faults.append(text.replace(f"{file}: ", "").replace(str(file), "it"))

    cloud = tried(MeshCloud, file, wanted.location)
    if cloud is None:
        return Case("", file, faults=tuple(faults))
    ranges, seen = {}, len(faults)
    for name in (*wanted.targets, *wanted.inputs):
        values = tried(cloud.fields, [name])
        if values is not None:
            values = values[0].numpy()
            ranges[name] = (values.shape[1], float(values.min()), float(values.max()))
    if len(faults) == seen and not any(any(ranges[name][1:]) for name in wanted.targets):
        faults.append("its targets are zero everywhere and have no relative error")
    x = tried(cloud.coordinates, 3)
    if x is not None:
        tried(cloud.inputs, (), wanted.normals, ())
        if wanted.weights:
            tried(cloud.weights)
    low, high = ((), ()) if x is None else (tuple(x.amin(0).tolist()), tuple(x.amax(0).tolist()))
    mesh = cloud.mesh
    return Case("", file, mesh.n_points, mesh.n_cells, low, high, ranges, tuple(faults))


def _compared(cases: list[Case], fields: Sequence[str]) -> list[list[str]]:
    """What is strange about each case beside the others."""
    faults: list[list[str]] = [[] for _ in cases]
    for name in fields:
        held = {i: case.ranges[name] for i, case in enumerate(cases) if name in case.ranges}
        usual = Counter(n for n, _, _ in held.values()).most_common(1)
        for i, (n, _, _) in held.items():
            if n != usual[0][0]:
                faults[i].append(f"{name} has {n} components, in most cases {usual[0][0]}")
        _check_ranges(name, {i: high - low for i, (_, low, high) in held.items()}, faults)
    sizes = {i: max(np.subtract(case.high, case.low)) for i, case in enumerate(cases) if case.low}
    _check_ranges("the coordinates", sizes, faults)
    return faults


def _check_ranges(name: str, ranges: dict[int, float], faults: list[list[str]]) -> None:
    ranges = {i: value for i, value in ranges.items() if value > 0}
    for i, value in ranges.items():
        others = [other for j, other in ranges.items() if j != i]
        median = float(np.median(others)) if others else value
        if not 1 / OTHER_UNITS < value / median < OTHER_UNITS:
            faults[i].append(
                f"{name} range over {value:.3g}, in the other cases over {median:.3g}: other "
                "units, or no result"
            )


def refuse_faulty(cases: list[Case], root: Path) -> None:
    """Name all faulty cases at once.

    Parameters
    ----------
    cases : list of Case
        As :func:`survey` gives them.
    root : Path
        The folder, for the message.

    Raises
    ------
    FaultyCases
        If there are any.
    """
    faulty = [case for case in cases if case.faults]
    if not faulty:
        return
    by_fault: dict[str, list[str]] = {}
    for case in faulty:
        for fault in case.faults:
            by_fault.setdefault(fault, []).append(case.name)
    lines = [
        f"  {'all' if len(names) == len(cases) > 1 else ', '.join(names)}: {fault}"
        for fault, names in by_fault.items()
    ]
    skip = ",".join(_quoted(case.name) for case in faulty)
    leave = f"leave them out: 'skip=[{skip}]'" if len(faulty) < len(cases) else "name other fields"
    lines.append(f"Repair them, or {leave}")
    raise FaultyCases(
        f"{len(faulty)} of {len(cases)} cases of {root} cannot be used:\n" + "\n".join(lines), cases
    )


def _quoted(name: str) -> str:
    plain = name.replace("/", "").replace("-", "").replace(".", "").replace("_", "").isalnum()
    return name if plain else f'"{name}"'


def describe(cases: list[Case]) -> str:
    """Sizes, fields and ranges of cases in a table.

    Parameters
    ----------
    cases : list of Case
        As :func:`survey` gives them.

    Returns
    -------
    str
    """
    fields = list(dict.fromkeys(name for case in cases for name in case.ranges))
    rows = [["case", "points", "cells", "size x, y, z", *fields, ""]]
    for case in cases:
        extent = ", ".join(f"{v:.4g}" for v in np.subtract(case.high, case.low))
        ranges = [case.ranges.get(name) for name in fields]
        rows.append(
            [case.name, f"{case.n_points:,}", f"{case.n_cells:,}", extent or "-"]
            + ["-" if r is None else f"{r[1]:.4g} … {r[2]:.4g}" for r in ranges]
            + ["FAULTY" if case.faults else ""]
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
