"""Layers cut over the ranks of axis tensor, against one rank: one SGD step with clipping, each parameter's gradient and the norm (AdamW
would hide a gradient that is a factor too large), and the losses of AdamW over ten steps.
"""

import json
import re

import numpy
import pytest
from plan_files import read_plan
from safetensors.numpy import load_file, save_file
from transformers import LlamaConfig
from zero_trainer import exporter

VOCABULARY, SEQUENCE, SAMPLES = 40, 8, 32
SETTINGS = {
    "llama": dict(hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4,
                  max_position_embeddings=SEQUENCE, vocab_size=VOCABULARY),
    "gpt2": dict(n_layer=2, n_embd=16, n_head=4, n_positions=SEQUENCE, vocab_size=VOCABULARY),
}
SGD = {"type": "SGD", "params": {"lr": 1000}}  # a step leaves nothing of what it began with, so weights are gradients
ADAMW = {"type": "AdamW", "params": {"lr": 1e-2}}


class Trainer:
    def __init__(self, tools, folder):
        self.tools, self.folder, self.models = tools, folder, {}
        generator = numpy.random.default_rng(0)
        tokens = generator.integers(0, VOCABULARY, (SAMPLES, SEQUENCE), dtype=numpy.int64)
        save_file({"input_ids": tokens, "labels": tokens, "attention_mask": numpy.ones_like(tokens)}, folder / "data.safetensors")

    def model(self, name):
        if name not in self.models:
            folder = self.models[name] = self.folder / name
            settings = [f"--set={key}={json.dumps(value)}" for key, value in SETTINGS[name].items()]
            assert exporter.main([name.split()[0], "--size=tiny", f"--seq={SEQUENCE}", *settings, f"--out={folder}"]) == 0
        return self.models[name]

    def compile(self, name, optimizer, ranks=1, tensor=1, accumulation=1, code=0, **keys):
        """A plan, or with another code what ds-opt says."""
        config = self.folder / "config.json"
        config.write_text(json.dumps({
            "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": accumulation, "gradient_clipping": 0.5,
            "optimizer": optimizer, "deepstatic": {"tensor_parallel": {"size": tensor}}, **keys}))
        plan = self.folder / f"{name}-{ranks}-{tensor}.dsplan"
        done = self.tools("ds-opt", "compile", self.model(name), "--config", config, "--ranks", ranks, "-o", plan, code=code)
        return done.stderr if code else plan

    def run(self, plan, ranks, steps):
        """(losses, norms, weights)."""
        out = plan.with_suffix(".safetensors")
        metrics, _ = self.tools.train(plan, self.folder / "data.safetensors", steps, "-n", ranks, "--threads", 1, "--export", out)
        return [line["loss"] for line in metrics], [line["grad_norm"] for line in metrics], load_file(out)


@pytest.fixture(scope="module")
def trainer(tools, tmp_path_factory):
    return Trainer(tools, tmp_path_factory.mktemp("tensor"))


LAYOUTS = [dict(ranks=2, tensor=2), dict(ranks=4, tensor=4), dict(ranks=4, tensor=2),
           *[dict(ranks=4, tensor=2, zero_optimization={"stage": stage, "reduce_bucket_size": 3000}) for stage in (1, 2, 3)]]


@pytest.mark.parametrize("model", SETTINGS)
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: "-".join(str(value) for value in layout.values()))
def test_one_sgd_step(trainer, model, layout):
    data = layout["ranks"] // layout["tensor"]
    plan = trainer.compile(model, SGD, **layout)
    cut = [variable for variable in read_plan(plan).variables if variable.placement.axes and variable.kind == 1]
    assert cut, "some parameters are cut"
    _, norms, ours = trainer.run(plan, layout["ranks"], 1)
    _, expected, whole = trainer.run(trainer.compile(model, SGD, accumulation=data), 1, 1)
    assert norms == pytest.approx(expected, rel=1e-6)
    assert ours.keys() == whole.keys()
    for name, value in whole.items():
        assert numpy.abs(ours[name] - value).max() <= 1e-6 * numpy.abs(value).max(), name


