"""Every gradient in float64 against central differences of ONNX's own definition of the operator.

A case is a small model whose parameters are an operator's operands and whose loss is sum(result * fixed random numbers).
One step of SGD with lr 1 and no momentum leaves w - gradient; the differences are those of the reference evaluator in numpy,
which also judges the forward pass.
"""

import dataclasses
import itertools
import json
from typing import Callable

import numpy
import pytest
from conftest import write_config
from onnx import TensorProto
from onnx_models import BATCH, Graph, Oracle, central_difference
from random_graphs import RandomGraph
from safetensors.numpy import load_file, save_file

DIRECTIONS = 3     # random ones, for each parameter
TOLERANCE = 1e-6   # of the gradient's norm


@dataclasses.dataclass
class Case:
    """`body(graph, *names of the parameters)` gives the values whose projections are the loss."""
    id: str
    shapes: list
    body: Callable
    values: Callable = None  # (generator, shape) -> array; normal numbers unless given
    opset: int = 20

    def graph(self) -> Graph:
        generator = numpy.random.default_rng(sum(map(ord, self.id)))
        graph = Graph(self.opset)
        draw = self.values or normal
        names = [graph.parameter(f"p.{i}", draw(generator, shape)) for i, shape in enumerate(self.shapes)]
        results = self.body(graph, *names)
        for result in [results] if isinstance(results, str) else results:
            graph.project(result, generator)
        return graph


def normal(generator, shape):
    return generator.standard_normal(shape)


def positive(generator, shape):
    return generator.uniform(0.5, 2.0, shape)


def away_from_zero(generator, shape):
    """Of both signs, where neither a kink nor a pole is near."""
    return generator.uniform(0.3, 2.0, shape) * generator.choice([-1.0, 1.0], shape)


def distinct(generator, shape):
    """No two elements within 0.01: nothing ties and no order changes."""
    return (generator.permutation(int(numpy.prod(shape))).reshape(shape) * 0.013) - 0.5


# --- how a case is judged


@pytest.fixture(scope="session")
def sgd(tmp_path_factory):
    """A configuration whose one step subtracts the gradient."""
    return write_config(tmp_path_factory.mktemp("config") / "sgd.json", micro=BATCH, optimizer={"type": "SGD", "params": {"lr": 1.0}})


def train_once(tools, graph: Graph, folder, config):
    """The loss before and the gradients of one step, by ds-opt and ds-run."""
    tools("ds-opt", "compile", graph.write(folder), "--config", config, "--ranks", 1, "-o", folder / "m.dsplan", "--quiet")
    steps, _ = tools.train(folder / "m.dsplan", folder / "data.safetensors", 1, "--export", folder / "after.safetensors")
    after = load_file(folder / "after.safetensors")
    return steps[0]["loss"], {name: value - after[name] for name, value in graph.parameters.items()}


def check(tools, graph: Graph, folder, config):
    loss, gradients = train_once(tools, graph, folder, config)
    oracle = Oracle(graph)
    assert loss == pytest.approx(oracle(graph.parameters), rel=1e-12, abs=1e-10)
    check_gradients(oracle, graph.parameters, gradients)


def check_gradients(loss, parameters, gradients):
    generator = numpy.random.default_rng(1)
    for name, value in parameters.items():
        gradient = gradients[name]
        assert gradient.shape == value.shape and numpy.isfinite(gradient).all(), name
        for _ in range(DIRECTIONS):
            direction = generator.standard_normal(value.shape)
            expected = central_difference(loss, parameters, name, direction)
            # Rounding of the losses moves the difference by 1e-16 |loss| / h.
            allowed = TOLERANCE * max(abs(expected), numpy.linalg.norm(gradient)) + 1e-9
            assert abs((gradient * direction).sum() - expected) <= allowed, name


def grid(*cases):
    cases = list(itertools.chain(*cases))
    assert len({case.id for case in cases}) == len(cases)
    return pytest.mark.parametrize("case", cases, ids=[case.id for case in cases])


def text(*shapes):
    return "-".join("x".join(map(str, shape)) if shape else "scalar" for shape in shapes)


# --- one operand

UNARY_SHAPES = [(), (1,), (7,), (3, 5), (2, 3, 4, 5), (5003,)]
UNARY = {"Relu": away_from_zero, "Gelu": normal, "Erf": normal, "Tanh": normal, "Sigmoid": normal, "Sqrt": positive,
         "Reciprocal": away_from_zero, "Exp": normal, "Log": positive, "Sin": normal, "Cos": normal, "Abs": away_from_zero,
         "Neg": normal, "Identity": normal}


def unary(kind, shape, values, **attributes):
    name = "".join(f"-{value}" for value in attributes.values())
    return Case(f"{kind}{name}-{text(shape)}", [shape], lambda g, x: g.op(kind, x, **attributes), values)


def unary_cases():
    for shape in UNARY_SHAPES:
        for kind, values in UNARY.items():
            yield unary(kind, shape, values)
        yield unary("Gelu", shape, normal, approximate="tanh")


