"""What PyTorch lets modules do to gradients: build(name) -> (module, example inputs), in float64.

RIGHT: name -> (function of (module, h, x), keywords). h [batch, 6] comes from a linear layer without bias, so a sample of zeros gives zeros; w is
a parameter [6] that holds bounds and ties. REFUSED: name -> what the refusal says.
"""

import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint


class Net(nn.Module):
    def __init__(self, function, prepare=None):
        super().__init__()
        self.a, self.o = nn.Linear(4, 6, bias=False), nn.Linear(6, 3)
        self.w = nn.Parameter(torch.tensor([0.0, 1.0, 0.5, 0.5, -3.0, 3.0]))
        self.function = function
        if prepare:
            prepare(self)

    def forward(self, x, y):
        return F.cross_entropy(self.o(self.function(self, self.a(x), x)), y)


def examples():
    """With a sample of zeros."""
    x = torch.randn(4, 4)
    x[1] = 0
    return {"x": x.double(), "y": torch.tensor([0, 1, 2, 1])}


class Straight(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Reversed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return -gradient


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        return 2 * ctx.saved_tensors[0] * gradient


def straight_through(m, h, x):
    return h + (h.round() - h).detach()


def dora(m, h, x):
    v = m.a.weight + m.o.weight.t().reshape(-1)[:1] * m.w[:, None]
    return x @ (m.w.abs()[:, None] * v / v.norm(dim=1, keepdim=True).detach()).t()


def quantized(m, h, x):
    codes = m.o.weight  # [3, 6]
    nearest = codes[((h[:, None] - codes) ** 2).sum(-1).argmin(1)]
    return h + (nearest - h).detach() + ((nearest - h.detach()) ** 2).mean() + 0.25 * ((nearest.detach() - h) ** 2).mean()


def siamese(m, h, x):
    return h * F.cosine_similarity(h + 1, (h * m.w + 1).detach(), dim=1)[:, None]


def focal(m, h, x):
    return h * (1 - h.sigmoid().detach()) ** 2


def gumbel(m, h, x):
    soft = h.softmax(-1)
    hard = F.one_hot(soft.argmax(-1), 6).to(soft.dtype)
    return hard - soft.detach() + soft


def assigned(m, h, x):
    h = h * 1
    h[:, 0] = 0
    h[:, 1:3].mul_(2)
    h.add_(m.w)
    return h.relu_()


def masked(m, h, x):
    h, rows, more = h * 1, h * 2, h * 3
    h[h > 0.1] = 0.25
    rows[x[:, 0] > 0] = m.w
    more.index_put_((more > 0,), m.w[0] + 1, accumulate=True)
    return h + rows + more


def viewed(m, h, x):
    return h.view(-1, 2, 3).transpose(1, 2).reshape(-1, 6) + h.unflatten(1, (3, 2)).sum(1, keepdim=True).expand(-1, 3, 2).flatten(1)


def attended(m, h, x, mask):
    heads = torch.stack([h, h * m.w, h + m.w], 1).unflatten(2, (2, 3)).transpose(1, 2)
    return F.scaled_dot_product_attention(heads, heads, heads, attn_mask=mask(x)).mean(2).flatten(1)


def written_out(least):
    """Attention as models write it, which adds a large negative number where a sample of zeros sees nothing."""
    def attend(m, h, x):
        heads = torch.stack([h, h * m.w, h + m.w + 1], 1).unflatten(2, (2, 3)).transpose(1, 2)
        value = least(x.dtype)
        scores = heads @ (heads * 2).transpose(2, 3) / 3 ** 0.5 + torch.where(hidden(x), 0.0, value).to(x.dtype)
        return (scores.softmax(-1) @ heads).mean(2).flatten(1) + h
    return attend


def hidden(x):
    """[batch, 1, 1, 3] of bool: a sample of zeros sees nothing."""
    return (x[:, None, None, :3].abs() > 0).logical_and(x[:, None, None, :1] != 0)


class OwnAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.MultiheadAttention(6, 2, batch_first=True)

    def forward(self, rows, padding):
        return self.inner(rows, rows, rows, key_padding_mask=padding, need_weights=False)[0]


def with_attention(m):
    m.attention = OwnAttention()


def multihead(m, h, x):
    rows = torch.stack([h, h * m.w, h + m.w], 1)
    return m.attention(rows, (x[:, :1] == 0).expand(-1, 3)).mean(1)


class Positive(nn.Module):
    def forward(self, x):
        return F.softplus(x)


def scalar(function):
    """h times a number made of w."""
    return lambda m, h, x: h * function(m.w)


def each(function):
    """h + function(w)."""
    return lambda m, h, x: h + function(m.w)


def row(function):
    """h + function(h), a number of each row."""
    return lambda m, h, x: h + 0.5 * function(h)


RIGHT = {
    "detach: straight through": straight_through,
    "detach: DoRA": dora,
    "detach: vector quantisation": quantized,
    "detach: SimSiam": siamese,
    "detach: focal weight": focal,
    "detach: Gumbel": gumbel,
    "detach: a parameter": lambda m, h, x: h * m.w.detach(),
    "detach: of a view": lambda m, h, x: torch.cat([h[:, :2].detach(), h[:, 2:]], 1) * m.w,
    "detach: twice": lambda m, h, x: h * h.detach().exp().detach(),
    "detach: half of a sum": lambda m, h, x: 0.3 * h + 0.7 * h.detach(),
    "detach: the largest of a row": lambda m, h, x: (h - h.max(-1, keepdim=True)[0].detach()).exp(),
    "detach: both sides": lambda m, h, x: (h.detach() * m.w - (h * m.w.detach())) ** 2 + h,
    "requires_grad_(False)": (lambda m, h, x: h * m.w, lambda m: m.w.requires_grad_(False)),
    "checkpoint": lambda m, h, x: checkpoint(lambda v: (v * m.w).tanh(), h, use_reentrant=False),
    "clone": lambda m, h, x: h.clone() * m.w,
    "weight norm": (lambda m, h, x: h, lambda m: nn.utils.parametrizations.weight_norm(m.a)),
    "weight norm, old": (lambda m, h, x: h, lambda m: nn.utils.weight_norm(m.a)),
    "a parametrization": (lambda m, h, x: h, lambda m: nn.utils.parametrize.register_parametrization(m.a, "weight", Positive())),
    "in place": assigned,
    "in place, by masks": masked,
    "a sparse embedding": (lambda m, h, x: h + m.table((x[:, :3] > 0).long()).sum(1), lambda m: setattr(m, "table", nn.Embedding(2, 6, sparse=True))),
    "a Function that is the derivative": lambda m, h, x: Square.apply(h) * m.w,
    "a hook that looks": (lambda m, h, x: h * m.w, lambda m: m.w.register_hook(lambda gradient: None)),
    "checkpoint, reentrant": lambda m, h, x: checkpoint(lambda v: (v * m.w).tanh(), h, use_reentrant=True),
    "views": viewed,
    "chunks": lambda m, h, x: torch.cat([part * 2 for part in h.chunk(3, 1)][::-1], 1) * m.w,
    "masked_fill": lambda m, h, x: h.masked_fill(h > 0.1, 0.25) + m.w,
    "where": lambda m, h, x: torch.where(h > 0, h, m.w * h),
    "an unused parameter": lambda m, h, x: h,
    "std at 0": row(lambda h: h.std(-1, keepdim=True)),
    "std at 0, all": row(lambda h: (h * 0).std() + h.std(-1, keepdim=True, correction=0)),
    "var at 0": row(lambda h: h.var(-1, keepdim=True)),
    "norm at 0": row(lambda h: h.norm(dim=-1, keepdim=True)),
    "norm 1 at 0": row(lambda h: h.norm(1, dim=-1, keepdim=True)),
    "norm 3 at 0": row(lambda h: h.norm(3, dim=-1, keepdim=True)),
    "norm 1.5 at 0": row(lambda h: h.norm(1.5, dim=-1, keepdim=True)),
    "norm 0.5 at 0": row(lambda h: h.norm(0.5, dim=-1, keepdim=True)),
    "norm inf at 0": row(lambda h: h.norm(float("inf"), dim=-1, keepdim=True)),
    "normalize at 0": row(lambda h: F.normalize(h, dim=-1)),
    "cosine at 0": row(lambda h: F.cosine_similarity(h, h * 2 + 1, dim=-1)[:, None]),
    "sinc at 0": each(torch.sinc),
    "atan2 at 0": each(lambda w: torch.atan2(w - 1, w)),
    "atan2 at (0, 0)": each(lambda w: torch.atan2(w, 2 * w)),
    "pow at 0": each(lambda w: w ** 2 + w.abs() ** 3),
    "prod with 0": scalar(lambda w: w.prod()),
    "logsumexp": row(lambda h: h.logsumexp(-1, keepdim=True)),
    "clamp": each(lambda w: w.clamp(0, 1)),
    "clamp, least": each(lambda w: w.clamp(min=0.5)),
    "clamp, most": each(lambda w: w.clamp(max=0.5)),
    "clamp by tensors": each(lambda w: torch.clamp(w, min=w.flip(0), max=w + 1)),
    "relu6": each(lambda w: F.relu6(2 * w)),
    "hardtanh": each(F.hardtanh),
    "hardsigmoid": each(F.hardsigmoid),
    "hardswish": each(F.hardswish),
    "relu": each(F.relu),
    "leaky relu": each(F.leaky_relu),
    "elu": each(F.elu),
    "abs": each(torch.abs),
    "threshold": each(lambda w: F.threshold(w, 0.5, 0.0)),
    "softshrink": each(F.softshrink),
    "hardshrink": each(F.hardshrink),
    "maximum of equal ones": each(lambda w: torch.maximum(w, w.flip(0))),
    "max of a row, equal ones": scalar(lambda w: w[2:4].reshape(1, 2).max(1)[0]),
    "min of a row, equal ones": scalar(lambda w: w[2:4].reshape(1, 2).min(1)[0]),
    "amax of equal ones": scalar(lambda w: w[2:4].amax(0)),
    "max of all, equal ones": scalar(lambda w: w[2:4].max()),
    "topk": row(lambda h: h.topk(2, -1)[0].sum(-1, keepdim=True)),
    "logsigmoid, saturated": lambda m, h, x: F.logsigmoid(h * 3000) * 1e-3 + h,
    "attention, infinity": lambda m, h, x: attended(m, h, x, lambda x: torch.where(hidden(x), 0.0, float("-inf")).to(x.dtype)),
    "attention, the least number": written_out(lambda dtype: torch.finfo(torch.float32).min),
    "attention, -10000": written_out(lambda dtype: -10000.0),
    "nn.MultiheadAttention": (multihead, with_attention),
}

def buffer(m):
    m.register_buffer("scale", torch.ones(1, dtype=torch.float64))
    m.register_buffer("calls", torch.zeros((), dtype=torch.int64))


def average(m, h, x):
    with torch.no_grad():
        m.scale.mul_(0.5).add_(0.5 * h.abs().mean())
    return h / m.scale


def counted(m, h, x):
    m.calls.add_(1)
    return h / m.calls


RIGHT |= {
    "EMA": (average, buffer),
    "counter": (counted, buffer),
    "spectral norm": (lambda m, h, x: h, lambda m: nn.utils.parametrizations.spectral_norm(m.a)),
    "spectral norm, old": (lambda m, h, x: h, lambda m: nn.utils.spectral_norm(m.a)),
    "InstanceNorm's statistics": (lambda m, h, x: m.norm(h.unflatten(1, (2, 3))).flatten(1),
                                  lambda m: setattr(m, "norm", nn.InstanceNorm1d(2, track_running_stats=True))),
    "BatchNorm's means": (lambda m, h, x: m.norm(h), lambda m: setattr(m, "norm", nn.BatchNorm1d(6, momentum=None))),
}


def off(m, h, x):
    with torch.no_grad():
        scale = h.abs().mean()
    return h * scale


def switched_off(m, h, x):
    torch.set_grad_enabled(False)
    scale = h.abs().mean()
    torch.set_grad_enabled(True)
    return h * scale


def hooked(m, h, x):
    if h.requires_grad:
        h.register_hook(lambda gradient: gradient * 2)
    return h * m.w


def clipped(m, h, x):
    if h.requires_grad:
        h.register_hook(lambda gradient: gradient.clamp(-100, 100))
    return h * m.w


def clamped(m, h, x):
    m.w.data.clamp_(0, 1)
    return h * m.w


def frozen(m):
    m.teacher = nn.Parameter(torch.ones(6), requires_grad=False)


def followed(m, h, x):
    with torch.no_grad():
        m.teacher.mul_(0.9).add_(0.1 * m.w)
    return h * m.teacher


def plain(m, h, x):
    m.seen = 0.5 * m.seen + h.detach().mean(0)
    return h - m.seen


def counted_by_python(m, h, x):
    m.steps = getattr(m, "steps", 0) + 1
    return h * (2 if m.steps > 1000 else 1)


def narrow(m):
    m.register_buffer("calls", torch.zeros((), dtype=torch.int16))


def counted_narrow(m, h, x):
    m.calls.add_(1)
    return h


def by_frequency(m):
    m.table = nn.Embedding(4, 6, scale_grad_by_freq=True)


REFUSED = {
    "no_grad": (off, None, "torch.no_grad in gradient_modules.py"),
    "set_grad_enabled": (switched_off, None, "gradient"),
    "Function": (lambda m, h, x: Straight.apply(h), None, "autograd.Function Straight"),
    "reversal": (lambda m, h, x: Reversed.apply(h), None, "autograd.Function Reversed"),
    "hook on a parameter": (lambda m, h, x: h, lambda m: m.a.weight.register_hook(lambda g: g * 2), "a hook on a.weight"),
    "hook on a value": (hooked, None, "hook"),
    "backward hook": (lambda m, h, x: m.inner(h), lambda m: setattr(m, "inner", scaled_back()), "hook"),
    "detach_": (lambda m, h, x: h + (h * 2).detach_(), None, "Tensor.detach_ in gradient_modules.py"),
    "hook that clips a parameter's": (lambda m, h, x: h, lambda m: m.a.weight.register_hook(lambda g: g.clamp(-100, 100)), "a hook on a.weight gives another"),
    "hook that clips what it adds up": (lambda m, h, x: h, lambda m: m.a.weight.register_post_accumulate_grad_hook(clip), "a hook on a.weight gives another"),
    "hook that clips a value's": (clipped, None, "Tensor.register_hook in gradient_modules.py"),
    "a weight changed": (clamped, None, "forward changes the parameter w, which in a plan the optimizer alone does; compute with a changed copy"),
    "a teacher": (followed, frozen, "forward changes the parameter teacher, which in a plan the optimizer alone does; it is not trained, so make it a buffer"),
    "a counter of Python": (counted_by_python, None, "forward changes steps, which is no buffer"),
    "a plain tensor": (plain, lambda m: setattr(m, "seen", torch.zeros(6, dtype=torch.float64)), "forward changes seen, which is no buffer"),
    "Python's random": (lambda m, h, x: h * (1 + random.random()), None, "forward draws from Python's random"),
    "gradients by frequency": (lambda m, h, x: h + m.table(x.abs().long().clamp(0, 3)).sum(1), by_frequency, "likely because of scale_grad_by_freq of table; a graph"),
    "ties": (lambda m, h, x: h * m.w.topk(3).values.sum(), None, "equal numbers in torch.topk in gradient_modules.py"),
    "an operator that ONNX lacks": (lambda m, h, x: torch.digamma(h.abs() + 1), None, "ONNX has no operator for torch's digamma; write it with operators that it has"),
    "a counter of 16 bits": (counted_narrow, narrow, "changes the buffer calls, which is int16"),
}


def clip(parameter):
    parameter.grad.clamp_(-100, 100)


def scaled_back():
    part = nn.Linear(6, 6)
    part.register_full_backward_hook(lambda module, given, taken: tuple(g * 2 for g in given))
    return part


def build(name):
    found = RIGHT.get(name) or REFUSED[name]
    function, prepare = (*found, None)[:2] if isinstance(found, tuple) else (found, None)
    return Net(function, prepare).double(), examples()
