#!/usr/bin/env python3
"""gpu_first.py BIN CASES PLANS [--out FOLDER] [--minutes M] [PART...]: the first minutes on a machine with a GPU, most valuable first.

Parts, in this order, as long as the minutes last; or `info` and those that are named. `first` stands for the first five, `second` for the rest:

    info       what ds-run and the driver say of the GPU: versions of libraries, free memory
    step       GPT-2 124M for 8 steps with and without a graph: the same losses, the planned bytes, how many kernels no library took
    profile    its commands one by one, by kernel, beside the times of the plan's cost model
    strict     a step of every plan, XL's too, in which a kernel that no library takes is an error
    tune       ds-run --tune on a copy of its plan: the step with cuBLASLt's own algorithms and with the fastest of the same bits
    bfloat16   the kernels of bfloat16 beside their references; small odd shapes, of which a library may refuse some
    speed      GPT-2 124M beside PyTorch's compiled step, one round (bench/gpu_step.py)
    kernels    all other kernels beside their references
    sanitizer  compute-sanitizer on a step of tiny GPT-2
    cases      small models by every strategy, beside the processor (gpu_cases.py)
    speed-xl   GPT-2 XL beside PyTorch's compiled step

Plans are those of PLANS/h200 on a GPU whose name has H200 in it, else those of PLANS/h100. Each part writes FOLDER/PART.log while it
runs, has a time limit of its own, and a line in FOLDER/results.jsonl when it ends; no part keeps the next from running, but for `info`, where
ds-run finds no GPU. Behind every part FOLDER.tar.gz is written anew, into the folder $OUT where there is one. The exit code is 1 where a
part failed.
"""

import argparse
import json
import math
import os
import re
import shutil
import sys
import tarfile
import time
from functools import cached_property
from pathlib import Path

from gpu_run import SANITIZERS, sanitizer_command, streamed

HERE = Path(__file__).resolve().parent
BENCH = HERE.parent / "bench"
STEPS = 8
STRICT = {"DS_CUDA_STRICT": "1"}


class Wrong(Exception):
    """Why a part failed."""


class NoGpu(Wrong):
    """Why no part can run."""


