# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Started under torchrun by test_domain_parallel: every case on this rank's shard and alone.

Writes what it finds, case by case, to the JSON file ``<folder>/<rank>.json``.
"""

import json
import sys
from functools import partial
from pathlib import Path

import torch
import torch.distributed as dist
from physicsnemo.domain_parallel import ShardTensor, register_custom_ops, sync_module_over_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard
from torch.nn.parallel import DistributedDataParallel

from benchmarks.traffic import Traffic
from physicsnemo_cano import CANO
from physicsnemo_cano.recipe.distributed import initialize

POINTWISE = ("fx", "embedding", "mask", "weights", "target")


def model(**changes):
    torch.manual_seed(1)  # the same on every rank
    arguments = {"functional_dim": 2, "out_dim": 2, "embedding_dim": 3, "n_layers": 2}
    arguments |= {"n_hidden": 8, "n_head": 2, "slice_num": 3}
    return CANO(**arguments | changes).double()


def inputs(*points, batch=2, padded=None, weights=False, time=False, one_token=False, flat=False):
    """A sample of ``points``, the same on every rank; the last ``padded`` ones are padding."""
    torch.manual_seed(2)
    points = (torch.Size(points).numel(),) if flat else points
    data = {
        "fx": torch.randn(batch, *((1,) if one_token else points), 2).double(),
        "embedding": torch.randn(batch, *points, 3).double(),
        "target": torch.randn(batch, *points, 2).double(),
    }
    if padded:
        data["mask"] = torch.ones(batch, *points, dtype=torch.bool)
        data["mask"][0, -padded:] = False
        for name in ("fx", "embedding"):
            data[name][0, -padded:] = float("nan")
    if weights:
        data["weights"] = torch.rand(batch, *points).double() + 0.1
    if time:
        data["time"] = torch.rand(batch).double()
    return data


def cut(data, mesh, sizes, dim=1):
    """This rank's shards of all pointwise data, of ``sizes`` along ``dim``."""
    start, n = sum(sizes[: mesh.get_local_rank()]), sizes[mesh.get_local_rank()]
    shards = {}
    for name, tensor in data.items():
        if name in POINTWISE and tensor.shape[1] > 1:
            shapes = [(*tensor.shape[:dim], s, *tensor.shape[dim + 1 :]) for s in sizes]
            tensor = tensor.narrow(dim, start, n).contiguous()
            tensor = ShardTensor.from_local(tensor, mesh, [Shard(dim)], sharding_shapes={0: shapes})
        shards[name] = tensor
    return shards


def learn(net, data):
    """Loss, output and gradients of parameters and of the inputs that are real numbers."""
    data = dict(data)
    target = data.pop("target")
    leaves = {}
    for name, tensor in data.items():
        if tensor.is_floating_point():
            leaves[name] = data[name] = tensor.detach().requires_grad_()
    out = net(**data)
    # Not mean(): PhysicsNeMo 2.2 divides its gradient in float32.
    loss = ((out - target) ** 2).sum() / out.numel()
    loss.backward()
    grads = {name: p.grad for name, p in net.named_parameters()}
    used = {name: leaf.grad for name, leaf in leaves.items() if leaf.grad is not None}
    return loss, out, grads, used


def whole(tensor):
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def difference(found, expected):
    return (whole(found) - expected).abs().max().item()


def compare(mesh, data, sizes, dim=1, **arguments):
    """Largest differences between the shards' results and those of one process."""
    loss, out, grads, input_grads = learn(model(**arguments), data)
    found = learn(model(**arguments), cut(data, mesh, sizes, dim))
    assert found[1].placements == (Shard(dim),)
    assert found[1].to_local().shape[dim] == sizes[mesh.get_local_rank()]
    return {
        "loss": difference(found[0], loss),
        "output": difference(found[1], out),
        "gradients": max(difference(found[2][name], grads[name]) for name in grads),
        "input gradients": max(difference(found[3][n], input_grads[n]) for n in input_grads),
        "largest gradient": max(grad.abs().max().item() for grad in grads.values()),
    }


