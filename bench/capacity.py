#!/usr/bin/env python3
"""What fits: bytes a parameter beside the papers' formulas, and the papers' largest models in the memory that they name.

    build/venv/bin/python bench/capacity.py [--bin build/dev/bin] [--part small|large|claims] [--update]

The ladder is a GPT by ZeRO stage 0 to 3 on 4, 64 and 1,024 ranks, with 1 and 4 micro-batches, in bf16 and fp16, with and without state on the
host: a small one that takes a minute, and one of 6.2B. The claims compile each model for a GPU with the memory of its source. Tables are
printed, and with --update written into docs/capacity.md; exit code 1 where a claim does not fit or takes longer than it may. Nothing is
measured on a GPU: all figures are those of plans, which `ds-run` allocates and counts exactly. Models are exported without weights, which
takes minutes the first time.
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
GIB, SECONDS_ALLOWED, WITHIN = 1 << 30, 15, 0.02
UNLIMITED = 1 << 16  # GiB
RESERVE = 1  # GiB of a GPU that its driver and libraries take
HOST, FILES = {"device": "cpu"}, {"device": "nvme", "nvme_path": "/nvme"}
AWAY = {"": {}, "optimizer": {"offload_optimizer": HOST}, "all": {"offload_optimizer": HOST, "offload_param": HOST},
        "files": {"offload_optimizer": FILES, "offload_param": FILES}}
AWAY_TITLES = {"": "", "optimizer": "optimizer", "all": "optimizer, parameters", "files": "all, in files"}


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


SMALL = gpt(8, 1024, 16, 128, vocab_size=8192)
LARGE = gpt(30, 4096, 32)
LLAMA_7B = Model("Llama 7B", "llama-7b-2048", ("llama", "--size", "7b", "--seq", 2048))


@dataclasses.dataclass(frozen=True)
class Layout:
    model: Model
    ranks: int
    stage: int  # of ZeRO
    accumulation: int = 1  # micro-batches of a rank and step, each of one sample
    precision: str = "fp16"
    away: str = ""  # a key of AWAY

    def config(self):
        return {"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": self.accumulation, self.precision: {"enabled": True},
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
    Claim("ZeRO-1, 6.2B on 64", ZERO, Layout(LARGE, 64, 1), 32, 96),
    Claim("ZeRO-2, 13B on 128", ZERO, Layout(GPT_13B, 128, 2), 32, 96),
    Claim("ZeRO-3, 1T on 1,024", ZERO, Layout(GPT_1T, 1024, 3), 32, 96),
    Claim("ZeRO-Offload, 13B on one", ZERO_OFFLOAD, Layout(GPT_13B, 1, 2, away="optimizer"), 32, 1536),
    Claim("ZeRO-3 Offload, 40B on one", ZERO_3_OFFLOAD, Layout(gpt(50, 8192, 64), 1, 3, away="all"), 32, 1536),
    Claim("ZeRO-3 Offload, 1T on 256", ZERO_3_OFFLOAD, Layout(GPT_1T, 256, 3, away="all"), 32, 96),
    Claim("ZeRO-Infinity, 1T on 16, with NVMe", ZERO_INFINITY, Layout(GPT_1T, 16, 3, away="files"), 32, 96),
    Claim("ZeRO-2 with the optimizer on the host, Llama 7B on 8", DEEPSPEED, Layout(LLAMA_7B, 8, 2, away="optimizer"), 24, 192),
)


def exported(model) -> Path:
    """An export without weights, kept between runs."""
    folder = WORK / model.folder
    if not (folder / "model.onnx").exists():
        rounds.require_modules("torch", "transformers", "onnx")
        subprocess.run([sys.executable, ROOT / "models/export.py", *map(str, model.options), "--no-weights", "--skip-gradient-check",
                        "--out", folder], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return folder


def machine(device, host):
    """Writes the file of an A100 with other memory: V100s, which most sources used, have none of our kernels."""
    text = re.sub(r"^//.*$", "", (ROOT / "models/machines/a100-80gx8.json").read_text(), flags=re.M)
    facts = json.loads(text)
    drive = {"between": "host-nvme", "bandwidth_gb_per_s": 1.6, "latency_us": 100}  # a DGX-2's drives write 25 GB/s for its 16 GPUs
    facts |= {"name": f"a gpu of {device:g} GiB", "device_memory": int((device - RESERVE) * GIB), "reserve_bytes": RESERVE * GIB,
              "host_memory": int(host * GIB), "links": [*facts["links"], drive]}
    path = WORK / "capacity_machine.json"
    path.write_text(json.dumps(facts))
    return path


class Compiler:
    """Plans of one build's ds-opt, each call within a time."""

    def __init__(self, folder, timeout):
        self.tool, self.timeout = Path(folder) / "ds-opt", timeout
        self.plan, self.config = WORK / "capacity.dsplan", WORK / "capacity_config.json"
        WORK.mkdir(parents=True, exist_ok=True)

    def compile(self, layout, device=UNLIMITED, host=UNLIMITED):
        """(seconds, None or why there is no plan)."""
        self.config.write_text(json.dumps(layout.config()))
        ended = rounds.run([[self.tool, "compile", exported(layout.model), "--config", self.config, "--ranks", layout.ranks, "--machine",
                             machine(device, host), "-o", self.plan, "--quiet"]], self.timeout)
        if ended.failed and " needs " not in ended.failed.log:
            raise ended.failed
        return ended.seconds, ended.failed and ended.failed.log

    def figures(self, layout):
        """Of the plan that was compiled last."""
        ended = rounds.run([[self.tool, "report", self.plan, "--format", "json"]], self.timeout).require()
        return Figures(layout, json.loads(ended.outputs[0]))


