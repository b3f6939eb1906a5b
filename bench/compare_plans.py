#!/usr/bin/env python3
"""30 plans made by two builds of the tools: what differs, whether they train the same bits, what they took to compile.

    bench/compare_plans.py --before OTHER_BUILD/bin [--after build/release/bin]

GPT-2, Llama, BERT, ResNet, MoE and ViT (tiny) on one rank, by ZeRO-3 on 4 ranks, in 4 pipeline stages, in 2 stages of 2 ranks that share
out optimizer state, and with a budget of the memory that lies between what the model needs and the least it can do with. Each plan is compiled
by both builds in turn, --rounds times, of which the least seconds of the processor count. It is compared by `ds-opt diff` of the build after,
for which an arena that shrank is no difference. Where the builds' formats differ, all fields are compared but those that one format alone has.
Each plan is trained for --steps steps by the ds-run of the build that made it.
The last lines give the arena of GPT-2 124M, 16 x 256, without recompute. Exit code 1 where something differs.
"""

import argparse
import difflib
import hashlib
import itertools
import json
import resource
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools" / "ds-audit"))
WORK = ROOT / "build" / "bench" / "compare"
MODELS = ("gpt2", "llama", "bert", "resnet50", "moe", "vit")
BASE = {"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4, "gradient_clipping": 1.0,
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "weight_decay": 0.1}}}
STRATEGIES = {"one rank": (1, {}),
              "ZeRO-3 x 4": (4, {"zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 0}}),
              "4 stages": (4, {"deepstatic": {"pipeline": {"stages": 4}}}),
              "2 x ZeRO-1": (4, {"zero_optimization": {"stage": 1}, "deepstatic": {"pipeline": {"stages": 2}}}),
              "budgeted": (1, {})}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True, help="folder of ds-opt and ds-run to compare with")
    parser.add_argument("--after", type=Path, default=ROOT / "build" / "release" / "bin", help="folder of ds-opt and ds-run")
    parser.add_argument("--rounds", type=int, default=7, help="compilations of each plan by each build")
    parser.add_argument("--steps", type=int, default=2, help="steps that each plan is trained for; 0: none")
    parser.add_argument("--timeout", type=float, default=300, help="seconds that one call of a tool may take")
    return parser.parse_args()


def call(*arguments, codes=(0,)):
    try:
        done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, timeout=call.timeout)
    except subprocess.TimeoutExpired:
        sys.exit(f"{' '.join(map(str, arguments))}: no end after {call.timeout:.0f} s; --timeout grants it more")
    if done.returncode not in codes:
        sys.exit(f"{' '.join(map(str, arguments))}: exit code {done.returncode}\n{done.stderr}")
    return done


def exported(model, *options):
    folder = WORK / "-".join([model, *map(str, options)]).replace("/", "_")
    if not (folder / "model.onnx").exists():
        call(sys.executable, ROOT / "models/export.py", model, *(options or ("--size", "tiny")), "--out", folder)
    return folder


