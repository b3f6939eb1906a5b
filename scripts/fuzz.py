#!/usr/bin/env python3
"""Runs every fuzzer of build/asan for a while and writes a table of executions to build/reports/fuzz.md.

    scripts/build.sh asan sanitized-tests && scripts/fuzz.py --seconds 3600
    scripts/fuzz.py --only store_fuzzer --seconds 60

What a fuzzer finds new stays in build/fuzz/NAME and is its start the next time; an input that ends it, by a crash, a leak or 25 s without an
end, is kept as build/fuzz/NAME.crash-* and shown. Exit code 1 where there is one.
"""

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BIN = ROOT / "build" / "asan" / "bin"
FUZZERS = {  # binary: its folder in test/fuzz
    "config_fuzzer": "config", "dataset_fuzzer": "dataset", "external_data_fuzzer": "external-data", "frame_fuzzer": "frames",
    "import_fuzzer": "import", "plan_run_fuzzer": "plan-run", "PlanReaderFuzzer": "plan-reader", "SafetensorsFuzzer": "safetensors", "store_fuzzer": "store"}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=3600, help="for each fuzzer (%(default)s)")
    parser.add_argument("--only", choices=FUZZERS, action="append", help="this one; may be given again")
    return parser.parse_args()


def seeds(name):
    """The committed corpus, or what the build gathered."""
    folder = FUZZERS[name]
    return [path for path in (ROOT / "test/fuzz" / folder / "corpus", ROOT / "build/asan/test/fuzz" / folder / "seeds") if path.is_dir()]


def fuzz(name, seconds):
    found = ROOT / "build" / "fuzz" / name
    found.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    run = subprocess.run([BIN / name, f"-max_total_time={seconds}", "-timeout=25", "-print_final_stats=1", "-verbosity=1",
                          f"-artifact_prefix={found}.", found, *seeds(name)], capture_output=True, text=True, errors="replace")
    executed = re.search(r"stat::number_of_executed_units:\s*(\d+)", run.stderr)
    covered = re.findall(r"cov: (\d+)", run.stderr)
    return {"name": name, "seconds": time.monotonic() - begin, "executions": int(executed[1]) if executed else 0,
            "edges": int(covered[-1]) if covered else 0, "failed": run.returncode != 0, "log": run.stderr}


def main():
    args = parse()
    names = args.only or list(FUZZERS)
    if missing := [name for name in names if not (BIN / name).exists()]:
        sys.exit(f"{BIN / missing[0]} is not there; scripts/build.sh asan sanitized-tests makes it")
    lines = ["| fuzzer | seconds | executions | edges covered | result |", "|---|---:|---:|---:|---|"]
    print(*lines, sep="\n", flush=True)
    failed = False
    for name in names:
        result = fuzz(name, args.seconds)
        failed |= result["failed"]
        lines.append(f"| {name} | {result['seconds']:.0f} | {result['executions']:,} | {result['edges']:,} | "
                     f"{'FAILED' if result['failed'] else 'no failure'} |")
        print(lines[-1], flush=True)
        if result["failed"]:
            print(result["log"][-4000:], file=sys.stderr)
    report = ROOT / "build" / "reports" / "fuzz.md"
    report.parent.mkdir(parents=True, exist_ok=True)
    report.write_text("\n".join(lines) + "\n")
    sys.exit(failed)


if __name__ == "__main__":
    main()
