# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
"""What a trained model's samples hold, kept with the model so that using it needs no reader."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hydra.utils import get_class
from omegaconf import OmegaConf

from physicsnemo_cano.datapipes import Channel, FieldReader


@dataclass(frozen=True)
class Layout:
    """Names and kinds of a sample's fields.

    Attributes
    ----------
    coordinates, targets, series, spatial_shape, source
        As in :class:`FieldReader`.
    weights : bool
        Whether samples carry quadrature weights.
    mesh : dict or None
        Of mesh files, how they become samples; see :class:`.datapipes.meshes.MeshFolder`.
    """

    coordinates: tuple[Channel, ...]
    targets: tuple[Channel, ...]
    series: str | None
    spatial_shape: tuple[int, ...] | None
    source: str
    weights: bool
    mesh: dict[str, Any] | None = None

    @classmethod
    def of(cls, reader: FieldReader) -> Layout:
        """The layout of a reader's samples.

        Parameters
        ----------
        reader : FieldReader
            Opened.

        Returns
        -------
        Layout
        """
        return cls(
            tuple(reader.coordinates),
            tuple(reader.targets),
            reader.series,
            reader.spatial_shape,
            reader.source,
            reader.weighted,
            getattr(reader, "mesh", None),
        )

    def text(self) -> str:
        """The layout as a file holds it.

        Returns
        -------
        str
            JSON.
        """
        return json.dumps(asdict(self), indent=1) + "\n"

    @classmethod
    def load(cls, folder: Path) -> Layout:
        """Read the layout that a checkpoint holds.

        Checkpoints of version 0.1 lack it; theirs is that of the class of the reader that their
        configuration names.

        Parameters
        ----------
        folder : Path
            Of the checkpoint.

        Returns
        -------
        Layout

        Raises
        ------
        FileNotFoundError
            If the folder has neither.
        """
        file = folder / "layout.json"
        if file.exists():
            stored: dict[str, Any] = json.loads(file.read_text())
            for key in ("coordinates", "targets"):
                stored[key] = tuple(Channel(*channel) for channel in stored[key])
            if stored["spatial_shape"] is not None:
                stored["spatial_shape"] = tuple(stored["spatial_shape"])
            return cls(**stored)
        if not (folder / "config.yaml").exists():
            raise FileNotFoundError(
                f"{folder} holds neither layout.json nor config.yaml: give a folder of a run's "
                "checkpoints/, with all its files"
            )
        data = OmegaConf.load(folder / "config.yaml").data
        reader = get_class(data._target_)
        return cls(
            reader.coordinates, reader.targets, reader.series, None, "", bool(data.get("weights"))
        )
