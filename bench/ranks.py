"""What the benches of several ranks share: how ds-run's and the peers' ranks are started and timed, and the table of their rates."""

import json
import os
import socket
import statistics
import subprocess
import sys
import time

import rounds
from rounds import BIN, ROOT

RANKS = 2  # of one thread, where a bench asks for no other number
OPEN_MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_NUM_THREADS": "1"}
MACHINE = {"name": "bench", "device": "cpu", "threads": 1, "workspace_bytes_per_thread": "8MiB", "alignment": 64}


def add_arguments(parser):
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=4, help="measured steps of a round")
    parser.add_argument("--warmup", type=int, default=2)
    rounds.add_timeout(parser)


def make_work(work, model, vocabulary, samples, seq, threads=1):
    """Tools; model, data and machine file in `work`; the model is kept between runs."""
    rounds.require_modules("numpy", "safetensors", "torch", "transformers")
    rounds.require_tools("ds-opt", "ds-run")
    import numpy
    from safetensors.numpy import save_file
    work.mkdir(parents=True, exist_ok=True)
    if not (work / "model").exists():
        subprocess.run([sys.executable, ROOT / "models/export.py", *model, "--out", work / "model"], check=True, stdout=subprocess.DEVNULL)
    tokens = numpy.random.default_rng(0).integers(0, vocabulary, (samples, seq), dtype=numpy.int64)
    save_file({"input_ids": tokens, "labels": tokens}, work / "data.safetensors")
    (work / "machine.json").write_text(json.dumps({**MACHINE, "threads": threads}))


def compile_plan(work, config, plan, ranks=RANKS):
    (work / "c.json").write_text(json.dumps(config))
    subprocess.run([BIN / "ds-opt", "compile", work / "model", "--config", work / "c.json", "--machine", work / "machine.json",
                    "--ranks", str(ranks), "-o", plan, "--quiet"], check=True)


def run_ours(args, work, by_mpi, plan, *more, ranks=RANKS, threads=1):
    """Step seconds and losses of ds-run, and how many of its steps were redone; ranks as threads of one process or as processes under mpirun."""
    metrics = work / "metrics.jsonl"
    metrics.unlink(missing_ok=True)
    # Unbound: a rank's communication has a thread of its own, as gloo's has.
    launch = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", ranks] if by_mpi else []
    command = [*launch, BIN / "ds-run", plan, *([] if by_mpi else ["-n", ranks]), "--data", work / "data.safetensors", "--quiet",
               "--threads", threads, "--steps", args.warmup + args.steps, "--metrics", metrics, *more]
    rounds.run([command], args.timeout, environments=[OPEN_MPI]).require()
    steps = [line for line in map(json.loads, metrics.read_text().splitlines()) if "loss" in line]
    measured = steps[args.warmup:]
    return {"seconds": [step["step_seconds"] for step in measured], "losses": [step["loss"] for step in steps], "redone": sum("redone" in step for step in measured)}


def run_peer(args, script, contender, *more, ranks=RANKS, threads=1):
    """The same of a peer: every rank is a process of `script`, which ends in measure(); rank 0 prints the result."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    python = args.deepspeed if contender.startswith("deepspeed") else sys.executable
    command = [python, script, "--worker", contender, "--steps", args.steps, "--warmup", args.warmup, *more]
    environments = [{"OMP_NUM_THREADS": str(threads), "DS_ACCELERATOR": "cpu", "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks),
                     "LOCAL_WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)} for rank in range(ranks)]
    ended = rounds.run([command] * ranks, args.timeout, [f"rank {rank}" for rank in range(ranks)], environments)
    results = [line for line in ended.outputs[0].splitlines() if line.startswith("{")]
    if not results:  # FSDP2 may end badly once it has printed its line
        ended.require()
        raise rounds.Failed("rank 0 printed no result")
    return json.loads(results[-1])


def peer_module(model):
    """In a peer's rank: the module that models/export.py exports, loss inside, on as many threads as run_peer gives."""
    import torch
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    sys.path.insert(0, str(ROOT / "models"))
    os.environ["HF_HUB_OFFLINE"] = "1"
    import export as exporter
    from exporting.sources import open_source
    return open_source(exporter.parse([*model, "--out", "x"])).module


def deepspeed_step(module, config):
    """In a peer's rank: batch -> loss of a step by DeepSpeed's engine."""
    import deepspeed
    engine, *_ = deepspeed.initialize(model=module, model_parameters=module.parameters(), config=config)

    def step(batch):
        loss = engine(**batch)
        engine.backward(loss)
        engine.step()
        return loss
    return step


def measure_batches(args, train, data, micro):
    """In a peer's rank: measure() of train(batch) -> loss, on batches that ds-run would take from the file `data`."""
    import torch.distributed as dist
    from safetensors.torch import load_file
    columns, ranks = load_file(data), dist.get_world_size()

    def step(index):
        first = (index * ranks + dist.get_rank()) * micro % len(columns["input_ids"])
        loss = train({name: column[first:first + micro] for name, column in columns.items()}).detach().clone()
        dist.all_reduce(loss)
        return loss.item() / ranks
    measure(args, step)


def measure(args, step):
    """In a peer's rank: runs and times step(index) -> the mean loss, on every rank."""
    import torch.distributed as dist
    seconds, losses = [], []
    for index in range(args.warmup + args.steps):
        dist.barrier()
        begin = time.perf_counter()
        losses.append(step(index))
        seconds.append(time.perf_counter() - begin)
    if dist.get_rank() == 0:
        print(json.dumps({"seconds": seconds[args.warmup:], "losses": losses}), flush=True)
    dist.barrier()
    dist.destroy_process_group()


def rates_of(results, tokens):
    """name -> (best, median) tokens/s of its rounds, where it has any."""
    seconds = {name: [second for result in of_rounds for second in result["seconds"]] for name, of_rounds in results.items() if of_rounds}
    return {name: (tokens / min(all_of), tokens / statistics.median(all_of)) for name, all_of in seconds.items()}


def print_rates(title, results, failures, rates):
    losses = [of_rounds[0]["losses"] for of_rounds in results.values() if of_rounds]
    apart = max((abs(a / b - 1) for of_one in losses for a, b in zip(of_one, losses[0])), default=0)
    print(f"{title}; losses within {apart:.0e} of each other\n{'':20}{'tokens/s best':>15}{'median':>9}")
    for name in results:
        rate = "{:15.0f}{:9.0f}".format(*rates[name]) if name in rates else " " * 24
        print(f"{name:20}{rate}  {failures.get(name, '')}".rstrip())


def print_ratios(rates, name, peers):
    for peer in peers:
        if name in rates and peer in rates:
            print(f"{name} / {peer}: best {rates[name][0] / rates[peer][0]:.2f}, median {rates[name][1] / rates[peer][1]:.2f}")
