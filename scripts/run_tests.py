#!/usr/bin/env python3
"""Runs the tests of all builds one after another, prints what failed, and ends with `N passed, N failed, N skipped`.

    scripts/run_tests.py            everything that scripts/test.sh has built
    scripts/run_tests.py release    end-to-end tests with build/release's ds-opt and ds-run, which are built without assertions

GoogleTest binaries and replayed fuzz corpora come from ctest's list, lit and pytest are run as one command each; every
runner's own totals are added up, so that a skipped test is counted as skipped.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHON = ROOT / "build" / "venv" / "bin"
RELEASE = ROOT / "build" / "release" / "bin"
# What a user meets: what is computed, what is refused, how a run ends, what is written. The rest looks at programs within the compiler.
OF_USERS = ("arena", "attention", "bad_models", "bf16", "fp16", "check_diff", "command_line", "determinism", "dropout", "ending", "export",
            "full_disk", "hugging_face", "io_faults", "memory", "package", "parity", "parity_images", "pipeline", "recompute", "signals",
            "torchscript", "training_options", "user_modules", "weight_files", "zero", "zero_mpi", "zoo")
# One compute worker by default under the sanitizers: they multiply time and memory.
SANITIZER_ENVIRONMENT = {
    "asan": {"ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1", "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
             "OMP_NUM_THREADS": "1"},
    "tsan": {"TSAN_OPTIONS": "halt_on_error=1", "OMP_NUM_THREADS": "1"},
    "dev": {},
    "cuda": {},
    "hopper": {},
}
NOTHING_TO_TEST = 77  # the exit code, e.g. without a GPU
COMPLAINT = re.compile(r": Failure$|Sanitizer|runtime error:|^E  |^FAILED|FAIL:|\[  FAILED  \]")


class Totals:
    """passed, failed, skipped; and of each step that failed its name and why."""

    def __init__(self):
        self.counts = [0, 0, 0]
        self.broken = {}

    def add(self, name, counts, seconds, output):
        self.counts = [a + b for a, b in zip(self.counts, counts)]
        print(f"{name}: {counts[0]} passed, {counts[1]} failed, {counts[2]} skipped ({seconds:.0f} s)", flush=True)
        if counts[1]:
            self.broken[name] = first_complaint(output)
            print(output[-6000:], flush=True)


def run(arguments, **environment):
    begin = time.monotonic()
    done = subprocess.run([str(a) for a in arguments], cwd=ROOT, env={**os.environ, **environment}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace")
    return done.returncode, done.stdout, time.monotonic() - begin


def first_complaint(output):
    """The lines of a runner's output from where it first says that something is wrong, which its last lines often do not say."""
    lines = output.splitlines()
    first = next((i for i, line in enumerate(lines) if COMPLAINT.search(line)), max(0, len(lines) - 12))
    return "\n".join("    " + line[:200] for line in lines[first:first + 12])


def number(pattern, text):
    found = re.findall(pattern, text)
    return int(found[-1]) if found else 0


def gtest_counts(code, output):
    """Totals of a GoogleTest binary; anything else, such as a replayed corpus, is one test."""
    if "[==========]" not in output:
        return [0, 0, 1] if code == NOTHING_TO_TEST else [int(code == 0), int(code != 0), 0]
    failed = number(r"\[  FAILED  \] (\d+) tests?", output)
    if code != 0 and failed == 0:
        failed = 1  # it died before it could count
    return [number(r"\[  PASSED  \] (\d+) tests?", output), failed, number(r"\[  SKIPPED \] (\d+) tests?", output)]


def labels_of(test):
    """Those of test/CMakeLists.txt."""
    return next((entry["value"] for entry in test.get("properties", []) if entry["name"] == "LABELS"), [])


def is_left_out(preset, labels):
    """Whether the preset's build does not make this test: scripts/test.sh names what it does."""
    return "cuda" not in labels if preset in ("cuda", "hopper") else preset != "dev" and not {"not-sanitized", "one-thread"}.isdisjoint(labels)


def instruction_sets():
    """Caps below what this processor has, as `DS_CPU_ISA` takes them."""
    _, output, _ = run([ROOT / "build" / "dev" / "bin" / "ds-run", "info"])
    widest = re.search(r"kernels use (\S+)", output)
    known = ["baseline", "avx2", "avx512", "avx512_bf16", "amx"]
    return known[:known.index(widest.group(1))] if widest and widest.group(1) in known else []


def environments(preset, name):
    """Kernels are tested once for every instruction set that the processor has."""
    plain = SANITIZER_ENVIRONMENT[preset]
    caps = instruction_sets() if preset == "dev" and name == "KernelsTest" else []
    return [plain, *({**plain, "DS_CPU_ISA": cap} for cap in caps)]


