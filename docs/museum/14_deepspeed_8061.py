"""Two streams copy gradients into one bucket; the reduction waits for the stream that is current, which is one of them."""
import threading

import numpy

bucket, slow_may_copy, done = numpy.zeros(8), threading.Event(), [threading.Event(), threading.Event()]


def copy_stream(stream):
    if stream == 1:
        slow_may_copy.wait()  # its backward takes longer
    bucket[stream * 4:(stream + 1) * 4] = 1.0
    done[stream].set()


streams = [threading.Thread(target=copy_stream, args=(stream,)) for stream in (0, 1)]
for stream in streams:
    stream.start()
done[0].wait()
wrong = bucket.sum()  # reduced now
slow_may_copy.set()
done[1].wait()

print(f"wrong: sum of the bucket {wrong:.0f}")
print(f"right: sum of the bucket {bucket.sum():.0f}")
