"""scripts/gpu_cases.py, gpu_first.py and bench/gpu_step.py where there is no GPU: what they judge, with a ds-run that only pretends or one
over the fake CUDA runtime; what they refuse."""

import json
import os
import re
import shutil
import subprocess
import sys

import numpy
import pytest
from conftest import FAKE_CUDA, FOLDERS, REPOSITORY, write_config
from safetensors.numpy import save_file

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


@pytest.fixture(scope="module")
def first_plans(tools, tmp_path_factory):
    """What gpu_plans.sh makes, of a tiny model."""
    plans = tmp_path_factory.mktemp("plans")
    folder = plans / "h100"
    folder.mkdir()
    plan = folder / "small-bfloat16.dsplan"
    model = shutil.copytree(REPOSITORY / "test/e2e/hazards/good-gpt2", plans / "model")  # real plans draw their weights; this one's go with it
    config = write_config(folder / "ds_config.json", 1, 2, bf16={"enabled": True})
    tools("ds-opt", "compile", model, "--config", config, "--machine", "h100x8", "-o", plan)
    report = json.loads(tools("ds-opt", "report", plan, "--format", "json").stdout)["ranks_detail"][0]
    plan.with_suffix(".json").write_text(json.dumps({"arena_bytes": report["memory"]["device"]["arena_bytes"], "commands": report["commands_of_step"]}))
    tokens = numpy.random.default_rng(0).integers(0, 8, (64, 4), dtype=numpy.int64)
    save_file({"input_ids": tokens, "labels": tokens}, folder / "small.safetensors")
    shutil.copytree(folder, plans / "h200")
    return plans


def summary_of(told, part):
    """The line of a part."""
    return next(line for line in told.splitlines() if line.startswith(f"{part}: "))


def first(binaries, plans, out, *parts):
    """The exit code, what was said of each part, and results.jsonl."""
    done = subprocess.run([sys.executable, REPOSITORY / "scripts" / "gpu_first.py", binaries, plans, plans, "--out", out, *parts],
                          text=True, capture_output=True)
    return done.returncode, done.stdout, [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]


def test_first_contact(first_plans, tmp_path):
    code, told, results = first(FAKE_CUDA, first_plans, tmp_path, "info", "step", "profile", "strict", "tune")
    assert code == 0, told
    assert [result["part"] for result in results] == ["info", "step", "profile", "strict", "tune"]
    assert results[0]["found"].startswith("gpu 0") and "as a graph" in results[1]["found"]
    assert re.search(r"\d GiB free; .*cuBLASLt 13\.1\.0, cuDNN .*, NCCL 2\.", results[0]["found"]), results[0]["found"]
    assert "; fallbacks 0" in results[1]["found"]
    planned = {one["kernel"] for one in json.loads((first_plans / "h100" / "small-bfloat16.json").read_text())["commands"]}
    measured = {line.split()[0] for line in (tmp_path / "profile.log").read_text().split("by the model")[1].strip().splitlines()}
    assert {"matmul", "adamw"} <= measured & planned
    assert results[3]["found"] == "libraries take every kernel of small-bfloat16"
    assert "products run another algorithm where the GPU is" in results[4]["found"]


def test_first_contact_goes_on_where_a_library_refuses(first_plans, tmp_path, monkeypatch):
    monkeypatch.setenv("DS_FAKE_CUDNN", "0")
    code, told, results = first(FAKE_CUDA, first_plans, tmp_path, "step", "profile", "strict")
    assert code == 1 and ["failed" in result for result in results] == [False, False, False, True], told
    _, step, _, strict = results
    assert "DS_CUDA_STRICT" in strict["failed"]
    assert "; not strict, since ds-run ended with 1: error: " in step["found"]
    assert "fallbacks 3: 2 of kernel 'packed_attention' in bfloat16, 1 of kernel 'packed_attention_grad' in bfloat16" in step["found"]


def test_first_contact_finds_an_arena_of_other_bytes(first_plans, tmp_path):
    plans = first_plans.with_name("other-plans")  # from which the model is as far away
    shutil.copytree(first_plans, plans)
    expected = json.loads((plans / "h100" / "small-bfloat16.json").read_text())
    (plans / "h100" / "small-bfloat16.json").write_text(json.dumps({**expected, "arena_bytes": 1}))
    code, told, results = first(FAKE_CUDA, plans, tmp_path / "out", "step", "profile")
    assert code == 1 and results[1]["failed"].endswith("bytes, the plan says 1"), told
    assert "found" in results[2], "no part keeps the next from running"