def pow_cases():
    """The exponent is a constant, of float64 or of another type."""
    for exponent in (0.0, 1.0, 2.0, 3.0, -1.0, -2.0):
        yield Case(f"Pow-{exponent:g}", [(3, 5)], lambda g, x, e=exponent: g.op("Pow", x, g.constant(e)), away_from_zero)
    for exponent in (0.5, 1.5, -0.5):
        yield Case(f"Pow-{exponent:g}", [(3, 5)], lambda g, x, e=exponent: g.op("Pow", x, g.constant(e)), positive)
    yield Case("Pow-int64", [(3, 5)], lambda g, x: g.op("Pow", x, g.constant(3, numpy.int64)), away_from_zero)
    yield Case("Pow-float32", [(3, 5)], lambda g, x: g.op("Pow", x, g.constant(2.5, numpy.float32)), positive)
    yield Case("Pow-constants", [(4,)], lambda g, x: g.op("Pow", x, g.constant([0.0, 1.0, 2.0, -3.0])), away_from_zero)
    yield Case("Pow-wider-exponent", [(3,)], lambda g, x: g.op("Pow", x, g.constant([[1.0], [2.0]])), away_from_zero)
    yield Case("Pow-base", [(3, 5)], lambda g, x: g.op("Pow", g.constant(1.7), x))


def clip_cases():
    far = lambda generator, shape: generator.choice([-1.3, -0.2, 0.4, 1.9], shape)  # noqa: E731
    yield Case("Clip-both", [(3, 5)], lambda g, x: g.op("Clip", x, g.constant(-0.5), g.constant(1.0)), far)
    yield Case("Clip-min", [(3, 5)], lambda g, x: g.op("Clip", x, g.constant(0.0)), far)
    yield Case("Clip-max", [(3, 5)], lambda g, x: g.op("Clip", x, "", g.constant(0.0)), far)


@grid(unary_cases(), pow_cases(), clip_cases())
def test_unary(case, tools, sgd, tmp_path):
    check(tools, case.graph(), tmp_path, sgd)


# --- two and more operands

PAIRS = [((3, 4), (3, 4)), ((3, 4), ()), ((), (3, 4)), ((), ()), ((1,), (7,)), ((2, 3, 4), (4,)), ((4,), (2, 3, 4)),
         ((2, 3, 4), (3, 4)), ((2, 3, 4), (2, 1, 4)), ((3, 1), (1, 5)), ((2, 1, 4), (3, 1)), ((5, 1, 3), (1, 7, 1)),
         ((1, 1), (1,)), ((5003,), (5003,)), ((51, 101), (101,)), ((51, 101), (51, 1)), ((1, 97), (61, 1)), ((1,), (5003,))]
BINARY = {"Add": normal, "Sub": normal, "Mul": normal, "Div": away_from_zero, "Max": distinct, "Min": distinct, "Pow": positive}


def binary_cases():
    for kind, values in BINARY.items():
        for pair in PAIRS:
            # `distinct` numbers repeat from one parameter to the next: half a step apart they cannot tie.
            shift = (lambda g, y: g.op("Add", y, g.constant(0.0067))) if values is distinct else (lambda g, y: y)
            yield Case(f"{kind}-{text(*pair)}", list(pair), lambda g, x, y, k=kind, s=shift: g.op(k, x, s(g, y)), values)


def variadic_cases():
    shapes = [(2, 1, 4), (3, 1), (4,)]
    for kind in ("Sum", "Mean"):
        yield Case(f"{kind}-three", shapes, lambda g, *xs, k=kind: g.op(k, *xs))
        yield Case(f"{kind}-one", [(3,)], lambda g, x, k=kind: g.op(k, x))
    for kind in ("Max", "Min"):
        yield Case(f"{kind}-three", shapes, lambda g, x, y, z, k=kind: g.op(
            k, x, g.op("Add", y, g.constant(0.003)), g.op("Add", z, g.constant(0.007))), distinct)


def where_cases():
    condition = numpy.indices((2, 3, 4)).sum(0) % 2 == 0
    for name, mask, shapes in [("equal", condition, [(2, 3, 4), (2, 3, 4)]), ("scalars", condition, [(), ()]),
                               ("rows", condition, [(3, 1), (4,)]), ("narrow", condition[0, :1], [(2, 3, 4), (3, 1)]),
                               ("all", numpy.ones((), bool), [(3,), (3,)])]:
        yield Case(f"Where-{name}", shapes, lambda g, x, y, m=mask: g.op("Where", g.constant(m), x, y))
    yield Case("Where-runtime", [(3,), (1,)],
               lambda g, x, y: g.op("Where", g.op("Greater", "x", g.constant(0.0)), x, y))
    yield Case("Where-of-parameter", [(3, 5)],
               lambda g, x: g.op("Where", g.op("Less", x, g.constant(0.0)), g.op("Exp", x), g.op("Mul", x, x)), away_from_zero)


