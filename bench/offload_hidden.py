#!/usr/bin/env python3
"""How much of the transfers of a step with optimizer state on NVMe is hidden: GPT-2 124M in fp32, one rank of one thread, a core left free for the host.

hidden = 1 - (step with - step without) / alone. "with" keeps moments in a file and updates on the host, "without" keeps all in device memory;
every round runs both, with clipping and without, in processes of their own. "alone" is what the transfers of a step take one after another: bytes
of the plan by the speeds of this drive (`nvme-speed`, which writes and reads as ds-run does) and of a copy in memory, both measured first. ds-opt
plans for a machine file with what was measured: of the drive the slower way while both are under way, and the rates of the model's products and of a copy.
Prints a line of each round, and fails where losses differ.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import ranks
import rounds
from rounds import BIN, ROOT

WORK = ROOT / "build" / "bench" / "offload-hidden"
WORDS, SAMPLES = 2000, 32
MIB = 1 << 20
FILE = 1024 * MIB  # bytes by which the drive is measured
LATENCY_US, COMMAND_US = {"device-host": 2, "host-nvme": 100}, 2
GUESSED_FLOPS = 1e11


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ranks.add_arguments(parser)
    parser.add_argument("--size", default="small", help="of GPT-2 (%(default)s)")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--seq", type=int, default=256)
    parser.add_argument("--accumulation", type=int, default=1, help="micro-batches of a step (%(default)s)")
    parser.add_argument("--clipping", type=float, nargs="+", default=[0.0, 100.0], help="0: off; a norm that is seldom passed; 0.5: every step is clipped, and redone (%(default)s)")
    parser.add_argument("--nvme", type=Path, default=WORK, help="folder on the drive (%(default)s)")
    return parser.parse_args()


def best_of(times, work):
    """Of some runs, the shortest, in seconds."""
    seconds = []
    for _ in range(times):
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def measure_links(args):
    """Bytes a second: {"read", "write", "at_once", "copy"}; the last of arrays larger than caches."""
    import numpy
    speeds = json.loads(subprocess.check_output([BIN / "nvme-speed", args.nvme, str(FILE), str(MIB), "8", str(16 * MIB), "huge"]))
    source, target = numpy.ones(FILE // 8), numpy.zeros(FILE // 8)
    return {**{way: speeds[way] for way in ("read", "write", "at_once")}, "copy": FILE / best_of(3, lambda: numpy.copyto(target, source))}


def write_machine(speeds, flops):
    links = {"device-host": speeds["copy"], "host-nvme": speeds["at_once"]}
    products = {f"{kind}_tflops": flops / 1e12 for kind in ("float32", "tf32", "bfloat16", "attention")}
    machine = {**ranks.MACHINE, "links": [{"between": between, "bandwidth_gb_per_s": speed / 1e9, "latency_us": LATENCY_US[between]} for between, speed in links.items()],
               "rates": {"memory_gb_per_s": 2 * speeds["copy"] / 1e9, "command_us": COMMAND_US, **products}}
    (WORK / "machine.json").write_text(json.dumps(machine))


def ds_config(args, clipping, away):
    there = {"zero_optimization": {"offload_optimizer": {"device": "nvme", "nvme_path": str(args.nvme)}}} if away else {}
    return {"train_micro_batch_size_per_gpu": args.batch, "gradient_accumulation_steps": args.accumulation, "gradient_clipping": clipping,
            "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "weight_decay": 0.1}}, **there}


def measure_products(args, speeds):
    """FLOP a second of this model's products: those of a step without offload, over what the rest of it leaves at the rate of a copy."""
    plan = WORK / "rates.dsplan"
    write_machine(speeds, GUESSED_FLOPS)
    ranks.compile_plan(WORK, ds_config(args, 0, away=False), plan, ranks=1)
    kernels = json.loads(subprocess.check_output([BIN / "ds-opt", "report", plan, "--format", "json"]))["ranks_detail"][0]["commands_of_step"]
    rest = sum(kernel["bytes"] for kernel in kernels if not kernel["flops"]) / (2 * speeds["copy"])
    step = statistics.median(ranks.run_ours(args, WORK, False, plan, ranks=1)["seconds"])
    return sum(kernel["flops"] for kernel in kernels) / (step - rest)


def alone_seconds(plan, speeds):
    """Of all transfers of a step."""
    report = json.loads(subprocess.check_output([BIN / "ds-opt", "report", plan, "--format", "json"]))
    ways = report["ranks_detail"][0]["transfer_bytes_per_step"]
    return ways["read"] / speeds["read"] + ways["write"] / speeds["write"] + (ways["out"] + ways["back"]) / speeds["copy"]


def print_rounds(name, without, away, alone):
    for first, second in zip(without, away, strict=True):
        if first["losses"] != second["losses"]:
            sys.exit(f"error: {name}: losses differ, {first['losses']} without and {second['losses']} with")
    pairs = [(statistics.median(first["seconds"]), statistics.median(second["seconds"])) for first, second in zip(without, away)]
    hidden = [1 - (second - first) / alone for first, second in pairs]
    for (first, second), share, steps in zip(pairs, hidden, away):
        print(f"{name}, {steps['redone']} of {len(steps['seconds'])} steps redone: without {first:.3f} s, with {second:.3f} s, alone {alone:.3f} s ({alone / first:.2f} of it), hidden {100 * share:.0f} %")
    print(f"{name}: hidden {100 * statistics.median(hidden):.0f} %, the median of {len(hidden)} rounds")


def main():
    args = parse()
    args.nvme.mkdir(parents=True, exist_ok=True)
    rounds.require_tools("nvme-speed")
    ranks.make_work(WORK, ["gpt2", "--size", args.size, "--seq", str(args.seq)], WORDS, SAMPLES, args.seq)
    speeds = measure_links(args)
    products = measure_products(args, speeds)
    print(", ".join(f"{way} {speed / 1e9:.2f} GB/s" for way, speed in speeds.items()) + f", products {products / 1e9:.0f} GFLOP/s")
    write_machine(speeds, products)
    plans = {(clipping, away): WORK / f"{clipping}-{'away' if away else 'here'}.dsplan" for clipping in args.clipping for away in (False, True)}
    for (clipping, away), plan in plans.items():
        ranks.compile_plan(WORK, ds_config(args, clipping, away), plan, ranks=1)
    results, failures = rounds.interleave({case: partial(ranks.run_ours, args, WORK, False, plan, ranks=1) for case, plan in plans.items()}, args.rounds)
    if failures:
        sys.exit("error: " + "; ".join(f"{case} {why}" for case, why in failures.items()))
    for clipping in args.clipping:
        print_rounds(f"clipping {clipping:g}", results[clipping, False], results[clipping, True], alone_seconds(plans[clipping, True], speeds))


if __name__ == "__main__":
    main()
