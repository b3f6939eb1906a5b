"""The reduce-scatter waits for the default stream; the gradient is written by another one."""
import concurrent.futures
import threading

import numpy

gradient = numpy.full(4, numpy.nan)  # memory that nobody has written yet
default, side = (concurrent.futures.ThreadPoolExecutor(1) for _ in range(2))  # each runs its work in order
may_run = threading.Event()


def backward():
    may_run.wait()  # it takes a while
    gradient.fill(2.0)


on_side = side.submit(backward)
on_default = default.submit(lambda: None)

on_default.result()  # wait_stream(default_stream())
wrong = gradient.sum()
may_run.set()
on_side.result()  # wait_stream(current_stream())
right = gradient.sum()

print(f"wrong: sum of the gradient {wrong:.0f}")
print(f"right: sum of the gradient {right:.0f}")
