#!/usr/bin/env python3
"""Import and compile times of ds-opt: GPT-2 124M, Llama 160M, Llama 7B without weights. Best of three.

Prints seconds and ds-opt's peak memory beside the limits that we hold ourselves to.
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


if __name__ == "__main__":
    main()
