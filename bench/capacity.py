#!/usr/bin/env python3
"""What fits: the largest models that papers name, in the memory that they name.

    build/venv/bin/python bench/capacity.py [--bin build/dev/bin] [--update]

Each model is compiled for a GPU with the memory of its source. The table is printed, and with --update written into docs/capacity.md; exit
code 1 where a claim does not fit or takes longer than it may. Nothing is measured on a GPU: all figures are those of plans, which `ds-run`
allocates and counts exactly. Models are exported without weights, which takes minutes the first time.
"""

import argparse
import dataclasses
import itertools
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import rounds
from rounds import ROOT

WORK = ROOT / "build" / "bench"
PAGE = ROOT / "docs" / "capacity.md"
GIB, SECONDS_ALLOWED = 1 << 30, 15
UNLIMITED = 1 << 16  # GiB
RESERVE = 1  # GiB of a GPU that its driver and libraries take
HOST, FILES = {"device": "cpu"}, {"device": "nvme", "nvme_path": "/nvme"}
AWAY = {"": {}, "optimizer": {"offload_optimizer": HOST}, "all": {"offload_optimizer": HOST, "offload_param": HOST},
        "files": {"offload_optimizer": FILES, "offload_param": FILES}}
ACTIVATIONS_AWAY = "activations"  # what each layer keeps for its backward lies on the host, as in ZeRO-Infinity
NARROW_GRADIENTS = "gradients in 16 bits"  # as DeepSpeed's are by default
MORE = {ACTIVATIONS_AWAY: lambda _: {"activation_checkpointing": {"cpu_checkpointing": True}},
        NARROW_GRADIENTS: lambda precision: {"data_types": {"grad_accum_dtype": precision}}}


@dataclasses.dataclass(frozen=True)
class Model:
    title: str
    folder: str  # of the export, in WORK
    options: tuple  # of models/export.py


def gpt(layers, width, heads, sequence=1024, **settings):
    sizes = {"n_layer": layers, "n_embd": width, "n_head": heads, **settings}
    folder = "-".join([f"gpt-{layers}x{width}-{sequence}", *map(str, settings.values())])
    return Model(f"GPT {layers} x {width}", folder,
                 ("gpt2", "--size", "small", "--seq", sequence, *itertools.chain(*(("--set", f"{key}={size}") for key, size in sizes.items()))))


LLAMA_7B = Model("Llama 7B", "llama-7b-2048", ("llama", "--size", "7b", "--seq", 2048))


@dataclasses.dataclass(frozen=True)
class Layout:
    model: Model
    ranks: int
    stage: int  # of ZeRO
    away: str = ""  # a key of AWAY
    more: tuple = ()  # keys of MORE
    accumulation: int = 1  # micro-batches of a rank and step, each of one sample
    precision: str = "fp16"

    def config(self):
        more = {key: setting for one in self.more for key, setting in MORE[one](self.precision).items()}
        return {"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": self.accumulation, self.precision: {"enabled": True}, **more,
                "zero_optimization": {"stage": self.stage, **AWAY[self.away]}, "optimizer": {"type": "AdamW", "params": {"lr": 3e-4}},
                "gradient_clipping": 1.0, "deepstatic": {"recompute": "full"}}


@dataclasses.dataclass(frozen=True)
class Claim:
    what: str
    source: str
    layout: Layout
    device: float  # GiB of a GPU
    host: float  # GiB of host memory for each


ZERO, ZERO_OFFLOAD = "[ZeRO](https://arxiv.org/abs/1910.02054)", "[ZeRO-Offload](https://arxiv.org/abs/2101.06840)"
ZERO_INFINITY = "[ZeRO-Infinity](https://arxiv.org/abs/2104.07857)"
ZERO_3_OFFLOAD = "[DeepSpeed, ZeRO-3 Offload](https://www.deepspeed.ai/2021/03/07/zero3-offload.html)"
DEEPSPEED = "[DeepSpeed's memory estimate](https://deepspeed.readthedocs.io/en/latest/memory.html)"
GPT_13B, GPT_1T = gpt(60, 4096, 32), gpt(128, 25600, 160)
CLAIMS = (
    Claim("data parallel, 1.4B", ZERO, Layout(gpt(48, 1536, 16), 64, 0), 32, 96),
    Claim("ZeRO-1, 6.2B on 64", ZERO, Layout(gpt(30, 4096, 32), 64, 1), 32, 96),
    Claim("ZeRO-2, 13B on 128", ZERO, Layout(GPT_13B, 128, 2), 32, 96),
    Claim("ZeRO-Offload, 13B on one", ZERO_OFFLOAD, Layout(GPT_13B, 1, 2, "optimizer"), 32, 1536),
    Claim("ZeRO-3 Offload, 40B on one", ZERO_3_OFFLOAD, Layout(gpt(50, 8192, 64), 1, 3, "all"), 32, 1536),
    Claim("ZeRO-3 Offload, 1T on 256", ZERO_3_OFFLOAD, Layout(GPT_1T, 256, 3, "all", (ACTIVATIONS_AWAY, NARROW_GRADIENTS)), 32, 96),
    Claim("ZeRO-Infinity, 1T on 16, with NVMe", ZERO_INFINITY, Layout(GPT_1T, 16, 3, "files", (ACTIVATIONS_AWAY, NARROW_GRADIENTS)), 32, 96),
    Claim("ZeRO-2 with the optimizer on the host, Llama 7B on 8", DEEPSPEED, Layout(LLAMA_7B, 8, 2, "optimizer"), 24, 192),
)


