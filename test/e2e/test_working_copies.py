"""The 16 bits that a step works with under ZeRO-1 and 2: defects planted into plans are refused, and ds-audit accepts the right one."""

import subprocess
import sys

import pytest
from conftest import FOLDERS, REPOSITORY, write_config
from plan_files import read_plan, write_plan


@pytest.fixture(scope="module", params=["bf16", "fp16"])
def proven(request, tools, tmp_path_factory):
    """Two ranks, two micro-batches: a fragment before them rounds slices and gathers them."""
    folder = tmp_path_factory.mktemp(request.param)
    config = write_config(folder / "c.json", 1, 2, gradient_clipping=1.0, **{request.param: {"enabled": True}},
                          zero_optimization={"stage": 1, "reduce_bucket_size": 3000})
    path = folder / "proven.dsplan"
    tools("ds-opt", "compile", REPOSITORY / "test/e2e/hazards/good-gpt2", "--config", config, "--ranks", 2, "-o", path)
    return path


def gathers(role):
    """The routine that every step calls first, its roundings and its collectives."""
    routine = next(routine for routine in role.routines if routine.name.startswith("gather"))
    return (routine, [command for command in routine.commands if command.HasField("kernel")],
            [command for command in routine.commands if command.HasField("collective")])


def step(role):
    return next(program for program in role.programs if program.name == "step")


def a_stale_copy(role):
    """The step works with what the one before it has gathered."""
    program, routine = step(role), list(role.routines).index(gathers(role)[0])
    call = next(call for call in program.calls if call.routine == routine)
    program.calls.remove(call)
    program.calls.append(call)


def a_slice_that_is_not_rounded_anew(role):
    """Another one is, twice."""
    _, roundings, _ = gathers(role)
    roundings[0].kernel.CopyFrom(roundings[1].kernel)


def a_bucket_that_is_not_gathered(role):
    _, _, collectives = gathers(role)
    collectives[0].collective.CopyFrom(collectives[1].collective)


def another_buckets_slice(role):
    """Of as many elements."""
    _, roundings, _ = gathers(role)
    sources = [command.kernel.operands[0] for command in roundings]
    one, other = next((a, b) for a in sources for b in sources if a.buffer != b.buffer and a.shape == b.shape)
    one.buffer = other.buffer


def the_rounding_of_a_moment(role):
    """The buffer of the same size that the optimizer keeps."""
    rounding = gathers(role)[1][0].kernel
    source = role.buffers[rounding.operands[0].buffer]
    rounding.operands[0].buffer = next(number for number, buffer in enumerate(role.buffers)
                                       if buffer.name == f"{source.name}::exp_avg")


def a_checkpoint_of_the_copy(role):
    """What is saved as the parameter's slice lies where its rounding does."""
    _, roundings, _ = gathers(role)
    source, target = (role.buffers[operand.buffer] for operand in roundings[0].kernel.operands[:2])
    source.offset = target.offset


@pytest.mark.parametrize("edit, rule", [
    (a_stale_copy, "value"), (a_slice_that_is_not_rounded_anew, "value"), (a_bucket_that_is_not_gathered, "value"),
    (another_buckets_slice, "meaning"), (the_rounding_of_a_moment, "meaning"), (a_checkpoint_of_the_copy, "race")], ids=lambda case: getattr(case, "__name__", ""))
def test_planted_defects_are_refused(proven, edit, rule):
    broken = read_plan(proven)
    edit(broken.roles[0])
    path = write_plan(proven.with_name(f"{edit.__name__}.dsplan"), broken)
    verified = subprocess.run([FOLDERS["ds-opt"] / "ds-opt", "verify", path], capture_output=True, text=True)
    assert verified.returncode == 1 and f"({rule})" in verified.stderr, verified.stdout + verified.stderr


def test_ds_audit_agrees(proven):
    subprocess.run([sys.executable, REPOSITORY / "tools/ds-audit/ds-audit", proven], check=True, capture_output=True)
