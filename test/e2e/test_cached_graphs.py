"""Graphs that transformers' exporter wrote with a cache of keys and values: the cache is cut off, and they train as PyTorch does without one."""

import sys

import pytest
import torch
import transformers
from conftest import REPOSITORY, write_config
from safetensors.torch import save_file

BATCH, TOKENS, PAST = 2, 16, 5
SETTINGS = dict(vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                max_position_embeddings=64, bos_token_id=1, eos_token_id=2)


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**SETTINGS)).train()


@pytest.fixture(scope="module")
def exported(model, tmp_path_factory):
    """exported(with_past, dynamic) -> folder"""
    from transformers.exporters import OnnxConfig, OnnxExporter

    def export(with_past, dynamic):
        folder, generator = tmp_path_factory.mktemp("cached"), torch.Generator().manual_seed(1)
        inputs = {"input_ids": torch.randint(0, 64, (BATCH, TOKENS), generator=generator)}
        if with_past:
            with torch.no_grad():
                past = model(input_ids=torch.randint(0, 64, (BATCH, PAST), generator=generator), use_cache=True).past_key_values
            inputs |= {"attention_mask": torch.ones(BATCH, PAST + TOKENS, dtype=torch.long), "past_key_values": past}
        else:
            inputs["use_cache"] = True
        OnnxExporter().export(model, inputs, config=OnnxConfig(optimize=False, dynamic=dynamic)).save_pretrained(folder)
        return folder
    return export


def losses(model, ids, steps):
    """Of PyTorch, without a cache."""
    module = transformers.LlamaForCausalLM(model.config).train()
    module.load_state_dict(model.state_dict())
    optimizer, found = torch.optim.AdamW(module.parameters(), lr=1e-3, weight_decay=0.1), []
    for step in range(steps):
        optimizer.zero_grad()
        part = ids[step * BATCH:(step + 1) * BATCH]
        loss = module(input_ids=part, labels=part, use_cache=False).loss
        loss.backward()
        found.append(loss.item())
        optimizer.step()
    return found


def test_cached_outputs_are_left_out_and_the_batch_has_any_name(model, exported, tools, tmp_path):
    ids = torch.randint(0, 64, (3 * BATCH, TOKENS), generator=torch.Generator().manual_seed(2))
    save_file({"input_ids": ids, "labels": ids.clone()}, tmp_path / "data.safetensors")
    folder, config, plan = exported(False, True), write_config(tmp_path / "c.json", BATCH), tmp_path / "m.dsplan"
    sentence = tools.refused("ds-opt", "compile", folder, "--config", config, "-o", plan)
    name = sentence.split("--dim ")[1].split("=")[0]
    assert f"dimension '{name}' has no size" in sentence  # the tokens' alone, not the batch's
    done = tools("ds-opt", "compile", folder, "--config", config, "--dim", f"{name}={TOKENS}", "-o", plan)
    assert "cut off: outputs 'past_key_values.layers.0.keys', " in done.stderr and "dimension 0 of the inputs, so the micro-batch, 2" in done.stderr
    tools("ds-opt", "verify", plan, "--model", folder, "--config", config)
    lines, _ = tools.train(plan, tmp_path / "data.safetensors", 3)
    assert [line["loss"] for line in lines] == pytest.approx(losses(model, ids, 3), rel=1e-5)


def test_cached_inputs_are_empty(model, exported, tools, tmp_path):
    ids = torch.randint(0, 64, (3 * BATCH, TOKENS), generator=torch.Generator().manual_seed(2))
    save_file({"input_ids": ids, "labels": ids.clone(), "attention_mask": torch.ones_like(ids)}, tmp_path / "data.safetensors")
    folder, config, plan = exported(True, True), write_config(tmp_path / "c.json", BATCH), tmp_path / "m.dsplan"
    sentence = tools.refused("ds-opt", "compile", folder, "--config", config, "-o", plan)  # tokens of input_ids and of attention_mask, at once
    flags = [f"{name}{TOKENS}" for name in sentence.split("add ")[1].split("N")[:-1]]
    assert len(flags) == 2, sentence
    done = tools("ds-opt", "compile", folder, "--config", config, *" ".join(flags).split(), "-o", plan)
    assert "cut off: inputs 'input.past_key_values.layers.0.keys'" in done.stderr and "outputs 'output.past_key_values.layers.0.keys'" in done.stderr
    tools("ds-opt", "verify", plan, "--model", folder, "--config", config)
    lines, _ = tools.train(plan, tmp_path / "data.safetensors", 3)
    assert [line["loss"] for line in lines] == pytest.approx(losses(model, ids, 3), rel=1e-5)
    tools(sys.executable, REPOSITORY / "tools/ds-audit/ds-audit", plan, "--model", folder, "--config", config, "--orders", 1)


def test_a_fixed_number_of_earlier_tokens_is_refused(exported, tools, tmp_path):
    sentence = tools.refused("ds-opt", "compile", exported(True, False), "--config", write_config(tmp_path / "c.json", BATCH))
    assert "holds keys and values of earlier tokens" in sentence and "has a fixed number of them" in sentence and "use_cache=False" in sentence
