# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

r"""A folder of mesh files: fields at points or cells, parameters from a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from physicsnemo_cano.datapipes.cases import Wanted, find_cases, refuse_faulty, survey
from physicsnemo_cano.datapipes.reader import Channel, FieldReader, Split, source_of
from physicsnemo_cano.integrations.mesh_files import READABLE, absolute
from physicsnemo_cano.integrations.meshes import MeshCloud
from physicsnemo_cano.integrations.parameters import Parameters, names_of


class MeshFolder(FieldReader):
    r"""Mesh files, one a case, each of its own size; or one in a folder a case.

    All cases are looked at before one is trained on, and all that cannot be used are named.

    Parameters
    ----------
    root : str, Path or None
        The folder; files at any depth.
    split : {"train", "test"}
        Which part.
    n_train, n_test : int, optional
        Take fewer cases; all by default.
    weights : bool, optional, default=False
        Whether points or cells carry their area or volume.
    targets : sequence of str
        Fields to predict, scalars or vectors.
    inputs : sequence of str, optional
        Fields that are known beforehand.
    parameters : str, Path or sequence of str, optional
        Numbers of each case: a CSV file, in ``root`` or else from here, whose first column is the
        case's name, or names of field data. They are one token for all points; with ``inputs``
        or ``normals`` they stand at each.
    normals : bool, optional, default=False
        Whether the surface's unit normals are an input.
    location : {"points", "cells"}, optional
        Where fields are read and predicted; by default where the targets are.
    files : str, optional
        Pattern of the files' names, such as ``*.vtp``.
    skip : sequence of str or str, optional
        Names of cases to leave out, or a file with a name a line.
    test : float, sequence of str or str, optional, default=0.2
        The share of the cases that is for testing, or their names, or a file of names. With 1 all
        are, which an evaluation may want.
    test_seed : int, optional, default=0
        Of the order of the cases and so of the share for testing; it is not the training's seed,
        so that several seeds are tested on the same.

    Raises
    ------
    FaultyCases
        If there are cases that cannot be used.
    FileNotFoundError
        If there are no mesh files.
    ValueError
        If ``skip`` or ``test`` name cases that are not there.
    """

    source = "mesh files"
    help = f"Expected a folder with a mesh file a case: {', '.join(READABLE)}"

    def __init__(
        self,
        root: str | Path | None,
        split: Split = "train",
        n_train: int | None = None,
        n_test: int | None = None,
        weights: bool = False,
        targets: Sequence[str] = (),
        inputs: Sequence[str] = (),
        parameters: str | Path | Sequence[str] | None = None,
        normals: bool = False,
        location: str | None = None,
        files: str = "*",
        skip: Sequence[str] | str = (),
        test: float | Sequence[str] | str = 0.2,
        test_seed: int = 0,
    ) -> None:
        # A single name is a name, not a list of its letters.
        self._fields = (targets,) if isinstance(targets, str) else tuple(targets)
        self._inputs = (inputs,) if isinstance(inputs, str) else tuple(inputs)
        if not self._fields:
            raise ValueError("targets: give the fields to predict, such as targets=[p]")
        if location not in (None, "points", "cells"):
            raise ValueError(f"location: choose from points, cells; got {location!r}")
        if not isinstance(test, str | Sequence) and not 0 < test <= 1:
            raise ValueError(f"test: must be above 0 and at most 1, or names; got {test}")
        if isinstance(parameters, str | Path) and root and (Path(root) / parameters).is_file():
            parameters = Path(root) / parameters
        self._parameters = None if parameters is None else Parameters(parameters)
        self._normals, self._location, self._files = normals, location, files
        self._skip, self._test, self._test_seed = skip, test, test_seed
        super().__init__(root, split, n_train, n_test, weights)

    def open(self) -> tuple[Sequence[int], Sequence[int]]:
        """Find the cases, look at each and divide them."""
        if source_of(self.path) == "generated":
            self.source = "generated"
        found = find_cases(self.path, self._files)
        if not found:
            raise FileNotFoundError(f"No mesh files {self._files} in {self.path}. {self.help}")
        for name in self._named(self._skip, "skip", found):
            del found[name]
        if self._location is None:
            self._location = _where(self._fields, found.values())
        wanted = Wanted(
            self._location, self._fields, self._inputs, self._normals, bool(self.weighted)
        )
        self.cases = survey(found, wanted, self._parameters)
        refuse_faulty(self.cases, self.path)
        flat = all(
            c.high[2] - c.low[2] <= 1e-6 * max(np.subtract(c.high, c.low)) for c in self.cases
        )
        self.coordinates = tuple(map(Channel, "xy" if flat else "xyz"))
        sizes = {name: self.cases[0].ranges[name][0] for name in self._fields}
        self.targets = tuple(Channel(name) for item in sizes.items() for name in components(*item))
        #: What predicting on other files needs to know.
        self.mesh: dict[str, Any] = {
            "location": self._location,
            "targets": [[name, size] for name, size in sizes.items()],
            "inputs": list(self._inputs),
            "normals": self._normals,
            "parameters": None if self._parameters is None else self._parameters.names,
        }
        return self._parts(found)

    def _parts(self, found: Mapping[str, Path]) -> tuple[list[int], list[int]]:
        names = list(found)
        order = np.random.default_rng(self._test_seed).permutation(len(names)).tolist()
        if isinstance(self._test, str | Sequence):
            chosen = set(self._named(self._test, "test", found))
            test = [i for i in order if names[i] in chosen]
            train = [i for i in order if names[i] not in chosen]
        else:
            n_test = max(1, round(self._test * len(order)))
            train, test = order[n_test:], order[:n_test]
        if not (train if self.split == "train" else test):
            raise ValueError(
                f"{self.path}: of {len(names)} cases {len(train)} are for training and {len(test)} "
                f"for testing, expected some for {self.split}ing; change test"
            )
        return train, test

    def _named(
        self, given: Sequence[str] | str, key: str, found: Mapping[str, Path]
    ) -> Sequence[str]:
        if isinstance(given, str):
            file = absolute(given)
            if not file.is_file():
                raise FileNotFoundError(
                    f"{key}: no file {file}; give one with a name a line, or names in brackets"
                )
            given = [line.strip() for line in file.read_text().splitlines() if line.strip()]
        given = [str(name) for name in given]
        absent = [name for name in given if name not in found]
        if absent:
            raise ValueError(
                f"{key}: {self.path} has no cases {', '.join(absent)}, only {', '.join(found)}"
            )
        return given

    @property
    def names(self) -> list[str]:
        """Of the cases of this reader's part."""
        return [self.cases[index].name for index in self.indices]

    def n_points(self, index: int) -> int:
        """Of a case, points or cells."""
        case = self.cases[index]
        return case.n_points if self._location == "points" else case.n_cells

    def load(self, index: int) -> dict[str, torch.Tensor]:
        """Read a case."""
        case = self.cases[index]
        cloud = MeshCloud(case.file, self._location)
        token = ()
        if self._parameters is not None:
            token = self._parameters.of(names_of(case.name), cloud.mesh)
        sample = {
            "embedding": cloud.coordinates(len(self.coordinates)),
            "target": torch.cat(cloud.fields(self._fields), 1),
        }
        fx, _ = cloud.inputs(self._inputs, self._normals, token)
        if fx.shape[1]:
            sample["fx"] = fx
        if self.weighted:
            sample["weights"] = cloud.weights()
        return sample


def components(name: str, size: int) -> list[str]:
    """Names of a field's components.

    Parameters
    ----------
    name : str
        Of the field.
    size : int
        Number of its components.

    Returns
    -------
    list of str
        The field's own for a scalar; with an axis for a vector, else with a number.
    """
    if size == 1:
        return [name]
    return [f"{name}_{'xyz'[i] if size <= 3 else i}" for i in range(size)]


def _where(fields: Sequence[str], files: Sequence[Path]) -> str:
    """Where the first readable case has all fields; at points unless only cells have them."""
    for file in files:
        try:
            mesh = MeshCloud(file).mesh
        except (ValueError, OSError):
            continue
        at_points = all(name in mesh.point_data for name in fields)
        return "cells" if not at_points and all(n in mesh.cell_data for n in fields) else "points"
    return "points"
