"""Three steps of a pipeline with four micro-batches each; every step divides all of .grad, also what it found there."""
import numpy

gradients = numpy.random.default_rng(1).random((3, 4))  # [accumulation steps, micro-batches of one pipeline step]

accumulated = 0.0
for step in gradients:
    accumulated = (accumulated + step.sum()) / 4  # schedule.step() with scale_grads=True

print(f"wrong: gradient {accumulated / 3:.4f}")
print(f"right: gradient {gradients.mean():.4f}")
