#!/usr/bin/env python3
"""Training steps of GPT-2 on one GPU: ds-run beside PyTorch with torch.compile, in one interleaved run. Needs rounds.py beside it and nothing else.

    gpu_step.py --prepare FOLDER      where ds-opt and build/venv are: a plan without weights for each size, and what it computes
    gpu_step.py FOLDER                where a GPU is: Python and ds-run; PyTorch takes part if it is there and knows CUDA

Every round runs each contender once, in a process of its own. Prints one JSON line a contender and size: tokens/s, seconds of a step (best
and median), model FLOPs utilisation (matrix products of a step, recomputed ones left out, by the GPU's dense peak), memory; then the ratio.
"""

import argparse
import json
import os
import random
import statistics
import struct
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import rounds

HERE = Path(__file__).resolve().parent
# layers, width, heads, samples of a micro-batch of 1024 tokens
SIZES = {"small": (12, 768, 12, 16), "xl": (48, 1600, 25, 4)}
SEQUENCE, VOCABULARY, BATCHES = 1024, 50257, 4
# Dense FLOP/s by NVIDIA's data sheets: bfloat16, and float32 without TF32.
PEAKS = {"H200": (989.5e12, 67e12), "H100 PCIe": (756e12, 51e12), "H100": (989.5e12, 67e12), "A100": (312e12, 19.5e12)}
CONFIG = {"gradient_accumulation_steps": 1, "gradient_clipping": 1.0,
          "optimizer": {"type": "AdamW", "params": {"lr": 3e-4, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1}}}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--machine", default="h200x1", help="what --prepare compiles for (%(default)s)")
    parser.add_argument("--bin", type=Path, help="where ds-run (for --prepare: ds-opt) is")
    parser.add_argument("--sizes", nargs="+", choices=tuple(SIZES), default=["small", "xl"])
    parser.add_argument("--dtype", choices=("bfloat16", "float32"), default="bfloat16")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=20, help="measured steps of a round")
    parser.add_argument("--warmup", type=int, default=5)
    rounds.add_timeout(parser)
    parser.add_argument("--peak", type=float, help="FLOP/s of the GPU, where its name is not known here")
    parser.add_argument("--torch-worker", choices=tuple(SIZES), help=argparse.SUPPRESS)
    return parser.parse_args()


def prepare(args):
    """Plans with values drawn at the start, so that they are small; sizes that ds-opt refuses are named and left out."""
    args.folder.mkdir(parents=True, exist_ok=True)
    binaries = args.bin or HERE.parent / "build" / "dev" / "bin"
    for size in args.sizes:
        model, config = args.folder / f"model-{size}", args.folder / "ds_config.json"
        subprocess.run([sys.executable, HERE.parent / "models/export.py", "gpt2", "--size", size, "--seq", str(SEQUENCE), "--no-weights",
                        "--out", model], check=True, stdout=subprocess.DEVNULL)
        config.write_text(json.dumps({**CONFIG, "train_micro_batch_size_per_gpu": SIZES[size][3],
                                      **({"bf16": {"enabled": True}} if args.dtype == "bfloat16" else {})}))
        plan = args.folder / f"{size}-{args.dtype}.dsplan"
        done = subprocess.run([binaries / "ds-opt", "compile", model, "--config", config, "--machine", args.machine, "-o", plan],
                              text=True, capture_output=True, cwd=HERE.parent)
        subprocess.run(["rm", "-r", model], check=True)
        if done.returncode != 0:
            print(f"no plan of {size} in {args.dtype}: {done.stderr.strip().splitlines()[0]}")
            continue
        report = json.loads(subprocess.check_output([binaries / "ds-opt", "report", plan, "--format", "json"]))["ranks_detail"][0]
        flops = report["flops_per_step"] - report.get("recompute_flops_per_step", 0)
        plan.with_suffix(".json").write_text(json.dumps({"model_flops": flops, "arena_bytes": report["memory"]["device"]["arena_bytes"],
                                                         "commands": report["commands_of_step"]}))
        print(f"{plan}: {flops / 1e12:.2f} TFLOP a step")


def gpu_name(binaries):
    """The name of the first GPU, or ends with the reason why there is none."""
    info = subprocess.run([binaries / "ds-run", "info"], text=True, capture_output=True).stdout.splitlines()
    cuda = next((line.split(maxsplit=1)[1] for line in info if line.startswith("cuda ")), "this ds-run knows nothing of CUDA")
    if not cuda.startswith("available"):
        sys.exit(f"error: there is nothing to measure: {cuda}")
    return next(line for line in info if line.startswith("gpu 0")).split(maxsplit=2)[2].split(",")[0]


def peak_of(name, args):
    if args.peak:
        return args.peak
    for part, peaks in PEAKS.items():
        if part in name:
            return peaks[args.dtype == "float32"]
    sys.exit(f"error: the peak of {name} is not known here; give it in FLOP/s with --peak")


def write_tokens(path, samples):
    draw = random.Random(0)
    tokens = struct.pack(f"<{samples * SEQUENCE}q", *(draw.randrange(VOCABULARY) for _ in range(samples * SEQUENCE)))
    header = json.dumps({name: {"dtype": "I64", "shape": [samples, SEQUENCE], "data_offsets": [i * len(tokens), (i + 1) * len(tokens)]}
                         for i, name in enumerate(("input_ids", "labels"))}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + tokens * 2)


