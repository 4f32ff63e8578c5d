# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
"""One sample's points shared by several processes.

``shards`` is torch alone and describes who has which points; ``shard_tensor`` brings PhysicsNeMo's
``ShardTensor`` to it.
"""

from .shards import ProcessShards, Shards

__all__ = ["ProcessShards", "Shards"]
