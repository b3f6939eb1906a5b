#!/usr/bin/env python3
"""make proof: one table of SHA-256 of final weights, over every way to share out one training.

    scripts/proof.py [--models gpt2,llama] [--rows REGEX] [--write]

Each row compiles a tiny model for its strategy, trains 10 steps of the same four micro-batches on the CPU and exports the
weights. A plan that calls itself bit-equal must end with one rank's weights, bit by bit; plans that call themselves
reassociated add in another order and say so. The exit code is 1 if a bit-equal plan differs. --write puts the table into
docs/proof.md.
"""

import argparse
import dataclasses
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
BIN = Path(os.environ.get("DS_BUILD_DIR", REPOSITORY / "build" / "release")) / "bin"
PAGE = REPOSITORY / "docs" / "proof.md"
MICROBATCHES, STEPS, SEQUENCE = 4, 10, 16
MODELS = {"gpt2": [], "llama": ["--set=num_hidden_layers=8"]}  # GPT-2's embedding is tied, Llama's is not
OPEN_MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_NUM_THREADS": "1"}


@dataclasses.dataclass(frozen=True)
class Row:
    ranks: int = 1
    stages: int = 1
    keys: tuple = ()  # of the configuration, as --set takes them
    mpi: bool = False  # else ranks are threads of one process

    @property
    def name(self):
        words = [f"{key.split('.')[-1]} {value}" for key, value in self.keys] or ["one rank" if self.ranks == 1 else "ZeRO 0"]
        return ", ".join(words) + (", MPI" if self.mpi else "")


def zero(stage, **more):
    return (("zero_optimization.stage", stage), *more.items())


def pipeline(schedule, **more):
    chunks = (("deepstatic.pipeline.chunks", 2),) if schedule == "interleaved" else ()
    return (("deepstatic.pipeline.schedule", schedule), *chunks, *more.items())


def rows():
    yield Row()
    for recompute in ("full", "1", "2"):
        yield Row(keys=(("deepstatic.recompute", recompute),))
    for ranks in (2, 4):
        for stage in range(4):
            yield Row(ranks, keys=zero(stage))
            yield Row(ranks, keys=(*zero(stage), ("zero_optimization.overlap_comm", "true")))
    for schedule in ("gpipe", "1f1b", "interleaved", "zb-h1"):
        yield Row(2, 2, pipeline(schedule))
        for stage in range(4):
            yield Row(4, 2, (*pipeline(schedule), *zero(stage)))
    yield Row(4, keys=(*zero(3), ("deepstatic.recompute", "full")))
    yield Row(4, 2, (*pipeline("1f1b"), *zero(3), ("deepstatic.recompute", "full")))
    for row in (Row(2, keys=zero(1)), Row(4, keys=zero(3)), Row(2, 2, pipeline("1f1b")), Row(4, 2, (*pipeline("zb-h1"), *zero(2)))):
        yield dataclasses.replace(row, mpi=True)


def run(*command, **environment):
    done = subprocess.run([str(word) for word in command], env={**os.environ, **environment}, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"error: {' '.join(map(str, command))} gave {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def prepare(folder, model):
    python = sys.executable
    run(python, REPOSITORY / "models/export.py", model, "--size=tiny", f"--seq={SEQUENCE}", *MODELS[model], "--out", folder / model)
    data = folder / "data.safetensors"
    if not data.exists():
        run(python, REPOSITORY / "models/prepare_data.py", "text", "/usr/share/common-licenses/GPL-3", "--tokenizer", "bytes",
            "--seq", SEQUENCE, "--out", data)
    return folder / model, data


def digest(path):
    """Of all tensors, in the order of their names: what stands beside them in the file does not matter."""
    from safetensors.numpy import load_file
    sum_ = hashlib.sha256()
    for name, tensor in sorted(load_file(path).items()):
        sum_.update(f"{name} {tensor.dtype} {tensor.shape}\n".encode() + tensor.tobytes())
    return sum_.hexdigest()


def train(row, model, data, folder):
    """(numerics class of the plan, digest of the weights)"""
    config, plan, weights = folder / "config.json", folder / "p.dsplan", folder / "weights.safetensors"
    steps = MICROBATCHES * row.stages // row.ranks
    config.write_text(json.dumps({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": steps, "gradient_clipping": 1.0,
                                  "optimizer": {"type": "AdamW", "params": {"lr": 0.001, "weight_decay": 0.1}}}))
    keys = [f"--set={key}={value}" for key, value in row.keys]
    stages = [f"--set=deepstatic.pipeline.stages={row.stages}"] if row.stages > 1 else []
    run(BIN / "ds-opt", "compile", model, "--config", config, "--ranks", row.ranks, *keys, *stages, "--quiet", "-o", plan)
    launch = ["mpirun", "--oversubscribe", "-n", row.ranks] if row.mpi else []
    run(*launch, BIN / "ds-run", plan, "--data", data, "--steps", STEPS, "--threads", 1, "--quiet", "--export", weights, **OPEN_MPI)
    return json.loads(run(BIN / "ds-opt", "report", plan, "--format", "json"))["numerics"], digest(weights)


def table(models, chosen, say=lambda line: None):
    """Lines of the table, and what broke the rule."""
    head = ["| strategy | ranks | stages | " + " | ".join(f"{model}: numerics | weights" for model in models) + " |",
            "|---|---|---|" + "---|---|" * len(models)]
    say("\n".join(head))
    broken, first, lines = [], {}, head
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        places = {model: prepare(folder, model) for model in models}
        for row in chosen:
            cells = []
            for model, (path, data) in places.items():
                numerics, weights = train(row, path, data, folder)
                same = weights == first.setdefault(model, weights)
                cells += [numerics, f"`{weights[:16]}`" + ("" if same else " differs")]
                if numerics == "bit-equal" and not same:
                    broken.append(f"{model}, {row.name}, {row.ranks} ranks: the plan is bit-equal, its weights are not one rank's")
            lines.append(f"| {row.name} | {row.ranks} | {row.stages} | " + " | ".join(cells) + " |")
            say(lines[-1])
    return lines, broken


def write_page(lines):
    begin, end = "<!-- written by scripts/proof.py --write -->\n", "<!-- end -->"
    head, rest = PAGE.read_text().split(begin)
    PAGE.write_text(head + begin + "\n".join(lines) + "\n" + end + rest.split(end)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS), help="of " + ", ".join(MODELS))
    parser.add_argument("--rows", default="", help="a regular expression over the names of strategies; the first row is always there")
    parser.add_argument("--write", action="store_true", help="put the table into docs/proof.md")
    arguments = parser.parse_args()
    chosen = [row for i, row in enumerate(rows()) if i == 0 or re.search(arguments.rows, row.name)]
    if shutil.which("mpirun") is None:
        print("note: there is no mpirun; rows over MPI are left out", file=sys.stderr)
        chosen = [row for row in chosen if not row.mpi]
    lines, broken = table(arguments.models.split(","), chosen, lambda line: print(line, flush=True))
    if arguments.write:
        write_page(lines)
    for line in broken:
        print(f"error: {line}", file=sys.stderr)
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
