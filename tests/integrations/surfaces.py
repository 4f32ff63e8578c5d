# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""A reader of closed surfaces, whose class a checkpoint's configuration names."""

import torch
from physicsnemo.datapipes import Reader

from physicsnemo_cano import CANO
from physicsnemo_cano.datapipes import Channel, FieldReader


class Surfaces(FieldReader):
    coordinates = tuple(map(Channel, "xyz"))
    targets = (Channel("pressure", "Pa"), Channel("shear", "Pa"))
    source, path = "generated", "surfaces"

    def __init__(self, clouds):  # of any dimension, from memory
        Reader.__init__(self)
        self.clouds = clouds

    def __len__(self):
        return len(self.clouds)

    def _load_sample(self, index):
        x, fx = self.clouds[index]
        return {"embedding": x, "fx": fx, "target": torch.stack([x.sum(1) + 3, 10 * x[:, 0]], 1)}


class Series(Surfaces):
    series = "instants"


class FixedSizes(CANO):
    """A model whose constructor has no argument of CANO's."""

    def __init__(self, coordinates):
        super().__init__(0, 2, coordinates, n_layers=2, n_hidden=16, n_head=2, slice_num=4)
