"""data_types.grad_accum_dtype: gradients are summed in 16 bits. Half their bytes; on one rank PyTorch's sums to the bit, on several nearly
the losses of float32."""

import re
import subprocess
import sys

import numpy
import onnx
import pytest
import torch
from conftest import REPOSITORY, write_config
from onnx import TensorProto, helper, numpy_helper
from plan_files import read_plan, write_plan
from safetensors.numpy import save_file
from weights import read_weights, require_near
from zero_trainer import SMALL, trainer  # noqa: F401 - trainer is a fixture

TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
NEAR = {"bf16": 0.02, "fp16": 0.005}  # how far losses may be: 8 and 11 bits of precision


def sums(kind, **more):
    return {"data_types": {"grad_accum_dtype": kind}, **more}


# ---- against PyTorch, where float32 sums are exact and only the sums in 16 bits round

ROWS, WIDTH, COLUMNS, MICROBATCHES, STEPS, RATE = 2, 5, 3, 4, 3, 2**-10


@pytest.fixture(scope="module")
def bilinear(tmp_path_factory):
    """loss = sum(x w * y), so that w's gradient is x^T y: the model, its weight, x and y."""
    folder = tmp_path_factory.mktemp("bilinear")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["found"]), helper.make_node("Mul", ["found", "y"], ["terms"]),
             helper.make_node("ReduceSum", ["terms"], ["loss"], keepdims=0)]
    random = numpy.random.default_rng(0)
    weight = random.integers(-8, 9, (WIDTH, COLUMNS)).astype(numpy.float32)
    graph = helper.make_graph(nodes, "bilinear", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", WIDTH]),
                                                  helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", COLUMNS])],
                              [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])], [numpy_helper.from_array(weight, "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), folder / "model.onnx")
    x, y = (random.integers(-40, 41, (STEPS * MICROBATCHES * ROWS, n)).astype(numpy.float32) for n in (WIDTH, COLUMNS))
    save_file({"x": x, "y": y}, folder / "data.safetensors")
    return folder, weight, x, y


def pytorchs(weight, x, y, dtype, clip):
    """The weight after all steps, and the norm of each: gradients are added in `dtype`, as `param.grad` of that type is."""
    w, norms = torch.tensor(weight), []
    xs, ys = (torch.tensor(a).reshape(STEPS, MICROBATCHES, ROWS, -1) for a in (x, y))
    for step in range(STEPS):
        total = None
        for micro in range(MICROBATCHES):
            gradient = (xs[step, micro].T @ ys[step, micro] / MICROBATCHES).to(dtype)
            total = gradient if total is None else total + gradient
        norms.append(float(total.double().square().sum().sqrt()))
        factor = min(1.0, clip / (norms[-1] + 1e-6)) if clip else 1.0
        w = w - RATE * (total.float() * torch.tensor(factor, dtype=torch.float32))
    return w.numpy(), norms


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("clip", [0, 500.0])
def test_one_rank_has_pytorchs_sums(tools, tmp_path, bilinear, kind, clip):
    folder, weight, x, y = bilinear
    config = write_config(tmp_path / "config.json", ROWS, MICROBATCHES, {"type": "SGD", "params": {"lr": RATE}}, gradient_clipping=clip,
                          zero_optimization={"stage": 1}, fp16={"enabled": kind == "fp16", "loss_scale": 1}, **sums(kind))
    plan, out = tmp_path / "plan.dsplan", tmp_path / "weights.safetensors"
    tools("ds-opt", "compile", folder / "model.onnx", "--config", config, "--trainable", "^w$", "-o", plan)
    metrics, _ = tools.train(plan, folder / "data.safetensors", STEPS, "--export", out)
    expected, norms = pytorchs(weight, x, y, TYPES[kind], clip)
    exact, _ = pytorchs(weight, x, y, torch.float32, clip)
    assert (expected != exact).any(), "nothing was rounded"
    numpy.testing.assert_allclose(read_weights(out)[0]["w"], expected, rtol=0 if clip == 0 else 1e-6)
    numpy.testing.assert_allclose([line["grad_norm"] for line in metrics], norms, rtol=1e-12)


# ---- every strategy

CASES = [  # model, stage, ranks, accumulation, kind, more keys, of zero_optimization
    ("gpt2", 0, 2, 2, "bf16", {"bf16": {"enabled": True}}, {}),
    ("llama", 1, 3, 2, "bf16", {}, {}),
    ("gpt2", 1, 2, 1, "fp16", {"fp16": {"enabled": True, "initial_scale_power": 8}}, {"overlap_comm": True}),
    ("bert", 2, 3, 2, "bf16", {"bf16": {"enabled": True}}, {}),
    ("gpt2", 2, 2, 3, "fp16", {"fp16": {"enabled": True, "initial_scale_power": 8}}, {"overlap_comm": True}),
    ("llama", 3, 2, 2, "bf16", {"bf16": {"enabled": True}}, {"overlap_comm": True}),
    ("gpt2", 1, 4, 2, "bf16", {"bf16": {"enabled": True}, "deepstatic": {"pipeline": {"stages": 2}}}, {}),
    ("gpt2", 2, 2, 2, "bf16", {"bf16": {"enabled": True}}, {"offload_optimizer": {"device": "cpu"}}),
    ("llama", 3, 2, 2, "fp16", {"fp16": {"enabled": True, "initial_scale_power": 8}},
     {"offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"}}),
    ("gpt2", 1, 2, 1, "bf16", {"bf16": {"enabled": True}, "deepstatic": {"delayed_update": True}}, {"offload_optimizer": {"device": "cpu"}}),
    ("bert", 1, 1, 3, "bf16", {"bf16": {"enabled": True}}, {"offload_optimizer": {"device": "cpu"}}),
]


def gradients(report):
    return report["ranks_detail"][0]["zero"]["gradients"]["rank_bytes"]


@pytest.mark.parametrize("model, stage, ranks, accumulation, kind, keys, zero", CASES, ids=lambda value: str(value)[:24])
def test_half_the_bytes_and_nearly_the_losses(trainer, model, stage, ranks, accumulation, kind, keys, zero):  # noqa: F811
    wide, narrow = (trainer.compile(model, ranks, accumulation, stage, keys=more, **zero) for more in (keys, sums(kind, **keys)))
    before, after = trainer.report(wide), trainer.report(narrow)
    assert before["numerics"] != "lossy" and after["numerics"] == "lossy"
    if not zero.get("offload_optimizer"):  # what is small stays in device memory
        assert abs(2 * gradients(after) - gradients(before)) <= 8
    moved, were = (sum(report["ranks_detail"][0].get("transfer_bytes_per_step", {}).values()) for report in (after, before))
    assert moved < were or moved == were == 0
    reduced = [sum(report["ranks_detail"][0]["wire_bytes_per_step"].get(name, 0) for name in ("reduce_scatter", "all_reduce"))
               for report in (before, after)]
    assert reduced[1] <= 0.5 * reduced[0] + 256 * accumulation, "all but losses and norms is halved"
    results = [trainer.run(plan, "-n", ranks, steps=8) for plan in (wide, narrow, narrow)]
    assert results[1][:3] == results[2][:3], "two runs differ"
    assert results[1][1] != results[0][1], "nothing was rounded"
    assert results[1][1] == pytest.approx(results[0][1], rel=NEAR[kind])
    require_near(trainer.weights(results[1][0]), trainer.weights(results[0][0]), 0.5)


def test_gradients_leave_for_the_host_by_two_bytes(trainer):  # noqa: F811
    keys, zero = {"bf16": {"enabled": True}}, {"offload_optimizer": {"device": "cpu"}, "reduce_bucket_size": 500000}
    wide, narrow = (trainer.report(trainer.compile("gpt2", 2, 1, 2, keys=more, **zero))["ranks_detail"][0] for more in (keys, sums("bf16", **keys)))
    out = [rank["transfer_bytes_per_step"]["out"] for rank in (wide, narrow)]
    # Two bytes less of each element that a rank, one of two, has.
    assert out[0] - out[1] == sum(bucket["elements"] for bucket in wide["zero"]["buckets"] if bucket["name"].endswith("::gradient"))


def test_a_step_that_overflows_is_skipped(trainer):  # noqa: F811
    """A sum beyond float16 is infinite, and so is the norm."""
    keys = sums("fp16", fp16={"enabled": True, "initial_scale_power": 30, "loss_scale_window": 100, "hysteresis": 1})
    plan = trainer.compile("gpt2", 2, 2, 2, keys=keys)
    _, _, norms, _ = trainer.run(plan, "-n", 2, steps=20)
    skipped = [norm is None for norm in norms]
    assert skipped[0] and not skipped[-1] and sorted(skipped, reverse=True) == skipped


@pytest.mark.parametrize("stage, keys", [(0, {"bf16": {"enabled": True}}), (1, {}), (2, {"bf16": {"enabled": True}}),
                                         (3, {"bf16": {"enabled": True}, "deepstatic": {"pipeline": {"stages": 2}}})],
                         ids=["0", "1", "2", "stages"])
def test_it_is_proven_audited_and_what_was_asked_for(tools, tmp_path, stage, keys):
    model, plan = REPOSITORY / "test/e2e/hazards/good-gpt2", tmp_path / "plan.dsplan"
    config = write_config(tmp_path / "config.json", 1, 2, zero_optimization={"stage": stage, **SMALL}, **keys)
    tools("ds-opt", "compile", model, "--config", config, "--set", "data_types.grad_accum_dtype=bf16",
          "--ranks", 4 if "deepstatic" in keys else 2, "-o", plan)
    said = tools("ds-opt", "verify", plan, "--config", config).stdout
    assert "gradients are summed in bf16, as data_types.grad_accum_dtype asks" in said
    assert "ranks sum gradients in bf16" in said
    forgotten = read_plan(plan)
    forgotten.sources.ClearField("overrides")
    refused = tools.refused("ds-opt", "verify", write_plan(tmp_path / "forgotten.dsplan", forgotten), "--config", config)
    assert 'the plan sums gradients in bf16, but data_types.grad_accum_dtype is "fp32"' in refused
    done = subprocess.run([sys.executable, REPOSITORY / "tools/ds-audit/ds-audit", plan, "--orders", "1"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_plan_may_not_read_the_sums_as_another_type(tools, tmp_path):
    """An update that takes 16 bits as float16 that are bfloat16."""
    model, plan = REPOSITORY / "test/e2e/hazards/good-gpt2", tmp_path / "plan.dsplan"
    config = write_config(tmp_path / "config.json", 1, 2, bf16={"enabled": True}, **sums("bf16"))
    tools("ds-opt", "compile", model, "--config", config, "-o", plan)
    broken = read_plan(plan)
    update = next(command for role in broken.roles for routine in role.routines for command in routine.commands
                  if command.kernel.kernel == "adamw")
    update.kernel.operands[1].dtype = 10  # float16
    assert "another element type" in tools.refused("ds-opt", "verify", write_plan(tmp_path / "broken.dsplan", broken))


def test_the_report_says_what_holding_gradients_whole_would_cost(trainer):  # noqa: F811
    """Stage 2 reduces each micro-batch. Where there is room, stage 1 sends a third for three of them."""
    keys = {"deepstatic": {"device_memory": "64MiB"}}
    each, once = (trainer.compile("gpt2", 4, 3, stage, keys=keys) for stage in (2, 1))
    page = trainer.tools("ds-opt", "report", each, "--format", "html").stdout
    found = re.search(r"stage 1 holds gradients whole and reduces them once a step: it needs (\S+) KiB more, for which there is room, "
                      r"and sends (\S+) KiB of them instead of (\S+) KiB", page)
    more, sent, instead = (float(number) for number in found.groups())
    before, after = (trainer.report(plan)["ranks_detail"][0] for plan in (each, once))
    assert instead == pytest.approx(before["wire_bytes_per_step"]["reduce_scatter"] / 1024, rel=0.01)
    assert sent == pytest.approx(after["wire_bytes_per_step"]["reduce_scatter"] / 1024, rel=0.01)
    held = [rank["memory"]["device"]["gradients"] + rank["memory"]["device"]["bucket_padding"] for rank in (before, after)]
    assert more == pytest.approx((held[1] - held[0]) / 1024, rel=0.02)
    tight = trainer.compile("gpt2", 4, 3, 2, keys={"deepstatic": {"device_memory": before["memory"]["device"]["arena_bytes"] + 4096}})
    assert "holds gradients whole" not in trainer.tools("ds-opt", "report", tight, "--format", "html").stdout