class First:
    def __init__(self, args):
        self.bin, self.case_plans, self.all_plans, self.out = (path.resolve() for path in (args.bin, args.cases, args.plans, args.out))
        self.kept = Path(os.environ.get("OUT") or self.out.parent) / f"{self.out.name}.tar.gz"
        self.log = self.deadline = None
        self.environment = STRICT

    @cached_property
    def plans(self):
        """The folder of the plans for this GPU."""
        return self.all_plans / ("h200" if "H200" in self.info() else "h100")

    @property
    def plan(self):
        return self.plans / "small-bfloat16.dsplan"

    def keep(self):
        """One file with all that is known by now; it is whole at any time."""
        with tarfile.open(f"{self.kept}.part", "w:gz") as archive:
            archive.add(self.out, self.out.name, filter=lambda member: None if member.name.endswith(".dsplan") else member)
        os.replace(f"{self.kept}.part", self.kept)

    def run(self, command, environment=None):
        """What it says; ends a part where it fails or the part's time is over."""
        code, text = streamed(command, max(1, self.deadline - time.monotonic()), self.log, environment)
        if code is None:
            raise Wrong(f"{Path(str(command[0])).name} did not end in time")
        if code != 0:
            lines = text.strip().splitlines() or ["nothing was said"]
            errors = [line for line in lines if line.startswith("error: ")]
            raise Wrong(f"{Path(str(command[0])).name} ended with {code}: {(errors or lines)[-1]}")
        return text

    def train(self, name, *options, environment=None, plan=None, steps=STEPS):
        """Losses, seconds of each step and the first rank's summary."""
        data, metrics = self.plans / "small.safetensors", self.out / f"{name}.jsonl"
        if not data.exists():
            sys.path.insert(0, str(BENCH))
            import gpu_step
            gpu_step.write_tokens(data, gpu_step.BATCHES * gpu_step.SIZES["small"][3])
        self.run([self.bin / "ds-run", plan or self.plan, "--data", data, "--steps", steps, "--seed", 7, "--quiet", "--metrics", metrics, *options],
                 {**self.environment, **(environment or {})})
        lines = [json.loads(line) for line in metrics.read_text().splitlines()]
        steps = [line for line in lines if "loss" in line]
        return [step["loss"] for step in steps], [step["step_seconds"] for step in steps], lines[-1]["summary"]["ranks"][0]

    def info(self):
        lines = [" ".join(line.split()) for line in self.run([self.bin / "ds-run", "info"]).splitlines()]
        self.ask_driver("-q", seconds=10)
        cuda = next(line for line in lines if line.startswith("cuda "))
        if not cuda.startswith("cuda available"):
            raise NoGpu(f"ds-run can use no GPU: {cuda.removeprefix('cuda ')}")
        return f"{next(line for line in lines if line.startswith('gpu 0'))}; {cuda}"

    def ask_driver(self, *question, seconds):
        """What nvidia-smi says, or nothing; it may be missing, or hang with its driver."""
        code, text = streamed(["nvidia-smi", *question], seconds, self.log) if shutil.which("nvidia-smi") else (None, "")
        return text if code == 0 else ""

    def free_memory(self):
        """What is free behind a run; `info` has what was free before."""
        text = self.ask_driver("--query-gpu=memory.free", "--format=csv,noheader", seconds=10)
        return f"; {text.splitlines()[0]} free behind it" if text else ""

    def bfloat16(self):
        logs = {"CUBLASLT_LOG_LEVEL": "1", "CUBLASLT_LOG_FILE": str(self.out / "cublaslt.log"), "CUDNN_FRONTEND_LOG_INFO": "1",
                "CUDNN_FRONTEND_LOG_FILE": str(self.out / "cudnn.log")}
        text = self.run([self.bin / "CudaKernelsTest", "--gtest_filter=*HalfKernels*/bfloat16"], logs)
        return f"{text.strip().splitlines()[-1]}; {fallbacks(text)}"

    def kernels(self):
        return self.run([self.bin / "CudaKernelsTest", "--gtest_filter=-*HalfKernels*/bfloat16"]).strip().splitlines()[-1]

    def step(self):
        refused = ""
        try:
            with_graph, seconds, summary = self.train("graph")
        except Wrong as why:  # a step is worth more than knowing that it is not all that was planned, which is said as well
            if "DS_CUDA_STRICT" not in str(why):
                raise
            self.environment, refused = {}, f"; not strict, since {why}"
            with_graph, seconds, summary = self.train("graph")
        without, slower, *_ = self.train("enqueued", environment={"DS_CUDA_GRAPH": "0"})
        planned = json.loads(self.plan.with_suffix(".json").read_text())["arena_bytes"]
        if len(with_graph) != STEPS or not all(math.isfinite(loss) for loss in with_graph):
            raise Wrong(f"losses are {with_graph}")
        if with_graph != without:
            raise Wrong(f"losses with a graph are {with_graph}, without {without}")
        if summary["device_bytes"] != planned:
            raise Wrong(f"the arena has {summary['device_bytes']} bytes, the plan says {planned}")
        return f"a step takes {1e3 * min(seconds):.1f} ms as a graph, {1e3 * min(slower):.1f} ms enqueued; losses {with_graph[0]} to {with_graph[-1]}; {fallbacks_of(summary)}{self.free_memory()}{refused}"

    def profile(self):
        trace = self.out / "trace.json"
        self.train("profile", "--trace", trace)
        events = [event for event in json.loads(trace.read_text())["traceEvents"] if event["ph"] == "X" and event["args"]["step"] == STEPS - 1]
        measured = {}
        for event in events:
            kernel = event["name"].split()[0]
            count, total = measured.get(kernel, (0, 0.0))
            measured[kernel] = count + 1, total + event["dur"] / 1e3
        planned = {one["kernel"]: 1e3 * one["seconds"] for one in json.loads(self.plan.with_suffix(".json").read_text())["commands"]}
        print(f"{'kernel':24} {'commands':>8} {'ms':>9} {'by the model':>12}", file=self.log)
        for kernel, (count, total) in sorted(measured.items(), key=lambda row: -row[1][1]):
            print(f"{kernel:24} {count:8} {total:9.3f} {planned.get(kernel, 0):12.3f}", file=self.log)
        return f"{sum(total for _, total in measured.values()):.1f} ms one by one, {sum(planned.values()):.1f} by the model; profile.log has the kernels"

    def strict(self):
        found = []
        for plan in sorted(self.plans.glob("*.dsplan")):
            losses, *_ = self.train(f"strict-{plan.stem}", environment=STRICT, plan=plan, steps=1)
            if not all(map(math.isfinite, losses)):
                raise Wrong(f"{plan.stem} has the loss {losses[0]}")
            found.append(plan.stem)
        return f"libraries take every kernel of {' and '.join(found)}"

    def tune(self):
        tuned = self.plans.with_name(f"{self.plans.name}-tuned") / self.plan.name  # as deep: a plan may name weights from its folder
        tuned.parent.mkdir(exist_ok=True)
        shutil.copy(self.plan, tuned)
        sum_of_products = self.run([self.bin / "ds-run", "--tune", tuned]).splitlines()
        last = [line for line in sum_of_products if line.startswith(f"{tuned}: ")][-1].removeprefix(f"{tuned}: ")
        expected, before, *_ = self.train("own-choice")
        losses, after, *_ = self.train("tuned", plan=tuned)
        if losses != expected:
            raise Wrong(f"losses with the tuned plan are {losses}, without {expected}")
        return f"a step takes {1e3 * min(after):.1f} ms tuned, {1e3 * min(before):.1f} ms by cuBLASLt's own choices; {last}"

    def cases(self):
        return self.run([sys.executable, HERE / "gpu_cases.py", "run", self.case_plans, "--bin", self.bin]).strip().splitlines()[-1]

    def speed(self, size="small"):
        patience = 0.8 * (self.deadline - time.monotonic())  # for each of both: where PyTorch takes too long, our own time is still told
        return self.run([sys.executable, BENCH / "gpu_step.py", self.plans, "--bin", self.bin, "--sizes", size, "--rounds", "1", "--timeout",
                         f"{patience:.0f}"]).strip().splitlines()[-1]

    def speed_xl(self):
        return self.speed("xl")

    def sanitizer(self):
        if not shutil.which("compute-sanitizer"):
            return "skipped: compute-sanitizer is not there"
        for tool in SANITIZERS:
            try:
                self.run(sanitizer_command(tool, self.bin, self.case_plans))
            except Wrong as why:
                if "ERROR SUMMARY" not in Path(self.log.name).read_text():  # it did not come to look at anything
                    return f"skipped: compute-sanitizer does not work here: {why}"
                raise
        return f"{' and '.join(SANITIZERS)} found nothing"


