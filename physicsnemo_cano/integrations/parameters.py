# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

r"""Parameters of cases, inputs of all points together: from a table, or from field data."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from physicsnemo_cano.integrations.mesh_files import READABLE, absolute

if TYPE_CHECKING:
    import pyvista


class Parameters:
    r"""Numbers of each case.

    Parameters
    ----------
    source : str, Path or sequence of str
        A CSV file with a line of names and a line a case, whose first column is the case's name;
        or the names of field data of the mesh files.
    names : sequence of str, optional
        Of the table's columns, in the order wanted; all by default.

    Attributes
    ----------
    names : list of str
        Of the parameters; vectors in field data have one.
    table : dict of str to list of str, or None
        Of a CSV file, the lines by case.

    Raises
    ------
    FileNotFoundError
        If there is no such table.
    ValueError
        If the table has no such columns, or two lines of a name.
    """

    def __init__(
        self, source: str | Path | Sequence[str], names: Sequence[str] | None = None
    ) -> None:
        self.file, self.table = None, None
        if not isinstance(source, str | Path):
            self.names = list(source)
            return
        self.file = absolute(source)
        if not self.file.is_file():
            raise FileNotFoundError(
                f"parameters: no table at {self.file}; give a CSV file, or the names of field data "
                "in brackets"
            )
        # Spreadsheets begin with a byte-order mark, some separate by semicolons.
        text = self.file.read_text("utf-8-sig")
        separator = ";" if ";" in text.partition("\n")[0] else ","
        lines = [line for line in csv.reader(text.splitlines(), delimiter=separator) if any(line)]
        head = [name.strip() for name in lines[0]] if lines else []
        self.names = list(names or head[1:])
        absent = [name for name in self.names if name not in head[1:]]
        if absent or not self.names:
            raise ValueError(
                f"{self.file} has the columns {head}, expected the case's name and then "
                f"{', '.join(self.names) or 'parameters'}"
            )
        places, self.table = [head.index(name, 1) for name in self.names], {}
        for line in lines[1:]:
            case = _without_ending(line[0].strip())
            if case in self.table:
                raise ValueError(f"{self.file} has two lines of {case}; keep one")
            self.table[case] = [line[i].strip() if i < len(line) else "" for i in places]

    def of(self, cases: Sequence[str], mesh: pyvista.DataSet) -> np.ndarray:
        r"""Parameters of a case.

        Parameters
        ----------
        cases : sequence of str
            Names that it goes by; the first that the table has is taken.
        mesh : pyvista.DataSet
            Its mesh, for field data.

        Returns
        -------
        numpy.ndarray
            Shape :math:`(C,)`, float64, finite.

        Raises
        ------
        ValueError
            If there are none, or something else than finite numbers.
        """
        if self.table is None:
            absent = [name for name in self.names if name not in mesh.field_data]
            if absent:
                has = sorted(mesh.field_data.keys())
                raise ValueError(f"it has no field data {', '.join(absent)}, only {has}")
            given = [np.ravel(mesh.field_data[name]) for name in self.names]
            named = list(zip(self.names, given, strict=True))
        else:
            case = next((case for case in cases if case in self.table), None)
            if case is None:
                raise ValueError(f"{self.file} has no line of {' or '.join(cases)}")
            named = [(n, [v]) for n, v in zip(self.names, self.table[case], strict=True)]
        numbers = []
        for name, values in named:
            for value in values:
                try:
                    numbers.append(float(value))
                except ValueError:
                    numbers.append(np.nan)
                if not np.isfinite(numbers[-1]):
                    raise ValueError(f"its parameter {name} is {value!r}, expected a number")
        return np.array(numbers)


def _without_ending(name: str) -> str:
    return name[:-4] if name.lower().endswith(READABLE) else name


def names_of(path: str) -> list[str]:
    """Names that a case goes by in a table: with its folders, or without.

    Parameters
    ----------
    path : str
        Of :func:`physicsnemo_cano.datapipes.cases.find_cases`.

    Returns
    -------
    list of str
    """
    return list(dict.fromkeys([path, path.rpartition("/")[2]]))
