#!/usr/bin/env python3
"""A model whose state is many times the memory: GPT-2 medium (355M) in fp32 on one rank, all of it on NVMe.

State is a parameter, its gradient and two moments, 16 bytes a parameter. Parameters, gradients, moments and activations lie in a file of the rank
until a command needs them. Trains a few steps with an eighth of the state as device memory and a quarter as host memory, and as many
without offload; prints what each took. Exits with 1 unless the plan fits into both, the losses are the same to the last bit, and anonymous resident memory stays
within both and 150 MB.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import ranks
import rounds
from rounds import BIN, ROOT

WORK = ROOT / "build" / "bench" / "offload-state"
STATE = 16  # bytes a parameter
UNPLANNED = 150e6  # bytes that ds-run may hold beside its arenas
WORDS, SAMPLES = 2000, 16


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="medium", help="of GPT-2 (%(default)s)")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--seq", type=int, default=128)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device-share", type=float, default=1 / 8, help="device memory, as a share of the state (%(default)s)")
    parser.add_argument("--host-share", type=float, default=1 / 4, help="host memory, likewise (%(default)s)")
    parser.add_argument("--nvme", type=Path, default=WORK, help="folder of the rank's file (%(default)s)")
    rounds.add_timeout(parser)
    return parser.parse_args()


def ds_config(args, away):
    config = {"train_micro_batch_size_per_gpu": args.batch, "gradient_accumulation_steps": 1, "gradient_clipping": 1.0,
              "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "weight_decay": 0.1}}}
    if away:
        there = {"device": "nvme", "nvme_path": str(args.nvme)}
        config |= {"zero_optimization": {"offload_optimizer": there, "offload_param": there}, "deepstatic": {"offload": {".*": "nvme"}, "nvme_path": str(args.nvme)}}
    return config


def compile_plan(args, plan, away, *limits):
    """The report of a plan for one rank."""
    config = plan.with_suffix(".json")
    config.write_text(json.dumps(ds_config(args, away)))
    subprocess.run([BIN / "ds-opt", "compile", WORK / "model", "--config", config, "--machine", WORK / "machine.json", "-o", plan, "--quiet", *map(str, limits)], check=True)
    return json.loads(subprocess.check_output([BIN / "ds-opt", "report", plan, "--format", "json"]))


def train(args, plan):
    """Losses, seconds of a step and the summary of ds-run."""
    metrics = plan.with_suffix(".jsonl")
    metrics.unlink(missing_ok=True)
    command = [BIN / "ds-run", plan, "--data", WORK / "data.safetensors", "--quiet", "--threads", args.threads, "--steps", args.steps, "--metrics", metrics]
    rounds.run([command], args.timeout).require()
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    steps = [line for line in lines if "loss" in line]
    summary, = lines[-1]["summary"]["ranks"]
    return [step["loss"] for step in steps], min(step["step_seconds"] for step in steps), summary


def print_run(name, report, losses, seconds, summary):
    memory = report["ranks_detail"][0]["memory"]
    arenas = ", ".join(f"{space} {memory[space]['arena_bytes'] / 1e6:,.0f} MB" for space in memory)
    print(f"{name:16}{arenas}; anonymous {summary['rss_anon_bytes'] / 1e6:,.0f} MB; best step {seconds:.2f} s; losses {' '.join(f'{loss:.6f}' for loss in losses)}")


def main():
    args = parse()
    args.nvme.mkdir(parents=True, exist_ok=True)
    ranks.make_work(WORK, ["gpt2", "--size", args.size, "--seq", str(args.seq)], WORDS, SAMPLES, args.seq, threads=args.threads)
    plain, away = WORK / "plain.dsplan", WORK / "away.dsplan"
    reports = {plain: compile_plan(args, plain, False)}
    parameters = sum(parameter["bytes"] for parameter in reports[plain]["parameters"]) // 4
    state = STATE * parameters
    device, host = int(args.device_share * state), int(args.host_share * state)
    print(f"GPT-2 {args.size}, {parameters / 1e6:,.0f} M parameters, batch {args.batch} x {args.seq}: state of {state / 1e6:,.0f} MB, "
          f"device memory {device / 1e6:,.0f} MB, host memory {host / 1e6:,.0f} MB")
    reports[away] = compile_plan(args, away, True, "--device-memory", device, "--host-memory", host)
    runs = {plan: train(args, plan) for plan in (plain, away)}
    print_run("without offload", reports[plain], *runs[plain])
    print_run("with offload", reports[away], *runs[away])
    memory, (losses, _, summary) = reports[away]["ranks_detail"][0]["memory"], runs[away]
    held = {space: memory[space]["arena_bytes"] for space in ("device", "host")}
    print(f"state: {state / held['device']:.1f} times the device's arena, {state / held['host']:.1f} times the host's")
    checks = {"the arenas fit": held["device"] <= device and held["host"] <= host, "the losses are the same": losses == runs[plain][0],
              "anonymous memory is within both and 150 MB": summary["rss_anon_bytes"] <= device + host + UNPLANNED}
    for what, met in checks.items():
        print(f"{'yes' if met else 'NO':4}{what}")
    sys.exit(0 if all(checks.values()) else 1)


if __name__ == "__main__":
    main()
