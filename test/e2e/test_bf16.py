"""bf16.enabled: losses follow float32's and PyTorch's in bfloat16; every strategy has the bits of one rank; state is float32.

PyTorch's side is what DeepSpeed does: the model's forward in bfloat16 on rounded copies of float32 parameters, which the optimizer
updates. (torch.autocast would leave norms and the residual stream float32.)
"""

import hashlib
import json
import os

import numpy
import pytest
import torch
from conftest import write_config
from safetensors import safe_open
from test_parity import read_samples
from torch_reference import load_model, train

SEQ, MICRO, STEPS = 32, 4, 10
MODELS = ("gpt2", "llama", "bert")
ADAMW = {"type": "AdamW", "params": {"lr": 1e-3, "weight_decay": 0.1}}
BF16 = {"bf16": {"enabled": True}}


class Bench:
    """One model, compiled and run in several ways; the data is the same."""

    def __init__(self, tools, name, folder, data, out):
        self.tools, self.name, self.folder, self.data, self.out = tools, name, folder, data, out
        self.done = {}

    def compile(self, ranks=1, accumulation=1, micro=MICRO, **settings):
        key = hashlib.sha256(f"{ranks} {accumulation} {micro} {settings}".encode()).hexdigest()[:8]
        config = write_config(self.out / f"{key}.json", micro, accumulation, ADAMW, **settings)
        plan = self.out / f"{key}.dsplan"
        self.tools("ds-opt", "compile", self.folder, "--config", config, "--ranks", ranks, "-o", plan)
        return plan

    def run(self, plan, ranks=1, steps=STEPS):
        """(digest of the exported weights, losses), the weights' file."""
        weights = plan.with_suffix(f".{os.urandom(4).hex()}.safetensors")
        metrics, _ = self.tools.train(plan, self.data, steps, "-n", ranks, "--threads", 1, "--export", weights)
        losses = [line["loss"] for line in metrics]
        return (hashlib.sha256(weights.read_bytes()).hexdigest(), losses, [line["grad_norm"] for line in metrics]), weights

    def whole(self, accumulation, **settings):
        """What a plan of several ranks must equal: one rank that does all micro-batches."""
        key = (accumulation, json.dumps(settings))
        if key not in self.done:
            self.done[key] = self.run(self.compile(1, accumulation, 1, **BF16, **settings), steps=3)[0]
        return self.done[key]

    def report(self, plan):
        return json.loads(self.tools("ds-opt", "report", plan, "--format", "json").stdout)


@pytest.fixture(scope="module")
def bench(tools, exported, text_data, masked_data, tmp_path_factory):
    benches = {}

    def get(name) -> Bench:
        if name not in benches:
            data = (masked_data if name == "bert" else text_data)(SEQ)
            folder = exported(name, "--size", "tiny", "--seq", SEQ)
            benches[name] = Bench(tools, name, folder, data, tmp_path_factory.mktemp(name))
        return benches[name]

    return get


