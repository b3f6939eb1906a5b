#!/usr/bin/env python3
"""Resident memory of a training step of GPT-2 124M in fp32, batch 16 x 256: ds-run beside PyTorch eager.

Runs each contender in a process of its own and compares its peak resident memory beyond the states that both keep, 16
bytes a parameter (weight, gradient, two moments): ds-run with all activations kept, and with as much computed again as
adds at most 10 % to the matrix products. PyTorch uses scaled_dot_product_attention and fused AdamW. Prints one JSON line
per contender and a table.
"""

import argparse
import json
import math
import subprocess
import sys
from functools import partial
from types import SimpleNamespace

import rounds
from rounds import BIN
from train_step import WORK, make_work, run_ours, run_torch

STATES = 16  # bytes a parameter


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--seq", type=int, default=256)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--again", type=float, default=0.1, help="share of the products that may be done twice")
    rounds.add_timeout(parser)
    return parser.parse_args()


def plan(seq, level):
    """Compiles at a level of recompute: the highest there is, the share of the products done again, the plan's bytes, parameters."""
    subprocess.run([BIN / "ds-opt", "compile", WORK / f"gpt2-small-{seq}", "--config", WORK / "ds_config.json", "--machine",
                    WORK / "machine.json", "--set", f"deepstatic.recompute={level}", "-o", WORK / "bench.dsplan"],
                   check=True, stdout=subprocess.DEVNULL)
    report = json.loads(subprocess.check_output([BIN / "ds-opt", "report", WORK / "bench.dsplan", "--format", "json"]))
    rank, = report["ranks_detail"]
    return SimpleNamespace(levels=report["recompute"]["levels"],
                           again=rank["recompute_flops_per_step"] / rank["flops_per_step"],
                           bytes=rank["memory"]["device"]["arena_bytes"], parameters=sum(p["bytes"] for p in report["parameters"]) // 4)


def highest_level(seq, limit):
    """The highest level that adds at most `limit` of the products."""
    low, high = 0, plan(seq, 1).levels
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if plan(seq, middle).again <= limit else (low, middle - 1)
    return low


def planned_run(work, level):
    planned = plan(work.seq, level)
    return planned, run_ours(work)


def main():
    args = parse()
    work = SimpleNamespace(model="gpt2", size="small", batch=args.batch, seq=args.seq, threads=args.threads, steps=2, warmup=1, timeout=args.timeout)
    make_work(work)
    level = highest_level(args.seq, args.again)
    results, failures = rounds.interleave({
        "PyTorch eager": lambda: (None, run_torch(work, "eager")), "ds-run": partial(planned_run, work, 0),
        f"ds-run, recompute {level}": partial(planned_run, work, level)}, 1)
    states = STATES * plan(args.seq, 0).parameters
    peer = results["PyTorch eager"][0][1]["peak_rss_bytes"] - states if results["PyTorch eager"] else math.nan
    rows = [(name, *of_rounds[0]) for name, of_rounds in results.items() if of_rounds]
    for name, planned, run in rows:
        beyond = run["peak_rss_bytes"] - states
        print(json.dumps({"contender": name, "peak_rss_bytes": run["peak_rss_bytes"], "beyond_states_bytes": beyond,
                          "ratio": beyond / peer, "planned_bytes": planned and planned.bytes, "again": planned and planned.again,
                          "losses": run["losses"]}))
    print(f"\nGPT-2 124M, batch {args.batch} x {args.seq}, fp32, {args.threads} threads; {states / 2**30:.2f} GiB of states")
    print(f"{'':22}{'peak RSS':>12}{'beyond states':>15}{'of PyTorch':>12}{'planned':>12}{'products again':>16}")
    for name, planned, run in rows:
        beyond = run["peak_rss_bytes"] - states
        print(f"{name:22}{run['peak_rss_bytes'] / 2**30:8.2f} GiB{beyond / 2**30:11.2f} GiB{beyond / peer:12.2f}"
              + (f"{planned.bytes / 2**30:8.2f} GiB{planned.again:15.1%}" if planned else ""))
    for name, why in failures.items():
        print(f"{name:22}  {why}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
