"""Signals in every phase of a run, to one of its ranks: how soon all ranks end, and what each of them says.

A disk that is slow on purpose makes a phase last; a seeded delay picks the point in it. `DS_SIGNAL_SEED=7` draws other points, and
`-k mpi-export-SIGSTOP-3` runs one case. DS_TEST_SCOPE=all runs every case; the table is build/reports/signals.md, and with DS_UPDATE_DOCS=1
that of docs/ending.md.
"""

import hashlib
import itertools
import os
import random
import re
import signal
import subprocess
import time
from collections import defaultdict
from pathlib import Path

import pytest
from conftest import REPOSITORY, write_config
from pairwise import covering
from rank_jobs import (DS_RUN, MPI_ENVIRONMENT, SLOW_FILES, TCP_RANK, Job, await_condition, free_port, has_mpi, mpirun,
                       one_error_file_a_rank, open_files, phase_of, seconds_until, shared_memory_of, state_of)
from zero_trainer import trainer  # noqa: F401 - trainer is a fixture

WHOLE = os.environ.get("DS_TEST_SCOPE") == "all"
SEED = int(os.environ.get("DS_SIGNAL_SEED", 0))
PHASES = ("load", "step", "evaluation", "export")
SIGNALS = ("SIGKILL", "SIGTERM", "SIGSTOP", "SIGPIPE", "SIGHUP")
TRANSPORTS = ("in-process", "mpi", "tcp")
CROSS = list(itertools.product(TRANSPORTS, PHASES, SIGNALS, (2, 3, 5, 8)))
CASES = CROSS if WHOLE else covering(CROSS)
ENDS, TIMEOUT = 10, 3  # s, from the signal until all ranks have ended; --collective-timeout
STEPS = 6
GOES_ON = ("SIGPIPE", "SIGHUP")
# What a read or write of the phase's file lasts, in ms; each phase has dozens.
SLOW = {"load": 50, "step": 100, "evaluation": 50, "export": 60}


class Plans:
    """Plans, their first weights and the bytes that a run without signals exports."""

    def __init__(self, trainer, folder):  # noqa: F811
        self.trainer, self.folder, self.made = trainer, folder, {}
        for phase in ("step", "evaluation"):
            (folder / f"data.{phase}").write_bytes(trainer.data.read_bytes())

    def arguments(self, ranks):
        plan = self.trainer.compile("gpt2", ranks, 1, 3)
        return [plan, "--data", self.folder / "data.step", "--eval-data", self.folder / "data.evaluation", "--steps", STEPS, "--threads", 1,
                "--quiet", "--check-data", 0, "--collective-timeout", TIMEOUT]

    def of(self, ranks):
        """(arguments of a run, digest of its export)."""
        if ranks not in self.made:
            run = self.arguments(ranks)
            weights, reference = self.folder / f"weights{ranks}.load", self.folder / f"reference{ranks}"
            self.trainer.tools("ds-run", *run, "--export", weights)
            run += ["--weights", weights]
            self.trainer.tools("ds-run", *run, "--export", reference)
            self.made[ranks] = run, digest(reference)
        return self.made[ranks]


