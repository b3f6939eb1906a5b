"""Low-rank adapters (LoRA; Hu et al. 2021): the module's own parameters are frozen, a product of two small ones is added."""

import math
import re

import torch
import torch.nn.functional as F

from . import Refusal

TARGETS = r"(q_proj|v_proj|query|value|c_attn)$"  # attention's queries and values; GPT-2 keeps them in one


def with_adapters(make, args):
    """`make` where --lora is not given; else a function that makes the module and puts adapters of that rank into it."""
    if not args.lora:
        return make
    return lambda: add_adapters(make(), args.lora, args.lora_targets or TARGETS)


def add_adapters(module, rank: int, targets: str):
    """Freezes `module` and gives every linear layer whose name matches `targets` an adapter; names stay as they are."""
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    pattern, adapted, holders = re.compile(targets), set(), {}
    for name, parameter in module.named_parameters(remove_duplicate=False):
        holders.setdefault(id(parameter), []).append(name)
    for name, layer in module.named_modules():
        shape = _shape(layer)
        if shape and pattern.search(name) and layer not in adapted:
            others = [other for other in holders[id(layer.weight)] if module.get_submodule(other.rpartition(".")[0]) is not layer]
            if others:
                raise Refusal(f"--lora: the weight of {name} is also {others[0]}, so its adapter could not be merged; leave it out of --lora-targets")
            _adapt(layer, *shape, rank)
            adapted.add(layer)
    if not adapted:
        raise Refusal(f"--lora {rank}: no linear layer's name matches --lora-targets '{targets}'")
    return module


def _shape(layer):
    """(inputs, outputs) of a linear layer, torch's or transformers'."""
    from transformers.pytorch_utils import Conv1D
    if isinstance(layer, torch.nn.Linear):
        return layer.in_features, layer.out_features
    return tuple(layer.weight.shape) if isinstance(layer, Conv1D) else None


def _adapt(layer, inputs, outputs, rank):
    """y = layer(x) + x A^T B^T; B is zero at first, so that the function is the same."""
    base, like = type(layer), dict(dtype=layer.weight.dtype, device=layer.weight.device)

    def forward(self, x):
        return base.forward(self, x) + F.linear(F.linear(x, self.lora_A), self.lora_B)
    layer.__class__ = type(base.__name__, (base,), {"forward": forward})
    layer.lora_A = torch.nn.Parameter(torch.empty(rank, inputs, **like).uniform_(-1 / math.sqrt(inputs), 1 / math.sqrt(inputs)))
    layer.lora_B = torch.nn.Parameter(torch.zeros(outputs, rank, **like))
