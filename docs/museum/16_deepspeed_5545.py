"""One buffer of gradients is on the wire, in two halves, while the backward fills it with the next layer's."""
import numpy

layers = numpy.arange(1.0, 5.0)[:, None] * numpy.ones(6)  # layer k's gradient is k everywhere


def train(waits):
    buffer, sent = numpy.zeros(6), numpy.zeros((4, 6))
    for k, gradient in enumerate(layers):
        if k > 0 and waits:
            sent[k - 1, 3:] = buffer[3:]  # the reduction has finished before the buffer is filled again
        buffer[:] = gradient
        if k > 0 and not waits:
            sent[k - 1, 3:] = buffer[3:]  # its second half leaves now
        sent[k, :3] = buffer[:3]
    sent[3, 3:] = buffer[3:]
    return sent


print(f"wrong: what was reduced of layer 1 {train(False)[0].sum():.0f}")
print(f"right: what was reduced of layer 1 {train(True)[0].sum():.0f}")
