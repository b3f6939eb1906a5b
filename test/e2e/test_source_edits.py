"""Edits of plan and reference program alike, which the checker therefore accepts: `ds-opt verify --model --config` refuses each at its
cause. Names, kinds and first values of variables; limits of inputs; operands of the update; state under another name; the model's own graph."""

import re

import plan_edits as edits
import pytest
from conftest import REPOSITORY, write_config
from plan_files import read_plan, write_plan

BUFFER, CONSTANT = 2, 5
MODELS = REPOSITORY / "test/e2e/hazards"
CONFIGURATIONS = {
    "gpt2": {"gradient_clipping": 0.5},
    "fp16": {"gradient_clipping": 0.5, "fp16": {"enabled": True}},
    "delayed": {"gradient_clipping": 0.5, "zero_optimization": {"stage": 0, "offload_optimizer": {"device": "cpu"}},
                "deepstatic": {"delayed_update": True}},
    "statistics": {},
    "frozen": {},
}
OPTIONS = {"frozen": ("--frozen", "ln_f.weight")}


@pytest.fixture(scope="module")
def subjects(tools, tmp_path_factory):
    """subjects(name) -> (plan, model, configuration); each is compiled once."""
    folder = tmp_path_factory.mktemp("edits")
    made = {}

    def compiled(name):
        if name not in made:
            model = MODELS / ("good-statistics" if name == "statistics" else "good-gpt2")
            config = write_config(folder / f"{name}.json", 1, 2, **CONFIGURATIONS[name])
            made[name] = folder / f"{name}.dsplan", model, config
            tools("ds-opt", "compile", model, "--config", config, *OPTIONS.get(name, ()), "-o", made[name][0])
            tools("ds-opt", "verify", made[name][0], "--model", model, "--config", config)
        return made[name]

    return compiled


def named(plan, ending):
    return next(one for one in plan.variables if one.name.endswith(ending))


def change(ending, of=None, **fields):
    """Of the first variable of that ending; `of`: whether it keeps its parameter."""
    def edit(plan):
        one = named(plan, ending)
        for field, value in fields.items():
            if field in ("fill", "literal"):
                setattr(one.source, field, value)
            else:
                setattr(one, field, value)
        if of is False:
            one.ClearField("of")
    return edit


def scaled_constant(plan):
    """A weight is called a folded constant and has three times its value."""
    one = named(plan, "running_var")
    one.name, one.kind, one.persistent, one.source.fill = "constant::99", CONSTANT, False, 9


def exchange(first, second, *fields):
    def edit(plan):
        one, other = named(plan, first), named(plan, second)
        for field in fields:
            mine, yours = getattr(one, field), getattr(other, field)
            setattr(one, field, yours)
            setattr(other, field, mine)
    return edit


def label(**fields):
    def edit(plan):
        for field, value in fields.items():
            setattr(next(one for one in plan.inputs if one.name == "labels"), field, value)
    return edit


def updates(plan):
    return [op for op in plan.reference.ops if op.op == "train.adamw"]


def clip_by_rate(count):
    """Updates take the learning rate instead of the factor that clips."""
    def edit(plan):
        for op in updates(plan)[:count]:
            op.operands[2] = op.operands[0]
        for place in edits.kernels(plan, "adamw")[:count]:
            operands = edits.at(plan, place).kernel.operands
            operands[6].CopyFrom(operands[4])
    return edit


def forget_a_gradient(plan):
    """The norm is of all gradients but the last."""
    del next(op for op in plan.reference.ops if op.op == "train.global_norm").operands[-1]
    (place,) = edits.kernels(plan, "global_norm")
    command = edits.at(plan, place)
    del command.kernel.operands[-2]
    del edits.attribute(command, "blocks").integers.values[-1]


def drop_the_increment(plan):
    """No update is counted: neither the schedule nor bias correction moves on."""
    ops = plan.reference.ops
    number = next(i for i, op in enumerate(ops) if op.op == "train.increment")
    (place,) = edits.kernels(plan, "increment")
    edits.idle(plan, place)
    del ops[number]
    for role in plan.roles:
        for routine in role.routines:
            for command in routine.commands:
                command.reference[:] = [one - (one > number) for one in command.reference if one != number]


