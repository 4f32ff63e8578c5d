# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Generating data sets with a solver: seeded, parallel, resumable, with a progress bar.

It knows nothing of what it generates; the base of generators stands in ``generator.py``.
"""

import hashlib
import json
import multiprocessing
import os
import shutil
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import numpy as np
from filelock import FileLock
from tqdm import tqdm

__all__ = [
    "generate",
    "made_data",
    "remove_parts",
    "sample_rng",
    "save_new",
]


def generate(solve_batch, n, directory, settings, seed=0, batch_size=1, workers=1):
    """Generate ``n`` samples, or those still missing after an interrupted run.

    Sample ``k`` draws from its own random stream, so that it is the same whatever ``n``, the
    batch size and the number of workers. Every finished batch is a file in
    ``directory / "parts"``, written as a whole or not at all.

    Parameters
    ----------
    solve_batch : callable
        ``solve_batch(rngs)`` takes a list of `numpy.random.Generator`, one a sample, and returns
        a dictionary of arrays with the samples along the first axis. With several workers it must
        be picklable: a function of a module, or a ``functools.partial`` of one.
    n : int
        Number of samples.
    directory : path_like
        Folder of the run, created if need be.
    settings : dict
        All that the samples depend on, of JSON types. A folder begun with others is refused.
    seed : int
        Seed of the data set.
    batch_size : int
        Samples a call of ``solve_batch``.
    workers : int
        Processes; with one, the calls run in this process.

    Returns
    -------
    dict of ndarray
        All samples, in order.
    """
    parts = Path(directory) / "parts"
    parts.mkdir(parents=True, exist_ok=True)
    _check_settings(
        parts / "settings.json", {**settings, "n": n, "seed": seed, "batch": batch_size}
    )

    tasks = [
        (solve_batch, seed, start, min(start + batch_size, n), parts / f"part_{start:06d}.npz")
        for start in range(0, n, batch_size)
    ]
    missing = [task for task in tasks if not task[-1].exists()]
    finished = n - sum(stop - start for _, _, start, stop, _ in missing)
    seconds = 0.1 if sys.stderr.isatty() else 10.0  # a file keeps every state of the bar
    with tqdm(total=n, initial=finished, unit="sample", mininterval=seconds) as bar:
        for count in _run(missing, workers):
            bar.update(count)

    loaded = []
    for *_, file in tasks:
        with np.load(file) as part:
            loaded.append(dict(part))
    return {name: np.concatenate([part[name] for part in loaded]) for name in loaded[0]}


def sample_rng(seed, k):
    """The random stream of sample ``k``: ``SeedSequence(seed).spawn(k + 1)[k]``.

    Parameters
    ----------
    seed : int
        Of the data set.
    k : int
        Number of the sample.

    Returns
    -------
    numpy.random.Generator
        The same for the same two numbers.
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(k,)))


def save_new(path, write):
    """Write a file as a whole or not at all, and never over another.

    Parameters
    ----------
    path : path_like
        The new file.
    write : callable
        ``write(file)`` writes to a binary file, readable and seekable.

    Raises
    ------
    FileExistsError
        If there is such a file already.
    """
    path = Path(path)
    if path.exists():
        raise FileExistsError(f"{path} exists; finished data is never overwritten")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "w+b") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def remove_parts(directory):
    """Remove the batches' files once the data set is saved.

    Parameters
    ----------
    directory : path_like
        Folder of the run.
    """
    shutil.rmtree(Path(directory) / "parts")


def made_data(cache, settings, make):
    """A data set that is made at the first call, and only verified at later ones.

    It has a folder of its own, named after its settings, so that no version of a generator meets
    another's data. Of several processes that ask for it at once, one makes it and the others wait.
    A set whose files do not have the checksums they were made with is made anew.

    Parameters
    ----------
    cache : path_like
        Where data sets are kept; created if need be.
    settings : dict
        All that the data depend on, of JSON types.
    make : callable
        ``make(directory)`` writes the data set. If it was interrupted, it is called again with
        what it has left and goes on from there.

    Returns
    -------
    Path
        The folder of the data set.
    """
    name = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]
    directory = Path(cache) / name
    directory.mkdir(parents=True, exist_ok=True)
    checksums = directory / "checksums.json"
    with FileLock(directory.with_suffix(".lock")):  # the system frees it if this process dies
        if checksums.exists():
            if _is_whole(directory, checksums.read_text()):
                return directory
            print(f"The data in {directory} are damaged; they are made anew.", flush=True)
            # In one step, so that a kill leaves no damaged file that looks finished.
            damaged = directory.with_suffix(".damaged")
            shutil.rmtree(damaged, ignore_errors=True)
            directory.rename(damaged)
            shutil.rmtree(damaged)
            directory.mkdir()
        make(directory)
        sums = json.dumps(_checksums(directory), indent=1).encode()
        save_new(checksums, lambda file: file.write(sums))
    return directory


def _checksums(directory):
    """The SHA-256 of every file but ``checksums.json`` and hidden ones."""
    sums = {}
    for path in sorted(directory.glob("[!.]*")):
        if path.is_file() and path.name != "checksums.json":
            with open(path, "rb") as file:
                sums[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return sums


def _is_whole(directory, recorded):
    """Whether all files are there with the recorded checksums; others beside them do not matter."""
    try:
        expected = json.loads(recorded).items()
    except json.JSONDecodeError:
        return False
    return expected <= _checksums(directory).items()


def _check_settings(path, settings):
    """Record the settings of a new run, or compare them with those of the run to resume."""
    settings = json.loads(json.dumps(settings))
    if not path.exists():
        save_new(path, lambda file: file.write(json.dumps(settings, indent=1).encode()))
        return
    recorded = json.loads(path.read_text())
    if recorded != settings:
        raise ValueError(
            f"{path.parent.parent} holds an unfinished run with other settings: "
            f"{recorded} there, {settings} now. Continue it with its own settings, "
            "or choose another folder."
        )


def _run(tasks, workers):
    """Yield the number of samples of every batch as it is finished."""
    if workers == 1:
        yield from map(_solve_part, tasks)
        return
    # Fresh processes: a forked one would inherit the state of GPU and thread libraries.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        futures = [pool.submit(_solve_part, task) for task in tasks]
        try:
            for future in as_completed(futures):
                yield future.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _solve_part(task):
    """Solve one batch and write its file."""
    solve_batch, seed, start, stop, path = task
    try:
        arrays = solve_batch([sample_rng(seed, k) for k in range(start, stop)])
    except Exception as error:
        raise RuntimeError(f"seed {seed}, samples {start} to {stop - 1}: {error}") from error
    for name, array in arrays.items():
        if len(array) != stop - start:
            raise ValueError(f"{name}: {len(array)} samples, expected {stop - start}")
    save_new(path, lambda file: np.savez(file, **arrays))
    return stop - start
