"""What benches do with a peer that hangs or dies, a run that is stopped, and tools or modules that are missing; with peers that only pretend."""

import os
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import REPOSITORY

BENCH = REPOSITORY / "bench"
sys.path.insert(0, str(BENCH))
import ranks  # noqa: E402
import rounds  # noqa: E402

PEER = """
import os, subprocess, sys, time
what, rank = sys.argv[sys.argv.index("--worker") + 1], int(os.environ["RANK"])
helper = subprocess.Popen(["sleep", "1000"], process_group=0)  # in a group of its own, as mpirun's ranks are
for pid in (os.getpid(), helper.pid):
    open(f"{sys.argv[0]}.{pid}.pid", "w").close()
if what == "hangs" or what == "dies" and rank == 0:
    time.sleep(1000)
if what == "dies":
    sys.exit("no memory is left")
if rank == 0:
    print('{"seconds": [0.5, 0.25], "losses": [2.0, 1.0]}', flush=True)
sys.exit(what == "ends badly" and rank == 0)  # once it has printed its line
"""


@pytest.fixture
def peer(tmp_path):
    script = tmp_path / "peer.py"
    script.write_text(PEER)
    return script


def living(peer):
    """Processes of a peer that have not ended."""
    pids = [path.name.split(".")[-2] for path in peer.parent.glob("*.pid")]
    stats = [Path(f"/proc/{pid}/stat") for pid in pids]
    return [stat.parent.name for stat in stats if stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"], len(pids)


def test_a_peer_that_hangs_or_dies_has_its_line_and_the_rest_goes_on(peer, capsys):
    names = ["hangs", "fine", "dies", "ends badly"]
    args = {name: SimpleNamespace(steps=2, warmup=0, timeout=1.5 if name == "hangs" else 300) for name in names}
    results, failures = rounds.interleave({name: partial(ranks.run_peer, args[name], peer, name) for name in names}, 2)
    assert {name: len(of_rounds) for name, of_rounds in results.items()} == {"hangs": 0, "fine": 2, "dies": 0, "ends badly": 2}
    rates = ranks.rates_of(results, 100)
    ranks.print_rates("a model", results, failures, rates)
    ranks.print_ratios(rates, "fine", ["hangs", "ends badly"])
    out, err = capsys.readouterr()
    assert re.sub(" +", " ", out).splitlines() == [
        "a model; losses within 0e+00 of each other", " tokens/s best median",
        "hangs failed in round 1: no end within 1.5 s",
        "fine 400 267",
        "dies failed in round 1: rank 1 ended with status 1: no memory is left",
        "ends badly 400 267",
        "fine / ends badly: best 1.00, median 1.00"]
    lines = [re.sub(r"[\d.]+ s$", "T", line) for line in err.splitlines() if line.startswith("round ")]
    assert lines == ["round 1/2, hangs: failed in round 1: no end within T", "round 1/2, fine: T",
                     "round 1/2, dies: failed in round 1: rank 1 ended with status 1: no memory is left", "round 1/2, ends badly: T",
                     "round 2/2, fine: T", "round 2/2, ends badly: T"]
    alive, started = living(peer)
    assert not alive and started >= 8  # of 24; what is ended early may not have got so far


def test_a_bench_that_is_stopped_ends_its_peers(peer):
    program = (f"import sys; sys.path.insert(0, {str(BENCH)!r}); import ranks, rounds; from types import SimpleNamespace as N\n"
               f"rounds.interleave({{'hangs': lambda: ranks.run_peer(N(steps=1, warmup=0, timeout=1000), {str(peer)!r}, 'hangs')}}, 1)")
    bench = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL)
    while living(peer)[1] < 2 * ranks.RANKS:
        assert bench.poll() is None
        time.sleep(0.05)
    bench.send_signal(signal.SIGTERM)
    assert bench.wait(300) == 143
    assert living(peer) == ([], 2 * ranks.RANKS)


def test_a_program_that_is_not_there_is_named():
    with pytest.raises(rounds.Failed, match=r"^no-such-program cannot be started \(No such file or directory\); "):
        rounds.run([["no-such-program"]], 1)


def test_tools_that_are_missing_are_built_or_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(rounds, "ROOT", tmp_path)
    monkeypatch.setattr(rounds, "BIN", tmp_path)
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "build.sh").write_text('[ "$2" != broken ] && touch "${@:2}"')
    (tmp_path / "ds-opt").touch()
    rounds.require_tools("ds-opt", "machine-limits")
    assert capsys.readouterr().err == "building machine-limits: bash scripts/build.sh release machine-limits\n"
    rounds.require_tools("ds-opt", "machine-limits")
    assert capsys.readouterr().err == ""
    with pytest.raises(SystemExit, match="error: broken could not be built .*scripts/install.sh"):
        rounds.require_tools("broken")


@pytest.mark.parametrize("bench", sorted(path.name for path in BENCH.glob("*.py") if "import rounds\n" in path.read_text() and "__main__" in path.read_text()))
def test_every_bench_has_a_time_out_and_says_so_without_any_module(bench):
    done = subprocess.run([sys.executable, "-S", BENCH / bench, "--help"], text=True, capture_output=True)
    assert done.returncode == 0 and "--timeout" in done.stdout, done.stderr


@pytest.mark.parametrize("bench", ["train_step.py", "memory.py", "host_update.py", "zero_ranks.py", "pipeline.py"])
def test_modules_that_are_missing_are_named(bench):
    done = subprocess.run([sys.executable, "-S", BENCH / bench], text=True, capture_output=True)
    assert done.returncode == 1 and re.match(r"error: \S+ has no numpy, .*; run the bench with build/venv/bin/python", done.stderr), done.stderr
