# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""The recipe's configuration: what can be set, to what, and what is meant.

Importing this module registers with Hydra's ConfigStore the configuration ``recipe``, to begin a
file of one's own with, and the groups ``model``, ``training`` and ``scale``. The files of the
benchmarks are in ``conf/``, beside the package in a clone and inside it once installed.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from hydra.utils import get_class, instantiate
from omegaconf import MISSING, DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from physicsnemo.core import Module

from physicsnemo_cano.datapipes import FieldReader
from physicsnemo_cano.losses import LOSSES

_PACKAGE = Path(__file__).parents[1]
CONF = next(p for p in (_PACKAGE / "conf", _PACKAGE.parent / "conf") if p.is_dir())


@dataclass
class Size:
    """Sizes that all models of a benchmark share.

    Attributes
    ----------
    n_layers, n_head, n_hidden, mlp_ratio : int
        Blocks, heads, features a point, and how many times more the feed-forward layers have.
    n_clusters : int
        Clusters a head: Transolver's slices, FLARE's global queries, ``slice_num`` in PhysicsNeMo.
    """

    n_layers: int = MISSING
    n_head: int = MISSING
    n_hidden: int = MISSING
    mlp_ratio: int = MISSING
    n_clusters: int = MISSING


@dataclass
class Normalize:
    """How to normalise: ``channels``, about a mean a channel; ``nodes``, about a mean a node of
    the one mesh that all samples share; ``null``, not at all.

    Attributes
    ----------
    embedding, fx, target : str or None
        Coordinates, input function and target.
    """

    embedding: str | None = None
    fx: str | None = None
    target: str | None = None


@dataclass
class Validation:
    """Samples that choose ``best`` and stop a training early, so that test samples never do.

    Attributes
    ----------
    fraction : float or None
        Share of the training samples, taken from their end and no longer trained on.
    root : str or None
        Or other data, as ``data.root`` names them, of which the test samples are taken.
    patience : int or None
        Stop after so many epochs without a lower error; by default train them all.
    """

    fraction: float | None = None
    root: str | None = None
    patience: int | None = None

    @property
    def wanted(self) -> bool:
        """Whether there is a validation set."""
        return self.fraction is not None or self.root is not None


@dataclass
class Training:
    """How to train.

    Attributes
    ----------
    optimizer : str
        ``adamw`` for all parameters, or ``muon`` for the matrices of hidden layers and AdamW for
        the rest.
    lr, weight_decay : float
        The highest learning rate of the one-cycle schedule; decay of all parameters.
    epochs, batch_size : int
        Batches count the samples of all processes together.
    clip : float
        Norm to which the parameters' gradient is clipped.
    loss : str
        A name of :data:`physicsnemo_cano.losses.LOSSES`.
    pushforward : bool
        Of a rollout, train on frames that the model has predicted from true ones.
    gradient_loss : float or None
        Weight of the error of the field's gradient in the loss, on regular grids.
    amp : str or None
        ``bf16``, or float32 by default.
    compile : bool
        Whether to use ``torch.compile``.
    points_per_step : int or None
        Of clouds, points of each sample that a training step sees, drawn anew every time; all by
        default. Validation and test see all.
    """

    optimizer: str = MISSING
    lr: float = MISSING
    weight_decay: float = 1e-5
    epochs: int = MISSING
    batch_size: int = MISSING
    clip: float = 0.1
    loss: str = "relative_l2"
    pushforward: bool = False
    gradient_loss: float | None = None
    amp: str | None = None
    compile: bool = False
    points_per_step: int | None = None


# The paper's optimiser; and the better one for short runs.
ADAMW = {"optimizer": "adamw", "lr": 1e-3}
MUON = {"optimizer": "muon", "lr": 4e-3}


# What a run is: two runs that differ in one of these do not share a folder.
_IDENTITY = (
    "benchmark",
    "scale",
    "seed",
    "normalize",
    "validation",
    "as_cloud",
    "increments",
    "model",
    "data",
    "training",
    "metrics",
)
# What an evaluation may do otherwise than the training did.
_EVALUATION = ("mode", "checkpoint", "data", "metrics", "cache", "training.batch_size")
_ABOUT = (None, "channels", "nodes")
# What the recipe itself gives to a reader and to a model.
_READER_OWN = ("split",)
_MODEL_OWN = ("functional_dim", "embedding_dim", "out_dim", "structured_shape")


