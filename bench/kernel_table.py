"""Time of a training step by kernel, each beside the limit of the machine that it runs into.

A product's limit is the FMA peak, every other kernel's the bandwidth of a copy; both are measured in the same run. Bytes are
what the plan's operands hold, read once and written once; operations are those that the result needs.
"""

import collections
import json
import math
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "test/e2e"))
from plan_files import read_plan  # noqa: E402

READ, WRITE, READ_WRITE = 1, 2, 3
ELEMENT_BYTES = {"F32": 4, "F64": 8, "I64": 8, "I32": 4, "U32": 4, "U16": 2, "BOOL": 1, "U8": 1}


def operand_bytes(operand):
    name = operand.DESCRIPTOR.fields_by_name["dtype"].enum_type.values_by_number[operand.dtype].name
    passes = {READ: 1, WRITE: 1, READ_WRITE: 2}.get(operand.access, 0)
    return passes * math.prod(operand.shape) * ELEMENT_BYTES[name.removeprefix("DTYPE_")]


def operations(kernel):
    """Multiplies and adds of matrix products; 0 for other kernels."""
    flags = {a.name: a.integer for a in kernel.attributes}
    shapes = [list(operand.shape) for operand in kernel.operands]
    if kernel.kernel == "matmul":
        depth = shapes[0][-2 if flags["trans_a"] else -1]
        return 2 * math.prod(shapes[3 if flags["bias"] else 2]) * depth
    if kernel.kernel in ("attention", "attention_grad"):
        gradient = kernel.kernel == "attention_grad"
        query, key, value = shapes[gradient:gradient + 3]
        pairs = query[2] * key[2]
        if flags["causal"]:  # the pairs that are seen
            pairs = sum(min(row + 1, key[2]) for row in range(query[2]))
        return 2 * query[0] * query[1] * pairs * (query[3] + value[3]) * (2 if gradient else 1)
    return 0


def kernel_classes(plan_path, trace_path, first_step):
    """{kernel: [seconds, calls, bytes, operations]} of one step, the mean over the steps from `first_step` on."""
    plan = read_plan(plan_path)
    work = {}  # what a call of each kernel of each routine moves and computes, in the order of its commands
    for routine in plan.roles[0].routines:
        kernels = [command.kernel for command in routine.commands if command.WhichOneof("kind") == "kernel"]
        work[routine.name] = [(k.kernel, sum(map(operand_bytes, k.operands)), operations(k)) for k in kernels]
    events = [e for e in json.loads(Path(trace_path).read_text())["traceEvents"]
              if e["ph"] == "X" and e["cat"] == "kernel" and e["args"]["step"] >= first_step]
    steps = len({e["args"]["step"] for e in events})
    classes = collections.defaultdict(lambda: [0.0, 0, 0, 0])
    for event in events:
        classes[event["name"]][0] += event["dur"] / 1e6 / steps
    calls = collections.Counter((e["args"]["routine"], e["args"]["step"], e["args"]["microbatch"]) for e in events)
    for routine, _, _ in calls:
        for name, moved, computed in work[routine]:
            for column, amount in enumerate((1, moved, computed), 1):
                classes[name][column] += amount / steps
    return classes


def print_table(classes, flops, bandwidth):
    total = sum(row[0] for row in classes.values())
    print(f"\n{'kernel':22}{'calls':>7}{'ms':>9}{'of step':>9}{'GFLOP/s':>10}{'of peak':>9}{'GB/s':>8}{'of copy':>9}")
    for name, (seconds, calls, moved, computed) in sorted(classes.items(), key=lambda item: -item[1][0]):
        rate = f"{computed / seconds / 1e9:10.1f}{computed / seconds / flops:9.0%}" if computed else " " * 19
        print(f"{name:22}{calls:7.0f}{seconds * 1e3:9.1f}{seconds / total:9.1%}{rate}"
              f"{moved / seconds / 1e9:8.1f}{moved / seconds / bandwidth:9.0%}")
    print(f"{'all':22}{sum(row[1] for row in classes.values()):7.0f}{total * 1e3:9.1f}")
