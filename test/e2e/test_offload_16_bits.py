"""Masters and moments in host memory or in files, 16 bits on the device: the bits of one rank, and the bytes that docs/offload.md says.

`make test` takes cases that cover every pair of values, DS_TEST_SCOPE=all all of them.
"""

import itertools
import math
import os

import pytest
from pairwise import covering
from plan_files import read_plan
from sixteen_bits import bench  # noqa: F401

WHOLE = os.environ.get("DS_TEST_SCOPE") == "all"
KEYS = {"bf16": {"bf16": {"enabled": True}}, "fp16": {"fp16": {"enabled": True, "initial_scale_power": 16}}}
CLIPPING = {"gradient_clipping": 0.5}
# Type, ZeRO stage, what lies elsewhere, where, micro-batches, stages of a pipeline.
ALL = [case for case in itertools.product(KEYS, (0, 1, 2, 3), ("optimizer", "all"), ("host", "nvme"), (1, 2), (1, 2))
       if case[1] < 2 or case[5] == 1]
F32, NARROW, HOST, WEIGHTS, PLAN, STEP = 7, (9, 10), 7, 1, 1, 2  # of plan.proto


def away(what, space, folder):
    """Keys for moments, or for moments and parameters, in host memory or in files of a folder."""
    where = {"device": "cpu"} if space == "host" else {"device": "nvme", "nvme_path": str(folder)}
    return {"offload_optimizer": where, **({"offload_param": where} if what == "all" else {})}


@pytest.mark.parametrize("case", ALL if WHOLE else covering(ALL), ids=str)
def test_the_bits_of_one_rank(bench, tmp_path, case):  # noqa: F811
    kind, stage, what, space, accumulation, stages = case
    ranks = stages * (2 if stage else 1)
    one = bench("llama")
    keys = {**KEYS[kind], **CLIPPING, "deepstatic": {"pipeline": {"stages": stages}}}
    zero = {"stage": stage, "reduce_bucket_size": 30000, "stage3_param_persistence_threshold": 100}
    plan = one.compile(ranks, accumulation, 1, **keys, zero_optimization={**zero, **away(what, space, tmp_path)})
    report = one.report(plan)
    assert all(rank["memory"][space]["optimizer"] > 0 for rank in report["ranks_detail"])
    if report["numerics"] == "bit-equal":
        expected = one.whole(ranks // stages * accumulation, **KEYS[kind], **CLIPPING)
    else:  # stages add up their norms
        expected = one.run(one.compile(ranks, accumulation, 1, **keys, zero_optimization=zero), ranks, 3)[0]
    assert one.run(plan, ranks, 3)[0] == expected


def roundings(plan):
    """(program, whether the host makes it, elements) of the roundings of parameters that a run of each program makes, on rank 0."""
    role = read_plan(plan).roles[0]
    made = []
    for program in role.programs:
        for call in program.calls:
            for command in role.routines[call.routine].commands:
                operands = command.kernel.operands
                if command.kernel.kernel != "elementwise" or len(operands) != 2 or operands[0].dtype != F32 or operands[1].dtype not in NARROW:
                    continue
                if role.buffers[operands[0].buffer].category == WEIGHTS:
                    made.append((program.name, role.queues[command.queue].kind == HOST, math.prod(operands[0].shape)))
    return made


def held(plan):
    """Bytes of parameters, and of what is made of them, that stay in device memory for a step or longer, on rank 0."""
    role = read_plan(plan).roles[0]
    return sum(buffer.bytes for buffer in role.buffers if buffer.category == WEIGHTS and buffer.scope in (PLAN, STEP)
               and role.arenas[buffer.arena].space == "device")


def moved(report):
    """Bytes to and from device memory in a step."""
    rank, = report["ranks_detail"]
    return rank["transfer_bytes_per_step"]["back"], rank["transfer_bytes_per_step"]["out"]


def parameters(report):
    """Of the model, from the weights in host memory of one rank."""
    rank, = report["ranks_detail"]
    return rank["memory"]["host"]["weights"] / 4


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("accumulation", [1, 4])
def test_moments_in_host_memory(bench, tmp_path, kind, accumulation):  # noqa: F811
    """The host rounds each parameter once a step, which comes by 2 bytes and stays; its gradient leaves by 4 with each micro-batch."""
    one = bench("llama")
    plan = one.compile(1, accumulation, 1, **KEYS[kind], zero_optimization=away("optimizer", "host", tmp_path))
    report = one.report(plan)
    made = [(by_host, elements) for program, by_host, elements in roundings(plan) if program == "step"]
    assert all(by_host for by_host, _ in made)
    count, rounded = parameters(report), sum(elements for _, elements in made)
    assert 0.9 * count < rounded <= count
    wide = 4 * (count - rounded)  # the embedding, if not looked up there, and scales of norms
    assert held(plan) <= 1.01 * (2 * rounded + wide)
    back, out = moved(report)
    assert back <= 1.05 * (2 * rounded + wide) and out <= 1.05 * 4 * count * accumulation


@pytest.mark.parametrize("kind", KEYS)
def test_all_in_host_memory(bench, tmp_path, kind):  # noqa: F811
    """2 bytes in the forward, 2 in the backward, 4 for the gradient, with everything computed again."""
    one = bench("llama")
    plan = one.compile(1, 1, 1, **KEYS[kind], zero_optimization=away("all", "host", tmp_path), deepstatic={"recompute": "full"})
    report = one.report(plan)
    assert sum(moved(report)) <= 1.05 * 8 * parameters(report)
    assert all(by_host for _, by_host, _ in roundings(plan))


def test_slices_in_host_memory(bench, tmp_path):  # noqa: F811
    """Under ZeRO-3 a rank holds 2/N bytes a parameter for the step, where it gathers for each use."""
    one = bench("llama")
    zero = {"stage": 3, "stage3_param_persistence_threshold": 0, "stage3_max_live_parameters": 0, **away("optimizer", "host", tmp_path)}
    plan = one.compile(2, 2, 1, **KEYS["bf16"], zero_optimization=zero)
    everything = one.report(one.compile(1, 1, 1, **KEYS["bf16"], zero_optimization=away("optimizer", "host", tmp_path)))
    wide = sum(math.prod(operand.shape) for operand in unrounded(plan)) * 4
    assert 0 < held(plan) <= 1.05 * parameters(everything) * 2 / 2 + wide


def unrounded(plan):
    """Slices that come to the device as they are."""
    role = read_plan(plan).roles[0]
    start = {call.routine for program in role.programs if program.name == "step" for call in program.calls}
    copies = [command.copy for routine in start for command in role.routines[routine].commands if command.HasField("copy")]
    return [copy.target for copy in copies if role.buffers[copy.source.buffer].category == WEIGHTS and copy.source.dtype == F32]


def test_what_does_not_fit_is_rounded_more_often(bench):  # noqa: F811
    """Before anything is computed again, and to the same bits."""
    one = bench("llama")
    plans = [one.compile(1, 4, 1, **KEYS["bf16"])]
    arena = one.report(plans[0])["ranks_detail"][0]["memory"]["device"]["arena_bytes"]
    plans += [one.compile(1, 4, 1, "--device-memory", room, **KEYS["bf16"]) for room in (arena, arena - 1)]
    often = [sum(elements for program, _, elements in roundings(plan) if program == "step") for plan in plans]
    assert often[0] == often[1] and 4 * often[0] < often[2] <= 8 * often[0]
    assert one.report(plans[2])["ranks_detail"][0]["memory"]["device"]["arena_bytes"] < arena
    assert one.run(plans[2], 1, 3)[0] == one.run(plans[0], 1, 3)[0]
