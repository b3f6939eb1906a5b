#!/usr/bin/env python3
"""The demo: tiny GPT-2 and Llama, exported from PyTorch, trained on real text by ds-run, losses beside PyTorch's.

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
SEQUENCE, BATCH, STEPS = 128, 8, 100
LEARNING_RATE, DECAY = 1e-3, 0.1
CONFIG = {
    "train_micro_batch_size_per_gpu": BATCH, "gradient_accumulation_steps": 1, "gradient_clipping": 1.0,
    "optimizer": {"type": "AdamW", "params": {"lr": LEARNING_RATE, "weight_decay": DECAY}},
}


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


def show(name):
    print(f"\n=== {name} (tiny), {STEPS} steps of {BATCH} samples of {SEQUENCE} bytes, one rank", flush=True)
    call(sys.executable, MODELS / "export.py", name, "--size", "tiny", "--seq", SEQUENCE, "--out", name)
    call(BIN / "ds-opt", "compile", name, "--config", "ds_config.json", "-o", f"{name}.dsplan", quiet=False)
    metrics, weights = OUT / f"{name}.jsonl", OUT / f"{name}.safetensors"
    metrics.unlink(missing_ok=True)
    call(BIN / "ds-run", f"{name}.dsplan", "--data", "data.safetensors", "--steps", STEPS, "--threads", 2,
         "--metrics", metrics, "--export", weights, "--quiet")
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    ours = [line["loss"] for line in lines if "loss" in line]
    theirs = train_with_pytorch(name, OUT / "data.safetensors")
    draw_curve(ours, theirs)
    print(f"loss of step 1: ds-run {ours[0]:.6f}, PyTorch {theirs[0]:.6f}; of step 10: {ours[9]:.6f}, {theirs[9]:.6f}; "
          f"of step {STEPS}: {ours[-1]:.4f}, {theirs[-1]:.4f}")
    report = json.loads(subprocess.check_output([BIN / "ds-opt", "report", f"{name}.dsplan", "--format", "json"], cwd=OUT))
    planned = report["ranks_detail"][0]["memory"]["device"]["arena_bytes"]
    measured = lines[-1]["summary"]["ranks"][0]["device_bytes"]
    print(f"device memory: {planned:,} bytes planned, {measured:,} bytes measured")
    print(f"SHA-256 of the final weights: {hashlib.sha256(weights.read_bytes()).hexdigest()}")
    call(BIN / "ds-opt", "report", f"{name}.dsplan", "-o", f"{name}-report.txt")
    print(f"report: {(OUT / f'{name}-report.txt').relative_to(ROOT)}")


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "ds_config.json").write_text(json.dumps(CONFIG, indent=2) + "\n")
    call(sys.executable, MODELS / "prepare_data.py", "text", *TEXT, "--tokenizer", "bytes", "--seq", SEQUENCE,
         "--out", "data.safetensors")
    for name in ("gpt2", "llama"):
        show(name)


if __name__ == "__main__":
    main()
