"""deepstatic.delayed_update: each update is of the gradient of the step before. PyTorch's results with that rule, and the same bits however the plan is made.

`make test` takes a few combinations, DS_TEST_SCOPE=all all of them.
"""

import hashlib
import itertools
import json
import os
import subprocess
import sys

import numpy
import pytest
from conftest import REPOSITORY, write_config
from offload_plans import BACKWARD, FORWARD, MODELS, UPDATE, compile_plan, in_routines, kernels, report_of, updated_there, with_links
from plan_files import read_plan, write_plan
from test_parity import ADAGRAD, ADAM, ADAMW, NESTEROV, check_ten_steps
from torch_reference import initializers
from weights import read_weights

WHOLE = os.environ.get("DS_TEST_SCOPE") == "all"
STEPS = 4
DELAYED = {"deepstatic": {"delayed_update": True}, "zero_optimization": {"offload_optimizer": {"device": "cpu"}}}
RULES = {
    "adamw": dict(optimizer=ADAMW), "adam-clip": dict(optimizer=ADAM, gradient_clipping=1.0),
    "warmup-clip": dict(optimizer=ADAMW, gradient_clipping=0.5, scheduler={"type": "WarmupLR", "params": {"warmup_num_steps": 5, "warmup_type": "linear"}}),
    "sgd-nesterov-decay-clip": dict(optimizer=NESTEROV, gradient_clipping=1.0, scheduler={
        "type": "WarmupDecayLR", "params": {"warmup_num_steps": 3, "total_num_steps": 12, "warmup_max_lr": 0.05}}),
    "adagrad": dict(optimizer=ADAGRAD)}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("accumulation", [1, 4])
def test_ten_steps_are_pytorchs_a_step_late(rule, accumulation, tools, exported, text_data, tmp_path):
    """Losses, norms, rates and weights of a loop in PyTorch that steps with the gradients, clipped, and the rate of the step before."""
    check_ten_steps("gpt2", accumulation, {**RULES[rule], **DELAYED}, tools, exported, text_data, tmp_path)


# ---- the same bits, however the plan is made

# Model, ZeRO stage, ranks, pipeline stages, micro-batches.
ALL = [("gpt2", stage, ranks, stages, accumulation)
       for stage, ranks, stages, accumulation in itertools.product((0, 1, 2, 3), (1, 2), (1, 2), (1, 2))
       if stages <= ranks and (stage == 0 or ranks > stages)]
SOME = [("gpt2", 0, 1, 1, 1), ("gpt2", 0, 1, 1, 2), ("gpt2", 1, 2, 1, 1), ("gpt2", 2, 2, 1, 2), ("gpt2", 3, 2, 1, 1), ("gpt2", 0, 2, 2, 2), ("gpt2", 0, 2, 1, 1)]


def delayed(space, folder, **more):
    return {**more, "deepstatic": {"delayed_update": True, **more.get("deepstatic", {})}, **updated_there(space, folder)}


@pytest.fixture
def model(exported):
    return exported("gpt2", *MODELS["gpt2"][0])


