# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""The base of data generators: a draw, a solve and a layout; command line and mini set follow."""

import argparse
import functools
import hashlib
import inspect
import json
import os
import sys
from dataclasses import dataclass, field, fields
from importlib.metadata import version
from pathlib import Path
from typing import ClassVar

import numpy as np

from physicsnemo_cano.datapipes.generation import generate, made_data, remove_parts, save_new
from physicsnemo_cano.datapipes.matlab import write_matlab
from physicsnemo_cano.datapipes.physgto import LISTS, write_trajectory
from physicsnemo_cano.datapipes.reader import parts_of
from physicsnemo_cano.integrations.mesh_files import write_surface

__all__ = ["Generator", "MeshGenerator", "TrajectoryGenerator", "option"]

WRITERS = {
    ".h5": write_trajectory,
    ".npy": np.save,
    ".mat": write_matlab,
    ".txt": lambda stream, text: stream.write(text.encode()),
    ".csv": lambda stream, text: stream.write(text.encode()),
    ".vtp": write_surface,
    ".json": lambda stream, record: stream.write(json.dumps(record, indent=1).encode()),
}
VERSION = version("physicsnemo-cano")
COMPUTING = ("batch_size", "device")  # options that say how to solve, not what


def option(default, **arguments):
    """A field that is an option of the command line.

    Parameters
    ----------
    default : int, float, str, tuple or None
        Its type is the option's; a tuple takes as many values as it has.
    **arguments
        Of `argparse.ArgumentParser.add_argument`.

    Returns
    -------
    dataclasses.Field
    """
    return field(default=default, metadata=arguments)


