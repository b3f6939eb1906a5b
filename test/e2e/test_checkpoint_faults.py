"""Checkpoints of runs that are killed, asked to end, or cannot write: what is there is whole, and training goes on from it bit by bit.

`make test` takes some moments and some calls; DS_TEST_SCOPE=all kills 200 times and lets every call fail. DS_KILL_SEED draws other moments.
"""

import hashlib
import json
import os
import random
import re
import signal
import subprocess
import time

import pytest
from checkpoints import ONE, Done, losses_of, manifest_of, runs  # noqa: F401
from conftest import BUILD
from pipeline_trainer import OPEN_MPI, Cut
from rank_jobs import Job, await_condition

WHOLE = os.environ.get("DS_TEST_SCOPE") == "all"
SEED = int(os.environ.get("DS_KILL_SEED", "1"))
MODEL = "gpt2 tied"
INJECT = BUILD / "bin" / "inject_fault"
REASONS = {"EIO": "Input/output error", "ENOSPC": "No space left on device"}


def require_whole(folder):
    """Every checkpoint has the files of its manifest, and `latest` names one. Returns their steps."""
    steps = []
    for checkpoint in folder.glob("global_step*"):
        if checkpoint.name.endswith(".part"):
            continue
        for file in manifest_of(checkpoint)["files"]:
            data = (checkpoint / file["name"]).read_bytes()
            assert (len(data), hashlib.sha256(data).hexdigest()) == (file["bytes"], file["sha256"]), checkpoint / file["name"]
        steps.append(manifest_of(checkpoint)["step"])
    latest = folder / "latest"
    assert not latest.exists() or int(latest.read_text().removeprefix("global_step")) in steps
    return sorted(steps)


# Killed.

KILLED = [(MODEL, ONE, False), (MODEL, Cut(data=2, zero=1), False), (MODEL, Cut(data=4, zero=2), False), (MODEL, Cut(data=3, zero=3), False),
          (MODEL, Cut(stages=2, microbatches=2), False), (MODEL, Cut(stages=2, microbatches=2, data=2, zero=1), False),
          (MODEL, Cut(stages=4, microbatches=4), False), (MODEL, Cut(data=2, zero=3), True), ("gpt2 fp16", Cut(data=2, zero=2), False)]
KILLS, LAST = (25 if WHOLE else 2), 40


@pytest.mark.parametrize("model, cut, mpi", KILLED if WHOLE else KILLED[:2] + KILLED[3:5] + KILLED[7:], ids=str)
def test_killed_at_any_moment(runs, model, cut, mpi, tmp_path):  # noqa: F811
    """A save at every step, SIGKILL to all processes at random moments, again and again: the run that is left to end has the weights
    of one that was never killed."""
    begin = time.monotonic()
    plain = runs.run(model, cut, steps=LAST, mpi=mpi)
    seconds = 2 * (time.monotonic() - begin)  # as long as the whole run may take while it saves
    folder, draw, killed = tmp_path / "saved", random.Random(f"{SEED} {model} {cut} {mpi}"), 0
    options = ["--save", folder, "--save-interval", 1, "--keep", 2, "--resume-if-present"]
    for kill in range(KILLS):
        with Job(tmp_path) as job:
            started = job.start(runs.command(model, cut, *options, steps=LAST, mpi=mpi), f"kill{kill}", **OPEN_MPI)
            time.sleep(draw.uniform(0, seconds))
            killed += started.poll() is None
        if folder.exists():
            steps = require_whole(folder)
            assert len(steps) <= 3, "more than --keep and the one that was to be removed"
    ended = runs.run(model, cut, *options, steps=LAST, mpi=mpi)
    assert ended.weights == plain.weights
    assert require_whole(folder) == [LAST - 1, LAST] and not list(folder.glob("*.part"))
    print(f"{killed} of {KILLS} kills met a run")


# Asked to end.


