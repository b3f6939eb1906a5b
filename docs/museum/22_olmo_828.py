"""Activation checkpointing with preserve_rng_state=False: the second forward draws other masks than the first."""
import torch
from torch.utils.checkpoint import checkpoint


def misses(preserve):
    torch.manual_seed(22)
    w = torch.ones(1000, requires_grad=True)
    x = torch.ones(1000, requires_grad=True)

    def block(x):
        return torch.nn.functional.dropout(x, 0.1) * w

    y = checkpoint(block, x, use_reentrant=False, preserve_rng_state=preserve)
    y.sum().backward()
    return int(((y != 0) != (w.grad != 0)).sum())


print(f"wrong: elements whose mask differs in the backward {misses(False)}")
print(f"right: elements whose mask differs in the backward {misses(True)}")