def fallbacks_of(summary):
    """How many kernels of a run are our own slower ones since no library took them, and which."""
    return f"fallbacks {summary['fallbacks']}" + (f": {summary['fallback_kernels']}" if summary["fallbacks"] else "")


def fallbacks(text):
    """Of what no library took a call, by its notes."""
    named = sorted(set(re.findall(r"note: (.*?) is run by our own slower kernel", text)))
    return f"fallbacks {len(named)}" + (f": {', '.join(named)}" if named else "")


# name: seconds that it may take. Those of a call are 9 minutes at most: a machine that is lent ends a command after 10.
PARTS = {"info": 30, "step": 150, "profile": 90, "strict": 120, "tune": 120,
         "bfloat16": 50, "speed": 150, "kernels": 60, "sanitizer": 50, "cases": 80, "speed-xl": 120}
CALLS = {"first": list(PARTS)[:5], "second": list(PARTS)[5:]}


def parts_of(names):
    """What to run: always `info`, since no other part can where it finds no GPU."""
    parts = [part for name in names for part in CALLS.get(name, [name])] or list(PARTS)
    return ["info", *(part for part in parts if part != "info")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=Path)
    parser.add_argument("cases", type=Path, help="what gpu_cases.py made")
    parser.add_argument("plans", type=Path, help="what gpu_plans.sh made")
    parser.add_argument("parts", nargs="*", metavar="PART", help="default: all")
    parser.add_argument("--out", type=Path, default=Path("gpu-first"), help="folder (%(default)s)")
    parser.add_argument("--minutes", type=float, default=9, help="after which no part runs (%(default)s)")
    args = parser.parse_intermixed_args()
    parts = parts_of(args.parts)
    for name in parts:
        if name not in PARTS:
            parser.error(f"there is no part {name}; there are {', '.join([*CALLS, *PARTS])}")
    args.out.mkdir(parents=True, exist_ok=True)
    first, end, failed = First(args), time.monotonic() + 60 * args.minutes, False
    for name in parts:
        left = end - time.monotonic()
        if left < 1:
            print(f"{name}: not run, the {args.minutes:g} minutes are over", flush=True)
            continue
        begin = time.monotonic()
        first.deadline = begin + min(PARTS[name], left)
        with open(first.out / f"{name}.log", "w") as first.log:
            try:
                found, wrong, last = getattr(first, name.replace("-", "_"))(), "", False
            except Exception as error:  # of whatever kind: the next part is worth as much
                found, wrong, last = "", str(error) or type(error).__name__, isinstance(error, NoGpu)
        failed |= bool(wrong)
        seconds = time.monotonic() - begin
        with open(first.out / "results.jsonl", "a") as results:
            print(json.dumps({"part": name, "seconds": round(seconds, 1), "failed": wrong} if wrong else
                             {"part": name, "seconds": round(seconds, 1), "found": found}), file=results)
        print(f"{name}: {'FAILED: ' + wrong if wrong else found} ({seconds:.0f} s)", flush=True)
        first.keep()
        if last:
            break
    sys.exit(failed)


if __name__ == "__main__":
    main()
