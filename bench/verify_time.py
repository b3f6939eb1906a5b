#!/usr/bin/env python3
"""How long `ds-opt verify` takes: GPT-2 124M, Llama 70B by ZeRO stage 3 on 16,384 ranks, and the same model in 64 stages.

    build/venv/bin/python bench/verify_time.py

Prints seconds, best of three, beside the limits that we hold ourselves to. Llama 70B is exported without weights, which takes a minute
the first time; its plan in 64 stages with 512 micro-batches on 16,384 ranks is compiled in some 40 s.
"""

import argparse
import json
import subprocess
import sys

import rounds
from rounds import BIN, ROOT

WORK = ROOT / "build" / "bench"
ROUNDS = 3
# title, model, size, sequence, ranks, micro-batches, more of the configuration, seconds allowed
CASES = [
    ("GPT-2 124M, 1 rank, 4 micro-batches", "gpt2", "small", 1024, 1, 4, {}, 0.5),
    ("Llama 70B, ZeRO stage 3, 16,384 ranks", "llama", "70b", 2048, 16384, 4, {"zero_optimization": {"stage": 3}}, 3),
    ("Llama 70B, 64 stages, 512 micro-batches, ZeRO stage 1, 16,384 ranks", "llama", "70b", 2048, 16384, 512,
     {"zero_optimization": {"stage": 1}, "deepstatic": {"recompute": "none", "pipeline": {"stages": 64, "schedule": "1f1b"}}}, 30),
]


def exported(name, size, sequence):
    folder = WORK / f"{name}-{size}-{sequence}-no-weights"
    if not (folder / "model.onnx").exists():
        rounds.require_modules("torch", "transformers", "onnx")
        subprocess.run([sys.executable, ROOT / "models/export.py", name, "--size", size, "--seq", str(sequence), "--no-weights",
                        "--out", folder], check=True, stdout=subprocess.DEVNULL)
    return folder


def compiled(model, ranks, microbatches, more, timeout):
    config, plan = WORK / "verify_config.json", WORK / "verify.dsplan"
    config.write_text(json.dumps({
        "train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": microbatches, "gradient_clipping": 1.0,
        "optimizer": {"type": "AdamW", "params": {"lr": 3e-4}}, "deepstatic": {"recompute": "none"}, **more}))
    rounds.run([[BIN / "ds-opt", "compile", model, "--config", config, "--ranks", str(ranks), "-o", plan, "--quiet"]], timeout).require()
    return plan


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    rounds.add_timeout(parser)
    args = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    rounds.require_tools("ds-opt")
    print("| plan | seconds | limit | |\n|---|---:|---:|---|")
    late = False
    for title, name, size, sequence, ranks, microbatches, more, limit in CASES:
        try:
            plan = compiled(exported(name, size, sequence), ranks, microbatches, more, args.timeout)
            best = min(rounds.run([[BIN / "ds-opt", "verify", plan, "--quiet"]], args.timeout).require().seconds for _ in range(ROUNDS))
        except rounds.Failed as why:
            sys.exit(f"error: {title}: {why}\n{why.log}")
        late |= best > limit
        print(f"| {title} | {best:.2f} | {limit} | {'late' if best > limit else ''} |", flush=True)
    sys.exit(late)


if __name__ == "__main__":
    main()
