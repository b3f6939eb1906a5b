"""Two stages, y = b * a * x, eight accumulation steps. Every stage has a hook that divides by eight, not the last alone."""
import numpy

a, b, x = 0.5, 2.0, numpy.random.default_rng(5).random(8)


def gradient_of_a(divisions):
    total = 0.0
    for sample in x:
        upstream = b / 8  # stage 1 divides, and sends this
        total += upstream * sample / 8 ** (divisions - 1)
    return total


print(f"wrong: gradient on stage 0 {gradient_of_a(2):.4f}")
print(f"right: gradient on stage 0 {gradient_of_a(1):.4f}")