def commands(plan, kernel):
    return [command for role in plan.roles for routine in role.routines for command in routine.commands if command.kernel.kernel == kernel]


def alike(attribute, value, *ops, functions=("microbatch", "evaluate")):
    """An attribute of all ops of those names in the reference program, and of the commands that implement them."""
    def edit(plan):
        for name in ops:
            numbers = {i for i, op in enumerate(plan.reference.ops) if op.op == f"train.{name}" and op.function in functions}
            for one in [plan.reference.ops[i] for i in numbers]:
                set_attribute(next(a for a in one.attributes if a.name == attribute), value)
            for command in commands(plan, name):
                if numbers.issuperset(command.reference):
                    set_attribute(edits.attribute(command, attribute), value)
    return edit


def set_attribute(attribute, value):
    setattr(attribute, attribute.WhichOneof("value"), value)


def exchange_query_and_key(plan):
    for name, first in (("attention", 0), ("attention_grad", 1)):
        for op in plan.reference.ops:
            if op.op == f"train.{name}":
                op.operands[first], op.operands[first + 1] = op.operands[first + 1], op.operands[first]
        for command in commands(plan, name):
            query, key = command.kernel.operands[first], command.kernel.operands[first + 1]
            kept = type(query).FromString(query.SerializeToString())
            query.CopyFrom(key)
            key.CopyFrom(kept)
    for op in plan.reference.ops:
        if op.op == "train.attention_grad":
            op.results[0], op.results[1] = op.results[1], op.results[0]
    for command in commands(plan, "attention_grad"):
        dq, dk = command.kernel.operands[6], command.kernel.operands[7]
        kept = type(dq).FromString(dq.SerializeToString())
        dq.CopyFrom(dk)
        dk.CopyFrom(kept)


