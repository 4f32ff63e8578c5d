# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""CANO as a PhysicsNeMo module: outputs, layouts, invariances, conventions, refusals."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import hydra
import numpy as np
import pytest
import torch
from omegaconf import OmegaConf
from physicsnemo.core import Module
from physicsnemo.models.transolver import Transolver

from physicsnemo_cano import CANO
from physicsnemo_cano.models.cano import grid_points, unified_position

DATA = Path(__file__).parent / "data"
SMALL = {"n_layers": 2, "n_hidden": 16, "n_head": 4, "slice_num": 5}


def model(**options):
    options = {"functional_dim": 2, "out_dim": 3, "embedding_dim": 2} | SMALL | options
    return CANO(**options).double()


def cloud(batch=2, points=20, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shape = (batch, points, 2)
    return tuple(torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(2))


def parameters(module):
    return sum(p.numel() for p in module.parameters())


def test_constructor_defaults_and_arguments():
    default = CANO(functional_dim=2, out_dim=1, embedding_dim=3)
    assert len(default.blocks) == 8
    assert default.blocks[0].attention.centroids.shape == (8, 32, 16)
    assert default.meta.amp
    assert default.meta.onnx
    small = model(mlp_ratio=3, act="silu", dropout=0.1, time_input=True, chunk_size=7)
    d = 16
    mlp = (d * 3 * d + 3 * d) + (3 * d * d + d)
    attention = 3 * (d * d + d) + (d * d + d) + 4 * 5 * 4
    block = mlp + attention + 2 * 2 * d
    encoder = (4 * 2 * d + 2 * d) + (2 * d * d + d)
    time = (d * 2 * d + 2 * d) + (2 * d * d + d)
    decoder = 2 * d + 3 * d + 3
    assert parameters(small) == encoder + time + 2 * block + decoder


def test_parameter_count_of_the_paper():
    """Table 4: 8.12 M on Navier-Stokes; on the airfoil 2.31 M here, 2.44 M there."""
    navier_stokes = CANO(
        10, 1, n_hidden=256, mlp_ratio=1, unified_pos=True, structured_shape=(64, 64)
    )
    assert round(parameters(navier_stokes) / 1e6, 2) == 8.12
    assert round(parameters(CANO(0, 1, 2, structured_shape=(221, 51))) / 1e6, 2) == 2.31


def test_reference_output_and_stored_checkpoint():
    """A file saved by version 0.1.0 loads and reproduces; see data/README.md."""
    stored = torch.load(DATA / "cano_v0.1.pt", weights_only=True)
    for name in ("cloud", "grid"):
        loaded = Module.from_checkpoint(str(DATA / f"cano_v0.1_{name}.mdlus")).eval()
        inputs = {k: v for k, v in stored[name].items() if k != "output"}
        with torch.no_grad():
            out = loaded(**inputs)
        torch.testing.assert_close(out, stored[name]["output"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(12,), (3, 4), (2, 3, 2)])
def test_layouts_agree(shape):
    grid = model(structured_shape=shape)
    fx, embedding = cloud(2, 12)
    flat = grid(fx, embedding)
    assert flat.shape == (2, 12, 3)
    shaped_fx, shaped_embedding = fx.unflatten(1, shape), embedding.unflatten(1, shape)
    torch.testing.assert_close(grid(shaped_fx, shaped_embedding), flat.unflatten(1, shape))
    torch.testing.assert_close(grid(shaped_fx, embedding), flat.unflatten(1, shape))
    torch.testing.assert_close(grid(fx, shaped_embedding), flat)


def test_global_input_equals_the_same_input_on_every_point():
    for shape in (None, (4, 5)):
        net = model(structured_shape=shape)
        fx, embedding = cloud()
        if shape:
            embedding = embedding.unflatten(1, shape)
        spread = fx[:, :1].expand(-1, 20, -1)
        expected = net(spread, embedding).reshape(2, 20, 3)
        got = net(fx[:, :1], embedding)
        assert got.shape == (*embedding.shape[:-1], 3)
        torch.testing.assert_close(got.reshape(2, 20, 3), expected)


def test_no_input_function():
    net = model(functional_dim=0)
    _, embedding = cloud()
    assert net(embedding[..., :0], embedding).shape == (2, 20, 3)
    net = model(functional_dim=0, unified_pos=True, structured_shape=(4, 5))
    out = net(embedding[..., :0], weights=torch.rand(2, 20) + 0.1)
    assert out.shape == (2, 20, 3)


def test_mask_keeps_clouds_apart_and_gradients_clean():
    net = model()
    (fx, embedding), (fx2, embedding2) = cloud(1, 9), cloud(1, 4, seed=1)
    nan = torch.full((1, 5, 2), torch.nan, dtype=torch.float64)
    padded_fx = torch.cat([fx, torch.cat([fx2, nan], 1)])
    padded_embedding = torch.cat([embedding, torch.cat([embedding2, nan], 1)])
    mask = torch.arange(9) < torch.tensor([[9], [4]])
    out = net(padded_fx, padded_embedding, mask=mask)
    first, second = net(fx, embedding), net(fx2, embedding2)
    torch.testing.assert_close(out[:1], first)
    torch.testing.assert_close(out[1:, :4], second)
    assert (out[1:, 4:] == 0).all()
    padded = torch.autograd.grad(out.square().sum(), list(net.parameters()))
    alone = torch.autograd.grad(
        first.square().sum() + second.square().sum(), list(net.parameters())
    )
    for a, b in zip(padded, alone, strict=True):
        torch.testing.assert_close(a, b)


def test_splitting_a_point_changes_nothing():
    net = model()
    fx, embedding = cloud(1, 8)
    weights = torch.rand(1, 8, dtype=torch.float64) + 0.1
    whole = net(fx, embedding, weights=weights)
    twice = [torch.cat([t, t[:, 3:4]], 1) for t in (fx, embedding, weights)]
    twice[2][:, [3, 8]] = weights[:, 3] / 2
    out = net(twice[0], twice[1], weights=twice[2])
    torch.testing.assert_close(out[:, :8], whole)
    torch.testing.assert_close(out[:, 8], whole[:, 3])
    torch.testing.assert_close(net(fx, embedding, weights=1e5 * weights), whole)
    assert (net(fx, embedding) - whole).abs().max() > 1e-6


def test_weighted_cloud_converges_under_refinement():
    """On ever finer midpoint grids of one smooth function the outputs become Cauchy."""
    net = model(functional_dim=1)

    def at_origin(n):
        # geometric nodes: refining does not keep the density of points, only the weights do
        edges = torch.linspace(0, 1, n + 1, dtype=torch.float64) ** 2
        x = (edges[1:] + edges[:-1]) / 2
        x = torch.cat([torch.zeros(1, dtype=x.dtype), x])
        w = torch.cat([torch.full((1,), 1e-12, dtype=x.dtype), edges.diff()])
        embedding = torch.stack([x, x.cos()], -1)[None]
        return net((3 * x).sin()[None, :, None], embedding, weights=w[None])[0, 0]

    coarse, middle, fine = at_origin(20), at_origin(40), at_origin(80)
    assert (fine - middle).norm() < 0.3 * (middle - coarse).norm()


def test_time_changes_the_output_and_batch_entries_keep_their_own():
    net = model(time_input=True)
    fx, embedding = cloud()
    out = net(fx, embedding, time=torch.tensor([0.0, 3.0]).double())
    for i, t in enumerate((0.0, 3.0)):
        alone = net(fx[i : i + 1], embedding[i : i + 1], time=torch.tensor([t]).double())
        torch.testing.assert_close(out[i : i + 1], alone)
    assert (
        net(fx, embedding, time=torch.tensor([1.0, 3.0]).double())[0] - out[0]
    ).abs().max() > 1e-6


def test_unified_position_is_transolvers_and_generalises():
    expected = Transolver(1, 1, structured_shape=(6, 7), unified_pos=True, use_te=False).embedding[
        0
    ]
    torch.testing.assert_close(unified_position(grid_points((6, 7), torch.ones(1)), 8), expected)
    line = unified_position(grid_points((3,), torch.ones(1)), 2)
    torch.testing.assert_close(line, torch.tensor([[0.0, 1], [0.5, 0.5], [1, 0]]))
    cube = unified_position(grid_points((2, 2, 2), torch.ones(1)), 2)
    assert cube.shape == (8, 8)
    assert cube[0, 7].item() == pytest.approx(3**0.5)
    for shape in ((12,), (3, 4), (2, 3, 2)):
        net = model(unified_pos=True, embedding_dim=None, ref=3, structured_shape=shape)
        fx = torch.randn(2, *shape, 2, dtype=torch.float64)
        assert net(fx).shape == (2, *shape, 3)
        finer = torch.randn(2, *(2 * n - 1 for n in shape), 2, dtype=torch.float64)
        assert net(finer).shape == (*finer.shape[:-1], 3)


def test_smooth_function_on_finer_and_coarser_grids_gives_nearly_the_same_field():
    net = model(functional_dim=1, structured_shape=(17, 17))

    def field(n):
        x = torch.linspace(0, 1, n, dtype=torch.float64)
        mesh = torch.stack(torch.meshgrid(x, x, indexing="ij"), -1)[None]
        w = torch.ones(n, dtype=x.dtype)
        w[[0, -1]] = 0.5
        fx = (3 * mesh[..., :1]).sin() * mesh[..., 1:]
        return net(fx, mesh, weights=torch.outer(w, w)[None])

    trained, fine, coarse = field(17), field(33), field(9)
    change = (fine[:, ::2, ::2] - trained)[:, 1:-1, 1:-1].norm() / trained[:, 1:-1, 1:-1].norm()
    assert change < 2e-3
    assert (coarse - trained[:, ::2, ::2]).norm() / coarse.norm() < 2e-2


@pytest.mark.parametrize("chunk_size", [1, 7, 20, 64])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"structured_shape": (4, 5)},
        {"unified_pos": True, "structured_shape": (4, 5), "embedding_dim": None, "ref": 3},
    ],
)
def test_chunks_are_exact_with_gradients(options, chunk_size):
    dense = model(time_input=True, **options)
    chunked = model(time_input=True, chunk_size=chunk_size, **options)
    chunked.load_state_dict(dense.state_dict())
    fx, embedding = cloud()
    inputs = {"fx": fx, "embedding": None if "ref" in options else embedding}
    inputs["time"] = torch.tensor([0.5, 2.0]).double()
    inputs["mask"] = torch.arange(20).expand(2, -1) < torch.tensor([[20], [13]])
    inputs["weights"] = torch.rand(2, 20, dtype=torch.float64) + 0.1
    expected, got = dense(**inputs), chunked(**inputs)
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-12)
    with torch.no_grad():
        torch.testing.assert_close(chunked(**inputs), expected, rtol=0, atol=1e-12)
    for a, b in zip(
        torch.autograd.grad(got.square().sum(), list(chunked.parameters())),
        torch.autograd.grad(expected.square().sum(), list(dense.parameters())),
        strict=True,
    ):
        torch.testing.assert_close(a, b)


