# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

r"""Train on a coarse Darcy grid, test on finer ones without retraining.

``python benchmarks/resolution.py DATA`` takes a folder that the Darcy reader knows. Of MATLAB
files, such as ``python examples/darcy/generate.py --out DATA --n-train 500 --n-test 200`` makes,
every 4th node of an axis is for training, and every 6th, 4th, 3rd, 2nd and each for testing. Of
neuraloperator's public files, ``darcy_train_16.pt`` is for training and each ``darcy_test_<n>.pt``
for testing.

Every model is trained by the recipe with the same data, sizes, optimiser and number of epochs; the
FNO, whose sizes mean something else, has no padding and knows the coordinates, as suits changing
resolution. Rows are appended to ``--out``; rows already there are not run again, and a run that was
interrupted goes on.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch
from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from physicsnemo.core import Module
from physicsnemo.datapipes import Dataset
from physicsnemo.models.fno import FNO
from table import Table

sys.path.insert(0, str(Path(__file__).parents[1]))  # to run as a script

from physicsnemo_cano.recipe import Recipe, open_reader, run
from physicsnemo_cano.recipe.checkpoint import find_checkpoint, open_model
from physicsnemo_cano.recipe.config import CONF
from physicsnemo_cano.recipe.distributed import initialize
from physicsnemo_cano.recipe.evaluation import evaluate
from physicsnemo_cano.recipe.normalization import Statistics
from physicsnemo_cano.recipe.prediction import Predictor

VARIANTS = {
    "cano-grid-weighted": ("model=cano", "data.weights=true"),
    "cano-cloud-weighted": ("model=cano", "as_cloud=true", "data.weights=true"),
    "cano-grid": ("model=cano",),
    "cano-cloud": ("model=cano", "as_cloud=true"),
    "transolver-grid": ("model=transolver",),
    "transolver-cloud": ("model=transolver", "as_cloud=true"),
    "flare-cloud": ("model=flare", "as_cloud=true"),
    "fno-grid": ("model=fno",),
}
# The study of the pages has neither the example's unified positions nor its gradient loss.
SETTINGS = ("data.stride=4", "training.gradient_loss=0", "~model.unified_pos", "~model.ref")
FNO_NODE = {"name": "fno", "_target_": "benchmarks.resolution.GridFNO"}
ConfigStore.instance().store(group="model", name="fno", node=FNO_NODE)


class GridFNO(Module):
    r"""PhysicsNeMo's FNO behind the call of point models, on any square grid.

    Parameters
    ----------
    functional_dim, embedding_dim, out_dim, structured_shape
        As the recipe gives them to every model; the FNO makes its coordinates itself.
    """

    def __init__(
        self, functional_dim: int, embedding_dim: int, out_dim: int, structured_shape: tuple
    ) -> None:
        super().__init__()
        # The highest mode that a 16×16 grid resolves is its eighth.
        self.fno = FNO(functional_dim, out_dim, num_fno_modes=8, padding=0, coord_features=True)

    def forward(self, fx: torch.Tensor, embedding: torch.Tensor) -> torch.Tensor:
        r"""Of (B, N, C) and (B, n, n, 2), :math:`N = n^2`: (B, N, C_out)."""
        grid = fx.unflatten(1, embedding.shape[1:-1]).movedim(-1, 1)  # (B, C, n, n)
        return self.fno(grid).flatten(2).mT


def tests(data: Path) -> list[dict]:
    r"""What the reader needs for every grid to test on, from the coarsest to the finest."""
    files = sorted(data.glob("darcy_test_*.pt"), key=lambda f: int(f.stem.split("_")[-1]))
    if files:
        return [{"root": str(file)} for file in files]
    return [{"root": str(data), "stride": stride} for stride in (6, 4, 3, 2, 1)]


def errors(folder: Path, grids: list[dict]) -> dict[int, float]:
    r"""Mean test error of a finished run by the points of an axis."""
    source, file = find_checkpoint(folder / "checkpoints" / "last")
    settings, device = Recipe.load(source / "config.yaml"), initialize().device
    statistics = Statistics.load(source / "normalization.npz")
    model, found = open_model(file, device), {}
    for grid in grids:
        reader = open_reader(settings.data | grid, "test")
        side = reader.spatial_shape[0]
        if settings.model["name"] == "transolver" and not settings.as_cloud:
            for block in model.blocks:  # its convolution takes the grid from the module
                block.Attn.H, block.Attn.W = side, side
        shape = None if settings.as_cloud else reader.spatial_shape
        predict = Predictor(model, shape, statistics, device)
        dataset = Dataset(reader, transforms=statistics.inputs(), device=device)
        found[side] = float(evaluate(predict, dataset, 10).errors.mean())
    return found


def study(args: argparse.Namespace, variant: str, seed: int) -> dict:
    r"""Train one variant and return its row of the table."""
    optimizer, epochs, n_hidden = args.optimizer, args.epochs, args.n_hidden
    folder = args.runs / f"{variant}_{optimizer}_{epochs}epochs_{n_hidden}features_seed{seed}"
    own = (f"data.root={args.data}", f"output={folder}", f"training={optimizer}", f"seed={seed}")
    size = (f"size.n_hidden={n_hidden}", f"training.epochs={epochs}")
    with initialize_config_dir(str(CONF), version_base="1.3"):
        metrics = run(compose("darcy", [*VARIANTS[variant], *SETTINGS, *own, *size]))
    found = errors(folder, tests(args.data))
    return {
        "n_params": metrics["n_params"],
        "seconds": round(metrics["train_seconds"]),
        "points_per_axis": " ".join(map(str, found)),
        "rel_l2": " ".join(f"{e:.5f}" for e in found.values()),
    }


def main() -> None:
    r"""Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder of the Darcy set")
    parser.add_argument("--out", type=Path, default="outputs/resolution.csv")
    parser.add_argument("--runs", type=Path, default="outputs/resolution", help="of the recipe")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--optimizer", choices=["adamw", "muon"], default="adamw")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--n-hidden", type=int, default=64, help="features of the point models")
    parser.add_argument("--only", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    args = parser.parse_args()
    args.data = args.data.expanduser().resolve()
    table = Table(args.out)
    for seed in args.seeds:
        for variant in args.only:
            case = {"study": args.data.name, "variant": variant, "optimizer": args.optimizer}
            case |= {"seed": seed, "epochs": args.epochs, "n_hidden": args.n_hidden}
            if not table.has(case):
                table.add(case | study(args, variant, seed))


if __name__ == "__main__":
    main()
