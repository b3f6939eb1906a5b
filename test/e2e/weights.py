"""Exported weights, and how near they must be to others that rounded otherwise."""

from safetensors import safe_open
from torch_reference import relative_difference

NEAR = 1e-4  # of a tensor's largest element


def read_weights(path):
    """(name -> array, alias -> name) of an exported file."""
    with safe_open(path, "np") as file:
        metadata = dict(file.metadata())
        assert metadata.pop("format") == "pt"
        return {name: file.get_tensor(name) for name in file.keys()}, metadata


def require_near(ours, expected, spread):
    """Every tensor is within max(NEAR, 10 x PyTorch's own float32-to-float64 spread) of its largest element; spread() is called
    where NEAR is not kept. Adam divides a gradient by its own size, so what rounding leaves of a gradient that is nearly zero
    moves a weight as far as any other gradient does; PyTorch's own runs part by as much there (torch_reference.own_spread)."""
    differences = {name: relative_difference(name, value, expected[name]) for name, value in ours.items()}
    beyond = {name: difference for name, difference in differences.items() if not difference <= NEAR}
    spreads = spread() if beyond else {}
    for name, difference in beyond.items():
        assert difference <= 10 * spreads[name], f"{name}: {difference:.2e} of its maximum, PyTorch's own spread is {spreads[name]:.2e}"
