"""Every micro-batch is taken for the last, and finishing a sum clears it for the next one."""
import numpy

gradients = numpy.random.default_rng(9).random(8)

accumulated = 0.0
for gradient in gradients:
    is_last = True  # no_sync did nothing
    accumulated = gradient if is_last else accumulated + gradient

print(f"wrong: gradient {accumulated / 8:.4f}")
print(f"right: gradient {gradients.mean():.4f}")