def digest(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def plans(trainer, tmp_path_factory):  # noqa: F811
    return Plans(trainer, tmp_path_factory.mktemp("signals"))


class Disturbed:
    """One run and the signal to one of its ranks."""

    def __init__(self, job, transport, phase, name, ranks):
        self.job, self.transport, self.phase, self.signal, self.ranks = job, transport, phase, name, ranks
        self.random = random.Random(f"{SEED} {transport} {phase} {name} {ranks}")
        self.metrics, self.export, self.flag = (job.folder / file for file in ("metrics.jsonl", "weights.export", "slow-now"))

    def start(self, run):
        if self.transport == "tcp":
            port = free_port()
            for rank in range(self.ranks):
                self.job.start([TCP_RANK, STEPS, 60, TIMEOUT * 1000, self.metrics, self.export], f"rank{rank}", RANK=rank,
                               WORLD_SIZE=self.ranks, MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
            return
        slow = SLOW[self.phase] / (self.ranks if self.transport == "in-process" and self.phase == "load" else 1)
        environment = {"LD_PRELOAD": SLOW_FILES, "DS_SLOW_FILE": f".{self.phase}", "DS_SLOW_MS": round(slow), "DS_SLOW_FLAG": self.flag}
        command = [DS_RUN, *run, "--metrics", self.metrics, "--export", self.export]
        if self.transport == "in-process":
            self.job.start(command, "rank0", **environment)
        else:
            self.job.start(mpirun(self.ranks, *one_error_file_a_rank(command, self.job.folder)), "launcher", **environment, **MPI_ENVIRONMENT)

    def now(self):
        """The phase; where it is loading that is disturbed, which has begun, the victim's: its first weights are open."""
        phase = phase_of(self.metrics, STEPS, self.export)
        loaded = self.phase == "load" and self.transport != "tcp" and not any(file.endswith(".load") for file in open_files(self.processes[self.victim].pid))
        return "step" if phase == "load" and loaded else phase

    def has_begun(self):
        """Whether the phase has, on a run whose ranks are all there."""
        if self.phase != "load":
            return self.now() == self.phase
        if self.transport == "tcp":  # the thread that listens to the store
            names = [[file.read_text().strip() for file in Path(f"/proc/{p.pid}/task").glob("*/comm")] for p in self.processes.values()]
            return all("ds-store-rank" in threads for threads in names)
        return self.flag.exists()

    def disturb(self):
        """Sends the signal in the phase; sets which phase it was."""
        expected = 1 if self.transport == "in-process" else self.ranks
        await_condition(lambda: len(self.job.find_ranks()) == expected, 60, f"{expected} ranks")
        self.processes = self.job.find_ranks()
        self.victim = self.random.randrange(expected)
        await_condition(self.has_begun, 60, f"the {self.phase}; {self.said_by_all()}")
        time.sleep(self.random.uniform(0, 0.4))
        self.shared_memory = shared_memory_of(self.processes.values())
        self.hit = self.now()
        self.processes[self.victim].send(getattr(signal, self.signal))

    @property
    def survivors(self):
        return [rank for rank in self.processes if rank != self.victim]

    def ended(self, ranks):
        return not any(self.processes[rank].alive for rank in ranks)

    def said(self, rank):
        return self.job.said(f"rank{rank}")

    def said_by_all(self):
        return {path.name: path.read_text(errors="replace") for path in self.job.folder.glob("*.err")}


def await_end(run):
    """Seconds from the signal until all ranks had ended, of a stopped run until the others had."""
    if run.signal in GOES_ON:
        return seconds_until(lambda: run.ended(run.processes), 120)
    if run.signal == "SIGSTOP" and run.transport == "in-process":
        time.sleep(1)
        assert state_of(run.processes[0].pid)[0] == "T"
        run.processes[0].send(signal.SIGCONT)
        return seconds_until(lambda: run.ended([0]), 120)
    if run.signal == "SIGSTOP":
        return seconds_until(lambda: run.ended(run.survivors), TIMEOUT + ENDS)
    return seconds_until(lambda: run.ended(run.processes), ENDS)


def await_launchers(run):
    if run.signal == "SIGSTOP":  # mpirun ends the rank that stands still; by TCP there is no launcher here
        if run.transport == "tcp":
            run.processes[run.victim].send(signal.SIGCONT)
        assert seconds_until(lambda: run.ended(run.processes), ENDS) is not None, "the rank that stood still lives"
    assert seconds_until(lambda: not run.job.processes(), ENDS) is not None, run.job.processes()
    for process in run.job.started:
        process.wait(ENDS)


def all_bytes(ranks):
    """What TcpRank exports."""
    return hashlib.sha256(b"".join(bytes([rank] * 64) for rank in range(ranks))).hexdigest()


PHASES_AFTER = {phase: [after] for phase, after in zip(PHASES, PHASES[1:])} | {"export": []}
ASKED_TO_END = {"load": "error: ended by a signal before the run began", "step": "error: stopped by a signal after step ",
                "evaluation": "error: stopped by a signal during the evaluation after step ",
                "export": "error: stopped by a signal during the export; "}


def count_by_words(run):
    """A phase may end between the look at it and the signal; who is asked to end says in which it was."""
    if run.signal != "SIGTERM":
        return
    if run.hit == "export" and run.export.exists():
        return
    said = [phase for phase, words in ASKED_TO_END.items() if words in run.said(run.victim)]
    assert said in ([run.hit], PHASES_AFTER[run.hit]), run.said_by_all()
    run.hit = said[0]


def expected_words(run, rank):
    """A pattern of what a rank says that was not itself killed or stopped, or was asked to end."""
    if run.signal == "SIGTERM" and (rank == run.victim or run.hit != "load"):
        return ASKED_TO_END[run.hit]
    if run.signal == "SIGTERM" and run.transport == "mpi":  # the same, of ranks that may have loaded already
        return f"{ASKED_TO_END['load']}|note: rank {rank} was asked to end; "
    if run.transport == "mpi" and run.signal == "SIGKILL":  # mpirun asks the others to end, and says why
        return f"note: rank {rank} was asked to end; |error: "
    if run.transport == "mpi":
        return f"error: rank .* waited {TIMEOUT} s "
    if run.victim == 0:
        return "error: rank 0 at .* has (gone|not answered rank)"
    return f"rank {run.victim} has ended, or lost" if run.signal != "SIGSTOP" else f"ranks {run.victim} are missing|waited .* for rank {run.victim} "


def expect_outcome(run, reference):
    """Exit codes as docs/runs.md has them, files, and what was said."""
    codes = [process.returncode for process in run.job.started]
    texts = run.said_by_all()
    if run.export.exists():
        assert digest(run.export) == (all_bytes(run.ranks) if run.transport == "tcp" else reference), "half an export"
    if run.signal in GOES_ON or run.signal == "SIGSTOP" and run.transport == "in-process":
        assert set(codes) == {0} and run.export.exists(), (codes, texts)
        return
    if run.hit == "export" and run.victim != 0 and run.export.exists():  # its bytes had been sent already, and the file is whole
        return
    assert not run.export.exists() and 0 not in codes, (codes, texts)
    ended_by = {"SIGKILL": -signal.SIGKILL, "SIGTERM": -signal.SIGTERM if run.hit == "load" else 1, "SIGSTOP": 1}[run.signal]
    if run.transport == "mpi":
        assert run.signal == "SIGKILL" or run.hit == "load" or codes == [1], (codes, texts)
    else:
        assert codes == [ended_by if rank == run.victim else 1 for rank in range(len(codes))], (codes, texts)
    if run.transport == "mpi" and run.signal == "SIGKILL":
        assert re.search(rf"rank {run.victim} .*signal 9", run.job.said("launcher")), texts
    for rank in run.survivors + [run.victim] * (run.signal == "SIGTERM"):
        assert re.search(expected_words(run, rank), run.said(rank)), (rank, texts)
    if run.signal == "SIGTERM":  # there was time to remove what was begun
        assert not list(run.job.folder.glob(f"*{run.export.name}*")), list(run.job.folder.iterdir())


def who_named(run):
    """Which ranks, but the victim, name it; and mpirun."""
    if run.transport == "in-process" or run.signal in GOES_ON:
        return "goes on" if run.signal in (*GOES_ON, "SIGSTOP") else "itself"
    if run.signal == "SIGTERM" and run.hit != "load":
        return "a signal, by every rank"
    name = rf"\branks?\b.* {run.victim}\b(?! (waited|was asked))"
    by = sum(re.search(name, run.said(rank)) is not None for rank in run.survivors)
    if by == len(run.survivors):
        return "every other rank"
    return "mpirun" if re.search(rf"rank {run.victim}\b", run.job.said("launcher")) else f"{by} of {len(run.survivors)} others"


PAGE = REPOSITORY / "docs" / "ending.md"
BEGIN, END = "<!-- written by DS_UPDATE_DOCS=1 test/e2e/test_signals.py -->\n", "<!-- end -->"
ROWS = defaultdict(list)  # (phase, signal, transport): (seconds, who named the victim)


def write_table():
    """After every case, so that a run that is ended leaves what it has seen."""
    lines = ["| phase | signal | ranks are | tried | ended | seconds at most | the victim is named by |", "|---|---|---|---|---|---|---|"]
    for phase, name, transport in sorted(ROWS, key=lambda key: (PHASES.index(key[0]), SIGNALS.index(key[1]), TRANSPORTS.index(key[2]))):
        rows = ROWS[phase, name, transport]
        ended = [seconds for seconds, _ in rows if seconds is not None]
        lines.append(f"| {phase} | {name} | {transport} | {len(rows)} | {len(ended)} | {max(ended, default=0):.1f} | "
                     f"{', '.join(sorted({by for _, by in rows}))} |")
    path = REPOSITORY / "build" / "reports" / "signals.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    table = "\n".join(lines) + "\n"
    path.write_text(table)
    if os.environ.get("DS_UPDATE_DOCS") == "1":
        head, rest = PAGE.read_text().split(BEGIN)
        PAGE.write_text(head + BEGIN + table + END + rest.split(END)[1])


@pytest.mark.parametrize("transport, phase, name, ranks", [pytest.param(*case, id="-".join(map(str, case))) for case in CASES])
def test_all_ranks_end(plans, tmp_path, transport, phase, name, ranks):
    if transport == "mpi" and not has_mpi:
        pytest.skip("there is no mpirun")
    arguments, reference = plans.of(ranks)
    with Job(tmp_path) as job:
        run = Disturbed(job, transport, phase, name, ranks)
        run.start(arguments)
        run.disturb()
        seconds = await_end(run)
        count_by_words(run)
        ROWS[run.hit, name, transport].append((seconds, who_named(run)))
        write_table()
        assert seconds is not None, f"not all ranks have ended; {run.said_by_all()}"
        await_launchers(run)
        left = {file for file in run.shared_memory if Path(file).exists() and "vader_segment" not in file}  # that is Open MPI's
        assert not left, "files in shared memory are left"
    expect_outcome(run, reference)


def test_a_process_that_was_stopped_for_longer_than_the_timeout_goes_on(tools, exported, text_data, tmp_path):
    """Ranks of one process stop together, and none of them has waited for another meanwhile."""
    plan, metrics = tmp_path / "p.dsplan", tmp_path / "m.jsonl"
    tools("ds-opt", "compile", exported("gpt2", "--size", "tiny", "--seq", 64), "--config", write_config(tmp_path / "c.json"), "--ranks", 8, "-o", plan)
    run = subprocess.Popen([DS_RUN, plan, "--data", text_data(64), "--steps", "1000000", "--collective-timeout", str(TIMEOUT), "--threads", "1",
                            "--metrics", metrics, "--save", tmp_path / "saved", "--quiet"], stderr=subprocess.PIPE, text=True)
    await_condition(lambda: metrics.exists() and metrics.stat().st_size > 0, 120, "a step")
    run.send_signal(signal.SIGSTOP)
    time.sleep(TIMEOUT + 0.5)
    before = metrics.stat().st_size
    run.send_signal(signal.SIGCONT)
    await_condition(lambda: metrics.stat().st_size > before or run.poll() is not None, 120, "another step")
    run.send_signal(signal.SIGTERM)
    assert (run.wait(), run.stderr.read().count("stands still")) == (75, 0)
