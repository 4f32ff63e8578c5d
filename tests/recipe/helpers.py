# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""What the recipe's tests share; child processes import it too."""

from __future__ import annotations

import importlib.util
import json
import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig
from physicsnemo.core import Module

from physicsnemo_cano.datapipes import Channel, FieldReader
from physicsnemo_cano.datapipes.files import installed
from physicsnemo_cano.datapipes.matlab import write_matlab
from physicsnemo_cano.recipe import run
from physicsnemo_cano.recipe.config import CONF

# Nine training samples in batches of four leave a last batch of one, fewer than two processes.
TINY = (
    "size.n_layers=1",
    "size.n_hidden=16",
    "size.n_head=2",
    "size.n_clusters=4",
    "training.epochs=3",
    "training.batch_size=4",
    "data.n_train=9",
    "data.n_test=3",
)
# What differs between two runs that are otherwise the same.
COSTS = ("train_seconds", "inference_ms_per_sample", "peak_memory_mb")


def write_mini(file: Path, n: int = 15, shape: tuple[int, int] = (13, 6)) -> Path:
    """Half rings round the origin with a field that depends on their radius."""
    random = np.random.default_rng(0)
    angle = np.linspace(0, np.pi, shape[0])[:, None]
    x, y, mach = [], [], []
    for inner in random.uniform(0.5, 1.5, n):
        radius = np.linspace(inner, 3.0, shape[1])[None]
        x.append(radius * np.cos(angle))
        y.append(radius * np.sin(angle))
        mach.append(0.8 + 0.5 * np.tanh(4 * (x[-1] - inner / 2)) / radius)
    with h5py.File(file, "w") as stream:
        for name, values in (("x", x), ("y", y), ("mach", mach)):
            stream[name] = np.array(values, dtype=np.float32)
    return file


def write_torus(folder: Path, n: int = 15, points: int = 8) -> Path:
    """Waves that travel and decay."""
    rng = np.random.default_rng(0)
    x, t = np.arange(points) / points, np.arange(1, 21)
    phase = 2 * np.pi * (x[:, None, None] + x[None, :, None] - 0.05 * t)
    shift, height = rng.uniform(0, 2 * np.pi, n), rng.uniform(0.5, 2, n)
    u = height[:, None, None, None] * np.sin(phase + shift[:, None, None, None]) * 0.98**t
    write_matlab(folder / f"NavierStokes_V1e-5_N{n}_T20.mat", {"u": u.astype(np.float32)})
    return _generated(folder)


def write_block(folder: Path, n: int = 15, shape: tuple[int, int] = (6, 4)) -> Path:
    """Blocks that are squeezed in proportion to time and a die."""
    rng = np.random.default_rng(0)
    x, y = np.meshgrid(np.linspace(0, 50, shape[0]), np.linspace(0, 15, shape[1]), indexing="ij")
    die = rng.uniform(0, 3, (n, shape[0]))
    share = np.arange(1, 21) / 20
    down = -die[:, :, None, None] * (y / 15)[None, :, :, None] * share
    positions = np.stack(np.broadcast_arrays(x[None, ..., None], y[None, ..., None] + down), -1)
    moved = np.stack([np.zeros_like(down), down], -1)
    output = np.concatenate([positions, moved], -1).astype(np.float32)
    arrays = {"input": die.astype(np.float32), "output": output}
    write_matlab(folder / f"plas_N{n}_T20.mat", arrays)
    return _generated(folder)


class PaddedClouds(FieldReader):
    """Clouds of 20 to 39 points; what is in a sample's last rows is no point."""

    coordinates, targets = (Channel("x"), Channel("y")), (Channel("height"),)

    def __init__(self, root, split="train", n_train=None, n_test=None, padding: float = 0.0):
        self.padding = padding
        super().__init__(root, split, n_train, n_test)

    def open(self) -> int:
        return 15

    def load(self, index: int) -> dict[str, np.ndarray]:
        x = np.random.default_rng(index).normal(size=(40, 2))
        mask = np.arange(40) < 20 + index
        fields = {"embedding": x, "fx": x[:, :1] ** 2, "target": np.sin(x[:, 1:])}
        fields = {k: np.where(mask[:, None], v, self.padding) for k, v in fields.items()}
        return fields | {"mask": mask}