@dataclass(frozen=True)
class Generator:
    """A data set that a solver makes: a draw, a solve and a layout.

    A subclass is a frozen dataclass whose fields are its options; those that begin with ``n_``
    say how many samples. It has ``draw``, ``solve`` or ``solve_batch``, and where a file is not
    just an array of all samples, ``layout``. It stands in a file ``generate.py``, in a folder
    with the solver and little else.

    Attributes
    ----------
    solver : str
        In a line, for the provenance.
    files : tuple of str
        Names of the files; the ending says how they are written.
    constants : dict
        Of the physics, of JSON types, for the provenance.
    mini_set : str
        The command line's options of the mini set.
    seconds : float
        A sample's time on one CPU core, with these options.
    attempts : int
        Draws of a sample until one converges.
    batch_size : int
        Samples that are solved, and written to a part, at once.
    device : str
        With ``cuda``, all runs in one process.
    """

    solver: ClassVar[str]
    files: ClassVar[tuple[str, ...]]
    constants: ClassVar[dict] = {}
    mini_set: ClassVar[str] = ""
    seconds: ClassVar[float]
    attempts: ClassVar[int] = 1
    batch_size: ClassVar[int] = 1
    device: ClassVar[str] = "cpu"

    def __post_init__(self):
        for one in fields(self):
            value = getattr(self, one.name)
            for number in value if isinstance(value, tuple) else (value,):
                wrong = isinstance(number, int | float) and not number > 0
                if wrong and value != one.default:  # which may be 0, for none
                    raise ValueError(f"{_flag(one.name)}: expected more than 0, got {number}")

    def draw(self, rng):
        """What a sample is solved for.

        Parameters
        ----------
        rng : numpy.random.Generator
            The sample's own.

        Returns
        -------
        object
            What `solve` takes.
        """
        raise NotImplementedError

    def solve(self, drawn):
        """Solve a sample.

        Parameters
        ----------
        drawn : object
            Of `draw`.

        Returns
        -------
        dict of str to ndarray or None
            Its arrays; None where the solver does not converge and the sample is drawn anew.
        """
        raise NotImplementedError

    def solve_batch(self, drawn):
        """Solve samples together, by default one after the other.

        Parameters
        ----------
        drawn : list
            Of `draw`, one a sample.

        Returns
        -------
        list
            What `solve` returns, one a sample.
        """
        return [self.solve(one) for one in drawn]

    def layout(self, arrays):
        """Contents of the files, by default an array each.

        Parameters
        ----------
        arrays : dict of str to ndarray
            Of all samples, which are first.

        Returns
        -------
        iterable
            One content for each of `files`.
        """
        return arrays.values()

    @property
    def count(self):
        """Number of draws."""
        return sum(getattr(self, name) for name in self._options() if name.startswith("n_"))

    def sample(self, rngs):
        """Draw and solve samples.

        Parameters
        ----------
        rngs : list of numpy.random.Generator
            One a sample.

        Returns
        -------
        dict of ndarray
            The arrays of `solve`, samples first, and ``draws``, 1 where the first converged.

        Raises
        ------
        RuntimeError
            If a sample's draws all fail to converge.
        """
        kept = {}
        for attempt in range(1, self.attempts + 1):
            left = [k for k in range(len(rngs)) if k not in kept]
            solved = self.solve_batch([self.draw(rngs[k]) for k in left])
            for k, arrays in zip(left, solved, strict=True):
                if arrays is not None:
                    kept[k] = arrays | {"draws": attempt}
            if len(kept) == len(rngs):
                return {name: np.array([kept[k][name] for k in sorted(kept)]) for name in kept[0]}
        missing = sorted(set(range(len(rngs))) - set(kept))
        raise RuntimeError(
            f"no draw of {self.attempts} converged; samples counted in the batch: {missing}"
        )

    def part(self, rngs, directory):
        """Arrays of a batch that are kept in memory; others may go to files.

        Parameters
        ----------
        rngs : list of numpy.random.Generator
            One a sample.
        directory : Path
            Of the data set.

        Returns
        -------
        dict of str to ndarray
            Samples first, ``draws`` among them.
        """
        return self.sample(rngs)

    def make(self, directory, seed=0, workers=1):
        """Make the data set in a folder, or what is missing of it after an interruption.

        Parameters
        ----------
        directory : Path
            Created if need be.
        seed : int
            Of the set.
        workers : int
            Processes.
        """
        workers = 1 if self.device.startswith("cuda") else workers
        seconds = self.count * self.seconds / workers
        time = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
        print(
            f"{self.command(seed)}\n{self.count} samples into "
            f"{', '.join(str(directory / name) for name in self.files)}; {workers} process(es) on "
            f"{self.device}; about {time} on CPUs. Interrupted, it continues from "
            f"{directory / 'parts'}.",
            flush=True,
        )
        record = {"solver": self.solver, **self.constants, "seed": seed}
        record |= {"command": self.command(seed), "version": VERSION}
        task = functools.partial(self.part, directory=directory)
        settings = record | {"device": self.device}
        arrays = generate(task, self.count, directory, settings, seed, self.batch_size, workers)
        redrawn = np.flatnonzero(arrays.pop("draws") > 1)
        if self.attempts > 1:
            record["redrawn"] = redrawn.tolist() or "none"
        self.save(directory, arrays, record)
        print(f"done; {len(redrawn)} samples were drawn anew" if len(redrawn) else "done")

    def save(self, directory, arrays, record):
        """Write what is missing, the provenance last: it marks the set as generated.

        Parameters
        ----------
        directory : Path
            Of the data set.
        arrays : dict of str to ndarray
            Of all samples.
        record : dict
            The provenance, of JSON types.
        """
        for name, content in zip(self.files, self.layout(arrays), strict=True):
            save_as(directory / name, content)
        save_as(directory / "provenance.json", record)
        remove_parts(directory)

    def command(self, seed):
        """The command that gives this set, without the paths of this machine.

        Parameters
        ----------
        seed : int
            Of the set.

        Returns
        -------
        str
        """
        given = {name: getattr(self, name) for name in self._options() if name not in COMPUTING}
        text = {
            name: f" {_flag(name)} {_text(value)}"
            for name, value in given.items()
            if value is not None
        }
        counts = "".join(text.pop(name) for name in list(text) if name.startswith("n_"))
        script = self._script()
        return (
            f"python examples/{script.parent.name}/{script.name}{counts} --out DIR --seed {seed}"
            + "".join(text.values())
        )

    @classmethod
    def main(cls, argv=None):
        """Run the command line.

        Parameters
        ----------
        argv : list of str, optional
            In place of the process's.
        """
        doc = sys.modules[cls.__module__].__doc__ or cls.__doc__ or ""
        parser = argparse.ArgumentParser(description=doc.split("\n")[0])
        parser.add_argument("--out", type=Path, required=True, help="folder of the run")
        parser.add_argument("--seed", type=int, default=0)
        parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
        for one in fields(cls):
            many = isinstance(one.default, tuple)
            kind = {"type": type(one.default[0] if many else one.default)}
            kind |= {"nargs": len(one.default)} if many else {}
            parser.add_argument(_flag(one.name), default=one.default, **(kind | one.metadata))
        options = vars(parser.parse_args(argv))
        out, seed, workers = (options.pop(name) for name in ("out", "seed", "workers"))
        if workers < 1:
            parser.error(f"--workers: expected at least 1, got {workers}")
        try:
            generator = cls(
                **{k: tuple(v) if isinstance(v, list) else v for k, v in options.items()}
            )
        except ValueError as error:
            parser.error(str(error))
        for path in (out / name for name in generator.files):
            # Beside parts it is a whole file of this run, stopped while it saved its data.
            if path.exists() and not (out / "parts").exists():
                parser.error(f"{path} exists; finished data is never overwritten")
        generator.make(out, seed, workers)

    @classmethod
    def mini_data(cls, cache):
        """The mini set, which is made at the first call.

        Where any code beside the generator changes, but for ``train.py`` and ``figures.py``, it
        is made anew.

        Parameters
        ----------
        cache : path_like
            Where data sets are kept.

        Returns
        -------
        Path
            Its folder, see `made_data`.
        """
        arguments = cls.mini_set.split()

        def make(directory):
            if (directory / "parts").exists() or not (directory / "provenance.json").exists():
                cls.main([*arguments, "--out", str(directory)])

        files = sorted(cls._script().parent.glob("*.py"))
        code = b"".join(f.read_bytes() for f in files if f.name not in ("train.py", "figures.py"))
        code = hashlib.sha256(code).hexdigest()
        settings = {"arguments": arguments, "version": VERSION, "code": code}
        return made_data(cache, settings, make)

    @classmethod
    def _options(cls):
        return [one.name for one in fields(cls)]

    @classmethod
    def _script(cls):
        return Path(inspect.getfile(cls.draw))


