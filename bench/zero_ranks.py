#!/usr/bin/env python3
"""Data-parallel training of a 30M GPT in fp32 on 2 ranks of one thread: ZeRO 0 to 3 by ds-run beside PyTorch over gloo.

Every round runs each contender once, in processes of its own, for a few measured steps after warm-up, so that a
disturbance of the machine meets all of them. Same weights, batches and buckets, AdamW, no dropout, no clipping. ds-run's
ranks are threads of one process (`zero-N`) or processes under mpirun (`mpi-N`); peers are DistributedDataParallel (`ddp`),
FSDP2 with a group a block (`fsdp2`), and DeepSpeed (`deepspeed-N`) where --deepspeed names a Python that has it.

Prints a table of tokens/s and the ratios to the peer of each stage; then how much of the time of collectives each stage hides:
1 - (step - step without collectives) / collectives alone. The second is what the compute queue was busy in the same run; the third
comes from a plan without overlap, where nothing runs beside a collective.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BIN = ROOT / "build" / "release" / "bin"
WORK = ROOT / "build" / "bench" / "zero"
RANKS, MICRO, SEQ, VOCABULARY, SAMPLES = 2, 2, 256, 8192, 64
MODEL = ["gpt2", "--size", "small", "--seq", str(SEQ), "--set", "n_layer=8", "--set", "n_embd=512", "--set", "n_head=8",
         "--set", f"vocab_size={VOCABULARY}", "--set", f"n_positions={SEQ}"]
BLOCK = 4_000_000  # elements of a bucket: a block of the model has 3.2 million
ADAMW = {"lr": 3e-4, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.1}
OURS = [f"{kind}-{stage}" for kind in ("zero", "mpi") for stage in range(4)]
PEERS = {0: ("ddp", "deepspeed-0"), 1: ("deepspeed-1",), 2: ("deepspeed-2",), 3: ("fsdp2", "deepspeed-3")}


def ds_config(stage, overlap=True):
    """The same for ds-opt and DeepSpeed."""
    return {"train_micro_batch_size_per_gpu": MICRO, "gradient_accumulation_steps": 1, "gradient_clipping": 0.0,
            "optimizer": {"type": "AdamW", "params": ADAMW},
            "zero_optimization": {"stage": stage, "overlap_comm": overlap, "reduce_bucket_size": BLOCK,
                                  "allgather_bucket_size": BLOCK, "stage3_prefetch_bucket_size": BLOCK}}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=4, help="measured steps of a round")
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--contenders", nargs="*", default=[*OURS, "ddp", "fsdp2"])
    parser.add_argument("--deepspeed", metavar="PYTHON", help="a Python with torch and deepspeed; adds deepspeed-0 to deepspeed-3")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.deepspeed and not args.worker:
        args.contenders += [f"deepspeed-{stage}" for stage in range(4)]
    return args


def make_work():
    """Model, data and plans in build/bench; the model is kept between runs."""
    import numpy
    from safetensors.numpy import save_file
    WORK.mkdir(parents=True, exist_ok=True)
    if not (WORK / "model").exists():
        subprocess.run([sys.executable, ROOT / "models/export.py", *MODEL, "--out", WORK / "model"], check=True,
                       stdout=subprocess.DEVNULL)
    tokens = numpy.random.default_rng(0).integers(0, VOCABULARY, (SAMPLES, SEQ), dtype=numpy.int64)
    save_file({"input_ids": tokens, "labels": tokens}, WORK / "data.safetensors")
    machine = {"name": "bench", "device": "cpu", "threads": 1, "workspace_bytes_per_thread": "8MiB", "alignment": 64}
    (WORK / "machine.json").write_text(json.dumps(machine))
    for stage in range(4):
        for overlap in (True, False):
            (WORK / "c.json").write_text(json.dumps(ds_config(stage, overlap)))
            subprocess.run([BIN / "ds-opt", "compile", WORK / "model", "--config", WORK / "c.json", "--machine",
                            WORK / "machine.json", "--ranks", str(RANKS), "-o", plan_of(stage, overlap), "--quiet"], check=True)


def plan_of(stage, overlap=True):
    return WORK / f"{stage}{'' if overlap else '-apart'}.dsplan"


# --- ds-run


def run_ours(args, kind, plan, *more):
    """Step seconds and losses."""
    metrics = WORK / "metrics.jsonl"
    metrics.unlink(missing_ok=True)
    # Unbound: a rank's communication has a thread of its own, as gloo's has.
    launch = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", RANKS] if kind == "mpi" else []
    ranks = [] if kind == "mpi" else ["-n", RANKS]
    command = [*launch, BIN / "ds-run", plan, *ranks, "--data", WORK / "data.safetensors", "--quiet", "--threads", 1, "--steps",
               args.warmup + args.steps, "--metrics", metrics, *more]
    environment = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_NUM_THREADS": "1"}
    subprocess.run([str(word) for word in command], check=True, env={**os.environ, **environment})
    steps = [line for line in map(json.loads, metrics.read_text().splitlines()) if "loss" in line]
    return {"seconds": [step["step_seconds"] for step in steps[args.warmup:]], "losses": [step["loss"] for step in steps]}


def traced(args, kind, stage, overlap):
    """Seconds of a step and rank: (all of it, the compute queue's commands, collectives)."""
    trace = WORK / "trace.json"
    seconds = run_ours(args, kind, plan_of(stage, overlap), "--trace", trace)["seconds"]
    events = json.loads(trace.read_text())["traceEvents"]
    compute = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name" and e["args"]["name"] == "compute"}
    busy = {False: 0.0, True: 0.0}
    for event in events:
        if event["ph"] != "X" or event["args"]["step"] < args.warmup:
            continue
        if (event["pid"], event["tid"]) in compute or event["cat"] == "collective":
            busy[event["cat"] == "collective"] += event["dur"] / 1e6 / RANKS / args.steps
    return statistics.mean(seconds), busy[False], busy[True]


def print_hidden(args):
    print("\nshare of the time of collectives that is hidden (seconds a step, mean)")
    print(f"{'':8}{'step':>9}{'without':>9}{'alone':>9}{'hidden':>8}")
    for kind in ("zero", "mpi"):
        for stage in range(4):
            step, without, _ = traced(args, kind, stage, overlap=True)
            *_, alone = traced(args, kind, stage, overlap=False)
            print(f"{kind}-{stage:<3}{step:9.4f}{without:9.4f}{alone:9.4f}{1 - (step - without) / alone:8.0%}")


# --- PyTorch and DeepSpeed


def run_peer(args, contender):
    """Every rank is a process of this file; rank 0 prints the result."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    python = args.deepspeed if contender.startswith("deepspeed") else sys.executable
    command = [python, __file__, "--worker", contender, "--steps", str(args.steps), "--warmup", str(args.warmup)]
    ranks = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={
        **os.environ, "OMP_NUM_THREADS": "1", "DS_ACCELERATOR": "cpu", "RANK": str(rank), "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(RANKS), "LOCAL_WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)})
        for rank in range(RANKS)]
    outputs = [rank.communicate() for rank in ranks]
    results = [line for line in outputs[0][0].splitlines() if line.startswith("{")]
    if not results:  # FSDP2 may end badly once it has printed its line
        sys.exit(f"{contender} ended with status {ranks[0].returncode}\n{outputs[0][1][-2000:]}")
    return json.loads(results[-1])


def worker(args):
    import torch
    import torch.distributed as dist
    from safetensors.torch import load_file
    torch.set_num_threads(1)
    sys.path.insert(0, str(ROOT / "models"))
    os.environ["HF_HUB_OFFLINE"] = "1"
    import export as exporter
    from exporting.sources import open_source
    module = open_source(exporter.parse([*MODEL, "--out", "x"])).module
    train = deepspeed_step(module, args.worker) if args.worker.startswith("deepspeed") else torch_step(module, args.worker)
    rank, columns, seconds, losses = dist.get_rank(), load_file(WORK / "data.safetensors"), [], []
    for step in range(args.warmup + args.steps):
        first = (step * RANKS + rank) * MICRO % SAMPLES
        batch = {name: column[first:first + MICRO] for name, column in columns.items()}
        dist.barrier()
        begin = time.perf_counter()
        loss = train(batch).detach().clone()
        dist.all_reduce(loss)
        losses.append(loss.item() / RANKS)
        seconds.append(time.perf_counter() - begin)
    if rank == 0:
        print(json.dumps({"seconds": seconds[args.warmup:], "losses": losses}), flush=True)
    dist.barrier()
    dist.destroy_process_group()


def torch_step(module, strategy):
    import torch
    import torch.distributed as dist
    dist.init_process_group("gloo")
    if strategy == "ddp":
        model = torch.nn.parallel.DistributedDataParallel(module, bucket_cap_mb=BLOCK * 4 / 1e6)
    else:
        from torch.distributed.fsdp import fully_shard
        mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (RANKS,))
        for block in module.transformer.h:
            fully_shard(block, mesh=mesh)
        model = fully_shard(module, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), **ADAMW, fused=True)

    def step(batch):
        optimizer.zero_grad(set_to_none=True)
        loss = model(**batch)
        loss.backward()
        optimizer.step()
        return loss
    return step


def deepspeed_step(module, contender):
    import deepspeed
    config = ds_config(int(contender[-1]))
    engine, *_ = deepspeed.initialize(model=module, model_parameters=module.parameters(), config=config)

    def step(batch):
        loss = engine(**batch)
        engine.backward(loss)
        engine.step()
        return loss
    return step


# --- the table


def main():
    args = parse()
    if args.worker:
        return worker(args)
    make_work()
    results = {contender: [] for contender in args.contenders}
    for _ in range(args.rounds):
        for contender in args.contenders:
            kind, _, stage = contender.partition("-")
            ours = kind in ("zero", "mpi")
            results[contender].append(run_ours(args, kind, plan_of(int(stage))) if ours else run_peer(args, contender))
    tokens = RANKS * MICRO * SEQ
    rates = {name: (tokens / min(s for r in rounds for s in r["seconds"]),
                    tokens / statistics.median(s for r in rounds for s in r["seconds"])) for name, rounds in results.items()}
    first = next(iter(results.values()))[0]["losses"]
    apart = max(abs(a / b - 1) for rounds in results.values() for a, b in zip(rounds[0]["losses"], first))
    print(f"30M GPT, batch {RANKS * MICRO} x {SEQ}, fp32, {RANKS} ranks of one thread, buckets of {BLOCK:,} elements; losses within "
          f"{apart:.0e} of each other\n{'':14}{'tokens/s best':>15}{'median':>9}")
    for name, (best, median) in rates.items():
        print(f"{name:14}{best:15.0f}{median:9.0f}")
    for name in (contender for contender in results if contender in OURS):
        for peer in (peer for peer in PEERS[int(name[-1])] if peer in results):
            print(f"{name} / {peer}: best {rates[name][0] / rates[peer][0]:.2f}, median {rates[name][1] / rates[peer][1]:.2f}")
    if any(contender in OURS for contender in results):
        print_hidden(args)


if __name__ == "__main__":
    main()