@dataclass
class Recipe:
    """A run.

    Attributes
    ----------
    benchmark : str
        Name of the data set, for folders and tables.
    scale : str
        Name of the sizes and the data, for tables.
    data : dict
        The reader's class, ``_target_``, its ``root``, where the data are, and its arguments.
    model : dict
        The model's class, ``_target_``, a ``name``, for folders and tables, and its arguments.
    seed : int
        Of initial weights, order of samples and dropout.
    mode : str
        ``train``, or ``evaluate`` the model of ``checkpoint``.
    checkpoint : str or None
        A folder of a run's ``checkpoints/``, or a ``.mdlus`` file in it.
    as_cloud : bool
        Show the model a structured mesh as a cloud of points.
    padding_mode : str
        CANO's convolutions at a mesh's border: ``replicate``, or ``circular`` on periodic domains.
    increments : bool
        Of a rollout, let the model predict the difference to the frame before, not the frame.
    metrics : list of str
        Names of losses to measure on the test samples beside the relative L2 error.
    output : str
        The folder of a training run; an evaluation writes to ``evaluate/`` in its run's.
    cache : str
        Where data made at the first run are kept.
    """

    benchmark: str = MISSING
    scale: str = "own"
    data: dict[str, Any] = field(default_factory=lambda: {"_target_": MISSING, "root": MISSING})
    normalize: Normalize = field(default_factory=Normalize)
    validation: Validation = field(default_factory=Validation)
    size: Size = field(default_factory=Size)
    model: dict[str, Any] = field(default_factory=dict)
    training: Training = field(default_factory=Training)
    seed: int = 0
    mode: str = "train"
    checkpoint: str | None = None
    as_cloud: bool = False
    padding_mode: str = "replicate"
    increments: bool = False
    metrics: list[str] = field(default_factory=list)
    output: str = "outputs/${benchmark}/${model.name}/seed${seed}"
    cache: str = '${oc.env:XDG_CACHE_HOME,"~/.cache"}/physicsnemo-cano/${benchmark}'

    @classmethod
    def of(cls, cfg: DictConfig) -> Recipe:
        """Check a configuration, before anything is read.

        Parameters
        ----------
        cfg : DictConfig
            As Hydra composes it.

        Returns
        -------
        Recipe
            With all references resolved. A ``data.root`` left out is ``None``: the reader says
            what it needs.

        Raises
        ------
        ValueError
            If a key is missing, unknown or has a value that it may not have; the message has its
            name, what is allowed and the file.
        """
        stated = OmegaConf.to_container(cfg)
        stated.pop("hydra", None)
        try:
            merged = OmegaConf.merge(OmegaConf.structured(cls), OmegaConf.create(stated))
        except OmegaConfBaseException as error:
            node = error.object_type if is_dataclass(error.object_type) else cls
            allowed = ", ".join(f.name for f in fields(node))
            raise ValueError(
                f"{error.full_key}: {error.msg}. {node.__name__} has {allowed}{_file()}"
            ) from error
        values = OmegaConf.to_container(merged)
        values["data"].setdefault("root", MISSING)
        missing = [key for key, value in _flat(values).items() if value == MISSING]
        if "data.root" in missing:
            missing.remove("data.root")
            merged.data.root = None
        if not values["model"]:
            missing.append("model")
        if missing:
            raise ValueError(f"Not given: {', '.join(missing)}{_file()}")
        settings = OmegaConf.to_object(merged)
        settings._check()
        return settings

    def _check(self) -> None:
        choices = {
            "mode": (self.mode, ("train", "evaluate")),
            "padding_mode": (self.padding_mode, ("replicate", "circular")),
            "training.optimizer": (self.training.optimizer, ("adamw", "muon")),
            "training.amp": (self.training.amp, (None, "bf16")),
            "training.loss": (self.training.loss, tuple(LOSSES)),
            **{f"normalize.{key}": (value, _ABOUT) for key, value in vars(self.normalize).items()},
            **{f"metrics[{i}]": (name, tuple(LOSSES)) for i, name in enumerate(self.metrics)},
        }
        for key, (value, allowed) in choices.items():
            if value not in allowed:
                names = ", ".join("null" if name is None else name for name in allowed)
                raise ValueError(f"{key}: choose from {names}; got {value!r}{_file()}")
        ranges = {
            "training.lr": (self.training.lr, 0, None),
            "training.clip": (self.training.clip, 0, None),
            "training.epochs": (self.training.epochs, 0, None),
            "training.batch_size": (self.training.batch_size, 0, None),
            "training.points_per_step": (self.training.points_per_step, 0, None),
            "validation.fraction": (self.validation.fraction, 0, 1),
            "validation.patience": (self.validation.patience, 0, None),
        }
        for key, (value, above, below) in ranges.items():
            if value is not None and not (value > above and (below is None or value < below)):
                limit = "" if below is None else f" and below {below}"
                raise ValueError(f"{key}: must be above {above}{limit}, got {value}{_file()}")
        validation = self.validation
        if validation.fraction is not None and validation.root is not None:
            raise ValueError("validation: give fraction or root, not both")
        if validation.patience is not None and not validation.wanted:
            raise ValueError("validation.patience needs validation.fraction or validation.root")
        if self.training.points_per_step is not None and "nodes" in vars(self.normalize).values():
            raise ValueError(
                "training.points_per_step needs samples whose points stand for themselves; with it "
                "normalize by channels, not nodes"
            )
        if self.mode == "evaluate" and self.checkpoint is None:
            raise ValueError("mode=evaluate needs checkpoint=<folder or .mdlus file>")
        _check_arguments("data", self.data, ("_target_",), _READER_OWN)
        _check_arguments("model", self.model, ("_target_", "name"), _MODEL_OWN)

    @classmethod
    def load(cls, file: Path) -> Recipe:
        """What :meth:`yaml` gave; also of version 0.1, which named clusters as PhysicsNeMo does.

        Parameters
        ----------
        file : Path
            A run's ``config.yaml``.

        Returns
        -------
        Recipe
        """
        stored = OmegaConf.load(file)
        if "slice_num" in stored.get("size", {}):
            stored.size.n_clusters = stored.size.pop("slice_num")
        stored.pop("embedded", None)
        return cls.of(stored)

    def yaml(self) -> str:
        """The settings as a file holds them.

        Returns
        -------
        str
            YAML.
        """
        return OmegaConf.to_yaml(OmegaConf.structured(self))

    def differences(self, other: Recipe) -> list[str]:
        """What makes this another run than an earlier one.

        Parameters
        ----------
        other : Recipe
            Of the earlier one.

        Returns
        -------
        list of str
            A difference each, in words; empty where they are one run.
        """
        then, now = (_flat({key: asdict(s)[key] for key in _IDENTITY}) for s in (other, self))
        return [
            f"{key}: {then.get(key, 'absent')} there, {now.get(key, 'absent')} now"
            for key in sorted(then.keys() | now.keys())
            if then.get(key) != now.get(key)
        ]

    def evaluating(self, trained: Recipe, overrides: Sequence[str]) -> Recipe:
        """The settings of an evaluation: the training's, with what this command line changes.

        Parameters
        ----------
        trained : Recipe
            Of the checkpoint.
        overrides : sequence of str
            What the command line said.

        Returns
        -------
        Recipe

        Raises
        ------
        ValueError
            If it asks for something else than the training had and an evaluation may have.
        """
        stored, asked = _flat(asdict(trained)), _flat(asdict(self))
        for override in overrides:
            key = override.split("=")[0].lstrip("+~")
            within = [k for k in asked.keys() | stored.keys() if (k + ".").startswith(key + ".")]
            for name in within:
                if any((name + ".").startswith(free + ".") for free in _EVALUATION):
                    stored[name] = asked.get(name)
                elif stored.get(name) != asked.get(name):
                    raise ValueError(
                        f"mode=evaluate: the checkpoint was trained with {name}="
                        f"{stored.get(name, 'absent')}, {override} cannot change it; what can: "
                        f"{', '.join(_EVALUATION)}"
                    )
        merged = OmegaConf.create()
        for key, value in stored.items():
            OmegaConf.update(merged, key, value)
        return Recipe.of(merged)


