#!/usr/bin/env python3
"""Bytes a parameter that a rank holds and sends, by ZeRO stage, beside the papers' formulas.

    build/venv/bin/python bench/ladder.py [--bin build/dev/bin] [--update]

Each rung is Llama 13B on 4, 64 and 1,024 ranks, in bf16 and fp16. The tables are printed, and with --update written into docs/capacity.md; exit
code 1 where a figure is above its formula by more than 2 %, or below without a reason. Nothing is measured on a GPU: all is counted from plans.
The model is exported without weights, which takes a minute the first time.
"""

import argparse
import dataclasses
import itertools
import math
import sys
from collections.abc import Callable

import capacity
import rounds
from capacity import GIB, NARROW_GRADIENTS, Compiler, Layout, Model
from compare_plans import read_message

MODEL = Model("Llama 13B", "llama-13b-2048", ("llama", "--size", "13b", "--seq", 2048))
RANKS, PRECISIONS, RANKS_OF_ARENA = (4, 64, 1024), ("bf16", "fp16"), 64
WITHIN, NONE = 0.02, 0.001  # of a formula; bytes a parameter that count as none
MASTER, COPY = 12, 2  # bytes a parameter: in float32 with two moments, and in 16 bits to work with
WEIGHTS, GRADIENTS, OPTIMIZER, COMMUNICATION = 1, 2, 3, 6  # categories of plan.proto's buffers
CALL = 4  # their scope within one routine


@dataclasses.dataclass(frozen=True)
class Rung(Layout):
    """A layout of the ladder. No parameter is so small that stage 3 keeps it whole, because the formulas know of none."""

    def config(self):
        config = super().config()
        config["zero_optimization"]["stage3_param_persistence_threshold"] = 0
        return config

    @property
    def gradient(self):
        """Bytes of an element of their sums."""
        return 2 if NARROW_GRADIENTS in self.more else 4


@dataclasses.dataclass(frozen=True)
class Formula:
    """Bytes a parameter: `whole` on each of N ranks, and an N-th of `shared`."""

    whole: int
    shared: int = 0

    def of(self, ranks):
        return self.whole + self.shared / ranks

    def __str__(self):
        shared = [f"{self.shared}/N"] if self.shared else []
        return " + ".join([str(self.whole), *shared] if self.whole else shared or ["0"])


class Figures:
    """What the plan says of rank 0, in bytes a parameter."""

    def __init__(self, rung, plan, report):
        self.rung, self.role, self.rank = rung, plan.roles[0], report["ranks_detail"][0]
        self.parameters = sum(math.prod(one["shape"]) for one in report["parameters"] if one["trainable"])

    def held(self, space):
        """All buffers of state, also those that are never alive at one time: what is resident, and no activation and no bucket on its way."""
        there = (buffer for buffer in self.role.buffers if self.role.arenas[buffer.arena].space == space and self.is_state(buffer))
        return sum(buffer.bytes * buffer.slots for buffer in there) / self.parameters

    def is_state(self, buffer):
        """Whether it is of parameters, sums of gradients or moments, or what stages 1 and 2 gather once a step to work with."""
        is_copy = self.rung.stage < 3 and buffer.category == COMMUNICATION and buffer.scope != CALL and buffer.name.endswith("::whole")
        return is_copy or buffer.category in (WEIGHTS, GRADIENTS, OPTIMIZER)

    def beside(self, space):
        """GiB of the arena that are no state; what is never alive at one time with a part of it may lie there, too."""
        return max(0, self.rank["memory"][space]["arena_bytes"] - self.held(space) * self.parameters) / GIB

    def sent(self, *kinds):
        """As if a rank sent to itself, too: all is sent N - 1 times of N."""
        ranks = self.rung.ranks
        return sum(self.rank["wire_bytes_per_step"][kind] for kind in kinds) / self.parameters * ranks / (ranks - 1)


def on_device(rung):
    """ZeRO's (2 + 2 + 12) and ZeRO-Offload's 2; sums of gradients in float32 take 2 more where they are whole."""
    copy = Formula(0, COPY) if rung.stage == 3 else Formula(COPY)
    if rung.away:
        return Formula(0) if rung.away == "all" else copy
    kept_whole = COPY + rung.gradient
    return (Formula(kept_whole + MASTER), Formula(kept_whole, MASTER), Formula(COPY, rung.gradient + MASTER), Formula(0, 16))[rung.stage]


def on_host(rung):
    """DeepSpeed's estimates: 16, and 18 where parameters lie there, too."""
    if rung.away == "all":
        return Formula(0, COPY + rung.gradient + MASTER)
    if rung.stage == 1 and rung.accumulation > 1:
        return Formula(rung.gradient, MASTER)
    return Formula(0, rung.gradient + MASTER) if rung.stage else Formula(rung.gradient + MASTER)


def gathered(rung):
    """Stage 3: before the forward and before the backward of each micro-batch."""
    return Formula((0, COPY, COPY, 2 * COPY * rung.accumulation)[rung.stage])


def reduced(rung):
    """Stage 0: an all_reduce sends both ways."""
    return Formula(rung.gradient * (2, 1, rung.accumulation, rung.accumulation)[rung.stage])


