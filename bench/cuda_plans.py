#!/usr/bin/env python3
"""Plans for a GPU at real sizes: GPT-2 124M and XL, Llama 1B, and Llama 8B on 8 ranks by ZeRO stage 3, in bfloat16.

    build/venv/bin/python bench/cuda_plans.py

For each: commands and bytes of a step, those bytes that neither a product nor attention moves, its time by the cost model (core/CostModel.h) with the rates of the machine file, the arena, and
whether the checker proves the plan. A second table has the parts of the time. Nothing runs on a GPU: the times are a model's, and no
measurement. Exit code 1 where a plan does not fit into 80 GB or is not proven, or where a step of GPT-2 124M misses the aims that
docs/cuda-plans.md states. Models are exported without weights, which takes some
minutes the first time.
"""

import argparse
import json
import subprocess
import sys

import rounds
from rounds import BIN
from verify_time import WORK, exported

FITS = 80e9  # bytes
AIMS = {"GPT-2 124M, 16 x 1024": (290, 20e9, 34e-3)}  # commands, bytes beside products and attention, seconds
PRODUCTS = ("matmul", "linear_weight_grad")
# title, model, size, sequence, samples of a micro-batch, ranks, ZeRO stage, recompute
CASES = [("GPT-2 124M, 16 x 1024", "gpt2", "small", 1024, 16, 1, 0, "none"),
         ("GPT-2 XL, 16 x 1024", "gpt2", "xl", 1024, 16, 1, 0, "auto"),
         ("Llama 1B, 4 x 2048", "llama", "1b", 2048, 4, 1, 0, "none"),
         ("Llama 8B, 8 ranks, ZeRO-3, 1 x 8192 each", "llama", "8b", 8192, 1, 8, 3, "auto")]


def configuration(samples, stage, recompute):
    return {"train_micro_batch_size_per_gpu": samples, "gradient_accumulation_steps": 1, "gradient_clipping": 1.0, "bf16": {"enabled": True},
            "optimizer": {"type": "AdamW", "params": {"lr": 3e-4}}, "zero_optimization": {"stage": stage, "overlap_comm": True},
            "deepstatic": {"recompute": recompute}}


def compiled(args, name, size, sequence, samples, ranks, stage, recompute):
    config, plan = WORK / "cuda_config.json", WORK / "cuda.dsplan"
    config.write_text(json.dumps(configuration(samples, stage, recompute)))
    rounds.run([[BIN / "ds-opt", "compile", exported(name, size, sequence), "--config", config, "--ranks", str(ranks),
                 "--machine", args.machine, "-o", plan, "--quiet"]], args.timeout).require()
    return plan


def facts_of(plan):
    text = subprocess.run([BIN / "ds-opt", "report", plan, "--format", "json"], check=True, capture_output=True, text=True).stdout
    rank = json.loads(text)["ranks_detail"][0]
    proven = subprocess.run([BIN / "ds-opt", "verify", plan, "--quiet"], capture_output=True).returncode == 0
    return rank["commands_of_step"], rank["memory"]["device"]["arena_bytes"], proven


def total(commands, what):
    return sum(one[what] for one in commands)


def figures(commands):
    """What AIMS limits, of a report's commands."""
    rest = [one for one in commands if one["kernel"] not in PRODUCTS and "attention" not in one["kernel"]]
    return total(commands, "commands"), total(rest, "bytes"), total(commands, "seconds")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machine", default="h100x8")
    rounds.add_timeout(parser)
    args = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    rounds.require_tools("ds-opt")
    print("| plan | commands a step | bytes, GB | of these beside products and attention | by the model, ms | arena, GB | fits and is proven |\n"
          "|---|---:|---:|---:|---:|---:|---|")
    bad, kernels = False, {}
    for title, *case in CASES:
        try:
            commands, arena, proven = facts_of(compiled(args, *case))
        except rounds.Failed as why:
            sys.exit(f"error: {title}: {why}\n{why.log}")
        count, beside, seconds = figures(commands)
        good = proven and arena <= FITS
        aimed = all(value <= aim for value, aim in zip((count, beside, seconds), AIMS.get(title, ())))
        bad |= not good or not aimed
        print(f"| {title} | {count:,} | {total(commands, 'bytes') / 1e9:.1f} | {beside / 1e9:.1f} | "
              f"{1e3 * seconds:.1f}{'' if aimed else ' (an aim is missed)'} | {arena / 1e9:.1f} | {'yes' if good else 'no'} |", flush=True)
        for one in commands:
            kernels.setdefault(one["kernel"], {})[title] = f"{1e3 * one['seconds']:.2f}"
    print(f"\n| ms by the model | {' | '.join(title for title, *_ in CASES)} |\n|---|{'---:|' * len(CASES)}")
    for kernel, times in kernels.items():
        if any(float(time) >= 0.1 for time in times.values()):
            print(f"| {kernel} | {' | '.join(times.get(title, '') for title, *_ in CASES)} |")
    sys.exit(bad)


if __name__ == "__main__":
    main()