class Rounded(torch.nn.Module):
    """`model` computed in bfloat16 on rounded parameters; its own stay float32 and get the gradients."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, **inputs):
        low = {name: value.bfloat16() for name, value in self.model.named_parameters()}
        return torch.func.functional_call(self.model, low, (), inputs)


@pytest.mark.parametrize("name", MODELS)
def test_losses_are_float32s_and_pytorchs(name, bench):
    one = bench(name)
    (_, wide, _), _ = one.run(one.compile())
    plan = one.compile(**BF16)
    result, weights = one.run(plan)
    assert result[1] != wide, "nothing was rounded"
    numpy.testing.assert_allclose(result[1], wide, rtol=0.02)
    config = {"train_micro_batch_size_per_gpu": MICRO, "gradient_accumulation_steps": 1, "optimizer": ADAMW, "gradient_clipping": 0}
    theirs = train(Rounded(load_model(name, one.folder)), read_samples(one.data), config, STEPS)
    numpy.testing.assert_allclose(result[1], theirs.losses, rtol=0.02)
    numpy.testing.assert_allclose(result[2], theirs.norms, rtol=0.05)
    assert one.run(plan)[0] == result, "two runs differ"
    with safe_open(weights, "np") as file:
        values = [file.get_tensor(key) for key in file.keys()]
    assert {value.dtype for value in values if value.dtype.kind == "f"} == {numpy.dtype("float32")}
    assert any((value.view(numpy.uint32) & 0xFFFF).any() for value in values), "masters are not rounded"


@pytest.mark.parametrize("name, stage, ranks", [("gpt2", 1, 2), ("gpt2", 3, 4), ("llama", 2, 4), ("llama", 3, 2), ("bert", 2, 2), ("bert", 3, 2)])
def test_zero_has_the_bits_of_one_rank(name, stage, ranks, bench):
    one = bench(name)
    zero = {"stage": stage, "reduce_bucket_size": 30000, "stage3_param_persistence_threshold": 100}
    plan = one.compile(ranks, 1, 1, **BF16, zero_optimization=zero)
    assert one.report(plan)["numerics"] == "bit-equal"
    assert one.run(plan, ranks, 3)[0] == one.whole(ranks)


@pytest.mark.parametrize("name, stage", [("llama", 0), ("gpt2", 2), ("llama", 3)])
def test_stages_have_the_bits_of_one(name, stage, bench):
    one = bench(name)
    if stage == 0:
        plan = one.compile(2, 4, 1, **BF16, deepstatic={"pipeline": {"stages": 2}})
        ranks, whole = 2, one.whole(4)
    else:
        plan = one.compile(4, 2, 1, **BF16, deepstatic={"pipeline": {"stages": 2}}, zero_optimization={"stage": stage})
        ranks, whole = 4, one.whole(4)
    got = one.run(plan, ranks, 3)[0]
    if one.report(plan)["numerics"] == "bit-equal":
        assert got == whole
    else:  # a tied embedding: its two gradients meet after each stage has summed its own
        numpy.testing.assert_allclose(got[1], whole[1], rtol=1e-3)


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_recompute_changes_no_bit(name, bench):
    one = bench(name)
    plan = one.compile(1, 4, 1, **BF16, deepstatic={"recompute": "full"})
    assert one.run(plan, 1, 3)[0] == one.whole(4)


def test_what_is_stored_where(bench):
    """Parameters, moments and gradients stay float32; so do what is alive of a gradient before it is added, and sums of rows, among the activations."""
    one = bench("gpt2")
    wide, low = (one.report(one.compile(1, 2, 16, **keys))["ranks_detail"][0]["memory"]["device"] for keys in ({}, BF16))
    for category in ("weights", "optimizer", "gradients"):
        assert low[category] == wide[category]
    # More than half: statistics and losses stay float32, and a result is written only over operands of its own type.
    assert 0.5 * wide["activations"] < low["activations"] < 0.8 * wide["activations"]


def test_the_answer_to_each_key(bench, tools, tmp_path):
    one = bench("gpt2")
    plan = one.compile(bf16={"enabled": True, "check_grad_overflow": True, "immediate_grad_update": True},
                       data_types={"grad_accum_dtype": "fp32"})
    answers = {answer["path"]: answer["status"] for answer in one.report(plan)["config"]}
    assert answers["bf16.enabled"] == "honoured" and answers["bf16.check_grad_overflow"] == "subsumed"
    for key, value in (("bf16.bf16_master_weights_and_grads", True), ("bf16.bf16_optimizer_states", True),
                       ("fp16.enabled", True), ("data_types.grad_accum_dtype", '"bf16"')):
        config = write_config(tmp_path / "c.json", MICRO, 1, ADAMW, **BF16)
        message = tools.refused("ds-opt", "compile", one.folder, "--config", config, "--set", f"{key}={str(value).lower()}", "-o",
                                tmp_path / "m.dsplan")
        assert key in message and "not available" in message
