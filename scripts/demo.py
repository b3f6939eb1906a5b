#!/usr/bin/env python3
"""The demo: tiny GPT-2 and Llama, exported from PyTorch, trained on real text by ds-run on one rank, on four with ZeRO-3, and in four
pipeline stages; losses beside PyTorch's.

Everything it makes lies in build/demo.
"""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "build" / "demo"
BIN = ROOT / "build" / "release" / "bin"
MODELS = ROOT / "models"
TEXT = sorted(Path("/usr/share/common-licenses").glob("*GPL-*"))
SEQUENCE, MICRO_BATCH, MICRO_BATCHES, STEPS = 128, 2, 4, 100
BATCH = MICRO_BATCH * MICRO_BATCHES
LEARNING_RATE, DECAY = 1e-3, 0.1
CONFIG = {
    "train_batch_size": BATCH, "train_micro_batch_size_per_gpu": MICRO_BATCH, "gradient_clipping": 1.0,
    "optimizer": {"type": "AdamW", "params": {"lr": LEARNING_RATE, "weight_decay": DECAY}},
}

# What is called, ranks, keys that differ. The micro-batches of a step are the same for all.
WAYS = [
    ("one rank", 1, []),
    ("4 ranks, ZeRO-3", 4, ["zero_optimization.stage=3", "zero_optimization.stage3_param_persistence_threshold=1000"]),
    ("4 stages, 1F1B", 4, ["deepstatic.pipeline.stages=4"]),
]


def call(*arguments, quiet=True):
    """Runs a tool; what it prints is shown only if it fails, or if not `quiet`."""
    arguments = [str(a) for a in arguments]
    done = subprocess.run(arguments, cwd=OUT, text=True, stdout=subprocess.PIPE if quiet else None,
                          stderr=subprocess.STDOUT if quiet else None)
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments)} gave {done.returncode}\n{done.stdout or ''}")


def train_with_pytorch(name, data):
    """The same model from the same seed, the same samples, torch.optim.AdamW: the losses of STEPS steps."""
    os.environ["TRANSFORMERS_VERBOSITY"] = "error"
    import torch
    from safetensors.torch import load_file
    sys.path.insert(0, str(MODELS))
    import export as exporter
    from exporting.sources import open_source
    module = open_source(exporter.parse([name, "--size", "tiny", "--seq", str(SEQUENCE), "--out", "unused"])).module
    columns = load_file(data)
    samples = len(columns["input_ids"])
    optimizer = torch.optim.AdamW(module.parameters(), lr=LEARNING_RATE, weight_decay=DECAY)
    losses = []
    for step in range(STEPS):
        rows = [(step * BATCH + i) % samples for i in range(BATCH)]
        optimizer.zero_grad()
        loss = module(**{key: column[rows] for key, column in columns.items()})
        loss.backward()
        torch.nn.utils.clip_grad_norm_(module.parameters(), CONFIG["gradient_clipping"])
        optimizer.step()
        losses.append(loss.item())
    return losses


def draw_curve(ours, theirs, height=12, width=72):
    """Both loss curves as text: `o` ours, `.` PyTorch's, `*` where they share a cell."""
    low, high = min(ours + theirs), max(ours + theirs)
    rows = [[" "] * width for _ in range(height)]
    for losses, mark in ((theirs, "."), (ours, "o")):
        for column in range(width):
            loss = losses[column * (len(losses) - 1) // (width - 1)]
            row = round((high - loss) / (high - low) * (height - 1))
            rows[row][column] = "*" if rows[row][column] == "." and mark == "o" else mark
    for index, row in enumerate(rows):
        print(f"{high - (high - low) * index / (height - 1):7.3f} |{''.join(row)}")
    print(" " * 8 + "+" + "-" * width)
    print(" " * 9 + f"step 1{' ' * (width - 6 - len(str(STEPS)))}{STEPS}    o ds-run   . PyTorch   * both")


def train(name, way):
    """Compiles and trains in one of the WAYS; returns the losses, bytes planned and measured, and the weights' SHA-256."""
    label, ranks, keys = WAYS[way]
    plan, metrics, weights = f"{name}-{way}.dsplan", OUT / f"{name}-{way}.jsonl", OUT / f"{name}-{way}.safetensors"
    sets = [argument for key in keys for argument in ("--set", key)]
    print(f"--- {label}", flush=True)
    call(BIN / "ds-opt", "compile", name, "--config", "ds_config.json", "--ranks", ranks, *sets, "-o", plan, quiet=False)
    metrics.unlink(missing_ok=True)
    call(BIN / "ds-run", plan, "--data", "data.safetensors", "--steps", STEPS, "--threads", 2 if ranks == 1 else 1,
         "--metrics", metrics, "--export", weights, "--quiet")
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    report = json.loads(subprocess.check_output([BIN / "ds-opt", "report", plan, "--format", "json"], cwd=OUT))
    planned = [rank["memory"]["device"]["arena_bytes"] for rank in report["ranks_detail"]]
    measured = [rank["device_bytes"] for rank in lines[-1]["summary"]["ranks"]]
    losses = [line["loss"] for line in lines if "loss" in line]
    return losses, planned, measured, hashlib.sha256(weights.read_bytes()).hexdigest(), report["numerics"]


def show(name):
    print(f"\n=== {name} (tiny), {STEPS} steps of {BATCH} samples of {SEQUENCE} bytes", flush=True)
    call(sys.executable, MODELS / "export.py", name, "--size", "tiny", "--seq", SEQUENCE, "--out", name)
    results = [train(name, way) for way in range(len(WAYS))]
    theirs = train_with_pytorch(name, OUT / "data.safetensors")
    draw_curve(results[0][0], theirs)
    print(f"{'':18}{'step 1':>10}{'step 10':>10}{'step ' + str(STEPS):>10}  bytes planned, measured (largest rank)  weights, SHA-256")
    print(f"{'PyTorch':18}{theirs[0]:10.6f}{theirs[9]:10.6f}{theirs[-1]:10.4f}")
    for (label, _, _), (losses, planned, measured, digest, _) in zip(WAYS, results):
        print(f"{label:18}{losses[0]:10.6f}{losses[9]:10.6f}{losses[-1]:10.4f}  {max(planned):>12,} {max(measured):>12,}"
              f"{'':13}{digest[:16]}...")
    for (label, _, _), result in zip(WAYS, results):
        if result[4] != "bit-equal":
            print(f"{label}: the plan says {result[4]}; the stages that share the tied embedding add up its gradient each for itself")
    page = f"{name}-report.html"
    call(BIN / "ds-opt", "report", f"{name}-2.dsplan", "--format", "html", "-o", page)
    print(f"report of the last: {(OUT / page).relative_to(ROOT)}")


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "ds_config.json").write_text(json.dumps(CONFIG, indent=2) + "\n")
    call(sys.executable, MODELS / "prepare_data.py", "text", *TEXT, "--tokenizer", "bytes", "--seq", SEQUENCE,
         "--out", "data.safetensors")
    for name in ("gpt2", "llama"):
        show(name)


if __name__ == "__main__":
    main()
