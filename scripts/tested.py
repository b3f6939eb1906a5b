#!/usr/bin/env python3
"""Writes docs/tested.md, "How DeepStatic is tested": counts taken from what runs, not typed.

    scripts/tested.py --write      counts and writes the page's table
    scripts/tested.py --check      refuses a page whose counts are off by more than a tenth

The tools and tests of DS_BUILD_DIR (default build/dev) are counted.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
BUILD = Path(os.environ.get("DS_BUILD_DIR", REPOSITORY / "build" / "dev"))
PAGE = REPOSITORY / "docs" / "tested.md"
BEGIN, END = "<!-- written by scripts/tested.py --write -->\n", "<!-- end -->"


def output(*command, **environment):
    return subprocess.run([str(word) for word in command], cwd=REPOSITORY, env={**os.environ, **environment},
                          capture_output=True, text=True, check=True).stdout


def end_to_end(scope):
    text = output(sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "test/e2e",
                  DS_TEST_SCOPE=scope, DS_BUILD_DIR=str(BUILD))
    return int(re.findall(r"(\d+)(?:/\d+)? tests? collected", text)[-1])


def unit_tests():
    """(GoogleTest cases, fuzzers whose corpus is replayed)"""
    tests = json.loads(output("ctest", "--test-dir", BUILD, "--show-only=json-v1"))["tests"]
    cases = fuzzers = 0
    for test in tests:
        command = test.get("command", [""])
        if not Path(command[0]).exists():
            continue
        if "corpus" in " ".join(command):
            fuzzers += 1
        elif Path(command[0]).name.lower().endswith("test") or Path(command[0]).name.endswith("_test"):
            listed = output(command[0], "--gtest_list_tests")
            cases += sum(line.startswith("  ") for line in listed.splitlines())
    return cases, fuzzers


def files(pattern):
    return len([path for path in REPOSITORY.glob(pattern) if path.is_file()])


def rows_of(page, first_column):
    """Rows of the page's tables whose first column matches."""
    lines = (REPOSITORY / "docs" / page).read_text().splitlines()
    return [line.split("|")[1:-1] for line in lines if re.match(rf"\| {first_column} \|", line)]


def conformance():
    text = (REPOSITORY / "test/conformance/onnx/expected.txt").read_text()
    counts = [(int(count), word) for count, word in re.findall(r"^(\d+) \S+ (\w+)", text, re.MULTILINE)]
    return sum(count for count, word in counts if word == "passed"), sum(count for count, _ in counts)


def counts():
    """(what, count, where)"""
    cases, _ = unit_tests()
    passed, all_cases = conformance()
    faults = sum(int(row[2]) for row in rows_of("faults.md", r"\w+") if row[2].strip().isdigit())
    return [
        ("GoogleTest cases; under ASan with UBSan and under TSan, too, but for the compiler's passes", cases, "`test/unit`"),
        ("lit tests of passes, dialects and pipelines", files("test/lit/**/*.mlir") + files("test/lit/**/*.textproto"), "`test/lit`"),
        ("end-to-end tests in `make test`", end_to_end("subset"), "`test/e2e`"),
        ("end-to-end tests in `make test-all`", end_to_end("all"), "`test/e2e`"),
        ("ONNX conformance cases that pass", passed, "`test/conformance/onnx`"),
        ("ONNX conformance cases", all_cases, "`test/conformance/onnx`"),
        ("ways to break a plan on purpose", len(rows_of("mutations.md", r"`[a-z0-9-]+`")), "[mutations.md](mutations.md)"),
        ("simulated seeds in `make soak`", 100000, "[simulation.md](simulation.md)"),
        ("models and configurations drawn in `make soak`", 50000, "[drawn.md](drawn.md)"),
        ("defects of the runtime planted in the simulation", len(rows_of("simulation.md", r"`[a-z-]+`")) - 1, "[simulation.md](simulation.md)"),
        ("I/O faults tried, each call and error once", faults, "[faults.md](faults.md)"),
        ("hangs planted for the postmortem", int(rows_of("postmortem.md", "all")[-1][3]), "[postmortem.md](postmortem.md)"),
        ("fuzz inputs that every build replays", files("test/fuzz/*/corpus/*"), "`test/fuzz`"),
    ]


def table(rows):
    lines = ["| what | count | where |", "|---|---|---|"]
    return "\n".join(lines + [f"| {what} | {count:,} | {where} |" for what, count, where in rows]) + "\n"


def parts():
    head, rest = PAGE.read_text().split(BEGIN)
    return head, *rest.split(END)


def check():
    """Sentences about counts that are off."""
    written = {what.strip(): int(count.replace(",", "")) for what, count, _ in
               (line.split("|")[1:-1] for line in parts()[1].splitlines()[2:])}
    for what, count, _ in counts():
        if what not in written:
            yield f"docs/tested.md has no line for {what}; scripts/tested.py --write makes it"
        elif abs(written[what] - count) > count / 10:
            yield f"docs/tested.md says {written[what]} {what}, there are {count}; scripts/tested.py --write mends it"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true")
    action.add_argument("--check", action="store_true")
    if parser.parse_args().write:
        head, _, tail = parts()
        PAGE.write_text(head + BEGIN + table(counts()) + END + tail)
        return
    wrong = list(check())
    for line in wrong:
        print(f"error: {line}", file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
