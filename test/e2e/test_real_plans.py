"""Plans for a GPU at the sizes of docs/cuda-plans.md: each call of a kernel is made over the stand-ins for NVIDIA's libraries, which give
no algorithm and no engine where NVIDIA's pages give none. DS_CUDA_STRICT=1 makes a kernel of our own in a library's place an error.
A step of GPT-2 124M stays within the limits that docs/cuda-plans.md states."""

import json
import os
import subprocess
import sys

import pytest
from conftest import BUILD, REPOSITORY

sys.path.append(str(REPOSITORY / "bench"))
from cuda_plans import AIMS, CASES, configuration, figures  # noqa: E402

TOOL = BUILD / "bin" / "fake-plan-kernels"


def made(plan, **environment):
    return subprocess.run([TOOL, plan], capture_output=True, text=True, env={**os.environ, "DS_CUDA_STRICT": "1", **environment})


@pytest.fixture(scope="session")
def real_plan(tools, exported, tmp_path_factory):
    def compiled(machine, name, size, sequence, samples, ranks, stage, recompute):
        folder = tmp_path_factory.mktemp("real")
        (folder / "config.json").write_text(json.dumps(configuration(samples, stage, recompute)))
        model = exported(name, "--size", size, "--seq", sequence, "--no-weights")
        tools("ds-opt", "compile", model, "--config", folder / "config.json", "--ranks", ranks, "--machine", machine, "--quiet",
              "-o", folder / "plan.dsplan")
        return folder / "plan.dsplan"
    return compiled


assert AIMS.keys() <= {title for title, *_ in CASES}
PLANS = [(machine, case) for machine in ("h100x8", "h200x1") for case in CASES if case[5] == 1 or machine == "h100x8"]


@pytest.mark.parametrize("machine, case", PLANS, ids=[f"{machine}-{case[1]}-{case[2]}" for machine, case in PLANS])
def test_libraries_take_each_call(machine, case, real_plan, tools):
    plan = real_plan(machine, *case[1:])
    done = made(plan)
    assert done.returncode == 0, done.stderr
    kernels = {line.split()[0] for line in done.stdout.splitlines()}
    assert {"matmul", "adamw", "elementwise"} <= kernels and any("attention_grad" in kernel for kernel in kernels), kernels
    if case[0] in AIMS:
        found = figures(json.loads(tools("ds-opt", "report", plan, "--format", "json").stdout)["ranks_detail"][0]["commands_of_step"])
        assert all(0 < value <= aim for value, aim in zip(found, AIMS[case[0]], strict=True)), f"{found}: commands, bytes, seconds"


def test_a_library_that_refuses_is_told(real_plan):
    done = made(real_plan("h100x8", *CASES[0][1:]), DS_FAKE_CUDNN="0")
    assert done.returncode == 1 and "cuDNN" in done.stderr, done.stderr
