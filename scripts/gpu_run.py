"""Commands on a machine that is lent for minutes: what they say is seen and kept at once, and they end in time."""

import contextlib
import os
import signal
import subprocess
import sys
import threading


SANITIZERS = ("memcheck", "racecheck")


def sanitizer_command(tool, binaries, cases):
    """A command: a step of tiny GPT-2 under one of compute-sanitizer's tools."""
    return ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", binaries / "ds-run", cases / "gpt2.cuda.dsplan",
            "--data", cases / "data.safetensors", "--steps", "1", "--quiet"]


def streamed(command, seconds, log=None, environment=None):
    """(exit code, text of both outputs); the code is None where `seconds` were not enough. Each line goes to `log`, or else to stdout, as
    it comes. What the command has started ends with it."""
    process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, errors="replace", start_new_session=True, env={**os.environ, **(environment or {})})
    late = threading.Event()

    def end(how):
        late.set()
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            os.killpg(process.pid, how)

    # First asked, since gpu_step.py has sessions of its own to end.
    timers = [threading.Timer(seconds + wait, end, [how]) for wait, how in ((0, signal.SIGTERM), (5, signal.SIGKILL))]
    for timer in timers:
        timer.start()
    text = []
    for line in process.stdout:
        text.append(line)
        print(line, end="", file=log or sys.stdout, flush=True)
    code = process.wait()
    for timer in timers:
        timer.cancel()
    return None if late.is_set() else code, "".join(text)
