"""The last stage has the loss, the first one writes the log. Its loss is what nobody has set."""
import numpy


def run_stage(stage, x):
    if stage == 0:
        return numpy.tanh(x), -1.0  # what to send on, and "the loss"
    return None, float((x**2).mean())


activation, loss_of_first = run_stage(0, numpy.linspace(-1, 1, 9))
_, loss_of_last = run_stage(1, activation)

print(f"wrong: loss in the log {loss_of_first:.4f}")
print(f"right: loss in the log {loss_of_last:.4f}")
