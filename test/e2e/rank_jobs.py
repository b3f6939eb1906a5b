"""Runs of several ranks that are disturbed on purpose: started, watched, always reaped."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

from conftest import BUILD, FOLDERS
from zero_trainer import OPEN_MPI

DS_RUN = (FOLDERS["ds-run"] / "ds-run").resolve()
TCP_RANK = (BUILD / "bin" / "TcpRank").resolve()
SLOW_FILES = (BUILD / "lib" / "libslow_files.so").resolve()
MARK = "DS_TEST_JOB"


@dataclass(frozen=True)
class Process:
    """One that runs. `began`: clock ticks since boot, so that a number that is used again is not taken for it."""

    pid: int
    began: str
    program: str
    environment: dict

    @property
    def rank(self):
        return int(self.environment.get("OMPI_COMM_WORLD_RANK", self.environment.get("RANK", -1)))

    @property
    def alive(self):
        return state_of(self.pid)[1:] == [self.began] and state_of(self.pid)[0] != "Z"

    def send(self, number):
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            pass


def state_of(pid):
    """[state, began] of /proc/PID/stat, or ["", ""]."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return [fields[0], fields[19]]
    except OSError:
        return ["", ""]


def find_processes(mark):
    """All that carry the mark in their environment, wherever they went."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "environ").read_bytes().decode(errors="replace").split("\0")
            program = os.readlink(folder / "exe")
        except OSError:  # it has ended, or is a thread of the kernel
            continue
        if f"{MARK}={mark}" not in words:
            continue
        state, began = state_of(folder.name)
        if state and state != "Z":
            found.append(Process(int(folder.name), began, Path(program).name, dict(w.split("=", 1) for w in words if "=" in w)))
    return found


class Job:
    """Commands and all that they start, which ends with the `with` block at the latest."""

    def __init__(self, folder: Path):
        self.folder, self.mark = folder, uuid.uuid4().hex
        self.started, self.files = [], []

    def start(self, command, name, **environment):
        """stdout and stderr go to `name`.out and `name`.err in the folder."""
        for kind in ("out", "err"):
            self.files.append(open(self.folder / f"{name}.{kind}", "wb"))
        self.started.append(subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=self.files[-2], stderr=self.files[-1],
            env={**os.environ, MARK: self.mark, **{key: str(value) for key, value in environment.items()}},
            start_new_session=True))
        return self.started[-1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for _ in range(50):  # what is being started meanwhile is found the next time
            processes = find_processes(self.mark)
            for process in processes:
                process.send(signal.SIGKILL)
            if not processes:
                break
            time.sleep(0.02)
        for process in self.started:
            process.wait(10)
        for file in self.files:
            file.close()

    def processes(self):
        return find_processes(self.mark)

    def find_ranks(self, programs=("ds-run", "TcpRank")):
        """{rank: process} of those that run."""
        return {max(p.rank, 0): p for p in self.processes() if p.program in programs}

    def said(self, name):
        path = self.folder / f"{name}.err"
        return path.read_text(errors="replace") if path.exists() else ""


def seconds_until(condition, limit):
    """How long it took, or None."""
    begin = time.monotonic()
    while not condition():
        if time.monotonic() - begin > limit:
            return None
        time.sleep(0.01)
    return time.monotonic() - begin


def await_condition(condition, limit, what):
    end = time.monotonic() + limit
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"{limit} s have passed without {what}"
        time.sleep(0.005)


def complete_lines(path):
    """JSON of a file that is being written."""
    try:
        return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
    except OSError:
        return []


def phase_of(metrics: Path, steps: int, export: Path) -> str:
    """Where a run with an evaluation after its last step is, by what rank 0 has written."""
    lines = complete_lines(metrics)
    if export.exists():
        return "ended"
    if any("summary" in line for line in lines):
        return "export"
    done = sum("loss" in line for line in lines)
    return "load" if done == 0 else "step" if done < steps else "evaluation"


def free_port():
    """Of 127.0.0.1, and free a moment ago."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


def mpirun(ranks, *options):
    return ["mpirun", "--oversubscribe", "-n", ranks, "--mca", "orte_abort_on_non_zero_status", 1, *options]


def one_error_file_a_rank(command, folder):
    """The command of a rank under mpirun, with its stderr in rank0.err, rank1.err, ..."""
    return ["sh", "-c", f'exec "$@" 2>"{folder}/rank$OMPI_COMM_WORLD_RANK.err"', "sh", *command]


def open_files(pid):
    """Their paths."""
    paths = []
    for link in Path(f"/proc/{pid}/fd").glob("*"):
        try:
            paths.append(os.readlink(link))
        except OSError:  # closed meanwhile
            pass
    return paths


def shared_memory_of(processes):
    """Files in /dev/shm that they have mapped."""
    files = set()
    for process in processes:
        try:
            files.update(re.findall(r"/dev/shm/\S+", Path(f"/proc/{process.pid}/maps").read_text()))
        except OSError:
            pass
    return files


has_mpi = shutil.which("mpirun") is not None
MPI_ENVIRONMENT = {**OPEN_MPI, "OMPI_MCA_mpi_yield_when_idle": "1",
                   # s that mpirun leaves the others to say something; its second is too short where ranks share few cores.
                   "OMPI_MCA_odls_base_sigkill_timeout": "3"}
