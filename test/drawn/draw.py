#!/usr/bin/env python3
"""Draws models and configurations from a seed and compiles them; a sample trains three steps beside one rank. What fails is made small.

    draw.py --count 2000 --seed 1 --run 100     draws 0 to 1999 of seed 1; the exit code says whether one is at fault
    draw.py --seed 1 --only 17                  draw 17 again, and the smallest that has its fault, in build/drawn/1-17

A compilation has to end in a plan that ds-opt's checker takes, or in a sentence of rules.py, within a minute.
"""

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, namedtuple
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from pathlib import Path

import configs
import models
import numpy
import onnx
import pool
import rules
from safetensors.numpy import load_file, save_file
from shrink import shrink

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "build" / "drawn"
LONGEST = 60  # seconds of the processor for a compilation, or a run
STEPS = 3
CLOSE = {"reassociated": 3e-3, "lossy": 0.1}  # losses of plans that do not claim one rank's bits, relative
# verdict: "plan", a rule's name or "fault". ran: the plan's numerics where it was trained.
Outcome = namedtuple("Outcome", "verdict sentence seconds ran", defaults=[""])


class Draw:
    """Draw `number` of a seed."""

    def __init__(self, seed, number, pairs):
        source, pair = random.Random(f"{seed} {number}"), pairs[number % len(pairs)]
        self.spec, choice = models.draw_model(source, pool.EXPORTS), configs.draw_choice(source, pair)
        if "--dim" in choice:
            self.spec = models.opened({"head": "untied", **self.spec, "ends": "loss"})
        if choice.get("--machine") == "slow":
            self.spec = models.enlarged(self.spec)
        if "deepstatic.loss" in choice and self.spec["family"] != "exported":
            self.spec = {**self.spec, "ends": "logits", "tokens": max(3, self.spec["tokens"])}
        else:
            choice.pop("deepstatic.loss", None)
        self.choice = configs.legal(configs.fitting(choice, self.spec, trained_of(self.spec)))


def trained_of(spec):
    """Names of the parameters that train; an exported model's are looked up where it lies."""
    if spec["family"] == "exported":
        return pool.trained_of(pool.place_of(spec["name"]))
    properties = {p.key: p.value for p in models.graph_of(spec).metadata_props}
    return json.loads(properties["deepstatic.trainable"])


def shuffled_pairs(seed):
    pairs = list(configs.pairs())
    random.Random(f"pairs {seed}").shuffle(pairs)
    return pairs


BINARIES = None  # where ds-opt and ds-run lie, if not in the build


def binary(name):
    build = Path(os.environ.get("DS_BUILD_DIR", ROOT / "build" / "dev"))
    return Path(BINARIES or os.environ.get("DS_BINARIES", build / "bin")) / name


def call(*arguments):
    """(exit code, what it said). It has so many seconds of the processor, whatever else the machine does; a call that hangs ends, too."""
    limited = ["prlimit", f"--cpu={LONGEST}:{LONGEST + 1}", *map(str, arguments)]
    try:
        done = subprocess.run(limited, capture_output=True, text=True, errors="replace", timeout=20 * LONGEST)
    except subprocess.TimeoutExpired:
        return None, "it stands still"
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return done.returncode, f"took over {LONGEST} s of the processor"
    return done.returncode, done.stdout + done.stderr


def sentence_of(text):
    return next((line for line in text.splitlines() if line.startswith("error: ")), text.strip()[:300])


def command_of(folder, spec, choice, name="plan"):
    """Writes the model and the configuration; the call that compiles them."""
    model = pool.place_of(spec["name"]) if spec["family"] == "exported" else folder / "model.onnx"
    if spec["family"] != "exported":
        onnx.save(models.graph_of(spec), model)
    config, flags = configs.config_of(choice, spec, str(folder))
    (folder / f"{name}.json").write_text(json.dumps(config, indent=1))
    return [binary("ds-opt"), "compile", model, "--config", folder / f"{name}.json", *flags, "-o", folder / f"{name}.dsplan"]


def judge(folder, spec, choice, runs=False) -> Outcome:
    """Compiles in `folder`; with `runs` verifies the plan beside its sources and, where it is for CPUs, trains beside one rank."""
    command, begin = command_of(folder, spec, choice), time.monotonic()
    code, text = call(*command, "--quiet")
    seconds = time.monotonic() - begin
    if code == 0:
        fault, numerics = (verify(command), "") if runs else ("", "")
        if runs and not fault and choice.get("--machine") != "h100x8":
            fault, numerics = train(folder, spec, choice)
        return Outcome("fault" if fault else "plan", fault, seconds, numerics)
    sentence = sentence_of(text)
    return Outcome((rules.rule_of(sentence) if code == 1 else None) or "fault", f"exit {code}: {sentence}", seconds)


