"""Convolution and pooling in float64, for real.py. Element k of the window at place o is x's at o strides + k dilations - low."""

import math

import numpy


def places(attributes, size, window, out):
    """[elements of a window, windows]: where each lies in x; one behind x's last for those outside of it."""
    n, flat, inside = len(size), 0, True
    for i, (stride, dilation, low) in enumerate(zip(attributes["strides"], attributes["dilations"], attributes["low"], strict=True)):
        at = numpy.add.outer(numpy.arange(window[i]) * dilation, numpy.arange(out[i]) * stride) - low
        at = at.reshape([s if axis % n == i else 1 for axis, s in enumerate((*window, *out))])
        flat, inside = flat * size[i] + at, inside & (at >= 0) & (at < size[i])
    return numpy.where(inside, flat, math.prod(size)).reshape(math.prod(window), -1)


def taken(x, where, outside=0.0):
    """[N, C, elements of a window, windows]"""
    return numpy.pad(x.reshape(*x.shape[:2], -1), ((0, 0), (0, 0), (0, 1)), constant_values=outside)[:, :, where]


def given_back(parts, where, shape):
    """The gradient of taken: what each element of x gave to windows adds up."""
    x = numpy.zeros((*shape[:2], math.prod(shape[2:]) + 1))
    numpy.add.at(x, (slice(None), slice(None), where), parts)
    return x[:, :, :-1].reshape(shape)


def conv(attributes, _, inputs, shapes):
    x, w, groups = *inputs[:2], attributes["groups"]
    windows = taken(x, places(attributes, x.shape[2:], w.shape[2:], shapes[0][2:]))
    y = w.reshape(groups, len(w) // groups, -1) @ windows.reshape(len(x), groups, w[0].size, -1)
    return [y.reshape(shapes[0]) + (inputs[2].reshape(-1, *[1] * (x.ndim - 2)) if len(inputs) > 2 else 0)]


def conv_input_grad(attributes, _, inputs, shapes):
    dy, w, groups, (n, c, *size) = *inputs, attributes["groups"], shapes[0]
    parts = w.reshape(groups, len(w) // groups, -1).swapaxes(1, 2) @ dy.reshape(n, groups, len(w) // groups, -1)
    return [given_back(parts.reshape(n, c, math.prod(w.shape[2:]), -1), places(attributes, size, w.shape[2:], dy.shape[2:]), shapes[0])]


def conv_weight_grad(attributes, _, inputs, shapes):
    dy, x, groups, (m, c, *window) = *inputs, attributes["groups"], shapes[0]
    windows = taken(x, places(attributes, x.shape[2:], window, dy.shape[2:])).reshape(len(x), groups, c * math.prod(window), -1)
    return [(dy.reshape(len(x), groups, m // groups, -1) @ windows.swapaxes(2, 3)).sum(0)]


def max_pool(attributes, _, inputs, shapes):
    return [taken(inputs[0], places(attributes, inputs[0].shape[2:], attributes["window"], shapes[0][2:]), -math.inf).max(2)]


def max_pool_grad(attributes, _, inputs, shapes):
    dy, x = inputs  # to the first of the largest
    where = places(attributes, x.shape[2:], attributes["window"], dy.shape[2:])
    largest = taken(x, where, -math.inf).argmax(2)[:, :, None] == numpy.arange(len(where))[:, None]
    return [given_back(largest * dy.reshape(*x.shape[:2], 1, -1), where, x.shape)]


def average_pool(attributes, _, inputs, shapes):
    where = places(attributes, inputs[0].shape[2:], attributes["window"], shapes[0][2:])
    return [taken(inputs[0], where).sum(2) / (where < inputs[0][0, 0].size).sum(0)]


def average_pool_grad(attributes, _, inputs, shapes):
    dy, shape = inputs[0], shapes[0]
    where = places(attributes, shape[2:], attributes["window"], dy.shape[2:])
    parts = dy.reshape(*shape[:2], 1, -1) / (where < math.prod(shape[2:])).sum(0)
    return [given_back(parts.repeat(len(where), 2), where, shape)]


KERNELS = {run.__name__: run for run in (conv, conv_input_grad, conv_weight_grad, max_pool, max_pool_grad, average_pool, average_pool_grad)}