class Clouds(FieldReader):
    """Clouds of 20 to 48 points."""

    coordinates, targets = (Channel("x"), Channel("y")), (Channel("height"),)

    def open(self) -> int:
        return 15

    def n_points(self, index: int) -> int:
        return 20 + 2 * index

    def load(self, index: int) -> dict[str, np.ndarray]:
        x = np.random.default_rng(index).normal(size=(self.n_points(index), 2))
        return {"embedding": x, "fx": x[:, :1] ** 2, "target": np.sin(x[:, 1:])}


def _generated(folder: Path) -> Path:
    (folder / "provenance.json").write_text("{}")
    return folder


def public_set(name: str) -> Path:
    """Folder of a set of smithers, of which nothing is imported."""
    if importlib.util.find_spec("smithers") is None:
        pytest.skip("needs the extra data")
    return installed("smithers", f"smithers/dataset/datasets/{name}")


def composed(benchmark: str, *overrides: str) -> DictConfig:
    """As `hydra.main` would, with what the command line said."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose(benchmark, list(overrides), return_hydra_config=True)


def config(data: Path, output: Path, *overrides: str, benchmark: str = "airfoil") -> DictConfig:
    return composed(benchmark, *TINY, f"data.root={data}", f"output={output}", *overrides)


def no_figures(results, folder) -> None:
    (folder / "drawn.txt").write_text(str(results.median))


def train(
    data: Path, output: Path, *overrides: str, figures=no_figures, benchmark: str = "airfoil"
) -> dict:
    torch.set_num_threads(1)
    return run(config(data, output, *overrides, benchmark=benchmark), figures, embedded_data=data)


def evaluate(data: Path, checkpoint: Path, *overrides: str, **options) -> dict:
    asked = ("mode=evaluate", f"checkpoint={checkpoint}", f"data.root={data}", *overrides)
    benchmark = options.pop("benchmark", "airfoil")
    return run(composed(benchmark, *asked), options.get("figures", no_figures))


def train_elsewhere(n_processes: int, benchmark: str, data: Path, output: Path, *overrides: str):
    """As `train`, in processes of their own, which keep gradients in ``output``_gradients."""
    gradients = output.with_name(f"{output.name}_gradients")
    gradients.mkdir()
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={n_processes}"]
    command = [sys.executable, *(launcher if n_processes > 1 else [])]
    paths = [str(Path(__file__).with_name("parallel_run.py")), benchmark, data, output, gradients]
    done = subprocess.run(
        [*command, *map(str, paths), *overrides],
        env=dict(os.environ, OMP_NUM_THREADS="1", PYTHONPATH=str(Path(__file__).parents[2])),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr


def train_embedded(data: Path, output: Path) -> dict:
    """With ``data`` in the place of those that come with the example."""
    torch.set_num_threads(1)
    return run(composed("airfoil", *TINY, f"output={output}"), no_figures, embedded_data=data)


def metrics(output: Path) -> dict:
    found = json.loads((output / "metrics.json").read_text())
    return {key: value for key, value in found.items() if key not in COSTS}


def history(output: Path) -> list[dict]:
    lines = [json.loads(text) for text in (output / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if k != "train_seconds"} for line in lines]


def weights(checkpoint: Path) -> dict[str, torch.Tensor]:
    (file,) = checkpoint.glob("*.mdlus")
    return Module.from_checkpoint(str(file)).state_dict()


def child(target, *args) -> int:
    """Run a function in a fresh process, from a server that has imported everything once."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["physicsnemo_cano.recipe", "physicsnemo_cano.models.cano"])
    process = context.Process(target=target, args=args)
    process.start()
    process.join(120)
    return process.exitcode


def die(*args, **kwargs) -> None:
    """As `kill -9` does: nothing is cleaned up."""
    os.kill(os.getpid(), signal.SIGKILL)
