"""Every call of the system that a tool makes on its files fails once, in every way of docs/faults.md, and so does memory.

`make test` takes every error of every kind of call, for a few of its numbers; DS_TEST_SCOPE=all takes every number. The table of what was tried and
how it ended is written to build/reports/io-faults.md, and with DS_UPDATE_DOCS=1 into docs/faults.md.
"""

import dataclasses
import itertools
import os
import platform
from collections import Counter

import pytest
from conftest import REPOSITORY
from faults import ERRORS, INJECT, NO_MEMORY, SCENARIOS, TRANSPARENT, Bench, Fault, broken, sentence, write_inputs

WHOLE = os.environ.get("DS_TEST_SCOPE") == "all"
DOCS = REPOSITORY / "docs" / "faults.md"
BEGIN, END = "<!-- the table begins -->\n", "<!-- the table ends -->\n"

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="inject_fault knows the system calls of x86-64 only")


@pytest.fixture(scope="module")
def bench(tools, tmp_path_factory):
    place = tmp_path_factory.mktemp("faults")
    return Bench(write_inputs(tools, place / "in"), place)


@pytest.fixture(scope="module")
def tally():
    """(call, error) -> tried, survived, ended with a sentence; written as a table at the end."""
    counts = Counter()
    yield counts
    if counts:
        write_table(counts)


