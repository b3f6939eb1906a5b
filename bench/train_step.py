#!/usr/bin/env python3
"""Training steps of GPT-2 124M in fp32: ds-run beside PyTorch eager and torch.compile, in one interleaved run.

Every round runs each contender once, in a process of its own, for a few measured steps after warm-up; a disturbance of
the machine meets all of them. Same weights, same batches, AdamW on all parameters (fused in PyTorch), no dropout, no
clipping. Prints one JSON line per contender and a table: tokens/s (best and median of the rounds), share of the
machine's FMA peak measured in the same run, peak RSS, ratio to PyTorch's better. At the end one traced run of ds-run gives
the time of a step by kernel, beside the machine's limits (kernel_table.py).
"""

import argparse
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import time
from functools import partial

import rounds
from rounds import BIN, ROOT

WORK = ROOT / "build" / "bench"
SEED_BATCHES = 8
CONFIG = {"train_micro_batch_size_per_gpu": 0, "gradient_accumulation_steps": 1, "gradient_clipping": 0,
          "optimizer": {"type": "AdamW", "params": {"lr": 3e-4, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.1}}}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="gpt2")
    parser.add_argument("--size", default="small")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--seq", type=int, default=256)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=3, help="measured steps of a round")
    parser.add_argument("--warmup", type=int, default=2)
    rounds.add_timeout(parser)
    parser.add_argument("--contenders", nargs="+", default=["ds-run", "eager", "compile"])
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    return parser.parse_args()


def make_work(args):
    """Tools; model, data and plan in build/bench; the model is kept between runs."""
    rounds.require_modules("numpy", "safetensors", "torch", "transformers", "google.protobuf")
    rounds.require_tools("ds-opt", "ds-run", "machine-limits")
    import numpy
    from safetensors.numpy import save_file
    WORK.mkdir(parents=True, exist_ok=True)
    model = WORK / f"{args.model}-{args.size}-{args.seq}"
    if not model.exists():
        subprocess.run([sys.executable, ROOT / "models/export.py", args.model, "--size", args.size, "--seq", str(args.seq),
                        "--out", model], check=True, stdout=subprocess.DEVNULL)
    tokens = numpy.random.default_rng(0).integers(0, 32000, (SEED_BATCHES * args.batch, args.seq), dtype=numpy.int64)
    save_file({"input_ids": tokens, "labels": tokens}, WORK / "data.safetensors")
    config = {**CONFIG, "train_micro_batch_size_per_gpu": args.batch}
    (WORK / "ds_config.json").write_text(json.dumps(config))
    machine = {"name": "bench", "device": "cpu", "threads": args.threads, "workspace_bytes_per_thread": "8MiB", "alignment": 64}
    (WORK / "machine.json").write_text(json.dumps(machine))
    subprocess.run([BIN / "ds-opt", "compile", model, "--config", WORK / "ds_config.json", "--machine",
                    WORK / "machine.json", "-o", WORK / "bench.dsplan"], check=True)


def torch_worker(args):
    """One round of PyTorch: prints step seconds, losses and the peak RSS."""
    import torch
    from safetensors.torch import load_file
    torch.set_num_threads(args.threads)
    sys.path.insert(0, str(ROOT / "models"))
    os.environ["HF_HUB_OFFLINE"] = "1"
    import export as exporter
    from exporting.sources import open_source
    module = open_source(exporter.parse([args.model, "--size", args.size, "--seq", str(args.seq), "--out", "x"])).module
    columns = load_file(WORK / "data.safetensors")
    optimizer = torch.optim.AdamW(module.parameters(), lr=3e-4, weight_decay=0.1, fused=True)
    forward = torch.compile(module) if args.worker == "compile" else module
    seconds, losses = [], []
    for step in range(args.warmup + args.steps):
        rows = slice(step % SEED_BATCHES * args.batch, (step % SEED_BATCHES + 1) * args.batch)
        batch = {name: column[rows] for name, column in columns.items()}
        begin = time.perf_counter()
        optimizer.zero_grad()
        loss = forward(**batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - begin)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds[args.warmup:], "losses": losses, "peak_rss_bytes": peak}))