def given_overrides(cfg: DictConfig) -> list[str]:
    """What the command line said, as Hydra remembers it.

    Parameters
    ----------
    cfg : DictConfig
        As Hydra composes it.

    Returns
    -------
    list of str
        An override each, such as ``seed=1``.

    Raises
    ------
    ValueError
        If Hydra does not.
    """
    if "hydra" in cfg:
        return list(cfg.hydra.overrides.task)
    if HydraConfig.initialized():
        return list(HydraConfig.get().overrides.task)
    raise ValueError(
        "mode=evaluate applies what a command line says to the checkpoint's settings: run it by "
        "hydra.main, or compose with return_hydra_config=True"
    )


def open_reader(data: Mapping[str, Any], split: str, embedded: Path | None = None) -> FieldReader:
    """Open data.

    Parameters
    ----------
    data : mapping
        ``data`` of the configuration: the reader's ``_target_``, ``root`` and arguments.
    split : str
        ``train`` or ``test``.
    embedded : Path, optional
        Where the data are if ``root`` names no place.

    Returns
    -------
    FieldReader
    """
    make = instantiate({**data, "_partial_": True}, _convert_="all")
    return make(root=data["root"] or embedded, split=split)


def build_model(settings: Recipe, reader: FieldReader) -> Module:
    """Build the configured model for a reader's samples, whose sizes it takes over.

    Parameters
    ----------
    settings : Recipe
        Its ``model`` holds ``_target_``, ``name`` (for files and tables only) and the model's own
        arguments.
    reader : FieldReader
        Gives ``functional_dim``, ``embedding_dim``, ``out_dim`` (of a series, one frame's) and
        ``structured_shape``.

    Returns
    -------
    physicsnemo.core.Module
        On the CPU, initialised from torch's current random state.
    """
    arguments = {key: value for key, value in settings.model.items() if key != "name"}
    sample, _ = reader[0]
    return instantiate({**arguments, "_partial_": True}, _convert_="all")(
        functional_dim=sample["fx"].shape[-1],
        embedding_dim=sample["embedding"].shape[-1],
        out_dim=len(reader.targets),
        structured_shape=None if settings.as_cloud else reader.spatial_shape,
    )