class Figures:
    """What a report says of rank 0: bytes a parameter, and GiB."""

    def __init__(self, layout, report):
        self.layout, self.rank = layout, report["ranks_detail"][0]
        self.parameters = sum(math.prod(one["shape"]) for one in report["parameters"] if one["trainable"])

    def arena(self, space="device"):
        """GiB."""
        return self.rank["memory"][space]["arena_bytes"] / GIB

    def at_peak(self, *categories):
        return sum(self.rank["memory"]["device"][one] for one in categories) / self.parameters

    def state(self):
        return self.at_peak("weights", "gradients", "optimizer", "bucket_padding")

    def wire(self, *kinds):
        """As if all ranks but none had to send: bytes times N / (N - 1)."""
        ranks = self.layout.ranks
        return sum(self.rank["wire_bytes_per_step"][kind] for kind in kinds) / self.parameters * ranks / (ranks - 1)

    def moved(self, way):
        """For the parameters that are a rank's to update."""
        share = self.layout.ranks if self.layout.stage else 1
        return self.rank.get("transfer_bytes_per_step", {}).get(way, 0) / self.parameters * share


def state_formula(layout):
    """Bytes a parameter of the device: 16-bit copy, gradient, and 12 of master and moments."""
    n = layout.ranks
    if layout.away:
        return 0 if layout.away == "all" else 2 / n if layout.stage == 3 else 2
    whole = (16, 2 + (4 if layout.accumulation > 1 else 0), 2, 0)[layout.stage]
    return whole + (0, 12 if layout.accumulation > 1 else 16, 16, 16)[layout.stage] / n


def gather_formula(layout):
    """Stage 3: before the forward and before the backward of each micro-batch."""
    return (0, 2, 2, 4 * layout.accumulation)[layout.stage]


def reduction_formula(layout):
    """Stage 0: an all_reduce sends both ways."""
    return (8, 4, 4 * layout.accumulation, 4 * layout.accumulation)[layout.stage]


def out_formula(layout):
    """Gradients of each micro-batch."""
    return 4 * layout.accumulation


def back_formula(layout):
    """16-bit parameters: once a step, or before each forward and backward."""
    return 4 * layout.accumulation if layout.away == "all" else 2


# title, figure, its formula, which layouts have it
TABLES = (
    ("State on the device, bytes a parameter", Figures.state, state_formula, lambda layout: True),
    ("Gathered, bytes a parameter and step", lambda one: one.wire("all_gather"), gather_formula, lambda layout: not layout.away and layout.stage),
    ("Reduced, bytes a parameter and step", lambda one: one.wire("reduce_scatter", "all_reduce"), reduction_formula, lambda layout: not layout.away),
    ("Copied to the host, bytes and step, for each parameter of a rank", lambda one: one.moved("out"), out_formula, lambda layout: layout.away),
    ("Copied from the host, bytes and step, for each parameter of a rank", lambda one: one.moved("back"), back_formula, lambda layout: layout.away),
)


def ladder(model):
    """Rows of layouts, alike but for ranks and precision."""
    for away in ("", "optimizer", "all"):
        for stage, accumulation in itertools.product(range(3 if away == "all" else 0, 4), (1, 4)):
            yield [[Layout(model, ranks, stage, accumulation, precision, away) for precision in ("bf16", "fp16")] for ranks in (4, 64, 1024)]


def measure(compiler, layout):
    compiler.compile(layout)
    print(f"ZeRO-{layout.stage}, {layout.ranks} ranks, {layout.accumulation} micro-batches, {layout.precision}, {layout.away or 'all on the device'}",
          file=sys.stderr, flush=True)
    return compiler.figures(layout)