REASONS = {"a": "Weights are rounded where they are used: no copy in 16 bits is kept.",
           "b": "With one micro-batch each bucket of gradients is reduced as it comes. A rank keeps its slice.",
           "c": "A slice is rounded when it is sent: no copy in 16 bits is kept."}


def reason(rung):
    """Why a rank holds less than a formula says: a key of REASONS."""
    if rung.stage == 3:
        return "c"
    return {0: "a", 1: "b"}.get(rung.stage, "") if rung.accumulation == 1 else ""


@dataclasses.dataclass(frozen=True)
class Table:
    title: str
    figure: Callable  # of Figures
    formula: Callable  # of a Rung
    has: Callable  # whether a Rung is shown in it
    space: str = ""  # whose arena stands beside the figures


TABLES = (
    Table("A rank holds on the device, bytes a parameter", lambda one: one.held("device"), on_device, lambda rung: True, "device"),
    Table("A rank holds on the host, bytes a parameter", lambda one: one.held("host"), on_host, lambda rung: rung.away, "host"),
    Table("Gathered, bytes a parameter and step", lambda one: one.sent("all_gather"), gathered, lambda rung: rung.stage and not rung.away and not rung.more),
    Table("Reduced, bytes a parameter and step", lambda one: one.sent("reduce_scatter", "all_reduce"), reduced, lambda rung: not rung.away),
)


def ladder():
    """Rungs by row: alike but for ranks and precision."""
    for away, stage, accumulation, more in itertools.product(("", "optimizer", "all"), range(4), (1, 4), ((), (NARROW_GRADIENTS,))):
        if not (away and more) and (away != "all" or stage == 3):
            yield [[Rung(MODEL, ranks, stage, away, more, accumulation, precision) for precision in PRECISIONS] for ranks in RANKS]


def measure(compiler, rung):
    """Figures of the plan; how long it took is said while others are made."""
    seconds, refused = compiler.compile(rung)
    if refused:
        raise rounds.Failed("a rung does not fit", refused)
    print(f"ZeRO-{rung.stage}, {rung.ranks} ranks, {rung.accumulation} micro-batches, {rung.precision} {rung.away} {' '.join(rung.more)}: {seconds:.1f} s",
          file=sys.stderr, flush=True)
    return Figures(rung, read_message(compiler.plan), compiler.report())


def deviation(table, figures):
    """From the formula, as a share of it."""
    expected, planned = table.formula(figures.rung).of(figures.rung.ranks), table.figure(figures)
    if not expected:
        return 0 if planned < NONE else math.inf
    return planned / expected - 1


def cell(table, of_precisions):
    """The larger figure and its deviation in %, bold where it is far, with a letter where it is below for a reason."""
    worst = max(of_precisions, key=table.figure)
    share = deviation(table, worst)
    if not share and table.formula(worst.rung) == Formula(0):
        return "0"
    text = f"{table.figure(worst):.4g}, {100 * share:+.1f}"
    if is_far(table, worst):
        return f"**{text}**"
    return f"{text} ({reason(worst.rung)})" if share < -WITHIN else text


def label(rung):
    """The columns of what was asked for."""
    return [str(rung.stage), str(rung.accumulation), str(8 * rung.gradient), {"all": "optimizer, parameters"}.get(rung.away, rung.away)]


def line(table, row):
    rung = row[0][0].rung
    arena = [f"{row[RANKS.index(RANKS_OF_ARENA)][0].beside(table.space):.1f}"] if table.space else []
    return f"| {' | '.join([*label(rung), str(table.formula(rung)), *(cell(table, one) for one in row), *arena])} |"


def text_of(table, rows):
    heads = ["ZeRO", "micro-batches", "bits of gradients", "on the host", "formula", *(f"{ranks:,} ranks" for ranks in RANKS)]
    heads += [f"the arena's other GiB, {RANKS_OF_ARENA} ranks"] if table.space else []
    lines = [line(table, row) for row in rows if table.has(row[0][0].rung)]
    return "\n".join([f"{table.title}:", "", f"| {' | '.join(heads)} |", f"|{'---|' * 5}{'---:|' * (len(heads) - 5)}", *lines])


def is_far(table, figures):
    """Whether it is above its formula, or below without a reason."""
    has_reason = table.space and reason(figures.rung)
    share = deviation(table, figures)
    return share > WITHIN or share < -WITHIN and not has_reason


def holds(figures):
    """Whether no figure is far from its formula. What is sent is judged of rungs that no table shows, too."""
    return not any(is_far(table, figures) for table in TABLES if table.has(figures.rung) or not table.space)


def ladder_text(compiler):
    """(text of the tables, whether every rung holds)."""
    rows = [[[measure(compiler, rung) for rung in of_precisions] for of_precisions in row] for row in ladder()]
    reasons = "\n".join(f"- ({key}) {why}" for key, why in REASONS.items())
    return "\n\n".join([*(text_of(table, rows) for table in TABLES), reasons]) + "\n", all(holds(one) for row in rows for pair in row for one in pair)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    capacity.run(parser, "ladder", lambda folder, timeout: ladder_text(Compiler(folder, timeout, "ladder")))


if __name__ == "__main__":
    main()