def refusal(mesh, data, sizes, dim=1, change=None, **arguments):
    """What a wrong call says, on every rank (else the others would wait for ever)."""
    data = cut(data, mesh, sizes, dim)
    del data["target"]
    data |= change or {}
    try:
        model(**arguments)(**data)
    except ValueError as error:
        return str(error)
    return "nothing"


def traffic(mesh, data, sizes, **arguments):
    """Bytes that a rank hands to collectives in the forward and in the backward pass."""
    net, data = model(**arguments), cut(data, mesh, sizes)
    target = data.pop("target")
    with Traffic() as forward:
        out = net(**data).to_local()
    with Traffic() as backward:
        ((out - target.to_local()) ** 2).sum().backward()
    n_parameters = sum(p.numel() for p in net.parameters())
    return {"forward": forward.bytes, "backward": backward.bytes, "n_parameters": n_parameters}


def both_together(mesh, parallelize):
    """Two samples, each over two ranks, under DDP or FSDP over the samples."""
    data = inputs(21, batch=2, padded=4, weights=True)
    _, _, expected, _ = learn(model(), data)
    net = model()
    if mesh["domain"].get_local_rank() or mesh["data"].get_local_rank():
        torch.nn.init.zeros_(net.decoder[1].weight)  # to be overwritten by rank 0's
    sync_module_over_mesh(net, mesh["domain"])
    parallel = parallelize(net, mesh["data"])
    i = mesh["data"].get_local_rank()
    own = {name: tensor[i : i + 1] for name, tensor in data.items()}
    own = cut(own, mesh["domain"], (13, 8))
    target = own.pop("target")
    loss = ((parallel(**own) - target) ** 2).sum() / target.numel()
    loss.backward()
    return {n: difference(p.grad, expected[n]) for n, p in net.named_parameters()}


def ddp(net, mesh):
    return DistributedDataParallel(net, process_group=mesh.get_group())


def fsdp(net, mesh):
    sync_module_over_mesh(net, mesh)  # DDP does so by itself
    return fully_shard(net, mesh=mesh)


def fsdp_of_blocks(net, mesh):
    for block in net.blocks:
        fully_shard(block, mesh=mesh)
    return fsdp(net, mesh)


def blocks_refused(mesh):
    """What is said to parameters that are gathered too late, on every rank."""
    try:
        both_together(mesh, fsdp_of_blocks)
    except ValueError as error:
        return str(error)
    return "nothing"


