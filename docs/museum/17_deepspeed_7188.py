"""Two buffers in turn, so that one is filled while the other is reduced. Clearing a bucket sets the turn back to 0."""
import numpy


def reduced(resets):
    buffers, index, results, under_way = numpy.zeros((2, 4)), 0, [], None
    for layer in range(1, 5):
        buffers[index] = layer
        if under_way is not None:
            results.append(buffers[under_way].sum())  # the reduction of the layer before ends after this layer's copy
        under_way = index
        index = 0 if resets else 1 - index
    return results + [buffers[under_way].sum()]


print(f"wrong: sum of all reduced gradients {sum(reduced(True)):.0f}")
print(f"right: sum of all reduced gradients {sum(reduced(False)):.0f}")
