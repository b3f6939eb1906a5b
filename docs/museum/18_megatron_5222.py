"""Two unsharded gradient buffers; whoever waits until one is in use may write to that one."""
import numpy

wgrads = numpy.random.default_rng(18).random((6, 1000))  # of six layers


def reduce(buffers):
    storage, results = numpy.zeros((buffers, 1000)), []
    for layer, wgrad in enumerate(wgrads):
        storage[layer % buffers][:300] = wgrad[:300]  # the product begins
        if layer > 0:
            results.append(storage[(layer - 1) % buffers].sum())  # the reduce-scatter of the layer before ends
        storage[layer % buffers] = wgrad
    return results + [storage[5 % buffers].sum()]


print(f"wrong: sum of the reduced gradients {sum(reduce(1)):.2f}")
print(f"right: sum of the reduced gradients {sum(reduce(2)):.2f}")
