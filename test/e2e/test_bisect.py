"""ds-run --bisect: plans that should agree do, and a plan with one wrong command is found at the first tensor that it spoils."""

import re

import numpy
import pytest
from conftest import REPOSITORY, write_config
from plan_files import read_plan, write_plan
from safetensors.numpy import save_file

SMALL = {"reduce_bucket_size": 3000, "stage3_prefetch_bucket_size": 3000, "stage3_param_persistence_threshold": 10}
PIPE = {"pipeline": {"stages": 2, "schedule": "1f1b"}}
# name: model, ranks, micro-batches of a rank, ZeRO stage, more of zero_optimization, the deepstatic section, ds-opt's flags
PLANS = {
    "gpt2": ("gpt2", 1, 4, 0, {}, {}),
    "gpt2-again": ("gpt2", 1, 4, 0, {}, {}),
    "zero0": ("gpt2", 4, 1, 0, {}, {}),
    "zero1": ("gpt2", 4, 1, 1, {"overlap_comm": True}, {}),
    "zero2": ("gpt2", 2, 2, 2, {"overlap_comm": True}, {}),
    "zero3": ("gpt2", 4, 1, 3, {}, {}),
    "zero3-overlap": ("gpt2", 2, 2, 3, {"overlap_comm": True}, {}),
    "recompute": ("gpt2", 1, 4, 0, {}, {"recompute": "full"}),
    "softmax": ("gpt2", 1, 4, 0, {}, {}, "--without", "ds-regroup-attention"),
    "llama": ("llama", 1, 4, 0, {}, {}),
    "pipeline": ("llama", 2, 4, 0, {}, PIPE),
    "zb-h1": ("llama", 2, 4, 0, {}, {"pipeline": {"stages": 2, "schedule": "zb-h1"}}),
    "interleaved": ("llama", 2, 4, 0, {}, {"pipeline": {"stages": 2, "schedule": "interleaved", "chunks": 2}}),
    "pipeline-zero2": ("llama", 4, 2, 2, {}, PIPE),
    **{f"without-{short}": ("gpt2", 1, 4, 0, {}, {}, "--without", f"ds-{short}")
       for short in ("repeat-elementwise", "fuse-elementwise", "elide-copies", "reuse-dying-operands", "order-for-memory", "concat-pads")},
    "half-batch": ("gpt2", 1, 2, 0, {}, {}),
    "single": ("gpt2", 1, 1, 0, {}, {}),
    "without-elide-accumulation": ("gpt2", 1, 1, 0, {}, {}, "--without", "ds-elide-accumulation"),
}
AGREE = [("gpt2", other) for other, (model, ranks, accumulation, *_) in PLANS.items()
         if model == "gpt2" and ranks * accumulation == 4 and other not in ("gpt2", "softmax")]