@pytest.mark.parametrize("number, cut, mpi", [(signal.SIGTERM, Cut(data=2, zero=3), False), (signal.SIGINT, Cut(stages=2, microbatches=2), False),
                                              (signal.SIGUSR1, ONE, False), (signal.SIGUSR1, Cut(data=2, zero=3), True)], ids=str)
def test_a_signal_saves(runs, number, cut, mpi, tmp_path):  # noqa: F811
    """The step under way ends, all is saved, the code is 75; the resumed run is the same training."""
    folder, metrics = tmp_path / "saved", tmp_path / "metrics"
    with Job(tmp_path) as job:
        options = ["--save", folder, "--metrics", metrics]
        started = job.start(runs.command(MODEL, cut, *options, steps=100000, mpi=mpi), "run", **OPEN_MPI)
        await_condition(lambda: len(losses_of(metrics)) >= 3, 60, "three steps")
        next(iter(job.find_ranks(("ds-run",)).values())).send(number)
        started.wait(60)
        said = job.said("run")
    assert started.returncode == 75, said
    assert re.search(rf"note: stopped by a signal after step \d+ of 100000; --resume {folder} goes on from there", said), said
    assert "error" not in said or mpi
    (done,) = require_whole(folder)
    assert done == max(losses_of(metrics))
    assert "summary" in json.loads(metrics.read_text().splitlines()[-1])
    plain = runs.run(MODEL, cut, steps=done + 2, mpi=mpi)
    assert runs.run(MODEL, cut, "--resume", folder, steps=done + 2, mpi=mpi).weights == plain.weights


def test_max_time_saves(runs, tmp_path):  # noqa: F811
    folder = tmp_path / "saved"
    done = runs.run(MODEL, ONE, "--save", folder, "--max-time", "0.5", steps=10**6, code=75)
    assert f"--resume {folder} goes on from there" in done.errors and "stopped by --max-time after step" in done.errors
    assert require_whole(folder) == [max(done.losses)]
    alone = runs.run(MODEL, ONE, "--max-time", "0.5", steps=10**6, code=1)
    assert "stopped by --max-time" in alone.errors and "nothing was saved or exported; --save DIR saves before such an end" in alone.errors


# Cannot write.

SAVES = ("--save-interval", 2)  # at steps 2 and 4, the last


def inject(runs, folder, *fault, log):  # noqa: F811
    export, saved = folder / "weights", folder / "saved"
    command = [INJECT.resolve(), "--under", saved, "--log", log, *fault, "--",
               *runs.command(MODEL, Cut(data=2, zero=1), "--save", saved, *SAVES, "--export", export, steps=4)]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120)
    others = ("note: what each rank did last is in ", "note: the data has attention_mask, ")
    errors = "".join(line for line in done.stderr.splitlines(True) if not line.startswith(others))
    return Done(done.returncode, errors, {}, hashlib.sha256(export.read_bytes()).hexdigest() if export.exists() else "")


