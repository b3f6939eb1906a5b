"""Gradients through LSTM, GRU and RNN, control flow, samplers and the rarer norms in float64, as in test_gradients.py."""

import numpy
from onnx import TensorProto, helper, numpy_helper
from test_gradients import Case, check, distinct, grid, normal, positive, sgd  # noqa: F401

STEPS, BATCHED, INPUTS, HIDDEN = 4, 3, 2, 5
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def recurrent(kind, name, directions=1, layout=0, bias=True, states=0, peepholes=False, lengths=None, output=0, **attributes):
    """All operands that are floats are parameters."""
    rows = GATES[kind] * HIDDEN
    first = (BATCHED, directions, HIDDEN) if layout else (directions, BATCHED, HIDDEN)
    shapes = [(BATCHED, STEPS, INPUTS) if layout else (STEPS, BATCHED, INPUTS), (directions, rows, INPUTS), (directions, rows, HIDDEN)]
    shapes += [(directions, 2 * rows)] * bias + [first] * states + [(directions, 3 * HIDDEN)] * peepholes

    def body(g, x, w, r, *rest):
        rest = list(rest)
        operands = [x, w, r, rest.pop(0) if bias else "", "" if lengths is None else g.constant(lengths, numpy.int32)]
        operands += [rest.pop(0) if i < states else "" for i in range(2 if kind == "LSTM" else 1)]
        operands += rest
        while not operands[-1]:
            operands.pop()
        count = 3 if kind == "LSTM" else 2
        return g.op(kind, *operands, outputs=count, hidden_size=HIDDEN, layout=layout, **attributes)[output]
    return Case(f"{kind}-{name}", shapes, body, lambda generator, shape: 0.5 * generator.standard_normal(shape))


def recurrent_cases():
    for kind in GATES:
        yield recurrent(kind, "plain")
        yield recurrent(kind, "no-bias", bias=False)
        yield recurrent(kind, "last", output=1)
        yield recurrent(kind, "state", states=1)
        yield recurrent(kind, "layout", layout=1, states=1)
    yield recurrent("LSTM", "cell", states=2, output=2)
    yield recurrent("LSTM", "peepholes", states=2, peepholes=True)
    yield recurrent("GRU", "linear-before-reset", linear_before_reset=1)
    yield recurrent("GRU", "linear-before-reset-last", linear_before_reset=1, states=1, output=1)


@grid(recurrent_cases())
def test_recurrent(case, tools, sgd, tmp_path):  # noqa: F811
    check(tools, case.graph(), tmp_path, sgd)


# --- bodies


def body_of(name, inputs, outputs, nodes, constants=()):
    """A graph whose inputs and outputs have no types."""
    infos = [[helper.make_empty_tensor_value_info(each) for each in names] for names in (inputs, outputs)]
    return helper.make_graph([helper.make_node(kind, of, [to], **attributes) for kind, of, to, attributes in nodes], name, *infos,
                             [numpy_helper.from_array(numpy.asarray(value), each) for each, value in constants])


def loop(g, x, y):
    """h = tanh(h * y + i) three times. y lies around the body."""
    body = body_of("body", ["i", "go", "h"], ["go_on", "after"], [
        ("Cast", ["i"], "number", {"to": TensorProto.DOUBLE}), ("Mul", ["h", y], "product", {}), ("Add", ["product", "number"], "sum", {}),
        ("Tanh", ["sum"], "after", {}), ("Identity", ["go"], "go_on", {})])
    return g.op("Loop", g.constant(3, numpy.int64), g.constant(True), x, body=body)


def while_loop(g, x, y):
    """Stops by its own condition, which follows from the iteration's number."""
    body = body_of("body", ["i", "go", "h"], ["go_on", "after"], [
        ("Mul", ["h", y], "after", {}), ("Less", ["i", "two"], "go_on", {})], [("two", numpy.int64(2))])
    return g.op("Loop", "", g.constant(True), x, body=body)


def scan(g, x, y, **attributes):
    body = body_of("body", ["h", "row"], ["after", "given"], [
        ("Mul", ["h", "row"], "product", {}), ("Sin", ["product"], "after", {}), ("Exp", ["after"], "given", {})])
    return g.op("Scan", x, y, outputs=2, num_scan_inputs=1, body=body, **attributes)


def branches(g, x, y, condition):
    """Each branch reads what lies around it."""
    return g.op("If", g.constant(condition), then_branch=body_of("yes", [], ["a"], [("Mul", [x, y], "a", {})]),
                else_branch=body_of("no", [], ["b"], [("Sub", [x, y], "b", {})]))


def nested(g, x, y):
    """An If in a Loop whose condition follows from the iteration: the product twice, then a difference."""
    yes, no = (body_of(name, [], [name + "_is"], [(kind, ["h", y], name + "_is", {})]) for name, kind in (("yes", "Mul"), ("no", "Sub")))
    body = body_of("body", ["i", "go", "h"], ["go_on", "after"], [
        ("Less", ["i", "two"], "early", {}), ("If", ["early"], "after", {"then_branch": yes, "else_branch": no}),
        ("Identity", ["go"], "go_on", {})], [("two", numpy.int64(2))])
    return g.op("Loop", g.constant(3, numpy.int64), g.constant(True), x, body=body)


