#!/usr/bin/env python3
"""What `ds-opt check` says of GPT-2 124M, Llama 7B and 70B on machine h100x8, 8 to 1,024 ranks, graphs without weights.

Prints the table of docs/check.md and the seconds of each call; --write puts the table there. Then how long the checker takes
for plans of 16,384 ranks. Exports go to build/bench.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OPT = ROOT / "build" / "release" / "bin" / "ds-opt"
WORK = ROOT / "build" / "bench"
PAGE = ROOT / "docs" / "check.md"
MARK = "<!-- bench/check_table.py writes what follows -->\n"
MODELS = [("GPT-2 124M", "gpt2", "small", 1024), ("Llama 7B", "llama", "7b", 2048), ("Llama 70B", "llama", "70b", 2048)]
RANKS = [8, 16, 32, 64, 128, 256, 512, 1024]
SECONDS_ALLOWED = 30
CONFIG = {"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 4, "gradient_clipping": 1.0,
          "optimizer": {"type": "AdamW", "params": {"lr": 3e-4}}, "deepstatic": {"recompute": "none"}}


def exported(name, size, sequence):
    folder = WORK / f"{name}-{size}-{sequence}-no-weights"
    if not (folder / "model.onnx").exists():
        subprocess.run([sys.executable, ROOT / "models/export.py", name, "--size", size, "--seq", str(sequence),
                        "--no-weights", "--out", folder], check=True, stdout=subprocess.DEVNULL)
    return folder


def check(model, stage):
    config = WORK / "check_config.json"
    config.write_text(json.dumps({**CONFIG, "zero_optimization": {"stage": stage}}))
    begin = time.perf_counter()
    done = subprocess.run([OPT, "check", model, "--config", config, "--machine", "h100x8", "--format", "json",
                           "--ranks", ",".join(map(str, RANKS))], capture_output=True, text=True)
    seconds = time.perf_counter() - begin
    if not done.stdout:
        sys.exit(done.stderr)
    return json.loads(done.stdout), seconds


def verify_many(model):
    """Seconds to compile for 16,384 ranks, and to check that plan."""
    config, plan = WORK / "check_config.json", WORK / "many.dsplan"
    config.write_text(json.dumps({**CONFIG, "zero_optimization": {"stage": 3}}))
    seconds = []
    for arguments in (["compile", model, "--config", config, "--ranks", "16384", "-o", plan], ["verify", plan]):
        begin = time.perf_counter()
        subprocess.run([OPT, *arguments, "--quiet"], check=True)
        seconds.append(time.perf_counter() - begin)
    return seconds


def gib(count):
    return f"{count / 2**30:.1f}"


def rows(title, stage, result):
    for one in result["checks"]:
        memory, = one["memory"]
        most = max(memory["holds"], key=memory["holds"].get)
        yield (f"| {title} | {stage} | {one['ranks']:,} | {one['verdict'].replace('_', ' ')} | {gib(memory['needed_bytes'])} | "
               f"{gib(memory['phases']['init']['live_bytes'])} | {gib(memory['phases']['step']['live_bytes'])} | "
               f"{gib(memory['phases']['eval']['live_bytes'])} | {most} {gib(memory['holds'][most])} | "
               f"{gib(one['wire_bytes_per_step'])} |")


def main():
    WORK.mkdir(parents=True, exist_ok=True)
    lines = ["| model | ZeRO stage | ranks | verdict | needed | init, load, save | step | eval | held most | sent a step |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    for title, name, size, sequence in MODELS:
        model = exported(name, size, sequence)
        for stage in (2, 3):
            result, seconds = check(model, stage)
            print(f"{title}, stage {stage}, {len(RANKS)} counts of ranks: {seconds:.1f} s (limit {SECONDS_ALLOWED})",
                  file=sys.stderr)
            lines += rows(title, stage, result)
        compiled, verified = verify_many(model)
        print(f"{title}, stage 3, 16,384 ranks: compiled in {compiled:.1f} s, checked in {verified:.2f} s (limit 10)",
              file=sys.stderr)
    table = "\n".join(lines) + "\n"
    print(table)
    if "--write" in sys.argv[1:]:
        text = PAGE.read_text()
        PAGE.write_text(text[:text.index(MARK) + len(MARK)] + table)


if __name__ == "__main__":
    main()
