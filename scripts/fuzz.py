#!/usr/bin/env python3
"""Runs every fuzzer of build/asan for a while and writes a table of executions to build/reports/fuzz.md.

    scripts/build.sh asan sanitized-tests && scripts/fuzz.py --seconds 3600
    scripts/fuzz.py --only store_fuzzer --seconds 600 --record

--record adds what was run to the table of docs/fuzzing.md, so that an hour may come in pieces; beside other work, a fuzzer gets less of
the processor than the clock says. What a fuzzer finds new stays in build/fuzz/NAME and is its start the next time; an input that ends it, by a crash, a leak or 100 s without an end, is kept as
build/fuzz/NAME.crash-* and shown. Exit code 1 where there is one. The last line is the total.
"""

import argparse
import re
import resource
import subprocess
import sys
import time
from dataclasses import astuple, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BIN = ROOT / "build" / "asan" / "bin"
PAGE = ROOT / "docs" / "fuzzing.md"
REPORT = ROOT / "build" / "reports" / "fuzz.md"
BEGIN, END = "<!-- the table begins -->\n", "<!-- the table ends -->\n"
FUZZERS = {  # binary: its folder in test/fuzz
    "config_fuzzer": "config", "dataset_fuzzer": "dataset", "external_data_fuzzer": "external-data", "frame_fuzzer": "frames",
    "import_fuzzer": "import", "plan_run_fuzzer": "plan-run", "ptx_fuzzer": "ptx", "PlanReaderFuzzer": "plan-reader",
    "SafetensorsFuzzer": "safetensors", "store_fuzzer": "store"}


@dataclass
class Row:
    """Of one fuzzer, over one run or over all."""

    seconds: int = 0
    processor: int = 0  # seconds of it; a fuzzer of sockets mostly waits
    executions: int = 0
    edges: int = 0  # covered by the last run
    ended: int = 0  # inputs that ended it

    def plus(self, run):
        return Row(self.seconds + run.seconds, self.processor + run.processor, self.executions + run.executions, run.edges, self.ended + run.ended)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=3600, help="for each fuzzer (%(default)s)")
    parser.add_argument("--only", choices=FUZZERS, action="append", help="this one; may be given again")
    parser.add_argument("--record", action="store_true", help="add to the table of docs/fuzzing.md")
    return parser.parse_args()


def seeds(name):
    """The committed corpus, or what the build gathered."""
    folder = FUZZERS[name]
    return [path for path in (ROOT / "test/fuzz" / folder / "corpus", ROOT / "build/asan/test/fuzz" / folder / "seeds") if path.is_dir()]


def processor_seconds():
    """Of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def fuzz(name, seconds):
    """(row, what it printed)."""
    found = ROOT / "build" / "fuzz" / name
    found.mkdir(parents=True, exist_ok=True)
    begin, used = time.monotonic(), processor_seconds()
    run = subprocess.run([BIN / name, f"-max_total_time={seconds}", "-timeout=100", "-max_len=16384", "-print_final_stats=1", "-verbosity=1",
                          f"-artifact_prefix={found}.", found, *seeds(name)], capture_output=True, text=True, errors="replace")
    executed = re.search(r"stat::number_of_executed_units:\s*(\d+)", run.stderr)
    covered = re.findall(r"cov: (\d+)", run.stderr)
    return Row(round(time.monotonic() - begin), round(processor_seconds() - used), int(executed[1]) if executed else 0, int(covered[-1]) if covered else 0,
               int(run.returncode != 0)), run.stderr


def table(rows):
    head = "| fuzzer | seconds | of the processor | executions | edges covered | inputs that ended it |\n|---|---:|---:|---:|---:|---:|\n"
    return head + "".join(f"| {name} | {' | '.join(f'{value:,}' for value in astuple(row))} |\n" for name, row in rows.items())


def read_table(text):
    lines = re.findall(r"^\| (\w+) " + r"\| ([\d,]+) " * 5 + r"\|$", text, re.MULTILINE)
    return {name: Row(*(int(value.replace(",", "")) for value in values)) for name, *values in lines}


def record(name, run):
    """Adds a run to the page's table, which keeps the order of FUZZERS."""
    before, begin, rest = PAGE.read_text().partition(BEGIN)
    old, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"{PAGE} has no table between {BEGIN.strip()} and {END.strip()}")
    rows = read_table(old)
    rows[name] = rows.get(name, Row()).plus(run)
    PAGE.write_text(before + begin + table({name: rows[name] for name in FUZZERS if name in rows}) + end + after)


def main():
    args = parse()
    names = args.only or list(FUZZERS)
    if missing := [name for name in names if not (BIN / name).exists()]:
        sys.exit(f"{BIN / missing[0]} is not there; scripts/build.sh asan sanitized-tests makes it")
    rows = {}
    for name in names:
        rows[name], log = fuzz(name, args.seconds)
        print(table({name: rows[name]}).splitlines()[-1], flush=True)
        if args.record:
            record(name, rows[name])
        if rows[name].ended:
            print(log[-4000:], file=sys.stderr)
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text(table(rows))
    ended = sum(row.ended for row in rows.values())
    print(f"{len(rows)} fuzzers: {sum(row.executions for row in rows.values()):,} executions in {sum(row.seconds for row in rows.values()):,} s, "
          f"{ended} ended by an input")
    sys.exit(ended > 0)


if __name__ == "__main__":
    main()
