"""deepstatic.fp8: losses follow bf16's, every strategy has the bits of one rank, and device cuda has the CPU's losses."""

import hashlib
import json
import os
import subprocess
import sys

import numpy
import pytest
from conftest import FAKE_CUDA, REPOSITORY, write_config
from plan_files import read_plan, write_plan
from sixteen_bits import ADAMW, MICRO, bench  # noqa: F401

BF16 = {"bf16": {"enabled": True}}
STEPS = 50
ON_CUDA = STEPS if os.environ.get("DS_TEST_SCOPE") == "all" else 10  # the stand-ins are slow


KINDS = ("tensor", "block")  # what has a scale of its own


def fp8(kind="tensor", **own):
    return {**BF16, "deepstatic": {"fp8": kind, **own}}


def kernels(plan):
    """Of each rank, how many commands run each kernel."""
    return [[command.kernel.kernel for routine in role.routines for command in routine.commands if command.HasField("kernel")]
            for role in read_plan(plan).roles]


@pytest.fixture(scope="module")
def losses(bench):  # noqa: F811
    one = bench("gpt2")
    return {name: one.run(one.compile(**keys), steps=STEPS)[0] for name, keys in (("bf16", BF16), *((kind, fp8(kind)) for kind in KINDS))}


@pytest.mark.parametrize("kind", KINDS)
def test_losses_are_bf16s(kind, losses, bench):  # noqa: F811
    (_, narrow, _), (digest, low, norms) = losses["bf16"], losses[kind]
    assert low != narrow, "nothing was rounded"
    numpy.testing.assert_allclose(low, narrow, rtol=0.02)
    assert low[-1] < 0.8 * low[0]
    one = bench("gpt2")
    assert one.run(one.compile(**fp8(kind)), steps=STEPS)[0] == (digest, low, norms), "two runs differ"


