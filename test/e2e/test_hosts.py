"""Runs across hosts that are network namespaces: the bits of one process over links that delay, lose or are down for a while; a
sentence that names the lost rank, in time, where a link or a host is gone. `make test` takes half of the cases, DS_TEST_SCOPE=all the others too.
"""

import hashlib
import os
import re
import signal
import time
from pathlib import Path

import hosts
import pytest
from rank_jobs import (DS_RUN, MPI_ENVIRONMENT, SLOW_FILES, TCP_RANK, Job, await_condition, complete_lines, has_mpi,
                       one_error_file_a_rank, seconds_until)
from standstill import AGAIN
from zero_trainer import trainer  # noqa: F401 - trainer is a fixture

WHY_NOT = hosts.why_not()
pytestmark = [pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT)), AGAIN]
WHOLE = os.environ.get("DS_TEST_SCOPE") == "all"
RANKS, STEPS, TIMEOUT, ENDS = 4, 10, 4, 10  # ENDS: s beyond the time-out
PORT = 29500  # of rank 0's host, which has no other
SHAPES = [(transport, count) for transport in ("mpi", "tcp") for count in (2, 4)]
SOME, OTHERS = (SHAPES, SHAPES) if WHOLE else ([("mpi", 2), ("tcp", 4)], [("mpi", 4), ("tcp", 2)])


