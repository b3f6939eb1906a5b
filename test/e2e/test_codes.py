"""Kernels that a plan for GPUs carries as PTX: the checker runs each and refuses one that computes something else."""

import os
import random
import re
from itertools import combinations

import pytest
from conftest import REPOSITORY, write_config
from plan_files import read_plan, write_plan

EDITS = 500 if os.environ.get("DS_TEST_SCOPE") == "all" else 60
# What an instruction is exchanged for. Each pair computes something else on almost all numbers.
OTHERS = {"add.rn.f32": "sub.rn.f32", "sub.rn.f32": "add.rn.f32", "mul.rn.f32": "add.rn.f32", "div.rn.f32": "mul.rn.f32",
          "mul.wide.u32": None, "setp.gt.f32": None}


@pytest.fixture(scope="module")
def plan(tools, tmp_path_factory):
    folder = tmp_path_factory.mktemp("codes")
    config = write_config(folder / "config.json", 2, bf16={"enabled": True}, gradient_clipping=1.0)
    tools("ds-opt", "compile", REPOSITORY / "test/e2e/hazards/good-gpt2", "--config", config, "--machine", "h100x8",
          "--without", "ds-fuse-gelu", "-o", folder / "plan.dsplan")  # a long text
    return folder / "plan.dsplan"


def refusal(tools, plan, folder, edit):
    broken = read_plan(plan)
    edit(broken)
    return tools.refused("ds-opt", "verify", write_plan(folder / "broken.dsplan", broken))


def rewritten(pattern, to, which=0):
    """Replaces the first match in the first text that has one."""
    def edit(broken):
        for code in broken.codes[which:]:
            text, count = re.subn(pattern, to, code.text, count=1)
            if count:
                code.text = text
                return
        raise AssertionError(f"no text has {pattern}")
    return edit


def test_they_are_there_and_proven(plan, tools):
    read = read_plan(plan)
    used = {command.kernel.code for routine in read.roles[0].routines for command in routine.commands if command.kernel.HasField("code")}
    assert used == set(range(len(read.codes))) and len(used) > 3
    tools("ds-opt", "verify", plan)


FORMS = {
    "another entry": (rewritten(r"\.entry (\w+)\(", r".entry other_\1("), "its PTX does not have it as its one entry"),
    "bits of a GPU": (rewritten(r"div\.rn\.f32", "div.full.f32"), "its bits depend on the GPU: it uses div.full.f32"),
    "a fused product": (rewritten(r"mul\.rn\.f32", "mul.f32"), "mul.f32 has no rounding, so ptxas may fuse it"),
    "a newer GPU": (rewritten(r"\.target sm_\d+", ".target sm_120"), "it is for sm_120, but the plan for sm_90"),
    "an instruction of no kind": (rewritten(r"mul\.rn\.f32", "frobnicate"), "frobnicate"),
    "the wrong register": (rewritten(r"(ld\.param\.b64 \t%rd\d+, \[\w+_param_)0\]", r"\g<1>1]"), "leaves operand 1"),
}


@pytest.mark.parametrize("what", FORMS)
def test_another_form_is_refused(what, plan, tools, tmp_path):
    edit, why = FORMS[what]
    assert why in refusal(tools, plan, tmp_path, edit)


def test_another_grid_is_refused(plan, tools, tmp_path):
    def fewer(broken):
        code = next(code for code in broken.codes if code.blocks > 1)
        code.blocks -= 1
    assert "the elements that its blocks write are not those of their places in the grid" in refusal(tools, plan, tmp_path, fewer)


def test_a_read_behind_a_write_is_refused(plan, tools, tmp_path):
    """It would read a result where that is the memory of an input."""
    def read_again(broken):
        code = broken.codes[0]
        lines = code.text.split("\n")
        load = next(line for line in lines if "ld.global" in line)
        store = next(i for i, line in enumerate(lines) if "st.global" in line)
        code.text = "\n".join(lines[:store + 1] + [load] + lines[store + 1:])
    assert "reads after its thread has written, and a result may be the memory of an input" in refusal(tools, plan, tmp_path, read_again)


def test_another_kernel_of_the_plan_is_refused(plan, tools, tmp_path):
    def exchange(broken):
        kernels = [command.kernel for routine in broken.roles[0].routines for command in routine.commands if command.kernel.HasField("code")]
        one, other = next((one, other) for one, other in combinations(kernels, 2)
                          if one.code != other.code and len(one.operands) == len(other.operands))
        one.code = other.code
    assert "code" in refusal(tools, plan, tmp_path, exchange)


def edited(text, generator):
    """One instruction of arithmetic is another one, or one constant another number."""
    places = [(match, OTHERS[match[0]]) for match in re.finditer(r"\b[a-z]+\.rn\.f32", text) if OTHERS.get(match[0])]
    places += [(match, f"0f{int(match[1], 16) ^ 1 << generator.randrange(20, 31):08X}") for match in re.finditer(r"0f([0-9A-F]{8})", text)]
    if not places:
        return None
    match, other = generator.choice(places)
    return text[:match.start()] + other + text[match.end():]


def test_other_arithmetic_is_refused(plan, tools, tmp_path):
    """Any instruction and any constant, drawn. What is left moves no drawn value's bfloat16: the last terms of a polynomial, and limits
    beyond which a function is 0, 1 or infinite."""
    generator, tried, missed = random.Random(1), 0, []
    while tried < EDITS:
        broken = read_plan(plan)
        code = generator.choice(broken.codes)
        text = edited(code.text, generator)
        if text is None:
            continue
        tried += 1
        code.text = text
        if tools("ds-opt", "verify", write_plan(tmp_path / "broken.dsplan", broken), code=None).returncode == 0:
            missed.append(code.name)
    assert len(missed) <= EDITS // 10, missed