@grid(binary_cases(), variadic_cases(), where_cases())
def test_broadcast(case, tools, sgd, tmp_path):
    check(tools, case.graph(), tmp_path, sgd)


# --- matrix products

PRODUCTS = [((5,), (5,)), ((5,), (5, 3)), ((4, 5), (5,)), ((4, 5), (5, 3)), ((2, 4, 5), (5, 3)), ((2, 4, 5), (2, 5, 3)),
            ((4, 5), (2, 5, 3)), ((2, 4, 5), (1, 5, 3)), ((1, 4, 5), (2, 5, 3)), ((2, 1, 4, 5), (1, 3, 5, 2)),
            ((2, 3, 4, 5), (3, 5, 2)), ((3, 4, 5), (2, 3, 5, 2)), ((2, 3, 4, 5), (5, 2)), ((5,), (2, 5, 3)),
            ((2, 3, 4, 5), (5,)), ((5,), (2, 3, 5, 4)), ((1, 1), (1, 1)), ((1, 7), (7, 1)), ((7, 1), (1, 7)),
            ((2, 1, 1, 3), (1, 2, 3, 1)), ((71, 33), (33, 65)), ((3, 70, 17), (17, 67)), ((1, 300), (300, 1))]


def matmul_cases():
    for pair in PRODUCTS:
        yield Case(f"MatMul-{text(*pair)}", list(pair), lambda g, x, y: g.op("MatMul", x, y))
    for (left, right), (tl, tr) in itertools.product(
            [((4, 5), (5, 3)), ((2, 4, 5), (5, 3)), ((2, 4, 5), (2, 5, 3)), ((2, 1, 4, 5), (3, 5, 2)), ((1, 4, 5), (5, 1))],
            [(True, False), (False, True), (True, True)]):
        yield Case(f"MatMul-{text(left, right)}{'-tl' * tl}{'-tr' * tr}", [turned(left, tl), turned(right, tr)],
                   lambda g, x, y, tl=tl, tr=tr: g.op("MatMul", transposed(g, x, tl), transposed(g, y, tr)))
    yield Case("MatMul-heads", [(2, 3, 2, 4), (2, 3, 2, 4)], lambda g, q, k: g.op(
        "MatMul", g.op("Transpose", q, perm=[0, 2, 1, 3]), g.op("Transpose", k, perm=[0, 2, 3, 1])))
    yield Case("MatMul-square", [(4, 4)], lambda g, x: g.op("MatMul", x, x))
    yield Case("MatMul-gram", [(4, 3)], lambda g, x: g.op("MatMul", x, g.op("Transpose", x, perm=[1, 0])))
    yield Case("MatMul-bias", [(2, 4, 5), (5, 3), (3,)], lambda g, x, w, b: g.op("Add", g.op("MatMul", x, w), b))
    yield Case("MatMul-wide-bias", [(4, 5), (5, 3), (2, 4, 3)], lambda g, x, w, b: g.op("Add", g.op("MatMul", x, w), b))


def turned(shape, swap):
    return (*shape[:-2], shape[-1], shape[-2]) if swap else shape


def transposed(g, value, swap):
    if not swap:
        return value
    order = list(range(g.evaluate(value).ndim))
    return g.op("Transpose", value, perm=[*order[:-2], order[-1], order[-2]])


def gemm_cases():
    factors = itertools.cycle([(1.0, 1.0), (0.5, 1.0), (1.0, 2.0), (-0.75, 0.375), (1.0, 0.0)])
    for ta, tb, bias in itertools.product([0, 1], [0, 1], [None, (3,), (1, 3), (4, 1), (4, 3), (), (1,)]):
        alpha, beta = next(factors)
        shapes = [turned((4, 5), ta), turned((5, 3), tb)] + ([bias] if bias is not None and beta else [])
        yield Case(f"Gemm-{'nt'[ta]}{'nt'[tb]}-{'none' if bias is None else text(bias)}-{alpha:g}-{beta:g}", shapes,
                   lambda g, *xs, ta=ta, tb=tb, a=alpha, b=beta: g.op("Gemm", *xs, transA=ta, transB=tb, alpha=a, beta=b))


@grid(matmul_cases(), gemm_cases())
def test_products(case, tools, sgd, tmp_path):
    check(tools, case.graph(), tmp_path, sgd)


# --- reductions, softmax, norms


