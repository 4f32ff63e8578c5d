"""What the recipe's tests share; child processes import it too."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from pathlib import Path

import h5py
import numpy as np
import torch
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig

from physicsnemo_cano.training import run

CONF = Path(__file__).parents[2] / "conf"
# Nine training samples in batches of four leave a last batch of one, fewer than two processes.
TINY = (
    "size.n_layers=1",
    "size.n_hidden=16",
    "size.n_head=2",
    "size.slice_num=4",
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


def config(data: Path, output: Path, *overrides: str) -> DictConfig:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose("airfoil", [*TINY, f"data.root={data}", f"output={output}", *overrides])


def no_figures(results, folder) -> None:
    (folder / "drawn.txt").write_text(str(results.median))


def train(data: Path, output: Path, *overrides: str, figures=no_figures) -> dict:
    torch.set_num_threads(1)
    return run(config(data, output, *overrides), figures, embedded_data=data)


def train_embedded(data: Path, output: Path) -> dict:
    """With ``data`` in the place of those that come with the example."""
    torch.set_num_threads(1)
    with initialize_config_dir(str(CONF), version_base="1.3"):
        cfg = compose("airfoil", [*TINY, f"output={output}"])
    return run(cfg, no_figures, embedded_data=data)


def metrics(output: Path) -> dict:
    found = json.loads((output / "metrics.json").read_text())
    return {key: value for key, value in found.items() if key not in COSTS}


def history(output: Path) -> list[dict]:
    lines = [json.loads(text) for text in (output / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if k != "train_seconds"} for line in lines]


def weights(checkpoint: Path) -> dict[str, torch.Tensor]:
    from physicsnemo.core import Module

    (file,) = checkpoint.glob("*.mdlus")
    return Module.from_checkpoint(str(file)).state_dict()


def child(target, *args) -> int:
    """Run a function in a fresh process, from a server that has imported everything once."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["physicsnemo_cano.training", "physicsnemo_cano.models.cano"])
    process = context.Process(target=target, args=args)
    process.start()
    process.join(120)
    return process.exitcode


def die(*args, **kwargs) -> None:
    """As `kill -9` does: nothing is cleaned up."""
    os.kill(os.getpid(), signal.SIGKILL)
