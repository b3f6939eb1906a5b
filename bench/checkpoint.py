#!/usr/bin/env python3
"""What saving costs a step: GPT-2 124M in fp32, ds-run --save beside torch.distributed.checkpoint's async_save, in one interleaved run.

Every round trains once without saving and once with a save after every --interval steps, ds-run and PyTorch in turn. A step's stall is the
mean step with saving less the mean step without, as a share of the latter; all steps of a save count, also those that wait. Prints
one JSON line per contender and round, and a table. --size tiny shows that it works, not what it costs.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time

import rounds
from rounds import BIN, ROOT

WORK = ROOT / "build" / "bench" / "checkpoint"
CONFIG = {"gradient_accumulation_steps": 1, "gradient_clipping": 0,
          "optimizer": {"type": "AdamW", "params": {"lr": 3e-4, "weight_decay": 0.1}}}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="small")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--seq", type=int, default=256)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=20, help="of a round, the first two not counted")
    parser.add_argument("--interval", type=int, default=5, help="steps between saves")
    parser.add_argument("--bin", default=BIN, help="folder of ds-opt and ds-run (%(default)s)")
    rounds.add_timeout(parser)
    parser.add_argument("--worker", choices=["plain", "saving"], help=argparse.SUPPRESS)
    return parser.parse_args()


def make_work(args):
    """Model, data and plan in build/bench/checkpoint."""
    rounds.require_modules("numpy", "safetensors", "torch", "transformers")
    import numpy
    from safetensors.numpy import save_file
    WORK.mkdir(parents=True, exist_ok=True)
    model = WORK / f"gpt2-{args.size}-{args.seq}"
    if not (model / "model.onnx").exists():
        subprocess.run([sys.executable, ROOT / "models/export.py", "gpt2", "--size", args.size, "--seq", str(args.seq), "--out", model], check=True)
    tokens = numpy.random.default_rng(0).integers(0, 256, (8 * args.batch, args.seq), dtype=numpy.int64)
    save_file({"input_ids": tokens, "labels": tokens}, WORK / "data.safetensors")
    config = {"train_micro_batch_size_per_gpu": args.batch, **CONFIG}
    (WORK / "config.json").write_text(json.dumps(config))
    plan = WORK / "plan.dsplan"
    subprocess.run([f"{args.bin}/ds-opt", "compile", model, "--config", WORK / "config.json", "--ranks", "1", "-o", plan, "--quiet"], check=True)
    return plan


def ds_run(args, plan, saving):
    """Seconds of the counted steps."""
    metrics, folder = WORK / "metrics.jsonl", WORK / "saved"
    subprocess.run(["rm", "-rf", metrics, folder], check=True)
    save = ["--save", folder, "--save-interval", str(args.interval), "--keep", "1"] if saving else []
    # Wall time from line to line: step_seconds leaves out what happens between steps.
    process = subprocess.Popen([f"{args.bin}/ds-run", plan, "--data", WORK / "data.safetensors", "--steps", str(args.steps), "--threads",
                                str(args.threads), "--metrics", "/dev/stdout", "--quiet", *save], stdout=subprocess.PIPE, text=True)
    times = [time.perf_counter() for line in process.stdout if '"loss"' in line]
    if process.wait(args.timeout) != 0 or len(times) != args.steps:
        raise rounds.Failed("ds-run did not end well")
    return times[-1] - times[1]


def worker(args):
    """PyTorch eager with async_save, in a process of its own; prints the seconds of the counted steps."""
    import torch
    import torch.distributed as dist
    import torch.distributed.checkpoint as checkpoint
    from transformers import GPT2Config, GPT2LMHeadModel
    torch.set_num_threads(args.threads)
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:0", rank=0, world_size=1)
    sizes = {"tiny": dict(n_layer=2, n_embd=32, n_head=2), "small": {}}[args.size]
    model = GPT2LMHeadModel(GPT2Config(n_positions=args.seq, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, **sizes)).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1, fused=True)
    tokens = torch.randint(0, 256, (args.batch, args.seq), generator=torch.Generator().manual_seed(0))
    pending, begin = None, 0
    for step in range(args.steps):
        if step == 2:
            begin = time.perf_counter()
        model(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if args.worker == "saving" and (step + 1) % args.interval == 0 and step + 1 < args.steps:  # as ds-run: the last is not timed
            if pending:
                pending.result()
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            pending = checkpoint.async_save(state, checkpoint_id=str(WORK / "torch" / str(step)))
    print(json.dumps(time.perf_counter() - begin))
    if pending:
        pending.result()
    dist.destroy_process_group()


def pytorch(args, saving):
    subprocess.run(["rm", "-rf", WORK / "torch"], check=True)
    words = [sys.executable, __file__, "--worker", "saving" if saving else "plain"]
    for name in ("size", "batch", "seq", "threads", "steps", "interval"):
        words += [f"--{name}", str(getattr(args, name))]
    done = subprocess.run(words, capture_output=True, text=True, timeout=args.timeout)
    if done.returncode != 0:
        raise rounds.Failed("PyTorch did not end well", done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])


def main():
    args = parse()
    if args.worker:
        worker(args)
        return
    plan = make_work(args)
    seconds = {}
    for number in range(args.rounds):
        for name, run in (("ds-run", lambda saving: ds_run(args, plan, saving)), ("async_save", lambda saving: pytorch(args, saving))):
            for saving in (False, True):
                value = run(saving) / (args.steps - 2)
                seconds.setdefault((name, saving), []).append(value)
                print(json.dumps({"round": number, "contender": name, "saving": saving, "seconds_per_step": value}), flush=True)
    print("| contender | step, s | step with a save each", args.interval, "steps, s | stall |\n|---|---|---|---|")
    for name in ("ds-run", "async_save"):
        plain, saving = (statistics.median(seconds[name, one]) for one in (False, True))
        print(f"| {name} | {plain:.4f} | {saving:.4f} | {saving / plain - 1:.1%} |")


if __name__ == "__main__":
    main()
