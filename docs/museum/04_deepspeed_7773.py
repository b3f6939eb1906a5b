"""The same 32 samples as 4 micro-batches of 8 or 16 of 2. Sums over micro-batches instead of means."""
import numpy

samples = numpy.random.default_rng(4).normal(1.0, 1.0, (32, 10))  # a gradient for each sample


def norm(micro_batches, divide):
    means = samples.reshape(micro_batches, -1, 10).mean(axis=1)
    return numpy.linalg.norm(means.sum(axis=0) / (micro_batches if divide else 1))


assert abs(norm(16, True) - norm(4, True)) < 1e-9  # how the batch is cut does not matter
print(f"wrong: norm with 16 micro-batches over norm with 4 {norm(16, False) / norm(4, False):.2f}")
print(f"right: norm with 16 micro-batches over norm with 4 {norm(16, True) / norm(4, True):.2f}")