def equal_cases(mesh):
    """Every kind of input, cut unevenly over two or four ranks."""
    uneven = mesh.size() // 4  # index into the sizes for two and for four ranks

    def equal(data, *sizes, dim=1, **arguments):
        return partial(compare, mesh, data, sizes[uneven], dim, **arguments)

    cloud, masked = ((16, 7), (9, 1, 6, 7)), inputs(23, padded=7, weights=True)
    yield "cloud", equal(inputs(23), *cloud)
    yield "cloud, mask", equal(inputs(23, padded=4), *cloud)
    yield "cloud, mask and weights, padding alone on the last rank", equal(masked, *cloud)
    tokens = inputs(23, weights=True, time=True, one_token=True)
    yield "cloud, weights, one token, time", equal(tokens, *cloud, time_input=True)
    yield "cloud, sums of queries", equal(masked, *cloud, normalize_queries=False)
    yield "cloud, in chunks", equal(masked, *cloud, chunk_size=4)

    shape = {"structured_shape": (8, 6)}
    rows, columns, fine = ((5, 3), (1, 3, 2, 2)), ((2, 4), (1, 2, 1, 2)), ((9, 6), (3, 5, 2, 5))
    points = [[6 * n for n in sizes] for sizes in rows]
    yield "grid", equal(inputs(8, 6), *rows, **shape)
    yield "grid, mask and weights", equal(inputs(8, 6, padded=1, weights=True), *rows, **shape)
    yield "grid, flat", equal(inputs(8, 6, flat=True), *points, **shape)
    yield "grid, second axis", equal(inputs(8, 6, weights=True), *columns, dim=2, **shape)
    yield "grid, periodic", equal(inputs(8, 6), *rows, **shape, padding_mode="circular")
    yield "grid, in chunks", equal(inputs(8, 6), *rows, **shape, chunk_size=5)
    yield "grid, 2 times as fine", equal(inputs(15, 6), *fine, **shape)
    yield "grid, 1.4 times as fine", equal(inputs(11, 9), (8, 3), (3, 2, 4, 2), **shape)
    yield (
        "grid, periodic, 2 times as fine, second axis",
        equal(inputs(16, 12), (7, 5), (3, 3, 2, 4), dim=2, **shape, padding_mode="circular"),
    )
    yield "grid, unified positions", equal(inputs(15, 6), *fine, **shape, unified_pos=True, ref=2)
    yield "line", equal(inputs(13), (4, 9), (4, 2, 3, 4), structured_shape=(13,))
    yield (
        "volume, third axis",
        equal(inputs(2, 3, 7), (4, 3), (2, 2, 1, 2), dim=3, structured_shape=(2, 3, 7)),
    )


def traffic_cases(mesh):
    """The same model on few points and on many."""
    for n in (40, 4000):
        sizes = (n // mesh.size(),) * mesh.size()
        yield f"cloud of {n}", partial(traffic, mesh, inputs(n, weights=True), sizes)
        grid = partial(traffic, mesh, inputs(n, 5), sizes, structured_shape=(n, 5))
        yield f"grid of {n} x 5", grid


def refused_cases(mesh):
    """Wrong calls, some of them seen to be wrong by one rank only."""
    refused, sizes = partial(refusal, mesh), (16, 7)
    grid = {"structured_shape": (8, 6)}
    data = inputs(23, weights=True)
    empty = inputs(23) | {"mask": torch.tensor([True, False])[:, None].expand(2, 23)}
    yield "sample without points", partial(refused, empty, sizes)
    negative = data | {"weights": data["weights"].index_fill(1, torch.tensor(22), -1)}
    yield "negative weight", partial(refused, negative, sizes)
    plain = {"mask": torch.ones(2, 23, dtype=torch.bool)}
    yield "not a ShardTensor", partial(refused, data, sizes, change=plain)
    elsewhere = {"weights": cut(data, mesh, (15, 8))["weights"]}
    yield "cut elsewhere", partial(refused, data, sizes, change=elsewhere)
    copy = {"embedding": ShardTensor.from_local(data["embedding"], mesh, [Replicate()])}
    yield "not cut", partial(refused, data, sizes, change=copy)
    yield "no points", partial(refused, data, (23, 0))
    yield "broken lines", partial(refused, inputs(8, 6, flat=True), (31, 17), **grid)
    yield "too thin", partial(refused, inputs(15, 6), (14, 1), **grid)


def main():
    """Run every case, in the same order on every rank."""
    initialize()
    register_custom_ops()  # PhysicsNeMo does so by itself where there is a GPU
    four = dist.init_device_mesh("cpu", (4,), mesh_dim_names=("domain",))
    square = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "domain"))
    two = square["domain"]
    plan = {
        "equal on two": equal_cases(two),
        "equal on four": equal_cases(four),
        "traffic": traffic_cases(four),
        "refused": refused_cases(two),
    }
    results = {what: {name: run() for name, run in cases} for what, cases in plan.items()}
    results["both"] = {f.__name__: both_together(square, f) for f in (ddp, fsdp)}
    results["refused"]["sharded blocks"] = blocks_refused(square)
    Path(sys.argv[1], f"{dist.get_rank()}.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main()
