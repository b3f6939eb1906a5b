"""What the benches of several ranks share: how ds-run's and the peers' ranks are started and timed, and the table of their rates."""

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
RANKS = 2
OPEN_MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_NUM_THREADS": "1"}
MACHINE = {"name": "bench", "device": "cpu", "threads": 1, "workspace_bytes_per_thread": "8MiB", "alignment": 64}


def add_arguments(parser):
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=4, help="measured steps of a round")
    parser.add_argument("--warmup", type=int, default=2)


def make_work(work, model, vocabulary, samples, seq):
    """Model, data and machine file in `work`; the model is kept between runs."""
    import numpy
    from safetensors.numpy import save_file
    work.mkdir(parents=True, exist_ok=True)
    if not (work / "model").exists():
        subprocess.run([sys.executable, ROOT / "models/export.py", *model, "--out", work / "model"], check=True, stdout=subprocess.DEVNULL)
    tokens = numpy.random.default_rng(0).integers(0, vocabulary, (samples, seq), dtype=numpy.int64)
    save_file({"input_ids": tokens, "labels": tokens}, work / "data.safetensors")
    (work / "machine.json").write_text(json.dumps(MACHINE))


def compile_plan(work, config, plan):
    (work / "c.json").write_text(json.dumps(config))
    subprocess.run([BIN / "ds-opt", "compile", work / "model", "--config", work / "c.json", "--machine", work / "machine.json",
                    "--ranks", str(RANKS), "-o", plan, "--quiet"], check=True)


def run_ours(args, work, by_mpi, plan, *more):
    """Step seconds and losses of ds-run, ranks as threads of one process or as processes under mpirun."""
    metrics = work / "metrics.jsonl"
    metrics.unlink(missing_ok=True)
    # Unbound: a rank's communication has a thread of its own, as gloo's has.
    launch = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", RANKS] if by_mpi else []
    command = [*launch, BIN / "ds-run", plan, *([] if by_mpi else ["-n", RANKS]), "--data", work / "data.safetensors", "--quiet",
               "--threads", 1, "--steps", args.warmup + args.steps, "--metrics", metrics, *more]
    subprocess.run([str(word) for word in command], check=True, env={**os.environ, **OPEN_MPI})
    steps = [line for line in map(json.loads, metrics.read_text().splitlines()) if "loss" in line]
    return {"seconds": [step["step_seconds"] for step in steps[args.warmup:]], "losses": [step["loss"] for step in steps]}


def run_peer(args, script, contender, *more):
    """The same of a peer: every rank is a process of `script`, which ends in measure(); rank 0 prints the result."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    python = args.deepspeed if contender.startswith("deepspeed") else sys.executable
    command = [python, script, "--worker", contender, "--steps", str(args.steps), "--warmup", str(args.warmup), *map(str, more)]
    ranks = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={
        **os.environ, "OMP_NUM_THREADS": "1", "DS_ACCELERATOR": "cpu", "RANK": str(rank), "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(RANKS), "LOCAL_WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)})
        for rank in range(RANKS)]
    outputs = [rank.communicate() for rank in ranks]
    results = [line for line in outputs[0][0].splitlines() if line.startswith("{")]
    if not results:  # FSDP2 may end badly once it has printed its line
        sys.exit(f"{contender} ended with status {ranks[0].returncode}\n{outputs[0][1][-2000:]}")
    return json.loads(results[-1])


def peer_module(model):
    """In a peer's rank: the module that models/export.py exports, loss inside, on one thread."""
    import torch
    torch.set_num_threads(1)
    sys.path.insert(0, str(ROOT / "models"))
    os.environ["HF_HUB_OFFLINE"] = "1"
    import export as exporter
    from exporting.sources import open_source
    return open_source(exporter.parse([*model, "--out", "x"])).module


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
    """name -> (best, median) tokens/s of its rounds."""
    seconds = {name: [second for result in rounds for second in result["seconds"]] for name, rounds in results.items()}
    return {name: (tokens / min(all_of), tokens / statistics.median(all_of)) for name, all_of in seconds.items()}


def print_rates(title, results, rates):
    first = next(iter(results.values()))[0]["losses"]
    apart = max(abs(a / b - 1) for rounds in results.values() for a, b in zip(rounds[0]["losses"], first))
    print(f"{title}; losses within {apart:.0e} of each other\n{'':20}{'tokens/s best':>15}{'median':>9}")
    for name, (best, median) in rates.items():
        print(f"{name:20}{best:15.0f}{median:9.0f}")


def print_ratio(rates, name, peer):
    print(f"{name} / {peer}: best {rates[name][0] / rates[peer][0]:.2f}, median {rates[name][1] / rates[peer][1]:.2f}")
