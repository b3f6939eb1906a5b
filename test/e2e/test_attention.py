"""Attention, written as exporters write it and as ONNX's own operator: regrouped, and its gradients against central differences.

What the whole op computes is thereby compared with what its parts would: the oracle runs the file as it stands, in numpy.
"""

import math

import numpy
import pytest
from test_gradients import Case, check, grid, sgd  # noqa: F401: sgd is a fixture

QUERIES, KEYS = (2, 4, 5, 6), (2, 4, 5, 6)
GROUPED, ONE_GROUP = (2, 2, 5, 6), (2, 1, 5, 6)


def lower(size):
    return numpy.where(numpy.tri(size, dtype=bool), 0.0, -numpy.inf)


def scores(g, q, k, scale=1 / math.sqrt(6)):
    return g.op("Mul", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2])), g.constant(scale))


def eager(g, q, k, v, mask=None, divided=False):
    """transformers' eager attention."""
    if divided:
        weights = g.op("Div", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2])), g.constant(2.5))
    else:
        weights = scores(g, q, k)
    if mask is not None:
        weights = g.op("Add", weights, mask)
    return g.op("MatMul", g.op("Softmax", weights, axis=-1), v)


def repeat(g, x, times=2):
    """repeat_kv: each group of keys for `times` heads."""
    batch, groups, length, size = (2, 4 // times, 5, 6)
    wide = g.op("Expand", g.op("Unsqueeze", x, g.ints(2)), g.ints(batch, groups, times, length, size))
    return g.op("Reshape", wide, g.ints(batch, groups * times, length, size))


def sdpa(g, q, k, v, mask):
    """torch's scaled_dot_product_attention: half of the scale on either side, the key turned with its heads merged."""
    half = g.constant(6 ** -0.25)
    flat = g.op("Transpose", g.op("Reshape", k, g.ints(8, 5, 6)), perm=[0, 2, 1])
    turned = g.op("Mul", g.op("Reshape", flat, g.ints(2, 4, 6, 5)), half)
    weights = g.op("Softmax", g.op("Add", g.op("MatMul", g.op("Mul", q, half), turned), mask), axis=-1)
    return g.op("MatMul", g.op("Where", g.op("IsNaN", weights), g.constant(0.0), weights), v)


def masked_fill(g, q, k, v):
    """Scores of hidden keys replaced by the lowest float; the mask says what to hide."""
    hidden = g.constant(numpy.arange(5) == 1)
    lowest = g.constant(-1.7e308)
    return g.op("MatMul", g.op("Softmax", g.op("Where", hidden, lowest, scores(g, q, k)), axis=-1), v)


def heads_last(g, x):
    """[batch, length, heads * size], as a projection yields it, by heads."""
    return g.op("Transpose", g.op("Reshape", x, g.ints(2, 5, 4, 6)), perm=[0, 2, 1, 3])


def forms():
    three = [QUERIES, KEYS, KEYS]
    bias = numpy.linspace(-1, 1, 25).reshape(5, 5)
    yield Case("eager", three, eager)
    yield Case("eager-divided", three, lambda g, *x: eager(g, *x, divided=True))
    yield Case("eager-causal", three, lambda g, *x: eager(g, *x, mask=g.constant(lower(5))))
    yield Case("eager-lowest", three, lambda g, *x: eager(g, *x, mask=g.constant(numpy.maximum(lower(5), -1.7e308)[None, None])))
    yield Case("eager-added", three, lambda g, *x: eager(g, *x, mask=g.constant(bias)))
    yield Case("eager-two-masks", three, lambda g, *x: eager(g, *x, mask=g.op("Add", g.constant(lower(5)), g.constant(bias))))
    yield Case("eager-projections", [(2, 5, 24)] * 3, lambda g, *x: eager(g, *(heads_last(g, p) for p in x)))
    yield Case("grouped", [QUERIES, GROUPED, GROUPED], lambda g, q, k, v: eager(g, q, repeat(g, k), repeat(g, v)))
    yield Case("one-group", [QUERIES, ONE_GROUP, ONE_GROUP], lambda g, q, k, v: eager(g, q, repeat(g, k, 4), repeat(g, v, 4)))
    yield Case("sdpa-grouped", [QUERIES, GROUPED, GROUPED],
               lambda g, q, k, v: sdpa(g, q, repeat(g, k), repeat(g, v), g.constant(lower(5))))
    yield Case("sdpa", three, lambda g, *x: sdpa(g, *x, g.constant(lower(5))))
    yield Case("sdpa-hidden-row", three, lambda g, *x: sdpa(g, *x, g.constant(numpy.where(numpy.arange(5)[:, None] == 3, -numpy.inf, bias))))
    yield Case("masked-fill", three, masked_fill)
    yield Case("shared", [QUERIES], lambda g, x: eager(g, x, x, x))


def attention(shapes, mask=None, **attributes):
    name = "-".join([f"{key}{value}" for key, value in attributes.items()] + ([str(mask.dtype)] if mask is not None else []))
    return Case(f"Attention-{'-'.join('x'.join(map(str, s)) for s in shapes)}-{name}", shapes, lambda g, q, k, v: g.op(
        "Attention", q, k, v, *([] if mask is None else [g.constant(mask)]), **attributes), opset=23)


def operators():
    added, seen = numpy.linspace(-1, 1, 35).reshape(5, 7), numpy.arange(35).reshape(5, 7) % 3 > 0
    cross = [QUERIES, (2, 4, 7, 6), (2, 4, 7, 3)]
    yield attention([QUERIES, KEYS, KEYS])
    yield attention([QUERIES, KEYS, KEYS], is_causal=1)
    yield attention([QUERIES, GROUPED, GROUPED], is_causal=1, scale=0.25)
    yield attention(cross, added)
    yield attention(cross, seen)
    yield attention(cross, numpy.concatenate([seen[:4], numpy.zeros((1, 7), bool)]), scale=0.25)  # a row that sees nothing
    yield attention([(2, 5, 24), (2, 7, 12), (2, 7, 6)], q_num_heads=4, kv_num_heads=2)


@grid(forms(), operators())
def test_regrouped(case, tools, sgd, tmp_path):  # noqa: F811
    graph = case.graph()
    check(tools, graph, tmp_path, sgd)
    plan = tools("ds-opt", "compile", graph.write(tmp_path), "--config", sgd, "--ranks", 1, "--emit", "plan").stdout
    assert plan.count('plan.kernel "attention"') == 2 and '"softmax"' not in plan  # of the step and of the evaluation


def trained_mask(g, q, k, v, bias):
    return eager(g, q, k, v, mask=bias)


def kept(g, q, k, v):
    weights = g.op("Softmax", scores(g, q, k), axis=-1)
    return [weights, g.op("MatMul", weights, v)]


@grid([Case("trained-mask", [QUERIES, KEYS, KEYS, (1, 4, 5, 5)], trained_mask), Case("kept", [QUERIES, KEYS, KEYS], kept),
       attention([QUERIES, KEYS, KEYS], softcap=0.75)])
def test_left_in_parts(case, tools, sgd, tmp_path):  # noqa: F811
    graph = case.graph()
    check(tools, graph, tmp_path, sgd)
    plan = tools("ds-opt", "compile", graph.write(tmp_path), "--config", sgd, "--ranks", 1, "--emit", "plan").stdout
    assert '"attention"' not in plan and '"softmax"' in plan


def rotary(shape, tables, positions=None, **attributes):
    def body(g, x, cos, sin):
        return g.op("RotaryEmbedding", x, cos, sin, *([] if positions is None else [g.constant(positions)]), **attributes)
    name = "-".join(f"{key}{value}" for key, value in attributes.items())
    return Case(f"RotaryEmbedding-{'x'.join(map(str, shape))}-{'x'.join(map(str, tables))}-{name}", [shape, tables, tables], body,
                opset=23)


@grid([rotary((2, 4, 5, 6), (2, 5, 3)), rotary((2, 4, 5, 6), (2, 5, 3), interleaved=1),
       rotary((2, 4, 5, 6), (9, 3), numpy.array([[0, 1, 2, 3, 8], [4, 4, 5, 6, 7]])),
       rotary((2, 4, 5, 6), (2, 5, 2), rotary_embedding_dim=4),
       rotary((2, 5, 24), (2, 5, 3), num_heads=4)])
def test_rotary(case, tools, sgd, tmp_path):  # noqa: F811
    check(tools, case.graph(), tmp_path, sgd)


@pytest.mark.parametrize("inputs, attributes, words", [
    ([(2, 4, 5, 6), (2, 3, 5, 6), (2, 3, 5, 6)], {}, "4 query heads are not a multiple of 3"),
    ([(2, 5, 24), (2, 5, 24), (2, 5, 24)], {"q_num_heads": 5, "kv_num_heads": 4}, "q_num_heads that divides"),
    ([(2, 4, 5, 6), (2, 4, 7, 6), (2, 4, 5, 6)], {}, "do not fit each other"),
    ([(2, 4, 5, 6)] * 3 + [(3, 5)], {}, "[3, 5] and [2, 4, 5, 5] do not broadcast"),
    ([(2, 4, 5, 6)] * 3 + [None, (2, 4, 3, 6)], {}, "use_cache=False"),
    ([(2, 4, 5, 6)] * 3, {"left_window_size": 2}, "left_window_size is not available yet"),
])
def test_refused(tools, tmp_path, inputs, attributes, words):
    from onnx_models import Graph
    graph = Graph(opset=25)
    names = ["" if shape is None else graph.parameter(f"p.{i}", numpy.zeros(shape)) for i, shape in enumerate(inputs)]
    graph.terms.append(graph.sum(graph.op("Attention", *names, **attributes)))
    assert words in tools.refused("ds-opt", "import", graph.write(tmp_path), "--dim", "batch=2")
