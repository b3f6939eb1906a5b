"""Plans without one of the passes that only make them better: the same losses, and the same bits where the pass says so."""

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
    "ds-order-for-memory": ("gpt2", None),
}
SAME_BITS = ("ds-concat-pads", "ds-elide-accumulation", "ds-repeat-elementwise", "ds-fuse-elementwise",
             "ds-order-for-memory")


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


def test_a_needed_pass_is_refused(whole, tools):
    folder, config, _, _, _ = whole("gpt2")
    message = tools.refused("ds-opt", "compile", folder, "--config", config, "--without", "ds-differentiate")
    assert "--without ds-differentiate" in message and "ds-fuse-elementwise" in message
