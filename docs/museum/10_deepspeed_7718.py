"""Eight ranks, 20 buckets; every rank uses its own gradient where the sum over ranks belongs, in half of the buckets."""
import numpy

gradients = numpy.random.default_rng(10).normal(1.0, 2.0, (8, 20, 50))  # [ranks, buckets, elements]
right = gradients.mean(axis=0)
wrong = right.copy()
wrong[::2] = gradients[0, ::2] / 8  # rank 0's part of the mean, alone

print(f"wrong: gradient norm {numpy.linalg.norm(wrong):.2f}")
print(f"right: gradient norm {numpy.linalg.norm(right):.2f}")
