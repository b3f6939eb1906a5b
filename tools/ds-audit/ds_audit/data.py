"""What all runs of a plan begin with and read: first values of variables, and samples of its inputs."""

import numpy

from .elementwise import Tensor
from .field import Field
from .plans import Refusal, count_of, crc32c, dtype_of, first_numbers, shape_of

CONSTANT = 5  # Variable.Kind


class Data:
    def __init__(self, plan, algebra, folder, seed):
        self.plan, self.algebra, self.folder = plan, algebra, folder
        self.random = Field(seed)  # integers are drawn alike for all number types
        self.constants = {}        # by type and checksum

    def first_value(self, index) -> Tensor:
        """Float variables that may change begin at any value, all others where the plan says."""
        variable = self.plan.variables[index]
        dtype, shape = dtype_of(variable), shape_of(variable)
        if dtype.is_float and variable.kind != CONSTANT:
            return Tensor(self.algebra.first(index, shape, lambda: first_numbers(self.plan, index, self.folder)), dtype)
        numbers = first_numbers(self.plan, index, self.folder)
        if numbers is None:
            raise Refusal(f"variable {variable.name} has no first value in the plan")
        return Tensor(self.algebra.constants(numbers, dtype) if dtype.is_float else numbers, dtype)

    def first_values(self) -> list:
        values = [self.first_value(index) for index in range(len(self.plan.variables))]
        for value, variable in zip(values, self.plan.variables):
            if variable.kind == CONSTANT and variable.source.WhichOneof("from") == "literal":
                self.constants[value.dtype, crc32c(variable.source.literal)] = value
        return values

    def constant(self, dtype, checksum) -> Tensor:
        """The elements that the reference program says only a checksum of: those of a variable of the plan."""
        if (dtype, checksum) not in self.constants:
            raise Refusal(f"the reference program has a constant with checksum {checksum}, which no variable of the plan holds")
        return self.constants[dtype, checksum]

    def batch(self, index, first_sample) -> Tensor:
        """An input of the micro-batch whose first sample is `first_sample` of all that there are."""
        message = self.plan.inputs[index]
        dtype, shape = dtype_of(message), shape_of(message)
        samples = shape[0] if shape else 1
        count = count_of(shape) // max(samples, 1)
        rows = [self.sample(index, first_sample + i, count, dtype) for i in range(samples)]
        return Tensor(numpy.concatenate(rows).reshape(shape) if rows else numpy.zeros(shape, numpy.int64), dtype)

    def sample(self, index, number, count, dtype):
        message = self.plan.inputs[index]
        key = ("input", index, number)
        if dtype.is_float:
            return self.algebra.drawn(key, count)
        elements = self.random.stream(self.random.key(*key), count)
        if dtype.name == "bool" or message.limit == 0:
            return elements % 2
        ignored = self.random.stream(self.random.key(*key, "ignored"), count) % 8 == 0
        return numpy.where(ignored & message.HasField("ignored"), message.ignored, elements % message.limit)
