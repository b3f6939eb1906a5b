"""Gradients of operators that the importer writes out in others, and of those that read and write by index.

Judged as in test_gradients.py; one model holds many results of one parameter, so that the file stays quick.
"""

import numpy
from test_gradients import Case, away_from_zero, check, distinct, grid, normal, positive, sgd  # noqa: F401

INT64 = numpy.int64


def several(id, shape, bodies, values=normal, opset=20):
    """Every body's result of one parameter."""
    return Case(id, [shape], lambda g, x: [result for body in bodies for result in listed(body(g, x))], values, opset)


def listed(results):
    return results if isinstance(results, list) else [results]


def op(kind, **attributes):
    return lambda g, x: g.op(kind, x, **attributes)


def activation_cases():
    # Attributes are numbers that float32 holds: files store them so.
    yield several("rectified", (3, 5), [
        op("LeakyRelu", alpha=0.25), op("Elu", alpha=0.5), op("Celu", alpha=0.5), op("Selu"), op("ThresholdedRelu", alpha=0.25),
        op("HardSigmoid", alpha=0.25, beta=0.5), op("Shrink", lambd=0.5, bias=0.25)], away_from_zero)
    yield several("smooth", (3, 5), [op("Softplus"), op("Softsign"), op("Mish"), op("Tan"), op("Atan"), op("Sinh"), op("Cosh"),
                                     op("Asinh")])
    yield several("bounded", (3, 5), [op("Asin"), op("Acos"), op("Atanh")],
                  lambda generator, shape: generator.uniform(-0.9, 0.9, shape))
    yield several("acosh", (3, 5), [op("Acosh")], lambda generator, shape: generator.uniform(1.2, 3.0, shape))
    yield several("steps", (3, 5), [lambda g, x: g.op("Mul", x, g.op(kind, x)) for kind in ("Round", "Floor", "Sign")],
                  lambda generator, shape: generator.uniform(0.6, 1.4, shape))
    yield several("far", (4,), [op("Elu"), op("Softplus"), op("Mish"), op("Selu")],
                  lambda generator, shape: numpy.array([-800.0, -30.0, 30.0, 800.0]))
    yield Case("PRelu", [(2, 3, 4), (3, 1)], lambda g, x, slope: g.op("PRelu", x, slope), away_from_zero)
    yield Case("Mod", [(3, 5), (5,)], lambda g, x, y: g.op("Mod", x, y, fmod=1), away_from_zero)


def reduction_cases():
    kinds = ("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp", "ReduceProd")
    for keep in (0, 1):
        yield several(f"reductions-keep{keep}", (3, 4, 5), [
            lambda g, x, k=kind, a=axes: g.op(k, x, g.ints(*a), keepdims=keep)
            for kind in kinds for axes in ((0,), (-1,), (0, 2), (0, 1, 2))], away_from_zero)
    yield several("reductions-opset-17", (3, 4), [op(kind, axes=[1]) for kind in kinds], away_from_zero, opset=17)
    yield several("ReduceLogSum", (3, 4), [lambda g, x: g.op("ReduceLogSum", x, g.ints(1))], positive)
    yield several("ReduceProd-zeros", (2, 5), [lambda g, x: g.op("ReduceProd", x, g.ints(1))],
                  lambda generator, shape: numpy.array([[0.0, 2.0, 3.0, -1.0, 4.0], [0.0, 0.0, 1.0, 2.0, 3.0]]))
    yield several("ReduceLogSumExp-large", (2, 3), [lambda g, x: g.op("ReduceLogSumExp", g.op("Add", x, g.constant(1e3)), g.ints(1))])
    yield several("CumSum", (3, 4), [
        lambda g, x, a=axis, e=exclusive, r=reverse: g.op("CumSum", x, g.constant(a, INT64), exclusive=e, reverse=r)
        for axis in (0, -1) for exclusive in (0, 1) for reverse in (0, 1)])