def make_data(model, folder):
    """Samples for a step and a half, by the inputs of the ONNX file; labels stay below 8."""
    import numpy
    import onnx
    from safetensors.numpy import save_file
    path = WORK / f"{model}.safetensors"
    draw = numpy.random.default_rng(0)
    tensors = {}
    for value in onnx.load(folder / "model.onnx", load_external_data=False).graph.input:
        kind = value.type.tensor_type
        shape = [96 if d.dim_param else d.dim_value for d in kind.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        whole = numpy.issubdtype(dtype, numpy.integer)
        high = 2 if "mask" in value.name or "type" in value.name else 8
        tensors[value.name] = draw.integers(0, high, shape).astype(dtype) if whole else draw.standard_normal(shape).astype(dtype)
        if "mask" in value.name:
            tensors[value.name][:] = 1
    save_file(tensors, path)
    return path


def compile_plan(tools, folder, config, ranks, plan):
    """Seconds of the processor."""
    begin = resource.getrusage(resource.RUSAGE_CHILDREN)
    call(tools / "ds-opt", "compile", folder, "--config", config, "--ranks", ranks, "-o", plan, "--quiet")
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    return end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime


def arena(tools, plan):
    report = json.loads(call(tools / "ds-opt", "report", plan, "--format", "json").stdout)
    return [rank["memory"]["device"]["arena_bytes"] for rank in report["ranks_detail"]]


def write_config(name, more):
    path = WORK / f"{name}.json"
    path.write_text(json.dumps({**BASE, **more}))
    return path


def budget(tools, folder):
    """Bytes half way between what a step takes and what is left when all is computed again."""
    sizes = []
    for recompute in ("none", "full"):
        config = write_config(f"budget-{recompute}", {"deepstatic": {"recompute": recompute}})
        compile_plan(tools, folder, config, 1, WORK / "budget.dsplan")
        sizes.append(arena(tools, WORK / "budget.dsplan")[0])
    return sum(sizes) // 2


def trained(tools, plan, data, ranks, steps):
    weights = WORK / "weights.safetensors"
    call(tools / "ds-run", plan, "-n", ranks, "--data", data, "--steps", steps, "--export", weights)
    return hashlib.sha256(weights.read_bytes()).hexdigest()[:16]


def read_message(path):
    """The plan of any format, without fields that it has no name for."""
    from ds_audit.plans import HEADER_BYTES, plan_class
    plan = plan_class().FromString(path.read_bytes()[HEADER_BYTES:])
    plan.DiscardUnknownFields()
    return plan


def without_placements(message):
    """Format 1 had none. What it had instead follows from buffers' bytes."""
    message.ClearField("format_version")
    stack = [message]
    while stack:
        one = stack.pop()
        for field, value in one.ListFields():
            if field.name == "placement":
                one.ClearField(field.name)
            elif field.message_type:
                stack += [value] if hasattr(value, "ListFields") else value
    return str(message).splitlines()


def differences(tools, before, after):
    """What ds-opt diff names, but for arenas, which are compared by their numbers; of two formats, lines that differ."""
    plans = [read_message(before), read_message(after)]
    if plans[0].format_version != plans[1].format_version:
        lines = difflib.unified_diff(*map(without_placements, plans), "before", "after", n=1, lineterm="")
        return list(itertools.islice(lines, 40))
    changes = json.loads(call(tools / "ds-opt", "diff", before, after, "--format", "json", codes=(0, 1)).stdout)["changes"]
    return [change for change in changes if change["section"] != "memory"]


def compare(args, model, folder, data, strategy):
    ranks, more = STRATEGIES[strategy]
    if strategy == "budgeted":
        more = {"deepstatic": {"device_memory": budget(args.before, folder)}}
    config = write_config(f"{model}-{strategy.replace(' ', '-')}", more)
    plans = {side: WORK / f"{model}-{strategy.replace(' ', '-')}.{side}.dsplan" for side in ("before", "after")}
    seconds = {side: [] for side in plans}
    for _ in range(args.rounds):  # interleaved, so that a disturbance of the machine meets both
        for side, plan in plans.items():
            seconds[side].append(compile_plan(getattr(args, side), folder, config, ranks, plan))
    arenas = {side: arena(getattr(args, side), plan) for side, plan in plans.items()}
    grown = any(a > b for a, b in zip(arenas["after"], arenas["before"]))
    changes = differences(args.after, plans["before"], plans["after"])
    same = args.steps == 0 or len({trained(getattr(args, side), plan, data, ranks, args.steps) for side, plan in plans.items()}) == 1
    print(f"{model:9} {strategy:11} arena {sum(arenas['after']) / sum(arenas['before']):.3f}  compile "
          f"{min(seconds['after']) / min(seconds['before']):.2f}  bits {'equal' if same else 'DIFFER'}  "
          f"{'arena GREW  ' if grown else ''}{'no other difference' if not changes else f'{len(changes)} decisions differ'}", flush=True)
    for change in changes[:12]:
        print("    " + json.dumps(change))
    return same and not changes and not grown


def main():
    args = parse()
    call.timeout = args.timeout
    WORK.mkdir(parents=True, exist_ok=True)
    print("model     strategy    ratios after / before")
    alike = True
    for model in MODELS:
        folder = exported(model)
        data = make_data(model, folder)
        for strategy in STRATEGIES:
            alike &= compare(args, model, folder, data, strategy)
    folder = exported("gpt2", "--size", "small", "--seq", "256", "--no-weights")
    config = write_config("gpt2-small", {"train_micro_batch_size_per_gpu": 16, "gradient_accumulation_steps": 1})
    for side in ("before", "after"):
        compile_plan(getattr(args, side), folder, config, 1, WORK / "small.dsplan")
        print(f"GPT-2 124M, 16 x 256, no recompute, arena {side}: {arena(getattr(args, side), WORK / 'small.dsplan')[0]:,} bytes")
    sys.exit(0 if alike else 1)


if __name__ == "__main__":
    main()
