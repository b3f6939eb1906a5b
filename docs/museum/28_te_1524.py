"""Softmax over all scores where a causal one was asked for: the first token sees the last."""
import torch

torch.manual_seed(28)
query, key, value = torch.randn(3, 1, 1, 5, 4)
changed = value.clone()
changed[..., -1, :] += 1.0  # the future


def influence(causal):
    attention = torch.nn.functional.scaled_dot_product_attention
    before, after = (attention(query, key, v, is_causal=causal) for v in (value, changed))
    return (after - before)[0, 0, 0].abs().max()


print(f"wrong: what the last token changes in the first {influence(False):.4f}")
print(f"right: what the last token changes in the first {influence(True):.4f}")
