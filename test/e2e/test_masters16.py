"""bf16_master_weights_and_grads, bf16_optimizer_states, fp16_master_weights_and_grads: trained parameters are kept in 16 bits, and
moments where asked. An update computes in float32 and rounds once: PyTorch's to the bit."""

import subprocess
import sys

import pytest
import torch
from conftest import REPOSITORY, write_config
from plan_files import read_plan, write_plan
from safetensors.torch import load_file, save_file
from test_grad_accum_dtype import MICROBATCHES, ROWS, STEPS, TYPES, bilinear  # noqa: F401 - bilinear is a fixture
from zero_trainer import SMALL, trainer  # noqa: F401 - trainer is a fixture

AWAY = {"offload_optimizer": {"device": "cpu"}}
RATE = 2**-6
DTYPES = {7: 4, 9: 2, 10: 2}  # bytes of an element, by the number of its type in a plan


def masters(kind, moments=False):
    more = {"bf16_optimizer_states": True} if moments else {}
    return {kind: {"enabled": True, f"{kind}_master_weights_and_grads": True, **more,
                   **({"initial_scale_power": 8} if kind == "fp16" else {})}}


# ---- against PyTorch

ADAMW = {"type": "AdamW", "params": {"lr": RATE, "betas": [0.9, 0.99], "eps": 1e-6, "weight_decay": 0.1}}


def pytorchs(weight, x, y, dtype, moments):
    """The weight after all steps: torch.optim.AdamW in float32, and what is kept in 16 bits is rounded after each step."""
    w = torch.tensor(weight).to(dtype).float().requires_grad_()
    optimizer = torch.optim.AdamW([w], lr=RATE, betas=(0.9, 0.99), eps=1e-6, weight_decay=0.1, foreach=False, fused=False)
    xs, ys = (torch.tensor(a).reshape(STEPS, MICROBATCHES, ROWS, -1) for a in (x, y))
    for step in range(STEPS):
        total = None
        for micro in range(MICROBATCHES):
            gradient = (xs[step, micro].T @ ys[step, micro] / MICROBATCHES).to(dtype)
            total = gradient if total is None else total + gradient
        w.grad = total.float()
        optimizer.step()
        kept = [w.data] + ([optimizer.state[w][name] for name in ("exp_avg", "exp_avg_sq")] if moments else [])
        for tensor in kept:
            tensor.copy_(tensor.to(dtype).float())
    return w.detach().to(dtype)


@pytest.mark.parametrize("kind, moments", [("bf16", False), ("bf16", True), ("fp16", False)])
def test_an_update_is_pytorchs_rounded_once(tools, tmp_path, bilinear, kind, moments):  # noqa: F811
    folder, weight, x, y = bilinear
    weight = weight + 1 / 3  # first values are rounded, too
    keys = masters(kind, moments)
    if kind == "fp16":
        keys["fp16"].update(loss_scale=1)
    config = write_config(tmp_path / "config.json", ROWS, MICROBATCHES, ADAMW, gradient_clipping=0, zero_optimization={"stage": 1, **AWAY}, **keys)
    plan, out, given = (tmp_path / name for name in ("plan.dsplan", "weights.safetensors", "given.safetensors"))
    torch_weight = torch.tensor(weight, dtype=torch.float32)
    save_file({"w": torch_weight}, given)
    tools("ds-opt", "compile", folder / "model.onnx", "--config", config, "--trainable", "^w$", "-o", plan)
    tools.train(plan, folder / "data.safetensors", STEPS, "--weights", given, "--export", out)
    expected = pytorchs(torch_weight.numpy(), x, y, TYPES[kind], moments)
    ours = load_file(out)["w"]
    assert torch.equal(ours.float(), expected.float())


# ---- every strategy

CASES = [  # kind, moments, stage, ranks, accumulation, more keys, of zero_optimization
    ("bf16", True, 1, 1, 2, {}, {}),
    ("bf16", True, 1, 2, 1, {}, {}),
    ("bf16", True, 2, 2, 1, {}, {"overlap_comm": True}),
    ("bf16", True, 3, 2, 1, {}, {"overlap_comm": True}),
    ("bf16", True, 2, 2, 1, {}, AWAY),
    ("bf16", True, 1, 2, 2, {"deepstatic": {"pipeline": {"stages": 2}}}, {}),
    ("bf16", False, 1, 1, 2, {}, AWAY),
    ("bf16", False, 1, 2, 1, {}, AWAY),
    ("bf16", False, 2, 2, 1, {}, {**AWAY, "overlap_comm": True}),
    ("bf16", False, 3, 2, 1, {}, {**AWAY, "offload_param": {"device": "cpu"}}),
    ("bf16", False, 3, 2, 1, {}, {**AWAY, "overlap_comm": True}),
    ("bf16", False, 1, 2, 2, {"deepstatic": {"pipeline": {"stages": 2}}}, AWAY),
    ("fp16", False, 1, 1, 2, {}, AWAY),
    ("fp16", False, 2, 2, 1, {}, AWAY),
    ("fp16", False, 3, 2, 1, {}, {**AWAY, "offload_param": {"device": "cpu"}}),
]


