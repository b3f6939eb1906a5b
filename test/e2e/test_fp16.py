"""fp16.enabled: losses follow float32's and PyTorch's in float16, every strategy has the bits of one rank, and DeepSpeed's rule says which
steps are skipped and what the loss is scaled by."""

import hashlib
import json
import os
import random

import numpy
import onnx
import pytest
import sixteen_bits
import torch
from checkpoints import digest_of
from conftest import write_config
from onnx import TensorProto, helper, numpy_helper
from plan_files import read_plan, write_plan
from safetensors.numpy import load_file, save_file
from sixteen_bits import (MODELS, SEQ, ZEROS, bench, require_autocast, require_losses, require_narrow_gathers, require_stages,  # noqa: F401
                          require_zero)

FP16 = {"fp16": {"enabled": True, "initial_scale_power": 12}}
WHOLE = os.environ.get("DS_TEST_SCOPE") == "all"


@pytest.mark.parametrize("name", MODELS)
def test_losses_are_float32s_and_pytorchs(name, bench):  # noqa: F811
    require_losses(bench(name), FP16, torch.float16)


@pytest.mark.parametrize("name, rate", [("gpt2", 8e-4), *([("llama", 5e-4)] if WHOLE else [])])
def test_300_steps_are_autocasts(tools, exported, text_data, tmp_path, name, rate):
    require_autocast(tools, name, exported(name, "--size", "tiny", "--seq", SEQ), text_data(SEQ), tmp_path, FP16, torch.float16, rate)


@pytest.mark.parametrize("name, stage, ranks", [("gpt2", 0, 2), *ZEROS])
def test_zero_has_the_bits_of_one_rank(name, stage, ranks, bench):  # noqa: F811
    require_zero(bench(name), stage, ranks, FP16)


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_parameters_are_gathered_in_16_bits(name, bench):  # noqa: F811
    require_narrow_gathers(bench(name), FP16, sixteen_bits.F16)


@pytest.mark.parametrize("name, stage", [("llama", 0), ("gpt2", 2), ("llama", 3)])
def test_stages_have_the_bits_of_one(name, stage, bench):  # noqa: F811
    require_stages(bench(name), stage, FP16)


# ---- overflows, where a sample's inputs are beyond float16's largest number

WIDTH, SAMPLES = 4, 2400
HUGE = 1e30


class Scaler:
    """DeepSpeed's DynamicLossScaler.update_scale (deepspeed/runtime/fp16/loss_scaler.py, 0.19.8), as its documentation of fp16 describes
    it; its own code where that is installed."""

    def __init__(self, initial_scale_power, loss_scale_window, hysteresis=2, consecutive_hysteresis=False, min_loss_scale=1):
        try:
            from deepspeed.runtime.fp16.loss_scaler import DynamicLossScaler
            self.theirs = DynamicLossScaler(init_scale=2**initial_scale_power, scale_window=loss_scale_window, delayed_shift=hysteresis,
                                            consecutive_hysteresis=consecutive_hysteresis, min_scale=min_loss_scale,
                                            raise_error_at_min_scale=False)
        except ImportError:
            self.theirs = None
        self.value, self.left, self.iteration, self.last = float(2**initial_scale_power), hysteresis, 0, -1
        self.window, self.hysteresis, self.consecutive, self.least = loss_scale_window, hysteresis, consecutive_hysteresis, min_loss_scale

    @property
    def scale(self):
        return self.theirs.cur_scale if self.theirs else self.value

    def update(self, overflow):
        if self.theirs:
            return self.theirs.update_scale(overflow)
        if overflow:
            if self.hysteresis == 1 or self.left == 1:
                self.value = max(self.value / 2, self.least)
            else:
                self.left -= 1
            self.last = self.iteration
        else:
            if self.consecutive:
                self.left = self.hysteresis
            clean = self.iteration - self.last - 1
            if clean > 0 and clean % self.window == 0:
                if not self.consecutive:
                    self.left = self.hysteresis
                self.value *= 2
        self.iteration += 1


def draw(fp16, steps, seed):
    """Which steps shall overflow, and the scale of each: more where it gets large, so that no other step does."""
    scaler, chance, pattern, scales = Scaler(**fp16), random.Random(seed), [], []
    for _ in range(steps):
        scales.append(scaler.scale)
        pattern.append(chance.random() < (0.6 if scaler.scale >= 2**10 else 0.02 if scaler.scale <= 2**5 else 0.15))
        scaler.update(pattern[-1])
    return pattern, scales