def reduction_cases():
    kinds = {"ReduceSum": normal, "ReduceMean": normal, "ReduceMax": distinct, "ReduceMin": distinct}
    for (kind, values), axes, keep in itertools.product(
            kinds.items(), [None, (0,), (1,), (-1,), (0, 2), (-2, -1), (2, 0, 1)], [0, 1]):
        name = "all" if axes is None else "".join(map(str, axes))
        yield Case(f"{kind}-{name}-keep{keep}", [(3, 4, 5)], lambda g, x, k=kind, a=axes, d=keep: g.op(
            k, x, *([] if a is None else [g.ints(*a)]), keepdims=d), values)
    for (kind, values), (shape, axis) in itertools.product(
            kinds.items(), [((), None), ((1, 5, 1), 0), ((5003,), 0), ((71, 73), 0), ((71, 73), 1), ((1,), 0), ((3, 1), 1)]):
        yield Case(f"{kind}-{text(shape)}-{axis}", [shape], lambda g, x, k=kind, a=axis: g.op(
            k, x, *([] if a is None else [g.ints(a)]), keepdims=0), values)
    yield Case("ReduceSum-no-axes", [(3, 4)], lambda g, x: g.op("ReduceSum", x, g.ints(), noop_with_empty_axes=1))
    yield Case("ReduceMean-opset-13", [(3, 4)], lambda g, x: g.op("ReduceMean", x, axes=[0], keepdims=0), opset=13)


def softmax_cases():
    for kind, (shape, axis) in itertools.product(
            ("Softmax", "LogSoftmax"),
            [((3, 4, 5), 0), ((3, 4, 5), 1), ((3, 4, 5), 2), ((3, 4, 5), -1), ((3, 4, 5), -3), ((7,), 0), ((1, 1), 1), ((4, 1), 1),
             ((2, 3, 4, 5), -2), ((3, 1501), -1), ((71, 73), 0)]):
        yield Case(f"{kind}-{text(shape)}-{axis}", [shape], lambda g, x, k=kind, a=axis: g.op(k, x, axis=a))
    for kind, axis in itertools.product(("Softmax", "LogSoftmax"), (0, 1, 2)):  # all dimensions from `axis` on are one
        yield Case(f"{kind}-opset-11-{axis}", [(3, 4, 5)], lambda g, x, k=kind, a=axis: g.op(k, x, axis=a), opset=11)
    yield Case("Softmax-large", [(3, 5)], lambda g, x: g.op("Softmax", g.op("Add", x, g.constant(1e3)), axis=-1))


def layer_norm_cases():
    for shape, axis in [((3, 4, 5), -1), ((3, 4, 5), 1), ((3, 4, 5), 0), ((3, 4, 5), -2), ((7,), 0), ((4, 2), -1),
                        ((2, 769), -1), ((71, 73), -1), ((1, 5), -1)]:
        normal_shape = shape[axis:]
        norm = lambda g, *xs, a=axis: g.op("LayerNormalization", *xs, axis=a)  # noqa: E731
        yield Case(f"LayerNormalization-{text(shape)}-{axis}", [shape, normal_shape, normal_shape], norm)
        yield Case(f"LayerNormalization-{text(shape)}-{axis}-no-shift", [shape, normal_shape], norm)
    yield Case("LayerNormalization-epsilon", [(3, 5), (5,), (5,)],
               lambda g, *xs: g.op("LayerNormalization", *xs, axis=-1, epsilon=0.25))
    yield Case("LayerNormalization-scalar-scale", [(3, 5), (1,), (1,)], lambda g, *xs: g.op("LayerNormalization", *xs, axis=-1))
    yield Case("LayerNormalization-constant-scale", [(3, 5)],
               lambda g, x: g.op("LayerNormalization", x, g.constant(numpy.ones(5)), axis=-1))


@grid(reduction_cases(), softmax_cases(), layer_norm_cases())
def test_reductions_and_norms(case, tools, sgd, tmp_path):
    check(tools, case.graph(), tmp_path, sgd)


# --- movement


def shape_cases():
    for to in [(12, 5), (5, -1), (0, 0, 5), (-1,), (3, 2, 2, 5), (60, 1)]:
        yield Case(f"Reshape-{text(to)}", [(3, 4, 5)], lambda g, x, to=to: g.op("Reshape", x, g.ints(*to)))
    yield Case("Reshape-scalar", [(1, 1)], lambda g, x: g.op("Reshape", x, g.ints()))
    for axis in (0, 1, 2, 3, -1):
        yield Case(f"Flatten-{axis}", [(3, 4, 5)], lambda g, x, a=axis: g.op("Flatten", x, axis=a))
    yield Case("Squeeze-all", [(1, 4, 1)], lambda g, x: g.op("Squeeze", x))
    yield Case("Squeeze-one", [(1, 4, 1)], lambda g, x: g.op("Squeeze", x, g.ints(-1)))
    yield Case("Unsqueeze", [(3, 4)], lambda g, x: g.op("Unsqueeze", x, g.ints(0, 2, -1)))
    for order in itertools.permutations(range(3)):
        yield Case(f"Transpose-{''.join(map(str, order))}", [(3, 4, 5)], lambda g, x, p=order: g.op("Transpose", x, perm=p))
    for shape, order in [((2, 3, 4, 5), (0, 2, 1, 3)), ((2, 3, 4, 5), (3, 1, 0, 2)), ((71, 73), (1, 0)), ((2, 1, 3, 1), (3, 2, 1, 0)),
                         ((2, 3, 2, 3, 2), (4, 0, 3, 1, 2)), ((65, 3, 33), (2, 1, 0))]:
        yield Case(f"Transpose-{text(shape)}-{''.join(map(str, order))}", [shape],
                   lambda g, x, p=order: g.op("Transpose", x, perm=p))
    for shape, to in [((), (3, 4)), ((1,), (5,)), ((3, 1), (3, 4)), ((3, 1), (2, 1, 4)), ((4,), (2, 3, 4)), ((3, 4), (1, 1)),
                      ((1, 5, 1), (3, 1, 7)), ((1, 71), (73, 71))]:
        yield Case(f"Expand-{text(shape, to)}", [shape], lambda g, x, to=to: g.op("Expand", x, g.ints(*to)))
    for shape, repeats in [((3,), (2,)), ((3, 4), (2, 3)), ((3, 4), (1, 2)), ((2, 1, 3), (3, 2, 1))]:
        yield Case(f"Tile-{text(shape, repeats)}", [shape], lambda g, x, r=repeats: g.op("Tile", x, g.ints(*r)))