def some_of(count):
    """Numbers of calls: the first, the last and some between, or all."""
    return sorted({1, count, *range(1, count + 1, 1 if WHOLE else max(1, count // 3))})


@pytest.mark.parametrize("call, error", [("write", "ENOSPC"), ("write", "EIO"), ("fsync", "EIO"), ("fsync", "ENOSPC"), ("rename", "EIO"),
                                         ("rename", "ENOSPC"), ("mkdir", "ENOSPC"), ("mkdir", "EIO"), ("open", "EIO")])
def test_a_call_that_fails(runs, call, error, tmp_path):  # noqa: F811
    """What is there is whole, one sentence names file and reason, and training goes on: only a last checkpoint that is missing, or a
    folder that cannot be used at all, is a failure."""
    log = tmp_path / "log.json"
    (tmp_path / "plain").mkdir()
    plain = inject(runs, tmp_path / "plain", log=log)
    assert plain.code == 0, plain.errors
    count = json.loads(log.read_text())["counts"].get(call, 0)
    assert count >= 2
    for number in some_of(count):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        done = inject(runs, folder, "--call", call, "--number", number, "--error", error, log=log)
        what = f"{error} of {call} {number} of {count}: {done.code} {done.errors}"
        steps = require_whole(folder / "saved") if (folder / "saved").exists() else []
        lines = done.errors.splitlines()
        if not done.errors:
            assert (done.code, steps, done.weights) == (0, [2, 4], plain.weights), what
            continue
        assert len(lines) == 1 and REASONS[error] in lines[0] and str(folder / "saved") in lines[0], what
        if not done.weights:  # before the first step
            assert (done.code, steps) == (1, []), what
            continue
        assert done.weights == plain.weights, what
        if done.code == 0:
            assert 4 in steps and lines[0].startswith("note: the checkpoint after step "), what
        else:
            assert done.code == 1 and 2 in steps and lines[0].startswith("error: the last checkpoint was not saved: "), what
        if steps:
            assert runs.run(MODEL, Cut(data=2, zero=1), "--resume", folder / "saved", steps=4).weights == plain.weights, what


def test_a_disk_that_stays_full(runs, tmp_path):  # noqa: F811
    """Said once a save; the run is not lost."""
    log = tmp_path / "log.json"
    done = inject(runs, tmp_path, "--call", "write", "--number", "1+", "--error", "ENOSPC", log=log)
    first, last = done.errors.splitlines()
    assert first.startswith("note: the checkpoint after step 2 was not saved: cannot write ") and "No space left on device" in first
    assert last.startswith("error: the last checkpoint was not saved: cannot write ") and done.code == 1 and done.weights
    assert require_whole(tmp_path / "saved") == []


# What is damaged or of another run.


def test_bad_checkpoints(runs, tmp_path):  # noqa: F811
    """One sentence each, before anything is trained."""
    folder = tmp_path / "saved"
    runs.run(MODEL, ONE, "--save", folder, steps=2)
    checkpoint = folder / "global_step2"
    manifest, rank = checkpoint / "manifest.json", checkpoint / "rank-00000.safetensors"
    text, data = manifest.read_text(), rank.read_bytes()

    def refused(*options, model=MODEL):
        done = runs.run(model, ONE, "--resume", folder, *options, steps=4, code=1)
        assert done.errors.count("\n") == 1 and done.errors.startswith("error: ") and done.losses == {}
        return done.errors

    assert f"{checkpoint} is of another model or optimizer than the plan" in refused(model="llama")
    assert "--seed 3 contradicts checkpoint" in refused("--seed", 3)
    assert "--shuffle contradicts checkpoint" in refused("--shuffle")
    assert "has no checkpoint global_step9" in refused("--tag", "global_step9")
    manifest.write_text(text.replace('"format": 3', '"format": 7'))
    assert f"{manifest}: its format is 7, but this ds-run reads formats 1 to 3; use the ds-run that wrote it, or a newer one" in refused()
    manifest.write_text(text[: len(text) // 2])
    assert f"{manifest}: it is no JSON object" in refused()
    manifest.write_text(text)
    rank.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    expected = hashlib.sha256(data).hexdigest()
    assert re.search(rf"{rank} is damaged: its SHA-256 is [0-9a-f]{{64}}, its manifest says {expected}", refused())
    rank.unlink()
    assert f"checkpoint {checkpoint} lacks its file rank-00000.safetensors of SHA-256 {expected}" in refused()


def test_two_runs_do_not_share_a_folder(runs, tmp_path):  # noqa: F811
    folder, metrics = tmp_path / "saved", tmp_path / "metrics"
    with Job(tmp_path) as job:
        job.start(runs.command(MODEL, ONE, "--save", folder, "--metrics", metrics, steps=10**6), "first")
        await_condition(lambda: losses_of(metrics), 60, "a step")
        second = runs.run(MODEL, ONE, "--save", folder, steps=1, code=1)
    assert second.errors == f"error: --save {folder} is being written by another run; give each run a folder of its own\n"
