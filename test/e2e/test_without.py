"""Plans without one of the passes that only make them better: the same losses, and the same bits where the pass says so."""

import json

import numpy
import pytest
from conftest import write_config

SEQ, STEPS = 64, 3
# What a model's default export must lose without the pass, or gain: a word of the plan.
PASSES = {
    "ds-fuse-bias": ("bert", None),
    "ds-regroup-attention": ("llama", 'kernel "attention"'),
    "ds-regroup-rms-norm": ("llama", 'kernel "rms_norm"'),
    "ds-concat-pads": ("gpt2", None),
    "ds-elide-accumulation": ("gpt2", None),
    "ds-repeat-elementwise": ("gpt2", None),
    "ds-fuse-elementwise": ("llama", None),
    "ds-elide-copies": ("gpt2", None),
    "ds-reuse-dying-operands": ("gpt2", None),
    "ds-order-for-memory": ("gpt2", None),
}
SAME_BITS = ("ds-concat-pads", "ds-elide-accumulation", "ds-repeat-elementwise", "ds-fuse-elementwise", "ds-elide-copies",
             "ds-reuse-dying-operands", "ds-order-for-memory")


def losses(tools, data, plan):
    metrics, _ = tools.train(plan, data, STEPS, "--threads", 2)
    return [(line["loss"], line["grad_norm"]) for line in metrics]


@pytest.fixture(scope="module")
def whole(tools, exported, text_data, masked_data, tmp_path_factory):
    """whole(name) -> (folder, config, data, the plan as text, losses) with every pass."""
    known = {}

    def build(name):
        if name not in known:
            folder, tmp_path = exported(name, "--size", "tiny", "--seq", SEQ), tmp_path_factory.mktemp("whole")
            config = write_config(tmp_path / "ds_config.json")
            tools("ds-opt", "compile", folder, "--config", config, "-o", tmp_path / "m.dsplan")
            text = tools("ds-opt", "compile", folder, "--config", config, "--emit", "plan").stdout
            data = (masked_data if name == "bert" else text_data)(SEQ)
            known[name] = folder, config, data, text, losses(tools, data, tmp_path / "m.dsplan")
        return known[name]

    return build


@pytest.mark.parametrize("left_out", PASSES)
def test_losses_are_the_same(left_out, whole, tools, tmp_path):
    name, word = PASSES[left_out]
    folder, config, data, text, expected = whole(name)
    arguments = ["ds-opt", "compile", folder, "--config", config, "--without", left_out]
    other = tools(*arguments, "--emit", "plan").stdout
    assert other != text
    if word:
        assert word in text and word not in other
    tools(*arguments, "-o", tmp_path / "m.dsplan")
    ours = losses(tools, data, tmp_path / "m.dsplan")
    if left_out in SAME_BITS:
        assert ours == expected
    numpy.testing.assert_allclose(ours, expected, rtol=1e-5)


def test_all_left_out(whole, tools, tmp_path):
    folder, config, data, _, expected = whole("llama")
    # Importing these models leaves no transpose to fold, so that pass is only here.
    options = [word for left_out in ["ds-fold-transposes", *PASSES] for word in ("--without", left_out)]
    tools("ds-opt", "compile", folder, "--config", config, *options, "-o", tmp_path / "m.dsplan")
    numpy.testing.assert_allclose(losses(tools, data, tmp_path / "m.dsplan"), expected, rtol=1e-5)


# On one rank; where gathers and reductions run beside compute; where messages do, with values that several calls read.
STRATEGIES = {
    "one": ("gpt2", 1, 1, {}),
    "zero3": ("llama", 4, 2, {"zero_optimization": {"stage": 3, "overlap_comm": True, "reduce_bucket_size": 3000,
                                                    "stage3_param_persistence_threshold": 10}}),
    "pipeline": ("gpt2", 2, 4, {"deepstatic": {"pipeline": {"stages": 2, "schedule": "1f1b"}}}),
}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_lowering_without_its_optional_steps(strategy, tools, exported, text_data, tmp_path):
    """The checker proves each plan, and weights end with the same bits; only the bytes differ."""
    name, ranks, accumulation, more = STRATEGIES[strategy]
    folder, data = exported(name, "--size", "tiny", "--seq", SEQ), text_data(SEQ)
    config = write_config(tmp_path / "ds_config.json", 1, accumulation, gradient_clipping=0.5, **more)
    weights, arenas = [], []
    for left_out in ((), ("ds-elide-copies",), ("ds-reuse-dying-operands",), ("ds-elide-copies", "ds-reuse-dying-operands")):
        plan = tmp_path / f"{len(weights)}.dsplan"
        tools("ds-opt", "compile", folder, "--config", config, "--ranks", ranks, "-o", plan,
              *(word for one in left_out for word in ("--without", one)))
        tools("ds-opt", "verify", plan)
        tools.train(plan, data, STEPS, "-n", ranks, "--threads", 2, "--export", plan.with_suffix(".safetensors"))
        weights.append(plan.with_suffix(".safetensors").read_bytes())
        report = json.loads(tools("ds-opt", "report", plan, "--format", "json").stdout)
        arenas.append(max(rank["memory"]["device"]["arena_bytes"] for rank in report["ranks_detail"]))
    assert all(other == weights[0] for other in weights[1:])
    # What reuse is for. Copies cost time; where the values that they spare lie well or badly, arenas differ either way.
    assert arenas[0] <= arenas[2] and arenas[1] <= arenas[3], arenas
    assert name != "gpt2" or arenas[0] < arenas[2] or arenas[1] < arenas[3], arenas


def test_a_needed_pass_is_refused(whole, tools):
    folder, config, _, _, _ = whole("gpt2")
    message = tools.refused("ds-opt", "compile", folder, "--config", config, "--without", "ds-differentiate")
    assert "--without ds-differentiate" in message and "ds-fuse-elementwise" in message
