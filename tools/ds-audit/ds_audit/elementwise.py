"""Arithmetic element by element: opcodes of kernel `elementwise`, which are also ops of the reference program."""

import collections

import numpy

from .plans import DTYPES, Refusal

NAMES = {0: "constant", 1: "copy", 2: "cast", 10: "add", 11: "sub", 12: "mul", 13: "div", 14: "pow", 15: "max", 16: "min", 17: "and", 18: "or",
         19: "xor", 30: "equal", 31: "less", 32: "less_equal", 33: "greater", 34: "greater_equal", 40: "select", 50: "neg", 51: "abs",
         52: "sqrt", 53: "rsqrt", 54: "reciprocal", 55: "exp", 56: "log", 57: "erf", 58: "tanh", 59: "sigmoid", 60: "relu", 61: "sin",
         62: "cos", 63: "not", 64: "is_nan", 65: "sign", 66: "floor", 67: "ceil", 68: "round", 69: "atan", 70: "log1p", 71: "expm1",
         72: "gelu_tanh", 73: "gelu_tanh_slope"}
BINARY_NAMES = {name for number, name in NAMES.items() if 10 <= number < 40}
UNARY_NAMES = {name for number, name in NAMES.items() if number >= 50}
COMPARISONS = {"equal", "less", "less_equal", "greater", "greater_equal"}
LOGICAL = {"and": numpy.logical_and, "or": numpy.logical_or, "xor": numpy.logical_xor, "not": numpy.logical_not}
INTEGER = {"add": numpy.add, "sub": numpy.subtract, "mul": numpy.multiply, "max": numpy.maximum, "min": numpy.minimum, "neg": numpy.negative,
           "abs": numpy.abs, "sign": numpy.sign}
ARITHMETIC = {"add", "sub", "mul", "div", "pow", "neg"}


Tensor = collections.namedtuple("Tensor", "data dtype")


def arity(name):
    return 3 if name == "select" else 2 if name in BINARY_NAMES else 1


def elementwise(algebra, name, dtype, inputs):
    """The data of one op on Tensors, whose result is of `dtype`."""
    if len(inputs) != arity(name):
        raise Refusal(f"{name} has {len(inputs)} operands")
    data, of = [tensor.data for tensor in inputs], inputs[-1].dtype
    if name == "copy":
        return data[0]
    if name == "cast":
        return cast(algebra, data[0], of, dtype)
    if name == "select":
        return numpy.where(data[0] != 0, data[1], data[2])
    if name in COMPARISONS:
        order = [algebra.ordered(x) if of.is_float else x for x in data]
        return getattr(numpy, name)(*order).astype(numpy.int64)
    if name in LOGICAL:
        return LOGICAL[name](*data).astype(numpy.int64)
    if name == "is_nan":
        return algebra.is_nan(data[0])
    if dtype.is_float != of.is_float:
        raise Refusal(f"{name} of {of.name} gives {dtype.name}")
    if not dtype.is_float:
        return integer(name, data)
    return algebra.rounded(getattr(algebra, name)(*data) if name in ARITHMETIC else ordered(algebra, name, data), dtype)


def integer(name, data):
    if name == "div":
        quotient = numpy.floor_divide(numpy.abs(data[0]), numpy.maximum(numpy.abs(data[1]), 1))
        return numpy.sign(data[0]) * numpy.sign(data[1]) * quotient
    if name not in INTEGER:
        raise Refusal(f"{name} is none of integers")
    return INTEGER[name](*data)


def ordered(algebra, name, data):
    """What goes by the order of numbers; what is left is a function of one element."""
    if name in ("max", "min"):
        return algebra.from_ordered((numpy.maximum if name == "max" else numpy.minimum)(*map(algebra.ordered, data)))
    if name == "relu":
        return algebra.from_ordered(numpy.maximum(algebra.ordered(data[0]), 0))
    if name in ("abs", "sign"):
        return algebra.from_ordered(INTEGER[name](algebra.ordered(data[0])))
    if name == "reciprocal":
        return algebra.inverse(data[0])
    return algebra.unary(name, data[0])


def cast(algebra, data, of, to):
    if to.name == "bool":
        return (data != 0).astype(numpy.int64)
    if to.is_float:
        return algebra.rounded(data if of.is_float else algebra.of_integers(data), to)
    return algebra.to_integers(data) if of.is_float else data


def run_program(algebra, inputs, attributes, results, place):
    """The kernel: five integers an instruction, namely opcode, dtype of the result, three registers."""
    program, constants, registers = attributes["program"], attributes["constants"], list(inputs)
    if len(program) % 5:
        raise Refusal("a program of kernel elementwise has five integers an instruction")
    for at in range(0, len(program), 5):
        opcode, number, *places = program[at:at + 5]
        if opcode not in NAMES or number not in DTYPES:
            raise Refusal(f"a program of kernel elementwise has opcode {opcode} and element type {number}")
        name, dtype = NAMES[opcode], DTYPES[number]
        wanted = places[:1 if name == "constant" else arity(name)]
        if any(place < 0 or place >= len(constants if name == "constant" else registers) for place in wanted):
            raise Refusal(f"instruction {at // 5} of a program of kernel elementwise reads what is not there")
        if name == "constant":
            value = numpy.asarray(constants[places[0]])
            data = algebra.constants(value, dtype) if dtype.is_float else value.astype(numpy.int64)
        else:
            data = elementwise(algebra, name, dtype, [registers[place] for place in wanted])
        registers.append(Tensor(data, dtype))
    chosen = attributes["results"]
    if any(place < 0 or place >= len(registers) for place in chosen) or len(chosen) != len(results):
        raise Refusal(f"a program of kernel elementwise has results {list(chosen)} for {len(results)} operands")
    for place, (dtype, _) in zip(chosen, results):
        if registers[place].dtype != dtype:
            raise Refusal(f"a program of kernel elementwise computes {registers[place].dtype.name} into an operand of {dtype.name}")
    return [numpy.broadcast_to(registers[place].data, shape) for place, (_, shape) in zip(chosen, results)]
