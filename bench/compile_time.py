#!/usr/bin/env python3
"""Import and compile times of ds-opt: GPT-2 124M, Llama 160M, Llama 7B without weights. Best of three.

Prints seconds and ds-opt's peak memory beside the limits that we hold ourselves to; then Llama 7B by ZeRO stage 3 for 8 to 16,384
ranks, with the size of the plan and how much of a rank's weights, gradients and optimizer state is padding; then a Llama of 64 layers in 64
pipeline stages with 512 micro-batches, one of 100 layers with a budget half way between what it needs and the least it can do with, and
ten plans of real sizes for machine h100x8, with as much recompute as fits: by ZeRO stage 1 in pipeline stages, or by another stage. The models
are exported without weights, which takes minutes the first time; GPT 1T only with --largest.
"""

import argparse
import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import rounds
from rounds import BIN, ROOT

WORK = ROOT / "build" / "bench"
# model, size, sequence, extra options, seconds allowed, bytes allowed
CASES = [("gpt2", "small", 1024, [], 5, 500e6), ("llama", "160m", 1024, [], 5, 500e6),
         ("llama", "7b", 2048, ["--no-weights"], 30, None)]
RANKS = (8, 64, 1024, 16384)  # data-parallel
GPT_1T = ["--set", "n_layer=128", "--set", "n_embd=25600", "--set", "n_head=160"]
# model, size, sequence, extra options of the export; ranks, ZeRO stage, pipeline stages, micro-batches, seconds allowed
REAL = [("llama", "8b", 4096, [], 8, 3, 1, 1, 5), ("llama", "8b", 4096, [], 64, 2, 1, 1, 5), ("llama", "8b", 4096, [], 64, 1, 4, 16, 5),
        ("llama", "70b", 4096, [], 64, 3, 1, 1, 5), ("llama", "70b", 4096, [], 64, 3, 1, 8, 5), ("llama", "70b", 4096, [], 256, 3, 1, 1, 5),
        ("llama", "70b", 4096, [], 256, 1, 4, 16, 5), ("llama", "70b", 4096, [], 256, 1, 8, 32, 10),
        ("llama", "70b", 4096, [], 256, 1, 16, 64, 10), ("gpt2", "small", 2048, GPT_1T, 3072, 1, 64, 512, 10)]
ROUNDS = 3


def exported(folder, *arguments) -> Path:
    """An export of models/export.py in WORK, kept between runs."""
    if not (WORK / folder).exists():
        rounds.require_modules("torch", "transformers", "onnx")
        subprocess.run([sys.executable, ROOT / "models/export.py", *map(str, arguments), "--out", WORK / folder], check=True,
                       stdout=subprocess.DEVNULL)
    return WORK / folder


class Compiler:
    """ds-opt compile with one configuration, each call within a time."""

    def __init__(self, timeout):
        self.timeout, self.plan, self.config = timeout, WORK / "compile.dsplan", WORK / "compile_config.json"
        self.config.write_text(json.dumps({
            "train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 4,
            "optimizer": {"type": "AdamW", "params": {"lr": 3e-4}}}))

    def compile(self, model, *options):
        """Seconds, ds-opt's peak memory in bytes."""
        command = [BIN / "ds-opt", "compile", model, "--config", self.config, *options, "-o", self.plan, "--quiet"]
        ended = rounds.run([command], self.timeout).require()
        return ended.seconds, ended.peak_rss_bytes

    def report(self):
        ended = rounds.run([[BIN / "ds-opt", "report", self.plan, "--format", "json"]], self.timeout).require()
        return json.loads(ended.outputs[0])


def print_cases(compiler):
    runs = {}
    for name, size, sequence, more, *_ in CASES:
        model = exported(f"{name}-{size}-{sequence}", name, "--size", size, "--seq", sequence, *more)
        runs[f"{name} {size}, sequence {sequence}"] = partial(compiler.compile, model)
    results, failures = rounds.interleave(runs, ROUNDS)
    for (name, of_rounds), (*_, seconds, memory) in zip(results.items(), CASES):
        if name in failures:
            print(f"{name}: {failures[name]}")
            continue
        best, peak = min(r[0] for r in of_rounds), max(r[1] for r in of_rounds)
        limit = "" if memory is None else f" (limit {memory / 1e6:.0f})"
        print(f"{name}: import and compile {best:.2f} s (limit {seconds}), peak memory {peak / 1e6:.0f} MB{limit}", flush=True)
    return failures


def compile_for_ranks(compiler, ranks):
    """Seconds, bytes of the plan, share of padding in the state."""
    seconds, _ = compiler.compile(WORK / "llama-7b-2048", "--ranks", ranks, "--set", "zero_optimization.stage=3")
    state = [compiler.report()["ranks_detail"][0]["zero"][kind] for kind in ("weights", "gradients", "optimizer")]
    return seconds, compiler.plan.stat().st_size, sum(s["rank_padding"] for s in state) / sum(s["rank_bytes"] for s in state)


