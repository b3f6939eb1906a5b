"""Gradients of convolution, pooling and norms in float64, as in test_gradients.py."""

import numpy
import pytest
from onnx_models import BATCH, Graph
from test_gradients import Case, check, distinct, grid, normal, positive, sgd  # noqa: F401

# input, weight, attributes
CONVOLUTIONS = {
    "1d": ((2, 3, 9), (4, 3, 3), {}),
    "1d-stride-pad": ((2, 3, 10), (5, 3, 4), dict(strides=[3], pads=[2, 1])),
    "2d": ((2, 3, 7, 6), (5, 3, 3, 2), {}),
    "2d-pointwise": ((3, 6, 5, 4), (7, 6, 1, 1), {}),
    "2d-pointwise-stride": ((2, 6, 5, 4), (7, 6, 1, 1), dict(strides=[2, 2])),
    "2d-pads-strides": ((2, 4, 8, 9), (6, 4, 3, 3), dict(strides=[2, 3], pads=[1, 0, 2, 1])),
    "2d-dilations": ((2, 2, 9, 9), (4, 2, 3, 3), dict(dilations=[2, 3], pads=[2, 3, 2, 3])),
    "2d-groups": ((2, 6, 6, 6), (8, 3, 3, 3), dict(group=2, pads=[1, 1, 1, 1])),
    "2d-depthwise": ((2, 5, 6, 7), (5, 1, 3, 3), dict(group=5, pads=[1, 1, 1, 1], strides=[2, 1])),
    "2d-leftover": ((1, 2, 8, 8), (4, 2, 3, 3), dict(strides=[4, 4])),
    "2d-same-upper": ((1, 2, 7, 8), (4, 2, 2, 3), dict(auto_pad="SAME_UPPER", strides=[2, 2])),
    "2d-same-lower": ((1, 2, 7, 8), (4, 2, 2, 3), dict(auto_pad="SAME_LOWER")),
    "2d-window-beyond-input": ((1, 2, 3, 3), (4, 2, 5, 5), dict(pads=[2, 2, 2, 2])),
    "2d-many-channels": ((2, 40, 9, 9), (36, 40, 3, 3), dict(pads=[1, 1, 1, 1])),
    "3d": ((1, 2, 4, 5, 4), (4, 2, 2, 3, 2), dict(strides=[1, 2, 1], pads=[1, 0, 1, 0, 1, 0])),
}


def convolution_cases():
    for name, (image, weight, attributes) in CONVOLUTIONS.items():
        yield Case(f"Conv-{name}", [image, weight], lambda g, x, w, a=attributes: g.op("Conv", x, w, **a))
    yield Case("Conv-bias", [(2, 3, 5, 5), (4, 3, 3, 3), (4,)], lambda g, x, w, b: g.op("Conv", x, w, b, pads=[1, 1, 1, 1]))
    yield Case("Conv-zero-bias", [(2, 3, 5, 5), (4, 3, 3, 3)],
               lambda g, x, w: g.op("Conv", x, w, g.constant(numpy.zeros(4))))


def transposed_cases():
    for name, (image, weight, attributes) in {
            "1d": ((2, 3, 5), (3, 4, 3), {}),
            "2d-strides": ((2, 3, 4, 5), (3, 4, 3, 2), dict(strides=[3, 2])),
            "2d-pads": ((1, 3, 4, 4), (3, 2, 3, 3), dict(strides=[2, 2], pads=[1, 0, 1, 2])),
            "2d-output-padding": ((1, 3, 4, 4), (3, 2, 3, 3), dict(strides=[2, 3], output_padding=[1, 2])),
            "2d-dilations": ((1, 3, 4, 4), (3, 2, 3, 3), dict(dilations=[2, 1]))}.items():
        yield Case(f"ConvTranspose-{name}", [image, weight],
                   lambda g, x, w, a=attributes: g.op("ConvTranspose", x, w, **a))
    yield Case("ConvTranspose-bias", [(1, 3, 4, 4), (3, 2, 3, 3), (2,)], lambda g, x, w, b: g.op("ConvTranspose", x, w, b))


@grid(convolution_cases(), transposed_cases())
def test_convolution(case, tools, sgd, tmp_path):  # noqa: F811
    check(tools, case.graph(), tmp_path, sgd)


