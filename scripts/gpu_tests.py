#!/usr/bin/env python3
"""gpu_tests.py BIN CASES: GoogleTest suites that use a GPU, gpu_cases.py, in a checkout pytest, compute-sanitizer on a tiny step; one total."""

import os
import re
import shutil
import sys
from pathlib import Path

from gpu_run import SANITIZERS, sanitizer_command, streamed

BIN, CASES = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
HERE = Path(__file__).resolve().parent
END_TO_END = HERE.parent / "test" / "e2e"  # in a checkout only


def number(pattern, text):
    found = re.findall(pattern, text)
    return int(found[-1]) if found else 0


def run(name, command, counts_of, seconds=300):
    code, text = streamed(command, seconds)
    counts = counts_of(code, text)
    print(f"{name}: {counts[0]} passed, {counts[1]} failed, {counts[2]} skipped" + ("" if code is not None else f", no end within {seconds} s"), flush=True)
    return counts


def gtest(code, text):
    failed = number(r"\[  FAILED  \] (\d+) tests?", text)
    return [number(r"\[  PASSED  \] (\d+) tests?", text), failed or int(code != 0), number(r"\[  SKIPPED \] (\d+) tests?", text)]


def cases(code, text):
    counts = [number(rf"(\d+) {word}", text) for word in ("passed", "failed", "skipped")]
    return counts if code == 0 or counts[1] else [0, 1, 0]


def sanitized(code, text):
    return [int(code == 0), int(code != 0), 0]


def pytest(code, text):
    tail = text.strip().splitlines()[-1] if text.strip() else ""
    counts = [number(rf"(\d+) {word}", tail) for word in ("passed", "failed", "skipped")]
    return counts if code == 0 or counts[1] else [counts[0], 1, counts[2]]


def main():
    results = []
    os.environ["DS_TEST_GPU"] = "1"  # CommunicatorConformanceTest: ranks are on GPUs
    for binary in sorted([*BIN.glob("*ConformanceTest"), *BIN.glob("*Cuda*Test")]):
        results.append(run(binary.name, [binary, "--gtest_filter=-Backends/*"], gtest))
    results.append(run("cases", [sys.executable, HERE / "gpu_cases.py", "run", CASES, "--bin", BIN], cases))
    if END_TO_END.is_dir():
        os.environ.update(DS_TEST_DEVICE="cuda", DS_BUILD_DIR=str(HERE.parent / "build" / "dev"))
        files = [END_TO_END / f"test_{name}.py" for name in ("parity", "zero", "pipeline", "recompute")]
        results.append(run("pytest", [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files], pytest, 3600))
    for tool in SANITIZERS:
        if shutil.which("compute-sanitizer"):
            results.append(run(tool, sanitizer_command(tool, BIN, CASES), sanitized))
        else:
            print(f"{tool}: skipped, compute-sanitizer is not there")
            results.append([0, 0, 1])
    totals = [sum(column) for column in zip(*results)]
    print("{} passed, {} failed, {} skipped".format(*totals))
    sys.exit(1 if totals[1] else 0)


if __name__ == "__main__":
    main()
