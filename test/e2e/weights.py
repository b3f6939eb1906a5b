"""Exported weights, and how near they must be to others that rounded otherwise."""

from safetensors import safe_open
from torch_reference import relative_difference

# Shares of a tensor's largest element.
NEAR = 1e-4  # of another implementation's
REORDERED = 3e-5  # of our own, with sums in another order: 3e-6 is the most that was seen, and one token that is another gives 0.3


def read_weights(path):
    """(name -> array, alias -> name) of an exported file."""
    with safe_open(path, "np") as file:
        metadata = dict(file.metadata())
        assert metadata.pop("format") == "pt"
        return {name: file.get_tensor(name) for name in file.keys()}, metadata


def require_near(ours, expected, near=NEAR, spread=dict):
    """Every tensor is within max(near, 10 x PyTorch's own float32-to-float64 spread) of its largest element; spread() is called
    where `near` is not kept. Adam divides a gradient by its own size, so what rounding leaves of a gradient that is nearly zero
    moves a weight as far as any other gradient does; PyTorch's own runs part by as much there (torch_reference.own_spread)."""
    differences = {name: relative_difference(name, value, expected[name]) for name, value in ours.items()}
    beyond = {name: difference for name, difference in differences.items() if not difference <= near}
    spreads = spread() if beyond else {}
    for name, difference in beyond.items():
        own = spreads.get(name, 0)
        assert difference <= 10 * own, f"{name}: {difference:.2e} of its maximum, not {near}, and PyTorch's own spread is {own:.2e}"
