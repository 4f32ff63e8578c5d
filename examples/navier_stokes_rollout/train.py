# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Train or evaluate a model on the rollouts of the Navier-Stokes data; see README.md."""

import sys
from pathlib import Path

import hydra
from figures import draw
from omegaconf import DictConfig

from physicsnemo_cano.recipe import run

sys.path.insert(0, str(Path(__file__).parents[2]))  # to run as a script

from examples.navier_stokes.generate import mini_data


@hydra.main(version_base="1.3", config_path="../../conf", config_name="navier_stokes_rollout")
def main(cfg: DictConfig) -> None:
    """Run what the configuration says."""
    run(cfg, figures=draw, embedded_data=mini_data)


if __name__ == "__main__":
    main()