def run_torch(args, contender):
    arguments = [sys.executable, __file__, "--worker", contender]
    for key in ("model", "size", "batch", "seq", "threads", "steps", "warmup"):
        arguments += [f"--{key}", getattr(args, key)]
    done = rounds.run([arguments], args.timeout, [contender], [{"OMP_NUM_THREADS": str(args.threads)}]).require()
    return json.loads(done.outputs[0].splitlines()[-1])


def run_ours(args, *more):
    metrics = WORK / "metrics.jsonl"
    metrics.unlink(missing_ok=True)
    done = rounds.run([[BIN / "ds-run", WORK / "bench.dsplan", "--data", WORK / "data.safetensors", "--quiet", "--steps",
                        args.warmup + args.steps, "--threads", args.threads, "--metrics", metrics, *more]], args.timeout).require()
    steps = [line for line in map(json.loads, metrics.read_text().splitlines()) if "loss" in line]
    return {"seconds": [step["step_seconds"] for step in steps[args.warmup:]], "losses": [step["loss"] for step in steps],
            "peak_rss_bytes": done.peak_rss_bytes}


def machine_limits(args):
    """FMA peak in FLOP/s and copy bandwidth in bytes/s of `threads` cores, by the loops of bench/kernels."""
    done = rounds.run([[BIN / "machine-limits", args.threads]], args.timeout).require()
    return [float(number) for number in done.outputs[0].split()]


def step_flops(args):
    report = json.loads(subprocess.check_output([BIN / "ds-opt", "report", WORK / "bench.dsplan", "--format", "json"]))
    return report["ranks_detail"][0]["flops_per_step"]


def main():
    args = parse()
    if args.worker:
        return torch_worker(args)
    make_work(args)
    from kernel_table import kernel_classes, print_table  # after make_work: it needs modules that are looked for there
    flops, tokens = step_flops(args), args.batch * args.seq
    contenders = {name: partial(run_ours, args) if name == "ds-run" else partial(run_torch, args, name) for name in args.contenders}
    results, failures = rounds.interleave({"machine-limits": partial(machine_limits, args), **contenders}, args.rounds)
    limits = results.pop("machine-limits") or [[math.nan, math.nan]]
    peak, bandwidth = map(max, zip(*limits))
    rows = {}
    for contender, of_rounds in results.items():
        if not of_rounds:
            continue
        seconds = [s for r in of_rounds for s in r["seconds"]]
        rows[contender] = {
            "contender": contender, "tokens_per_s_best": tokens / min(seconds),
            "tokens_per_s_median": tokens / statistics.median(seconds), "share_of_peak": flops / min(seconds) / peak,
            "peak_rss_bytes": max(r["peak_rss_bytes"] for r in of_rounds), "losses": of_rounds[0]["losses"]}
        print(json.dumps(rows[contender]), flush=True)
    print_rows(args, rows, failures, flops, peak)
    if "ds-run" in rows:
        trace = WORK / "trace.json"
        _, failed = rounds.interleave({"ds-run traced": partial(run_ours, args, "--trace", trace)}, 1)
        failures |= failed
        if not failed:
            print_table(kernel_classes(WORK / "bench.dsplan", trace, args.warmup), peak, bandwidth)
    sys.exit(1 if failures else 0)


def print_rows(args, rows, failures, flops, peak):
    print(f"\n{args.model} {args.size}, batch {args.batch} x {args.seq}, fp32, {args.threads} threads; "
          f"{flops / 1e12:.3f} TFLOP a step in products, FMA peak {peak / 1e9:.0f} GFLOP/s")
    print(f"{'':10}{'tokens/s best':>15}{'median':>9}{'of peak':>9}{'peak RSS':>11}")
    for name in [*rows, *(name for name in failures if name not in rows)]:
        row = rows.get(name)
        figures = row and (f"{row['tokens_per_s_best']:15.0f}{row['tokens_per_s_median']:9.0f}{row['share_of_peak']:9.0%}"
                           f"{row['peak_rss_bytes'] / 2**30:8.2f} GiB")
        print(f"{name:10}{figures or '':44}  {failures.get(name, '')}".rstrip())
    others = [row for name, row in rows.items() if name != "ds-run"]
    if "ds-run" in rows and others:
        for key in ("best", "median"):
            better = max(row[f"tokens_per_s_{key}"] for row in others)
            print(f"ratio to PyTorch's better ({key}): {rows['ds-run'][f'tokens_per_s_{key}'] / better:.2f}")


if __name__ == "__main__":
    main()
