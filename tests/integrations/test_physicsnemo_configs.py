# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""The configurations for PhysicsNeMo's examples: what their scripts build, call and save."""

import inspect
from pathlib import Path

import pytest
import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf
from physicsnemo.mesh import Mesh
from physicsnemo.models.transolver import Transolver
from physicsnemo.utils import load_checkpoint, save_checkpoint
from torch.testing import assert_close

from physicsnemo_cano import CANO

CONFIGS = Path(__file__).parents[2] / "conf" / "physicsnemo"
# What else the scripts put into the configuration that they compose.
COMPOSED = {
    "darcy_transolver/cano": {"resolution": 5},
    "transformer_models/cano": {},
    "unified_external_aero_recipe/cano_surface": {"out_dim": 4},
    "unified_external_aero_recipe/cano_volume": {"out_dim": 5},
}


def compose(name, **model):
    """What Hydra makes of the file in its group, with settings of the model from elsewhere."""
    text = (CONFIGS / f"{name}.yaml").read_text()
    file = OmegaConf.create(text)
    if not text.startswith("# @package _global_"):
        file = OmegaConf.create({"model": file})
    return OmegaConf.merge(COMPOSED[name], file, {"model": model})


def small(name, **model):
    return compose(name, n_layers=2, n_hidden=16, slice_num=4, n_head=2, **model)


def cloud(n, *channels):
    return [torch.randn(1, n, c) for c in channels]


def backward(model, output):
    """The gradient reaches every parameter."""
    output.square().mean().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


@pytest.mark.parametrize("name", COMPOSED)
def test_every_file_is_here_and_says_where_it_goes(name):
    files = {f"{file.parent.name}/{file.stem}" for file in CONFIGS.glob("*/*.yaml")}
    assert files == set(COMPOSED)
    text = (CONFIGS / f"{name}.yaml").read_text()
    assert f"/{name.split('/')[0]}/" in text
    assert "# then: " in text


@pytest.mark.parametrize("name", COMPOSED)
def test_the_target_alone_tells_it_from_transolver(name):
    cfg = compose(name)
    assert type(instantiate(cfg.model, _convert_="partial")) is CANO
    assert set(cfg.model) - {"_target_", "_convert_", "chunk_size"} <= set(
        inspect.signature(Transolver).parameters
    )
    # Read by the scripts: Darcy's name of a run, the padding for eight-bit floats.
    assert {"slice_num", "out_dim", "functional_dim", "embedding_dim"} <= set(cfg.model)


def test_darcy_transolver():
    model = instantiate(small("darcy_transolver/cano").model)
    pos, x = torch.rand(3, 25, 2), torch.randn(3, 25)  # the script flattens the grid
    output = model(embedding=pos, fx=x.unsqueeze(-1)).squeeze(-1)
    assert output.shape == x.shape
    backward(model, output)
    grid = model(fx=x.view(3, 5, 5, 1), embedding=pos.view(3, 5, 5, 2))
    assert_close(grid.flatten(1), output)


@pytest.mark.parametrize(
    ("mode", "sizes"), [("surface", {}), ("volume", {"out_dim": 5, "embedding_dim": 7})]
)
def test_transformer_models(mode, sizes):
    cfg = small("transformer_models/cano", **sizes).model
    model = instantiate(cfg, _convert_="partial")
    (embeddings,) = cloud(30, cfg.embedding_dim)
    fx = torch.tensor([[[1.2, 0.4]]])  # air density, stream speed
    output = model(fx=fx.expand(-1, 30, -1), embedding=embeddings)
    assert output.shape == (1, 30, 4 if mode == "surface" else 5)
    backward(model, output)
    # data.broadcast_global_features=false
    assert_close(model(fx=fx, embedding=embeddings), output)


def test_transformer_models_in_bfloat16():
    """The script casts inputs, not weights, and runs under autocast."""
    model = instantiate(small("transformer_models/cano").model, _convert_="partial")
    fx, embeddings = cloud(30, 2, 6)
    exact = model(fx=fx, embedding=embeddings)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = model(fx=fx.bfloat16(), embedding=embeddings.bfloat16())
    assert_close(output.float(), exact, rtol=0.05, atol=0.02)
    backward(model, output)


def resolve(spec, sample):
    """Resolve paths as the aero recipe does: joined along channels, then with a batch axis."""
    if OmegaConf.is_list(spec):
        return torch.cat([resolve(part, sample) for part in spec], -1)
    value = sample
    for part in spec.split("."):
        value = getattr(value, part) if hasattr(value, part) else value[part]
    while value.ndim < 2:  # (C,) and (N,) alike become one row
        value = value.unsqueeze(0)
    return value.unsqueeze(0)


@pytest.mark.parametrize("kind", ["surface", "volume"])
def test_unified_external_aero_recipe(kind):
    cfg = small(f"unified_external_aero_recipe/cano_{kind}")
    assert (cfg.input_type, cfg.output_type) == ("tensors", "tensors")
    model = instantiate(cfg.model, _convert_="partial")

    body = Mesh(points=torch.randn(8, 3), cells=torch.randint(0, 8, (6, 3)))
    body.cells[:, 1:] = (body.cells[:, :1] + torch.tensor([[1, 2]])) % 8  # three corners each
    body.cell_data["normals"] = torch.randn(6, 3)
    n = 6 if kind == "surface" else 9
    fields = {"sdf": torch.randn(n, 1), "sdf_normals": torch.randn(n, 3)}
    sample = {
        "interior": {"points": torch.randn(n, 3), "point_data": fields},
        "boundaries": {"vehicle": body},
        "global_data": {"U_inf": torch.tensor([38.9, 0.0, 0.0])},
    }
    inputs = {key: resolve(spec, sample) for key, spec in cfg.forward_kwargs.items()}
    assert inputs["fx"].shape == (1, 1, 3)
    output = model(**inputs)
    assert output.shape == (1, n, cfg.out_dim)
    backward(model, output)

    # The recipe's own templates spread the free stream over the points.
    spread = inputs | {"fx": inputs["fx"].expand(-1, n, -1)}
    assert_close(model(**spread), output)
    if kind == "surface":  # areas arrive as (1, 1, N)
        areas = body.cell_areas
        assert areas.std() > 0.1 * areas.mean()
        assert_close(model(**inputs | {"weights": areas[None]}), output)
        unweighted = model(**{key: inputs[key] for key in ("fx", "embedding")})
        assert (unweighted - output).abs().max() > 1e-4


@pytest.mark.parametrize("name", COMPOSED)
def test_training_resumes_from_the_checkpoint(name, tmp_path):
    cfg = small(name).model
    convert = {} if "_convert_" in cfg else {"_convert_": "partial"}
    fx, embedding = cloud(25, cfg.functional_dim, cfg.embedding_dim)
    model = instantiate(cfg, **convert)
    optimizer = torch.optim.AdamW(model.parameters())
    backward(model, model(fx, embedding))
    optimizer.step()
    save_checkpoint(tmp_path, models=model, optimizer=optimizer, epoch=3)

    resumed = instantiate(cfg, **convert)
    optimizer = torch.optim.AdamW(resumed.parameters())
    assert load_checkpoint(tmp_path, models=resumed, optimizer=optimizer, device="cpu") == 3
    assert optimizer.state_dict()["state"][0]["step"] == 1
    assert torch.equal(resumed(fx, embedding), model(fx, embedding))
