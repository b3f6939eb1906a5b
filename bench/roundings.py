#!/usr/bin/env python3
"""Parameters rounded to 16 bits once a step, beside rounded at each use (`--without` the passes that keep them): what that saves.

Measured: GPT-2 124M in bf16 with 8 micro-batches a step on this machine's processors, both plans in turns; they must give the same losses.
By the cost model: the same model on one H100, and Llama 8B on 64 of them in 4 pipeline stages with 16 micro-batches.
"""

import argparse
import json
import re
import statistics
import subprocess
from functools import partial

import ranks
import rounds
from rounds import BIN, ROOT

WORK = ROOT / "build" / "bench" / "roundings"
# One rank of a GPU has buckets, whose roundings are kept as gathers are.
WAYS = {"at each use": ["--without", "ds-round-once", "--without", "ds-keep-parameters-gathered"], "once a step": []}
SAMPLES, VOCABULARY = 64, 32000


def config(microbatches, **more):
    return {"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": microbatches, "bf16": {"enabled": True},
            "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}, **more}


def compile_plan(work, settings, machine, count, way):
    (work / "c.json").write_text(json.dumps(settings))
    plan = work / f"{way.replace(' ', '-')}.dsplan"
    subprocess.run([BIN / "ds-opt", "compile", work / "model", "--config", work / "c.json", "--machine", machine, "--ranks", str(count), "-o", plan,
                    "--quiet", *WAYS[way]], check=True)
    return plan


def predicted(work, settings, count):
    """{way: "2.52 s"}, what the report says of a step."""
    steps = {}
    for way in WAYS:
        report = subprocess.check_output([BIN / "ds-opt", "report", compile_plan(work, settings, "h100x8", count, way)], text=True)
        steps[way] = re.search(r"step +about (.*?) by the cost model", report).group(1)
    return steps


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ranks.add_arguments(parser)
    parser.add_argument("--seq", type=int, default=128, help="tokens of a micro-batch (%(default)s)")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    small = WORK / f"gpt2-{arguments.seq}"
    ranks.make_work(small, ["gpt2", "--size", "small", "--seq", str(arguments.seq)], VOCABULARY, SAMPLES, arguments.seq, arguments.threads)
    plans = {way: compile_plan(small, config(8), small / "machine.json", 1, way) for way in WAYS}
    results, _ = rounds.interleave({way: partial(ranks.run_ours, arguments, small, False, plan, ranks=1, threads=arguments.threads)
                                    for way, plan in plans.items()}, arguments.rounds)
    assert all(result["losses"] == results["once a step"][0]["losses"] for of_way in results.values() for result in of_way), "the losses differ"
    for way, of_way in results.items():
        seconds = statistics.median(second for result in of_way for second in result["seconds"])
        print(f"GPT-2 124M, processors, rounded {way}: {8 * arguments.seq / seconds:.1f} tokens/s, median step {seconds:.2f} s")
    print("times as fast in each round:", rounds.by_round(results["once a step"], results["at each use"]))
    large = WORK / "llama-8b"
    ranks.make_work(large, ["llama", "--size", "8b", "--seq", "4096", "--no-weights"], VOCABULARY, 1, 4096)
    for title, work, settings, count in [("GPT-2 124M, one H100", small, config(8), 1),
                                         ("Llama 8B, 64 H100", large, config(16, deepstatic={"pipeline": {"stages": 4, "schedule": "1f1b"}}), 64)]:
        for way, step in predicted(work, settings, count).items():
            print(f"{title}, rounded {way}: a step takes about {step} by the cost model")


if __name__ == "__main__":
    main()
