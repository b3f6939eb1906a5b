"""Whether the machine itself stood still while a test waited: a test of time-outs then says nothing of ds-run.

A module that has `pytestmark = AGAIN` runs a test once more that failed while no thread of this process ran for more than 2 s, twice at most.
A test that fails without that fails at once.
"""

import threading
import time

import pytest

LIMIT = 2  # s; a loaded machine lets a thread wait for some tenths


class MachineStoodStill(Exception):
    """What a test failed with, as the exception's cause."""


AGAIN = pytest.mark.flaky(reruns=2, only_rerun=["MachineStoodStill"])


class Clock:
    """Wakes ten times a second, and keeps the ends and lengths of what it overslept."""

    def __init__(self, sleep=time.sleep, now=time.monotonic):
        self.sleep, self.now, self.gaps = sleep, now, []

    def tick(self):
        begin = self.now()
        self.sleep(0.1)
        gap = self.now() - begin - 0.1
        if gap > LIMIT:
            self.gaps.append((self.now(), gap))

    def run(self):
        while True:
            self.tick()

    def longest_since(self, begin):
        return max((gap for end, gap in self.gaps if end >= begin), default=0)


CLOCK = Clock()
threading.Thread(target=CLOCK.run, daemon=True).start()


def call(clock=CLOCK):
    """A wrapper of pytest_pyfunc_call, as a generator."""
    begin = clock.now()
    try:
        return (yield)
    except Exception as error:
        clock.sleep(0.3)  # for the clock to wake, too
        if (gap := clock.longest_since(begin)) > 0:
            raise MachineStoodStill(f"the machine stood still for {gap:.1f} s meanwhile") from error
        raise