# PhysicsNeMo's conventions


def run(code, *arguments):
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_registry_finds_cano_before_our_package_is_imported():
    code = (
        "import sys\n"
        "from physicsnemo.core import ModelRegistry\n"
        "assert 'physicsnemo_cano' not in sys.modules\n"
        "print(ModelRegistry().factory('CANO').__module__)\n"
    )
    assert run(code)[-1] == "physicsnemo_cano.models.cano"


def test_checkpoint_opens_in_a_process_that_never_imported_us(tmp_path):
    net = CANO(2, 3, 2, **SMALL, structured_shape=OmegaConf.create([4, 5])).eval()
    path = tmp_path / "model.mdlus"
    net.save(str(path))
    code = (
        "import sys, torch, physicsnemo\n"
        "assert 'physicsnemo_cano' not in sys.modules\n"
        "args = {'chunk_size': 3}\n"
        "model = physicsnemo.Module.from_checkpoint(sys.argv[1], override_args=args).eval()\n"
        "assert model.blocks[1].attention.chunk_size == 3\n"
        "fx = torch.arange(40.).reshape(1, 20, 2).sin()\n"
        "print(model(fx, fx.cos()).double().sum().item())\n"
    )
    fx = torch.arange(40.0).reshape(1, 20, 2).sin()
    assert float(run(code, path)[-1]) == pytest.approx(
        net(fx, fx.cos()).double().sum().item(), rel=1e-5
    )
    with pytest.raises(ValueError, match="n_hidden"):
        Module.from_checkpoint(str(path), override_args={"n_hidden": 8})