@pytest.fixture(scope="module")
def one_rank(trainer):  # noqa: F811
    """The run that all others of a kind are measured by: one rank, two micro-batches."""
    known = {}

    def run(model, kind, moments):
        key = (model, kind, moments)
        if key not in known:
            known[key] = trainer.run(trainer.compile(model, 1, 2, 1, keys=masters(kind, moments), **AWAY), steps=8)[:3]
        return known[key]

    return run


@pytest.mark.parametrize("model", ["gpt2", "llama"])
@pytest.mark.parametrize("kind, moments, stage, ranks, accumulation, keys, zero", CASES, ids=lambda value: str(value)[:24])
def test_every_strategy_has_the_bits_of_one_rank(trainer, one_rank, model, kind, moments, stage, ranks, accumulation, keys, zero):  # noqa: F811
    """Two micro-batches are added in float32 and rounded once, whether they are of one rank or of two."""
    plan = trainer.compile(model, ranks, accumulation, stage, keys={**masters(kind, moments), **keys}, **zero)
    assert trainer.report(plan)["numerics"] == "lossy"
    assert trainer.run(plan, "-n", ranks, steps=8)[:3] == one_rank(model, kind, moments)


def test_losses_stay_near_those_of_float32_masters(trainer, one_rank):  # noqa: F811
    wide = trainer.run(trainer.compile("gpt2", 1, 2, keys={"bf16": {"enabled": True}}), steps=8)
    assert one_rank("gpt2", "bf16", True)[1] != wide[1]
    assert one_rank("gpt2", "bf16", True)[1] == pytest.approx(wide[1], rel=0.02)


@pytest.mark.parametrize("kind, moments", [("bf16", True), ("bf16", False), ("fp16", False)])
def test_bytes_of_a_parameter_and_its_state(trainer, kind, moments):  # noqa: F811
    """2 of the parameter and 2 of its gradient; its moments have 4, or 8."""
    plan = trainer.compile("gpt2", 1, 2, 1, keys=masters(kind, moments), **AWAY)
    variables = read_plan(plan).variables
    trained = {i for i, variable in enumerate(variables) if variable.trainable}
    assert {DTYPES[variables[i].dtype] for i in trained} == {2}
    of = [variable for variable in variables if variable.HasField("of")]
    gradients = [variable for variable in of if variable.name.endswith("::gradient")]
    assert gradients and {DTYPES[variable.dtype] for variable in gradients} == {2}
    assert {DTYPES[variable.dtype] for variable in of if variable not in gradients} == {2 if moments else 4}


def test_a_run_is_resumed(trainer, one_rank, tmp_path):  # noqa: F811
    plan = trainer.compile("gpt2", 2, 1, 2, keys=masters("bf16"), **AWAY)
    trainer.run(plan, "-n", 2, "--save", tmp_path / "saved", steps=5)
    assert trainer.run(plan, "-n", 2, "--resume", tmp_path / "saved", steps=8)[0] == one_rank("gpt2", "bf16", False)[0]


# ---- the checker

@pytest.mark.parametrize("kind, moments, ranks, zero", [("bf16", True, 2, {"stage": 2}), ("bf16", False, 2, {"stage": 3, **AWAY}),
                                                        ("fp16", False, 1, {"stage": 1, **AWAY})])
def test_it_is_proven_audited_and_what_was_asked_for(tools, tmp_path, kind, moments, ranks, zero):
    model, plan = REPOSITORY / "test/e2e/hazards/good-gpt2", tmp_path / "plan.dsplan"
    asked = [f"{kind}.{key}=true" for key in masters(kind, moments)[kind] if key.endswith(("grads", "states"))]
    config = write_config(tmp_path / "config.json", 1, 2, zero_optimization={**SMALL, **zero}, **{kind: {"enabled": True}})
    tools("ds-opt", "compile", model, "--config", config, "--ranks", ranks, "-o", plan, *(word for key in asked for word in ("--set", key)))
    said = tools("ds-opt", "verify", plan, "--config", config, "--model", model).stdout
    assert f"parameters are kept and gradients summed in {kind}, as {kind}.{kind}_master_weights_and_grads asks" in said
    forgotten = read_plan(plan)
    forgotten.sources.ClearField("overrides")
    refused = tools.refused("ds-opt", "verify", write_plan(tmp_path / "forgotten.dsplan", forgotten), "--config", config)
    assert f"{kind}.{kind}_master_weights_and_grads is false" in refused
    done = subprocess.run([sys.executable, REPOSITORY / "tools/ds-audit/ds-audit", plan, "--orders", "1"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("operands, said", [((0, 1, 2, 3), "another element type"), ((2, 3), "must have the type of p, bfloat16, or float32")],
                         ids=["all", "moments"])
def test_a_plan_may_not_read_state_as_another_type(tools, tmp_path, operands, said):
    """An update that takes bfloat16 for float16."""
    model, plan = REPOSITORY / "test/e2e/hazards/good-gpt2", tmp_path / "plan.dsplan"
    config = write_config(tmp_path / "config.json", 1, 2, zero_optimization={"stage": 1}, **masters("bf16", moments=True))
    tools("ds-opt", "compile", model, "--config", config, "-o", plan)
    broken = read_plan(plan)
    update = next(command for role in broken.roles for routine in role.routines for command in routine.commands
                  if command.kernel.kernel == "adamw")
    for i in operands:
        update.kernel.operands[i].dtype = 10  # float16
    assert said in tools.refused("ds-opt", "verify", write_plan(tmp_path / "broken.dsplan", broken))
