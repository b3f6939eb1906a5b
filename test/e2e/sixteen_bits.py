"""What the tests of bf16 and fp16 share: models run by plans of several ranks, and by PyTorch in 16 bits.

PyTorch's side is what DeepSpeed does: the model's forward in 16 bits on rounded copies of float32 parameters, which the optimizer
updates. (torch.autocast would leave norms and the residual stream float32.)
"""

import hashlib
import json
import math
import os
from collections import Counter

import numpy
import pytest
import torch
from conftest import write_config
from plan_files import read_plan
from safetensors import safe_open
from safetensors.numpy import save_file
from test_parity import read_samples
from torch_reference import load_model, train

SEQ, MICRO, STEPS = 32, 4, 10
MODELS = ("gpt2", "llama", "bert")
ADAMW = {"type": "AdamW", "params": {"lr": 1e-3, "weight_decay": 0.1}}
ALL_GATHER, F32, BF16, F16 = 1, 7, 9, 10  # of plan.proto
BYTES = {F32: 4, BF16: 2, F16: 2}
# model, ZeRO stage, ranks
ZEROS = [("gpt2", 1, 2), ("gpt2", 3, 4), ("llama", 2, 4), ("llama", 3, 2), ("bert", 2, 2), ("bert", 3, 2)]


class Bench:
    """One model, compiled and run in several ways; the data is the same."""

    def __init__(self, tools, name, folder, data, out):
        self.tools, self.name, self.folder, self.data, self.out = tools, name, folder, data, out
        self.done = {}

    def compile(self, ranks=1, accumulation=1, micro=MICRO, *options, **settings):
        key = hashlib.sha256(f"{ranks} {accumulation} {micro} {options} {settings}".encode()).hexdigest()[:8]
        config = write_config(self.out / f"{key}.json", micro, accumulation, ADAMW, **settings)
        plan = self.out / f"{key}.dsplan"
        self.tools("ds-opt", "compile", self.folder, "--config", config, "--ranks", ranks, "-o", plan, *options)
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
            self.done[key] = self.run(self.compile(1, accumulation, 1, **settings), steps=3)[0]
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
    """`model` computed in `dtype` on rounded parameters; its own stay float32 and get the gradients."""

    def __init__(self, model, dtype):
        super().__init__()
        self.model, self.dtype = model, dtype

    def forward(self, **inputs):
        low = {name: value.to(self.dtype) for name, value in self.model.named_parameters()}
        return torch.func.functional_call(self.model, low, (), inputs)


def require_losses(one, keys, dtype):
    """Within 2 % of float32's and of PyTorch's in 16 bits; the same bits twice; masters that are not rounded."""
    (_, wide, _), _ = one.run(one.compile())
    plan = one.compile(**keys)
    result, weights = one.run(plan)
    assert result[1] != wide, "nothing was rounded"
    numpy.testing.assert_allclose(result[1], wide, rtol=0.02)
    config = {"train_micro_batch_size_per_gpu": MICRO, "gradient_accumulation_steps": 1, "optimizer": ADAMW, "gradient_clipping": 0}
    theirs = train(Rounded(load_model(one.name, one.folder), dtype), read_samples(one.data), config, STEPS)
    numpy.testing.assert_allclose(result[1], theirs.losses, rtol=0.02)
    numpy.testing.assert_allclose(result[2], theirs.norms, rtol=0.05)
    assert one.run(plan)[0] == result, "two runs differ"
    with safe_open(weights, "np") as file:
        values = [file.get_tensor(key) for key in file.keys()]
    assert {value.dtype for value in values if value.dtype.kind == "f"} == {numpy.dtype("float32")}
    # Of 24 significant bits, those that neither type has.
    assert any((value.view(numpy.uint32) & 0x1FFF).any() for value in values), "masters are rounded"


def require_zero(one, stage, ranks, keys):
    zero = {"stage": stage, "reduce_bucket_size": 30000, "stage3_param_persistence_threshold": 100}
    plan = one.compile(ranks, 1, 1, **keys, zero_optimization=zero)
    assert one.report(plan)["numerics"] == "bit-equal"
    assert one.run(plan, ranks, 3)[0] == one.whole(ranks, **keys)