class OnOneGrid(CANO):
    """What a user derives: the grid is fixed, and is not among the arguments."""

    def __init__(self, out_dim, lengths=(1.0, 1.0)):
        super().__init__(2, out_dim, 2, **SMALL, structured_shape=(4, 5))
        self.lengths = lengths


def test_subclass_that_fixes_its_grid_is_stored(tmp_path):
    net = OnOneGrid(np.int64(3), lengths=np.array([2.0, 0.5])).eval()
    net.save(str(tmp_path / "model.mdlus"))
    again = Module.from_checkpoint(str(tmp_path / "model.mdlus")).eval()
    assert type(again) is OnOneGrid
    assert again.structured_shape == [4, 5]
    assert list(again.lengths) == [2.0, 0.5]
    fx, embedding = (tensor.float() for tensor in cloud())
    assert torch.equal(again(fx, embedding), net(fx, embedding))


ARGUMENTS = {
    "functional_dim": 2,
    "out_dim": 3,
    "embedding_dim": 2,
    "n_layers": 2,
    "n_hidden": 16,
    "dropout": 0.25,
    "n_head": 4,
    "act": "gelu",
    "mlp_ratio": 2,
    "slice_num": 5,
    "unified_pos": False,
    "ref": 8,
    "structured_shape": [4, 5],
    "use_te": False,
    "time_input": True,
    "normalize_queries": False,
    "padding_mode": "circular",
    "chunk_size": 7,
}