def print_by_ranks(compiler):
    runs = {f"llama 7b, ZeRO stage 3, {ranks} ranks": partial(compile_for_ranks, compiler, ranks) for ranks in RANKS}
    results, failures = rounds.interleave(runs, ROUNDS)
    best, sizes = [], []
    for name, of_rounds in results.items():
        if name in failures:
            print(f"{name}: {failures[name]}")
            continue
        best.append(min(seconds for seconds, *_ in of_rounds))
        _, size, padding = of_rounds[-1]
        sizes.append(size)
        print(f"{name}: {best[-1]:.2f} s (limit 60), plan of {size:,} bytes, padding {padding:.2%} of state")
    if best:
        print(f"slowest / fastest: {max(best) / min(best):.2f} (limit 1.20), largest / smallest plan: {max(sizes) / min(sizes):.3f}", flush=True)
    return failures


def llama_of(layers) -> Path:
    """Llama 7B with as many layers."""
    return exported(f"llama-{layers}-layers", "llama", "--size", "7b", "--seq", 2048, "--no-weights", "--set", f"num_hidden_layers={layers}")


def best_of(name, run):
    """(least seconds of ROUNDS, failures)."""
    results, failures = rounds.interleave({name: run}, ROUNDS)
    if failures:
        print(f"{name}: {failures[name]}")
    return min((seconds for seconds, _ in results[name]), default=None), failures


def print_stages(compiler, stages, microbatches):
    name = f"llama of {stages} layers in {stages} stages with {microbatches} micro-batches"
    best, failures = best_of(name, partial(
        compiler.compile, llama_of(stages), "--ranks", stages, "--set", f"gradient_accumulation_steps={microbatches}",
        "--set", f"deepstatic.pipeline.stages={stages}"))
    if not failures:
        print(f"{name}: {best:.2f} s (limit 10), plan of {compiler.plan.stat().st_size:,} bytes", flush=True)
    return failures


def print_budget(compiler, layers):
    name, model, needs = f"llama of {layers} layers within a budget", llama_of(layers), []
    for recompute in ("none", "full"):
        compiler.compile(model, "--set", f'deepstatic.recompute="{recompute}"')
        needs.append(compiler.report()["ranks_detail"][0]["memory"]["device"]["arena_bytes"])
    best, failures = best_of(name, partial(compiler.compile, model, "--device-memory", sum(needs) // 2))
    if not failures:
        device = compiler.report()["ranks_detail"][0]["memory"]["device"]
        print(f"llama of {layers} layers within {sum(needs) / 2e9:.1f} GB, of {needs[0] / 1e9:.1f} and at least {needs[1] / 1e9:.1f}: "
              f"import and compile {best:.2f} s (limit 20), arena {device['arena_bytes'] / 1e9:.1f} GB, "
              f"{device['arena_bytes'] / device['peak_live_bytes'] - 1:.2%} above the peak")
    return failures


def print_real(compiler, largest):
    """Once each. What fits nowhere is to say so as soon."""
    failed = False
    for name, size, sequence, more, ranks, zero, stages, microbatches, limit in REAL:
        if more and not largest:
            continue
        model = exported(f"{name}-{size}-{sequence}-{len(more)}", name, "--size", size, "--seq", sequence, "--no-weights", *more)
        compiler.config.write_text(json.dumps({
            "train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": microbatches, "bf16": {"enabled": True},
            "zero_optimization": {"stage": zero}, "optimizer": {"type": "AdamW", "params": {"lr": 3e-4}}, "gradient_clipping": 1.0,
            "deepstatic": {"recompute": "auto", **({"pipeline": {"stages": stages}} if stages > 1 else {})}}))
        command = [BIN / "ds-opt", "compile", model, "--config", compiler.config, "--ranks", ranks, "--machine", "h100x8", "-o", compiler.plan,
                   "--quiet"]
        ended = rounds.run([command], compiler.timeout)
        outcome = "it fits"
        if ended.failed:
            outcome = "it does not fit" if " needs " in ended.failed.log else str(ended.failed)
            failed |= outcome != "it does not fit"
        title = "GPT 1T" if more else f"{name} {size}"
        print(f"{title}, sequence {sequence}, {ranks} ranks, ZeRO stage {zero}, {stages} stages with {microbatches} micro-batches: "
              f"{ended.seconds:.1f} s (limit {limit}), {outcome}", flush=True)
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    rounds.add_timeout(parser)
    parser.add_argument("--largest", action="store_true", help="GPT 1T, too")
    args = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    rounds.require_tools("ds-opt")
    compiler, failed = Compiler(args.timeout), False
    for part in (print_cases, print_by_ranks, partial(print_stages, stages=64, microbatches=512), partial(print_budget, layers=100),
                 partial(print_real, largest=args.largest)):
        try:
            failed |= bool(part(compiler))
        except rounds.Failed as why:  # outside its rounds
            print(why, why.log, sep="\n")
            failed = True
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