def run_binaries(preset, totals):
    build = ROOT / "build" / preset
    code, output, _ = run(["ctest", "--test-dir", build, "--show-only=json-v1"])
    tests = json.loads(output[output.index("{"):])["tests"] if code == 0 else []
    if not tests:
        totals.add(f"{preset} has no tests", [0, 1, 0], 0, output)
    pool, runs = ThreadPoolExecutor(max_workers=2), []  # most binaries keep one core busy
    for test in tests:
        command = test.get("command", [])
        missing = [word for word in (command[0], command[-1]) if word.startswith("/") and not Path(word).exists()] if command else [test["name"]]
        if missing and is_left_out(preset, labels_of(test)):
            continue
        if missing:
            totals.add(f"{preset}/{test['name']} is not there, {missing[0]} was not built", [0, 1, 0], 0, "")
            continue
        for environment in environments(preset, test["name"]):
            name = " ".join([f"{preset}/{test['name']}", *(f"DS_CPU_ISA={value}" for key, value in environment.items() if key == "DS_CPU_ISA")])
            runs.append((name, pool.submit(run, command, **environment)))
    for name, done in runs:  # in the list's order, whichever ends first
        code, output, seconds = done.result()
        totals.add(name, gtest_counts(code, output), seconds, output)
    pool.shutdown()


def run_lit(totals):
    build = ROOT / "build" / "dev"
    code, output, seconds = run([PYTHON / "lit", "-j2", "test/lit"], DS_BUILD_DIR=str(build))
    failed = number(r"Failed\s*:\s*(\d+)", output) + number(r"Unresolved\s*:\s*(\d+)", output)
    counts = [number(r"Passed\s*:\s*(\d+)", output), failed or int(code != 0), number(r"Unsupported\s*:\s*(\d+)", output)]
    totals.add("lit", counts, seconds, output)


def print_slowest(output):
    """pytest's list, so that a run that takes too long says where."""
    lines = output.splitlines()
    begin = next((i for i, line in enumerate(lines) if re.match("=+ slowest ", line)), len(lines))
    print("\n".join(line for line in lines[begin + 1:begin + 41] if re.match(r"\d+\.\d+s ", line)), flush=True)


def run_showing(arguments, **environment):
    """As run(), but about once a minute it prints how far pytest is: a run that is ended from outside says where."""
    begin = said = time.monotonic()
    lines = []
    with subprocess.Popen([str(a) for a in arguments], cwd=ROOT, env={**os.environ, **environment}, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, errors="replace") as process:
        for line in process.stdout:
            lines.append(line)
            now, share = time.monotonic(), re.search(r"\[ *(\d+%)\]$", line.rstrip())
            if share and now - said >= 60:
                said = now
                print(f"pytest: {share[1]} after {now - begin:.0f} s", flush=True)
    return process.returncode, "".join(lines), time.monotonic() - begin


def run_pytest(totals, name, files, **environment):
    build = ROOT / "build" / "dev"
    code, output, seconds = run_showing([PYTHON / "python", "-m", "pytest", "-q", "-rfs", "-p", "no:cacheprovider",
                                         "--durations=40", "-n2", "--dist=loadfile", *files],
                                        DS_BUILD_DIR=str(build), **environment)
    tail = output.strip().splitlines()[-1] if output.strip() else ""
    print_slowest(output)
    failed = number(r"(\d+) failed", tail) + number(r"(\d+) errors?", tail)
    totals.add(name, [number(r"(\d+) passed", tail), failed or int(code != 0), number(r"(\d+) skipped", tail)], seconds,
               output)


def collected(scope):
    """{file: number of end-to-end tests} that `make test` (subset) or `make test-all` (all) runs."""
    _, output, _ = run([PYTHON / "python", "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", "test/e2e"],
                       DS_BUILD_DIR=str(ROOT / "build" / "dev"), DS_TEST_SCOPE=scope)
    return Counter(line.partition("::")[0] for line in output.splitlines() if "::" in line)


def say_what_is_left():
    """Some tests draw more within themselves, too, which no list shows."""
    subset, whole = collected("subset"), collected("all")
    left = [f"{Path(file).name} {whole[file] - subset[file]}" for file in sorted(whole) if whole[file] > subset[file]]
    print(f"left to make test-all: {sum((whole - subset).values())} of {sum(whole.values())} end-to-end tests ({', '.join(left)}), "
          "larger draws in others; make nightly runs all")


def run_release(totals):
    """Helpers of the tests, such as what makes a call fail, are still build/dev's."""
    missing = [str(tool) for tool in (RELEASE / "ds-opt", RELEASE / "ds-run", ROOT / "build/dev/bin/inject_fault") if not tool.exists()]
    if missing:
        totals.add(f"{missing[0]} is not there", [0, 1, 0], 0, "")
        return
    run_pytest(totals, "release/pytest", [f"test/e2e/test_{name}.py" for name in OF_USERS], DS_BINARIES=str(RELEASE))


def run_everything(totals):
    for preset in ("dev", "asan", "tsan"):
        run_binaries(preset, totals)
    cuda = os.environ.get("DS_TEST_CUDA", "no")  # or the preset
    if cuda != "no":
        run_binaries(cuda, totals)
    else:
        totals.add("cuda skipped, nvcc is neither on PATH nor in /usr/local/cuda", [0, 0, 1], 0, "")
    run_lit(totals)
    run_pytest(totals, "pytest", ["test/e2e"])
    if os.environ.get("DS_TEST_SCOPE") != "all":
        say_what_is_left()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", choices=["release"])
    totals = Totals()
    if parser.parse_args().build == "release":
        run_release(totals)
    else:
        run_everything(totals)
    for name, why in totals.broken.items():
        print(f"failed: {name}\n{why}")
    print("{} passed, {} failed, {} skipped".format(*totals.counts))
    sys.exit(1 if totals.counts[1] else 0)


if __name__ == "__main__":
    main()
