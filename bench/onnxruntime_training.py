#!/usr/bin/env python3
"""A step of training one ONNX file: ds-run beside onnxruntime-training 1.19.2, the last one there was.

The file is a classifier of PyTorch's older exporter: a patch convolution, blocks of layer norm, attention and GELU, float32. Both train all its
parameters by AdamW on two threads. Each round runs each contender in a process of its own; printed are the median step of the best and of the median
round, and the peak of resident memory. The first losses must be equal. A first call makes an environment in build/onnxruntime-training, from PyPI.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import venv
import warnings
from pathlib import Path

import rounds

BIN = Path(os.environ.get("DS_BINARIES", rounds.BIN))
WORK = Path(__file__).resolve().parents[1] / "build" / "onnxruntime-training"
PACKAGES = ["onnxruntime-training==1.19.2", "onnx==1.16.2", "numpy<2"]
BATCH, SIDE, PATCH, CLASSES, WARM = 16, 64, 8, 10, 2


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--blocks", type=int, default=4)
    rounds.add_timeout(parser)
    parser.add_argument("--as-peer", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.as_peer:
        return peer(args.steps)
    rounds.require_modules("torch", "onnx", "safetensors")
    WORK.mkdir(parents=True, exist_ok=True)
    make_files(args)
    commands = {"ds-run": [BIN / "ds-run", WORK / "m.dsplan", "--data", WORK / "data.safetensors", "--steps", args.steps, "--threads", 2, "--quiet",
                           "--metrics", WORK / "m.jsonl"],
                "onnxruntime-training": [environment(), __file__, "--as-peer", "--steps", args.steps]}
    results = {name: [] for name in commands}
    for _ in range(args.rounds):
        for name, command in commands.items():
            (WORK / "m.jsonl").unlink(missing_ok=True)
            ended = rounds.run([[str(word) for word in command]], args.timeout).require()
            lines = (WORK / "m.jsonl").read_text().splitlines() if name == "ds-run" else ended.outputs[0].splitlines()
            steps = [json.loads(line) for line in lines if line.startswith("{") and '"step"' in line]
            results[name].append((statistics.median(step["step_seconds"] for step in steps[WARM:]), ended.peak_rss_bytes, steps[0]["loss"]))
    print(f"{'':22} {'step, ms':>10} {'median':>10} {'peak MiB':>10} {'first loss':>12}")
    for name, found in results.items():
        seconds = sorted(row[0] for row in found)
        print(f"{name:22} {1e3 * seconds[0]:10.1f} {1e3 * statistics.median(seconds):10.1f} {max(row[1] for row in found) / 2**20:10.0f} {found[0][2]:12.6f}")
    ours, theirs = (statistics.median(row[0] for row in results[name]) for name in commands)
    print(f"ds-run takes {ours / theirs:.2f} of the time")
    return int(abs(results["ds-run"][0][2] - results["onnxruntime-training"][0][2]) > 1e-4)


def make_files(args):
    import torch
    from safetensors.torch import save_file

    class Block(torch.nn.Module):
        def __init__(self, width):
            super().__init__()
            self.first, self.second = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
            self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
            self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

        def forward(self, x):
            b, t, w = x.shape
            q, k, v = (part.reshape(b, t, 4, w // 4).transpose(1, 2) for part in self.qkv(self.first(x)).split(w, -1))
            seen = torch.softmax(q @ k.transpose(-1, -2) * (w // 4) ** -0.5, -1) @ v
            x = x + self.out(seen.transpose(1, 2).reshape(b, t, w))
            return x + self.down(torch.nn.functional.gelu(self.up(self.second(x))))

    class Classifier(torch.nn.Module):
        def __init__(self, width, blocks):
            super().__init__()
            self.stem, self.blocks = torch.nn.Conv2d(3, width, PATCH, PATCH), torch.nn.Sequential(*(Block(width) for _ in range(blocks)))
            self.head = torch.nn.Linear(width, CLASSES)

        def forward(self, x):
            return self.head(self.blocks(self.stem(x).flatten(2).transpose(1, 2)).mean(1))

    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(Classifier(args.width, args.blocks), (torch.randn(BATCH, 3, SIDE, SIDE),), WORK / "m.onnx", dynamo=False, opset_version=15,
                          training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False, input_names=["x"], output_names=["logits"])
    save_file({"x": torch.randn(BATCH, 3, SIDE, SIDE), "labels": torch.randint(0, CLASSES, (BATCH,))}, WORK / "data.safetensors")
    (WORK / "c.json").write_text(json.dumps({"train_micro_batch_size_per_gpu": BATCH, "gradient_clipping": 0,
                                             "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}}))
    subprocess.run([BIN / "ds-opt", "compile", WORK / "m.onnx", "--attach-loss", "classification", "--config", WORK / "c.json", "-o", WORK / "m.dsplan", "--quiet"],
                   check=True, stderr=subprocess.DEVNULL)


def environment():
    """The Python that has the peer; it sees this one's packages behind its own."""
    python = WORK / "venv" / "bin" / "python"
    if not python.exists():
        venv.create(WORK / "venv.part", with_pip=True)
        here = next(path for path in sys.path if path.endswith("site-packages"))
        subprocess.run([WORK / "venv.part" / "bin" / "python", "-m", "pip", "install", "-qq", *PACKAGES], check=True)
        next((WORK / "venv.part" / "lib").glob("python*/site-packages")).joinpath("zz-behind.pth").write_text(here + "\n")
        (WORK / "venv.part").rename(WORK / "venv")
    return python


def peer(steps):
    import onnx
    import onnxruntime
    from onnxruntime.training import api, artifacts
    from safetensors.numpy import load_file

    model = onnx.load(WORK / "m.onnx")
    names = [tensor.name for tensor in model.graph.initializer if tensor.data_type == onnx.TensorProto.FLOAT]
    (WORK / "peer").mkdir(exist_ok=True)
    artifacts.generate_artifacts(model, requires_grad=names, loss=artifacts.LossType.CrossEntropyLoss, optimizer=artifacts.OptimType.AdamW,
                                 artifact_directory=str(WORK / "peer"))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    state = api.CheckpointState.load_checkpoint(str(WORK / "peer" / "checkpoint"))
    module = api.Module(str(WORK / "peer" / "training_model.onnx"), state, str(WORK / "peer" / "eval_model.onnx"), session_options=options)
    optimizer = api.Optimizer(str(WORK / "peer" / "optimizer_model.onnx"), module)
    optimizer.set_learning_rate(1e-4)
    data = load_file(WORK / "data.safetensors")
    module.train()
    for step in range(1, steps + 1):
        begin = time.monotonic()
        loss = module(data["x"], data["labels"])
        optimizer.step()
        module.lazy_reset_grad()
        print(json.dumps({"step": step, "loss": float(loss), "step_seconds": time.monotonic() - begin}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
