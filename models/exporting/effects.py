"""What forward does beside computing a loss. A graph has the change of buffers alone; the rest is refused by name."""

import random

import numpy
import torch

from . import Refusal
from .gradients import as_it_was
from .selfcheck import LOSS_CHECK_LIMIT, NoDropout
from .sources import Model

PLAIN = (bool, int, float, str, type(None))


def check_effects(model: Model) -> None:
    """Runs forward twice, as training does, and refuses what a graph would forget. What only the first run makes is a cache."""
    module = model.module
    if not model.has_weights or sum(p.numel() for p in module.parameters()) > LOSS_CHECK_LIMIT:
        return
    drawn = _drawn()
    try:
        first = _run(model)
        for name, value in _run(model).items():
            if value != first.get(name, value):
                raise Refusal(f"forward changes {name}, which is no buffer, and a graph would keep its first value; register_buffer carries a tensor "
                              "from step to step, and what only counts for people is left out")
    except Refusal:
        raise
    except Exception:
        return  # the exporter says what is wrong
    if drawn != _drawn():
        raise Refusal("forward draws from Python's random or from numpy, and a graph would keep the one number; draw by torch.rand")


def _run(model: Model) -> dict:
    """What parts hold after forward of the same weights, buffers, inputs and random numbers; refuses a forward that changes weights."""
    module = model.module
    weights = {name: p.detach().clone() for name, p in module.named_parameters()}
    with as_it_was(module), torch.random.fork_rng(devices=[]), NoDropout():
        torch.manual_seed(0)
        module(**model.inputs)
        for name, parameter in module.named_parameters():
            if not torch.equal(parameter, weights[name]):
                way = (f"compute with a changed copy, as {name}.clamp(0, 1)" if parameter.requires_grad else
                       "it is not trained, so make it a buffer by register_buffer, which is carried from step to step")
                raise Refusal(f"forward changes the parameter {name}, which in a plan the optimizer alone does; {way}")
        return _attributes(module)


def _attributes(module) -> dict:
    """Numbers, texts and tensors that parts hold beside parameters and buffers, and lists of these."""
    found = {}
    for name, part in module.named_modules():
        for key, value in vars(part).items():
            if isinstance(value, PLAIN):
                found[f"{name}.{key}".lstrip(".")] = value
            elif isinstance(value, torch.Tensor):
                found[f"{name}.{key}".lstrip(".")] = value.detach().clone().contiguous().view(-1).view(torch.uint8).numpy().tobytes()
            elif isinstance(value, (list, tuple, dict, set)) and not key.startswith("_"):
                found[f"{name}.{key}".lstrip(".")] = (len(value), *(one for one in list(value)[:100] if isinstance(one, PLAIN)))
    return found


def _drawn() -> tuple:
    """Where the generators stand that are not torch's."""
    _, words, at, *_ = numpy.random.get_state()
    return random.getstate(), words.tobytes(), at
