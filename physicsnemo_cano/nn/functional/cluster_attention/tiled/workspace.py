# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
r"""The memory that the passes of the tiled layer write for one tile of points.

Features have the points last, (H, D, n), so that heads lie one after the other without a copy.
Where a sum over points or clusters, or a term to add, can be one more row of a product, a row of
ones rides along: it costs next to nothing, a pass of its own over the assignments half a product.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from torch import Tensor

FORWARD = ("aggregate", "attend", "dispatch")
BACKWARD = ("dispatch_gradient", "attend_gradient", "aggregate_gradient")


class Buffer(NamedTuple):
    r"""One buffer of the workspace.

    Attributes
    ----------
    name : str
        Attribute of :class:`Workspace`.
    shape : str
        Sizes: H heads, K clusters a head, D channels a head, n points of the tile.
    written_by, read_by : tuple[str, ...]
        Passes, of ``FORWARD`` and ``BACKWARD``.
    holds : str
        What is in it.
    views : Mapping[str, Callable], optional
        More attributes: the same memory in another shape, in part, or, where it says "until", what
        is there before a step in place. (A second matrix of that size would leave the cache.)
    """

    name: str
    shape: str
    written_by: tuple[str, ...]
    read_by: tuple[str, ...]
    holds: str
    views: Mapping[str, Callable[[Tensor], Tensor]] = MappingProxyType({})


BUFFERS = (
    # Forward, eq. 13 and 14
    Buffer(
        "assignment_exp_by_point",
        "H n K",
        written_by=("aggregate",),
        read_by=("aggregate",),
        holds="exponentials of the assignment logits; by points, since sums over them are faster",
        views={
            "assignment_exp": lambda t: t.mT,  # (H, K, n)
            "assignment_logits_by_point": lambda t: t,  # until exp
            "assignment_logits": lambda t: t.mT,  # (H, K, n), until exp
        },
    ),
    Buffer(
        "scaled_query_one",
        "H D+1 n",
        written_by=("aggregate",),
        read_by=("aggregate",),
        holds="queries and a row of ones, over the sum of exponentials, times the weight",
        views={
            "scaled_query": lambda t: t[:, :-1],  # (H, D, n)
            "scaled_one": lambda t: t[:, -1:],  # (H, 1, n)
        },
    ),
    # Both directions, eq. 9
    Buffer(
        "key_value_one",
        "2 H D+1 n",
        written_by=("attend", "attend_gradient"),
        read_by=("attend", "attend_gradient"),
        holds="keys, then values, without biases; after those of each head a row of ones, or of "
        "log w after the keys where there are weights",
        views={
            "key_value_one_flat": lambda t: t.flatten(0, 2),  # (2H(D+1), n)
            "last_rows": lambda t: t[:, :, -1],  # (2, H, n)
            "key_one": lambda t: t[0],  # (H, D+1, n)
            "key_one_t": lambda t: t[0].mT,  # (H, n, D+1)
            "key": lambda t: t[0, :, :-1],  # (H, D, n)
            "key_t": lambda t: t[0, :, :-1].mT,  # (H, n, D)
            "value_one": lambda t: t[1],  # (H, D+1, n)
        },
    ),
    # Forward, eq. 15
    Buffer(
        "attention_exp_by_point",
        "H n K",
        written_by=("attend",),
        read_by=("attend",),
        holds="exponentials of the attention logits; by points, since sums over them are faster",
        views={
            "attention_logits_by_point": lambda t: t,  # until exp
            "attention_logits": lambda t: t.mT,  # (H, K, n), until exp
        },
    ),
    # Forward, eq. 16
    Buffer(
        "dispatch_exp",
        "H K n",
        written_by=("dispatch",),
        read_by=("dispatch",),
        holds="exponentials of the assignment logits, computed once more",
        views={"dispatch_logits": lambda t: t},  # until exp
    ),
    # Both directions, eq. 16
    Buffer(
        "y",
        "H D n",
        written_by=("dispatch", "dispatch_gradient"),
        read_by=("dispatch", "dispatch_gradient"),
        holds="the points' attended features Y",
        views={"y_flat_t": lambda t: t.flatten(0, 1).T},  # (n, HD)
    ),
    # Backward, eq. 13
    Buffer(
        "query_one_logsumexp",
        "H D+2 n",
        written_by=("dispatch_gradient", "aggregate_gradient"),
        read_by=("dispatch_gradient", "aggregate_gradient"),
        holds="queries; after those of each head a row of ones and one of the point's logsumexp",
        views={
            "query_one_logsumexp_flat": lambda t: t.flatten(0, 1),  # (H(D+2), n)
            "query_t": lambda t: t[:, :-2].mT,  # (H, n, D)
            "query_one": lambda t: t[:, :-1],  # (H, D+1, n)
            "logsumexp": lambda t: t[:, -1:],  # (H, 1, n)
        },
    ),
    Buffer(
        "assignments",
        "H K n",
        written_by=("dispatch_gradient", "aggregate_gradient"),
        read_by=("dispatch_gradient", "aggregate_gradient"),
        holds="the assignments C of eq. 13, computed from the logsumexp",
        views={"assignment_log": lambda t: t},  # their logarithms, until exp
    ),
    # Backward, eq. 16
    Buffer(
        "grad_y",
        "H D n",
        written_by=("dispatch_gradient", "aggregate_gradient"),
        read_by=("dispatch_gradient", "aggregate_gradient"),
        holds="gradient with respect to Y",
        views={
            "grad_y_flat": lambda t: t.flatten(0, 1),  # (HD, n)
            "grad_y_t": lambda t: t.mT,  # (H, n, D)
        },
    ),
    # Backward, eq. 15
    Buffer(
        "attention",
        "H K n",
        written_by=("attend_gradient",),
        read_by=("attend_gradient",),
        holds="attention of the clusters to the points, over w where its gradient is wanted",
        views={"attention_log": lambda t: t},  # its logarithm, until exp
    ),
    Buffer(
        "grad_attention_logits",
        "H K n",
        written_by=("attend_gradient",),
        read_by=("attend_gradient",),
        holds="gradient with respect to the attention logits, over w where its gradient is wanted",
        views={"centred_grad_attention": lambda t: t},  # until multiplied by the attention
    ),
    Buffer(
        "grad_key_value",
        "2 H D n",
        written_by=("attend_gradient",),
        read_by=("attend_gradient",),
        holds="gradients with respect to keys and values",
        views={
            "grad_key": lambda t: t[0],  # (H, D, n)
            "grad_value": lambda t: t[1],  # (H, D, n)
            "grad_key_value_flat": lambda t: t.flatten(0, 2),  # (2HD, n)
            "grad_key_value_flat_t": lambda t: t.flatten(0, 2).T,  # (n, 2HD)
        },
    ),
    # Backward, eq. 14 and 13
    Buffer(
        "grad_query_one",
        "H D+1 n",
        written_by=("aggregate_gradient",),
        read_by=("aggregate_gradient",),
        holds="gradient with respect to queries and ones through the sums of eq. 14",
        views={"grad_query_from_sums": lambda t: t[:, :-1]},  # (H, D, n)
    ),
    Buffer(
        "grad_assignment_logits",
        "H K n",
        written_by=("aggregate_gradient",),
        read_by=("aggregate_gradient",),
        holds="gradient with respect to the assignment logits",
        views={
            "grad_assignments": lambda t: t,  # until multiplied by the assignments
            "assignments_times_grad": lambda t: t,  # until less the assignments times their sum
        },
    ),
    Buffer(
        "sum_assignments_times_grad",
        "H 1 n",
        written_by=("aggregate_gradient",),
        read_by=("aggregate_gradient",),
        holds="sum over the clusters of assignments times the gradient with respect to them",
    ),
    Buffer(
        "grad_query",
        "H D n",
        written_by=("aggregate_gradient",),
        read_by=("aggregate_gradient",),
        holds="gradient with respect to the queries",
        views={
            "grad_query_flat": lambda t: t.flatten(0, 1),  # (HD, n)
            "grad_query_flat_t": lambda t: t.flatten(0, 1).T,  # (n, HD)
        },
    ),
)


class Workspace:
    r"""All buffers that some passes write, and their views, for tiles of ``n`` points.

    Made once for all tiles of a call: new memory is slow to touch, and making a view takes as long
    as a small product. Of one call alone, so threads may share a layer.
    """

    def __init__(self, passes: tuple[str, ...], centroids: Tensor, n: int) -> None:
        heads, clusters, dim = centroids.shape
        sizes = {"1": 1, "2": 2, "H": heads, "K": clusters, "n": n}
        sizes |= {"D": dim, "D+1": dim + 1, "D+2": dim + 2}
        for buffer in BUFFERS:
            if set(buffer.written_by) & set(passes):
                memory = centroids.new_empty([sizes[s] for s in buffer.shape.split()])
                setattr(self, buffer.name, memory)
                for name, view in buffer.views.items():
                    setattr(self, name, view(memory))
