# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Train or evaluate a model on the airfoil benchmark; see README.md."""

from pathlib import Path

import hydra
from figures import draw
from omegaconf import DictConfig

from physicsnemo_cano.recipe import run

DATA = Path(__file__).with_name("data") / "naca_mini.h5"


@hydra.main(version_base="1.3", config_path="../../conf", config_name="airfoil")
def main(cfg: DictConfig) -> None:
    """Run what the configuration says."""
    run(cfg, figures=draw, embedded_data=DATA)


if __name__ == "__main__":
    main()