@pytest.mark.parametrize("convert", [np.array, lambda x: np.array(x)[()], torch.tensor])
@pytest.mark.parametrize("by_name", [True, False])
def test_arguments_of_numpy_and_torch_are_stored_as_pythons(convert, by_name, tmp_path):
    given = {k: v if isinstance(v, str) else convert(v) for k, v in ARGUMENTS.items()}
    net = CANO(**given) if by_name else CANO(*given.values())
    net.save(str(tmp_path / "model.mdlus"))
    with zipfile.ZipFile(tmp_path / "model.mdlus") as archive:
        assert json.loads(archive.read("args.json"))["__args__"] == ARGUMENTS
    again = Module.from_checkpoint(str(tmp_path / "model.mdlus")).eval()
    fx, embedding = (tensor.float() for tensor in cloud())
    time = torch.tensor([0.5, 2.0])
    assert torch.equal(again(fx, embedding, time), net.eval()(fx, embedding, time))


COMMON = {
    "n_layers": 2,
    "n_hidden": 16,
    "dropout": 0.0,
    "n_head": 4,
    "act": "gelu",
    "mlp_ratio": 4,
    "slice_num": 8,
    "unified_pos": False,
}
CONFIGS = {  # the keys of PhysicsNeMo's own example configurations
    "aero surface, flare": COMMON
    | {"out_dim": 4, "functional_dim": 3, "embedding_dim": 6, "structured_shape": None},
    "aero volume, flare": COMMON
    | {"out_dim": 5, "functional_dim": 3, "embedding_dim": 7, "structured_shape": None},
    "darcy, flare": COMMON
    | {"_convert_": "all", "functional_dim": 1, "out_dim": 1, "embedding_dim": 2, "ref": 8}
    | {"structured_shape": [6, 6], "time_input": False},
    "darcy, transolver": COMMON
    | {"_convert_": "all", "functional_dim": 1, "out_dim": 1, "embedding_dim": 2, "ref": 8}
    | {"structured_shape": [6, 6], "use_te": False, "time_input": False},
}