class Run:
    """Four ranks on two or four hosts, and what they do while something happens to host number 1."""

    def __init__(self, job, network, transport):
        self.job, self.network, self.transport = job, network, transport
        self.metrics, self.export = job.folder / "metrics.jsonl", job.folder / "weights.export"
        self.lost_host = network.hosts[1]
        self.lost = [rank for rank in range(RANKS) if self.host_of(rank) is self.lost_host]

    def host_of(self, rank):
        return self.network.hosts[rank * len(self.network.hosts) // RANKS]

    def start(self, arguments):
        if self.transport == "tcp":
            for rank in range(RANKS):
                command = [TCP_RANK, STEPS, 100, TIMEOUT * 1000, self.metrics, self.export]
                self.job.start(self.host_of(rank).command(command), f"rank{rank}", RANK=rank, WORLD_SIZE=RANKS,
                               MASTER_ADDR=self.network.hosts[0].address, MASTER_PORT=PORT)
            return
        subnet = self.network.hosts[0].address.rpartition(".")[0] + ".0/24"
        slots = ",".join(f"{host.address}:{RANKS // len(self.network.hosts)}" for host in self.network.hosts)
        launcher = ["mpirun", "--host", slots, "-n", RANKS, "--map-by", "slot", "--mca", "plm", "rsh", "--mca", "plm_rsh_agent", self.agent(),
                    "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", subnet, "--mca", "oob_tcp_if_include", subnet]
        ranks = one_error_file_a_rank([DS_RUN, *arguments, "--metrics", self.metrics, "--export", self.export], self.job.folder)
        # Steps last a while, so that something can happen in them.
        self.job.start(self.network.hosts[0].command([*launcher, *ranks]), "launcher", LD_PRELOAD=SLOW_FILES, DS_SLOW_FILE=".step",
                       DS_SLOW_MS=100, **MPI_ENVIRONMENT)

    def agent(self):
        """What mpirun calls as it would call ssh: HOST COMMAND... Like ssh it hears nothing of a host that vanishes."""
        path = self.job.folder / "enter.sh"
        names = "".join(f"{host.address}) name={host.name} ;;\n" for host in self.network.hosts)
        path.write_text(f'#!/bin/sh\ncase $1 in\n{names}esac\nshift\n'
                        'ip netns exec $name unshare --uts sh -c "hostname $name; $*"\n[ $? = 137 ] && exec sleep 60\nexit 0\n')
        path.chmod(0o755)
        return path

    def await_step(self, step):
        await_condition(lambda: len(complete_lines(self.metrics)) >= step or self.job.started[0].poll() is not None, 60, f"step {step}")
        assert self.job.started[0].poll() is None, self.said()
        self.processes = self.job.find_ranks()
        assert sorted(self.processes) == list(range(RANKS))

    def await_success(self):
        assert seconds_until(lambda: all(p.poll() is not None for p in self.job.started), 90) is not None, self.said()
        assert [p.returncode for p in self.job.started] == [0] * len(self.job.started), self.said()

    def await_loss(self):
        """Seconds until the ranks had ended that are still there."""
        there = [rank for rank in range(RANKS) if rank not in self.lost]
        seconds = seconds_until(lambda: not any(self.processes[rank].alive for rank in there), TIMEOUT + ENDS)
        assert seconds is not None, self.said()
        for rank in there:
            assert re.search(r"error: .*(waited|answered|lost its connection|has gone)", self.job.said(f"rank{rank}")), self.said()
        named = "|".join(map(str, self.lost))
        assert any(re.search(rf"ranks .*({named})\b.* are missing|for rank ({named}) |rank ({named}) has ended", self.job.said(f"rank{rank}"))
                   for rank in there), self.said()
        assert not self.export.exists()
        return seconds

    def said(self):
        return {path.name: path.read_text(errors="replace") for path in self.job.folder.glob("*.err")}


@pytest.fixture(scope="module")
def plan(trainer, tmp_path_factory):  # noqa: F811
    """(arguments, digest of what one process exports)."""
    folder = tmp_path_factory.mktemp("hosts")
    (folder / "data.step").write_bytes(trainer.data.read_bytes())
    arguments = [trainer.compile("gpt2", RANKS, 1, 3), "--data", folder / "data.step", "--steps", STEPS, "--threads", 1, "--quiet", "--check-data", 0]
    trainer.tools("ds-run", *arguments, "--export", folder / "reference")
    return [*arguments, "--collective-timeout", TIMEOUT], digest(folder / "reference")


def digest(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


@pytest.fixture
def start(plan, tmp_path):
    """start("mpi", 2) -> a run on so many hosts, which ends with the test."""
    opened = []

    def begin(transport, count):
        if transport == "mpi" and not has_mpi:
            pytest.skip("there is no mpirun")
        network = hosts.Network(count)
        opened.append(network.__enter__())
        job = Job(tmp_path)
        opened.append(job.__enter__())
        run = Run(job, network, transport)
        run.start(plan[0])
        return run

    yield begin
    for thing in reversed(opened):
        thing.__exit__()


def expect_bits(run, plan):
    run.await_success()
    if run.transport == "mpi":
        assert digest(run.export) == plan[1]
    else:
        assert run.export.read_bytes() == b"".join(bytes([rank] * 64) for rank in range(RANKS))
    assert run.network.frames > 100  # it did go through the switch


@pytest.mark.parametrize("transport, count", SOME)
def test_delay_and_loss_do_not_change_a_bit(start, plan, transport, count):
    run = start(transport, count)
    run.await_step(1)
    for host in run.network.hosts:
        host.cable.delay, host.cable.loss = 0.01, 0.01
    expect_bits(run, plan)


@pytest.mark.parametrize("transport, count", OTHERS)
def test_a_link_that_comes_back_in_time(start, plan, transport, count):
    run = start(transport, count)
    run.await_step(2)
    run.lost_host.set_link("down")
    time.sleep(TIMEOUT / 3)
    run.lost_host.set_link("up")
    expect_bits(run, plan)


@pytest.mark.parametrize("transport, count", SOME)
def test_a_link_that_stays_down(start, transport, count):
    """Nobody is told; only the time-out tells."""
    run = start(transport, count)
    run.await_step(2)
    run.lost_host.set_link("down")
    run.await_loss()
    lost = [run.processes[rank] for rank in run.lost]  # they see that the others are gone
    assert seconds_until(lambda: not any(process.alive for process in lost), TIMEOUT + ENDS) is not None, run.said()


@pytest.mark.parametrize("transport, count", OTHERS)
def test_a_host_that_vanishes(start, transport, count):
    """All its processes at once, and its cable: no farewell reaches the others."""
    run = start(transport, count)
    run.await_step(2)
    run.lost_host.cable.cut = True
    there = os.stat(f"/run/netns/{run.lost_host.name}").st_ino
    for process in run.job.processes():
        if os.stat(f"/proc/{process.pid}/ns/net").st_ino == there:
            process.send(signal.SIGKILL)
    run.await_loss()
