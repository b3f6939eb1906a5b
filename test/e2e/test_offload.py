"""Offload: state that does not lie in device memory, and the bits of the plan in which all of it does.

`make test` takes a few combinations, DS_TEST_SCOPE=all all of them.
"""

import hashlib
import itertools
import json
import os

import pytest
from conftest import write_config

WHOLE = os.environ.get("DS_TEST_SCOPE") == "all"
STEPS = 3
# Model: options of the export, samples of a micro-batch. Activations are most of what each needs.
MODELS = {"gpt2": (["--size", "tiny", "--seq", "64", "--dropout", "0.1"], 8), "llama": (["--size", "tiny", "--seq", "64"], 8),
          "bert": (["--size", "tiny", "--seq", "64"], 8), "resnet50": (["--size", "tiny"], 8)}
ALL = [(model, stage, ranks, stages, accumulation)
       for model, stage, ranks, stages, accumulation in itertools.product(MODELS, (0, 1, 2, 3), (1, 2, 4), (1, 2), (1, 2))
       if stages <= ranks and (stage == 0 or ranks > stages) and (stage < 2 or stages == 1)]
SOME = [("gpt2", 0, 1, 1, 1), ("llama", 3, 2, 1, 2), ("bert", 2, 4, 1, 1), ("resnet50", 0, 2, 1, 2), ("gpt2", 1, 4, 2, 2), ("llama", 0, 2, 2, 2)]


def compile_plan(tools, folder, model, micro, case, keys, *more):
    _, stage, ranks, stages, accumulation = case
    name = hashlib.sha256(f"{case} {keys} {more}".encode()).hexdigest()[:8]
    config = write_config(folder / f"{name}.json", micro, accumulation, gradient_clipping=0.5, zero_optimization={"stage": stage},
                          deepstatic={"pipeline": {"stages": stages}}, **keys)
    plan = folder / f"{name}.dsplan"
    tools("ds-opt", "compile", model, "--config", config, "--ranks", ranks, "-o", plan, *more)
    return plan, json.loads(tools("ds-opt", "report", plan, "--format", "json").stdout)


def arena(report, space="device"):
    return max(rank["memory"].get(space, {}).get("arena_bytes", 0) for rank in report["ranks_detail"])


def train(tools, plan, data, ranks):
    out = plan.with_suffix(".safetensors")
    metrics, summary = tools.train(plan, data, STEPS, "-n", ranks, "--threads", 1, "--export", out)
    measured = max(rank["device_bytes"] for rank in summary["ranks"])
    return (hashlib.sha256(out.read_bytes()).hexdigest(), [line["loss"] for line in metrics]), measured


@pytest.mark.parametrize("case", ALL if WHOLE else SOME, ids=str)
def test_activations_in_host_memory(tools, tmp_path, exported, text_data, masked_data, case):
    options, micro = MODELS[case[0]]
    model = exported(case[0], *options)
    if case[0] == "resnet50":
        data = tmp_path / "images.safetensors"
        tools("prepare_data.py", "images", "--count", 32, "--size", 64, "--out", data)
    else:
        data = (masked_data if case[0] == "bert" else text_data)(64)
    plain, before = compile_plan(tools, tmp_path, model, micro, case, {})
    plan, after = compile_plan(tools, tmp_path, model, micro, case, {"activation_checkpointing": {"cpu_checkpointing": True}})
    assert arena(before, "host") == 0 < arena(after, "host")
    # Of the tiny ResNet half the arena is the workspace of the last convolution's gradient, when no activation is left.
    assert arena(after) <= arena(before) if case[0] == "resnet50" else arena(after) < arena(before)
    expected, _ = train(tools, plain, data, case[2])
    got, measured = train(tools, plan, data, case[2])
    assert got == expected
    assert measured <= arena(after)
