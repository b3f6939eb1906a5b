"""`ds-run --tune PLAN`: which of cuBLASLt's algorithms the products of a plan run, over its stand-in, which has three (test/shim/FakeCublasLt.cpp)."""

import json
import os
import re
import shutil
import subprocess

import pytest
from plan_files import read_plan, write_plan
from test_fake_cuda import CUTS, DS_RUN, WHOLE, runs, trainer  # noqa: F401 - fixtures

BF16 = ("--set", "bf16.enabled=true")
HERE = "a processor in place of a GPU"


def ds_run(*arguments, **environment):
    return subprocess.run([DS_RUN, *arguments], capture_output=True, text=True, timeout=300, env={**os.environ, **environment})


class Tuned:
    def __init__(self, plan):
        self.before, self.after = plan, plan.with_suffix(".tuned.dsplan")  # beside the model, whose weights it names
        shutil.copy(plan, self.after)
        self.said = ds_run("--tune", self.after)
        assert self.said.returncode == 0, self.said.stderr


@pytest.fixture(scope="module")
def tuned(runs):  # noqa: F811
    return Tuned(runs.plan("gpt2", WHOLE, "h100x8", *BF16))


def products(plan):
    """Commands of all routines."""
    return [command.kernel for role in plan.roles for routine in role.routines for command in routine.commands
            if command.kernel.kernel in ("matmul", "linear_weight_grad")]


def test_each_product_is_told(tuned):
    *lines, last = tuned.said.stdout.splitlines()
    pattern = r"(matmul|linear_weight_grad) of \[[\d, ]+\] and \[[\d, ]+\], (bfloat16|float32), (\d+) commands?: [\d.]+ ms, by (.*); tried 3, of which 2 give its bits, and one of other bits takes [\d.]+"
    found = [re.fullmatch(pattern, line) for line in lines]
    assert found and all(found), tuned.said.stdout
    assert sum(int(match[3]) for match in found) == len(products(read_plan(tuned.after)))
    another = sum(match[4].startswith("another algorithm") for match in found)
    assert 0 < another < len(found)
    assert re.fullmatch(rf"{tuned.after}: {another} of {len(found)} products run another algorithm where the GPU is {HERE} and cuBLASLt is 13\.1\.0: "
                        r"[\d.]+ ms for each command once, before [\d.]+", last)
    assert tuned.said.stderr == f"note: a certificate that was made of it is of the plan as it was; ds-opt verify {tuned.after} --certificate OUT makes another\n"


def test_the_plan_says_what_was_found(tuned, tools):
    before, after = read_plan(tuned.before), read_plan(tuned.after)
    assert (after.tuning.gpu, after.tuning.cublaslt) == (HERE, 130100)
    assert {algorithm[0] for algorithm in after.tuning.algorithms} == {1}  # the second, which gives the same bits
    named = [kernel.HasField("algorithm") for kernel in products(after)]
    assert any(named) and not all(named)
    assert re.search(rf"tuned +algorithms of {sum(named)} products, on {HERE} with cuBLASLt 130100", tools("ds-opt", "report", tuned.after).stdout)
    assert re.search(rf"tuned products +none +{sum(named)} on {HERE}", tools("ds-opt", "diff", tuned.before, tuned.after).stdout)
    after.ClearField("tuning")
    for kernel in products(after):
        kernel.ClearField("algorithm")
    assert after == before  # and nothing else


def test_it_is_proved_like_any_other(tuned, tools):
    said = json.loads(tools("ds-opt", "verify", tuned.after, "--format", "json").stdout)
    assert said["verdict"] == "proven" and said["unknown"] == {"commands": 0, "bytes": 0}


def test_tuning_again_gives_the_same_bytes(tuned, tmp_path):
    again = shutil.copy(tuned.after, tmp_path / "again.dsplan")
    said = ds_run("--tune", again)
    assert (said.returncode, said.stderr) == (0, "")
    assert again.read_bytes() == tuned.after.read_bytes()


def test_bits_are_kept(tuned, runs):  # noqa: F811
    code, losses, weights, stderr = runs.launch(tuned.after, "gpt2")
    assert code == 0, stderr
    assert (losses, weights) == runs.on_cuda("gpt2", WHOLE, *BF16)[:2]
    assert "tuned" not in stderr


def test_the_plans_algorithms_are_those_that_run(tuned, runs):  # noqa: F811
    """The third adds up from the other end, so it cannot give the same bits everywhere."""
    plan = read_plan(tuned.after)
    assert len(plan.tuning.algorithms) == 1
    plan.tuning.algorithms[0] = bytes([2]) + plan.tuning.algorithms[0][1:]
    code, losses, weights, stderr = runs.launch(write_plan(tuned.after.with_suffix(".backwards.dsplan"), plan), "gpt2")
    assert code == 0, stderr
    expected = runs.on_cuda("gpt2", WHOLE, *BF16)
    assert weights != expected[1] and losses == pytest.approx(expected[0], rel=2e-3)


def test_another_cublaslt_chooses_for_itself(tuned, runs):  # noqa: F811
    code, losses, weights, stderr = runs.launch(tuned.after, "gpt2", DS_FAKE_CUBLASLT_VERSION="130201")
    assert code == 0, stderr
    assert (losses, weights) == runs.on_cuda("gpt2", WHOLE, *BF16)[:2]
    notes = [line for line in stderr.splitlines() if "tuned" in line]
    assert notes == [f"note: the plan was tuned on {HERE} with cuBLASLt 13.1.0, and here is {HERE} with cuBLASLt 13.2.1: cuBLASLt chooses its algorithms by "
                     "itself; ds-run --tune PLAN tunes the plan for this machine"]


@pytest.mark.parametrize("cut", ["zero3", "pipe"])
def test_all_ranks_are_tuned_by_one_gpu(cut, runs):  # noqa: F811
    found = Tuned(runs.plan("gpt2", CUTS[cut], "h100x8"))
    plan = read_plan(found.after)
    assert all(any(command.kernel.HasField("algorithm") for routine in role.routines for command in routine.commands) for role in plan.roles)
    code, losses, weights, stderr = runs.launch(found.after, "gpt2")
    assert code == 0, stderr
    assert (losses, weights) == runs.on_cuda("gpt2", CUTS[cut])[:2]


def refused(*arguments, code=1, **environment):
    said = ds_run(*arguments, **environment)
    assert said.returncode == code and said.stdout == "", said
    return said.stderr.removeprefix("error: ").strip()


def test_what_cannot_be_tuned(tuned, runs, tmp_path):  # noqa: F811
    on_cpu = runs.plan("gpt2", WHOLE, "cpu")
    assert refused("--tune", on_cpu) == f"{on_cpu} is for device cpu, and --tune chooses among the algorithms of cuBLASLt, which only plans for device cuda call"
    assert "--data makes no sense with --tune, which takes a plan and trains nothing" in refused("--tune", tuned.after, "--data", "x", code=2)
    assert refused("--tune", code=2).startswith("no plan was given")
    copy = shutil.copy(tuned.before, tmp_path / "copy.dsplan")
    assert refused("--tune", copy, DS_FAKE_CUDA_GPUS="0").startswith("--tune times products on a GPU: ")
    assert copy.read_bytes() == tuned.before.read_bytes()