def exported(model) -> Path:
    """An export without weights, kept between runs."""
    folder = WORK / model.folder
    if not (folder / "model.onnx").exists():
        rounds.require_modules("torch", "transformers", "onnx")
        subprocess.run([sys.executable, ROOT / "models/export.py", *map(str, model.options), "--no-weights", "--skip-gradient-check",
                        "--out", folder], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return folder


def write_machine(path, device, host):
    """Writes the file of an A100 with other memory: V100s, which most sources used, have none of our kernels."""
    text = re.sub(r"^//.*$", "", (ROOT / "models/machines/a100-80gx8.json").read_text(), flags=re.M)
    facts = json.loads(text)
    drive = {"between": "host-nvme", "bandwidth_gb_per_s": 1.6, "latency_us": 100}  # a DGX-2's drives write 25 GB/s for its 16 GPUs
    facts |= {"name": f"a gpu of {device:g} GiB", "device_memory": int((device - RESERVE) * GIB), "reserve_bytes": RESERVE * GIB,
              "host_memory": int(host * GIB), "links": [*facts["links"], drive]}
    path.write_text(json.dumps(facts))


class Compiler:
    """Plans of one build's ds-opt, each call within a time."""

    def __init__(self, folder, timeout, stem="capacity"):
        self.tool, self.timeout = Path(folder) / "ds-opt", timeout
        self.plan, self.config, self.machine = (WORK / f"{stem}{end}" for end in (".dsplan", "_config.json", "_machine.json"))
        WORK.mkdir(parents=True, exist_ok=True)

    def compile(self, layout, device=UNLIMITED, host=UNLIMITED):
        """(seconds, None or why there is no plan)."""
        self.config.write_text(json.dumps(layout.config()))
        write_machine(self.machine, device, host)
        ended = rounds.run([[self.tool, "compile", exported(layout.model), "--config", self.config, "--ranks", layout.ranks, "--machine",
                             self.machine, "-o", self.plan, "--quiet"]], self.timeout)
        if ended.failed and " needs " not in ended.failed.log:
            raise ended.failed
        return ended.seconds, ended.failed and ended.failed.log

    def report(self):
        """Of the plan that was compiled last."""
        return json.loads(rounds.run([[self.tool, "report", self.plan, "--format", "json"]], self.timeout).require().outputs[0])


def judge(compiler, claim):
    """(row of the table, whether it fits, seconds to compile)."""
    seconds, refused = compiler.compile(claim.layout, claim.device, claim.host)
    if refused:
        compiler.compile(claim.layout)
    report = compiler.report()
    parameters = sum(math.prod(one["shape"]) for one in report["parameters"] if one["trainable"])
    memory = report["ranks_detail"][0]["memory"]
    arenas = [f"{memory[space]['arena_bytes'] / GIB:,.1f}" for space in ("device", "host", "nvme")]
    row = [claim.what, f"{parameters / 1e9:,.1f}B", claim.source, "; ".join(claim.layout.more), f"{claim.device:g}", f"{claim.host:,g}", *arenas,
           "no" if refused else "yes"]
    return f"| {' | '.join(row)} |", not refused, seconds


def claims_table(compiler, claims=CLAIMS):
    """(text of the table, whether all hold); how long a plan took is said while it is made."""
    lines = ["| claim | parameters | source | also | GPU, GiB | host for each, GiB | arena, GiB | host | files | fits |",
             "|---|---:|---|---|---:|---:|---:|---:|---:|---|"]
    hold = True
    for claim in claims:
        row, fits, seconds = judge(compiler, claim)
        print(f"{claim.what}: {seconds:.1f} s", file=sys.stderr, flush=True)
        lines.append(row)
        hold &= fits and seconds <= SECONDS_ALLOWED
    return "\n".join(lines) + "\n", hold


def section(name):
    """Where a table stands in the page."""
    return re.compile(rf"(?<=<!-- {name} -->\n).*?(?=<!-- end of {name} -->)", re.S)


def run(parser, name, tables):
    """Prints what `tables(folder of ds-opt, timeout)` makes, (text, whether all holds), and with --update writes it into the page."""
    build = os.environ.get("DS_BUILD_DIR")
    parser.add_argument("--bin", type=Path, default=Path(build) / "bin" if build else rounds.BIN, help="folder of ds-opt (%(default)s)")
    parser.add_argument("--update", action="store_true", help="write the text into docs/capacity.md")
    rounds.add_timeout(parser)
    args = parser.parse_args()
    if args.bin == rounds.BIN:
        rounds.require_tools("ds-opt")
    try:
        text, hold = tables(args.bin, args.timeout)
    except rounds.Failed as why:
        sys.exit(f"error: {why}\n{why.log}")
    print(text)
    if args.update:
        PAGE.write_text(section(name).sub(lambda _: text, PAGE.read_text(), count=1))
    sys.exit(0 if hold else 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    run(parser, "claims", lambda folder, timeout: claims_table(Compiler(folder, timeout)))


if __name__ == "__main__":
    main()
