"""Hangs under the TCP control plane: `ds-run postmortem` names the culprit by the records of four processes.

`ds-run` itself talks by TCP on GPUs alone, so the ranks are TcpRank, which says to the control plane what a run says between steps, and keeps
the same flight record. Collectives are NCCL's there and are not part of it.
"""

import re
import select
import signal
import socket
import threading
import time

import pytest
from rank_jobs import SLOW_FILES, TCP_RANK, Job, await_condition, complete_lines, free_port, seconds_until
from zero_trainer import trainer  # noqa: F401 - trainer is a fixture

RANKS, TIMEOUT, STEPS_BEFORE = 4, 2, 5  # TIMEOUT: s
AFTER_STEPS = 100  # reads of the plan: at its start, at each of 20 weights, and in the first steps


class LossyLink(threading.Thread):
    """Carries the bytes between one rank and the store; once `lossy`, what the rank sends is lost."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.store, self.lossy, self.over = port, False, False
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]

    def run(self):
        rank, _ = self.listening.accept()
        with rank, self.listening, self.connect() as store:
            while not self.over:
                for source in select.select([rank, store], [], [], 0.1)[0]:
                    data = source.recv(65536)
                    if not data:
                        return
                    if source is store:
                        rank.sendall(data)
                    elif not self.lossy:
                        store.sendall(data)

    def connect(self):
        """Rank 0 may start later."""
        for _ in range(1000):
            try:
                return socket.create_connection(("127.0.0.1", self.store))
            except OSError:
                time.sleep(0.02)
        raise TimeoutError("rank 0 does not listen")


class Run:
    def __init__(self, job, plan):
        self.job, self.plan, self.port = job, plan, free_port()
        self.metrics, self.records = job.folder / "metrics", job.folder / "records"

    def start(self, rank, port=None, **environment):
        self.job.start([TCP_RANK, 10**6, 10, TIMEOUT * 1000, self.metrics, self.job.folder / "export", self.plan, self.records], f"rank{rank}",
                       RANK=rank, WORLD_SIZE=RANKS, MASTER_ADDR="127.0.0.1", MASTER_PORT=port or self.port, **environment)

    def start_all(self, culprit=None, port=None, **environment):
        for rank in range(RANKS):
            self.start(rank, **({"port": port, **environment} if rank == culprit else {}))

    def await_steps(self):
        await_condition(lambda: len(complete_lines(self.metrics)) >= STEPS_BEFORE, 60, f"step {STEPS_BEFORE}")

    def await_records(self, ranks):
        """Written by those that wait, or that run but do not come."""
        there = [self.records / f"flight-{rank}.json" for rank in ranks]
        assert seconds_until(lambda: all(path.exists() for path in there), TIMEOUT + 20) is not None, self.said()

    def await_end(self, ranks):
        assert seconds_until(lambda: all(self.job.started[rank].poll() is not None for rank in ranks), TIMEOUT + 20) is not None, self.said()

    def said(self):
        return {path.name: path.read_text(errors="replace") for path in self.job.folder.glob("*.err")}


@pytest.fixture(scope="module")
def plan(trainer):  # noqa: F811
    return trainer.compile("gpt2", RANKS, 1, 3)


@pytest.fixture
def run(plan, tmp_path):
    with Job(tmp_path) as job:
        yield Run(job, plan)


def postmortem(run, tools):
    return tools("ds-run", "postmortem", run.records, run.plan).stdout


def test_a_process_that_was_stopped(run, tools):
    run.start_all()
    run.await_steps()
    run.job.find_ranks()[3].send(signal.SIGSTOP)
    run.await_records([0, 1, 2])
    run.await_end([0, 1, 2])
    assert re.search(r"^Rank 3 left no record: ", postmortem(run, tools))
    heard = re.search(r"ranks 3 are missing; .* rank 3 was last heard of (\d+\.\d) s ago", run.job.said("rank0"))
    assert heard and float(heard[1]) >= TIMEOUT - 0.1, run.said()
    time.sleep(1)  # it is let go when nobody is there any more
    run.job.find_ranks()[3].send(signal.SIGCONT)
    run.await_records([3])
    assert re.search(r"^Rank 3 stood still for \d+\.\d s and wrote its record when it went on", postmortem(run, tools)), postmortem(run, tools)


def test_a_disk_that_is_slow(run, tools):
    run.start_all(culprit=1, LD_PRELOAD=SLOW_FILES, DS_SLOW_FILE=run.plan.name, DS_SLOW_MS=8000, DS_SLOW_AFTER=AFTER_STEPS)
    run.await_records(range(RANKS))
    assert re.search(rf"^Rank 1 reads --data {re.escape(str(run.plan))} for step \d+, for ", postmortem(run, tools)), postmortem(run, tools)
    run.await_end([0])
    heard = re.search(r"rank 1 was last heard of (\d+\.\d) s ago", run.job.said("rank0"))
    assert heard and float(heard[1]) < TIMEOUT, run.said()


def test_a_dead_mount_while_loading(run, tools):
    run.start_all(culprit=2, LD_PRELOAD=SLOW_FILES, DS_SLOW_FILE=run.plan.name, DS_SLOW_MS=10**6, DS_SLOW_AFTER=10)
    run.await_records(range(RANKS))
    assert re.search(rf"^Rank 2 opens --data {re.escape(str(run.plan))}, for ", postmortem(run, tools)), postmortem(run, tools)


def test_a_link_that_loses_what_a_rank_says(run, tools):
    link = LossyLink(run.port)
    link.start()
    try:
        run.start_all(culprit=2, port=link.port)
        run.await_steps()
        link.lossy = True
        run.await_records(range(RANKS))
    finally:
        link.over = True
        link.join(10)
    out = postmortem(run, tools)
    assert re.search(r"^Rank 2 has been between steps .*, but it has come as far as the others: what it said to them was lost on the way\.", out), out