def numbers(count, most):
    """All, or the first, the last and some between."""
    if WHOLE or count <= most:
        return range(1, count + 1)
    return sorted({1 + i * (count - 1) // (most - 1) for i in range(most)})


def faults_of(counts):
    for call, count in sorted(counts.items()):
        for error in ERRORS[call]:
            for number in numbers(count, 3):
                yield Fault(call, number, error)
    for number in numbers(counts.get("write", 0), 2):
        yield Fault("write", number, "ENOSPC", later=True)


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_call_fails_once(name, bench, tally):
    scenario = SCENARIOS[name]
    whole = bench.run(scenario)
    assert whole.code == 0 and sum(whole.log["counts"].values()) > 4, whole
    problems = []
    for fault in faults_of(whole.log["counts"]):
        ending = bench.run(scenario, fault)
        if not ending.log.get("injected"):  # nothing to halve, or threads made fewer calls
            continue
        problem = broken(scenario, whole, ending, fault)
        if problem:
            problems.append(f"{fault} ({ending.log['file'].rsplit('/', 1)[-1]}): {problem}")
        kind = f"{fault.error}{', and all later calls' * fault.later}"
        tally[fault.call, kind, "tried"] += 1
        if not problem:
            tally[fault.call, kind, "survived" if ending.code == 0 else "sentence"] += 1
    assert not problems, "\n".join(problems)


def test_the_rule_is_judged():
    """A command that breaks the rule is found: the judge itself can fail."""
    from faults import Ending

    scenario = SCENARIOS["train"]
    whole = Ending(0, "", {"stdout": b"", "weights": b"w", "metrics.jsonl": b'{"step": 1}\n', "trace.json": b'{"traceEvents": []}'}, {}, 1)
    log, eio = {"file": "/x/in/data.bin"}, Fault("read", 1, "EIO")
    good = "error: in/data.bin cannot be read: Input/output error\n"
    ends = lambda code, errors, **files: broken(scenario, whole, Ending(code, errors, {**whole.files, **files}, log, 1), eio)
    none = lambda code, errors, *names: broken(scenario, whole, Ending(code, errors, {k: v for k, v in whole.files.items() if k in names}, log, 1), eio)
    assert ends(0, "") == "" and none(1, good) == ""
    assert none(0, "note: m: full\n", "stdout", "weights") == ""
    assert "missing" in none(0, "", "stdout") and "missing" in none(0, "", "stdout", "weights")
    assert "not as without" in ends(0, "", weights=b"v")
    assert "not whole" in ends(1, good, weights=b"v")
    assert "SIGBUS" in none(128 + 7, "") and "did not end" in none(None, "")
    assert "said" in none(1, "") and "said" in none(1, good + good) and "said" in none(2, good)
    assert "name" in none(1, "error: cannot be read: Input/output error\n") and "reason" in none(1, "error: data.bin is bad\n")
    assert "left" in ends(0, "", **{"weights.a1b2c3": b""})
    assert "JSON" in ends(0, "note: x\n", **{"metrics.jsonl": b'{"st'})


@pytest.mark.parametrize("name", ["import", "compile", "verify", "report", "diff", "train"])
def test_memory_that_is_not_given(name, bench, tally, tmp_path):
    """Allocation n fails, alone or with all that follow."""
    scenario = SCENARIOS[name]
    counted = tmp_path / "count"
    preload = {**os.environ, "LD_PRELOAD": str(NO_MEMORY), "DS_SPARE_CALLERS": "libMLIR:ds-opt"}
    whole = bench.run(scenario, environment={**preload, "DS_ALLOCATION_COUNT": str(counted)}, injector=False)
    assert whole.code == 0, whole
    count = int(counted.read_text())
    assert count > 100
    problems = []
    for number in numbers(count, 0) if WHOLE and count < 2000 else sorted({*spread(count, 400 if WHOLE else 12)}):
        for later in ("", "+"):
            ending = bench.run(scenario, environment={**preload, "DS_FAIL_ALLOCATION": f"{number}{later}"}, injector=False)
            problem = broken(scenario, whole, ending, None)
            if problem:
                problems.append(f"allocation {number}{later} of {count}: {problem}")
            kind = f"ENOMEM{', and all later calls' if later else ''}"
            tally["allocation", kind, "tried"] += 1
            if not problem:
                tally["allocation", kind, "survived" if ending.code == 0 else "sentence"] += 1
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("name", ["import", "compile"])
def test_address_space_that_runs_short(name, bench):
    """Step by step less of it than the command takes, down to where ds-opt does not come to its main()."""
    scenario = SCENARIOS[name]
    whole = bench.run(scenario, injector=False)

    def within(mebibytes, command=scenario.command):
        limited = ("prlimit", f"--as={round(mebibytes * 2**20)}", *command)
        return bench.run(dataclasses.replace(scenario, command=limited), injector=False)

    enough, short = 1024, 0
    while enough - short > 1:
        middle = (enough + short) // 2
        enough, short = (middle, short) if within(middle).code == 0 else (enough, middle)
    problems, sentences = [], 0
    for step in itertools.count(1):
        mebibytes = enough - step / (64 if WHOLE else 8)
        if within(mebibytes, (scenario.command[0], "--commands")).code != 0:
            break
        ending = within(mebibytes)
        problem = broken(scenario, whole, ending, None)
        sentences += ending.code == 1
        problems += [f"{mebibytes} MiB: {problem}"] if problem else []
    assert not problems and sentences > 5, "\n".join(problems)


def spread(count, most):
    """Numbers from 1 to count, the first ones closer together, as start-up allocates the most kinds of things."""
    return {max(1, min(count, round(count * (i / (most - 1)) ** 2))) for i in range(most)}


@pytest.mark.parametrize("name", ["import", "import weights by an index", "compile", "train", "train from tokens"])
def test_inputs_that_shrink(name, bench):
    """A file is cut to half at each call on the way: the same results, or a sentence; never SIGBUS."""
    scenario = SCENARIOS[name]
    whole = bench.run(scenario)
    sentences = 0
    for path in scenario.reads:
        for call in ("open", "stat", "read", "mmap"):
            for number in numbers(whole.log["counts"].get(call, 0), 6):
                ending = bench.run(scenario, Fault(call, number, "SHRINK"), shrink=path)
                if not ending.log.get("injected"):
                    continue
                problem = broken(scenario, whole, ending, None)
                assert not problem, f"{path} shrinks at {call} {number}: {problem}"
                sentences += ending.code != 0
    assert sentences > 0


def write_table(counts):
    rows = ["| call | error | tried | the same results | ended with a sentence |", "|---|---|---|---|---|"]
    for call, error in sorted({key[:2] for key in counts}):
        rows.append(f"| {call} | {error} | " + " | ".join(str(counts[call, error, what]) for what in ("tried", "survived", "sentence")) + " |")
    table = "\n".join(rows) + "\n"
    report = REPOSITORY / "build" / "reports" / "io-faults.md"
    report.parent.mkdir(parents=True, exist_ok=True)
    report.write_text(table)
    if os.environ.get("DS_UPDATE_DOCS") == "1":
        text = DOCS.read_text()
        DOCS.write_text(text[: text.index(BEGIN) + len(BEGIN)] + table + text[text.index(END) :])
