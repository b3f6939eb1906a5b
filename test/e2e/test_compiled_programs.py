"""Elementwise programs of plans for device cuda are compiled (docs/cuda-plans.md#compiled-programs): ptxas takes each text without spilling a
register, a plan is the same each time, and `--without ds-compile-elementwise` changes nothing else."""

import subprocess
from pathlib import Path

import pytest
from pipeline_trainer import Cut, trainer  # noqa: F401
from plan_files import read_plan

PTXAS = Path("/usr/local/cuda/bin/ptxas")
MACHINES = {"sm_80": "a100-80gx8", "sm_90": "h100x8"}
BF16, FP16 = (("--set", f"{kind}.enabled=true") for kind in ("bf16", "fp16"))
CASES = [*((name, Cut(), BF16) for name in ("gpt2", "llama", "bert", "resnet float32")), ("llama", Cut(), ()), ("gpt2", Cut(), FP16),
         ("gpt2", Cut(stages=2, data=2, zero=3, microbatches=4), BF16), ("llama", Cut(data=2, zero=2), BF16)]


def kernels(plan):
    return [command.kernel for role in plan.roles for routine in role.routines for command in routine.commands
            if command.WhichOneof("kind") == "kernel"]


@pytest.mark.parametrize("isa", MACHINES)
@pytest.mark.parametrize("name, cut, options", CASES)
def test_ptxas_takes_all_without_spills(name, cut, options, isa, trainer, tmp_path):  # noqa: F811
    if not PTXAS.exists():
        pytest.skip(f"there is no {PTXAS}")
    plan = read_plan(trainer.compile(name, cut, "--machine", MACHINES[isa], *options))
    assert plan.codes
    for code in plan.codes:
        assert f".target {isa}\n" in code.text and f".entry {code.name}(" in code.text
        file = tmp_path / f"{code.name}.ptx"
        file.write_text(code.text)
        done = subprocess.run([PTXAS, "-v", f"-arch={isa}", "-o", "/dev/null", file], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" in done.stderr, done.stderr


@pytest.mark.parametrize("name, options", [("gpt2", BF16), ("resnet float32", BF16), ("gpt2", FP16)])
def test_all_programs_of_floats_are_compiled_once(name, options, trainer):  # noqa: F811
    plan = read_plan(trainer.compile(name, Cut(), "--machine", "h100x8", *options))
    used = [kernel.code for kernel in kernels(plan) if kernel.HasField("code")]
    assert sorted(set(used)) == list(range(len(plan.codes))) and len(used) > len(plan.codes)
    assert len({code.text for code in plan.codes}) == len({code.name for code in plan.codes}) == len(plan.codes)
    floats = {1, 7, 9, 10}  # bool, float32, bfloat16, float16
    for kernel in kernels(plan):
        if kernel.kernel == "elementwise":
            program = next(attribute.integers.values for attribute in kernel.attributes if attribute.name == "program")
            types = {operand.dtype for operand in kernel.operands} | set(program[1::5])
            assert kernel.HasField("code") == (types <= floats)


def test_a_plan_is_the_same_each_time_and_the_pass_can_be_left_out(trainer):  # noqa: F811
    def plan(*options):
        return trainer.compile("gpt2", Cut(), "--machine", "h100x8", *BF16, *options).read_bytes()

    path = trainer.compile("gpt2", Cut(), "--machine", "h100x8", *BF16)
    compiled = read_plan(path)
    assert path.read_bytes() == plan()
    interpreted = read_plan(trainer.compile("gpt2", Cut(), "--machine", "h100x8", *BF16, "--without", "ds-compile-elementwise"))
    assert not interpreted.codes
    for kernel in kernels(compiled):
        kernel.ClearField("code")
    del compiled.codes[:]
    compiled.config_json = interpreted.config_json = ""
    assert list(interpreted.sources.flags) == ["--without=ds-compile-elementwise"]
    interpreted.sources.ClearField("flags")
    assert compiled == interpreted


def test_no_code_for_a_cpu(trainer):  # noqa: F811
    plan = read_plan(trainer.compile("gpt2", Cut(), "--machine", "cpu"))
    assert not plan.codes and not any(kernel.HasField("code") for kernel in kernels(plan))