class FileGenerator(Generator):
    """A generator that writes a file a sample.

    Attributes
    ----------
    sample_file : str
        Name of a sample's file, to be formatted with its number.
    kept : tuple of str
        Arrays of `solve` that `layout` is given, beside the file that holds the others.
    """

    sample_file: ClassVar[str]
    kept: ClassVar[tuple[str, ...]] = ()

    def part(self, rngs, directory):
        """Write a batch's files."""
        arrays = self.sample(rngs)
        beside = {name: arrays.pop(name) for name in ("draws", *self.kept)}
        for row, rng in enumerate(rngs):
            (k,) = rng.bit_generator.seed_seq.spawn_key  # see `sample_rng`
            content = {name: array[row] for name, array in arrays.items()}
            save_as(directory / self.sample_file.format(k), content)
        return beside


class TrajectoryGenerator(FileGenerator):
    """A generator of PhysGTO's container: a HDF5 file a trajectory, and lists of them.

    ``solve`` returns what `write_trajectory` takes.

    Attributes
    ----------
    published : tuple of int
        Trajectories for training and for testing of the published set.
    """

    files = LISTS
    sample_file = "trajectory_{:04d}.h5"
    published: ClassVar[tuple[int, int]]

    def layout(self, arrays):
        """The lists."""
        return [
            "\n".join(map(self.sample_file.format, part))
            for part in parts_of(self.count, *self.published)
        ]


class MeshGenerator(FileGenerator):
    """A generator of a folder of surfaces, for `MeshFolder`: a .vtp file a case, and a table.

    ``solve`` returns what `write_surface` takes, and ``parameters``, numbers of the case.

    Attributes
    ----------
    parameters : tuple of str
        Their names.
    """

    files = ("cases.csv",)
    sample_file = "case_{:04d}.vtp"
    kept = ("parameters",)
    parameters: ClassVar[tuple[str, ...]]

    def layout(self, arrays):
        """The table."""
        lines = [("case", *self.parameters)]
        for k, numbers in enumerate(arrays["parameters"].tolist()):
            lines.append((Path(self.sample_file.format(k)).stem, *numbers))
        return ["".join(",".join(map(str, line)) + "\n" for line in lines)]


def save_as(path, content):
    """Write a file, unless it is there, in the format of its ending.

    Parameters
    ----------
    path : Path
        The new file.
    content : ndarray, dict or str
        What the format takes.
    """
    if not path.exists():
        save_new(path, lambda stream: WRITERS[path.suffix](stream, content))


def _flag(name):
    return "--" + name.replace("_", "-")


def _text(value):
    """An option's value as on the command line; of a path the name alone."""
    if isinstance(value, Path):
        return value.name
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