def slice_cases():
    for name, starts, ends, axes, steps in [
            ("rows", [1], [3], [0], [1]), ("last", [-1], [2**62], [1], [1]), ("step", [0], [100], [1], [3]),
            ("odd", [1], [6], [1], [2]), ("both", [1, 2], [4, 7], [0, 1], [2, 3]), ("middle", [1], [-1], [-1], [1]),
            ("one", [2], [3], [1], [1]), ("all", [0], [2**62], [0], [1]), ("single-back", [3], [2], [1], [-1])]:
        yield Case(f"Slice-{name}", [(5, 7)], lambda g, x, lists=(starts, ends, axes, steps): g.op(
            "Slice", x, *(g.ints(*values) for values in lists)))
    yield Case("Slice-3d", [(5, 6, 7)], lambda g, x: g.op(
        "Slice", x, g.ints(1, 0, 2), g.ints(5, 6, 7), g.ints(0, 1, 2), g.ints(3, 1, 2)))
    yield Case("Slice-large", [(71, 73)], lambda g, x: g.op("Slice", x, g.ints(3, 1), g.ints(70, 73), g.ints(0, 1), g.ints(2, 1)))
    for name, pads, value in [("after", (0, 0, 0, 2), None), ("around", (1, 2, 3, 4), None), ("value", (1, 0, 0, 1), -100.0),
                              ("crop", (-1, 1, 0, -2), None), ("nothing", (0, 0, 0, 0), None)]:
        yield Case(f"Pad-{name}", [(5, 7)], lambda g, x, p=pads, v=value: g.op(
            "Pad", x, g.ints(*p), *([] if v is None else [g.constant(v)])))
    yield Case("Pad-axis", [(5, 7)], lambda g, x: g.op("Pad", x, g.ints(2, 1), "", g.ints(-1)))
    for upper, k in [(0, 0), (1, 0), (0, -1), (1, 2), (0, 99), (1, 99)]:
        yield Case(f"Trilu-{'lu'[upper]}{k}", [(2, 4, 5)], lambda g, x, u=upper, k=k: g.op(
            "Trilu", x, g.constant(k, numpy.int64), upper=u))


def join_cases():
    for axis, shapes in [(0, [(2, 3), (1, 3)]), (1, [(2, 3), (2, 1), (2, 4)]), (-1, [(2, 3, 1), (2, 3, 2)]), (0, [(3,), (5,)]),
                         (1, [(2, 1, 3), (2, 70, 3)])]:
        yield Case(f"Concat-{axis}-{text(*shapes)}", shapes, lambda g, *xs, a=axis: g.op("Concat", *xs, axis=a))
    yield Case("Concat-twice", [(2, 3)], lambda g, x: g.op("Concat", x, x, axis=1))
    yield Case("Concat-constant", [(2, 3)], lambda g, x: g.op("Concat", g.constant(numpy.ones((1, 3))), x, axis=0))
    yield Case("Concat-empty", [(2, 3)], lambda g, x: g.op("Concat", x, g.constant(numpy.ones((0, 3))), axis=0))
    yield Case("Concat-rotated", [(3, 6)], lambda g, x: rotate_half(g, x))
    yield Case("Split-even", [(2, 6)], lambda g, x: g.op("Split", x, outputs=3, num_outputs=3, axis=1))
    yield Case("Split-uneven-last", [(2, 7)], lambda g, x: g.op("Split", x, outputs=3, num_outputs=3, axis=1))
    yield Case("Split-sizes", [(6, 3)], lambda g, x: g.op("Split", x, g.ints(1, 3, 2), outputs=3, axis=0))
    yield Case("Split-first-used", [(6, 3)], lambda g, x: g.op("Split", x, g.ints(1, 3, 2), outputs=3, axis=-2)[0])
    yield Case("Split-empty", [(2, 3)], lambda g, x: g.op("Split", x, g.ints(3, 0), outputs=2, axis=1)[0])
    yield Case("SplitToSequence", [(2, 6)], lambda g, x: [
        g.op("SequenceAt", parts, g.constant(i, numpy.int64))
        for parts in [g.op("SplitToSequence", x, g.constant(3, numpy.int64), axis=1)] for i in (0, -1)])
    yield Case("Unbind", [(2, 3)], lambda g, x: g.op("SequenceAt", g.op("SplitToSequence", x, axis=1, keepdims=0),
                                                     g.constant(1, numpy.int64)))


