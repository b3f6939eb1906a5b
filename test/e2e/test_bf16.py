"""bf16.enabled: losses follow float32's and PyTorch's in bfloat16; every strategy has the bits of one rank; state is float32."""

import os

import pytest
import sixteen_bits
import torch
from conftest import write_config
from sixteen_bits import (ADAMW, MICRO, MODELS, SEQ, ZEROS, bench, require_autocast, require_losses, require_narrow_gathers,  # noqa: F401
                          require_stages, require_zero)

BF16 = {"bf16": {"enabled": True}}
WHOLE = os.environ.get("DS_TEST_SCOPE") == "all"


@pytest.mark.parametrize("name", MODELS)
def test_losses_are_float32s_and_pytorchs(name, bench):  # noqa: F811
    require_losses(bench(name), BF16, torch.bfloat16)


@pytest.mark.parametrize("name, rate", [("gpt2", 8e-4), *([("llama", 5e-4)] if WHOLE else [])])
def test_300_steps_are_autocasts(tools, exported, text_data, tmp_path, name, rate):
    require_autocast(tools, name, exported(name, "--size", "tiny", "--seq", SEQ), text_data(SEQ), tmp_path, BF16, torch.bfloat16, rate)


@pytest.mark.parametrize("name, stage, ranks", ZEROS)
def test_zero_has_the_bits_of_one_rank(name, stage, ranks, bench):  # noqa: F811
    require_zero(bench(name), stage, ranks, BF16)


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_parameters_are_gathered_in_16_bits(name, bench):  # noqa: F811
    require_narrow_gathers(bench(name), BF16, sixteen_bits.BF16)


@pytest.mark.parametrize("name, stage", [("llama", 0), ("gpt2", 2), ("llama", 3)])
def test_stages_have_the_bits_of_one(name, stage, bench):  # noqa: F811
    require_stages(bench(name), stage, BF16)


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_recompute_changes_no_bit(name, bench):  # noqa: F811
    one = bench(name)
    plan = one.compile(1, 4, 1, **BF16, deepstatic={"recompute": "full"})
    assert one.run(plan, 1, 3)[0] == one.whole(4, **BF16)


def test_what_is_stored_where(bench):  # noqa: F811
    """Parameters, moments and gradients stay float32; so do gradients not yet added, and sums of rows, among the activations. What products read
    of parameters is rounded once for both micro-batches, and lies beside them."""
    one = bench("gpt2")
    wide, low = (one.report(one.compile(1, 2, 16, **keys))["ranks_detail"][0]["memory"]["device"] for keys in ({}, BF16))
    for category in ("optimizer", "gradients"):
        assert low[category] == wide[category]
    assert 1.4 * wide["weights"] < low["weights"] < 1.5 * wide["weights"]
    # More than half: statistics and losses stay float32, and a result is written only over operands of its own type.
    assert 0.5 * wide["activations"] < low["activations"] < 0.8 * wide["activations"]


def test_the_answer_to_each_key(bench, tools, tmp_path):  # noqa: F811
    one = bench("gpt2")
    plan = one.compile(bf16={"enabled": True, "check_grad_overflow": True, "immediate_grad_update": True},
                       data_types={"grad_accum_dtype": "fp32"})
    answers = {answer["path"]: answer["status"] for answer in one.report(plan)["config"]}
    assert answers["bf16.enabled"] == "honoured" and answers["bf16.check_grad_overflow"] == "subsumed"
