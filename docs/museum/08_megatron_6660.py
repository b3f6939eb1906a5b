"""A group of one rank: the reduction adds the buffer to itself, then the next micro-batch is added."""
import numpy

gradients = numpy.random.default_rng(8).random(16)  # of 16 micro-batches

buffer = numpy.float32(0)
for gradient in gradients:
    buffer = 2 * buffer + numpy.float32(gradient)

print(f"wrong: gradient {buffer:.1f}")
print(f"right: gradient {gradients.sum():.1f}")
