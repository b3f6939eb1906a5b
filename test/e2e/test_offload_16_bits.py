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
F32, NARROW, CAST, HOST = 7, (9, 10), 2, 7  # of plan.proto


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
                if role.buffers[operands[0].buffer].category == 1:
                    made.append((program.name, role.queues[command.queue].kind == HOST, math.prod(operands[0].shape)))
    return made
