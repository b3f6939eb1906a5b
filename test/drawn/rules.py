"""The sentences with which ds-opt may refuse what configs.py draws: rules that only the model can break."""

import re

RULES = {
    "no activation to move": r"is to leave device memory, but matches no tensor of at least 4096 bytes that the backward reads",
    "no such parameter": r"deepstatic\.parameter_groups: .* matches no trained parameter that no group before it has",
    "no loss of tokens": r"is not one mean cross entropy of labels, without weights and nothing added, which deepstatic.loss_normalization",
    "no such level": r"deepstatic\.recompute is \d+, but the model has only \d+ levels",
    "no such module": r"partition \"type:.*\" leaves nothing to share: no module's name matches"
                      r"|deepstatic\.recompute: \".*\" matches the name of no op of the forward",
    "no matrix": r"is \"auto\"; no trained parameter is a matrix that would say the model's hidden size",
    "too few layers": r"the model cannot be cut into \d+ stages, .*: there are \d+ places where it may be cut",
    "nothing to cut": r"no parameter can be cut over the \d+ ranks of axis tensor",
    "no common state": r"depends on it, so the sizes \d+ and \d+ cannot share one state; compile a plan for each",
    "memory": r"needs [\d.]+ [KMGT]?i?B of (host|device) memory, [\d.]+ [KMGT]?i?B more than",
}


def rule_of(sentence):
    """The rule that a sentence states, or None."""
    return next((name for name, pattern in RULES.items() if re.search(pattern, sentence)), None)
