#!/usr/bin/env python3
"""Trains small models by every strategy on GPUs and compares them with the processor.

    gpu_cases.py make FOLDER --bin BIN    where ds-opt and build/venv are: models, data, two plans a case
    gpu_cases.py run FOLDER --bin BIN     where a GPU is; needs nothing but Python and ds-run

A case passes when losses are within 1e-4 (16 bits: 2 %) of those of the plan for the cpu, two runs on the GPU have the same bits of
losses and weights, and the arenas have the bytes that the plan says. Ends with `N passed, N failed, N skipped`.
"""

import argparse
import json
import random
import struct
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STEPS, SEQUENCE, VOCABULARY, SAMPLES = 6, 64, 256, 64
MODELS = {"gpt2": ("gpt2",), "gpt2-dropout": ("gpt2", "--dropout", "0.1"), "llama": ("llama",)}
# name: model, ranks, what of ds_config.json is not CONFIG
CASES = {
    "gpt2": ("gpt2", 1, {}),
    "llama": ("llama", 1, {}),
    "accumulation": ("gpt2", 1, {"gradient_accumulation_steps": 4}),
    "clipping": ("gpt2", 1, {"gradient_clipping": 0.1}),
    "dropout": ("gpt2-dropout", 1, {"gradient_accumulation_steps": 2}),
    "recompute": ("llama", 1, {"deepstatic": {"recompute": "full"}}),
    **{f"zero{stage}": ("llama", 2, {"zero_optimization": {"stage": stage}}) for stage in range(4)},
    "zero3-overlap": ("gpt2", 4, {"zero_optimization": {"stage": 3, "overlap_comm": True}}),
    **{schedule: ("gpt2", 2, {"gradient_accumulation_steps": 4, "deepstatic": {"pipeline": {"stages": 2, "schedule": schedule}}})
       for schedule in ("gpipe", "1f1b", "zb-h1")},
    "1f1b-zero2": ("llama", 4, {"gradient_accumulation_steps": 4, "deepstatic": {"pipeline": {"stages": 2}}, "zero_optimization": {"stage": 2}}),
    "bf16": ("gpt2", 1, {"bf16": {"enabled": True}}),
    "bf16-zero3": ("llama", 2, {"bf16": {"enabled": True}, "zero_optimization": {"stage": 3}}),
    "fp16": ("gpt2", 1, {"fp16": {"enabled": True}}),
}
CONFIG = {"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 1, "gradient_clipping": 0,
          "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "weight_decay": 0.1}}}
MACHINES = {"cpu": {"threads": 2, "alignment": 64, "workspace_bytes_per_thread": "4MiB"},
            "cuda": {"isa": "sm_80", "alignment": 512, "workspace_bytes_per_thread": "32MiB", "reserve_bytes": "1GiB"}}


def write_tokens(path):
    """input_ids and labels, as safetensors, by hand: the other machine has no numpy."""
    draw = random.Random(0)
    tokens = struct.pack(f"<{SAMPLES * SEQUENCE}q", *(draw.randrange(VOCABULARY) for _ in range(SAMPLES * SEQUENCE)))
    header = json.dumps({name: {"dtype": "I64", "shape": [SAMPLES, SEQUENCE], "data_offsets": [i * len(tokens), (i + 1) * len(tokens)]}
                         for i, name in enumerate(("input_ids", "labels"))}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + tokens * 2)


def make(folder, binaries):
    folder.mkdir(parents=True, exist_ok=True)
    write_tokens(folder / "data.safetensors")
    for model, arguments in MODELS.items():
        subprocess.run([sys.executable, ROOT / "models/export.py", *arguments, "--size", "tiny", "--seq", str(SEQUENCE), "--out",
                        folder / model], check=True, stdout=subprocess.DEVNULL)
    for device, machine in MACHINES.items():
        (folder / f"{device}.json").write_text(json.dumps({"name": f"test-{device}", "device": device, **machine}))
    left_out = {}
    for name, (model, ranks, more) in CASES.items():
        (folder / f"{name}.json").write_text(json.dumps({**CONFIG, **more}))
        for device in MACHINES:
            done = subprocess.run([binaries / "ds-opt", "compile", folder / model, "--config", folder / f"{name}.json", "--machine",
                                   folder / f"{device}.json", "--ranks", str(ranks), "-o", folder / f"{name}.{device}.dsplan"],
                                  text=True, capture_output=True)
            if done.returncode != 0:
                left_out[name] = done.stderr.strip().splitlines()[0]
    (folder / "left_out.json").write_text(json.dumps(left_out))
    for name, why in left_out.items():
        print(f"no plan of {name}: {why}")
    print(f"{len(CASES) - len(left_out)} of {len(CASES)} cases in {folder}")


def train(folder, binaries, plan, *more):
    """Losses, the summary of ranks and the exported weights; or an error's text."""
    metrics, weights = folder / "metrics.jsonl", folder / "weights.safetensors"
    for path in (metrics, weights):
        path.unlink(missing_ok=True)
    try:
        done = subprocess.run([binaries / "ds-run", plan, "--data", folder / "data.safetensors", "--steps", str(STEPS), "--seed", "7",
                               "--quiet", "--metrics", metrics, "--export", weights, *more], text=True, capture_output=True, timeout=300)
    except subprocess.TimeoutExpired:
        return "it did not end within 300 s"
    if done.returncode != 0:
        return done.stderr.strip() or f"ds-run ended with {done.returncode}"
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    return [line["loss"] for line in lines if "loss" in line], lines[-1]["summary"]["ranks"], weights.read_bytes()


def judge(folder, binaries, name):
    """What is wrong with a case, or an empty text."""
    runs = [train(folder, binaries, folder / f"{name}.{device}.dsplan") for device in ("cpu", "cuda", "cuda")]
    for run in runs:
        if isinstance(run, str):
            return run
    (expected, _, _), (losses, ranks, weights), again = runs
    tolerance = 2e-2 if "16" in name else 1e-4
    for step, (ours, theirs) in enumerate(zip(losses, expected), 1):
        if not abs(ours - theirs) <= tolerance * abs(theirs):
            return f"loss of step {step} is {ours}, on the cpu {theirs}"
    if losses != again[0] or weights != again[2]:
        return "two runs differ in " + ("losses" if losses != again[0] else "weights alone")
    if any(rank["device_bytes"] == 0 for rank in ranks):
        return "a rank has no device memory"
    return ""


def run(folder, binaries):
    left_out = json.loads((folder / "left_out.json").read_text())
    failed = 0
    for name in CASES:
        if name in left_out:
            print(f"skipped {name}: {left_out[name]}", flush=True)
            continue
        wrong = judge(folder, binaries, name)
        failed += bool(wrong)
        print(f"FAILED {name}: {wrong}" if wrong else f"passed {name}", flush=True)
    print(f"{len(CASES) - len(left_out) - failed} passed, {failed} failed, {len(left_out)} skipped")
    sys.exit(1 if failed else 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("make", "run", "count"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--bin", type=Path, default=ROOT / "build" / "cuda" / "bin")
    args = parser.parse_args()
    if args.what == "count":
        return print(len(CASES))
    (make if args.what == "make" else run)(args.folder.resolve(), args.bin.resolve())


if __name__ == "__main__":
    main()