@pytest.fixture(scope="module")
def linear(tmp_path_factory):
    """loss = mean((x w - y)^2)"""
    folder = tmp_path_factory.mktemp("linear")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["found"]), helper.make_node("Sub", ["found", "y"], ["off"]),
             helper.make_node("Mul", ["off", "off"], ["squares"]), helper.make_node("ReduceMean", ["squares"], ["loss"], keepdims=0)]
    weight = numpy.random.default_rng(0).normal(0, 1, (WIDTH, 3)).astype(numpy.float32)
    graph = helper.make_graph(nodes, "linear", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", WIDTH]),
                                                helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 3])],
                              [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])], [numpy_helper.from_array(weight, "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), folder / "model.onnx")
    return folder / "model.onnx"


def samples(path, pattern, ranks):
    """One sample for each rank and step; where a step shall overflow, the last rank's alone has a number beyond float16. The second file
    has the other steps alone."""
    random = numpy.random.default_rng(1)
    x, y = (random.normal(0, 1, (len(pattern), ranks, n)).astype(numpy.float32) for n in (WIDTH, 3))
    overflows = numpy.array(pattern)
    x[overflows, -1, 1] = HUGE
    for name, steps in (("all", slice(None)), ("clean", ~overflows)):
        save_file({"x": x[steps].reshape(-1, WIDTH), "y": y[steps].reshape(-1, 3)}, path / f"{name}.safetensors")
    return path / "all.safetensors", path / "clean.safetensors"


def compiled(tools, model, folder, ranks, fp16, name="plan", **settings):
    settings = {"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 100, "warmup_max_lr": 0.01}}, "gradient_clipping": 1.0,
                **settings}
    config = write_config(folder / f"{name}.json", 1, 1, fp16={"enabled": True, **fp16}, **settings)
    tools("ds-opt", "compile", model, "--config", config, "--ranks", ranks, "--trainable", "^w$", "-o", folder / f"{name}.dsplan")
    return folder / f"{name}.dsplan", config


RULES = [(1, 0, {"initial_scale_power": 9, "loss_scale_window": 5}),
         (2, 2, {"initial_scale_power": 12, "loss_scale_window": 3, "hysteresis": 3}),
         (2, 1, {"initial_scale_power": 8, "loss_scale_window": 4, "hysteresis": 2, "consecutive_hysteresis": True}),
         (2, 3, {"initial_scale_power": 8, "loss_scale_window": 2, "hysteresis": 1, "min_loss_scale": 64})]


@pytest.mark.parametrize("ranks, stage, fp16", RULES)
def test_skips_and_scales_as_deepspeed(tools, linear, tmp_path, ranks, stage, fp16):
    """1,000 steps. A step that one rank's gradient overflows in changes nothing on any: all ends as if it had not been."""
    pattern, scales = draw(fp16, 1000, seed=ranks + stage)
    everything, clean = samples(tmp_path, pattern, ranks)
    lines, weights = {}, {}
    for name, data, steps, scaling in (("all", everything, 1000, fp16), ("clean", clean, pattern.count(False), {"loss_scale": 256})):
        plan, _ = compiled(tools, linear, tmp_path, ranks, scaling, name,
                           zero_optimization={"stage": stage, "stage3_param_persistence_threshold": 0})
        weights[name] = tmp_path / f"{name}.weights"
        lines[name], _ = tools.train(plan, data, steps, "-n", ranks, "--threads", 1, "--export", weights[name], "--on-nonfinite", "continue")
    assert [line["skipped"] for line in lines["all"]] == pattern
    assert [line["loss_scale"] for line in lines["all"]] == scales
    assert [line["grad_norm"] is None for line in lines["all"]] == pattern
    assert len(set(scales)) > 4 and 50 < sum(pattern) < 600
    done = [line for line in lines["all"] if not line["skipped"]]
    assert [line["lr"] for line in done] == [line["lr"] for line in lines["clean"]]
    numpy.testing.assert_allclose([line["loss"] for line in done], [line["loss"] for line in lines["clean"]], rtol=1e-3)
    ours, theirs = (load_file(weights[name])["w"] for name in ("all", "clean"))
    numpy.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)


def test_a_static_scale_stays(tools, linear, tmp_path):
    pattern = [step % 4 == 2 for step in range(20)]
    everything, clean = samples(tmp_path, pattern, 2)
    plan, _ = compiled(tools, linear, tmp_path, 2, {"loss_scale": 128}, zero_optimization={"stage": 1})
    lines, _ = tools.train(plan, everything, 20, "-n", 2, "--export", tmp_path / "all.weights")
    assert [line["skipped"] for line in lines] == pattern and {line["loss_scale"] for line in lines} == {128}
    tools.train(plan, clean, 15, "-n", 2, "--export", tmp_path / "clean.weights")
    assert (tmp_path / "all.weights").read_bytes() == (tmp_path / "clean.weights").read_bytes()


CYCLE = {"scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 0.001, "cycle_max_lr": 0.05, "cycle_first_step_size": 6,
                                                      "cycle_min_mom": 0.5, "cycle_max_mom": 0.9}}}
