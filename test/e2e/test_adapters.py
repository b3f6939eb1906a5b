"""Low-rank adapters: `export.py --lora RANK` freezes the model, and the plan holds nothing for what is frozen."""

import json

import numpy
import onnx
import pytest
import torch
from conftest import write_config
from plan_files import read_plan
from safetensors.numpy import load_file, save_file
from safetensors.torch import load_file as torch_load
from safetensors.torch import save_file as torch_save
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


def require_nothing_for_frozen_ones(tools, plan, adapters):
    """Not a byte of gradient or optimizer state but those of `adapters`, {name: value}, in the report and in the plan itself."""
    elements = sum(value.size for value in adapters.values())
    memory = json.loads(tools("ds-opt", "report", plan, "--format", "json").stdout)["ranks_detail"][0]["memory"]["device"]
    assert memory["gradients"] == 4 * elements
    assert 8 * elements <= memory["optimizer"] < 8 * elements + 256, "two moments; counters and metrics are some bytes"
    proto = read_plan(plan)
    kinds = type(proto.variables[0])
    assert {v.name.rsplit("::", 1)[0] for v in proto.variables if v.kind == kinds.OPTIMIZER and "exp_avg" in v.name} == adapters.keys()
    assert {b.name.removesuffix("::gradient") for b in proto.roles[0].buffers if b.name.endswith("::gradient")} == adapters.keys()


def test_only_adapters_have_gradients_and_state(adapted, tools):
    _, plan, _, _, before, _ = adapted
    adapters = {name: value for name, value in before.items() if ".lora_" in name}
    assert len(adapters) == 4  # A and B of c_attn in both layers
    require_nothing_for_frozen_ones(tools, plan, adapters)


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


# --- back to Hugging Face: a file of weights is enough of a run


def folder_of(place, model_type, weights, architecture="LlamaForCausalLM"):
    place.mkdir()
    (place / "config.json").write_text(json.dumps({"model_type": model_type, "architectures": [architecture]}))
    torch_save(weights, place / "model.safetensors")
    return place


def drawn(rows, columns, dtype=torch.float32):
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(rows * 100 + columns)).to(dtype)


def of_run(base, *layers, rank=RANK):
    """A run's weights: those of the base in float32, and adapters of some layers: name -> (outputs, inputs)."""
    adapters = {}
    for name, (outputs, inputs) in layers:
        adapters |= {f"{name}.lora_A": drawn(rank, inputs), f"{name}.lora_B": drawn(outputs, rank)}
    return {name: value.float() for name, value in base.items()} | adapters


@pytest.mark.parametrize("model_type, dtype, ending", [("llama", torch.bfloat16, ""), ("gpt2", torch.float32, ""), ("llama", torch.bfloat16, ".weight")])
def test_adapters_are_merged_or_stand_alone(model_type, dtype, ending, tools, tmp_path):
    """W + (alpha / r) B A, also of a square W, which lies the other way in GPT-2. ds-opt compile --lora names them by weights."""
    is_transposed = model_type == "gpt2"
    shapes = {"model.q_proj": (6, 4), "model.square": (5, 5)}
    base = {f"{name}.weight": drawn(*(reversed(shape) if is_transposed else shape), dtype) for name, shape in shapes.items()}
    base["model.norm.weight"] = drawn(1, 4, dtype)
    like = folder_of(tmp_path / "base", model_type, base)
    run = of_run(base, *shapes.items())
    run = {name.replace(".lora_", f"{ending}.lora_"): value for name, value in run.items()}
    torch_save(run, tmp_path / "w.safetensors")
    said = tools("ds-run", "export", tmp_path / "w.safetensors", "--hf", tmp_path / "merged", "--like", like).stderr
    assert said == "note: the adapters of 2 layers were merged into their weights; with --adapter they are written alone, as peft loads them\n"
    said = tools("ds-run", "export", tmp_path / "w.safetensors", "--hf", tmp_path / "alone", "--like", like, "--adapter").stderr
    assert said == f"note: the adapters of 2 layers stand alone, for peft beside {like}; without --adapter they are merged into its weights\n"
    assert {path.name for path in (tmp_path / "alone").iterdir()} == {"adapter_model.safetensors", "adapter_config.json"}
    config = json.loads((tmp_path / "alone" / "adapter_config.json").read_text())
    assert config["peft_type"] == "LORA" and config["target_modules"] == list(shapes) and config["base_model_name_or_path"] == str(like)
    assert config["fan_in_fan_out"] == is_transposed and config["task_type"] == "CAUSAL_LM" and config["r"] == RANK
    adapters, merged = torch_load(tmp_path / "alone" / "adapter_model.safetensors"), torch_load(tmp_path / "merged" / "model.safetensors")
    assert adapters.keys() == {f"base_model.model.{name}.lora_{kind}.weight" for name in shapes for kind in "AB"}
    assert merged.keys() == base.keys() and torch.equal(merged["model.norm.weight"], base["model.norm.weight"])
    for name in shapes:
        a, b = (adapters[f"base_model.model.{name}.lora_{kind}.weight"] for kind in "AB")
        assert torch.equal(a, run[f"{name}{ending}.lora_A"]) and torch.equal(b, run[f"{name}{ending}.lora_B"])
        change = (b.double() @ a.double()) * config["lora_alpha"] / config["r"]
        expected = base[f"{name}.weight"].double() + (change.T if is_transposed else change)
        assert torch.equal(merged[f"{name}.weight"], expected.float().to(dtype)), name


