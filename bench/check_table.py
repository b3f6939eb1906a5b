#!/usr/bin/env python3
"""What `ds-opt check` says of GPT-2 124M, Llama 7B and 70B on machine h100x8, 8 to 1,024 ranks, graphs without weights.

Prints the table of docs/check.md and the seconds of each call; --write puts the table there. Exports go to build/bench.
"""

import argparse
import json
import subprocess
import sys

import rounds
from rounds import BIN, ROOT

OPT = BIN / "ds-opt"
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
        rounds.require_modules("torch", "transformers", "onnx")
        subprocess.run([sys.executable, ROOT / "models/export.py", name, "--size", size, "--seq", str(sequence),
                        "--no-weights", "--out", folder], check=True, stdout=subprocess.DEVNULL)
    return folder


def check(model, stage, timeout):
    config = WORK / "check_config.json"
    config.write_text(json.dumps({**CONFIG, "zero_optimization": {"stage": stage}}))
    ended = rounds.run([[OPT, "check", model, "--config", config, "--machine", "h100x8", "--format", "json",
                         "--ranks", ",".join(map(str, RANKS))]], timeout)
    if not ended.outputs[0]:  # a verdict that some do not fit has a status of its own, and a table
        ended.require()
    return json.loads(ended.outputs[0]), ended.seconds


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


def say(text):
    print(text, file=sys.stderr, flush=True)


def table_of(timeout):
    lines = ["| model | ZeRO stage | ranks | verdict | needed | init, load, save | step | eval | held most | sent a step |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    for title, name, size, sequence in MODELS:
        model = exported(name, size, sequence)
        for stage in (2, 3):
            result, seconds = check(model, stage, timeout)
            say(f"{title}, stage {stage}, {len(RANKS)} counts of ranks: {seconds:.1f} s (limit {SECONDS_ALLOWED})")
            lines += rows(title, stage, result)
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the table into docs/check.md")
    rounds.add_timeout(parser)
    args = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    rounds.require_tools("ds-opt")
    try:
        table = table_of(args.timeout)
    except rounds.Failed as why:
        sys.exit(f"error: {why}\n{why.log}")
    print(table)
    if args.write:
        text = PAGE.read_text()
        PAGE.write_text(text[:text.index(MARK) + len(MARK)] + table)


if __name__ == "__main__":
    main()