def cell(figure, formula, of_precisions):
    """What was planned, once where both precisions agree, and in brackets what the formula says; bold where they are not within 2 %."""
    planned = [figure(one) for one in of_precisions]
    text = " and ".join(dict.fromkeys(f"{one:.3g}" for one in planned))
    expected = formula(of_precisions[0].layout)
    if any(abs(one - expected) > max(WITHIN * expected, 0.001) for one in planned):
        text = f"**{text}**"
    return f"{text} ({expected:.3g})"


def ladder_tables(compiler, model):
    """Text of the tables of a model, with the sizes of what is beside the state at the peak, on 64 ranks."""
    rows = [[[measure(compiler, layout) for layout in of_precisions] for of_precisions in row] for row in ladder(model)]
    lines = [f"{model.title}, {rows[0][0][0].parameters / 1e9:.3g}B parameters."]
    for title, figure, formula, has in TABLES:
        lines += ["", f"{title}:", "", "| ZeRO | micro-batches | on the host | 4 ranks | 64 | 1,024 |", "|---|---|---|---|---|---|"]
        lines += [line([cell(figure, formula, of_precisions) for of_precisions in row], row[0][0].layout) for row in rows if has(row[0][0].layout)]
    lines += ["", "Beside the state at the peak on 64 ranks, MiB:", "",
              "| ZeRO | micro-batches | on the host | gathered and reduced | activations, workspace | arena |", "|---|---|---|---|---|---|"]
    for row in rows:
        one = row[1][0]
        beside = [one.at_peak(*kinds) * one.parameters / (1 << 20) for kinds in (["communication"], ["activations", "workspace", "inputs"])]
        lines.append(line([f"{size:,.0f}" for size in (*beside, one.arena() * 1024)], one.layout))
    return "\n".join(lines) + "\n"


def line(cells, layout):
    return f"| {' | '.join([str(layout.stage), str(layout.accumulation), AWAY_TITLES[layout.away], *cells])} |"


def judge(compiler, claim):
    """(row of the table, whether it holds)."""
    seconds, refused = compiler.compile(claim.layout, claim.device, claim.host)
    if refused:
        compiler.compile(claim.layout)
    figures = compiler.figures(claim.layout)
    arenas = [f"{figures.arena(space):,.1f}" for space in ("device", "host", "nvme")]
    row = [claim.what, f"{figures.parameters / 1e9:,.1f}B", claim.source, f"{claim.device:g}", f"{claim.host:,g}", *arenas, "no" if refused else "yes",
           f"{seconds:.1f}"]
    return f"| {' | '.join(row)} |", not refused and seconds <= SECONDS_ALLOWED


def claims_table(compiler, claims=CLAIMS):
    """(text of the table, whether all hold); seconds are its last column."""
    lines = ["| claim | parameters | source | GPU, GiB | host for each, GiB | arena, GiB | host | files | fits | seconds to compile |",
             "|---|---:|---|---:|---:|---:|---:|---:|---|---:|"]
    hold = True
    for claim in claims:
        row, holds = judge(compiler, claim)
        print(row, file=sys.stderr, flush=True)
        lines.append(row)
        hold &= holds
    return "\n".join(lines) + "\n", hold


def section(part):
    """Where a part stands in the page."""
    return re.compile(rf"(?<=<!-- {part} -->\n).*?(?=<!-- end of {part} -->)", re.S)


def update(part, text):
    PAGE.write_text(section(part).sub(lambda _: text, PAGE.read_text(), count=1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    build = os.environ.get("DS_BUILD_DIR")
    parser.add_argument("--bin", type=Path, default=Path(build) / "bin" if build else rounds.BIN, help="folder of ds-opt (%(default)s)")
    parser.add_argument("--part", choices=("small", "large", "claims"), action="append", help="of the tables; repeatable (default: all)")
    parser.add_argument("--update", action="store_true", help="write the tables into docs/capacity.md")
    rounds.add_timeout(parser)
    args = parser.parse_args()
    if args.bin == rounds.BIN:
        rounds.require_tools("ds-opt")
    compiler, hold = Compiler(args.bin, args.timeout), True
    try:
        for part in args.part or ("small", "large", "claims"):
            if part == "claims":
                text, hold = claims_table(compiler)
            else:
                text = ladder_tables(compiler, SMALL if part == "small" else LARGE)
            print(text, flush=True)
            if args.update:
                update(part, text)
    except rounds.Failed as why:
        sys.exit(f"error: {why}\n{why.log}")
    sys.exit(0 if hold else 1)


if __name__ == "__main__":
    main()
