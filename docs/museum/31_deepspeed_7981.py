"""The optimizer lies on the host. A sum there is kept only where several micro-batches are configured, but backward is called four times anyway."""
import numpy

gradients = numpy.random.default_rng(31).random(4)


def summed(keeps_a_sum):
    on_the_host = 0.0
    for gradient in gradients:  # each backward() brings its gradient to the host
        on_the_host = on_the_host + gradient if keeps_a_sum else gradient
    return on_the_host


print(f"wrong: gradient {summed(keeps_a_sum=False):.4f}")
print(f"right: gradient {summed(keeps_a_sum=True):.4f}")
