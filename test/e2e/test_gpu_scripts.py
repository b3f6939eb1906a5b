"""scripts/gpu_cases.py and bench/gpu_step.py where there is no GPU: what they judge, with a ds-run that only pretends; what they refuse."""

import json
import os
import subprocess
import sys

import pytest
from conftest import FOLDERS, REPOSITORY

# Losses of the cpu are 3, 2, 1; on "cuda" what BEHAVIOUR says is added, and BEHAVIOUR "bits" changes weights with every run.
PRETENDS = """#!/bin/sh
while [ $# -gt 0 ]; do
  case "$1" in *.cuda.dsplan) device=cuda ;; --metrics) metrics=$2 ;; --export) weights=$2 ;; esac
  shift
done
[ "$device" = cuda ] && [ "$BEHAVIOUR" = fails ] && { echo "error: GPU 0 is on fire" >&2; exit 1; }
last=1; [ "$device" = cuda ] && case "$BEHAVIOUR" in 0.*) last=1$(echo "$BEHAVIOUR" | cut -c2-) ;; esac
for loss in 3 2 $last; do echo "{\\"loss\\": $loss}"; done >"$metrics"
echo '{"summary": {"ranks": [{"device_bytes": 1024}]}}' >>"$metrics"
if [ "$BEHAVIOUR" = bits ]; then date +%N >"$weights"; else echo same >"$weights"; fi
"""


@pytest.fixture
def pretender(tmp_path):
    binary = tmp_path / "ds-run"
    binary.write_text(PRETENDS)
    binary.chmod(0o755)
    return tmp_path


def run_cases(folder, behaviour):
    script = REPOSITORY / "scripts" / "gpu_cases.py"
    names = subprocess.check_output([sys.executable, "-c", f"import sys; sys.path.insert(0, {str(script.parent)!r}); import gpu_cases; "
                                     "print(*gpu_cases.CASES)"], text=True).split()
    left_out = {name: "not yet" for name in names if name not in ("gpt2", "bf16")}
    (folder / "left_out.json").write_text(json.dumps(left_out))
    done = subprocess.run([sys.executable, script, "run", folder, "--bin", folder], text=True, capture_output=True,
                          env={**os.environ, "BEHAVIOUR": behaviour})
    lines = done.stdout.splitlines()
    assert lines[-1].endswith(f"{len(left_out)} skipped"), done.stderr
    return done.returncode, [line for line in lines if line.startswith(("passed", "FAILED"))], lines[-1].split(",")[0]


@pytest.mark.parametrize("behaviour, code, passed, says", [
    ("0", 0, 2, ""),
    ("0.00005", 0, 2, ""),
    ("0.001", 1, 1, "FAILED gpt2: loss of step 3 is 1.001, on the cpu 1"),  # near enough for bf16
    ("0.1", 1, 0, "FAILED bf16: loss of step 3 is 1.1, on the cpu 1"),
    ("bits", 1, 0, "FAILED gpt2: two runs differ in weights alone"),
    ("fails", 1, 0, "FAILED gpt2: error: GPU 0 is on fire"),
])
def test_cases_are_judged(pretender, behaviour, code, passed, says):
    returned, lines, count = run_cases(pretender, behaviour)
    assert (returned, count) == (code, f"{passed} passed")
    assert not says or says in lines


def test_the_bench_refuses_a_machine_without_a_gpu(tools, tmp_path):
    info = tools("ds-run", "info").stdout
    if "cuda           available" in info:
        pytest.skip("there is a GPU")
    done = subprocess.run([sys.executable, REPOSITORY / "bench" / "gpu_step.py", tmp_path, "--bin", FOLDERS["ds-run"]], text=True,
                          capture_output=True)
    assert done.returncode == 1 and done.stderr.startswith("error: there is nothing to measure: "), done.stderr
