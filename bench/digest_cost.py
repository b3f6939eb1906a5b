#!/usr/bin/env python3
"""What comparing replicas costs: processor seconds of ds-run with a comparison after every step and with none, in turns.

GPT-2 on 2 ranks without ZeRO, so that each rank holds all of the state. The figure is the cost of one comparison as a share of
a step, and the share of a step at the default of one in 100 steps (`--replica-digest-interval`).
"""

import argparse
import resource
import statistics

import ranks
import rounds

WORK = ranks.ROOT / "build" / "bench" / "digest"
DEFAULT_INTERVAL = 100


def processor_seconds(work, steps, interval, timeout):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    rounds.run([[rounds.BIN / "ds-run", work / "plan.dsplan", "-n", "2", "--data", work / "data.safetensors", "--steps", str(steps),
                 "--replica-digest-interval", str(interval)]], timeout).require()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="small", help="of GPT-2: tiny, or small, which has 124 million parameters")
    parser.add_argument("--seq", type=int, default=256, help="tokens a sample; a rank takes 2 samples a step")
    parser.add_argument("--steps", type=int, default=6, help="of a run")
    parser.add_argument("--rounds", type=int, default=3)
    rounds.add_timeout(parser)
    arguments = parser.parse_args()
    rounds.require_tools("ds-opt", "ds-run")
    work = WORK / f"{arguments.size}-{arguments.seq}"  # a model is kept between runs
    ranks.make_work(work, ["gpt2", "--size", arguments.size, "--seq", str(arguments.seq)], vocabulary=37, samples=16, seq=arguments.seq)
    ranks.compile_plan(work, {"train_micro_batch_size_per_gpu": 2, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}}, work / "plan.dsplan")
    costs = []
    for number in range(arguments.rounds):
        short, without, compared = (processor_seconds(work, steps, interval, arguments.timeout)
                                    for steps, interval in ((1, 0), (arguments.steps, 0), (arguments.steps, 1)))
        step = (without - short) / (arguments.steps - 1)
        costs.append((compared - without) / (arguments.steps + 1) / step)  # one before the first step, then one after each
        print(f"round {number}: a step {step:.2f} s of the processor on both ranks, a comparison {100 * costs[-1]:.1f} % of it", flush=True)
    median = 100 * statistics.median(costs)
    print(f"median: a comparison costs {median:.1f} % of a step, {median / DEFAULT_INTERVAL:.3f} % of each step at one in {DEFAULT_INTERVAL}")


if __name__ == "__main__":
    main()
