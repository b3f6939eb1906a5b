"""Dropout that the partitioner repeats in the backward: y = dropout(x) * w, so w's gradient is y / w, or should be."""
import torch
import torch._functorch.config as functorch

functorch.activation_memory_budget = 0.0


def model(x, w):
    return torch.nn.functional.dropout(x.sin(), 0.5) * w


def misses(compiled):
    torch.manual_seed(21)
    x, w = torch.rand(1000) + 1, torch.ones(1000, requires_grad=True)
    y = compiled(x.requires_grad_(), w)
    y.sum().backward()
    return int(((y != 0) != (w.grad != 0)).sum())


compiled = torch.compile(model, backend="aot_eager_decomp_partition")
print(f"wrong: elements whose mask differs in the backward {misses(compiled)}")
print(f"right: elements whose mask differs in the backward {misses(model)}")
