"""Four data-parallel ranks, four micro-batches: 1/4 goes to the shard that is summed into, not to what is added."""
import numpy

summed_over_ranks = numpy.random.default_rng(7).random(4) * 4  # of each micro-batch

shard = 0.0
for gradient in summed_over_ranks:
    shard = shard / 4 + gradient

print(f"wrong: gradient {shard / 4:.4f}")
print(f"right: gradient {summed_over_ranks.sum() / 4 / 4:.4f}")
