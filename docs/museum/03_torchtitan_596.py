"""Two stages. Each calls clip_grad_norm_ on the parameters that it has."""
import torch

torch.manual_seed(3)
gradients = [torch.randn(100) * 0.05, torch.randn(100)]  # of stage 0 and stage 1


def parameters():
    made = [torch.nn.Parameter(torch.zeros(100)) for _ in gradients]
    for parameter, gradient in zip(made, gradients):
        parameter.grad = gradient.clone()
    return made


apart, together = parameters(), parameters()
for parameter in apart:
    torch.nn.utils.clip_grad_norm_([parameter], 1.0)
torch.nn.utils.clip_grad_norm_(together, 1.0)

print(f"wrong: norm of stage 0's clipped gradient {apart[0].grad.norm():.4f}")
print(f"right: norm of stage 0's clipped gradient {together[0].grad.norm():.4f}")
