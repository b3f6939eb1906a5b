#!/usr/bin/env python3
"""Training steps of GPT-2 124M in fp32 with the optimizer in host memory: ds-run beside DeepSpeed's ZeRO-Offload on CPU ranks.

Every round runs each contender once, in processes of its own, for a few measured steps after warm-up, so that a
disturbance of the machine meets all of them. `ds-run-2` and `deepspeed-2` are 2 ranks of one thread, `ds-run-1` and `deepspeed-1` one of two.
Same weights, batches, configuration and buckets; AdamW, no dropout, no clipping. ds-run's ranks are threads of one process, DeepSpeed's are
processes over gloo with DeepSpeedCPUAdam, which is compiled the first time.

Prints a table of tokens/s, the ratios, and the losses, which must fall.
"""

import argparse
import json
import os
import sys
from functools import partial

import ranks
import rounds
from zero_ranks import ADAMW

WORK = ranks.ROOT / "build" / "bench" / "offload"
CORES, BATCH, SEQ, SAMPLES = 2, 4, 256, 32
WORDS = 2000  # of the 50257: to learn that the others do not occur takes few steps
MODEL = ["gpt2", "--size", "small", "--seq", str(SEQ)]


def ds_config(args, count):
    """The same for ds-opt and DeepSpeed."""
    return {"train_micro_batch_size_per_gpu": BATCH // count, "gradient_accumulation_steps": 1, "gradient_clipping": 0.0,
            "optimizer": {"type": "AdamW", "params": ADAMW},
            "zero_optimization": {"stage": args.stage, "overlap_comm": True, "reduce_bucket_size": args.bucket,
                                  "allgather_bucket_size": args.bucket, "offload_optimizer": {"device": "cpu"}}}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ranks.add_arguments(parser)
    parser.add_argument("--stage", type=int, choices=(1, 2), default=2)
    parser.add_argument("--bucket", type=int, default=8_000_000, help="elements; a block of the model has 7.1 million (%(default)s)")
    parser.add_argument("--ranks", type=int, nargs="+", choices=(1, 2), default=[1, 2])
    parser.add_argument("--deepspeed", metavar="PYTHON", required=True, help="a Python with torch, transformers and deepspeed")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    return parser.parse_args()


def worker(args):
    train = ranks.deepspeed_step(ranks.peer_module(MODEL), ds_config(args, int(os.environ["WORLD_SIZE"])))
    ranks.measure_batches(args, train, WORK / "data.safetensors", BATCH // int(os.environ["WORLD_SIZE"]))


def run_contender(args, name):
    kind, _, count = name.rpartition("-")
    layout = {"ranks": int(count), "threads": CORES // int(count)}
    if kind == "ds-run":
        return ranks.run_ours(args, WORK, False, WORK / f"{count}.dsplan", **layout)
    return ranks.run_peer(args, __file__, name, "--stage", args.stage, "--bucket", args.bucket, "--deepspeed", args.deepspeed, **layout)


def main():
    args = parse()
    if args.worker:
        return worker(args)
    for count in args.ranks:
        ranks.make_work(WORK, MODEL, WORDS, SAMPLES, SEQ, threads=CORES // count)
        ranks.compile_plan(WORK, ds_config(args, count), WORK / f"{count}.dsplan", ranks=count)
    contenders = [f"{kind}-{count}" for count in args.ranks for kind in ("ds-run", "deepspeed")]
    results, failures = rounds.interleave({name: partial(run_contender, args, name) for name in contenders}, args.rounds)
    rates = ranks.rates_of(results, BATCH * SEQ)
    ranks.print_rates(f"GPT-2 124M, batch {BATCH} x {SEQ}, fp32, ZeRO-{args.stage} with the optimizer in host memory, {CORES} cores",
                      results, failures, rates)
    for count in args.ranks:
        ours, theirs = f"ds-run-{count}", f"deepspeed-{count}"
        ranks.print_ratios(rates, ours, [theirs])
        print(f"  by round {rounds.by_round(results[ours], results[theirs])}")
    for name in rates:
        losses = results[name][0]["losses"]
        print(f"{name:14}losses {' '.join(f'{loss:.4f}' for loss in losses)}")
        if losses[-1] >= losses[0]:
            failures[name] = "its losses do not fall"
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