@pytest.fixture
def bits(tools, tmp_path, model, text_data):
    """bits(case, keys, flag...) -> hash of the weights after four steps, losses, and the report of the plan."""
    def train(case, keys, *more):
        plan, report = compile_plan(tools, tmp_path, model, 8 // (case[2] // case[3]) // case[4], case, keys, *more)
        out = plan.with_suffix(".safetensors")
        metrics, _ = tools.train(plan, text_data(64), STEPS, "-n", case[2], "--threads", 1, "--export", out)
        return hashlib.sha256(out.read_bytes()).hexdigest(), [(line["loss"], line["grad_norm"]) for line in metrics], report
    return train


@pytest.mark.parametrize("clipping", [0, 0.5])
@pytest.mark.parametrize("case", ALL if WHOLE else SOME, ids=str)
def test_the_same_bits(tools, tmp_path, bits, case, clipping):
    """In host memory and in files, over fast and slow links and where nobody knows them: the bits of the plan in which no update is moved, and by
    which the updates behind the backward are made one after another."""
    plain = bits(case, delayed("host", tmp_path, gradient_clipping=clipping), "--without", "ds-advance-updates", "--without", "ds-elide-pending-copies")
    links = [(20, 5), (0.5, 0.1)] if WHOLE else [(5, 2)]
    for space in ("host", "nvme"):
        for flags in ((), *(with_links(tmp_path, *speeds) for speeds in links)):
            other = bits(case, delayed(space, tmp_path, gradient_clipping=clipping), *flags)
            assert other[:2] == plain[:2], (space, flags)
            assert other[2]["stale"] and other[2]["numerics"] == plain[2]["numerics"]
    if plain[2]["numerics"] == "bit-equal":
        data = case[2] // case[3]
        assert plain[:2] == bits(("gpt2", 0, 1, 1, data * case[4]), delayed("host", tmp_path, gradient_clipping=clipping))[:2]
    assert plain[0] != bits(case, updated_there("host", tmp_path) | {"gradient_clipping": clipping})[0], "nothing is delayed"


KINDS = {
    "bf16": {"bf16": {"enabled": True}}, "fp16": {"fp16": {"enabled": True, "initial_scale_power": 40}},
    "tokens": {"deepstatic": {"loss_normalization": "tokens"}}, "activations too": {"activation_checkpointing": {"cpu_checkpointing": True}},
    "Lion": {"optimizer": {"type": "Lion", "params": {"lr": 0.001}}}, "Lamb": {"optimizer": {"type": "Lamb", "params": {"lr": 0.01}}},
    "SGD": {"optimizer": {"type": "SGD", "params": {"lr": 0.01, "momentum": 0.9}}}, "Adagrad": {"optimizer": {"type": "Adagrad", "params": {"lr": 0.01}}},
    "momentum": {"scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 1e-4, "cycle_max_lr": 1e-2, "cycle_first_step_size": 2, "cycle_min_mom": 0.5, "cycle_max_mom": 0.9}}},
    "groups": {"deepstatic": {"parameter_groups": [{"match": "bias|ln_", "weight_decay": 0.0, "lr_factor": 0.5}, {"match": "wpe", "lr_factor": 2.0}]}},
    "by layer": {"deepstatic": {"pipeline": {"schedule": "accumulate-by-layer"}}}}
ONCE = {"by layer": ("gpt2", 0, 1, 1, 2), "groups": ("gpt2", 2, 2, 1, 1), "fp16": ("gpt2", 1, 2, 1, 1)}


@pytest.mark.parametrize("kind", KINDS)
def test_what_an_update_takes(tools, tmp_path, bits, kind):
    """Every optimizer and schedule, 16 bits with steps that are left out, parameter groups: the same bits in host memory and files, over a link or none."""
    case, keys = ONCE.get(kind, ("gpt2", 0, 1, 1, 1)), KINDS[kind]
    without = {key: value for key, value in keys.items() if key != "activation_checkpointing"}
    plain = bits(case, delayed("host", tmp_path, **without), "--without", "ds-advance-updates", "--without", "ds-elide-pending-copies")
    links = with_links(tmp_path, 5, 2)
    for space, flags in (("host", ()), ("host", links), ("nvme", links)):
        assert bits(case, delayed(space, tmp_path, **keys), *flags)[:2] == plain[:2], (space, flags)


def test_little_host_memory(tools, tmp_path, model, text_data, bits):
    """With less than pending gradients and sums take, both lie in the file."""
    case, keys = ("gpt2", 0, 1, 1, 1), delayed("nvme", tmp_path)
    expected = bits(case, keys)
    most = expected[2]["ranks_detail"][0]["memory"]["host"]["arena_bytes"]
    less = bits(case, keys, "--host-memory", 900000)
    assert less[:2] == expected[:2] and less[2]["ranks_detail"][0]["memory"]["host"]["arena_bytes"] <= 900000 < most


def test_a_share_stays(tmp_path, bits):
    """What stays in device memory is updated there, by the gradient of the step before, too."""
    case = ("gpt2", 0, 1, 1, 1)
    keys = delayed("host", tmp_path)
    expected = bits(case, keys)
    keys["zero_optimization"]["offload_optimizer"]["ratio"] = 0.5
    assert bits(case, keys, *with_links(tmp_path, 5, 2))[:2] == expected[:2]


@pytest.mark.parametrize("case", [("gpt2", 0, 1, 1, 1), ("gpt2", 2, 2, 1, 2)], ids=str)
def test_a_restart_has_the_same_bits(tools, tmp_path, model, text_data, case):
    """A checkpoint holds the gradients that wait, wherever they lie; exported weights lack them."""
    plans = [compile_plan(tools, tmp_path, model, 2, case, delayed(space, tmp_path))[0] for space in ("host", "nvme")]
    ends = set()
    for first, second in itertools.product(plans, plans):
        folder, out = tmp_path / f"{first.stem}-{second.stem}", tmp_path / "weights"
        tools.train(first, text_data(64), 2, "-n", case[2], "--threads", 1, "--save", folder)
        tools.train(second, text_data(64), 5, "-n", case[2], "--threads", 1, "--resume", folder, "--export", out)
        ends.add(hashlib.sha256(out.read_bytes()).hexdigest())
    tools.train(plans[0], text_data(64), 5, "-n", case[2], "--threads", 1, "--export", tmp_path / "straight")
    assert ends == {hashlib.sha256((tmp_path / "straight").read_bytes()).hexdigest()}


def test_checkpoints_of_the_other_rule_are_refused(tools, tmp_path, model, text_data):
    """Gradients that wait are state: a checkpoint without them, or with some that nobody would take, is of another plan."""
    case, there = ("gpt2", 0, 1, 1, 1), updated_there("host", tmp_path)
    late, own = (compile_plan(tools, tmp_path, model, 2, case, keys)[0] for keys in (delayed("host", tmp_path), there))
    for first, second, sentence in ((own, late, "it has no "), (late, own, "::pending, which the plan has not")):
        folder = tmp_path / f"{first.stem}-{second.stem}"
        tools.train(first, text_data(64), 2, "--threads", 1, "--save", folder)
        assert sentence in tools.refused("ds-run", second, "--data", text_data(64), "--steps", 3, "--resume", folder, "--quiet")


def test_the_first_step_updates_nothing(tools, tmp_path, model, text_data):
    """After one step weights are what they were, and the second step's loss is of these."""
    plan, _ = compile_plan(tools, tmp_path, model, 8, ("gpt2", 0, 1, 1, 1), delayed("host", tmp_path))
    tools.train(plan, text_data(64), 1, "--threads", 1, "--export", tmp_path / "one")
    weights, _ = read_weights(tmp_path / "one")
    first = initializers(model)
    for name, value in weights.items():
        assert numpy.array_equal(value, first[name].double().numpy()), name


# ---- what is said of it

def test_it_is_said_to_be_stale(tools, tmp_path, model):
    """ds-opt compile, report, diff and verify with a certificate say so, and nothing says it of other plans."""
    config = write_config(tmp_path / "c.json", 8, **DELAYED)
    plan, other = tmp_path / "p.dsplan", tmp_path / "q.dsplan"
    said = tools("ds-opt", "compile", model, "--config", config, "-o", plan).stdout
    assert said.count("note: updates are stale: each is of the gradient of the step before") == 1
    assert "note: " not in tools("ds-opt", "compile", model, "--config", config, "--set", "deepstatic.delayed_update=false", "-o", other).stdout
    assert "numerics bit-equal, stale: each update is of the gradient of the step before" in tools("ds-opt", "report", plan).stdout
    assert "stale: " not in tools("ds-opt", "report", other).stdout
    assert [report_of(tools, one)["stale"] for one in (plan, other)] == [True, False]
    assert "updates  of their own step  stale" in tools("ds-opt", "diff", other, plan, code=None).stdout
    tools("ds-opt", "verify", plan, "--model", model, "--config", config, "--certificate", tmp_path / "c")
    assert json.loads((tmp_path / "c").read_text())["stale"]
    assert "updates are stale: each is of the gradient and the scalars of the step before" in tools("ds-opt", "verify", plan, "--config", config).stdout


@pytest.mark.parametrize("asked", [True, False])
def test_verify_compares_it_with_the_configuration(tools, tmp_path, asked):
    """A plan whose configuration asks for the other rule is refused, also where its digest is right."""
    model = REPOSITORY / "test/e2e/hazards/good-gpt2"
    config, other = (write_config(tmp_path / f"{name}.json", 1, **{**DELAYED, "deepstatic": {"delayed_update": value}}) for name, value in (("c", asked), ("d", not asked)))
    plan = tmp_path / "p.dsplan"
    tools("ds-opt", "compile", model, "--config", config, "-o", plan)
    changed = read_plan(plan)
    changed.sources.configuration_sha256 = hashlib.sha256(other.read_bytes()).digest()
    refused = tools.refused("ds-opt", "verify", write_plan(tmp_path / "changed.dsplan", changed), "--model", model, "--config", other)
    assert f"the updates of the plan are of {'the step before' if asked else 'their own step'}, but deepstatic.delayed_update is {'false' if asked else 'true'}" in refused


@pytest.mark.parametrize("kind", ["plain", "clipped", "files", "sums", "stages", "16 bits"])
def test_ds_audit_agrees(tools, tmp_path, kind):
    """The second opinion on plans runs the reference program and the commands; it needs to know nothing of delays."""
    case = {"sums": (None, 2, 2, 1, 2), "stages": (None, 0, 2, 2, 2)}.get(kind, (None, 0, 1, 1, 1))
    keys = delayed("nvme" if kind == "files" else "host", tmp_path, gradient_clipping=0 if kind == "plain" else 0.5, fp16={"enabled": kind == "16 bits"})
    model = REPOSITORY / "test/e2e/hazards/good-gpt2"
    plan, _ = compile_plan(tools, tmp_path, model, 1, case, keys, *with_links(tmp_path, 5, 2))
    done = subprocess.run([sys.executable, REPOSITORY / "tools/ds-audit/ds-audit", plan, "--model", model], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("audited: "), done.stderr


# ---- planted defects

@pytest.fixture(scope="module")
def planted(tools, exported, tmp_path_factory):
    """A plan whose host updates beside the forward, by gradients that lie where they have left for in the step before."""
    folder = tmp_path_factory.mktemp("planted")
    keys = delayed("host", folder, optimizer={"type": "SGD", "params": {"lr": 0.01, "momentum": 0.9}})
    return compile_plan(tools, folder, exported("gpt2", *MODELS["gpt2"][0]), 1, ("", 0, 1, 1, 1), keys, *with_links(folder, 5, 2))[0]


def updates(role):
    return kernels(role, FORWARD, "host_compute", "sgd")


def copies_of_pending(role):
    """By the buffer of a pending gradient, the kernel that copies this step's there: of what stays in device memory, or where such copies are not elided."""
    return {command.kernel.operands[1].buffer: (routine, number, command) for routine, number, command in in_routines(role, UPDATE)
            if command.kernel.kernel == "elementwise" and role.buffers[command.kernel.operands[1].buffer].name.endswith("::pending")}


def of_this_steps_gradient(role):
    """An update reads what this step has summed."""
    pending = copies_of_pending(role)
    command = next(command for command in kernels(role, UPDATE, "compute", "sgd") if command.kernel.operands[1].buffer in pending)
    gradient = pending[command.kernel.operands[1].buffer][2].kernel.operands[0]
    command.kernel.operands[1].buffer, command.kernel.operands[1].byte_offset = gradient.buffer, gradient.byte_offset


def stored_before_it_is_read(role):
    """This step's gradient takes the place of the one that waited, and then the update reads it."""
    pending = copies_of_pending(role)
    update = next(command for command in kernels(role, UPDATE, "compute", "sgd") if command.kernel.operands[1].buffer in pending)
    routine, number, _ = pending[update.kernel.operands[1].buffer]
    place = list(routine.commands).index(update)
    commands = list(routine.commands)
    commands.insert(place, commands.pop(number))
    del routine.commands[:]
    routine.commands.extend(commands)


def of_another_parameter(role):
    one = updates(role)[0]
    other = next(command for command in updates(role)[1:] if command.kernel.operands[1].shape == one.kernel.operands[1].shape)
    one.kernel.operands[1].CopyFrom(other.kernel.operands[1])


def with_this_steps_scalars(role):
    """An update on the device takes the learning rate of this step."""
    command = kernels(role, UPDATE, "compute", "sgd")[0]
    rate = kernels(role, UPDATE, "compute", "learning_rate")[0]
    command.kernel.operands[3].CopyFrom(rate.kernel.operands[1])
    command.kernel.operands[3].access = 1


def not_kept_for_the_next_step(role):
    """A gradient leaves for where the next step's update of another parameter finds it; that one's update has been made by then."""
    leave = [command for _, _, command in in_routines(role, BACKWARD) if command.HasField("copy") and role.buffers[command.copy.target.buffer].name.endswith("::pending")]
    one = leave[0]
    later = next(command for command in leave[1:] if command.copy.target.shape == one.copy.target.shape)
    later.copy.target.CopyFrom(one.copy.target)


def taken_while_it_is_read(role):
    """Gradients do not wait for the updates that read those before them."""
    for update in updates(role):
        for routine in role.routines:
            for command in routine.commands:
                if command.HasField("copy"):
                    kept = [wait for wait in command.waits if wait.event not in update.signals]
                    del command.waits[:]
                    command.waits.extend(kept)


def updated_before_the_parameter_has_gone(role):
    """An update does not wait for the copy of its parameter to the device."""
    fetches = {event for routine in role.routines for command in routine.commands if command.HasField("copy") and role.queues[command.queue].name == "fetch" for event in command.signals}
    for update in updates(role):
        kept = [wait for wait in update.waits if wait.event not in fetches]
        del update.waits[:]
        update.waits.extend(kept)


def comes_after_its_update(role):
    """A parameter goes to the device once it is updated: this step would compute with what the next one begins with."""
    update = updates(role)[0]
    fetch = next(command for routine in role.routines for command in routine.commands if command.HasField("copy") and command.copy.source.buffer == update.kernel.operands[0].buffer)
    kept = [wait for wait in update.waits if wait.event not in fetch.signals]
    del update.waits[:]
    update.waits.extend(kept)
    fetch.waits.add(event=update.signals[0])


@pytest.mark.parametrize("edit, sentence", [
    (comes_after_its_update, " after its update, but "), (of_this_steps_gradient, "(coverage)"), (stored_before_it_is_read, "(coverage)"), (of_another_parameter, "(coverage)"), (with_this_steps_scalars, "(meaning)"), (not_kept_for_the_next_step, "(coverage)"), (taken_while_it_is_read, "(race)"),
    (updated_before_the_parameter_has_gone, "(race)")], ids=lambda case: getattr(case, "__name__", ""))
def test_planted_defects_are_refused(tools, tmp_path, planted, edit, sentence):
    tools("ds-opt", "verify", planted)
    broken = read_plan(planted)
    edit(broken.roles[0])
    assert sentence in tools("ds-opt", "verify", write_plan(tmp_path / "broken.dsplan", broken), code=1).stderr


# ---- what is refused

@pytest.mark.parametrize("keys, sentence", [
    ({"deepstatic": {"delayed_update": True}}, "deepstatic.delayed_update is true; updates of the step before hide what the host computes"),
    ({"deepstatic": {"delayed_update": "yes"}}, "deepstatic.delayed_update is")], ids=["no offload", "no flag"])
def test_configurations_that_are_refused(tools, tmp_path, model, keys, sentence):
    config = write_config(tmp_path / "c.json", 8, **keys)
    assert sentence in tools("ds-opt", "compile", model, "--config", config, "-o", tmp_path / "p.dsplan", code=1).stderr


# ---- what it is for

@pytest.mark.parametrize("size, micro, accumulation", [("tiny", 8, 1), ("small", 1, 1), ("small", 1, 2)])
def test_a_clipped_step_is_shorter(tools, tmp_path, exported, size, micro, accumulation):
    """Over a link of 5 GB/s with moments in host memory, by the clock of ds-opt report: updates are made beside the forward, none behind the
    norm. As much moves, and the device needs no more."""
    model, steps = exported("gpt2", "--size", size, "--seq", 64, "--dropout", "0.1"), {}
    for late in (False, True):
        keys = {**updated_there("host", tmp_path), "deepstatic": {"delayed_update": late}}
        [steps[late]] = compile_plan(tools, tmp_path, model, micro, ("", 0, 1, 1, accumulation), keys, *with_links(tmp_path, 5, 2))[1]["ranks_detail"]
    seconds = {late: rank["transfer_times"]["step_seconds"] for late, rank in steps.items()}
    assert seconds[True] < (0.99 if size == "tiny" else 0.9) * seconds[False], seconds
    assert steps[True]["transfer_bytes_per_step"] == pytest.approx(steps[False]["transfer_bytes_per_step"], rel=0.001)
    assert steps[True]["memory"]["device"]["arena_bytes"] < 1.001 * steps[False]["memory"]["device"]["arena_bytes"]
