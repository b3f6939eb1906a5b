"""An encoder used twice in one step: the reduction runs when the first of two contributions is there."""
import torch

torch.manual_seed(11)
encoder = torch.nn.Linear(6, 6)
main, auxiliary = torch.randn(4, 6), torch.randn(4, 6)

reduced = []
encoder.weight.register_hook(lambda gradient: reduced.append(gradient.clone()))
encoder(main).pow(2).mean().backward()  # one subgraph
first = reduced[0]

encoder.zero_grad()
(encoder(main).pow(2).mean() + encoder(auxiliary).pow(2).mean()).backward()  # both, as the step has them

print(f"wrong: gradient norm {first.norm():.4f}")
print(f"right: gradient norm {encoder.weight.grad.norm():.4f}")
