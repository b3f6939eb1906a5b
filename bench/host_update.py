#!/usr/bin/env python3
"""AdamW updates in host memory: ds-run's kernel beside torch.optim.AdamW(fused=True), DeepSpeed's CPUAdam and STREAM's triad.

Every round runs each contender once, in a process of its own, so that a disturbance of the machine meets all of them. Same
number of float32 parameters, in one tensor; same values, so the sums of what comes out are compared. An update reads 16 bytes
a parameter (p, g, m, v) and writes 12. `triad` is a[i] = b[i] + s * c[i] of doubles, in arrays of as many bytes in all: 24 bytes
an element, as STREAM counts them. Its stores are plain, so the processor reads each line of `a` before it writes it, which STREAM does not count;
`streamed` has stores that go past the caches. An update writes only what it has read: it has nothing to save there.

Prints seconds (best and median), GB/s, and the ratios. --deepspeed names a Python with torch and deepspeed; the first time it compiles CPUAdam.
"""

import argparse
import json
import statistics
import sys
import time
from functools import partial

import rounds

ADAMW = {"lr": 3e-4, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.1}
NATIVE = {"ds-run": "adamw", "triad": "triad", "streamed": "streamed"}
BYTES = {"ds-run": 28, "fused": 28, "deepspeed": 28, "triad": 16, "streamed": 16}  # a parameter


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parameters", type=int, default=124_439_808, help="GPT-2 124M's (%(default)s)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--updates", type=int, default=10, help="measured ones of a round")
    parser.add_argument("--warmup", type=int, default=2)
    rounds.add_timeout(parser)
    parser.add_argument("--deepspeed", metavar="PYTHON", help="a Python with torch and deepspeed")
    parser.add_argument("--worker", choices=("fused", "deepspeed"), help=argparse.SUPPRESS)
    return parser.parse_args()


def torch_worker(args):
    """The values are those of bench/kernels/host_update.cpp."""
    import torch
    torch.set_num_threads(args.threads)

    def saw(period, divisor):
        return (torch.arange(args.parameters) % period - period // 2).float() / divisor
    parameter = torch.nn.Parameter(saw(1021, 1021))
    parameter.grad = saw(769, 76900)
    if args.worker == "deepspeed":
        from deepspeed.ops.adam import DeepSpeedCPUAdam
        optimizer = DeepSpeedCPUAdam([parameter], **ADAMW, adamw_mode=True)
    else:
        optimizer = torch.optim.AdamW([parameter], **ADAMW, fused=True)
    seconds = []
    for _ in range(args.warmup + args.updates):
        begin = time.perf_counter()
        optimizer.step()
        seconds.append(time.perf_counter() - begin)
    print(json.dumps({"seconds": seconds, "sum": parameter.detach().abs().sum(dtype=torch.float64).item()}), flush=True)


def run(args, contender):
    count = args.warmup + args.updates
    if contender in NATIVE:
        command = [rounds.BIN / "host-update", NATIVE[contender], args.parameters, args.threads, count]
    else:
        command = [args.deepspeed if contender == "deepspeed" else sys.executable, __file__, "--worker", contender]
        for key in ("parameters", "threads", "updates", "warmup"):
            command += [f"--{key}", getattr(args, key)]
    environment = {"OMP_NUM_THREADS": str(args.threads), "DS_ACCELERATOR": "cpu"}
    done = rounds.run([command], args.timeout, [contender], [environment]).require()
    result = json.loads(done.outputs[0].splitlines()[-1])
    return {**result, "seconds": result["seconds"][args.warmup:]}


def print_table(args, results, failures):
    print(f"{args.parameters:,} parameters, {args.threads} threads, {args.rounds} rounds of {args.updates}")
    print(f"{'':12}{'seconds best':>14}{'median':>9}{'GB/s best':>12}{'median':>9}")
    rates = {}
    for name, of_rounds in results.items():
        figures = ""
        if of_rounds:
            seconds = [second for result in of_rounds for second in result["seconds"]]
            times = min(seconds), statistics.median(seconds)
            rates[name] = [BYTES[name] * args.parameters / time / 1e9 for time in times]
            figures = "{:14.4f}{:9.4f}{:12.1f}{:9.1f}".format(*times, *rates[name])
        print(f"{name:12}{figures or '':44}  {failures.get(name, '')}".rstrip())
    for name in rates:
        if name != "ds-run" and "ds-run" in rates:
            best, median = (ours / theirs for ours, theirs in zip(rates["ds-run"], rates[name]))
            rounds_of = f", by round {rounds.by_round(results['ds-run'], results[name])}" if BYTES[name] == BYTES["ds-run"] else ""
            print(f"ds-run / {name}: best {best:.2f}, median {median:.2f}{rounds_of}")
    sums = {name: results[name][0]["sum"] for name in results if name in rates and BYTES[name] == 28}
    apart = max((abs(value / sums["ds-run"] - 1) for value in sums.values()), default=0) if "ds-run" in sums else 0
    print(f"sums of parameters within {apart:.0e} of each other after {args.warmup + args.updates} updates")


def main():
    args = parse()
    if args.worker:
        return torch_worker(args)
    rounds.require_modules("numpy", "torch")
    rounds.require_tools("host-update")
    contenders = ["ds-run", "fused", *(["deepspeed"] if args.deepspeed else []), "triad", "streamed"]
    results, failures = rounds.interleave({name: partial(run, args, name) for name in contenders}, args.rounds)
    print_table(args, results, failures)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
