"""A model whose gradients are its inputs, so that a test decides what an optimizer sees: `models/export.py given_gradients:build`."""

import torch
from deepspeed_reference import SHAPES, first_values


class GivenGradients(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.matrix, self.scale = (torch.nn.Parameter(torch.tensor(first_values()[name])) for name in ("matrix", "scale"))

    def forward(self, d_matrix, d_scale):
        """The mean over the batch of what each sample's gradients say of the parameters."""
        return ((self.matrix * d_matrix).flatten(1).sum(1) + (self.scale * d_scale).sum(1)).mean()


def build():
    return GivenGradients(), {f"d_{name}": torch.ones(2, *shape) for name, shape in SHAPES.items()}
