"""Weights of micro-batches add up to one already; the schedule divides by their number once more."""
import numpy

random = numpy.random.default_rng(6)
tokens = random.integers(10, 100, 8)  # of each micro-batch
gradients = random.normal(size=(8, 5))
weights = tokens / tokens.sum()

print(f"wrong: gradient norm {numpy.linalg.norm(weights @ gradients / 8):.4f}")
print(f"right: gradient norm {numpy.linalg.norm(weights @ gradients):.4f}")
