"""Ten steps of GPT-2, Llama, BERT and a mixture of experts on real text: losses, gradient norms, learning rates and weights are PyTorch's."""

import json

import numpy
import pytest
import torch
from conftest import write_config
from safetensors import safe_open
from safetensors.torch import save_file
from torch_reference import learning_rate, load_model, own_spread, train
from weights import read_weights, require_near

SEQ, MICRO, STEPS = 64, 4, 10
ADAMW = {"type": "AdamW", "params": {"lr": 1e-3, "weight_decay": 0.1}}
SGD = {"type": "SGD", "params": {"lr": 0.05, "momentum": 0.9}}
NESTEROV = {"type": "SGD", "params": {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}}
ADAM = {"type": "Adam", "params": {"lr": 1e-3, "weight_decay": 0.1, "adam_w_mode": False}}
ADAGRAD = {"type": "Adagrad", "params": {"lr": 5e-3, "lr_decay": 0.1, "weight_decay": 0.01}}

# What stands in ds_config.json besides batch sizes. Warm-up and decay both lie within the ten steps; the gradient norm is 2
# to 5 in the first ones, so that clipping at 1 binds.
CASES = {
    "adamw": dict(optimizer=ADAMW),
    "clip": dict(optimizer=ADAMW, gradient_clipping=1.0),
    "warmup-log": dict(optimizer=ADAMW, scheduler={"type": "WarmupLR", "params": {
        "warmup_num_steps": 4, "warmup_min_lr": 1e-4, "warmup_max_lr": 2e-3}}),
    "warmup-linear-clip": dict(optimizer=ADAMW, gradient_clipping=0.5, scheduler={"type": "WarmupLR", "params": {
        "warmup_num_steps": 5, "warmup_type": "linear"}}),
    "decay": dict(optimizer=ADAMW, scheduler={"type": "WarmupDecayLR", "params": {
        "warmup_num_steps": 3, "total_num_steps": 9, "warmup_max_lr": 2e-3, "warmup_type": "linear"}}),
    "cosine-clip": dict(optimizer=ADAMW, gradient_clipping=1.0, scheduler={"type": "WarmupCosineLR", "params": {
        "warmup_num_steps": 3, "total_num_steps": 9, "warmup_min_ratio": 0.1, "cos_min_ratio": 0.05}}),
    "sgd-momentum": dict(optimizer=SGD),
    "sgd-nesterov-decay-clip": dict(optimizer=NESTEROV, gradient_clipping=1.0, scheduler={
        "type": "WarmupDecayLR", "params": {"warmup_num_steps": 3, "total_num_steps": 12, "warmup_max_lr": 0.05}}),
}


# Every optimizer on one model is enough.
ON_GPT2 = {
    "adam": dict(optimizer=ADAM),
    "adagrad-clip": dict(optimizer=ADAGRAD, gradient_clipping=1.0),
}