def require_stages(one, stage, keys):
    ranks, accumulation = (2, 4) if stage == 0 else (4, 2)
    plan = one.compile(ranks, accumulation, 1, **keys, deepstatic={"pipeline": {"stages": 2}}, zero_optimization={"stage": stage})
    whole, got = one.whole(4, **keys), one.run(plan, ranks, 3)[0]
    if one.report(plan)["numerics"] == "bit-equal":
        assert got == whole
    else:  # a tied embedding: its two gradients meet after each stage has summed its own
        numpy.testing.assert_allclose(got[1], whole[1], rtol=1e-3)


def gathered_bytes(plan):
    """By element type: bytes that one rank has gathered of parameters after a step."""
    role, = read_plan(plan).roles
    total = Counter()
    step, = [program for program in role.programs if program.name == "step"]
    for call in step.calls:
        for command in role.routines[call.routine].commands:
            if command.collective.kind == ALL_GATHER:
                for part in command.collective.parts:
                    total[part.target.dtype] += math.prod(part.target.shape) * BYTES.get(part.target.dtype, 8)
    return total


def require_narrow_gathers(one, keys, dtype):
    """ZeRO-3 gathers what is only used in 16 bits as that: half the bytes, the same bits. Embeddings and scales of norms stay wide."""
    zero = {"stage": 3, "stage3_param_persistence_threshold": 0, "overlap_comm": True}
    for more in ({}, {"stage3_max_live_parameters": 0}):
        plans = [one.compile(2, 2, 1, *options, **keys, zero_optimization={**zero, **more}) for options in ((), ("--without", "ds-narrow-gathers"))]
        narrow, wide = map(gathered_bytes, plans)
        assert narrow[dtype] > narrow[F32] / 8 and wide[dtype] == 0
        assert narrow[F32] + 2 * narrow[dtype] == wide[F32]
        assert one.run(plans[0], 2, steps=3)[0] == one.run(plans[1], 2, steps=3)[0]


class Autocast(torch.nn.Module):
    """`model` as torch.autocast computes it in 16 bits. The loss's gradient is multiplied by a scale, and its parameters' are divided by it, as
    GradScaler does for float16."""

    SCALE = 2.0**12

    def __init__(self, model, dtype):
        super().__init__()
        self.model, self.dtype = model, dtype
        for parameter in model.parameters():
            parameter.register_hook(lambda gradient: gradient / self.SCALE)

    def forward(self, **inputs):
        with torch.autocast("cpu", self.dtype):
            return Scaled.apply(self.model(**inputs).loss)


class Scaled(torch.autograd.Function):
    """The identity; its gradient is scaled."""

    @staticmethod
    def forward(context, loss):
        return loss

    @staticmethod
    def backward(context, gradient):
        return gradient * Autocast.SCALE


def require_autocast(tools, name, folder, text, out, keys, dtype, rate):
    """300 steps on a licence's text have torch.autocast's losses, until the loss has halved."""
    micro, steps = 8, 300
    samples = {key: value.repeat(3, 1)[:micro * steps].contiguous() for key, value in read_samples(text).items()}
    assert len(samples["input_ids"]) == micro * steps
    save_file({key: value.numpy() for key, value in samples.items()}, out / "text.safetensors")
    schedule = {"type": "WarmupLR", "params": {"warmup_type": "linear", "warmup_num_steps": 50, "warmup_max_lr": rate}}
    config = write_config(out / "config.json", micro, **keys, gradient_clipping=1.0, scheduler=schedule)
    tools("ds-opt", "compile", folder, "--config", config, "-o", out / "m.dsplan")
    lines, _ = tools.train(out / "m.dsplan", out / "text.safetensors", steps)
    theirs = train(Autocast(load_model(name, folder), dtype), samples, json.loads(config.read_text()), steps)
    ours = numpy.array([line["loss"] for line in lines])
    assert not any(line["skipped"] for line in lines)
    assert numpy.mean(ours[-10:]) < ours[0] / 2, "the loss has not halved"
    numpy.testing.assert_allclose(ours, theirs.losses, rtol=0.02)