AGREE += [("llama", other) for other in ("pipeline", "zb-h1", "interleaved", "pipeline-zero2")]
AGREE += [("zero3", "zero2"), ("pipeline", "zb-h1"), ("single", "without-elide-accumulation")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("bisect")
    tokens = numpy.random.default_rng(0).integers(0, 8, (64, 4), dtype=numpy.int64)
    labels = numpy.random.default_rng(1).integers(0, 8, (64, 4), dtype=numpy.int64)
    save_file({"input_ids": tokens, "labels": labels}, path / "data.safetensors")
    return path


@pytest.fixture(scope="module")
def plan_of(tools, folder):
    """plan_of("zero3") -> the plan's path; each is compiled once."""

    def compiled(name):
        path = folder / f"{name}.dsplan"
        if not path.exists():
            model, ranks, accumulation, stage, more, own, *flags = PLANS[name]
            config = write_config(path.with_suffix(".json"), 1, accumulation, gradient_clipping=0.5, deepstatic=own,
                                  zero_optimization={"stage": stage, **SMALL, **more})
            tools("ds-opt", "compile", REPOSITORY / "test/e2e/hazards" / f"good-{model}", "--config", config, "--ranks", ranks,
                  "-o", path, *flags)
        return path

    return compiled


def bisect(tools, a, b, data, *more, code):
    return tools("ds-run", "--bisect", a, b, "--data", data, *more, code=code).stdout


def counts(text):
    """Tensors that are equal, that were cut, that one plan alone has."""
    return [int(number) for number in re.search(r"(\d+) tensors?[^;]*; (\d+) were compared in pieces, (\d+) exist in one plan only", text).groups()]


@pytest.mark.parametrize("a,b", AGREE, ids=lambda name: name)
def test_plans_that_should_agree_do(a, b, tools, plan_of, folder):
    text = bisect(tools, plan_of(a), plan_of(b), folder / "data.safetensors", "--steps", 2, code=0)
    assert text.startswith("no difference among ")
    equal, pieces, alone = counts(text)
    assert equal > (150 if a == "single" else 800) and alone < equal / 4, text
    assert (pieces > 0) == ({a, b} & {"zero1", "zero3"} != set()), text  # what slices cut
    if b == "gpt2-again":
        assert alone == 0


# ---- plans with one wrong command ----


class Planted:
    """A plan to spoil. `command` finds one by its kernel and the name of its reference op."""

    def __init__(self, path):
        self.plan = read_plan(path)

    def op(self, name, kind):
        return next(op for op in self.plan.reference.ops if op.name == name and op.op == kind and op.function != "evaluate")

    def command(self, kind, name, only_for=None, role=None):
        """The step's command that implements train.`kind` of that name, here for one micro-step alone or for all."""
        for held in self.plan.roles:
            step = next(program for program in held.programs if program.name == "step")
            for call in step.calls:
                for index, command in enumerate(held.routines[call.routine].commands):
                    ops = [self.plan.reference.ops[number] for number in command.reference]
                    if any(op.op == f"train.{kind}" and op.name == name for op in ops) and role in (None, held.name):
                        return self.only_for(held, step, call.routine, only_for).commands[index]
        raise AssertionError(f"no command does train.{kind} of {name}")

    @staticmethod
    def only_for(role, step, routine, microstep):
        if microstep is None:
            return role.routines[routine]
        role.routines.add().CopyFrom(role.routines[routine])
        call = next(call for call in step.calls if call.routine == routine and call.microbatch == microstep)
        call.routine = len(role.routines) - 1
        return role.routines[call.routine]


def attribute(message, name):
    return next(one for one in message.kernel.attributes if one.name == name)


def written(command):
    return [operand for operand in command.kernel.operands if operand.access in (2, 3)]


def copy_operand(target, source):
    """The target operand lies where the source does."""
    for field in ("buffer", "byte_offset", "rank_stride", "communicator"):
        setattr(target, field, getattr(source, field))


def transposed_factor(planted):
    attribute(planted.command("matmul", "transformer/h.0/attn/c_proj/node_addmm_1", only_for=2), "trans_b").integer = 1
    return "step 1, micro-batch 2, train.matmul transformer/h.0/attn/c_proj/node_addmm_1, result 1 of 1"


def wrong_epsilon(planted):
    attribute(planted.command("layer_norm", "transformer/h.0/ln_2/node_layer_norm_1"), "epsilon").number = 0.01
    return "step 1, micro-batch 0, train.layer_norm transformer/h.0/ln_2/node_layer_norm_1, result 1 of 3"


def swapped_operands(planted):
    query, key = planted.command("attention", "transformer/h.0/attn/node_scaled_dot_product_attention", only_for=1).kernel.operands[:2]
    query.buffer, key.buffer = key.buffer, query.buffer
    return "step 1, micro-batch 2, train.attention transformer/h.0/attn/node_scaled_dot_product_attention, result 1 of 2"


def wrong_axis(planted):
    command = planted.command("softmax", next(op.name for op in planted.plan.reference.ops if op.op == "train.softmax"), only_for=3)
    attribute(command, "axis").integer = 2
    return "step 1, micro-batch 3, train.softmax transformer/h.0/attn/node_Softmax_184, result 1 of 1"


def dropped_accumulate(planted):
    command = planted.command("accumulate", "transformer.h.0.mlp.c_fc.weight", only_for=2)
    target, (first, second, _) = written(command)[0], command.kernel.operands
    copy_operand(first if second.buffer == target.buffer else second, target)  # the sum is doubled instead
    return "step 1, micro-batch 2, train.accumulate transformer.h.0.mlp.c_fc.weight, variable transformer.h.0.mlp.c_fc.weight::gradient"


def wrong_scale(planted):
    for variable in planted.plan.variables:
        if variable.name == "constant::1_0":
            variable.source.Clear()
            variable.source.fill = 0.3  # of the loss: 1 / 4
    return "step 1, micro-batch 0, train.cross_entropy_grad node_cross_entropy_loss, result 1 of 1"


def wrong_constant_of_gelu(planted):
    command = planted.command("mul", "transformer/h.0/mlp/act/node_mul_125", only_for=1)
    attribute(command, "constants").numbers.values[0] += 0.125
    return "step 1, micro-batch 1, train.mul transformer/h.0/mlp/act/node_mul_125, result 1 of 1"


def wrong_beta(planted):
    attribute(planted.command("adamw", "transformer.h.0.attn.c_proj.bias"), "beta1").number = 0.8
    return "step 1, update, train.adamw transformer.h.0.attn.c_proj.weight, variable transformer.h.0.attn.c_proj.weight"


def wrong_rank_stride(planted):
    parameter = planted.command("adamw", "transformer.h.0.mlp.c_fc.weight").kernel.operands[0]
    assert parameter.rank_stride > 0
    parameter.rank_stride = 0  # every rank updates rank 0's slice
    return "step 1, update, train.adamw transformer.h.0.mlp.c_fc.weight, variable transformer.h.0.mlp.c_fc.weight,"


def fill_instead_of_gather(planted):
    role, gathers = planted.plan.roles[0], []
    reader = planted.command("layer_norm", "transformer/h.0/ln_1/node_layer_norm").kernel.operands[1]
    forward = next(routine for routine in role.routines if routine.phase == 5)
    for command in forward.commands:
        if command.HasField("collective") and command.collective.parts[0].target.buffer == reader.buffer:
            gathers.append(command)
    target = type(reader)()
    target.CopyFrom(gathers[0].collective.parts[0].target)
    gathers[0].fill.target.CopyFrom(target)
    return "step 1, micro-batch 0, train.layer_norm transformer/h.0/ln_1/node_layer_norm, result 1 of 3"


def wrong_message(planted):
    """Stage 0 sends another tensor of the same shape."""
    role = planted.plan.roles[0]
    forward = next(routine for routine in role.routines if routine.phase == 5)
    send = next(command.send for command in forward.commands if command.HasField("send"))
    size = role.buffers[send.sources[0].buffer].bytes
    others = [operand.buffer for command in forward.commands for operand in written(command)
              if operand.buffer != send.sources[0].buffer and list(operand.shape) == list(send.sources[0].shape)]
    assert role.buffers[others[0]].bytes == size
    send.sources[0].buffer = others[0]
    return "step 1, micro-batch 0, train.rms_norm model/layers.0/post_attention_layernorm/node_mul_210, result 1 of 2"


def wrong_first_rate(planted):
    command = planted.command("learning_rate", "lr")
    for one in command.kernel.attributes:
        if one.HasField("number") and one.number == 1e-3:
            one.number = 2e-3
    return "step 1, update, train.learning_rate lr, result 1 of 1"


def wrong_rate_of_a_stage(planted):
    """Of both stages, which compute it alike, the second."""
    command = planted.command("learning_rate", "lr", role="stage1")
    for one in command.kernel.attributes:
        if one.HasField("number") and one.number == 1e-3:
            one.number = 2e-3
    return "step 1, update, train.learning_rate lr, result 1 of 1"


def dropped_update(planted):
    """One parameter is never updated: where its command stood, nothing is filled."""
    command = planted.command("adamw", "transformer.ln_f.bias")
    target = type(command.kernel.operands[1])()
    target.CopyFrom(command.kernel.operands[1])
    target.access, target.shape[:] = 2, [0]
    command.fill.target.CopyFrom(target)
    del command.reference[:]
    return "after step 1, variable transformer.ln_f.bias"


def wrong_feed(planted):
    """The last stage gets the tokens instead of the labels, which are moved by one first of all."""
    feeds = [command.feed for role in planted.plan.roles for routine in role.routines for command in routine.commands
             if command.HasField("feed")]
    assert {feed.input for feed in feeds} == {0, 1}
    for feed in feeds:
        feed.input = 0
    return "step 1, micro-batch 0, train.pad node_pad, result 1 of 1"


def wrong_gradient_slice(planted):
    """A micro-batch replaces the sum of those before it. The first has none before it."""
    part = planted.command("accumulate", "transformer.h.0.ln_2.weight").collective.parts[0]
    part.accumulate, part.target.access = False, 2
    return "step 1, micro-batch 3, train.accumulate transformer.h.0.ln_2.bias, variable transformer.h.0.ln_2.bias::gradient"


PLANTED = [("gpt2", "gpt2", transposed_factor), ("gpt2", "zero3", wrong_epsilon), ("gpt2", "zero2", swapped_operands),
           ("softmax", "softmax", wrong_axis), ("gpt2", "gpt2", dropped_accumulate), ("llama", "pipeline", wrong_scale),
           ("gpt2", "gpt2", wrong_constant_of_gelu), ("gpt2", "zero3", wrong_beta), ("gpt2", "zero1", wrong_rank_stride),
           ("gpt2", "zero3", fill_instead_of_gather), ("llama", "pipeline", wrong_message), ("gpt2", "zero0", wrong_first_rate),
           ("llama", "pipeline", wrong_rate_of_a_stage),
           ("gpt2", "gpt2", dropped_update), ("llama", "zb-h1", wrong_feed), ("gpt2", "zero3-overlap", wrong_gradient_slice)]


@pytest.mark.parametrize("a,b,plant", PLANTED, ids=lambda one: getattr(one, "__name__", one))
def test_planted(a, b, plant, tools, plan_of, folder, tmp_path):
    planted = Planted(plan_of(b))
    expected = plant(planted)
    wrong = write_plan(folder / f"{plant.__name__}.dsplan", planted.plan)
    text = bisect(tools, plan_of(a), wrong, folder / "data.safetensors", code=1)
    assert re.match("first difference: " + expected, text), text
    assert "differ\n" in text and counts(text)[0] > 0, text


def test_first_values(tools, plan_of, folder):
    plan = read_plan(plan_of("gpt2"))
    next(variable for variable in plan.variables if variable.name == "transformer.ln_f.bias").source.fill = 0.5
    text = bisect(tools, plan_of("gpt2"), write_plan(folder / "first.dsplan", plan), folder / "data.safetensors", code=1)
    assert text.startswith("first difference: before the first step, variable transformer.ln_f.bias, float32[16]\n"), text
    assert "16 of 16 elements differ" in text


def test_a_reassociated_plan_is_noted(tools, plan_of, folder):
    plan = read_plan(plan_of("gpt2"))
    plan.numerics = "reassociated"
    done = tools("ds-run", "--bisect", plan_of("gpt2"), write_plan(folder / "noted.dsplan", plan), "--data", folder / "data.safetensors")
    assert done.stderr.startswith("note: ") and "noted.dsplan says that its numerics are reassociated" in done.stderr


def other_configuration(tools, folder):
    config = write_config(folder / "other.json", 1, 4, {"type": "AdamW", "params": {"lr": 1e-3, "weight_decay": 0.2}}, gradient_clipping=0.5)
    tools("ds-opt", "compile", REPOSITORY / "test/e2e/hazards/good-gpt2", "--config", config, "-o", folder / "other.dsplan")
    return folder / "other.dsplan"


def test_plans_that_do_not_correspond(tools, plan_of, folder):
    def sentence(a, b):
        return tools.refused("ds-run", "--bisect", a, b, "--data", folder / "data.safetensors")

    assert "do not correspond: parameter transformer." in sentence(plan_of("gpt2"), plan_of("llama"))
    assert "do not correspond: the batch of a step is 4 in A and 2 in B" in sentence(plan_of("gpt2"), plan_of("half-batch"))
    other = sentence(plan_of("gpt2"), other_configuration(tools, folder))
    assert re.search(r"train.adamw \S+ has another weight_decay in A's reference program", other)
    assert str(folder / "data.safetensors") in sentence(plan_of("gpt2"), folder / "data.safetensors")
    assert "nowhere.dsplan" in sentence(folder / "nowhere.dsplan", plan_of("gpt2"))
    plan = read_plan(plan_of("gpt2"))
    plan.roles[0].arenas[0].bytes = 1 << 46
    assert "could not be run to compare it" in sentence(plan_of("gpt2"), write_plan(folder / "large.dsplan", plan))


def test_usage(tools, plan_of, folder):
    a, data = plan_of("gpt2"), folder / "data.safetensors"
    assert "needs --data" in tools.refused("ds-run", "--bisect", a, a, code=2)
    assert "is a third" in tools.refused("ds-run", a, "--bisect", a, a, "--data", data, code=2)
    assert "--bisect" in tools.refused("ds-run", "--bisect", a, "--data", data, code=2)
    for flag in (["--metrics", "m"], ["--export", "w"], ["-n", 1], ["--steps", 0], ["--device", "null"]):
        assert flag[0] in tools.refused("ds-run", "--bisect", a, a, "--data", data, *flag, code=2)