LION = {"optimizer": {"type": "Lion", "params": {"lr": 0.01, "weight_decay": 0.1}}}
LAMB = {"optimizer": {"type": "Lamb", "params": {"lr": 0.01, "weight_decay": 0.1}}, "zero_optimization": {"stage": 0}}
OPTIMIZERS = {"adamw-cycled": CYCLE, "lion": LION, "lion-cycled": {**LION, **CYCLE},
              "sgd": {"optimizer": {"type": "SGD", "params": {"lr": 0.01, "momentum": 0.9}}},
              "adagrad": {"optimizer": {"type": "Adagrad", "params": {"lr": 0.01}}},
              "lamb": LAMB, "lamb-cycled": {**LAMB, **CYCLE}}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_leaves_overflows_out(tools, linear, tmp_path, name):
    """Rates and cycled momenta follow the steps that were not skipped: to the bit, the others might not have been."""
    pattern = [step % 5 in (0, 3) for step in range(25)]
    everything, clean = samples(tmp_path, pattern, 2)
    plan, config = compiled(tools, linear, tmp_path, 2, {"loss_scale": 128}, **{"zero_optimization": {"stage": 2}, **OPTIMIZERS[name]})
    tools("ds-opt", "verify", plan, "--model", linear, "--config", config)
    lines, _ = tools.train(plan, everything, 25, "-n", 2, "--export", tmp_path / "all.weights")
    assert [line["skipped"] for line in lines] == pattern
    others, _ = tools.train(plan, clean, 15, "-n", 2, "--export", tmp_path / "clean.weights")
    assert [line["lr"] for line in lines if not line["skipped"]] == [line["lr"] for line in others]
    assert (tmp_path / "all.weights").read_bytes() == (tmp_path / "clean.weights").read_bytes()


def test_an_overflow_at_the_least_scale_ends_the_run(tools, linear, tmp_path):
    everything, _ = samples(tmp_path, [True] * 8, 1)
    plan, _ = compiled(tools, linear, tmp_path, 1, {"initial_scale_power": 2, "hysteresis": 1})
    message = tools.refused("ds-run", plan, "--data", everything, "--steps", 8, "--quiet", code=3)
    assert "in step 3 a gradient is not finite, and the loss scale is 1 on rank 0" in message and "fp16.min_loss_scale" in message


@pytest.mark.parametrize("ranks, settings", [(1, {}), (2, {"zero_optimization": {"stage": 2}})], ids=["one", "zero2"])
def test_resumes_bit_by_bit_in_the_middle_of_skipped_steps(tools, linear, tmp_path, ranks, settings):
    pattern = [step in (2, 3, 6) for step in range(10)]
    everything, _ = samples(tmp_path, pattern, ranks)
    plan, _ = compiled(tools, linear, tmp_path, ranks, {"initial_scale_power": 8, "loss_scale_window": 2}, **settings)
    run = ("-n", ranks, "--threads", 1)
    lines, _ = tools.train(plan, everything, 10, *run, "--save", tmp_path / "saved", "--save-interval", 1, "--keep", 20)
    assert [line["skipped"] for line in lines] == pattern

    def told(line):
        return {key: line[key] for key in ("step", "loss", "grad_norm", "lr", "loss_scale", "skipped")}

    for step in range(1, 10):
        again = tmp_path / f"again{step}"
        resumed, _ = tools.train(plan, everything, 10, *run, "--resume", tmp_path / "saved", "--tag", f"global_step{step}", "--save", again)
        assert [told(line) for line in resumed] == [told(line) for line in lines[step:]]
        assert digest_of(again / "global_step10") == digest_of(tmp_path / "saved" / "global_step10")


