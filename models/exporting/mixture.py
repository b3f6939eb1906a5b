"""Mixtral's experts with a dispatch that does not depend on data: every expert computes every token."""

import torch
import torch.nn.functional as F


def dispatch_densely(module) -> None:
    """Gives each sparse block of `module` a forward that torch.export can trace; the same function of the same weights."""
    from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock
    for block in module.modules():
        if type(block) is MixtralSparseMoeBlock:
            block.__class__ = type("MixtralSparseMoeBlock", (MixtralSparseMoeBlock,), {"forward": _forward})


def _forward(self, hidden_states):
    """The sum over all experts of gate x expert; the gate is zero but for the most probable experts of a token."""
    flat = hidden_states.flatten(0, 1)
    gates = _gates(F.linear(flat, self.gate.weight).float().softmax(-1), self.top_k).to(flat.dtype)
    experts = self.experts
    first, second = (torch.matmul(flat, w.transpose(1, 2)) for w in experts.gate_up_proj.chunk(2, dim=1))
    found = torch.matmul(experts.act_fn(first) * second, experts.down_proj.transpose(1, 2))  # [experts, tokens, hidden]
    return (found * gates.t().unsqueeze(-1)).sum(0).view_as(hidden_states)


def _gates(probabilities, count):
    """The `count` largest of each row, divided by their sum; zero elsewhere. [tokens, experts]"""
    rest, least = probabilities.detach(), None
    for _ in range(count):
        least = rest.amax(-1, keepdim=True)
        rest = rest.masked_fill(rest >= least, -1.0)
    kept = probabilities.masked_fill(probabilities.detach() < least, 0.0)
    return kept / kept.sum(-1, keepdim=True)
