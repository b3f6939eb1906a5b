"""An allocator knows one stream: memory that is freed there is given out again, although another stream still reads it."""
import numpy


class Allocator:
    def __init__(self):
        self.blocks, self.free = [numpy.zeros(4), numpy.zeros(4)], [1, 0]

    def take(self, value):
        block = self.free.pop()
        self.blocks[block][:] = value
        return block


def copied(recorded):
    allocator = Allocator()
    reduced = allocator.take(3.0)
    queued_copy = lambda: allocator.blocks[reduced].sum()  # noqa: E731: on the reduction stream, not run yet
    if not recorded:
        allocator.free.append(reduced)  # its last use on this stream is over
    allocator.take(numpy.nan)  # another tensor
    return queued_copy()


print(f"wrong: sum of the copy {copied(False):.0f}")
print(f"right: sum of the copy {copied(True):.0f}")
