"""Normalizations whose running statistics torch's exporter loses or cannot follow, written out while a module is exported."""

import contextlib
import functools

import torch
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm

from . import Refusal

MODE = "deepstatic_training"  # a buffer that is true: a graph that chooses by it has both forms of the module


@contextlib.contextmanager
def written_out(module, inputs: dict):
    """Yields the names of the buffers by which the graph chooses between training and evaluation."""
    again = _called_again(module, inputs)
    parts = {name: part for name, part in module.named_modules() if _is_lost(name, part, part in again)}
    for part in parts.values():
        part.register_buffer(MODE, torch.ones_like(part.running_mean[0], dtype=torch.bool), persistent=False)
        part.forward = functools.partial(_instance_norm if isinstance(part, _InstanceNorm) else _batch_norm, part)
    try:
        yield [f"{name}.{MODE}".lstrip(".") for name in parts]
    finally:
        for part in parts.values():
            del part._buffers[MODE], part.forward
            part._non_persistent_buffers_set.discard(MODE)


def _called_again(module, inputs: dict) -> set:
    """Batch norms that forward calls more than once: a graph's own would know of the first alone."""
    calls = {part: 0 for part in module.modules() if isinstance(part, _BatchNorm) and part.training}

    def count(part, given):
        calls[part] += 1
    hooks = [part.register_forward_pre_hook(count) for part in calls]
    buffers = [(buffer, buffer.clone()) for buffer in module.buffers()]
    try:
        if calls:
            with torch.no_grad(), torch.random.fork_rng(devices=[]):
                module(**inputs)
    except Exception:
        pass  # the exporter says what is wrong
    finally:
        for hook in hooks:
            hook.remove()
        for buffer, value in buffers:
            buffer.copy_(value)
    return {part for part, number in calls.items() if number > 1}


def _is_lost(name: str, part, again: bool) -> bool:
    tracks = isinstance(part, (_BatchNorm, _InstanceNorm)) and part.training and part.track_running_stats
    if not tracks or (isinstance(part, _BatchNorm) and part.momentum is not None and not again):
        return False
    if type(part).forward not in (_BatchNorm.forward, _InstanceNorm.forward):
        raise Refusal(f"{name or 'the module'}, {type(part).__name__}, has a forward of its own and running statistics that torch's exporter loses: "
                      "use track_running_stats=False")
    return True


def _over_channels(part, x, mean, variance):
    """(x - mean) / sqrt(variance + epsilon) * weight + bias, of vectors with an element a channel."""
    column = (1, -1) + (1,) * (x.dim() - 2)
    y = (x - mean.view(column)) * torch.rsqrt(variance.view(column) + part.eps)
    return y if part.weight is None else y * part.weight.view(column) + part.bias.view(column)


def _choose(part, x, trained):
    """`trained`, or in evaluation what the running statistics make of x."""
    return torch.where(getattr(part, MODE), trained, _over_channels(part, x, part.running_mean, part.running_var))


def _keep(part, factor, mean, variance) -> None:
    """The running statistics after this call; in evaluation, where forward may call it again, they are as they were."""
    factor = torch.where(getattr(part, MODE), factor, 0.0)
    part.running_mean.mul_(1 - factor).add_(factor * mean)
    part.running_var.mul_(1 - factor).add_(factor * variance)


def _instance_norm(part, x):
    """The running statistics are means over the samples of each one's own."""
    part._check_input_dim(x)
    if x.dim() == part._get_no_batch_dim():
        raise ValueError("an input without a batch")
    places = tuple(range(2, x.dim()))
    y = _choose(part, x, torch.nn.functional.instance_norm(x, None, None, part.weight, part.bias, True, 0.0, part.eps))
    with torch.no_grad():
        _keep(part, part.momentum or 0.0, x.mean(places).mean(0), x.var(places).mean(0))
    return y


def _batch_norm(part, x):
    """Without a momentum the running statistics are means over all batches so far."""
    part._check_input_dim(x)
    places = (0, *range(2, x.dim()))
    y = _choose(part, x, _over_channels(part, x, x.mean(places), x.var(places, correction=0)))
    with torch.no_grad():
        part.num_batches_tracked.add_(1)
        factor = 1 / part.num_batches_tracked.to(x.dtype) if part.momentum is None else part.momentum
        _keep(part, factor, x.mean(places), x.var(places))
    return y
