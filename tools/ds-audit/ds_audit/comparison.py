"""Runs reference and plan side by side, and compares what outlives a run."""

import numpy

from .data import CONSTANT, Data
from .execution import Run
from .field import Field
from .placement import require_own
from .plans import DTYPES, Refusal, of_sizes
from .ranks import World, make_ranks
from .reference import Reference

RUNS = ("step", "step", "evaluate", "step")
UNCLIPPED = {1}  # steps of a plan with tails whose gradients are not clipped
EVALUATED = 1 << 20  # number of the first sample that is evaluated
METRICS = {"loss", "grad_norm", "lr", "loss_scale", "skipped", "targets"}  # names of variables that are metrics


class Audit:
    """One order of commands, with random numbers of its own."""

    def __init__(self, plan, folder, order, seed):
        self.plan, self.order = plan, order
        tails = any(program.HasField("tail") for role in plan.roles for program in role.programs)
        self.algebra = Field(seed + order, plan.numerics == "lossy", UNCLIPPED if tails else ())
        self.world = World(plan)
        self.data = Data(plan, self.algebra, folder, seed + order)
        self.reference = Reference(plan, self.algebra, self.data, self.world.data_ranks)
        require_own(plan, {variable for variable, _ in self.reference.averages})
        self.ranks = make_ranks(self.world)
        self.compared = [numpy.zeros(value.data.size, bool) for value in self.reference.values]
        self.counts = {"runs": 0, "commands": 0, "elements": 0, "metrics": 0}
        for rank in self.ranks:
            rank.load(self.reference)

    def run(self):
        programs = {program.name for program in self.plan.roles[0].programs}
        if not programs & set(RUNS):
            raise Refusal("the plan has neither a program step nor a program evaluate")
        steps = 0
        for index, name in enumerate(RUNS):
            if name not in programs:
                continue
            first = steps * self.plan.training.train_batch_size if name == "step" else EVALUATED
            run = Run(self.world, self.ranks, self.data, self.algebra, name, steps, first, self.order)
            run.run()
            when = f"after run {index + 1} (program {name})"
            if name == "step":
                self.reference.step(steps, first)
                expected = [self.reference.values]
                steps += 1
            else:
                expected = self.reference.evaluate(first)
            self.compare_metrics(run, expected, when)
            for rank in self.ranks:
                self.compare_variables(rank, when)
            self.counts["runs"] += 1
            self.counts["commands"] += run.commands
        self.require_all_compared()
        return self.counts

    def compare_metrics(self, run, expected, when):
        """Rank 0's, as a user reads them; an evaluation's are means over data-parallel ranks."""
        rank, variables = self.ranks[0], {variable.name: i for i, variable in enumerate(self.plan.variables)}
        yielded = {self.plan.variables[op.variables[0]].name for op in self.plan.reference.ops
                   if op.op in ("train.accumulate", "train.store") and (op.function == "evaluate") == (run.name == "evaluate")}
        for name in sorted(yielded & METRICS - {metric.name for metric in run.program_of(rank).metrics}):
            raise Refusal(f"program {run.name} of rank 0 has no metric {name}, which the reference program yields")
        for metric in run.program_of(rank).metrics:
            if metric.name not in variables:
                raise Refusal(f"program {run.name} has a metric {metric.name}, which is none of the reference program's")
            held = rank.read(metric.source, 0)
            values = [one[variables[metric.name]] for one in expected]
            wanted = self.mean(values) if held.dtype.is_float else values[0].data
            if held.dtype != values[0].dtype or not numpy.array_equal(held.data.ravel(), wanted.ravel()):
                raise Refusal(f"{when}, metric {metric.name} of rank 0 is not the reference program's; it was last written by "
                              f"{rank.writer(*rank.locate(metric.source, 0)[:2])}")
            self.counts["metrics"] += 1

    def mean(self, values):
        return self.algebra.div(self.algebra.sum(numpy.array([value.data for value in values]), 0), self.algebra.constants(len(values), DTYPES[8]))

    def compare_variables(self, rank, when):
        for buffer, variable, piece, kept, byte in rank.held():
            if not self.reference.is_state(variable):
                continue
            value, name = self.reference.value(variable, rank.data_rank), self.plan.variables[variable].name
            count = kept.stop - kept.start
            try:
                held = rank.elements(buffer.arena, byte, count * value.dtype.width, value.dtype, f"variable {name}")
            except Refusal as refusal:
                raise Refusal(f"{when}, rank {rank.number}: {refusal}") from None
            different = held != piece.of(value.data)[kept]
            if different.any():
                at = int(different.argmax())
                writer = rank.writer(buffer.arena, byte + at * value.dtype.width)
                element = piece.of(numpy.arange(value.data.size))[kept.start + at]
                raise Refusal(f"{when}, element {element} of {name} in buffer {buffer.name} of rank {rank.number} is not the "
                              f"reference program's; it was last written by {writer}")
            piece.mark(self.compared[variable], kept)
            self.counts["elements"] += count

    def require_all_compared(self):
        """Every element that outlives a run lies on some rank; metrics do not."""
        metrics = {metric.name for role in self.plan.roles for program in role.programs for metric in program.metrics}
        for index, (compared, variable) in enumerate(zip(self.compared, self.plan.variables)):
            if self.reference.is_state(index) and variable.kind != CONSTANT and variable.name not in metrics and not compared.all():
                raise Refusal(f"no rank holds element {int((~compared).argmax())} of {variable.name}")


def audit(plan, folder, orders, seed):
    """Counts over all orders, or a Refusal."""
    counts = [Audit(one, folder, order, seed).run() for one in of_sizes(plan) for order in range(orders)]
    return {name: sum(count[name] for count in counts) for name in counts[0]}