def rotate_half(g, x):
    """Rotary embedding's: [-second half, first half]."""
    first, second = g.op("Split", x, outputs=2, num_outputs=2, axis=1)
    return g.op("Concat", g.op("Neg", second), first, axis=1)


def gather_cases():
    for axis, (name, indices) in itertools.product([0, 1, -1], [
            ("rows", [0, 2, 1]), ("repeated", [1, 1, 0, 1]), ("negative", [-1, 0, -2]), ("scalar", 1), ("matrix", [[0, 1], [2, 2]]),
            ("same", [2, 2, 2]), ("run", [0, 1]), ("one", [[2]])]):
        yield Case(f"Gather-{axis}-{name}", [(3, 4, 5)], lambda g, x, a=axis, i=indices: g.op(
            "Gather", x, g.constant(i, numpy.int64), axis=a))
    for axis in (0, 1):
        yield Case(f"Gather-{axis}-runtime", [(4, 5)], lambda g, x, a=axis: g.op(
            "Gather", x, g.input("ids", numpy.array([[0, 3, 1], [3, 3, 1]])), axis=a))
        yield Case(f"Gather-{axis}-runtime-negative", [(4, 5)], lambda g, x, a=axis: g.op(
            "Gather", x, g.op("Sub", g.input("ids", numpy.array([[0, 7, 3], [3, 5, 1]])), g.constant(4, numpy.int64)), axis=a))
    yield Case("Gather-int32", [(4, 5)], lambda g, x: g.op("Gather", x, g.input("ids", numpy.array([[1], [3]], numpy.int32))))
    yield Case("Gather-vector", [(6,)], lambda g, x: g.op("Gather", x, g.input("ids", numpy.array([[0, 5], [1, 5]]))))
    yield Case("Gather-large", [(301, 37)], lambda g, x: g.op(
        "Gather", x, g.input("ids", numpy.random.default_rng(0).integers(0, 301, (2, 200)))))
    yield Case("GatherND", [(3, 4, 5)], lambda g, x: g.op("GatherND", x, g.constant([[0, 1], [2, -1], [0, 1]], numpy.int64)))


@grid(shape_cases(), slice_cases(), join_cases(), gather_cases())
def test_movement(case, tools, sgd, tmp_path):
    check(tools, case.graph(), tmp_path, sgd)


# --- losses


def loss_cases():
    generator = numpy.random.default_rng(5)
    for shape, reduction, ignored in itertools.product(
            [(6, 5), (2, 5, 3), (2, 5, 3, 2), (1, 2), (40, 131), (3, 1)], ["mean", "sum"], [None, -100, 0]):
        labels = generator.integers(0, shape[1], (shape[0], *shape[2:]))
        if ignored is not None:
            labels.flat[:: 3] = ignored
            if (labels == ignored).all():
                continue  # the mean over nothing is nan
        name = f"{text(shape)}-{reduction}{'' if ignored is None else f'-{ignored}'}"
        attributes = {"reduction": reduction} | ({} if ignored is None else {"ignore_index": ignored})
        for kind, build in (("SoftmaxCrossEntropyLoss", cross_entropy), ("NegativeLogLikelihoodLoss", log_likelihood)):
            yield Case(f"{kind}-{name}", [shape], lambda g, x, b=build, la=labels, a=attributes: b(g, x, g.constant(la), a))
    runtime = numpy.array([[1, 0, 2], [-100, 2, 2]])
    yield Case("SoftmaxCrossEntropyLoss-runtime", [(2, 3, 3)], lambda g, x: cross_entropy(
        g, x, g.input("labels", runtime), {"ignore_index": -100}))
    yield Case("SoftmaxCrossEntropyLoss-int32", [(2, 3)], lambda g, x: cross_entropy(
        g, x, g.input("labels", numpy.array([2, 0], numpy.int32)), {}))
    yield Case("SoftmaxCrossEntropyLoss-of-row", [(1, 3), (2, 3)], lambda g, x, y: cross_entropy(
        g, g.op("Add", x, y), g.input("labels", numpy.array([1, 2])), {}))


def cross_entropy(g, logits, labels, attributes):
    return g.op("SoftmaxCrossEntropyLoss", logits, labels, **attributes)


def log_likelihood(g, logits, labels, attributes):
    return g.op("NegativeLogLikelihoodLoss", g.op("LogSoftmax", logits, axis=1), labels, **attributes)


