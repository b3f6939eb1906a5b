"""Twenty planted hangs: `ds-run postmortem` names the culprit of each by what the ranks wrote when the run timed out.

A stopped rank, a lost message, a slow disk, a data file on a dead mount; on plans of ZeRO and of a pipeline, four processes
under mpirun. `make test` takes six of them, DS_TEST_SCOPE=all takes all. DS_UPDATE_DOCS=1 writes the table of
docs/postmortem.md.
"""

import dataclasses
import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
import zero_trainer
from conftest import BUILD, FOLDERS, REPOSITORY, write_config
from standstill import AGAIN

WHOLE = os.environ.get("DS_TEST_SCOPE") == "all"
PAGE = REPOSITORY / "docs/postmortem.md"
LIBRARIES = BUILD / "lib"
TIMEOUT = 2  # s, of a collective
DEAD = 1000000  # ms that a read of a dead mount lasts
pytestmark = [pytest.mark.skipif(shutil.which("mpirun") is None, reason="there is no mpirun"), AGAIN]


@dataclasses.dataclass(frozen=True)
class Hang:
    cause: str  # "stopped rank", "lost message", "slow disk", "dead mount"
    plan: str  # "zero-3", "zero-1", "pipeline"
    rank: int  # the culprit; of a lost message, the one that sends it
    when: int = 3  # the step, or the message
    in_subset: bool = False

    def __str__(self):
        return f"{self.cause}, {self.plan}, rank {self.rank}, at {self.when}"


HANGS = [
    Hang("stopped rank", "zero-3", 0), Hang("stopped rank", "zero-3", 3, in_subset=True), Hang("stopped rank", "zero-1", 2),
    Hang("stopped rank", "zero-1", 1, 40), Hang("stopped rank", "pipeline", 0), Hang("stopped rank", "pipeline", 3, in_subset=True),
    Hang("lost message", "pipeline", 0, 5, in_subset=True), Hang("lost message", "pipeline", 1, 9), Hang("lost message", "pipeline", 2, 20),
    Hang("lost message", "zero-3", 1, 7), Hang("lost message", "zero-3", 3, 30, in_subset=True), Hang("lost message", "zero-1", 2, 11),
    Hang("slow disk", "zero-3", 1, in_subset=True), Hang("slow disk", "zero-1", 3), Hang("slow disk", "pipeline", 0),
    Hang("slow disk", "pipeline", 3, 6), Hang("dead mount", "zero-3", 2), Hang("dead mount", "zero-1", 0),
    Hang("dead mount", "pipeline", 3, in_subset=True), Hang("dead mount", "zero-3", 1, when=0),
]
RUN = HANGS if WHOLE else [hang for hang in HANGS if hang.in_subset]
RANKS = 4
NAMED = []  # of HANGS, those whose culprit postmortem has named


@pytest.fixture(scope="module")
def plans(tools, tmp_path_factory):
    """By name: (plan, data). In "pipeline" four stages pass messages; in the others four ranks meet in collectives."""
    folder = tmp_path_factory.mktemp("hangs")
    trainer = zero_trainer.Trainer(tools, folder)
    plans = {f"zero-{stage}": trainer.compile("gpt2", RANKS, 2, stage, overlap_comm=True) for stage in (1, 3)}
    model = folder / "deep"
    zero_trainer.exporter.main(["llama", "--size=tiny", "--seq=4", "--set=num_hidden_layers=8", "--set=vocab_size=37", f"--out={model}"])
    config = write_config(folder / "pipeline.json", 1, 4, deepstatic={"pipeline": {"stages": RANKS, "schedule": "1f1b"}})
    plans["pipeline"] = folder / "pipeline.dsplan"
    tools("ds-opt", "compile", model, "--config", config, "--ranks", RANKS, "-o", plans["pipeline"])
    return {name: (plan, trainer.data) for name, plan in plans.items()}


def wrapper(folder, rank, environment):
    """A script that runs its arguments, on one rank with more environment; each leaves its process number."""
    exports = " ".join(f"{name}={value}" for name, value in environment.items())
    script = folder / "rank.sh"
    script.write_text(f"#!/bin/sh\necho $$ > {folder}/pid.$OMPI_COMM_WORLD_RANK\n"
                      f"[ $OMPI_COMM_WORLD_RANK = {rank} ] && export {exports}\nexec \"$@\"\n")
    return script


def stop_at_step(folder, rank, step, process):
    """Stops the rank once rank 0 has written so many steps."""
    metrics, end = folder / "metrics", time.monotonic() + 60
    while not metrics.exists() or len(metrics.read_text().splitlines()) < step:
        assert process.poll() is None and time.monotonic() < end, "the run ended before it was to be stopped"
        time.sleep(0.005)
    os.kill(int((folder / f"pid.{rank}").read_text()), signal.SIGSTOP)


