"""Low-rank adapters: `export.py --lora RANK` freezes the model, and the plan holds nothing for what is frozen."""

import json

import numpy
import onnx
import pytest
import torch
from conftest import write_config
from plan_files import read_plan
from safetensors.numpy import load_file, save_file
from torch_reference import load_model

SEQ, RANK, STEPS, MICRO, ACCUMULATION = 16, 2, 4, 2, 2
OPTIONS = ["--size", "tiny", "--seq", SEQ, "--set", "n_layer=2"]


@pytest.fixture(scope="module")
def adapted(tools, exported, tmp_path_factory):
    """(export, plan, data, metrics, weights before, weights after) of a GPT-2 with adapters."""
    folder = exported("gpt2", *OPTIONS, "--lora", RANK)
    place = tmp_path_factory.mktemp("adapted")
    plan, data, after = (place / name for name in ("m.dsplan", "data.safetensors", "after.safetensors"))
    tokens = numpy.random.default_rng(2).integers(0, 256, (STEPS * ACCUMULATION * MICRO, SEQ))
    save_file({"input_ids": tokens, "labels": tokens}, data)
    tools("ds-opt", "compile", folder, "--config", write_config(place / "c.json", MICRO, ACCUMULATION), "-o", plan)
    metrics, _ = tools.train(plan, data, STEPS, "--export", after)
    proto = onnx.load(folder / "model.onnx")
    before = {t.name: onnx.numpy_helper.to_array(t) for t in proto.graph.initializer}
    return folder, plan, tokens, metrics, before, load_file(after)


def test_only_adapters_have_gradients_and_state(adapted, tools):
    """Not a byte of gradient or optimizer state for a frozen parameter, in the report and in the plan itself."""
    _, plan, _, _, before, _ = adapted
    adapters = {name: value for name, value in before.items() if ".lora_" in name}
    assert len(adapters) == 4  # A and B of c_attn in both layers
    elements = sum(value.size for value in adapters.values())
    memory = json.loads(tools("ds-opt", "report", plan, "--format", "json").stdout)["ranks_detail"][0]["memory"]["device"]
    assert memory["gradients"] == 4 * elements
    assert 8 * elements <= memory["optimizer"] < 8 * elements + 256, "two moments; counters and metrics are some bytes"
    proto = read_plan(plan)
    kinds = type(proto.variables[0])
    state = {v.name.rsplit("::", 1)[0] for v in proto.variables if v.kind == kinds.OPTIMIZER and "exp_avg" in v.name}
    assert state == set(adapters)
    gradients = [b for b in proto.roles[0].buffers if b.name.endswith("::gradient")]
    assert {b.name.removesuffix("::gradient") for b in gradients} == set(adapters)


def test_only_adapters_change(adapted):
    *_, before, after = adapted
    for name, value in after.items():
        assert numpy.array_equal(value, before[name]) == (".lora_" not in name), name


def test_losses_are_pytorchs(adapted):
    """The same adapters by hand in PyTorch."""
    folder, _, tokens, metrics, before, _ = adapted
    torch.manual_seed(0)
    model = load_model("gpt2", folder, n_layer=2)
    model.requires_grad_(False)
    trained = {}
    for number, block in enumerate(model.transformer.h):
        name = f"transformer.h.{number}.attn.c_attn"
        a, b = (torch.nn.Parameter(torch.from_numpy(before[f"{name}.lora_{kind}"].copy())) for kind in "AB")
        block.attn.c_attn.register_forward_hook(lambda module, args, y, a=a, b=b: y + args[0] @ a.T @ b.T)
        trained.update({f"{name}.lora_A": a, f"{name}.lora_B": b})
    assert all((value == 0).all() for name, value in trained.items() if name.endswith("B"))
    optimizer = torch.optim.AdamW(trained.values(), lr=1e-3, weight_decay=0.1)
    losses = []
    for batches in torch.from_numpy(tokens).split(MICRO * ACCUMULATION):
        optimizer.zero_grad()
        parts = [model(input_ids=batch, labels=batch).loss for batch in batches.split(MICRO)]
        (sum(parts) / ACCUMULATION).backward()
        optimizer.step()
        losses.append(sum(part.item() for part in parts) / ACCUMULATION)
    numpy.testing.assert_allclose([line["loss"] for line in metrics], losses, rtol=1e-5)


def test_refusals(tools, tmp_path):
    message = tools.refused("export.py", "gpt2", *OPTIONS, "--lora", 2, "--lora-targets", "nothing", "--out", tmp_path / "m")
    assert "--lora 2" in message and "'nothing'" in message
    tools.refused("export.py", "gpt2", *OPTIONS, "--lora-targets", "q", "--out", tmp_path / "m", code=2)
    tools.refused("export.py", "gpt2", *OPTIONS, "--lora", 0, "--out", tmp_path / "m", code=2)