def test_blocks_round_otherwise_than_tensors(losses):
    assert losses["tensor"][1] != losses["block"][1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name, layers", [("gpt2", 4 * 4), ("llama", 4 * 7)])
def test_linear_layers_multiply_8_bits_and_logits_do_not(name, layers, kind, bench):  # noqa: F811
    """y, dx and dw of each, and y of the evaluation."""
    plan = bench(name).compile(**fp8(kind))
    (names,) = kernels(plan)
    assert names.count("fp8_matmul") == 4 * layers and names.count("quantize_fp8") == 8 * layers
    assert names.count("matmul") == 4, "logits, their gradients, and logits of the evaluation"
    (without,) = kernels(bench(name).compile(**BF16))
    assert not {"fp8_matmul", "quantize_fp8"} & set(without)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stage, accumulation", [(0, 1), (1, 1), (2, 2), (3, 2)])
def test_zero_has_the_bits_of_one_rank(stage, accumulation, kind, bench):  # noqa: F811
    """Stages 0 and 1 add up a rank's own micro-batches first, with or without FP8: in another order, if there are several."""
    one = bench("gpt2")
    zero = {"stage": stage, "reduce_bucket_size": 30000, "stage3_param_persistence_threshold": 100}
    plan = one.compile(2, accumulation, 1, **fp8(kind), zero_optimization=zero)
    assert one.report(plan)["numerics"] == "bit-equal"
    assert one.run(plan, 2, 3)[0] == one.whole(2 * accumulation, **fp8(kind))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("own", [{"recompute": "full"}, {"pipeline": {"stages": 2}}], ids=["recompute", "stages"])
def test_other_strategies_have_its_bits_too(own, kind, bench):  # noqa: F811
    one, ranks = bench("llama"), 2 if "pipeline" in own else 1
    assert one.run(one.compile(ranks, 4, 1, **fp8(kind, **own)), ranks, 3)[0] == one.whole(4, **fp8(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_device_cuda_has_the_cpus_losses(kind, losses, bench, tmp_path):  # noqa: F811
    """cuBLASLt's stand-in multiplies; DS_CUDA_STRICT=1 makes a kernel of our own an error."""
    one, metrics = bench("gpt2"), tmp_path / "metrics.jsonl"
    plan = one.compile(1, 1, MICRO, "--machine", "h100x8", **fp8(kind))
    (names,) = kernels(plan)
    assert names.count("fp8_matmul") == 4 * 4 * 4
    subprocess.run([FAKE_CUDA / "ds-run", plan, "--data", one.data, "--steps", str(ON_CUDA), "--metrics", metrics, "--quiet"], check=True, timeout=600,
                   env={**os.environ, "DS_CUDA_STRICT": "1"})
    have = [line["loss"] for line in map(json.loads, metrics.read_text().splitlines()) if "loss" in line]
    numpy.testing.assert_allclose(have, losses[kind][1][:ON_CUDA], rtol=2e-3)


@pytest.mark.parametrize("kind, other", [("tensor", None), ("tensor", "block"), ("block", "tensor")])
def test_verify_and_audit_follow_it(kind, other, bench, tools, tmp_path):  # noqa: F811
    """And refuse it beside a configuration that asks for another one."""
    one = bench("gpt2")
    plan = one.compile(2, 1, 1, **fp8(kind), zero_optimization={"stage": 3})
    config = write_config(tmp_path / "c.json", 1, 1, ADAMW, **fp8(kind), zero_optimization={"stage": 3})
    model = one.folder / "model.onnx"
    assert "linear layers multiply 8 bits, as deepstatic.fp8 asks" in tools("ds-opt", "verify", plan, "--model", model, "--config", config).stdout
    without = write_config(tmp_path / "without.json", 1, 1, ADAMW, **(fp8(other) if other else BF16), zero_optimization={"stage": 3})
    changed = read_plan(plan)
    changed.sources.configuration_sha256 = hashlib.sha256(without.read_bytes()).digest()
    refused = tools.refused("ds-opt", "verify", write_plan(tmp_path / "changed.dsplan", changed), "--model", model, "--config", without)
    assert f'the plan multiplies numbers of 8 bits with a scale for each {kind}, but deepstatic.fp8 is "{other or "off"}"' in refused
    done = subprocess.run([sys.executable, REPOSITORY / "tools/ds-audit/ds-audit", plan], capture_output=True, text=True, timeout=600)
    assert done.stdout.startswith("audited: "), done.stderr


def every(plan, kernel):
    """Commands of it, in their order."""
    commands = (command for routine in plan.roles[0].routines for command in routine.commands)
    return (command.kernel for command in commands if command.kernel.kernel == kernel)


def first(plan, kernel):
    return next(every(plan, kernel))


def other_format(plan):
    next(attribute for attribute in first(plan, "quantize_fp8").attributes if attribute.name == "format").text = "e5m2"


def exchanged_scales(plan):
    """Those of a product whose factors have scales of one shape."""
    product = next(call for call in every(plan, "fp8_matmul") if call.operands[1].shape == call.operands[3].shape)
    a, b = product.operands[1], product.operands[3]
    a.buffer, b.buffer, a.byte_offset, b.byte_offset = b.buffer, a.buffer, b.byte_offset, a.byte_offset


def other_block(plan):
    next(attribute for attribute in first(plan, "quantize_fp8").attributes if attribute.name == "block").text = "128x128"


@pytest.mark.parametrize("kind, edit, sentence", [
    ("tensor", other_format, "attribute format is not that of"), ("tensor", exchanged_scales, "operand 1 holds"),
    ("block", other_format, "attribute format is not that of"), ("block", other_block, "operand 2 (scale) must have shape"),
    ("block", exchanged_scales, "operand 1 holds")])
def test_wrong_plans_are_refused(kind, edit, sentence, bench, tools, tmp_path):  # noqa: F811
    plan = read_plan(bench("gpt2").compile(**fp8(kind)))
    edit(plan)
    assert sentence in tools.refused("ds-opt", "verify", write_plan(tmp_path / "wrong.dsplan", plan))


@pytest.mark.parametrize("settings, options, sentence", [
    ({"deepstatic": {"fp8": "tensor"}}, (), "what such products read and write is bfloat16, and bf16.enabled is false"),
    ({**BF16, "deepstatic": {"fp8": "row"}}, (), 'deepstatic.fp8 is "row"'),
    (fp8("block"), ("--machine", "a100-80gx8"), "GPUs multiply numbers of 8 bits from compute capability 8.9 on, and machine a100-80gx8 has isa sm_80"),
    (fp8(), ("--machine", "a100-80gx8"), "GPUs multiply numbers of 8 bits from compute capability 8.9 on, and machine a100-80gx8 has isa sm_80")])
def test_what_is_refused(settings, options, sentence, bench, tools, tmp_path):  # noqa: F811
    config = write_config(tmp_path / "c.json", MICRO, 1, ADAMW, **settings)
    assert sentence in tools.refused("ds-opt", "compile", bench("gpt2").folder, "--config", config, "-o", tmp_path / "m.dsplan", *options)


def test_blocks_are_hoppers(bench, tools, tmp_path):  # noqa: F811
    hopper = (REPOSITORY / "models/machines/h100x8.json").read_text()
    (tmp_path / "newer.json").write_text(hopper.replace('"isa": "sm_90"', '"isa": "sm_100"'))
    for kind, compiles in (("tensor", True), ("block", False)):
        config = write_config(tmp_path / f"{kind}.json", MICRO, 1, ADAMW, **fp8(kind))
        command = "ds-opt", "compile", bench("gpt2").folder, "--config", config, "-o", tmp_path / "m.dsplan", "--machine", tmp_path / "newer.json"
        if compiles:
            tools(*command)
        else:
            assert "only GPUs of compute capability 9.0 have scales of such blocks, and machine" in tools.refused(*command)
