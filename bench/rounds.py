"""What all benches share: tools that are there or get built, contenders in processes of their own, rounds that no contender can stop.

A contender that hangs or dies gets a line of the table with the reason and is left out of later rounds; the others go on.
"""

import dataclasses
import importlib.util
import os
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BIN = ROOT / "build" / "release" / "bin"


class Failed(Exception):
    """Why there is no result, in a few words; `log` is the end of what was said."""

    def __init__(self, why, log=""):
        super().__init__(why)
        self.log = log


@dataclasses.dataclass
class Ended:
    outputs: list  # stdout of each process
    peak_rss_bytes: int  # the largest of them
    seconds: float  # from the start of the first to the end of the last
    failed: Failed | None  # which one ended badly or did not end

    def require(self):
        if self.failed:
            raise self.failed
        return self


def add_timeout(parser, seconds=600):
    parser.add_argument("--timeout", type=float, default=seconds, help="seconds that a run may take before it is ended (%(default)s)")


def require_modules(*names):
    """Ends, with the command that helps, where this Python lacks a module."""
    def there(name):
        try:
            return importlib.util.find_spec(name) is not None
        except ModuleNotFoundError:  # the package around it
            return False
    missing = [name for name in names if not there(name)]
    if missing:
        sys.exit(f"error: {sys.executable} has no {', '.join(missing)}; run the bench with build/venv/bin/python, which bash scripts/install.sh makes")


def require_tools(*names):
    """Builds the release tools that are missing."""
    missing = [name for name in names if not (BIN / name).exists()]
    if not missing:
        return
    command = ["bash", "scripts/build.sh", "release", *missing]
    print(f"building {', '.join(missing)}: {' '.join(command)}", file=sys.stderr, flush=True)
    (ROOT / "build").mkdir(exist_ok=True)
    with open(ROOT / "build" / "bench-build.log", "w") as log:
        built = subprocess.run(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT).returncode == 0
    still = [name for name in missing if not (BIN / name).exists()]
    if still or not built:
        sys.exit(f"error: {', '.join(still or missing)} could not be built (see {log.name}); what it needs is installed by bash scripts/install.sh")


def run(commands, timeout, names=None, environments=None):
    """Runs `commands` together until all have ended, one has ended badly, or `timeout` seconds have passed; leaves no process."""
    names = names or [Path(str(command[0])).name for command in commands]
    processes, failed = [], None
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # else nobody would end what was started
    with tempfile.TemporaryDirectory() as folder:
        out, err = ([Path(folder) / f"{index}.{kind}" for index in range(len(commands))] for kind in ("out", "err"))
        begin = time.perf_counter()
        try:
            for index, command in enumerate(commands):
                with open(out[index], "w") as stdout, open(err[index], "w") as stderr:
                    processes.append(subprocess.Popen(
                        [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, start_new_session=True,
                        env={**os.environ, **(environments[index] if environments else {})}))
            peak, bad, late = wait(processes, timeout)
            seconds = time.perf_counter() - begin
        except OSError as error:
            raise Failed(f"{error.filename} cannot be started ({error.strerror}); bash scripts/install.sh installs what benches call") from None
        finally:
            end_sessions(processes)
            signal.signal(signal.SIGTERM, before)
        if late:
            failed = Failed(f"no end within {timeout:g} s", "".join(file.read_text(errors="replace")[-1000:] for file in err))
        elif bad is not None:
            failed = died(names[bad], processes[bad].returncode, err[bad].read_text(errors="replace"))
        return Ended([file.read_text(errors="replace") for file in out], peak, seconds, failed)


def wait(processes, timeout):
    """(peak RSS in bytes, index of the first that ended badly or None, whether time ran out)."""
    peak, deadline, poll = 0, time.monotonic() + timeout, select.poll()
    running = {os.pidfd_open(process.pid): index for index, process in enumerate(processes)}
    try:
        for descriptor in running:
            poll.register(descriptor, select.POLLIN)
        while running:
            ended = poll.poll(max(0, deadline - time.monotonic()) * 1000)
            if not ended:
                return peak, None, True
            for descriptor, _ in ended:
                index = running.pop(descriptor)
                poll.unregister(descriptor)
                os.close(descriptor)
                _, status, usage = os.wait4(processes[index].pid, 0)
                processes[index].returncode = os.waitstatus_to_exitcode(status)
                peak = max(peak, usage.ru_maxrss * 1024)
                if processes[index].returncode != 0:
                    return peak, index, False
        return peak, None, False
    finally:
        for descriptor in running:
            os.close(descriptor)


def died(name, status, log):
    how = f"ended with status {status}" if status > 0 else f"was ended by {signal.Signals(-status).name}"
    last = log.strip().splitlines()[-1:]
    return Failed(": ".join([f"{name} {how}", *last]), log[-2000:])


def end_sessions(processes):
    """Kills what is left of the sessions that `processes` lead. Groups would not do: mpirun gives each rank one of its own."""
    sessions = {process.pid for process in processes}
    while pids := living(sessions):
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.05)
    for process in processes:
        process.wait()


def living(sessions):
    pids = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session = entry.read_text(errors="replace").rpartition(")")[2].split()[:4]
        except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            continue
        if int(session) in sessions and state not in "ZX":
            pids.append(int(entry.parent.name))
    return pids


def interleave(contenders, count):
    """Runs each contender, name -> function, once a round, so that a disturbance of the machine meets all of them; says so on stderr.

    Returns name -> its results, and name -> the reason why it has fewer than `count`.
    """
    results, failures = {name: [] for name in contenders}, {}
    for index in range(count):
        for name in (name for name in contenders if name not in failures):
            print(f"round {index + 1}/{count}, {name}: ", end="", file=sys.stderr, flush=True)
            begin = time.monotonic()
            try:
                results[name].append(contenders[name]())
                print(f"{time.monotonic() - begin:.1f} s", file=sys.stderr, flush=True)
            except Failed as why:
                failures[name] = f"failed in round {index + 1}: {why}"
                print(failures[name], why.log, sep="\n", file=sys.stderr, flush=True)
    return results, failures


def by_round(ours, theirs):
    """How many times as fast we were in each round, by its medians: "1.21 1.18", where a disturbance met both."""
    median = [[statistics.median(result["seconds"]) for result in results] for results in (theirs, ours)]
    return " ".join(f"{their / our:.2f}" for their, our in zip(*median))