def _check_arguments(
    section: str, values: Mapping[str, Any], beside: Sequence[str], own: Sequence[str]
) -> None:
    """Refuse what the class that a section names does not take."""
    target = get_class(values["_target_"])
    # Of __init__: PhysicsNeMo's modules have a __new__ that takes anything.
    _, *parameters = inspect.signature(target.__init__).parameters
    allowed = [name for name in parameters if name not in own]
    for name in values:
        if name not in (*allowed, *beside):
            raise ValueError(
                f"{section}.{name}: {target.__name__} takes {', '.join(allowed)}{_file()}"
            )


def _file() -> str:
    """Which file is meant, for messages; empty where Hydra does not know."""
    if not HydraConfig.initialized():
        return ""
    hydra = HydraConfig.get()
    folder = next(s.path for s in hydra.runtime.config_sources if s.provider == "main")
    return f" ({folder}/{hydra.job.config_name}.yaml)"


def _flat(tree: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(tree, dict) or not tree:
        return {prefix: tree}
    return {
        key: value
        for name, branch in tree.items()
        for key, value in _flat(branch, f"{prefix}.{name}" if prefix else name).items()
    }


def register() -> None:
    """Tell Hydra's ConfigStore what can be configured."""
    store = ConfigStore.instance()
    store.store(name="recipe_schema", node=Recipe)
    hydra = {
        "output_subdir": None,  # the recipe writes its own folder
        "run": {"dir": "."},
        "job": {"chdir": False},
        "job_logging": {
            "formatters": {"simple": {"format": "%(message)s"}},
            "handlers": {"file": {"delay": True}},
            "root": {"handlers": ["console"]},
        },
    }
    node = {"defaults": ["recipe_schema", "_self_"], "hydra": hydra}
    store.store(name="recipe", node=node, package="_global_")
    sizes = {key: f"${{size.{key}}}" for key in ("n_layers", "n_head", "n_hidden", "mlp_ratio")}
    sizes["slice_num"] = "${size.n_clusters}"
    models = {
        "cano": {"_target_": "physicsnemo_cano.CANO", "padding_mode": "${padding_mode}"},
        "transolver": {
            "_target_": "physicsnemo.models.transolver.Transolver",
            "use_te": False,
        },
        "flare": {"_target_": "physicsnemo.models.flare.FLARE"},
    }
    for name, own in models.items():
        store.store(group="model", name=name, node={"name": name, **sizes, **own})
    for name, node in (("adamw", ADAMW), ("muon", MUON)):
        store.store(group="training", name=name, node=node)
    for name in ("mini", "paper"):
        store.store(group="scale", name=name, node={"scale": name}, package="_global_")


register()
