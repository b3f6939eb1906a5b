"""LinearAttention and CausalConvWithState of opset 27: results and gradients in float64 against their definition, which onnx's own agrees with."""

import itertools

import numpy
import onnx_models
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from onnx_models import Graph
from test_gradients import Case, check, grid, normal, sgd  # noqa: F401

RULES = ("linear", "gated", "delta", "gated_delta")
BATCH, STEPS = 2, 5


def attention(rule, heads=2, group=1, key=3, value=4, steps=STEPS, past=False, decay=1, rates=None, scale=0.0):
    """Shapes of q, k, v and, where the rule or `past` has them, of past state, decay and beta; and the node's body."""
    shapes = {"q": (BATCH, steps, heads * group * key), "k": (BATCH, steps, heads * key), "v": (BATCH, steps, heads * value)}
    shapes |= {"past": (BATCH, heads, key, value)} if past else {}
    shapes |= {"decay": (BATCH, steps, heads * decay)} if rule.startswith("gated") else {}
    shapes |= {"beta": (BATCH, steps, rates or heads)} if rule.endswith("delta") else {}

    def body(graph, *names):
        at = dict(zip(shapes, names))
        inputs = [at.get(name, "") for name in ("q", "k", "v", "past", "decay", "beta")]
        return graph.op("LinearAttention", *inputs, outputs=2, q_num_heads=heads * group, kv_num_heads=heads, update_rule=rule, scale=scale)
    return list(shapes.values()), body


def small(generator, shape):
    """Keys of which a delta rule's state does not grow."""
    return 0.4 * generator.standard_normal(shape)


def attention_cases():
    forms = {"plain": {}, "grouped": {"group": 3}, "past": {"past": True}, "one-step": {"steps": 1, "past": True}, "scaled": {"scale": 0.75},
             "one-head": {"heads": 1, "group": 2}}
    for rule, (form, more) in itertools.product(RULES, forms.items()):
        yield Case(f"{rule}-{form}", *attention(rule, **more), small, opset=27)
    for rule in ("gated", "gated_delta"):
        yield Case(f"{rule}-decay-of-keys", *attention(rule, decay=3, past=True), small, opset=27)
    for rule in ("delta", "gated_delta"):
        yield Case(f"{rule}-one-rate", *attention(rule, rates=1), small, opset=27)


def conv_cases():
    for kernel, length, bias, past, activation in ((4, 6, True, False, "none"), (4, 6, True, True, "silu"), (3, 2, False, True, "swish"),
                                                   (2, 1, False, False, "silu"), (4, 2, True, False, "none")):
        shapes = [(BATCH, 3, length), (3, 1, kernel), *([(3,)] if bias else []), *([(BATCH, 3, kernel - 1)] if past else [])]

        def body(graph, x, weight, *rest, bias=bias, past=past, activation=activation):
            inputs = [x, weight, rest[0] if bias else "", rest[-1] if past else ""]
            return graph.op("CausalConvWithState", *inputs, outputs=2, activation=activation)
        yield Case(f"conv-{kernel}-{length}-{bias}-{past}-{activation}", shapes, body, opset=27)
    yield Case("conv-1", [(BATCH, 3, 4), (3, 1, 1)], lambda g, x, w: g.op("CausalConvWithState", x, w, activation="silu"), opset=27)


@grid(attention_cases(), conv_cases())
def test_gradient(case, tools, sgd, tmp_path):  # noqa: F811
    check(tools, case.graph(), tmp_path, sgd)


@grid(attention_cases(), conv_cases())
def test_our_definition_is_onnxs(case):
    """In float32, which is what onnx's own evaluator computes in."""
    generator = numpy.random.default_rng(1)
    graph = Graph(27, TensorProto.FLOAT)
    values = {f"p.{i}": (case.values or normal)(generator, shape).astype(numpy.float32)
              for i, shape in enumerate(case.shapes)}
    outputs = case.body(graph, *values)
    outputs = [outputs] if isinstance(outputs, str) else outputs
    proto = helper.make_model(helper.make_graph(
        graph.nodes, "one", [helper.make_tensor_value_info(name, TensorProto.FLOAT, value.shape) for name, value in values.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]), opset_imports=[helper.make_opsetid("", 27)])
    for ours, theirs in zip(onnx_models.evaluator(proto).run(None, values), ReferenceEvaluator(proto).run(None, values), strict=True):
        numpy.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


MODEL_ERRORS = {
    "the update rule 'gated' needs input 'decay'": dict(update_rule="gated", inputs="qkv"),
    "the update rule 'linear' takes no input 'beta'": dict(update_rule="linear", inputs="qkv  b"),
    "update_rule 'mamba' is none of linear, gated, delta, gated_delta": dict(update_rule="mamba", inputs="qkv"),
    "q_num_heads 3 must be a multiple of kv_num_heads 2": dict(update_rule="linear", inputs="qkv", q_num_heads=3),
    "must be [batch, steps, 5 heads * size]": dict(update_rule="linear", inputs="qkv", q_num_heads=5, kv_num_heads=5)}


@pytest.mark.parametrize("sentence", MODEL_ERRORS)
def test_refused_in_one_sentence(sentence, tools, sgd, tmp_path):  # noqa: F811
    said = {"q_num_heads": 2, "kv_num_heads": 2, **MODEL_ERRORS[sentence]}
    graph = Graph(27)
    shapes = {"q": (2, 3, 4), "k": (2, 3, 4), "v": (2, 3, 4), "b": (2, 3, 2)}
    names = {name: graph.parameter(f"p.{name}", numpy.ones(shape)) for name, shape in shapes.items()}
    inputs = [names.get(letter, "") for letter in said.pop("inputs")]
    graph.terms.append(graph.sum(graph.op("LinearAttention", *inputs, outputs=2, **said)[0]))
    message = tools.refused("ds-opt", "compile", graph.write(tmp_path), "--config", sgd, "-o", tmp_path / "m.dsplan")
    assert "(LinearAttention, opset 27)" in message and sentence in message
