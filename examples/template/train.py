# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
"""Train or evaluate a model on your own data."""

import hydra
from omegaconf import DictConfig

from physicsnemo_cano.recipe import run


@hydra.main(version_base="1.3", config_path=".", config_name="config")
def main(cfg: DictConfig) -> None:
    """Run what the configuration says."""
    run(cfg)


if __name__ == "__main__":
    main()