@pytest.mark.parametrize("name", CONFIGS)
def test_physicsnemo_configs_swap_by_target_alone(name, tmp_path):
    """Instantiated beside the model they were written for, and called in the same way."""
    config = CONFIGS[name]
    theirs = "flare.FLARE" if "flare" in name else "transolver.Transolver"
    outputs = []
    for target in (f"physicsnemo.models.{theirs}", "physicsnemo_cano.CANO"):
        net = hydra.utils.instantiate(OmegaConf.create(config | {"_target_": target}))
        fx = torch.randn(2, 36, config["functional_dim"])
        outputs.append(net(fx, embedding=torch.randn(2, 36, config["embedding_dim"])))
        net.save(str(tmp_path / "model.mdlus"))
    assert outputs[0].shape == outputs[1].shape
    assert isinstance(Module.from_checkpoint(str(tmp_path / "model.mdlus")), CANO)


@pytest.mark.parametrize("shape", [None, (4, 5)])
def test_autocast_is_close_and_trains(shape):
    net = model(structured_shape=shape).float()
    fx, embedding = (t.float() for t in cloud())
    weights = torch.rand(2, 20) + 0.1
    exact = net(fx, embedding, weights=weights)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rough = net(fx, embedding, weights=weights)
    assert rough.dtype == torch.bfloat16
    assert (rough - exact).norm() / exact.norm() < 0.02
    rough.float().square().sum().backward()
    assert all(p.grad.isfinite().all() for p in net.parameters())


@pytest.mark.parametrize(
    ("shape", "backend"), [((4, 5), "inductor"), (None, "aot_eager"), ((4, 5), "aot_eager")]
)
def test_compiled_whole_equals_eager(shape, backend):
    torch.compiler.reset()
    net = model(structured_shape=shape, n_layers=1).float()
    fx, embedding = (t.float() for t in cloud())
    options = {"mask": torch.arange(20).expand(2, -1) < 18, "weights": torch.rand(2, 20) + 0.1}
    compiled = torch.compile(net, fullgraph=True, backend=backend)
    eager_out, out = net(fx, embedding, **options), compiled(fx, embedding, **options)
    torch.testing.assert_close(out, eager_out, rtol=1e-4, atol=1e-5)
    grads = torch.autograd.grad(out.square().mean(), list(net.parameters()))
    eager = torch.autograd.grad(eager_out.square().mean(), list(net.parameters()))
    for a, b in zip(grads, eager, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-5)


