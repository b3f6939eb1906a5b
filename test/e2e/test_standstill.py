"""A failed test is run again where the machine stood still, and nowhere else (standstill.py)."""

import subprocess
import sys

import pytest
import standstill
from conftest import REPOSITORY


def clock_of(*gaps):
    """A clock that oversleeps by so many seconds, one tick each."""
    time, left = [0.0], list(gaps)

    def sleep(seconds):
        time[0] += seconds + (left.pop(0) if left else 0)

    return standstill.Clock(sleep, lambda: time[0])


def test_only_long_gaps_count():
    clock = clock_of(0.5, 3, 0, 24, 0)
    for _ in range(5):
        clock.tick()
    assert clock.longest_since(0) == pytest.approx(24) and len(clock.gaps) == 2
    assert clock.longest_since(clock.now()) == 0


@pytest.mark.parametrize("gaps, error", [((), "ValueError"), ((1.5,), "ValueError"), ((24,), "MachineStoodStill")])
def test_what_a_failure_becomes(gaps, error):
    clock = clock_of(*gaps)
    wrapper = standstill.call(clock)
    next(wrapper)
    clock.tick()
    with pytest.raises(Exception) as raised:
        wrapper.throw(ValueError("what failed"))
    assert raised.typename == error


@pytest.mark.parametrize("stands, passed, runs", [(False, 0, 1), (True, 1, 3), (None, 0, 3)], ids=["fails", "stood still twice", "always stands still"])
def test_runs(stands, passed, runs, tmp_path):
    """A test that fails for a reason of its own fails at once."""
    (tmp_path / "test_it.py").write_text(f"""
import standstill
pytestmark = standstill.AGAIN
runs = []

def test_it(tmp_path):
    runs.append(tmp_path)
    print("run", len(set(runs)))
    if {stands} is None or ({stands} and len(runs) < 3):
        standstill.CLOCK.gaps.append((standstill.CLOCK.now() + 1, 24))
    assert {stands} and len(runs) == 3
""")
    (tmp_path / "conftest.py").write_text("""
import pytest, standstill

@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    return (yield from standstill.call())
""")
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path], text=True, capture_output=True,
                          env={"PYTHONPATH": str(REPOSITORY / "test/e2e"), "PATH": "/usr/bin:/bin"})
    assert done.returncode == (0 if passed else 1), done.stdout
    assert f"run {runs}" in done.stdout and f"run {runs + 1}" not in done.stdout, done.stdout
