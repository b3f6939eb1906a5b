"""Each layer's gradient is a view of the buffer that its reduction wrote; the allocator gives all layers the same one."""
import numpy


def gradients(reused):
    made, buffer = [], numpy.zeros(3)
    for layer in range(1, 4):
        if not reused:
            buffer = numpy.zeros(3)
        buffer[:] = layer
        made.append(buffer[:])  # sharded_param.grad
    return [float(gradient[0]) for gradient in made]


print(f"wrong: gradient of the first layer {gradients(True)[0]:.0f}")
print(f"right: gradient of the first layer {gradients(False)[0]:.0f}")
