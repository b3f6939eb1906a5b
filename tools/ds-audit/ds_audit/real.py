"""Arithmetic in float64, with which the reference program is compared with its model; the other number type is field.py's.

Rounding to narrower types is left out. Of optimizers nothing is here: only a micro-batch's loss and gradients are compared.
"""

import math

import numpy

from . import windows
from .plans import Unusable

UNARY = {"sqrt": numpy.sqrt, "rsqrt": lambda x: 1 / numpy.sqrt(x), "exp": numpy.exp, "log": numpy.log, "log1p": numpy.log1p, "expm1": numpy.expm1, "tanh": numpy.tanh, "sin": numpy.sin,
         "cos": numpy.cos, "atan": numpy.arctan, "floor": numpy.floor, "ceil": numpy.ceil, "round": numpy.rint,
         "sigmoid": lambda x: 1 / (1 + numpy.exp(-x)), "erf": numpy.vectorize(math.erf, otypes=[float]),
         "gelu_tanh": lambda x: 0.5 * x * (1 + tanh_of_gelu(x)),
         "gelu_tanh_slope": lambda x: 0.5 * (1 + tanh_of_gelu(x) + x * (1 - tanh_of_gelu(x)**2) * math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x**2))}


def tanh_of_gelu(x):
    """Hendrycks and Gimpel, 2016."""
    return numpy.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))


class Real:
    def __init__(self, seed):
        self.random = numpy.random.default_rng(seed)
        self.add, self.sub, self.mul, self.div, self.neg = numpy.add, numpy.subtract, numpy.multiply, numpy.divide, numpy.negative
        self.cumsum, self.matmul, self.pow, self.inverse = numpy.cumsum, numpy.matmul, numpy.power, numpy.reciprocal
        self.ordered = self.from_ordered = self.reduced = lambda x: x
        self.of_integers, self.to_integers = (lambda x: x.astype(numpy.float64)), (lambda x: numpy.trunc(x).astype(numpy.int64))
        self.is_nan = lambda x: numpy.isnan(x).astype(numpy.int64)

    constants = staticmethod(lambda numbers, dtype: numpy.asarray(numbers, numpy.float64))
    rounded = staticmethod(lambda data, dtype: data)
    sum = staticmethod(lambda a, axes: a.sum(axis=axes))
    unary = staticmethod(lambda name, a: UNARY[name](a))

    def first(self, index, shape, numbers):
        known = numbers()
        return self.random.normal(0, 0.1, shape) if known is None else known

    def drawn(self, key, count):
        return numpy.random.default_rng(abs(hash(key[1:]))).normal(0, 1, count)

    def mask(self, key, shape):
        drawn = numpy.random.default_rng(key[2:]).random(shape)
        return drawn if key[1] is None else (drawn >= key[1]) / (1 - key[1])

    def opaque(self, name, key, inputs, shapes):
        if name not in OPAQUE:
            raise Unusable(f"ds-audit has no float64 arithmetic for {name}, so it cannot compare this model with its plan")
        results = OPAQUE[name](dict(key[0]), key[1], inputs, shapes)
        return [numpy.asarray(result, numpy.float64).reshape(shape) for result, shape in zip(results, shapes, strict=True)]


# ---- rows

def softmax(attributes, _, inputs, shapes):
    e = numpy.exp(inputs[0] - inputs[0].max(attributes["axis"], keepdims=True))
    return [e / e.sum(attributes["axis"], keepdims=True)]


def softmax_grad(attributes, _, inputs, shapes):
    return [inputs[0] * (inputs[1] - (inputs[0] * inputs[1]).sum(attributes["axis"], keepdims=True))]


def log_softmax_grad(attributes, _, inputs, shapes):
    return [inputs[1] - numpy.exp(inputs[0]) * inputs[1].sum(attributes["axis"], keepdims=True)]


def normalized(x, axes, epsilon, centers=True):
    mean = x.mean(axes, keepdims=True) if centers else 0.0
    variance = ((x - mean) ** 2).mean(axes, keepdims=True)
    rstd = 1 / numpy.sqrt(variance + epsilon)
    return (x - mean) * rstd, mean, variance, rstd


def normalized_grad(g, normal, rstd, axes, centers=True):
    return rstd * (g - (g.mean(axes, keepdims=True) if centers else 0) - normal * (g * normal).mean(axes, keepdims=True))


def row_norm(attributes, columns, inputs, shapes):
    """layer_norm, or without beta rms_norm, which does not subtract the mean."""
    centers = len(inputs) == 3
    normal, mean, _, rstd = normalized(inputs[0].reshape(-1, columns), 1, attributes["epsilon"], centers)
    return [normal * inputs[1] + inputs[2], mean, rstd] if centers else [normal * inputs[1], rstd]


def row_norm_grad(attributes, columns, inputs, shapes):
    dy, x, gamma = (data.reshape(-1, columns) for data in inputs[:3])
    *mean, rstd = (data.reshape(-1, 1) for data in inputs[3:])
    normal = (x - mean[0] if mean else x) * rstd
    return [normalized_grad(dy * gamma, normal, rstd, 1, bool(mean)), (dy * normal).sum(0), *([dy.sum(0)] if mean else [])]


def channels(data, like):
    return data.reshape((1, -1) + (1,) * (like.ndim - 2))