def run_ours(args, binaries, size):
    data, metrics = args.folder / f"{size}.safetensors", args.folder / "metrics.jsonl"
    if not data.exists():
        write_tokens(data, BATCHES * SIZES[size][3])
    metrics.unlink(missing_ok=True)
    rounds.run([[binaries / "ds-run", args.folder / f"{size}-{args.dtype}.dsplan", "--data", data, "--quiet", "--steps",
                 args.warmup + args.steps, "--metrics", metrics]], args.timeout).require()
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    seconds = [line["step_seconds"] for line in lines if "loss" in line]
    return {"seconds": seconds[args.warmup:], "device_bytes": lines[-1]["summary"]["ranks"][0]["device_bytes"]}


def torch_model(torch, layers, width, heads):
    """GPT-2 with a tied head; its loss is the mean over all next tokens."""
    nn, functional = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            q, k, v = (part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, -1))
            x = x + self.out(functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
            return x + self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh"))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(VOCABULARY, width), nn.Embedding(SEQUENCE, width)
            self.blocks, self.norm = nn.Sequential(*(Block() for _ in range(layers))), nn.LayerNorm(width)

        def forward(self, ids):
            x = self.norm(self.blocks(self.tokens(ids) + self.places.weight))
            logits = functional.linear(x, self.tokens.weight)[:, :-1]
            return functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())

    return Model()


def torch_worker(args):
    """One round of PyTorch: prints step seconds and peak memory as JSON, or nothing where PyTorch has no CUDA."""
    try:
        import torch
    except ImportError:
        return
    if not torch.cuda.is_available():
        return
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    layers, width, heads, batch = SIZES[args.torch_worker]
    model = torch_model(torch, layers, width, heads).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    forward = torch.compile(model)
    tokens = torch.randint(VOCABULARY, (BATCHES, batch, SEQUENCE), device="cuda")
    seconds = []
    for step in range(args.warmup + args.steps):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16, enabled=args.dtype == "bfloat16"):
            loss = forward(tokens[step % BATCHES])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss.item()
        seconds.append(time.perf_counter() - begin)
    print(json.dumps({"seconds": seconds[args.warmup:], "device_bytes": torch.cuda.max_memory_allocated()}))


def run_torch(args, size):
    environment = {"PYTHONWARNINGS": "ignore"}
    if "DS_LIBRARY_PATH_BEFORE" in os.environ:  # gpu_env.sh: PyTorch has libraries of its own
        environment["LD_LIBRARY_PATH"] = os.environ["DS_LIBRARY_PATH_BEFORE"]
    ended = rounds.run([[sys.executable, __file__, args.folder, "--torch-worker", size, "--dtype", args.dtype, "--steps", args.steps,
                         "--warmup", args.warmup]], args.timeout, ["PyTorch"], [environment]).require()
    lines = ended.outputs[0].splitlines()
    if not lines:
        raise rounds.Failed("there is no PyTorch that knows CUDA")
    return json.loads(lines[-1])


def measure(args, binaries, size, name, peak):
    flops = json.loads((args.folder / f"{size}-{args.dtype}.json").read_text())["model_flops"]
    of_all, failures = rounds.interleave({"ds-run": partial(run_ours, args, binaries, size), "torch.compile": partial(run_torch, args, size)},
                                         args.rounds)
    tokens, best = SIZES[size][3] * SEQUENCE, {}
    for contender, results in of_all.items():
        if contender in failures:
            print(json.dumps({"contender": contender, "model": f"gpt2 {size}", "dtype": args.dtype, "failed": failures[contender]}))
        if not results:
            continue
        seconds = [s for result in results for s in result["seconds"]]
        best[contender] = min(seconds)
        print(json.dumps({"contender": contender, "gpu": name, "model": f"gpt2 {size}", "dtype": args.dtype, "tokens_per_step": tokens,
                          "step_seconds_best": min(seconds), "step_seconds_median": statistics.median(seconds),
                          "tokens_per_s_best": tokens / min(seconds), "tokens_per_s_median": tokens / statistics.median(seconds),
                          "mfu_best": flops / min(seconds) / peak, "mfu_median": flops / statistics.median(seconds) / peak,
                          "device_bytes": max(result["device_bytes"] for result in results)}), flush=True)
    if len(best) == 2:
        print(json.dumps({"model": f"gpt2 {size}", "ratio_to_torch_compile": best["torch.compile"] / best["ds-run"]}))


def main():
    args = parse()
    if args.prepare:
        return prepare(args)
    if args.torch_worker:
        return torch_worker(args)
    binaries = args.bin or next((folder for folder in (HERE.parent / "bin", HERE.parent / "build/cuda/bin") if (folder / "ds-run").exists()),
                                None)
    if binaries is None:
        sys.exit("error: there is no ds-run beside this script; name its folder with --bin")
    name = gpu_name(binaries)
    peak = peak_of(name, args)
    for size in args.sizes:
        if (args.folder / f"{size}-{args.dtype}.dsplan").exists():
            measure(args, binaries, size, name, peak)
        else:
            print(f"there is no plan of {size} in {args.dtype} in {args.folder}; make it with --prepare", file=sys.stderr)


if __name__ == "__main__":
    main()
