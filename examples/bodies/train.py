# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Train or evaluate a model on the bodies benchmark; see README.md."""

import hydra
from figures import draw
from generate import mini_data
from omegaconf import DictConfig

from physicsnemo_cano.recipe import run


@hydra.main(version_base="1.3", config_path="../../conf", config_name="bodies")
def main(cfg: DictConfig) -> None:
    """Run what the configuration says."""
    run(cfg, figures=draw, embedded_data=mini_data)


if __name__ == "__main__":
    main()
