"""Modules whose forward changes buffers, for `export.py state_modules:build`."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations, spectral_norm


class Layers(nn.Module):
    """Residual layers; `prepare` adds state, `between` computes with it. Activations are smooth: no gradient hangs on a rounding."""

    def __init__(self, prepare, before=None, between=None, wrap=lambda layer: layer):
        super().__init__()
        self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 3)
        self.layers = nn.ModuleList(wrap(nn.Linear(8, 8)) for _ in range(3))
        self.before, self.between = before, between
        prepare(self)

    def forward(self, x, y):
        if self.before:
            self.before(self)
        h = torch.tanh(self.first(x))
        for index, layer in enumerate(self.layers):
            h = h + torch.tanh(layer(h))
            h = self.between(self, h, index) if self.between else h
        return F.cross_entropy(self.last(h), y)


def averages(m):
    for index in range(3):
        m.register_buffer(f"scale{index}", torch.ones(8))


def average(always):
    def between(m, h, index):
        scale = getattr(m, f"scale{index}")
        old = scale.clone()
        if always or m.training:
            with torch.no_grad():
                scale.mul_(0.5).add_(0.5 * h.abs().mean(0))
        return h / (scale + 0.1 * old)
    return between


def recentre(m, h, index):
    """The first layer reads what the last one of the forward before has written."""
    if index == 0:
        return h - m.centre
    if index == 2 and m.training:
        with torch.no_grad():
            m.centre.mul_(0.9).add_(0.1 * h.mean(0))
    return h


def gain(m, h, index):
    """What the first layer writes all read."""
    if index == 0 and m.training:
        with torch.no_grad():
            m.gain.mul_(0.5).add_(0.5 * h.abs().mean(0))
    return h * m.gain


def count(m):
    if m.training:
        m.calls += 1


def nothing(m):
    pass


def norms(norm):
    return lambda m: setattr(m, "norms", nn.ModuleList(norm() for _ in range(3)))


def apart(h):
    return h.unflatten(1, (2, 4))


MODULES = {
    "average": lambda: Layers(averages, between=average(always=False)),
    "average always": lambda: Layers(averages, between=average(always=True)),
    "centre": lambda: Layers(lambda m: m.register_buffer("centre", torch.zeros(8)), between=recentre),
    "gain": lambda: Layers(lambda m: m.register_buffer("gain", torch.ones(8)), between=gain),
    "counter": lambda: Layers(lambda m: m.register_buffer("calls", torch.zeros((), dtype=torch.int64)), before=count,
                              between=lambda m, h, index: h / (1 + 1 / (1 + m.calls))),
    "spectral": lambda: Layers(nothing, wrap=parametrizations.spectral_norm),
    "spectral, old": lambda: Layers(nothing, wrap=spectral_norm),
    "instance": lambda: Layers(norms(lambda: nn.InstanceNorm1d(2, affine=True, track_running_stats=True)),
                               between=lambda m, h, index: m.norms[index](apart(h)).flatten(1)),
    "batch twice": lambda: Layers(lambda m: setattr(m, "norm", nn.BatchNorm1d(8)), between=lambda m, h, index: m.norm(h)),
    "batch read": lambda: Layers(norms(lambda: nn.BatchNorm1d(8)), between=lambda m, h, index: m.norms[index](h - m.norms[index].running_mean)),
    "batch means": lambda: Layers(norms(lambda: nn.BatchNorm1d(8, momentum=None)), between=lambda m, h, index: m.norms[index](h)),
}


def samples(count, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return {"x": torch.randn(count, 4, generator=generator), "y": torch.randint(0, 3, (count,), generator=generator)}


def build(name):
    torch.manual_seed(0)
    return MODULES[name]().train(), samples(4)
