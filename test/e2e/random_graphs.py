"""Graphs at random from a seed, for what one operator alone does not show: fusion, shared values, broadcasts in a row."""

import numpy
from onnx_models import Graph


class RandomGraph:
    """Smooth operators on values that stay near 1, chosen by a seed."""

    ELEMENTWISE = ["Add", "Sub", "Mul", "Max", "Div"]
    SMOOTH = ["Tanh", "Sigmoid", "Gelu", "Sin", "Cos", "Erf", "Exp"]

    def __init__(self, seed):
        self.generator, self.graph = numpy.random.default_rng(seed), Graph()
        self.values = [self.parameter(i, shape) for i, shape in enumerate([(4, 6), (6,), (4, 1), (3, 4, 6), (6, 6), ()])]

    def parameter(self, number, shape):
        return self.graph.parameter(f"p.{number}", self.generator.standard_normal(shape)), shape

    def build(self, nodes) -> Graph:
        for _ in range(nodes):
            value = self.bounded(self.step())
            self.values.append((value, self.graph.evaluate(value).shape))
        for value, _ in self.values[-4:]:
            self.graph.project(value, self.generator)
        for name in self.graph.parameters:  # reached in any case
            self.graph.project(name, self.generator)
        return self.graph

    def pick(self, fits=lambda shape: True):
        """Late values more often, so that graphs are deep."""
        fitting = [entry for entry in self.values if fits(entry[1])]
        return fitting[max(self.generator.integers(len(fitting), size=2))]

    def bounded(self, value):
        return self.graph.op("Tanh", value) if self.generator.random() < 0.3 else value

    def step(self):
        kinds = [self.elementwise, self.elementwise, self.smooth, self.product, self.reduction, self.softmax, self.norm, self.move]
        return kinds[self.generator.integers(len(kinds))]()

    def elementwise(self):
        (a, shape), g = self.pick(), self.graph
        b, _ = self.pick(lambda other: broadcasts(shape, other))
        kind = self.generator.choice(self.ELEMENTWISE)
        if kind == "Div":
            b = g.op("Add", g.op("Sigmoid", b), g.constant(0.5))
        return g.op(kind, a, b)

    def smooth(self):
        return self.graph.op(self.generator.choice(self.SMOOTH), self.graph.op("Tanh", self.pick()[0]))

    def product(self):
        (a, _), g = self.pick(lambda shape: len(shape) >= 2 and shape[-1] == 6), self.graph
        b, _ = self.pick(lambda shape: shape == (6, 6))
        return g.op("Mul", g.op("MatMul", a, b), g.constant(0.3))

    def reduction(self):
        (a, shape), g = self.pick(lambda shape: len(shape) >= 1), self.graph
        axis = self.generator.integers(len(shape))
        return g.op(self.generator.choice(["ReduceSum", "ReduceMean", "ReduceMax"]), a, g.ints(axis),
                    keepdims=int(self.generator.integers(2)))

    def softmax(self):
        a, shape = self.pick(lambda shape: len(shape) >= 1)
        return self.graph.op(self.generator.choice(["Softmax", "LogSoftmax"]), a, axis=int(self.generator.integers(len(shape))))

    def norm(self):
        (a, shape), g = self.pick(lambda shape: shape[-1:] == (6,)), self.graph
        return g.op("LayerNormalization", a, self.pick(lambda other: other == (6,))[0], axis=-1, epsilon=0.125)

    def move(self):
        (a, shape), g = self.pick(lambda shape: len(shape) >= 2), self.graph
        rank = len(shape)
        choice = self.generator.integers(4)
        if choice == 0:
            return g.op("Transpose", a, perm=[int(i) for i in self.generator.permutation(rank)])
        if choice == 1:
            return g.op("Reshape", a, g.ints(*shape[:-2], -1))
        if choice == 2:
            return g.op("Gather", a, g.ints(0, -1, 0), axis=int(self.generator.integers(rank)))
        return g.op("Concat", a, g.op("Neg", a), axis=int(self.generator.integers(rank)))


def broadcasts(a, b):
    return all(x == y or 1 in (x, y) for x, y in zip(a[::-1], b[::-1])) and numpy.prod(a) * numpy.prod(b) < 1e5