KINDS = {
    # state in disguise
    "moment a constant": ("gpt2", change("ln_f.weight::exp_avg", kind=CONSTANT, fill=5, of=False), "ln_f.weight::exp_avg. holds the constant 5"),
    "moment a buffer": ("gpt2", change("ln_f.weight::exp_avg_sq", kind=BUFFER, of=False), "takes .*::exp_avg_sq, of kind BUFFER, which is neither"),
    "step a constant": ("gpt2", change("optimizer::step", kind=CONSTANT), "takes optimizer::step, of kind CONSTANT"),
    "step not at zero": ("gpt2", change("optimizer::step", fill=3), "optimizer::step is state of the training, and does not begin at zero"),
    "loss scale a constant": ("fp16", change("optimizer::loss_scale", kind=CONSTANT), "takes optimizer::loss_scale, of kind CONSTANT"),
    "count of overflows a buffer": ("fp16", change("loss_scale_hysteresis", kind=BUFFER), "hysteresis, of kind BUFFER"),
    "clean steps begin": ("fp16", change("loss_scale_clean_steps", fill=7), "clean_steps"),
    "moment under the scale's name": ("gpt2", change("ln_f.weight::exp_avg", name="optimizer::loss_scale", fill=5, of=False), "ln_f.weight"),
    # weights and buffers
    "buffer another value": ("statistics", scaled_constant, "takes constant::99, of kind CONSTANT, which is neither a tensor of the model"),
    "buffer renamed": ("statistics", change("running_var", name="other.running_var", fill=9), "neither a tensor of the model"),
    "buffer not exported": ("statistics", change("running_mean", persistent=False), "running_mean is not exported"),
    "buffer a constant": ("statistics", change("running_mean", kind=CONSTANT), "running_mean is of kind CONSTANT"),
    "parameter a buffer": ("frozen", change("ln_f.weight", kind=BUFFER), "ln_f.weight is of kind BUFFER in the plan, but a PARAMETER of the model"),
    "parameter not exported": ("gpt2", change("ln_f.weight", persistent=False), "ln_f.weight is not exported"),
    # inputs
    "another label ignored": ("gpt2", label(ignored=7), "label 7 for nothing in the plan, but .* label -100"),
    "any label": ("gpt2", label(limit=0), "may hold any value"),
    "a larger table": ("gpt2", label(limit=51), "values below 51"),
    # the update
    "all clipped by the rate": ("gpt2", clip_by_rate(None), "takes learning_rate.* asks for clip_factor"),
    "one clipped by the rate": ("gpt2", clip_by_rate(1), "takes learning_rate.* asks for clip_factor"),
    "norm of fewer": ("gpt2", forget_a_gradient, "takes global_norm"),
    "no step is counted": ("gpt2", drop_the_increment, "never updates optimizer::step"),
    "moments of two exchanged": ("gpt2", exchange("ln_f.weight::exp_avg", "ln_f.bias::exp_avg", "name", "of"), r"::exp_avg"),
    # names of state
    "moments of one exchanged": ("gpt2", exchange("ln_f.weight::exp_avg", "ln_f.weight::exp_avg_sq", "name"), "exp_avg"),
    "moments' names exchanged": ("gpt2", exchange("ln_f.weight::exp_avg", "ln_f.bias::exp_avg", "name"), "exp_avg"),
    "pending exchanged": ("delayed", exchange("ln_f.weight::pending", "ln_f.bias::pending", "name"), "pending"),
    "pending and parameter exchanged": ("delayed", exchange("ln_f.weight::pending", "ln_f.bias::pending", "name", "of"), "pending"),
    "parameters of state exchanged": ("gpt2", exchange("ln_f.weight::exp_avg", "ln_f.bias::exp_avg", "of"), "is state of the training, of "),
    # the model's own graph
    "epsilon of norms": ("gpt2", alike("epsilon", 0.1, "layer_norm"), r"ln_1.* has epsilon 0.10.* in the plan's .*, but epsilon 1.0.*e-05 by the model"),
    "epsilon in the evaluation": ("gpt2", alike("epsilon", 0.1, "layer_norm", functions=("evaluate",)), "ln_1.* by the model"),
    "scale of attention": ("gpt2", alike("scale", 0.5, "attention", "attention_grad"), "train.attention of .* has scale 0.5 in the plan's"),
    "attention sees all": ("gpt2", alike("causal", 0, "attention", "attention_grad"), "train.attention of .* has causal 0 in"),
    "query and key exchanged": ("gpt2", exchange_query_and_key, "train.attention of .* has the operands"),
    "evaluation is a sum": ("gpt2", alike("reduction", "sum", "cross_entropy", functions=("evaluate",)), "cross_entropy"),
    "another label ignored in the gradient": ("gpt2", alike("ignore_index", 7, "cross_entropy_grad"), "cross_entropy_grad of .* has ignore_index 7 in"),
    "pending scalars exchanged": ("delayed", exchange("pending_rate", "pending_clip", "name"), "pending_"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_edit_is_refused_at_its_cause(tools, subjects, kind):
    name, edit, expected = KINDS[kind]
    path, model, config = subjects(name)
    plan = read_plan(path)
    before = plan.SerializeToString(deterministic=True)
    edit(plan)
    assert plan.SerializeToString(deterministic=True) != before
    broken = write_plan(path.with_name(f"{kind.replace(' ', '-')}.dsplan"), plan)
    refused = tools.refused("ds-opt", "verify", broken, "--model", model, "--config", config)
    assert re.search(expected, refused), refused


def test_memory_that_is_kept_free_counts_as_far_as_numbers_reach(tools, subjects):
    path, *_ = subjects("gpt2")
    plan = read_plan(path)
    plan.machine.device_memory, plan.machine.reserve = 1 << 30, (1 << 64) - (1 << 12)
    refused = tools.refused("ds-opt", "verify", write_plan(path.with_name("reserve.dsplan"), plan))
    assert "(memory)" in refused, refused
