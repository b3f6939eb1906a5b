"""Executes the reference program, which is one device's, on all micro-batches of a step one after another."""

import numpy

from .elementwise import Tensor
from .kernels import Place, train_call
from .plans import Refusal, attributes_of, dtype_of, shape_of

GRADIENT, BUFFER, PARAMETER = 4, 2, 1  # Variable.Kind
OPTIMIZERS = {  # variables as the reference lists them, by their roles' names in alphabetical order; p, g and states
    "train.adamw": (2, 1, 0, 3), "train.adagrad": (1, 0, 2), "train.sgd": (2, 0, 1), "train.lion": (2, 1, 0), "train.lamb": (2, 1, 0, 3)}


class Reference:
    def __init__(self, plan, algebra, data, data_ranks):
        self.plan, self.algebra, self.data, self.data_ranks = plan, algebra, data, data_ranks
        self.values = data.first_values()
        self.functions = {}
        for op in plan.reference.ops:
            self.functions.setdefault(op.function, []).append(op)
        if "microbatch" not in self.functions:
            raise Refusal("the plan has no reference program to compare with")
        named = {op.op: {v for other in plan.reference.ops if other.op == op.op for v in other.variables} for op in plan.reference.ops}
        self.sums = named.get("train.accumulate", set())
        carried = {v for op in self.functions["microbatch"] if op.op == "train.store" for v in op.variables if plan.variables[v].kind == BUFFER}
        self.averages = {(v, r): self.values[v] for v in named.get("train.update_average", set()) | carried for r in range(data_ranks)}

    def value(self, variable, data_rank) -> Tensor:
        """Running averages, and what else forward changes, are each data-parallel rank's own; all else is one."""
        return self.averages.get((variable, data_rank), self.values[variable])

    def is_state(self, variable):
        """Whether it has one value for all ranks between two runs: neither a gradient nor a sum over micro-batches."""
        return self.plan.variables[variable].kind != GRADIENT and variable not in self.sums

    def step(self, step, first_sample):
        training = self.plan.training
        self.clear_sums()
        for microbatch in range(training.accumulation_steps * self.data_ranks):
            sample = first_sample + microbatch * training.micro_batch_size
            self.run("microbatch", sample, Place(step, microbatch), microbatch % self.data_ranks)
        self.run("update", first_sample, Place(step, 0), 0)

    def evaluate(self, first_sample) -> list:
        """The sums of each data-parallel rank's micro-batch; no variable keeps a new value."""
        before, results = list(self.values), []
        for rank in range(self.data_ranks):
            self.clear_sums()
            self.run("evaluate", first_sample + rank * self.plan.training.micro_batch_size, Place(0, rank), rank)
            results.append(list(self.values))
            self.values = list(before)
        return results

    def clear_sums(self):
        for variable in self.sums:
            value = self.values[variable]
            self.values[variable] = Tensor(value.data * 0, value.dtype)

    def run(self, function, first_sample, place, data_rank):
        held = {}
        inputs = {message.name: index for index, message in enumerate(self.plan.inputs)}
        values = self.plan.reference.values
        for op in self.functions.get(function, ()):
            for operand in op.operands:
                if operand not in held:
                    if values[operand].name not in inputs:
                        raise Refusal(f"{op.op} {op.name} reads {values[operand].name}, which is no input and not computed before")
                    held[operand] = self.data.batch(inputs[values[operand].name], first_sample)
            try:
                results = self.apply(op, [held[operand] for operand in op.operands], place, data_rank)
            except Refusal as refusal:
                raise Refusal(f"reference op {op.op} {op.name}: {refusal}") from None
            held.update(zip(op.results, results, strict=True))

    def apply(self, op, operands, place, data_rank):
        types = [(dtype_of(value), shape_of(value)) for value in (self.plan.reference.values[result] for result in op.results)]
        attributes = attributes_of(op)
        if op.op == "train.read":
            return [self.value(op.variables[0], data_rank)]
        if op.op == "train.constant":
            return [self.constant(attributes, *types[0])]
        if op.op == "train.loss_gradient":
            return [Tensor(self.algebra.constants(attributes["scale"], types[0][0]), types[0][0])]
        if op.op in OPTIMIZERS or op.op in ("train.increment", "train.store", "train.accumulate", "train.update_average"):
            self.change(op, operands, attributes, place, data_rank)
            return []
        return train_call(self.algebra, op.op, operands, attributes, types, place)

    def constant(self, attributes, dtype, shape):
        if "crc32c" in attributes:
            return Tensor(self.data.constant(dtype, attributes["crc32c"]).data.reshape(shape), dtype)
        number = self.algebra.constants(attributes["value"], dtype) if dtype.is_float else int(attributes["value"])
        return Tensor(numpy.full(shape, number), dtype)

    def change(self, op, operands, attributes, place, data_rank):
        """An op that gives variables new values."""
        first = op.variables[0]
        if op.op == "train.store" and (first, data_rank) in self.averages:
            self.averages[first, data_rank] = operands[0]
        elif op.op == "train.store":
            self.values[first] = operands[0]
        elif op.op == "train.accumulate":
            value = self.values[first]
            self.values[first] = Tensor(self.algebra.add(value.data, operands[0].data), value.dtype)
        elif op.op == "train.update_average":
            value = self.averages[first, data_rank]
            keep, take = (self.algebra.constants(number, value.dtype)
                          for number in (attributes["momentum"], (1 - attributes["momentum"]) * attributes["correction"]))
            data = self.algebra.add(self.algebra.mul(value.data, keep), self.algebra.mul(operands[0].data, take))
            self.averages[first, data_rank] = Tensor(data, value.dtype)
        elif op.op == "train.increment":
            self.values[first] = Tensor(self.values[first].data + 1, self.values[first].dtype)
        else:
            self.update(op, operands, attributes, place)

    def update(self, op, operands, attributes, place):
        order = OPTIMIZERS[op.op] if len(op.variables) > 2 else (1, 0)  # sgd without momentum
        variables = [op.variables[i] for i in order]
        inputs = [self.values[variable] for variable in variables] + operands
        changed = [variables[0], *variables[2:]]
        types = [(self.values[variable].dtype, self.values[variable].data.shape) for variable in changed]
        for variable, result in zip(changed, train_call(self.algebra, op.op, inputs, attributes, types, place)):
            self.values[variable] = result