def batch_norm(attributes, _, inputs, shapes):
    x, axes = inputs[0], (0, *range(2, inputs[0].ndim))
    normal, mean, variance, rstd = normalized(x, axes, attributes["epsilon"])
    return [normal * channels(inputs[1], x) + channels(inputs[2], x), mean, variance, rstd]


def batch_norm_grad(attributes, _, inputs, shapes):
    dy, x, axes = inputs[0], inputs[1], (0, *range(2, inputs[0].ndim))
    gamma, mean, rstd = (channels(data, x) for data in inputs[2:])
    normal = (x - mean) * rstd
    return [normalized_grad(dy * gamma, normal, rstd, axes), (dy * normal).sum(axes), dy.sum(axes)]


# ---- attention, loss

def scores(attributes, q, k, mask):
    s = attributes["scale"] * q @ numpy.swapaxes(repeated(k, q), -1, -2)
    if mask is not None:
        s = numpy.where(mask != 0, s, -numpy.inf) if mask.dtype.kind == "i" else s + mask
    return numpy.where(numpy.tri(*s.shape[-2:]) != 0, s, -numpy.inf) if attributes["causal"] else s


def repeated(k, q):
    return numpy.repeat(k, q.shape[1] // k.shape[1], axis=1)


def heads_first(attributes, tensors):  # [batch, heads, rows, width], of [batch, rows, heads, width] with `bshd`; and back
    return [numpy.swapaxes(x, 1, 2) for x in tensors] if attributes["bshd"] else list(tensors)


def attention(attributes, _, inputs, shapes):
    inputs = heads_first(attributes, inputs[:3]) + list(inputs[3:])
    s = scores(attributes, *inputs[:2], inputs[3] if len(inputs) > 3 else None)
    top = numpy.maximum(s.max(-1, keepdims=True), -1e300)
    sums = numpy.exp(s - top).sum(-1, keepdims=True)
    lse = numpy.where(sums > 0, top + numpy.log(numpy.maximum(sums, 1e-300)), numpy.inf)
    return heads_first(attributes, [numpy.exp(s - lse) @ repeated(inputs[2], inputs[0])]) + [lse]


def attention_grad(attributes, _, inputs, shapes):
    dout, q, k, v, out = heads_first(attributes, (*inputs[:4], inputs[-2]))
    p = numpy.exp(scores(attributes, q, k, inputs[4] if len(inputs) > 6 else None) - inputs[-1][..., None])
    ds = p * (dout @ numpy.swapaxes(repeated(v, q), -1, -2) - (dout * out).sum(-1, keepdims=True)) * attributes["scale"]
    groups = [(numpy.swapaxes(x, -1, -2) @ y).reshape(k.shape[:2] + (-1, k.shape[2], y.shape[-1])).sum(2) for x, y in ((ds, q), (p, dout))]
    return heads_first(attributes, [ds @ repeated(k, q), *groups])


def parts_of(qkv, heads):
    return numpy.split(qkv, [heads, (qkv.shape[2] + heads) // 2], 2)


def packed_attention(attributes, _, inputs, shapes):
    return attention(attributes | {"bshd": 1}, _, [*parts_of(inputs[0], shapes[0][2]), *inputs[1:]], shapes)


def packed_attention_grad(attributes, _, inputs, shapes):
    return [numpy.concatenate(attention_grad(attributes | {"bshd": 1}, _, [inputs[0], *parts_of(inputs[1], inputs[0].shape[2]), *inputs[2:]], shapes), 2)]


def weights_of(attributes, labels):
    kept = (labels != attributes["ignore_index"]).astype(numpy.float64)
    return kept / max(kept.sum(), 1) if attributes["reduction"] == "mean" else kept


def classes_of(attributes, logits):
    return logits[:, :attributes["classes"] or None]


def cross_entropy(attributes, _, inputs, shapes):
    logits, labels = classes_of(attributes, inputs[0]), inputs[1]
    top = logits.max(1)
    lse = top + numpy.log(numpy.exp(logits - top[:, None]).sum(1))
    weights, rows = weights_of(attributes, labels), numpy.arange(len(labels))
    return [(weights * (lse - logits[rows, numpy.where(weights > 0, labels, 0)])).sum(), lse]


def cross_entropy_grad(attributes, _, inputs, shapes):
    logits, labels, lse, dloss = inputs
    weights, gradient = weights_of(attributes, labels), numpy.zeros_like(logits)
    p = classes_of(attributes, gradient)
    p[:] = numpy.exp(classes_of(attributes, logits) - lse[:, None])
    p[numpy.arange(len(labels)), numpy.where(weights > 0, labels, 0)] -= 1
    return [gradient * weights[:, None] * dloss]


OPAQUE = {"quantize_fp8": lambda _attributes, _form, inputs, shapes: [inputs[0], numpy.ones(shapes[1])], "log_softmax": lambda *arguments: [numpy.log(softmax(*arguments)[0])], "layer_norm": row_norm, "rms_norm": row_norm,
          "layer_norm_grad": row_norm_grad, "rms_norm_grad": row_norm_grad, **windows.KERNELS, **{run.__name__: run for run in (
              softmax, softmax_grad, log_softmax_grad, batch_norm, batch_norm_grad, attention, attention_grad, packed_attention,
              packed_attention_grad, cross_entropy, cross_entropy_grad)}}
