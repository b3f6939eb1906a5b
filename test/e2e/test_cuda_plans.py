"""Plans for device cuda, without one: what they decide, that the null device walks them to their end, that a cpu refuses them."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from conftest import BUILD, REPOSITORY, write_config
from pipeline_trainer import Cut, trainer  # noqa: F401
from plan_files import read_plan

MACHINE = ("--machine", "h100x8")
CUTS = {
    "one": Cut(),
    "zero2": Cut(data=2, zero=2, microbatches=2),
    "pipe": Cut(stages=2, microbatches=4),
    "zero3": Cut(data=8, zero=3),
    "both": Cut(stages=2, data=4, zero=3, microbatches=4),
    "interleaved": Cut(stages=4, data=2, zero=1, microbatches=4, schedule="interleaved"),
}
CASES = [*(("gpt2", cut) for cut in CUTS), ("resnet", "one"), ("resnet", "both")]
# Kernels of GPT-2 and ResNet that take a workspace from the plan on a GPU, and not on a CPU or of another size.
SCRATCH = {"gpt2": {"matmul", "packed_attention_grad", "layer_norm_grad", "cross_entropy", "cross_entropy_with_grad"},
           "resnet": {"matmul", "conv", "conv_input_grad", "conv_weight_grad", "cross_entropy", "cross_entropy_with_grad"}}


def report(trainer, plan):
    return json.loads(trainer.tools("ds-opt", "report", plan, "--format", "json").stdout)


def compile_cuda(trainer, name, cut, *options):
    return trainer.compile(name, cut, *MACHINE, *options)


@pytest.mark.parametrize("name, cut", CASES)
def test_plans_are_walked_to_their_end(name, cut, trainer):
    plan = compile_cuda(trainer, name, CUTS[cut])
    trainer.tools("ds-run", plan, "--data", trainer.data(name), "--steps", 2, "--device", "null", "--quiet", "-n", CUTS[cut].ranks)
    facts = report(trainer, plan)
    assert facts["machine"] == {"name": "h100x8", "device": "cuda", "isa": "sm_90", "reserve_bytes": 1 << 30}
    assert facts["captured"] == ["step"]
    assert facts["numerics"] == ("reassociated" if CUTS[cut].data > 1 else "bit-equal")
    page = trainer.tools("ds-opt", "report", plan).stdout
    assert re.search(r"^  captured  program step as one launch of [\d,]+ commands$", page, re.M)
    assert re.search(r"^  reserve   1.00 GiB of each rank's device", page, re.M)


def launches(trainer, *options):
    """How often a step of GPT-2 in bfloat16 runs each kernel, and the parameters that it updates."""
    plan = compile_cuda(trainer, "gpt2", Cut(), "--set", "bf16.enabled=true", *options)
    facts = report(trainer, plan)
    return {one["kernel"]: one["commands"] for one in facts["ranks_detail"][0]["commands_of_step"]}, len(facts["parameters"])


def test_one_launch_is_for_many_parameters(trainer):
    """Updates and sums of squares are of buckets, and casts of weights too: what a step without them casts is activations."""
    commands, parameters = launches(trainer)
    assert parameters > 20
    assert commands["adamw"] == commands["block_sum_squares"] <= 4
    casts, _ = launches(trainer, "--without", "ds-narrow-gathers")
    assert casts["elementwise"] >= commands["elementwise"] + 8  # four products a layer, two layers


def test_gradients_of_norms_add_the_residuals(trainer):
    """All but the last, which is of no block, and the first, whose sum goes on with others."""
    commands, _ = launches(trainer)
    without, _ = launches(trainer, "--without", "ds-fuse-residual-gradients")
    norms = commands.pop("layer_norm_grad")
    assert norms == without.pop("layer_norm_grad") > 4
    assert without.pop("elementwise") - commands.pop("elementwise") == norms - 2 and without == commands


def test_norms_add_the_residuals(trainer):
    """All but the first, whose embeddings broadcast, and the last, behind which the stream of residuals ends."""
    commands, _ = launches(trainer)
    without, _ = launches(trainer, "--without", "ds-fuse-residual-sums")
    norms = commands["layer_norm"]
    assert norms == without["layer_norm"] > 4
    assert without.pop("elementwise") - commands.pop("elementwise") == norms - 2 and without == commands


@pytest.mark.parametrize("cut", CUTS)
def test_a_loss_is_made_with_its_gradient(cut, trainer):
    """On the rank that has it, under every schedule; an evaluation has the loss alone. The checker follows it."""
    plan = compile_cuda(trainer, "gpt2", CUTS[cut], "--set", "bf16.enabled=true")
    counts = [{one["kernel"]: one["commands"] for one in rank["commands_of_step"]} for rank in report(trainer, plan)["ranks_detail"]]
    assert not any({"cross_entropy", "cross_entropy_grad"} & kernels.keys() for kernels in counts)
    assert counts[-1]["cross_entropy_with_grad"] == CUTS[cut].microbatches
    trainer.tools("ds-opt", "verify", plan)
    kernels = {command.kernel.kernel for role in read_plan(plan).roles for routine in role.routines for command in routine.commands}
    assert "cross_entropy" in kernels, "the evaluation's"


def test_parameters_that_lie_elsewhere_are_launched_for_one_by_one(trainer):
    commands, parameters = launches(trainer, "--set", "zero_optimization.offload_param.device=cpu")
    assert commands["adamw"] >= parameters


def test_an_update_that_needs_a_norm_is_of_one_parameter(trainer):
    commands, parameters = launches(trainer, "--set", "optimizer.type=Lamb")
    assert commands["lamb"] == parameters


@pytest.mark.parametrize("name", SCRATCH)
def test_kernels_have_the_workspaces_of_their_device(name, trainer):
    text = trainer.tools("ds-opt", "compile", trainer.model(name), "--config", trainer.config(name, Cut()), *MACHINE,
                         "--emit", "plan-text", "-o", "-").stdout
    with_scratch = {kernel for kernel, body in re.findall(r'kernel \{\n +kernel: "(\w+)"(.*?)\n    \}\n', text, re.S)
                    if "access: SCRATCH" in body}
    assert with_scratch >= SCRATCH[name]
    assert text.count("captured: true") == 1 and 'isa: "sm_90"' in text
    assert re.findall(r'name: "pieces"\n +integer: (\d+)', text) and set(re.findall(r'name: "pieces"\n +integer: (\d+)', text)) == {"1"}


@pytest.mark.parametrize("without, rows", [((), {0}), (("--without", "ds-pad-vocabulary"), {0, 4})])
def test_rows_of_products_are_multiples_of_16_bytes(without, rows, trainer, tmp_path):
    """Also of logits, of a vocabulary that is none of 8: products of 16 bits with other rows run several times slower."""
    config = write_config(tmp_path / "config.json", 2, bf16={"enabled": True})
    trainer.tools("ds-opt", "compile", REPOSITORY / "test/e2e/hazards/good-gpt2", "--config", config, *MACHINE, *without, "-o", tmp_path / "plan.dsplan")
    products = [command.kernel for routine in read_plan(tmp_path / "plan.dsplan").roles[0].routines for command in routine.commands
                if command.kernel.kernel in ("matmul", "linear_weight_grad")]
    assert {2 * operand.shape[-1] % 16 for kernel in products for operand in kernel.operands if len(operand.shape) > 1} == rows


@pytest.mark.parametrize("machine, products", [("cpu", False), ("h100x8", True)])
def test_tf32_is_for_products_of_a_gpu(machine, products, trainer):
    text = trainer.tools("ds-opt", "compile", trainer.model("gpt2"), "--config", trainer.config("gpt2", Cut()), "--machine", machine,
                         "--set", "deepstatic.tf32=true", "--emit", "plan-text", "-o", "-").stdout
    of_products = text.count('kernel: "matmul"') + text.count('kernel: "linear_weight_grad"')
    assert text.count('name: "tf32"') == (of_products if products else 0)


def test_a_cpu_refuses_them_and_says_what_would_work(trainer):
    plan = compile_cuda(trainer, "gpt2", Cut())
    sentence = trainer.tools.refused("ds-run", plan, "--data", trainer.data("gpt2"), "--device", "cpu")
    assert sentence == ("the plan was compiled for device cuda, so it does not run on cpu; leave --device out to run "
                        "it on cuda, or compile it for a machine with device cpu")


def test_the_capture_can_be_left_out(trainer):
    plan = compile_cuda(trainer, "gpt2", CUTS["both"], "--without", "ds-choose-captured-programs")
    assert report(trainer, plan)["captured"] == []
    assert "captured" not in trainer.tools("ds-opt", "report", plan).stdout


def test_machines_can_be_compared(trainer):
    plans = []
    for machine in ("cpu", "h100x8", "a100-80gx8"):
        plans.append(trainer.folder / f"{machine}.dsplan")
        trainer.tools("ds-opt", "compile", trainer.model("gpt2"), "--config", trainer.config("gpt2", Cut()), "--machine", machine,
                      "-o", plans[-1])
    changes = trainer.tools("ds-opt", "diff", *plans[:2]).stdout
    assert re.search(r"program step +command by command +captured", changes) and "h100x8 (cuda)" in changes
    assert re.search(r"instructions +sm_90 +sm_80", trainer.tools("ds-opt", "diff", *plans[1:]).stdout)


@pytest.mark.parametrize("name", SCRATCH)
def test_what_is_needed_of_a_gpu_is_checked(name, trainer):
    def check(*options, code=0):
        done = trainer.tools("ds-opt", "check", trainer.model(name), "--config", trainer.config(name, Cut()), *MACHINE, "--format", "json",
                             *options, code=code)
        return json.loads(done.stdout)["checks"][0]
    memory, = check()["memory"]
    assert memory["needed_bytes"] == memory["arena_bytes"] + (1 << 30) and memory["holds"]["workspace"] > 0
    assert check("--device-memory", memory["needed_bytes"])["verdict"] == "fits"
    refused = check("--device-memory", 1 << 30, code=1)  # all of it is reserved
    assert refused["verdict"] == "does_not_fit" and "of device memory" in refused["reason"]


@pytest.mark.parametrize("options", [(), ("--set", "bf16.enabled=true"), ("--set", "fp16.enabled=true")], ids=["float32", "bf16", "fp16"])
@pytest.mark.parametrize("name", ["gpt2", "llama", "bert", "resnet"])
def test_every_kernel_of_a_plan_can_be_made(name, options, trainer):
    """As far as that goes without a GPU: the factories of libds-cuda check their calls before they ask CUDA for anything."""
    tool = next(filter(Path.exists, (BUILD.parent / preset / "bin/cuda-plan-kernels" for preset in ("cuda", "hopper"))), None)
    if tool is None:
        pytest.skip("needs build/cuda or build/hopper (scripts/build.sh cuda cuda-tests)")
    plan = compile_cuda(trainer, name, Cut(), *options)
    done = subprocess.run([tool, plan], capture_output=True, text=True)
    assert done.returncode == 0 and "matmul" in done.stdout, done.stderr
    if name == "gpt2" and not options:
        done = subprocess.run([tool, trainer.compile(name, Cut())], capture_output=True, text=True)
        assert done.returncode == 1 and "cross_entropy: " in done.stderr, "a plan for a processor has none of this workspace"


def test_times_are_by_the_machines_rates(trainer, tmp_path):
    """A command takes what the file says, and its bytes or FLOP; stages take the sum of theirs, not a CPU's. Without multiprocessors
    every kernel reaches the memory's rate."""
    fast = report(trainer, compile_cuda(trainer, "gpt2", CUTS["pipe"]))
    for rank in fast["ranks_detail"]:
        for one in rank["commands_of_step"]:
            assert one["seconds"] >= max(1.25e-6 * one["commands"], one["bytes"] / 3e12), one
    machine = tmp_path / "slow.json"
    lines = (REPOSITORY / "models/machines/h100x8.json").read_text()
    machine.write_text(lines.replace('"memory_gb_per_s": 3000', '"memory_gb_per_s": 0.003').replace('"multiprocessors": 132, "command_us": 1.25', '"command_us": 0'))
    slow = report(trainer, trainer.compile("gpt2", CUTS["pipe"], "--machine", machine))
    for rank in slow["ranks_detail"]:
        for one in rank["commands_of_step"]:
            assert one["seconds"] == pytest.approx(one["bytes"] / 3e6)
    for before, after in zip(fast["pipeline"]["stages_detail"], slow["pipeline"]["stages_detail"], strict=True):
        assert after["forward_seconds"] > 100 * before["forward_seconds"] > 0
