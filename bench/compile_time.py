#!/usr/bin/env python3
"""Import and compile times of ds-opt: GPT-2 124M, Llama 160M, Llama 7B without weights. Best of three.

Prints seconds and ds-opt's peak memory beside the limits that we hold ourselves to; then Llama 7B by ZeRO stage 3 for 8 to 16,384
ranks, with the size of the plan and how much of a rank's weights, gradients and optimizer state is padding; then a Llama of 64 layers in 64
pipeline stages with 512 micro-batches, and one of 100 layers with a budget half way between what it needs and the least it can do with.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BIN = ROOT / "build" / "release" / "bin"
WORK = ROOT / "build" / "bench"
# model, size, sequence, extra options, seconds allowed, bytes allowed
CASES = [("gpt2", "small", 1024, [], 5, 500e6), ("llama", "160m", 1024, [], 5, 500e6),
         ("llama", "7b", 2048, ["--no-weights"], 30, None)]
RANKS = (8, 64, 1024, 16384)  # data-parallel


def measure(arguments):
    begin = time.perf_counter()
    process = subprocess.Popen([str(a) for a in arguments], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{arguments} ended with status {status}")
    return time.perf_counter() - begin, usage.ru_maxrss * 1024


def main():
    WORK.mkdir(parents=True, exist_ok=True)
    config = WORK / "compile_config.json"
    config.write_text(json.dumps({
        "train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 4,
        "optimizer": {"type": "AdamW", "params": {"lr": 3e-4}}}))
    for name, size, sequence, more, seconds, memory in CASES:
        model = WORK / f"{name}-{size}-{sequence}"
        if not model.exists():
            subprocess.run([sys.executable, ROOT / "models/export.py", name, "--size", size, "--seq", str(sequence),
                            *more, "--out", model], check=True, stdout=subprocess.DEVNULL)
        runs = [measure([BIN / "ds-opt", "compile", model, "--config", config, "-o", WORK / "compile.dsplan", "--quiet"])
                for _ in range(3)]
        best, peak = min(r[0] for r in runs), max(r[1] for r in runs)
        limit = "" if memory is None else f" (limit {memory / 1e6:.0f})"
        print(f"{name} {size}, sequence {sequence}: import and compile {best:.2f} s (limit {seconds}), "
              f"peak memory {peak / 1e6:.0f} MB{limit}")
    print_by_ranks(WORK / "llama-7b-2048", config)
    print_stages(config, stages=64, microbatches=512)
    print_budget(config, layers=100)


def print_by_ranks(model, config):
    """Interleaved, so that a disturbance of the machine meets all of them."""
    plan, runs, sizes, padding = WORK / "compile.dsplan", {n: [] for n in RANKS}, {}, {}
    for _ in range(3):
        for ranks in RANKS:
            runs[ranks].append(measure([BIN / "ds-opt", "compile", model, "--config", config, "--ranks", ranks, "--set",
                                        "zero_optimization.stage=3", "-o", plan, "--quiet"])[0])
            sizes[ranks] = plan.stat().st_size
            report = json.loads(subprocess.check_output([BIN / "ds-opt", "report", plan, "--format", "json"]))
            state = [report["ranks_detail"][0]["zero"][kind] for kind in ("weights", "gradients", "optimizer")]
            padding[ranks] = sum(s["rank_padding"] for s in state) / sum(s["rank_bytes"] for s in state)
    for ranks in RANKS:
        print(f"llama 7b, ZeRO stage 3, {ranks} ranks: {min(runs[ranks]):.2f} s (limit 60), plan of {sizes[ranks]:,} bytes, "
              f"padding {padding[ranks]:.2%} of state")
    best = [min(times) for times in runs.values()]
    print(f"slowest / fastest: {max(best) / min(best):.2f} (limit 1.20), largest / smallest plan: "
          f"{max(sizes.values()) / min(sizes.values()):.3f}")


def llama_of(layers) -> Path:
    """Llama 7B with as many layers."""
    model = WORK / f"llama-{layers}-layers"
    if not model.exists():
        subprocess.run([sys.executable, ROOT / "models/export.py", "llama", "--size", "7b", "--seq", "2048", "--no-weights",
                        "--set", f"num_hidden_layers={layers}", "--out", model], check=True, stdout=subprocess.DEVNULL)
    return model


def print_budget(config, layers):
    model, plan = llama_of(layers), WORK / "compile.dsplan"
    compile_model = [BIN / "ds-opt", "compile", model, "--config", config, "-o", plan, "--quiet"]
    needs = []
    for recompute in ("none", "full"):
        measure([*compile_model, "--set", f'deepstatic.recompute="{recompute}"'])
        report = json.loads(subprocess.check_output([BIN / "ds-opt", "report", plan, "--format", "json"]))
        needs.append(report["ranks_detail"][0]["memory"]["device"]["arena_bytes"])
    best = min(measure([*compile_model, "--device-memory", sum(needs) // 2])[0] for _ in range(3))
    report = json.loads(subprocess.check_output([BIN / "ds-opt", "report", plan, "--format", "json"]))
    device = report["ranks_detail"][0]["memory"]["device"]
    print(f"llama of {layers} layers within {sum(needs) / 2e9:.1f} GB, of {needs[0] / 1e9:.1f} and at least {needs[1] / 1e9:.1f}: "
          f"import and compile {best:.2f} s (limit 20), arena {device['arena_bytes'] / 1e9:.1f} GB, "
          f"{device['arena_bytes'] / device['peak_live_bytes'] - 1:.2%} above the peak")


def print_stages(config, stages, microbatches):
    model, plan = llama_of(stages), WORK / "compile.dsplan"
    best = min(measure([BIN / "ds-opt", "compile", model, "--config", config, "--ranks", stages, "--set",
                        f"gradient_accumulation_steps={microbatches}", "--set", f"deepstatic.pipeline.stages={stages}",
                        "-o", plan, "--quiet"])[0] for _ in range(3))
    print(f"llama of {stages} layers in {stages} stages with {microbatches} micro-batches: {best:.2f} s (limit 10), "
          f"plan of {plan.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
