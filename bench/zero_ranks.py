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
import statistics
import sys
from functools import partial

import ranks
import rounds
from ranks import RANKS

WORK = ranks.ROOT / "build" / "bench" / "zero"
MICRO, SEQ, VOCABULARY, SAMPLES = 2, 256, 8192, 64
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
    ranks.add_arguments(parser)
    parser.add_argument("--contenders", nargs="*", default=[*OURS, "ddp", "fsdp2"])
    parser.add_argument("--deepspeed", metavar="PYTHON", help="a Python with torch and deepspeed; adds deepspeed-0 to deepspeed-3")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.deepspeed and not args.worker:
        args.contenders += [f"deepspeed-{stage}" for stage in range(4)]
    return args


def plan_of(stage, overlap=True):
    return WORK / f"{stage}{'' if overlap else '-apart'}.dsplan"


# --- ds-run


def traced(args, kind, stage, overlap):
    """Seconds of a step and rank: (all of it, the compute queue's commands, collectives)."""
    trace = WORK / "trace.json"
    seconds = ranks.run_ours(args, WORK, kind == "mpi", plan_of(stage, overlap), "--trace", trace)["seconds"]
    events = json.loads(trace.read_text())["traceEvents"]
    compute = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name" and e["args"]["name"] == "compute"}
    busy = {False: 0.0, True: 0.0}
    for event in events:
        if event["ph"] != "X" or event["args"]["step"] < args.warmup:
            continue
        if (event["pid"], event["tid"]) in compute or event["cat"] == "collective":
            busy[event["cat"] == "collective"] += event["dur"] / 1e6 / RANKS / args.steps
    return statistics.mean(seconds), busy[False], busy[True]


def traced_twice(args, name):
    """Of a plan with overlap and of one without."""
    kind, _, stage = name.partition("-")
    return [traced(args, kind, int(stage), overlap) for overlap in (True, False)]


def print_hidden(args, contenders):
    traces, failures = rounds.interleave({f"{name} traced": partial(traced_twice, args, name) for name in contenders}, 1)
    print("\nshare of the time of collectives that is hidden (seconds a step, mean)")
    print(f"{'':14}{'step':>9}{'without':>9}{'alone':>9}{'hidden':>8}")
    for name, of_rounds in traces.items():
        for (step, without, _), (*_, alone) in of_rounds:
            print(f"{name:14}{step:9.4f}{without:9.4f}{alone:9.4f}{1 - (step - without) / alone:8.0%}")
        if name in failures:
            print(f"{name:14}  {failures[name]}")
    return failures


# --- PyTorch and DeepSpeed


def worker(args):
    module = ranks.peer_module(MODEL)
    if args.worker.startswith("deepspeed"):
        train = ranks.deepspeed_step(module, ds_config(int(args.worker[-1])))
    else:
        train = torch_step(module, args.worker)
    ranks.measure_batches(args, train, WORK / "data.safetensors", MICRO)


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


# --- the table


def run_contender(args, contender):
    kind, _, stage = contender.partition("-")
    if contender in OURS:
        return ranks.run_ours(args, WORK, kind == "mpi", plan_of(int(stage)))
    return ranks.run_peer(args, __file__, contender)


def main():
    args = parse()
    if args.worker:
        return worker(args)
    ranks.make_work(WORK, MODEL, VOCABULARY, SAMPLES, SEQ)
    for stage in range(4):
        for overlap in (True, False):
            ranks.compile_plan(WORK, ds_config(stage, overlap), plan_of(stage, overlap))
    results, failures = rounds.interleave({contender: partial(run_contender, args, contender) for contender in args.contenders}, args.rounds)
    rates = ranks.rates_of(results, RANKS * MICRO * SEQ)
    ranks.print_rates(f"30M GPT, batch {RANKS * MICRO} x {SEQ}, fp32, {RANKS} ranks of one thread, buckets of {BLOCK:,} elements",
                      results, failures, rates)
    ours = [name for name in results if name in OURS]
    for name in ours:
        ranks.print_ratios(rates, name, PEERS[int(name[-1])])
    failures |= print_hidden(args, [name for name in ours if name not in failures])
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