def test_a_trained_run_goes_back(adapted, tools, tmp_path):
    """GPT-2's layers lie the other way; nothing else has changed."""
    folder, plan, *_, after = adapted
    load_model("gpt2", folder, n_layer=2).save_pretrained(tmp_path / "base")
    export = ["ds-run", "export", plan.parent / "after.safetensors", "--like", tmp_path / "base"]
    tools(*export, "--hf", tmp_path / "merged")
    tools(*export, "--hf", tmp_path / "alone", "--adapter")
    merged = torch_load(tmp_path / "merged" / "model.safetensors")
    for name, value in torch_load(tmp_path / "base" / "model.safetensors").items():
        layer = name.removesuffix(".weight")
        change = (after[f"{layer}.lora_B"] @ after[f"{layer}.lora_A"]).T if f"{layer}.lora_A" in after else 0
        numpy.testing.assert_allclose(merged[name], value.numpy() + change, rtol=1e-6, atol=1e-8)
        assert (f"{layer}.lora_A" in after) == bool((merged[name] != value).any())


def test_what_an_adapter_folder_cannot_hold(tools, tmp_path):
    base = {"q_proj.weight": drawn(6, 4), "v_proj.weight": drawn(3, 4)}
    like, file = folder_of(tmp_path / "base", "llama", base), tmp_path / "w.safetensors"

    def says(weights, *flags):
        torch_save(weights, file)
        message = tools.refused("ds-run", "export", file, "--hf", tmp_path / "out", "--like", like, *flags)
        assert not (tmp_path / "out").exists() and not (tmp_path / "out.part").exists()
        return message
    assert "has no low-rank adapters (LAYER.lora_A and LAYER.lora_B, as models/export.py --lora names them); leave out" in says(base, "--adapter")
    adapted = of_run(base, ("q_proj", (6, 4)))
    assert f"v_proj.weight is not what it is in {like}, and an adapter folder has no place for it; leave out --adapter" in says(
        adapted | {"v_proj.weight": base["v_proj.weight"] + 1}, "--adapter")
    assert "q_proj and v_proj differ in rank" in says(adapted | of_run({}, ("v_proj", (3, 4)), rank=1), "--adapter")
    homeless = {"q_proj.lora_A.default.weight": drawn(RANK, 4), "q_proj.lora_B.default.weight": drawn(6, RANK)}
    assert "has no place for 2 of the 4 tensors" in says(base | homeless) and "adapters under peft's own names" in says(base | homeless)


def test_refusals(tools, tmp_path):
    message = tools.refused("export.py", "gpt2", *OPTIONS, "--lora", 2, "--lora-targets", "nothing", "--out", tmp_path / "m")
    assert "--lora 2" in message and "'nothing'" in message
    message = tools.refused("export.py", "gpt2", *OPTIONS, "--lora", 2, "--lora-targets", "lm_head", "--out", tmp_path / "m")
    assert "the weight of lm_head is also transformer.wte.weight, so its adapter could not be merged" in message
    tools.refused("export.py", "gpt2", *OPTIONS, "--lora-targets", "q", "--out", tmp_path / "m", code=2)
    tools.refused("export.py", "gpt2", *OPTIONS, "--lora", 0, "--out", tmp_path / "m", code=2)