def test_compiled_for_one_grid_after_another():
    """The compiler frees a size that changes, and a stencil cannot follow from a free size."""
    torch.compiler.reset()
    net = model(structured_shape=(4, 5), n_layers=1).float()
    compiled = torch.compile(net, fullgraph=True)
    for grid in ((4, 5), (4, 9), (7, 6)):  # its own, a nested one, one between
        fx, embedding = (torch.randn(2, *grid, 2) for _ in range(2))
        torch.testing.assert_close(
            compiled(fx, embedding), net(fx, embedding), rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize("shape", [None, (4, 5)])
def test_onnx_run_by_onnxruntime_equals_torch(shape, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    net = model(structured_shape=shape).float().eval()
    fx, embedding = (t.float() for t in cloud())
    path = str(tmp_path / "model.onnx")
    torch.onnx.export(net, (fx, embedding), path, dynamo=True, verbose=False)
    session = onnxruntime.InferenceSession(path)
    names = [i.name for i in session.get_inputs()]
    (out,) = session.run(None, dict(zip(names, (fx.numpy(), embedding.numpy()), strict=True)))
    np.testing.assert_allclose(out, net(fx, embedding).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_exported_for_any_number_of_points(tmp_path):
    """Of clouds; sizes, 1 and 3000 among them, that the export has not seen."""
    onnxruntime = pytest.importorskip("onnxruntime")
    net, path = model().float().eval(), str(tmp_path / "model.onnx")

    def inputs(n):
        torch.manual_seed(n)
        return torch.randn(1, n, 2), torch.randn(1, n, 2), None, None, torch.rand(1, n) + 0.1

    points = {1: torch.export.Dim("points", min=1, max=10**9)}
    shapes = {"fx": points, "embedding": points, "time": None, "mask": None, "weights": points}
    program = torch.export.export(net, inputs(20), dynamic_shapes=shapes)
    torch.onnx.export(
        net, inputs(20), path, dynamic_shapes=shapes, dynamo=True, optimize=False, verbose=False
    )
    session = onnxruntime.InferenceSession(path)
    names = [i.name for i in session.get_inputs()]
    assert names == ["fx", "embedding", "weights"]
    for n in (1, 7, 20, 3000):
        expected = net(*inputs(n)).detach()
        torch.testing.assert_close(program.module()(*inputs(n)), expected)
        arrays = [x.numpy() for x in inputs(n) if x is not None]
        (out,) = session.run(None, dict(zip(names, arrays, strict=True)))
        np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_cuda_graph_equals_eager():
    net = model().float().cuda().eval()
    fx, embedding = (t.float().cuda() for t in cloud())
    weights = torch.rand(2, 20, device="cuda") + 0.1
    with torch.no_grad():
        expected = net(fx, embedding, weights=weights)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = net(fx, embedding, weights=weights)
        graph.replay()
    torch.testing.assert_close(out, expected)


# Refusals

FX, EMBEDDING = cloud()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_hidden": 10, "n_head": 4}, "n_hidden=10, n_head=4"),
        ({"n_head": 0}, "n_head >= 1, got n_hidden=16, n_head=0"),
        ({"chunk_size": -1}, "chunk_size >= 1, got -1"),
        ({"embedding_dim": None}, "embedding_dim unless unified_pos=True, got None"),
        ({"unified_pos": True}, "structured_shape with unified_pos=True, got None"),
        ({"use_te": True}, "set use_te=False"),
        ({"structured_shape": (2, 2, 2, 2)}, "1, 2 or 3 positive"),
        ({"structured_shape": (4, 5), "padding_mode": "same"}, "'same'"),
    ],
)
def test_bad_arguments_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        model(**options)


@pytest.mark.parametrize(
    ("options", "inputs", "message"),
    [
        ({}, {"fx": FX}, "embedding of 2 channels, got None"),
        (
            {},
            {"fx": FX[..., :1], "embedding": EMBEDDING},
            r"fx of shape \(B, N, 2\), got \(2, 20, 1\)",
        ),
        ({}, {"fx": FX, "embedding": EMBEDDING[0]}, r"embedding of shape .* got \(20, 2\)"),
        ({}, {"fx": FX.unflatten(1, (4, 5)), "embedding": EMBEDDING}, r"got \(2, 4, 5, 2\)"),
        (
            {},
            {"fx": FX.float(), "embedding": EMBEDDING},
            "fx of dtype torch.float64, got torch.float32",
        ),
        ({}, {"fx": FX.long(), "embedding": EMBEDDING}, "got torch.int64"),
        ({}, {"fx": FX[:, :7], "embedding": EMBEDDING}, r"\(2, 7, 2\) and \(2, 20, 2\)"),
        ({}, {"fx": FX[:1], "embedding": EMBEDDING}, "one batch size"),
        ({"structured_shape": (4, 6)}, {"fx": FX, "embedding": EMBEDDING}, r"24 points.*got 20"),
        (
            {"time_input": True},
            {"fx": FX, "embedding": EMBEDDING},
            "time_input=True, got time None",
        ),
        ({}, {"fx": FX, "embedding": EMBEDDING, "time": torch.ones(2)}, "only if time_input"),
        (
            {"time_input": True},
            {"fx": FX, "embedding": EMBEDDING, "time": torch.ones(2, 1)},
            r"\(2,\), got \(2, 1\)",
        ),
        (
            {"time_input": True},
            {"fx": FX, "embedding": EMBEDDING, "time": torch.ones(2)},
            "time of dtype torch.float64, got torch.float32: pass time.to",
        ),
        (
            {},
            {"fx": FX, "embedding": EMBEDDING, "mask": torch.zeros(2, 20, dtype=torch.bool)},
            r"none in \[0, 1\]",
        ),
        ({}, {"fx": FX, "embedding": EMBEDDING, "mask": torch.ones(2, 20)}, "must be boolean"),
        ({}, {"fx": FX, "embedding": EMBEDDING, "weights": torch.zeros(2, 20)}, "not all be zero"),
        ({}, {"fx": FX, "embedding": EMBEDDING, "weights": -torch.ones(2, 20)}, "not negative"),
        ({}, {"fx": FX, "embedding": EMBEDDING, "weights": torch.ones(2, 19)}, r"\(2, 19\)"),
        ({}, {"fx": FX, "embedding": EMBEDDING, "weights": torch.ones(20)}, r"got \(20,\)"),
        (
            {"structured_shape": (4, 5)},
            {"fx": FX.unflatten(1, (4, 5)), "embedding": EMBEDDING.unflatten(1, (5, 4))},
            "on one grid",
        ),
    ],
)
def test_bad_inputs_are_refused(options, inputs, message):
    with pytest.raises(ValueError, match=message):
        model(**options)(**inputs)


def test_numbers_of_numpy_are_stored(tmp_path):
    sizes = {name: np.int64(size) for name, size in SMALL.items() if isinstance(size, int)}
    model = CANO(np.int32(2), np.int64(3), np.int64(2), **{**SMALL, **sizes}, dropout=np.float32(0))
    model.eval().save(str(tmp_path / "numpy.mdlus"))
    again = Module.from_checkpoint(str(tmp_path / "numpy.mdlus")).eval()
    x = torch.rand(1, 5, 2), torch.rand(1, 5, 2)
    assert torch.equal(again(*x), model(*x))


def test_points_at_a_time_can_be_set():
    model = CANO(2, 3, 2, **SMALL).double().eval()
    x = torch.rand(1, 9, 2).double(), torch.rand(1, 9, 2).double()
    expected = model(*x)
    for size in (1, 4, None):
        model.set_chunk_size(size)
        torch.testing.assert_close(model(*x), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "options", [{}, {"structured_shape": (4, 5)}, {"unified_pos": True, "structured_shape": (4, 5)}]
)
def test_no_input_function_is_needed_where_it_has_no_channels(options):
    net = model(functional_dim=0, **options).eval()
    _, x = cloud()
    assert torch.equal(net(None, x), net(x[..., :0], x))
    grid = x.unflatten(1, (4, 5))
    if options:
        assert torch.equal(net(None, grid), net(grid[..., :0], grid))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fx": None}, "fx of 2 channels, got None; .* functional_dim=0"),
        ({"fx": np.ones((2, 20, 2))}, r"fx as a tensor, got numpy.ndarray: .*as_tensor\(fx\)"),
        ({"embedding": np.ones((2, 20, 2))}, "embedding as a tensor, got numpy.ndarray"),
        ({"weights": np.ones((2, 20))}, "weights as a tensor, got numpy.ndarray"),
        ({"mask": [[True]]}, "mask as a tensor, got builtins.list$"),
        ({"time": 0.5}, "time as a tensor, got builtins.float$"),
        ({"time": torch.ones(2)}, "time of dtype torch.float64, got torch.float32: pass time.to"),
        ({"time": torch.ones(2).long()}, "time of dtype torch.float64, got torch.int64"),
        ({"fx": torch.ones(2, 20, 2)}, "fx of dtype torch.float64, got torch.float32: pass fx.to"),
    ],
)
def test_inputs_of_other_types(change, message):
    fx, embedding = cloud()
    given = {"fx": fx, "embedding": embedding, "time": torch.ones(2).double()} | change
    with pytest.raises(ValueError, match=message):
        model(time_input=True)(**given)


@pytest.mark.parametrize("name", ["fx", "embedding", "time"])
def test_autocast_does_not_cast_float64(name):
    net = CANO(2, 3, 2, **SMALL, time_input=True).eval()
    given = {"fx": torch.rand(1, 9, 2), "embedding": torch.rand(1, 9, 2), "time": torch.ones(1)}
    with torch.autocast("cpu", torch.bfloat16):
        assert net(**given).isfinite().all()
        given[name] = given[name].double()
        with pytest.raises(ValueError, match=f"{name} of dtype torch.float32, got torch.float64"):
            net(**given)