@grid(loss_cases())
def test_losses(case, tools, sgd, tmp_path):
    check(tools, case.graph(), tmp_path, sgd)


# --- parameters on several ways


def path_cases():
    yield Case("tied-product", [(3, 3)], lambda g, w: g.op("MatMul", g.op("Tanh", w), g.op("Transpose", w, perm=[1, 0])))
    yield Case("tied-embedding", [(7, 4)], lambda g, w: cross_entropy(
        g, g.op("MatMul", g.op("Tanh", g.op("Gather", w, g.input("ids", numpy.array([1, 6])))), g.op("Transpose", w, perm=[1, 0])),
        g.input("labels", numpy.array([3, 6])), {}))
    yield Case("two-paths", [(3, 4)], lambda g, w: [g.op("Exp", w), g.op("Mul", w, w), g.op("Reshape", w, g.ints(12))])
    yield Case("two-shapes", [(4,)], lambda g, w: g.op(
        "Mul", g.op("Unsqueeze", w, g.ints(0)), g.op("Unsqueeze", w, g.ints(1))))
    yield Case("itself", [(3,)], lambda g, w: [g.op("Div", w, w), g.op("Sub", w, w), g.op("Add", w, w)], away_from_zero)
    yield Case("residual", [(3, 4), (4, 4)], lambda g, x, w: g.op("Add", x, g.op("Relu", g.op("MatMul", x, w))))
    yield Case("times-input", [(1, 4)], lambda g, w: g.op("Sigmoid", g.op("Mul", "x", w)))
    yield Case("scalar-loss", [()], lambda g, w: w)
    yield Case("many", [(5,)] * 12, lambda g, *ws: g.op("Sum", *(g.op("Sin", w) for w in ws)))


@grid(path_cases())
def test_paths(case, tools, sgd, tmp_path):
    check(tools, case.graph(), tmp_path, sgd)


# --- casts, whose differences are exact on binary fractions


@pytest.mark.parametrize("shape", [(), (3, 5), (5003,)], ids=text)
def test_cast_rounds_the_gradient(shape, tools, sgd, tmp_path):
    graph = Graph()
    generator = numpy.random.default_rng(0)
    name = graph.parameter("p.0", generator.integers(-8, 8, shape) / 8)
    graph.project(graph.op("Cast", graph.op("Cast", name, to=TensorProto.FLOAT), to=TensorProto.DOUBLE), generator)
    _, gradients = train_once(tools, graph, tmp_path, sgd)
    assert (gradients[name] == probe_of(graph).astype(numpy.float32)).all()


def probe_of(graph):
    """The numbers that the only result was projected on."""
    return list(graph.constants.values())[-1]


def test_float32_parameter_in_a_float64_graph(tools, sgd, tmp_path):
    graph = Graph()
    name = graph.parameter("p.0", (numpy.arange(12) / 8).reshape(3, 4).astype(numpy.float32))
    wide = graph.op("CastLike", name, graph.constant(0.0))
    graph.project(graph.op("Mul", wide, wide), numpy.random.default_rng(0))
    loss, gradients = train_once(tools, graph, tmp_path, sgd)
    value = graph.parameters[name].astype(float)
    assert loss == pytest.approx(Oracle(graph)(graph.parameters), rel=1e-12)
    assert gradients[name].dtype == numpy.float32
    numpy.testing.assert_allclose(gradients[name], 2 * value * probe_of(graph), rtol=1e-5, atol=1e-6)


# --- where there is no derivative, PyTorch's choice


def kinks():
    """Operators at their kinks, as ONNX nodes and in PyTorch."""
    import torch
    tied = [[1.0, 2.0, 2.0], [3.0, 3.0, 3.0]]
    return {
        "relu-at-0": ([0.0, -0.0, 1.0], lambda g, x: g.op("Relu", x), torch.relu),
        "abs-at-0": ([0.0, -0.0, -1.0], lambda g, x: g.op("Abs", x), torch.abs),
        "max-tie": ([1.0, 2.0, 3.0], lambda g, x: g.op("Max", x, g.constant([1.0, 5.0, 3.0])),
                    lambda x: torch.maximum(x, x.new_tensor([1.0, 5.0, 3.0]))),
        "min-of-itself": ([1.0, 2.0], lambda g, x: g.op("Min", x, x), lambda x: torch.minimum(x, x)),
        "reduce-max-ties": (tied, lambda g, x: g.op("ReduceMax", x, g.ints(1), keepdims=0), lambda x: x.amax(1)),
        "reduce-min-ties": (tied, lambda g, x: g.op("ReduceMin", x, g.ints(0, 1), keepdims=0), lambda x: x.amin((0, 1))),
        "square-at-0": ([0.0, 2.0], lambda g, x: g.op("Pow", x, g.constant(2.0)), lambda x: x**2),
        "pow-0-at-0": ([0.0, 2.0], lambda g, x: g.op("Pow", x, g.constant(0.0)), lambda x: x**0.0),
        "pow-1-at-0": ([0.0, -2.0], lambda g, x: g.op("Pow", x, g.constant(1.0)), lambda x: x**1.0),
        "pow-tensor-at-0": ([0.0, 0.0, 0.0], lambda g, x: g.op("Pow", x, g.constant([0.0, 1.0, 2.0])),
                            lambda x: x ** x.new_tensor([0.0, 1.0, 2.0])),
        "exponent-at-0": ([0.0, 1.5, 2.0], lambda g, x: g.op("Pow", g.constant(0.0), x), lambda x: x.new_zeros(()) ** x),
        "sign": ([0.0, -2.0, 3.0], lambda g, x: g.op("Mul", x, g.op("Sign", x)), lambda x: x * x.sign()),
        "floor": ([0.5, -2.5], lambda g, x: g.op("Sub", x, g.op("Floor", x)), lambda x: x - x.floor()),
        "ceil": ([0.5, -2.5], lambda g, x: g.op("Add", x, g.op("Ceil", x)), lambda x: x + x.ceil()),
    }