def verify(compiled):
    """What `ds-opt verify` does not find in the plan of its own model and configuration."""
    model, config, plan = compiled[2], compiled[4], compiled[-1]
    code, text = call(binary("ds-opt"), "verify", plan, "--model", model, "--config", config, "--quiet")
    return "" if code == 0 else f"verify, exit {code}: {sentence_of(text)}"


def train(folder, spec, choice):
    """(what is wrong with three steps beside one rank, the plan's numerics)."""
    code, text = call(*command_of(folder, spec, configs.beside_one_rank(choice), "one"), "--quiet")
    if code != 0:
        return f"one rank, exit {code}: {sentence_of(text)}", "failed"
    report = json.loads(call(binary("ds-opt"), "report", folder / "plan.dsplan", "--format", "json")[1])
    save_file(data_of(spec, choice), folder / "data.safetensors")
    for name in ("plan", "one"):
        code, text = call(binary("ds-run"), folder / f"{name}.dsplan", "--data", folder / "data.safetensors", "--steps", STEPS, "--threads", 1,
                          "--metrics", folder / f"{name}.jsonl", "--export", folder / f"{name}.safetensors", "--quiet")
        if code != 0:
            return f"ds-run {name}, exit {code}: {sentence_of(text)}", "failed"
    rounds = configs.tensor_ranks(choice) > 1 and "precision" in choice
    return difference(folder, report["numerics"], configs.data_ranks(choice), rounds), report["numerics"]


def data_of(spec, choice):
    """What the plan takes."""
    if spec["family"] == "exported":
        return pool.inputs_of(pool.place_of(spec["name"]), models.SAMPLES, spec["seed"])
    data = models.data_of(spec)
    if choice.get("--dim") == "seq=4":
        data = {name: numpy.ascontiguousarray(value[:, :4]) if value.ndim > 1 else value for name, value in data.items()}
    if spec["ends"] == "logits" and spec["head"] == "regression":
        data["labels"] = data["labels"][:, 0]
    return data


def difference(folder, numerics, data_ranks, rounds):
    """What the plan's class does not allow between its run and that of one rank. `rounds`: ranks add up terms of 16 bits."""
    lines = [[json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()] for name in ("plan", "one")]
    losses, expected = ([line["loss"] for line in run if "loss" in line] for run in lines)
    if numerics == "bit-equal" and losses != expected:
        return f"losses {losses} and not {expected} in a plan that says bit-equal"
    close = CLOSE["lossy" if rounds else numerics] if numerics != "bit-equal" else 0
    if any(not abs(a - b) <= close * (0.1 + abs(b)) for a, b in zip(losses, expected, strict=True)):
        return f"losses {losses} beside {expected} in a plan that says {numerics}"
    weights, wanted = (load_file(folder / f"{name}.safetensors") for name in ("plan", "one"))
    if set(weights) != set(wanted):
        return f"the export has other tensors: {sorted(set(weights) ^ set(wanted))}"
    for name in sorted(weights) if numerics == "bit-equal" else ():
        if data_ranks > 1 and "running_" in name:
            continue  # statistics of rank 0's micro-batches
        if weights[name].tobytes() != wanted[name].tobytes():
            return f"{name} has other bits than on one rank in a plan that says bit-equal"
    return ""


def kind_of(sentence):
    """What sentences of one kind of fault share: no names, no numbers."""
    sentence = re.sub(r"/\S+/", "", sentence)
    sentence = re.sub(r"'[^']*'|\"[^\"]*\"|@\S+|\[[^\]]*\]", "_", sentence)
    sentence = re.sub(r"\w+(\.\w+)+(::\w+)*", "_", sentence)
    return re.sub(r"-?\d+", "#", sentence)[:230]


def shrunk(seed, number, pairs, outcome):
    """The smallest model and configuration with the fault of a draw, their files in a folder, and how to call it again."""
    draw, kind = Draw(seed, number, pairs), kind_of(outcome.sentence)

    def fails(spec, choice):
        with tempfile.TemporaryDirectory(prefix="drawn-") as folder:
            other = judge(Path(folder), spec, choice, runs=bool(outcome.ran))
            return other.verdict == "fault" and kind_of(other.sentence) == kind

    def allowed(choice, spec=draw.spec):
        return configs.legal(configs.fitting(choice, spec, trained_of(spec)))
    spec, choice = shrink(draw.spec, draw.choice, allowed, configs.AXES, fails)
    folder = KEPT / f"{seed}-{number}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command, sentence = command_of(folder, spec, choice), judge(folder, spec, choice, bool(outcome.ran)).sentence
    return "\n".join([f"draw {number} of seed {seed}: draw.py --seed {seed} --only {number}", " ".join(map(str, command)),
                      f"model: {json.dumps(spec)}", f"choice: {json.dumps(choice)}", sentence, ""])


