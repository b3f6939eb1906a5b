"""The embedding is on stage 0, the output projection with the same weight on stage 1; each updates its own copy."""
import torch

torch.manual_seed(12)
weight, tokens, labels = torch.randn(7, 5), torch.tensor([1, 2, 3]), torch.tensor([2, 3, 4])
embedding, projection = weight.clone().requires_grad_(), weight.clone().requires_grad_()  # stage 0's and stage 1's
torch.nn.functional.cross_entropy(embedding[tokens] @ projection.T, labels).backward()

apart = [weight - 0.1 * copy.grad for copy in (embedding, projection)]
together = [weight - 0.1 * (embedding.grad + projection.grad)] * 2

print(f"wrong: distance of the two copies after one step {(apart[0] - apart[1]).norm():.4f}")
print(f"right: distance of the two copies after one step {(together[0] - together[1]).norm():.4f}")