def environment_of(hang, data, folder):
    if hang.cause == "lost message":  # of the plan's: what processes say between steps is shorter
        return {"LD_PRELOAD": LIBRARIES / "liblost_message.so", "DS_LOSE_BYTES": 24, "DS_LOSE_NUMBER": hang.when,
                "DS_LOSE_NOTE": folder / "lost"}
    slow = {"LD_PRELOAD": LIBRARIES / "libslow_files.so", "DS_SLOW_FILE": data.name}
    if hang.cause == "slow disk":
        return {**slow, "DS_SLOW_MS": 8000, "DS_SLOW_AFTER": 30 + 10 * hang.when}
    if hang.cause == "dead mount":
        return {**slow, "DS_SLOW_MS": DEAD, "DS_SLOW_AFTER": 30 * hang.when}
    return {"DS_NOTHING": 1}


def plant(hang, plan, data, folder):
    """Runs into the hang; returns where the records are."""
    records = folder / "records"
    script = wrapper(folder, hang.rank, environment_of(hang, data, folder))
    command = ["timeout", "-s", "KILL", 90, "mpirun", "--oversubscribe", "-n", RANKS, "sh", script, FOLDERS["ds-run"] / "ds-run", plan,
               "--data", data, "--steps", 10**6, "--threads", 1, "--quiet", "--check-data", 0, "--collective-timeout", TIMEOUT, "--metrics", folder / "metrics",
               "--flight-recorder", records]
    with (folder / "stderr").open("w") as errors:
        process = subprocess.Popen([str(word) for word in command], env={**os.environ, **zero_trainer.OPEN_MPI}, stderr=errors,
                                   stdout=subprocess.DEVNULL, start_new_session=True)
        try:
            if hang.cause == "stopped rank":
                stop_at_step(folder, hang.rank, hang.when, process)
            process.wait(timeout=100)
        finally:
            for pid in folder.glob("pid.*"):
                end_if_ours(int(pid.read_text()), plan)
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    assert process.returncode not in (0, 137), (folder / "stderr").read_text()
    return records


def end_if_ours(pid, plan):
    """A rank that stands still outlives mpirun."""
    command = Path(f"/proc/{pid}/cmdline")
    if command.exists() and str(plan).encode() in command.read_bytes():
        os.kill(pid, signal.SIGKILL)


def expected(hang, data, folder):
    """What the first sentences must say."""
    if hang.cause == "stopped rank":
        return rf"^Rank {hang.rank} (left no record: |stood still for )"  # mpirun lets a stopped process go on to end it
    if hang.cause == "lost message":
        to = (folder / "lost").read_text()
        return rf"^Rank {to} has been in .*, but .*a message from rank {hang.rank} to rank {to} was lost on the way"
    if hang.when == 0:
        return rf"^Rank {hang.rank} opens --data {re.escape(str(data))}, for "
    return rf"^Rank {hang.rank} is in feed of input \w+ from {re.escape(str(data))}, step \d+, micro-batch \d, for "


@pytest.mark.parametrize("hang", RUN, ids=str)
def test_the_culprit_is_named(tools, plans, hang, tmp_path):
    plan, data = plans[hang.plan]
    records = plant(hang, plan, data, tmp_path)
    out = tools("ds-run", "postmortem", records, plan, "--trace", tmp_path / "trace").stdout
    assert re.search(expected(hang, data, tmp_path), out), f"{out}\n{(tmp_path / 'stderr').read_text()}"
    assert json.loads((tmp_path / "trace").read_text())["traceEvents"]
    NAMED.append(hang)


def table():
    """Planted and named, by cause and plan."""
    lines = ["| cause | plan | rank (step or message) | planted | named |", "|---|---|---|---|---|"]
    for cause, plan in dict.fromkeys((hang.cause, hang.plan) for hang in HANGS):
        planted = [hang for hang in HANGS if (hang.cause, hang.plan) == (cause, plan)]
        places = ", ".join(f"{hang.rank} ({hang.when})" for hang in planted)
        lines.append(f"| {cause} | {plan} | {places} | {len(planted)} | {sum(hang in NAMED for hang in planted)} |")
    lines.append(f"| all | | | {len(HANGS)} | {len(NAMED)} |")
    return "\n".join(lines)


@pytest.mark.skipif(not WHOLE, reason="the table is of all hangs: DS_TEST_SCOPE=all")
def test_the_page_has_the_table():
    begin, end = "<!-- written by DS_UPDATE_DOCS=1 test/e2e/test_postmortem.py -->\n", "<!-- end -->"
    head, rest = PAGE.read_text().split(begin)
    tail = rest.split(end)[1]
    wanted = f"{head}{begin}{table()}\n{end}{tail}"
    if os.environ.get("DS_UPDATE_DOCS"):
        PAGE.write_text(wanted)
    assert PAGE.read_text() == wanted