POOLS = {
    "1d": ((2, 3, 9), dict(kernel_shape=[3])),
    "2d": ((2, 3, 6, 7), dict(kernel_shape=[2, 3])),
    "2d-strides-pads": ((2, 2, 7, 8), dict(kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])),
    "2d-asymmetric": ((1, 2, 6, 7), dict(kernel_shape=[3, 2], strides=[1, 2], pads=[0, 1, 2, 0])),
    "2d-ceil": ((1, 2, 6, 7), dict(kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)),
    "2d-ceil-pads": ((1, 2, 6, 6), dict(kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], ceil_mode=1)),
    "2d-same-upper": ((1, 2, 5, 6), dict(kernel_shape=[2, 3], strides=[2, 2], auto_pad="SAME_UPPER")),
    "2d-same-lower": ((1, 2, 5, 6), dict(kernel_shape=[2, 2], auto_pad="SAME_LOWER")),
    "3d": ((1, 2, 4, 4, 5), dict(kernel_shape=[2, 2, 2], strides=[2, 1, 1])),
}


def pool_cases():
    for name, (image, attributes) in POOLS.items():
        yield Case(f"MaxPool-{name}", [image], lambda g, x, a=attributes: g.op("MaxPool", x, **a), distinct)
        yield Case(f"AveragePool-{name}", [image], lambda g, x, a=attributes: g.op("AveragePool", x, **a))
        if "pads" in attributes:
            yield Case(f"AveragePool-{name}-counted", [image],
                       lambda g, x, a=attributes: g.op("AveragePool", x, count_include_pad=1, **a))
    yield Case("MaxPool-2d-dilations", [(1, 2, 7, 8)],
               lambda g, x: g.op("MaxPool", x, kernel_shape=[3, 2], dilations=[2, 3], strides=[1, 2]), distinct)
    for kind in ("GlobalAveragePool", "GlobalMaxPool"):
        yield Case(f"{kind}-2d", [(2, 3, 4, 5)], lambda g, x, k=kind: g.op(k, x), distinct)
        yield Case(f"{kind}-1d", [(2, 3, 5)], lambda g, x, k=kind: g.op(k, x), distinct)


@grid(pool_cases())
def test_pool(case, tools, sgd, tmp_path):  # noqa: F811
    check(tools, case.graph(), tmp_path, sgd)


def statistics(graph: Graph, channels: int):
    """Running mean and variance, which training neither reads nor differentiates."""
    return graph.constant(numpy.linspace(-1, 1, channels)), graph.constant(numpy.linspace(0.5, 2, channels))


def norm_cases():
    for shape in [(4, 3), (2, 3, 5), (3, 2, 4, 5), (2, 2, 3, 2, 2)]:
        channels = (shape[1],)
        for training in (1, 0):
            yield Case(f"BatchNormalization-{len(shape)}d-{training}", [shape, channels, channels],
                       lambda g, x, s, b, c=shape[1], t=training: g.op(
                           "BatchNormalization", x, s, b, *statistics(g, c), outputs=3 if t else 1, epsilon=2**-10,
                           **({"training_mode": 1} if t else {}))[0 if t else slice(None)])
    for shape in [(2, 3, 5), (1, 4, 3, 3), (3, 2, 4, 5)]:
        yield Case(f"InstanceNormalization-{'x'.join(map(str, shape))}", [shape, shape[1:2], shape[1:2]],
                   lambda g, x, s, b: g.op("InstanceNormalization", x, s, b, epsilon=2**-10))
    yield Case("GroupNormalization-18", [(2, 6, 3, 4), (3,), (3,)],
               lambda g, x, s, b: g.op("GroupNormalization", x, s, b, num_groups=3, epsilon=2**-10), opset=18)
    yield Case("GroupNormalization-21", [(2, 6, 3, 4), (6,), (6,)],
               lambda g, x, s, b: g.op("GroupNormalization", x, s, b, num_groups=2, epsilon=2**-10), opset=21)
    for axis in (-1, 1, 0):
        yield Case(f"RMSNormalization-{axis}", [(2, 3, 4), (2, 3, 4)[axis:]],
                   lambda g, x, s, a=axis: g.op("RMSNormalization", x, s, axis=a, epsilon=2**-12), opset=23)
    yield Case("RMSNormalization-scalar-scale", [(2, 3, 4), (1,)],
               lambda g, x, s: g.op("RMSNormalization", x, s, epsilon=2**-10), opset=23)


@grid(norm_cases())
def test_norm(case, tools, sgd, tmp_path):  # noqa: F811
    check(tools, case.graph(), tmp_path, sgd)