def read_samples(path) -> dict:
    with safe_open(path, "pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("accumulation", [1, 4])
@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_ten_steps_are_pytorchs(name, accumulation, case, tools, exported, text_data, tmp_path):
    check_ten_steps(name, accumulation, CASES[case], tools, exported, text_data, tmp_path)


@pytest.mark.parametrize("case", ON_GPT2)
def test_other_optimizers_are_pytorchs(case, tools, exported, text_data, tmp_path):
    check_ten_steps("gpt2", 2, ON_GPT2[case], tools, exported, text_data, tmp_path)


@pytest.mark.parametrize("accumulation", [1, 4])
def test_mixture_is_pytorchs(accumulation, tools, exported, text_data, tmp_path):
    """Every expert on every token gives what transformers' Mixtral gives, which sends each token to two of four."""
    check_ten_steps("moe", accumulation, dict(optimizer=ADAMW), tools, exported, text_data, tmp_path)


@pytest.mark.parametrize("accumulation", [1, 4])
def test_masked_language_model_is_pytorchs(accumulation, tools, exported, masked_data, tmp_path):
    """BERT with padding, whose attention mask is made of an input while training."""
    samples = read_samples(masked_data(SEQ))
    lengths = torch.randint(SEQ // 2, SEQ + 1, (len(samples["labels"]), 1), generator=torch.Generator().manual_seed(1))
    padding = torch.arange(SEQ) >= lengths
    samples["attention_mask"][padding] = 0
    samples["labels"][padding] = -100
    samples["labels"][:, 0] = samples["input_ids"][:, 0]  # something is left to be guessed in each
    data = tmp_path / "masked.safetensors"
    save_file(samples, data)
    check_ten_steps("bert", accumulation, dict(optimizer=ADAMW, gradient_clipping=1.0), tools, exported, lambda seq: data, tmp_path)


def check_ten_steps(name, accumulation, settings, tools, exported, text_data, tmp_path):
    folder, data = exported(name, "--size", "tiny", "--seq", SEQ), text_data(SEQ)
    path = write_config(tmp_path / "ds_config.json", MICRO, accumulation, **settings)
    config = json.loads(path.read_text())
    plan, weights = tmp_path / "model.dsplan", tmp_path / "weights.safetensors"
    tools("ds-opt", "compile", folder, "--config", path, "--ranks", 1, "-o", plan)
    metrics, _ = tools.train(plan, data, STEPS, "--export", weights, "--threads", 2)

    samples = read_samples(data)
    assert len(samples["labels"]) >= STEPS * accumulation * MICRO, "no sample may come twice"
    single = train(load_model(name, folder), samples, config, STEPS)

    assert [line["step"] for line in metrics] == list(range(1, STEPS + 1))
    numpy.testing.assert_allclose([line["loss"] for line in metrics], single.losses, rtol=1e-5)
    numpy.testing.assert_allclose([line["grad_norm"] for line in metrics], single.norms, rtol=1e-4)
    assert [line["lr"] for line in metrics] == [learning_rate(config, step) for step in range(STEPS)]
    check_weights(weights, single.weights, lambda: own_spread(lambda dtype: load_model(name, folder, dtype), samples, config, STEPS))
    if "gradient_clipping" in config and config["gradient_clipping"] > 0:
        assert min(single.norms) > config["gradient_clipping"], "clipping never binds: the test shows nothing"


def check_weights(path, single, spread):
    """Every tensor is there once, under PyTorch's name, and near PyTorch's. What transformers' files call otherwise has that name as an alias."""
    ours, aliases = read_weights(path)
    assert set(ours) <= set(single) <= set(ours) | set(aliases) and not set(ours) & set(aliases)
    assert set(aliases.values()) <= set(ours)
    require_near(ours, single, spread=spread)


def test_tied_weight_is_written_once(tools, exported, text_data, tmp_path):
    """transformers' GPT-2 reads its token embedding twice: one tensor under the file's name, the other name an alias."""
    folder = exported("gpt2", "--size", "tiny", "--seq", SEQ)
    config = write_config(tmp_path / "ds_config.json")
    plan, weights = tmp_path / "model.dsplan", tmp_path / "weights.safetensors"
    tools("ds-opt", "compile", folder, "--config", config, "--ranks", 1, "-o", plan)
    tools.train(plan, text_data(SEQ), 2, "--export", weights)
    ours, aliases = read_weights(weights)
    assert aliases == {"transformer.wte.weight": "lm_head.weight"}
    assert "lm_head.weight" in ours and "transformer.wte.weight" not in ours
    assert sum(value.size for value in ours.values()) == sum(p.numel() for p in load_model("gpt2", folder).parameters())


def test_transformers_continues_from_exported_weights(tools, exported, text_data, tmp_path):
    """The file is what PyTorch goes on with: its loss on the next batch is that of ds-run's next step."""
    folder, data = exported("gpt2", "--size", "tiny", "--seq", SEQ), text_data(SEQ)
    config = write_config(tmp_path / "ds_config.json")
    plan, weights = tmp_path / "model.dsplan", tmp_path / "weights.safetensors"
    tools("ds-opt", "compile", folder, "--config", config, "--ranks", 1, "-o", plan)
    tools.train(plan, data, 5, "--export", weights)
    metrics, _ = tools.train(plan, data, 6)
    ours, _ = read_weights(weights)
    model = load_model("gpt2", folder)
    missing, unexpected = model.load_state_dict({name: torch.from_numpy(value) for name, value in ours.items()}, strict=False)
    assert not unexpected and missing == ["transformer.wte.weight"]
    batch = read_samples(data)["input_ids"][5 * MICRO:6 * MICRO]
    with torch.no_grad():
        assert model(input_ids=batch, labels=batch).loss.item() == pytest.approx(metrics[5]["loss"], rel=1e-5)