@pytest.mark.parametrize("name", kinks())
def test_kinks_are_pytorchs(name, tools, sgd, tmp_path):
    import torch
    value, body, function = kinks()[name]
    graph = Graph()
    graph.project(body(graph, graph.parameter("p.0", value)), numpy.random.default_rng(0))
    _, gradients = train_once(tools, graph, tmp_path, sgd)
    leaf = torch.tensor(value, dtype=torch.float64, requires_grad=True)
    (function(leaf) * torch.from_numpy(numpy.asarray(probe_of(graph)))).sum().backward()
    numpy.testing.assert_allclose(gradients["p.0"], leaf.grad.numpy(), rtol=1e-12, atol=1e-12)


def test_constant_minus_itself_still_has_a_gradient(tools, sgd, tmp_path):
    """A gradient of zero is written, not skipped: the weight stays and is finite."""
    graph = Graph()
    name = graph.parameter("p.0", [1.0, 2.0])
    graph.project(graph.op("Sub", name, name), numpy.random.default_rng(0))
    _, gradients = train_once(tools, graph, tmp_path, sgd)
    assert (gradients[name] == 0).all()


# --- whole models by ds-run alone


def test_differences_of_ds_runs_own_losses(tools, sgd, tmp_path):
    """The forward-only program and the step compute one loss, whose slope the gradient is."""
    graph = Graph()
    x, w, b = (graph.parameter(f"p.{i}", normal(numpy.random.default_rng(i), shape)) for i, shape in enumerate([(3, 4), (4, 5), (5,)]))
    hidden = graph.op("Gelu", graph.op("Add", graph.op("MatMul", x, w), b))
    graph.terms.append(cross_entropy(graph, hidden, graph.ints(1, 4, 0), {}))
    loss, gradients = train_once(tools, graph, tmp_path, sgd)
    evaluate = losses_of(tools, tmp_path, "--eval")
    assert evaluate(graph.parameters) == loss
    check_gradients(evaluate, graph.parameters, gradients)


@pytest.mark.parametrize("ratio", [0.1, 0.5, 0.9])
def test_dropout_draws_one_mask(ratio, tools, sgd, tmp_path):
    """Same seed and step, same mask: differences of training losses see the masks that the gradient used."""
    graph = Graph()
    name = graph.parameter("p.0", away_from_zero(numpy.random.default_rng(0), (30, 40)))
    inputs = graph.constant(ratio, numpy.float32), graph.constant(True)
    first = graph.op("Dropout", graph.op("Tanh", name), *inputs)
    graph.project(graph.op("Dropout", graph.op("Mul", first, name), *inputs), numpy.random.default_rng(1))
    _, gradients = train_once(tools, graph, tmp_path, sgd)
    check_gradients(losses_of(tools, tmp_path, "--steps", 1), graph.parameters, gradients)
    kept, expected = (gradients[name] != 0).mean(), (1 - ratio) ** 2  # two masks, drawn apart
    assert abs(kept - expected) < 4 * (expected * (1 - expected) / gradients[name].size) ** 0.5


def losses_of(tools, folder, *mode):
    """parameters -> loss, by a ds-run of the folder's plan from these weights."""
    def loss(parameters):
        save_file({name: numpy.ascontiguousarray(value) for name, value in parameters.items()}, folder / "moved.safetensors")
        tools("ds-run", folder / "m.dsplan", "--data", folder / "data.safetensors", *mode, "--weights", folder / "moved.safetensors",
              "--metrics", folder / "moved.jsonl", "--quiet")
        line = json.loads((folder / "moved.jsonl").read_text().splitlines()[0])
        return line.get("loss", line.get("eval_loss"))
    return loss


# --- graphs at random: what one operator alone does not show


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs(seed, tools, sgd, tmp_path):
    check(tools, RandomGraph(seed).build(12), tmp_path, sgd)