def body_cases():
    pair = [(3, 4), (3, 4)]
    yield Case("Loop", pair, loop)
    yield Case("Loop-while", pair, while_loop)
    yield Case("Loop-nested", pair, nested)
    yield Case("Scan", [(4,), (3, 4)], scan)
    yield Case("Scan-last", [(4,), (3, 4)], lambda g, x, y: scan(g, x, y)[0])
    yield Case("If-then", pair, lambda g, x, y: branches(g, x, y, True))
    yield Case("If-else", pair, lambda g, x, y: branches(g, x, y, False))
    yield Case("Sequence", [(2, 3), (2, 3)], lambda g, x, y: g.op(
        "ConcatFromSequence", g.op("SequenceInsert", g.op("SequenceConstruct", x, y), x), axis=1))
    yield Case("Sequence-stacked", [(2, 3), (2, 3)], lambda g, x, y: g.op(
        "ConcatFromSequence", g.op("SequenceConstruct", x, y), axis=-1, new_axis=1))


@grid(body_cases())
def test_bodies(case, tools, sgd, tmp_path):  # noqa: F811
    check(tools, case.graph(), tmp_path, sgd)


# --- samplers, selections, norms


def inner(generator, shape):
    """Places of a grid, some of them outside, none where the weights have a kink."""
    return generator.uniform(-1.15, 1.15, shape)


def sampling_cases():
    for mode, padding, corners in [("linear", "zeros", 0), ("linear", "border", 1), ("linear", "reflection", 0), ("linear", "reflection", 1),
                                   ("cubic", "zeros", 1), ("cubic", "border", 0), ("nearest", "zeros", 0)]:
        yield Case(f"GridSample-{mode}-{padding}-{corners}", [(2, 3, 4, 5), (2, 2, 3, 2)], lambda g, x, at, m=mode, p=padding, c=corners: g.op(
            "GridSample", x, at, mode=m, padding_mode=p, align_corners=c), inner)
    yield Case("GridSample-3d", [(1, 2, 3, 4, 3), (1, 2, 2, 2, 3)], lambda g, x, at: g.op("GridSample", x, at, mode="linear"), inner)


def grid_cases():
    for corners in (0, 1):
        yield Case(f"AffineGrid-{corners}", [(2, 2, 3)], lambda g, x, c=corners: g.op("AffineGrid", x, g.ints(2, 1, 3, 4), align_corners=c))
    yield Case("AffineGrid-3d", [(1, 3, 4)], lambda g, x: g.op("AffineGrid", x, g.ints(1, 1, 2, 3, 2)))


def selecting_cases():
    keep = numpy.array([True, False, True])
    yield Case("Compress", [(3, 4)], lambda g, x: g.op("Compress", x, g.constant(keep), axis=0))
    yield Case("Compress-flat", [(3, 4)], lambda g, x: g.op("Compress", x, g.constant(keep)))
    yield Case("NonZero-Gather", [(3, 4)], lambda g, x: g.op("Gather", x, g.op("Squeeze", g.op("NonZero", g.constant(keep)), g.ints(0))))
    yield Case("ReverseSequence", [(4, 3, 2)], lambda g, x: g.op("ReverseSequence", x, g.ints(4, 1, 2)))
    yield Case("ReverseSequence-batch", [(3, 4, 2)], lambda g, x: g.op("ReverseSequence", x, g.ints(4, 1, 2), batch_axis=0, time_axis=1))
    for name, attributes in {"plain": {}, "strides": dict(strides=[2, 2])}.items():
        yield Case(f"MaxUnpool-{name}", [(2, 2, 4, 6)], lambda g, x, a=dict(kernel_shape=[2, 2], strides=[2, 2]) | attributes: g.op(
            "MaxUnpool", *g.op("MaxPool", x, outputs=2, **a), **a), distinct)


def norm_cases():
    for size in (1, 3, 4):
        yield Case(f"LRN-{size}", [(2, 5, 3, 2)], lambda g, x, n=size: g.op("LRN", x, size=n, alpha=0.75, beta=0.625, bias=1.25))
    for p in (1, 2):
        yield Case(f"LpNormalization-{p}", [(3, 4)], lambda g, x, p=p: g.op("LpNormalization", x, p=p, axis=1), positive)
    yield Case("MeanVarianceNormalization", [(3, 2, 3, 2)], lambda g, x: g.op("MeanVarianceNormalization", x))
    yield Case("MeanVarianceNormalization-axes", [(3, 2, 3)], lambda g, x: g.op("MeanVarianceNormalization", x, axes=[1, 2]))


@grid(sampling_cases(), grid_cases(), selecting_cases(), norm_cases())
def test_samplers_and_norms(case, tools, sgd, tmp_path):  # noqa: F811
    check(tools, case.graph(), tmp_path, sgd)