class Table:
    """Counts what was drawn and what came of it."""

    def __init__(self):
        self.verdicts, self.numerics, self.values, self.families, self.blocks = (Counter() for _ in range(5))
        self.pairs, self.faults, self.slowest, self.seconds = set(), [], 0, 0

    def add(self, number, draw, outcome):
        self.verdicts[outcome.verdict] += 1
        if outcome.ran:
            self.numerics[outcome.ran] += 1
        self.count(draw)
        self.seconds += outcome.seconds
        self.slowest = max(self.slowest, outcome.seconds)
        if outcome.verdict == "fault":
            self.faults.append((number, outcome))

    def count(self, draw):
        family = draw.spec.get("name", draw.spec["family"])
        self.families[family] += 1
        self.blocks.update({block["kind"] for block in draw.spec.get("blocks", [])})
        self.values.update(draw.choice.items())
        self.pairs.update(combinations(sorted(draw.choice.items(), key=str), 2))

    def said(self):
        refused = {name: count for name, count in self.verdicts.items() if name not in ("plan", "fault")}
        return (f"{sum(self.verdicts.values())} draws: {self.verdicts['plan']} plans, {sum(refused.values())} refused by a rule {refused}, "
                f"{self.verdicts['fault']} faults; trained {sum(self.numerics.values())} {dict(self.numerics)}; "
                f"{self.seconds / max(1, sum(self.verdicts.values())):.3f} s each, at most {self.slowest:.1f} s")


def draw_all(seed, numbers, jobs, sampled=lambda number: False, shown=lambda number, draw, outcome: None) -> Table:
    """Judges draws; those that are `sampled` are trained, too."""
    pairs, table = shuffled_pairs(seed), Table()
    with tempfile.TemporaryDirectory(prefix="drawn-") as root, ThreadPoolExecutor(jobs) as workers:
        def one(number):
            folder = Path(root) / str(number)
            folder.mkdir()
            draw = Draw(seed, number, pairs)
            outcome = judge(folder, draw.spec, draw.choice, sampled(number))
            shutil.rmtree(folder)
            return number, draw, outcome
        for number, draw, outcome in workers.map(one, numbers):
            table.add(number, draw, outcome)
            shown(number, draw, outcome)
    return table


def first_fault(seed, count, jobs, each):
    """(number, outcome) of the first of `count` draws that is at fault, each `each`-th of them trained; or None."""
    step = 20 * jobs
    for first in range(0, count, step):
        table = draw_all(seed, range(first, min(first + step, count)), jobs, lambda number: number % each == 0)
        if table.faults:
            return table.faults[0]
    return None


def stride(count, runs):
    """Of so many draws each such one is trained, so that `runs` are: a third more than asked for, since some get no plan."""
    return max(1, count * 3 // (runs * 4)) if runs else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--run", type=int, default=0, help="how many of them to train, about")
    parser.add_argument("--only", type=int, help="this draw, trained")
    parser.add_argument("--no-shrink", action="store_true")
    args = parser.parse_args()
    pool.export_all()
    each = 1 if args.only is not None else stride(args.count, args.run)
    numbers = [args.only] if args.only is not None else range(args.first, args.first + args.count)

    def shown(number, draw, outcome):
        if (number + 1) % 1000 == 0:
            print(f"{number + 1 - args.first:,} of {args.count:,}", file=sys.stderr, flush=True)
        if args.only is not None:
            print(json.dumps(draw.spec), json.dumps(draw.choice), *outcome[:2], sep="\n")
        elif outcome.verdict == "fault":
            print(f"draw {number}: {outcome.sentence}", file=sys.stderr, flush=True)
    table = draw_all(args.seed, numbers, args.jobs, lambda number: each and number % each == 0, shown)
    kinds = {}
    for number, outcome in table.faults:
        kinds.setdefault(kind_of(outcome.sentence), []).append((number, outcome))
    pairs = shuffled_pairs(args.seed)
    for found in sorted(kinds.values(), key=len, reverse=True):
        print(f"{len(found)} of a kind, draws {[number for number, _ in found][:10]}: {found[0][1].sentence}", flush=True)
        if not args.no_shrink:
            print(shrunk(args.seed, *found[0][:1], pairs, found[0][1]), flush=True)
    print(table.said())
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())