@pytest.mark.parametrize("model", SETTINGS)
def test_losses_of_adamw(trainer, model):
    losses = trainer.run(trainer.compile(model, ADAMW, ranks=2, tensor=2), 2, 10)[0]
    assert losses == pytest.approx(trainer.run(trainer.compile(model, ADAMW), 1, 10)[0], rel=1e-5)


def cuts(plan):
    """{parameter: the dimension along which it is cut, and how many runs}."""
    return {variable.name: (shard.dimension, len(shard.blocks)) for variable in read_plan(plan).variables if variable.kind == 1
            for shard in [axis.shard for axis in variable.placement.axes]}


def test_cuts_are_those_of_tp_plan(trainer):
    """What transformers says of Llama, whose linear layers have weights [out, in]."""
    dimension = {"colwise": 0, "rowwise": 1}
    ours = cuts(trainer.compile("llama", ADAMW, ranks=2, tensor=2))
    for pattern, style in LlamaConfig().base_model_tp_plan.items():
        assert ours[f"model.{pattern.replace('*', '1')}.weight"] == (dimension[style], 1), pattern


def test_a_packed_weight_is_cut_part_by_part(trainer):
    ours = cuts(trainer.compile("gpt2", ADAMW, ranks=2, tensor=2))
    assert ours["transformer.h.0.attn.c_attn.weight"] == (1, 3)
    assert ours["transformer.h.0.attn.c_attn.bias"] == (0, 3)


def test_a_layer_sums_four_times(trainer):
    """Twice forward and twice backward, one sum for the three products of attention's input: 8 U a layer (docs/tensor.md)."""
    def activations(plan, layers):
        value = 2 * SEQUENCE * 16 * 4  # bytes of one sum
        return [part for routine in read_plan(plan).roles[0].routines if routine.name in ("forward", "backward")
                for command in routine.commands if command.collective.kind == 3 for part in command.collective.parts
                if numpy.prod(part.source.shape) * 4 == value]
    counts = []
    for layers in (1, 3):
        SETTINGS[f"llama of {layers}"] = {**SETTINGS["llama"], "num_hidden_layers": layers}
        counts.append(len(activations(trainer.compile(f"llama of {layers}", ADAMW, ranks=2, tensor=2), layers)))
        del SETTINGS[f"llama of {layers}"]
    assert counts[1] - counts[0] == 2 * 4


@pytest.mark.parametrize("tensor", [1, 4])
def test_resumes_on_other_tensor_ranks(trainer, tensor):
    plan, folder = trainer.compile("llama", ADAMW, ranks=2, tensor=2), trainer.folder / f"checkpoints-{tensor}"
    trainer.tools.train(plan, trainer.folder / "data.safetensors", 3, "-n", 2, "--threads", 1, "--save", folder)
    expected = trainer.run(plan, 2, 6)[0]
    other = trainer.compile("llama", ADAMW, ranks=tensor, tensor=tensor)
    metrics, _ = trainer.tools.train(other, trainer.folder / "data.safetensors", 6, "-n", tensor, "--threads", 1, "--resume", folder)
    assert [line["loss"] for line in metrics] == pytest.approx(expected[3:], rel=1e-5)


def test_refusals(trainer):
    assert re.search(r"deepstatic.tensor_parallel.size is 3; it must divide --ranks, which is 4: 2 and 4 do",
                     trainer.compile("gpt2", ADAMW, ranks=4, tensor=3, code=1))
    assert "deepstatic.pipeline cuts the model into stages, but deepstatic.tensor_parallel.size is 2" in trainer.compile(
        "gpt2", ADAMW, ranks=4, tensor=2, code=1, pipeline={"stages": 2})
    assert "what such ranks hold does not leave device memory yet" in trainer.compile(
        "gpt2", ADAMW, ranks=2, tensor=2, code=1, zero_optimization={"stage": 1, "offload_optimizer": {"device": "cpu"}})


def test_bisect_refuses(trainer):
    """Ranks write terms of values."""
    plan = trainer.compile("llama", ADAMW, ranks=2, tensor=2)
    assert "is a plan for 2 tensor ranks, and bisect compares plans whose ranks have whole values" in trainer.tools.refused(
        "ds-run", "--bisect", plan, plan, "--data", trainer.folder / "data.safetensors", "--steps", 1)