def index_cases():
    rows, columns = [[2, 0, 0, 1]], [[3], [-1], [0]]
    yield several("GatherElements", (3, 4), [
        lambda g, x: g.op("GatherElements", x, g.constant(rows, INT64), axis=0),
        lambda g, x: g.op("GatherElements", x, g.constant(columns, INT64), axis=1)])
    yield several("GatherND", (2, 3, 4), [
        lambda g, x: g.op("GatherND", x, g.input("ids", numpy.array([[0, 2], [1, -1]]))),
        lambda g, x: g.op("GatherND", x, g.constant([[[0, 1], [2, 3]], [[1, 1], [-1, 0]]], INT64), batch_dims=1)])
    for reduction in ("none", "add"):
        yield Case(f"ScatterElements-{reduction}", [(3, 4), (2, 4)], lambda g, x, u, r=reduction: g.op(
            "ScatterElements", x, g.constant([[0, 1, 2, 0], [2, -1, 0, 1]] if r == "add" else [[0, 1, 2, 0], [2, 0, -2, 1]], INT64),
            u, axis=0, reduction=r))
        yield Case(f"ScatterND-{reduction}", [(4, 3), (2, 3)], lambda g, x, u, r=reduction: g.op(
            "ScatterND", x, g.constant([[3], [3 if r == "add" else -4]], INT64), u, reduction=r))
    yield several("TopK", (3, 5), [
        lambda g, x: g.op("TopK", x, g.ints(2), outputs=2, axis=1)[0],
        lambda g, x: g.op("TopK", x, g.ints(3), outputs=2, axis=0, largest=0)[0]], distinct)
    yield several("Slice-backwards", (4, 5), [
        lambda g, x: g.op("Slice", x, g.ints(-1, 3), g.ints(-9, 0), g.ints(0, 1), g.ints(-2, -1))])
    for mode in ("edge", "reflect", "wrap"):
        yield several(f"Pad-{mode}", (4, 5), [lambda g, x, m=mode: g.op("Pad", x, g.ints(2, 3, 1, 0), mode=m)])
    yield several("DepthToSpace", (1, 8, 2, 3), [op("DepthToSpace", blocksize=2), op("DepthToSpace", blocksize=2, mode="CRD")])
    yield several("SpaceToDepth", (1, 2, 4, 6), [op("SpaceToDepth", blocksize=2)])


def einsum_cases():
    for equation, *shapes in [
            ("ij,jk->ik", (3, 4), (4, 5)), ("bij,bkj->bik", (2, 3, 4), (2, 5, 4)), ("...ij,j->...i", (2, 3, 4), (4,)),
            ("i,j->ij", (3,), (4,)), ("ij->", (3, 4)), ("bii->bi", (2, 3, 3)), ("ij,jk,kl", (2, 3), (3, 4), (4, 2)),
            ("bi,ij,bj->b", (2, 3), (3, 4), (2, 4)), ("bhqd,bhkd->bhqk", (2, 2, 3, 4), (2, 2, 5, 4)), ("ij,ij->ij", (3, 4), (3, 4))]:
        name = equation.replace(",", "_").replace(">", "")
        yield Case(f"Einsum-{name}", shapes, lambda g, *xs, e=equation: g.op("Einsum", *xs, equation=e))


def loss_cases():
    labels, ignored = numpy.array([[1, 0], [2, 2]]), numpy.array([[1, 0], [2, 0]])
    weights = [0.5, 2.0, 1.25]
    for kind, build in (("SoftmaxCrossEntropyLoss", lambda g, x: x),
                        ("NegativeLogLikelihoodLoss", lambda g, x: g.op("LogSoftmax", x, axis=1))):
        yield several(f"{kind}-weights", (2, 3, 2), [
            lambda g, x, k=kind, b=build, r=reduction, w=weighted: g.op(
                k, b(g, x), g.constant(ignored), *([g.constant(weights)] if w else []), ignore_index=0, reduction=r)
            for reduction in ("none", "mean", "sum") for weighted in (False, True)])
    yield several("log_prob", (2, 3, 2), [lambda g, x: g.op("SoftmaxCrossEntropyLoss", x, g.constant(labels), outputs=2)])


@grid(activation_cases(), reduction_cases(), index_cases(), einsum_cases(), loss_cases())
def test_formula(case, tools, sgd, tmp_path):  # noqa: F811
    check(tools, case.graph(), tmp_path, sgd)
