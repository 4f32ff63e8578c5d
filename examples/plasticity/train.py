"""Train or evaluate a model on the plasticity benchmark; see README.md."""

from pathlib import Path

import hydra
from figures import draw
from omegaconf import DictConfig

from physicsnemo_cano.training import run

DATA = Path(__file__).with_name("data") / "mini"


@hydra.main(version_base="1.3", config_path="../../conf", config_name="plasticity")
def main(cfg: DictConfig) -> None:
    """Run what the configuration says."""
    run(cfg, figures=draw, embedded_data=DATA)


if __name__ == "__main__":
    main()
