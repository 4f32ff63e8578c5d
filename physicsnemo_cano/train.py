# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

r"""Train a model on a folder of mesh files.

``physicsnemo-cano-train data.root=cases targets=[p,wallShearStress] parameters=cases.csv`` takes a
file a case, or a folder a case, at any depth, and leaves a run in ``outputs/meshes/``. Settings are
those of ``conf/meshes.yaml``, which ``--cfg job`` prints; those under ``data`` may stand without
it. ``--check`` looks at all cases, says what would be trained, and trains nothing.
"""

from __future__ import annotations

import inspect
import sys

import hydra
from omegaconf import DictConfig

from physicsnemo_cano.datapipes.cases import FaultyCases, describe
from physicsnemo_cano.datapipes.meshes import MeshFolder
from physicsnemo_cano.recipe import Recipe, build_model, run
from physicsnemo_cano.recipe.config import CONF
from physicsnemo_cano.recipe.runs import open_readers

_OF_DATA = [name for name in inspect.signature(MeshFolder).parameters if name != "split"]


def check(cfg: DictConfig) -> str:
    """Look at all cases and at what would be trained on them.

    Parameters
    ----------
    cfg : DictConfig
        As for :func:`physicsnemo_cano.recipe.run`.

    Returns
    -------
    str
        Cases, sizes, fields and ranges in a table, and the model.

    Raises
    ------
    FaultyCases
        If there are cases that cannot be used; the message begins with the table.
    """
    settings = Recipe.of(cfg)
    try:
        readers = open_readers(settings)
    except FaultyCases as error:
        raise FaultyCases(f"{describe(error.cases)}\n\n{error}", error.cases) from error
    reader, training = readers["train"], settings.training
    model = build_model(settings, reader)
    sample, _ = reader[0]
    token = "of all points together" if len(sample["fx"]) == 1 else "at each"
    lines = [
        describe(getattr(reader, "cases", [])),
        "",
        *(f"{name:<10} {', '.join(part.names)}" for name, part in readers.items()),
        f"{'inputs':<10} {', '.join(c.name for c in reader.coordinates)}, and "
        f"{sample['fx'].shape[1]} beside them {token}",
        f"{'predicts':<10} {', '.join(c.name for c in reader.targets)}",
        f"{'model':<10} {type(model).__name__}, {sum(p.numel() for p in model.parameters()):,} "
        f"parameters, {training.epochs} epochs of {-(-len(reader) // training.batch_size)} steps",
        f"{'results':<10} {settings.output}",
    ]
    return "\n".join(lines)


def arguments_of(arguments: list[str]) -> tuple[list[str], bool]:
    """What Hydra gets of a command line.

    Parameters
    ----------
    arguments : list of str
        As given.

    Returns
    -------
    tuple of list of str and bool
        With ``data.`` before what belongs there, and whether a check is asked for.
    """
    wanted = {"--check": True, "check=true": True, "check=false": False}
    rest = [argument for argument in arguments if argument not in wanted]
    checks = any(wanted.get(argument, False) for argument in arguments)
    of_data = [a.partition("=")[0] in _OF_DATA for a in rest]
    return [f"data.{a}" if own else a for a, own in zip(rest, of_data, strict=True)], checks


def main(arguments: list[str] | None = None) -> None:
    """Run the command line.

    Parameters
    ----------
    arguments : list of str, optional
        Of the command; by default those the process was started with.
    """
    given, checks = arguments_of(sys.argv[1:] if arguments is None else arguments)
    if not given or {"-h", "--help"} & set(given):
        print(f"{__doc__}\n{MeshFolder.__doc__}")
        return

    def task(cfg: DictConfig) -> None:
        try:
            if checks:
                print(check(cfg))
            else:
                run(cfg)
        except (OSError, ValueError, ImportError) as error:
            sys.exit(str(error))

    before = sys.argv
    sys.argv = ["physicsnemo-cano-train", *given]
    try:
        hydra.main(version_base="1.3", config_path=str(CONF), config_name="meshes")(task)()
    finally:
        sys.argv = before


if __name__ == "__main__":
    main()