# ---- what is refused

def test_verify_derives_the_rule(tools, linear, tmp_path):
    """Another configuration is put under the plan: only the arithmetic of its reference program can tell."""
    fp16 = {"initial_scale_power": 10, "loss_scale_window": 7, "hysteresis": 3}
    path, config = compiled(tools, linear, tmp_path, 2, fp16)
    text = tools("ds-opt", "verify", path, "--model", linear, "--config", config).stdout
    assert "the loss is scaled by DeepSpeed's rule, from 1024 on" in text
    for key, other in (("initial_scale_power", 11), ("loss_scale_window", 8), ("hysteresis", 2), ("consecutive_hysteresis", True),
                       ("min_loss_scale", 2), ("loss_scale", 1024)):
        document = json.loads(config.read_text())
        document["fp16"][key] = other
        wrong = tmp_path / f"{key}.json"
        wrong.write_text(json.dumps(document))
        plan = read_plan(path)
        plan.sources.configuration_sha256 = hashlib.sha256(wrong.read_bytes()).digest()
        broken = write_plan(tmp_path / f"{key}.dsplan", plan)
        assert " by the configuration" in tools.refused("ds-opt", "verify", broken, "--config", wrong), key


def unguarded(plan):
    """The update takes what the guard selects from."""
    made = {op.results[0]: op for op in plan.reference.ops if op.results}
    operands = next(op for op in plan.reference.ops if op.op == "train.adamw").operands  # rate, step, clip, momentum
    operands[2] = made[operands[2]].operands[1]


def of_some_gradients(plan):
    """The norm leaves a parameter's gradient out."""
    del next(op for op in plan.reference.ops if op.op == "train.global_norm").operands[0]


def counting_all(plan):
    """The learning rate follows a count of all steps."""
    made = {op.results[0]: op for op in plan.reference.ops if op.results}
    step = next(op for op in plan.reference.ops if op.op == "train.learning_rate").operands[0]
    counter = made[step].variables[0]
    store = next(op for op in plan.reference.ops if op.op == "train.store" and op.variables[0] == counter)
    made[store.operands[0]].operands[1] = made[store.operands[0]].operands[0]


@pytest.mark.parametrize("settings", [{}, CYCLE], ids=["plain", "cycled"])
@pytest.mark.parametrize("edit, sentence", [(unguarded, "must be left out where one of any rank is infinite or NaN"),
                                            (of_some_gradients, "does not leave out those of float16 whose gradients overflow"),
                                            (counting_all, "does not leave out those of float16 whose gradients overflow")])
def test_a_reference_program_without_the_guard_is_refused(tools, linear, tmp_path, edit, sentence, settings):
    path, _ = compiled(tools, linear, tmp_path, 2, {}, **settings)
    plan = read_plan(path)
    edit(plan)
    assert sentence in tools.refused("ds-opt", "verify", write_plan(tmp_path / "broken.dsplan", plan))


@pytest.mark.parametrize("settings, sentence", [
    ({"bf16": {"enabled": True}}, "so is bf16.enabled, and a plan computes in one of the two"),
    ({"fp16": {"enabled": True, "hysteresis": 0}}, "fp16.hysteresis is 0; it must be a whole number from 1"),
    ({"fp16": {"enabled": True, "loss_scale": -1}}, "fp16.loss_scale is -1; it must be 0, for a dynamic scale, or a float32 above 0"),
    ({"fp16": {"enabled": True, "min_loss_scale": 0}}, "fp16.min_loss_scale is 0; it must be a float32 above 0")])
def test_what_is_refused(tools, linear, tmp_path, settings, sentence):
    config = write_config(tmp_path / "c.json", 1, 1, **{"fp16": {"enabled": True}, **settings})
    assert sentence in tools.refused("ds-opt", "compile", linear, "--config", config, "--trainable", "^w$", "-o", tmp_path / "m.dsplan")

