"""Offload: state that does not lie in device memory, and the bits of the plan in which all of it does.

`make test` takes a few combinations, DS_TEST_SCOPE=all all of them.
"""

import contextlib
import hashlib
import itertools
import json
import math
import os
import re
import subprocess
import time
from pathlib import Path

import pytest
from conftest import FOLDERS, write_config
from offload_plans import AWAY, BACKWARD, BEGIN, FORWARD, MODELS, UPDATE, compile_command, compile_plan, in_routines, kernels, report_of, updated_there, with_links
from plan_files import read_plan

WHOLE = os.environ.get("DS_TEST_SCOPE") == "all"
STEPS = 3
ALL = [(model, stage, ranks, stages, accumulation)
       for model, stage, ranks, stages, accumulation in itertools.product(MODELS, (0, 1, 2, 3), (1, 2, 4), (1, 2), (1, 2))
       if stages <= ranks and (stage == 0 or ranks > stages) and (stage < 2 or stages == 1)]
SOME = [("gpt2", 0, 1, 1, 1), ("llama", 3, 2, 1, 2), ("bert", 2, 4, 1, 1), ("resnet50", 0, 2, 1, 2), ("gpt2", 1, 4, 2, 2), ("llama", 0, 2, 2, 2)]


def arena(report, space="device"):
    return max(rank["memory"].get(space, {}).get("arena_bytes", 0) for rank in report["ranks_detail"])


def train(tools, plan, data, ranks):
    out = plan.with_suffix(".safetensors")
    metrics, summary = tools.train(plan, data, STEPS, "-n", ranks, "--threads", 1, "--export", out)
    measured = max(rank["device_bytes"] for rank in summary["ranks"])
    return (hashlib.sha256(out.read_bytes()).hexdigest(), [line["loss"] for line in metrics]), measured


def require_same_bits(tools, plain, plan, report, data, ranks):
    """One plan trains as the other, in no more device memory than its report says."""
    expected, _ = train(tools, plain, data, ranks)
    got, measured = train(tools, plan, data, ranks)
    assert got == expected
    assert measured <= arena(report)


@pytest.fixture
def prepared(tools, tmp_path, exported, text_data, masked_data):
    """prepared("gpt2") -> the model's folder, samples of a micro-batch, data."""
    def prepare(name):
        options, micro = MODELS[name]
        if name != "resnet50":
            return exported(name, *options), micro, (masked_data if name == "bert" else text_data)(64)
        data = tmp_path / "images.safetensors"
        tools("prepare_data.py", "images", "--count", 32, "--size", 64, "--out", data)
        return exported(name, *options), micro, data
    return prepare


@pytest.mark.parametrize("case", ALL if WHOLE else SOME, ids=str)
def test_activations_in_host_memory(tools, tmp_path, prepared, case):
    model, micro, data = prepared(case[0])
    plain, before = compile_plan(tools, tmp_path, model, micro, case, {})
    plan, after = compile_plan(tools, tmp_path, model, micro, case, {"activation_checkpointing": {"cpu_checkpointing": True}})
    assert arena(before, "host") == 0 < arena(after, "host")
    # Of the tiny ResNet half the arena is the workspace of the last convolution's gradient, when no activation is left.
    assert arena(after) <= arena(before) if case[0] == "resnet50" else arena(after) < arena(before)
    require_same_bits(tools, plain, plan, after, data, case[2])
    if case[3] == 1:  # at the end of a forward all that leaves is in host memory
        for rank in after["ranks_detail"]:
            assert rank["transfer_bytes_per_step"]["out"] == case[4] * rank["memory"]["host"]["peak_live_bytes"] <= rank["transfer_bytes_per_step"]["back"]


# ---- optimizer state


SPACES = ["host", "nvme"]
LITTLE = "nvme, little host memory"  # gradients lie in the file, too
OPTIMIZERS = {"SGD": {"lr": 0.01, "momentum": 0.9}, "Adagrad": {"lr": 0.01}, "Lion": {"lr": 0.001}, "Lamb": {"lr": 0.01}}
KINDS = {"clipping off": {"gradient_clipping": 0}, "schedule": {"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 3, "warmup_max_lr": 0.01}}}, "bf16": {"bf16": {"enabled": True}}, "fp16": {"fp16": {"enabled": True, "initial_scale_power": 40}},
         "tokens": {"deepstatic": {"loss_normalization": "tokens"}}, "activations too": {"activation_checkpointing": {"cpu_checkpointing": True}}}


def require_equal(tools, folder, prepared, case, keys, space):
    """Of two plans, with moments in device memory and elsewhere, one trains as the other, to the same bits."""
    model, micro, data = prepared(case[0])
    plain, before = compile_plan(tools, folder, model, micro, case, {key: value for key, value in keys.items() if key != "activation_checkpointing"})
    little, space = space == LITTLE, space.partition(",")[0]
    plan, after = compile_plan(tools, folder, model, micro, case, {**keys, **updated_there(space, folder)})
    if little:
        plan, after = with_least_host_memory(tools, plan, after, folder, model, micro, case, {**keys, **updated_there(space, folder)})
    assert arena(before, "host") == arena(before, "nvme") == 0 and arena(after) < arena(before)
    assert moments(after, space) > 0.9 * moments(before, "device")
    assert abs(moments(after, "device") + moments(after, space) - second_places(plan) - moments(before, "device")) < 64 * case[2]  # scalars live at one peak, not at the other
    assert gradients(after, "nvme" if little and gradients(after, "nvme") else "host") > gradients(after, "device")
    require_same_bits(tools, plain, plan, after, data, case[2])


def with_least_host_memory(tools, plan, report, *what):
    """The last plan that there is, and its report, each with a byte less than the one before uses. First updates wait for the norm, and files are read
    later; then gradients lie in the file, unless what is on its way to it takes as much as they do."""
    while gradients(report, "nvme") == 0:
        less, command = compile_command(*what, "--host-memory", arena(report, "host") - 1)
        done = tools(*command, code=None)
        if done.returncode != 0:
            assert done.returncode == 1 and "of host memory" in done.stderr
            break
        plan, report = less, report_of(tools, less)
    return plan, report


def test_host_memory_decides_what_waits_there(tools, tmp_path, prepared):
    """Clipped updates from files are ahead of the norm while there is room for it; with less they wait, then files are read later, and then
    gradients lie in the file, too. Waiting alone needs more, since files are read early then."""
    case = ("gpt2", 0, 1, 1, 1)
    model, micro, data = prepared("gpt2")
    plain, _ = compile_plan(tools, tmp_path, model, micro, case, {})
    plan, report = compile_plan(tools, tmp_path, model, micro, case, updated_there("nvme", tmp_path))
    seen = []
    for _ in range(3):
        ahead, _, again = ahead_and_again(plan)
        seen.append((ahead == again > 0, second_places(plan) > 0, gradients(report, "nvme") > 0))
        require_same_bits(tools, plain, plan, report, data, 1)
        if len(seen) < 3:
            plan, report = compile_plan(tools, tmp_path, model, micro, case, updated_there("nvme", tmp_path), "--host-memory", arena(report, "host") - 1)
    assert seen == [(True, True, False), (False, False, False), (False, False, True)]


def gradients(report, space):
    """Bytes of the buffers of gradients at the peaks of that space."""
    return sum(rank["memory"].get(space, {}).get("gradients", 0) for rank in report["ranks_detail"])


def moments(report, space):
    return sum(rank["memory"].get(space, {}).get("optimizer", 0) for rank in report["ranks_detail"])


def second_places(plan):
    """Bytes of all ranks for what a step writes in files beside the old."""
    return sum((last - first + 1) * buffer.bytes for role in read_plan(plan).roles for first, last in zip(role.ranks[::2], role.ranks[1::2])
               for buffer in role.buffers if buffer.HasField("next_of"))


@pytest.mark.parametrize("space", [*SPACES, LITTLE])
@pytest.mark.parametrize("case", ALL if WHOLE else SOME, ids=str)
def test_optimizer_state_elsewhere(tools, tmp_path, prepared, case, space):
    require_equal(tools, tmp_path, prepared, case, {}, space)


@pytest.mark.parametrize("space", [*SPACES, LITTLE])
@pytest.mark.parametrize("kind", KINDS)
def test_what_an_update_takes(tools, tmp_path, prepared, kind, space):
    require_equal(tools, tmp_path, prepared, ("gpt2", 1, 2, 1, 2), KINDS[kind], space)


@pytest.mark.parametrize("space", [*SPACES, LITTLE])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_every_optimizer(tools, tmp_path, prepared, optimizer, space):
    require_equal(tools, tmp_path, prepared, ("gpt2", 0, 2, 1, 2), {"optimizer": {"type": optimizer, "params": OPTIMIZERS[optimizer]}}, space)


# ---- parameters, and all of it at once

@pytest.mark.parametrize("clipping", [0, 0.5])
def test_updates_in_pieces(tools, tmp_path, prepared, clipping):
    """Of state in files, where the drive answers at once: in no more host memory where that is short, and the same bits. No sub_group_size makes
    pieces of a parameter."""
    case = ("gpt2", 1, 2, 1, 2)
    quick = tmp_path / "quick.json"
    quick.write_text(json.dumps({"device": "cpu", "links": [{"between": "host-nvme", "bandwidth_gb_per_s": 2}]}))
    there = updated_there("nvme", tmp_path)["zero_optimization"]
    keys = {"gradient_clipping": clipping}
    model, micro, data = prepared(case[0])
    plain, _ = compile_plan(tools, tmp_path, model, micro, case, keys)
    whole, before = compile_plan(tools, tmp_path, model, micro, case, {**keys, "zero_optimization": {**there, "sub_group_size": 1}})
    plan, after = compile_plan(tools, tmp_path, model, micro, case, {**keys, "zero_optimization": there}, "--machine", quick,
                               "--host-memory", arena(before, "host"))
    assert sizes_of_updates(whole)[-1] > 1 << 16 >= sizes_of_updates(plan)[-1]
    assert len(sizes_of_updates(plan)) > len(sizes_of_updates(whole))
    assert arena(after, "host") <= arena(before, "host")
    require_same_bits(tools, plain, plan, after, data, case[2])


def sizes_of_updates(plan):
    """Elements that each update of the host's makes anew, on rank 0, ascending."""
    role = read_plan(plan).roles[0]
    return sorted(math.prod(command.kernel.operands[0].shape) for routine in role.routines for command in routine.commands
                  if command.kernel.kernel == "adamw" and role.queues[command.queue].kind == 7)


def parameters_there(space, folder):
    where = {"device": "cpu"} if space == "host" else {"device": "nvme", "nvme_path": str(folder)}
    return {"zero_optimization": {"offload_param": where}}


def everything_there(space, folder):
    zero = {**updated_there(space, folder)["zero_optimization"], **parameters_there(space, folder)["zero_optimization"]}
    return {"zero_optimization": zero, "deepstatic": {"offload": {".*": "cpu" if space == "host" else "nvme"}}}


def weights(report, space):
    return sum(rank["memory"].get(space, {}).get("weights", 0) for rank in report["ranks_detail"])


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("case", ALL if WHOLE else SOME, ids=str)
def test_parameters_elsewhere(tools, tmp_path, prepared, case, space):
    model, micro, data = prepared(case[0])
    plain, before = compile_plan(tools, tmp_path, model, micro, case, {})
    plan, after = compile_plan(tools, tmp_path, model, micro, case, parameters_there(space, tmp_path))
    assert weights(after, space) > 0.8 * weights(before, "device") and weights(after, "device") + weights(after, space) == weights(before, "device")
    require_same_bits(tools, plain, plan, after, data, case[2])


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("case", ALL if WHOLE else SOME, ids=str)
def test_everything_elsewhere(tools, tmp_path, prepared, case, space):
    """Parameters, optimizer state and activations, in as little device memory as holds what one command and the next use."""
    model, micro, data = prepared(case[0])
    plain, before = compile_plan(tools, tmp_path, model, micro, case, {})
    plan, after = compile_plan(tools, tmp_path, model, micro, case, everything_there(space, tmp_path))
    assert arena(after) < arena(before) and arena(after, space) > 0
    require_same_bits(tools, plain, plan, after, data, case[2])


@pytest.mark.parametrize("kind", KINDS)
def test_everything_elsewhere_of_every_kind(tools, tmp_path, prepared, kind):
    model, micro, data = prepared("gpt2")
    case = ("gpt2", 3, 2, 1, 2)
    keys = everything_there("nvme", tmp_path)
    both = {**keys, **KINDS[kind], "deepstatic": {**keys["deepstatic"], **KINDS[kind].get("deepstatic", {})}}
    plain, _ = compile_plan(tools, tmp_path, model, micro, case, {key: value for key, value in KINDS[kind].items() if key != "activation_checkpointing"})
    plan, _ = compile_plan(tools, tmp_path, model, micro, case, both)
    assert train(tools, plan, data, 2)[0] == train(tools, plain, data, 2)[0]


# ---- beside compute: updates in the backward, parameters once a step, rows instead of tables


def host_kernels(plan, phase, *kernels):
    """How many of these kernels the host runs in routines of a phase, on rank 0."""
    role = read_plan(plan).roles[0]
    return sum(command.kernel.kernel in kernels for routine in role.routines if routine.phase == phase
               for command in routine.commands if role.queues[command.queue].kind == 7)


def require_equal_beside(tools, folder, prepared, case, keys, space, speeds=(5, 2), micro=None, flags=()):
    """The same bits with state elsewhere, over links of these speeds, as in device memory; returns the plan and its report."""
    model, samples, data = prepared(case[0])
    plain, _ = compile_plan(tools, folder, model, micro or samples, case, {key: value for key, value in keys.items() if key != "activation_checkpointing"})
    plan, report = compile_plan(tools, folder, model, micro or samples, case, {**keys, **updated_there(space, folder)}, *with_links(folder, *speeds), *flags)
    require_same_bits(tools, plain, plan, report, data, case[2])
    return plan, report


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("case", ALL if WHOLE else SOME, ids=str)
def test_updates_beside_the_backward(tools, tmp_path, prepared, case, space):
    """Where nothing is clipped, an update begins when its gradient is complete."""
    plan, report = require_equal_beside(tools, tmp_path, prepared, case, {"gradient_clipping": 0}, space)
    if case[1:4] == (0, 1, 1) and case[4] == 1:
        assert host_kernels(plan, BACKWARD, "adamw") > 10 * host_kernels(plan, UPDATE, "adamw")
        assert gradients(report, "nvme") == 0  # what is updated at once needs no place in the file
    if case[4] > 1 and space == "host":  # with files the last micro-batch has a backward of its own
        assert host_kernels(plan, BACKWARD, "adamw") == 0


@pytest.mark.parametrize("speeds", [(5, 2), (0.05, 0.02)], ids=["fast", "slow"])
@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("kind", [*KINDS, *OPTIMIZERS])
def test_every_kind_beside_the_backward(tools, tmp_path, prepared, kind, space, speeds):
    """What needs all gradients first waits for them; over a slow link what would end late does, too."""
    keys = {"gradient_clipping": 0, **(KINDS[kind] if kind in KINDS else {"optimizer": {"type": kind, "params": OPTIMIZERS[kind]}})}
    plan, _ = require_equal_beside(tools, tmp_path, prepared, ("gpt2", 0, 1, 1, 1), keys, space, speeds)
    moved, left = (host_kernels(plan, phase, "adamw", "sgd", "adagrad", "lion", "lamb") for phase in (BACKWARD, UPDATE))
    assert moved + left > 10
    if kind == "fp16":  # an overflow leaves the whole step out
        assert moved == 0
    elif kind not in ("tokens", "activations too"):
        assert moved > 2 if speeds[0] == 5 else left > 2


def test_without_the_pass(tools, tmp_path, prepared):
    """ds-advance-updates makes a step shorter, and nothing else."""
    model, micro, data = prepared("gpt2")
    keys = {"gradient_clipping": 0, **updated_there("host", tmp_path)}
    links = with_links(tmp_path, 5, 2)
    plans = [compile_plan(tools, tmp_path, model, micro, ("gpt2", 0, 1, 1, 1), keys, *links, *more) for more in ((), ("--without", "ds-advance-updates"))]
    assert host_kernels(plans[0][0], UPDATE, "adamw") < host_kernels(plans[1][0], UPDATE, "adamw") and host_kernels(plans[1][0], BACKWARD, "adamw") == 0
    assert len({train(tools, plan, data, 1)[0][0] for plan, _ in plans}) == 1
    steps = [report["ranks_detail"][0]["transfer_times"]["step_seconds"] for _, report in plans]
    assert steps[0] < steps[1]


@pytest.mark.parametrize("case", ALL if WHOLE else SOME, ids=str)
def test_reads_ahead_of_the_update(tools, tmp_path, prepared, case):
    """What waiting updates read from the file is in host memory when they begin."""
    plan, _ = require_equal_beside(tools, tmp_path, prepared, case, {}, "nvme", flags=("--without", "ds-advance-updates"))
    for role in read_plan(plan).roles:
        reads = {phase: sum(role.queues[command.queue].name == "nvme_read" for _, _, command in in_routines(role, phase)) for phase in (BEGIN, BACKWARD, UPDATE)}
        assert reads[UPDATE] == 0 < reads[BEGIN] + reads[BACKWARD]
        assert case[3] > 1 or reads[BEGIN] == 0  # the last micro-batch has a backward of its own


def ahead_and_again(plan):
    """Updates of rank 0 beside the backward, behind it, and in the tail."""
    role = read_plan(plan).roles[0]
    step = next(program for program in role.programs if program.name == "step")
    first = step.tail.first_call if step.HasField("tail") else len(step.calls)
    routines = list(dict.fromkeys(call.routine for call in step.calls[:first]))
    updates = lambda routine: sum(command.kernel.kernel == "adamw" and role.queues[command.queue].kind == 7 for command in role.routines[routine].commands)
    behind = sum(updates(routine) for routine in routines if role.routines[routine].phase == UPDATE)
    return sum(map(updates, routines)) - behind, behind, sum(updates(call.routine) for call in step.calls[first:])


# What clipped updates from files are tried with: (case, keys, whether none of them waits for the norm).
AHEAD = {"one": (("gpt2", 0, 1, 1, 1), {}, True), "several": (("gpt2", 0, 1, 1, 3), {}, True), "llama": (("llama", 0, 1, 1, 2), {}, True),
         "by layer": (("gpt2", 0, 1, 1, 2), {"deepstatic": {"pipeline": {"schedule": "accumulate-by-layer"}}}, True),
         "bf16": (("gpt2", 0, 1, 1, 1), KINDS["bf16"], True), "schedule": (("gpt2", 0, 1, 1, 1), KINDS["schedule"], True),
         "ranks": (("gpt2", 3, 2, 1, 2), {}, False), "gathered": (("gpt2", 1, 2, 1, 1), {}, False)}


@pytest.mark.parametrize("clipping, redone", [(0.01, "always"), (2.5, "sometimes"), (1e9, "never")])
@pytest.mark.parametrize("what", AHEAD)
def test_clipped_updates_run_ahead(tools, tmp_path, prepared, what, clipping, redone):
    """They are made beside the backward as if nothing were clipped, and again in the tail of a step in which something is: to the same bits."""
    case, keys, all_of_them = AHEAD[what]
    plan, _ = require_equal_beside(tools, tmp_path, prepared, case, {"gradient_clipping": clipping, **keys}, "nvme", speeds=(20, 5))
    ahead, behind, again = ahead_and_again(plan)
    assert ahead == again
    if what == "gathered":  # the update gathers what it has updated
        assert ahead == 0
    elif all_of_them:
        assert ahead > 10 * behind
    steps, _ = tools.train(plan, prepared(case[0])[2], STEPS, "-n", case[2], "--threads", 1)
    made_again = sum("redone" in step for step in steps)
    assert ahead == 0 or {"always": made_again == len(steps), "never": made_again == 0, "sometimes": True}[redone]


def test_clipped_gradients_are_waited_for(tools, tmp_path, prepared):
    plan, _ = require_equal_beside(tools, tmp_path, prepared, ("gpt2", 0, 1, 1, 1), {}, "host")
    assert host_kernels(plan, BACKWARD, "adamw") == 0 < host_kernels(plan, UPDATE, "adamw")


@pytest.mark.parametrize("parameters", [False, True], ids=["", "parameters"])
@pytest.mark.parametrize("accumulation", [1, 2, 3])
@pytest.mark.parametrize("clipping", [0, 0.5])
def test_parameters_come_once_a_step(tools, tmp_path, prepared, accumulation, clipping, parameters):
    """Each parameter one way, however many micro-batches use it, or once for each use; and of the embedding few rows."""
    keys = {"gradient_clipping": clipping}
    if parameters:
        keys.update({"zero_optimization": {**updated_there("host", tmp_path)["zero_optimization"], **parameters_there("host", tmp_path)["zero_optimization"]}})
    model, _, data = prepared("gpt2")
    case = ("gpt2", 0, 1, 1, accumulation)
    plain, before = compile_plan(tools, tmp_path, model, 2, case, {"gradient_clipping": clipping})
    plan, report = compile_plan(tools, tmp_path, model, 2, case, {**updated_there("host", tmp_path), **keys}, *with_links(tmp_path, 5, 2))
    require_same_bits(tools, plain, plan, report, data, 1)
    ways, state = report["ranks_detail"][0]["transfer_bytes_per_step"], moments(before, "device") / 2  # bytes of the parameters
    rows = 2 * 64 * (64 + 1) * 4  # of the embedding, float32, and what their indices take
    assert ways["out"] < (accumulation + 0.02) * state + 2 * accumulation * rows
    if not parameters:
        assert ways["back"] < 1.02 * state + rows
    assert host_kernels(plan, FORWARD, "gather") == (1 if accumulation == 1 or parameters else 0)
    assert host_kernels(plan, BACKWARD, "gather_grad") == 1  # the embedding is tied: nothing large leaves at the end


def test_rules_by_name(tools, tmp_path, prepared):
    """What modules of some names compute leaves, by deepstatic.offload and by rules of deepstatic.recompute; the rest stays."""
    model, micro, data = prepared("gpt2")
    case = ("gpt2", 0, 1, 1, 1)
    plain, _ = compile_plan(tools, tmp_path, model, micro, case, {"deepstatic": {"recompute": "none"}})
    expected, _ = train(tools, plain, data, 1)
    for rules, left, read in (({"recompute": "none", "offload": {"mlp": "cpu"}}, {"mlp"}, set()),
                              ({"recompute": {"attn": "offload", "mlp": "save"}}, {"attn"}, set()),
                              ({"recompute": {"attn": "recompute"}, "offload": {"mlp": "nvme"}, "nvme_path": str(tmp_path)}, {"mlp"}, {"mlp"}),
                              ({"recompute": "none", "offload": {"h.0/attn": "none", "attn": "cpu", "mlp": "nvme"}, "nvme_path": str(tmp_path)}, {"attn", "mlp"}, {"mlp"})):
        plan, report = compile_plan(tools, tmp_path, model, micro, case, {"deepstatic": rules})
        transfers = report["ranks_detail"][0].get("transfer_times", {"transfers": []})["transfers"]
        for direction, modules in (("out", left), ("read", read)):
            names = {one["name"] for one in transfers if one["direction"] == direction}
            assert all(any(module in name for module in modules) for name in names), names
            assert all(any(module in name for name in names) for module in modules), names
        assert not any("h.0/attn" in one["name"] for one in transfers if "h.0/attn" in rules.get("offload", {}))
        assert train(tools, plan, data, 1)[0] == expected


def test_auto_takes_what_the_memory_asks_for(tools, tmp_path, prepared):
    """With less and less device memory more leaves, in the order of what it costs; the bits stay."""
    model, micro, data = prepared("gpt2")
    config = write_config(tmp_path / "c.json", micro, gradient_clipping=0.5, deepstatic={"offload": "auto"})
    plain, before = compile_plan(tools, tmp_path, model, micro, ("gpt2", 0, 1, 1, 1), {"deepstatic": {"recompute": "none"}})
    expected, _ = train(tools, plain, data, 1)
    chosen, arenas, left = [], [arena(before)], []
    for share in (1, 0.9, 0.3, 0.28):
        plan = tmp_path / f"{share}.dsplan"
        told = tools("ds-opt", "compile", model, "--config", config, "--device-memory", int(share * arena(before)), "-o", plan)
        chosen.append(re.search(r'deepstatic.offload is "(.*)" \(as little as fits', told.stdout + told.stderr)[1])
        report = json.loads(tools("ds-opt", "report", plan, "--format", "json").stdout)
        assert arena(report) <= share * arena(before)
        arenas.append(arena(report))
        left.append(report["ranks_detail"][0].get("transfer_bytes_per_step", {"out": 0})["out"])
        assert train(tools, plan, data, 1)[0] == expected
    assert chosen[:2] == ["none", "activations"] and chosen[2].startswith("activations") and chosen[3].startswith("activations, optimizer state"), chosen
    assert left[0] == 0 < left[1] < 2 * (arena(before) - arenas[2]) < left[2]  # as much as makes the room, not all
    unknown = tools("ds-opt", "compile", model, "--config", config, "-o", tmp_path / "unknown.dsplan")
    assert 'deepstatic.offload is "none" (the device\'s memory is unknown' in unknown.stdout + unknown.stderr


@pytest.mark.parametrize("case", [("gpt2", 1, 4, 2, 2), ("llama", 3, 2, 1, 2)], ids=str)
def test_auto_on_several_ranks(tools, tmp_path, prepared, case):
    """As little leaves on every rank as fits on the one that needs most, to the same bits."""
    model, micro, data = prepared(case[0])
    plain, before = compile_plan(tools, tmp_path, model, micro, case, {"deepstatic": {"recompute": "none"}})
    room = int(0.9 * arena(before))
    plan, after = compile_plan(tools, tmp_path, model, micro, case, {"deepstatic": {"offload": "auto"}}, "--device-memory", room)
    every, _ = compile_plan(tools, tmp_path, model, micro, case, {"deepstatic": {"offload": {".*": "cpu"}}})
    whole = json.loads(tools("ds-opt", "report", every, "--format", "json").stdout)
    moved, most = (sum(rank.get("transfer_bytes_per_step", {"out": 0})["out"] for rank in report["ranks_detail"]) for report in (after, whole))
    assert arena(after) <= room and 0 < moved < most
    require_same_bits(tools, plain, plan, after, data, case[2])


def test_a_rule_that_moves_nothing_is_refused(tools, tmp_path, prepared):
    model, micro, _ = prepared("gpt2")
    config = write_config(tmp_path / "c.json", micro, deepstatic={"recompute": "none", "offload": {"convolution": "cpu"}})
    assert '"convolution" is to leave device memory, but matches no tensor' in tools.refused("ds-opt", "compile", model, "--config", config)


def test_checkpoints_do_not_know_where_state_lies(tools, tmp_path, prepared):
    """A run with offload goes on from a checkpoint of one without, and the other way round."""
    model, micro, data = prepared("gpt2")
    case = ("gpt2", 1, 2, 1, 1)
    plans = [compile_plan(tools, tmp_path, model, micro, case, keys)[0] for keys in ({}, *(updated_there(space, tmp_path) for space in SPACES))]
    ends = set()
    for first, second in ((plans[0], plans[1]), (plans[1], plans[2]), (plans[2], plans[0]), (plans[0], plans[0])):
        folder, out = tmp_path / f"{first.stem}-{second.stem}", tmp_path / "weights"
        tools.train(first, data, 2, "--threads", 1, "--save", folder)
        tools.train(second, data, 4, "--threads", 1, "--resume", folder, "--export", out)
        ends.add(hashlib.sha256(out.read_bytes()).hexdigest())
    straight = tmp_path / "straight"
    tools.train(plans[1], data, 4, "--threads", 1, "--export", straight)
    assert ends == {hashlib.sha256(straight.read_bytes()).hexdigest()}


def test_too_little_host_memory_is_refused(tools, tmp_path, exported):
    """ds-opt check and compile say what is missing."""
    model = exported("gpt2", *MODELS["gpt2"][0])
    config = write_config(tmp_path / "c.json", 8, **AWAY)
    refused = tools("ds-opt", "compile", model, "--config", config, "--ranks", 1, "--host-memory", "1MiB", "-o", tmp_path / "p.dsplan", code=1)
    assert "of host memory" in refused.stderr and "more than the 1.00 MiB" in refused.stderr, refused.stderr


@pytest.fixture(scope="module")
def small_disk(tmp_path_factory):
    """A file system of 256 KiB."""
    folder = tmp_path_factory.mktemp("disk")
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder], capture_output=True).returncode != 0:
        pytest.skip("this user may mount nothing")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_folders_that_hold_no_file(tools, tmp_path, prepared, small_disk):
    """ds-run refuses before the first step: no folder, a file in its place, too little room. Another folder is a flag."""
    model, micro, data = prepared("gpt2")
    plan, _ = compile_plan(tools, tmp_path, model, micro, ("gpt2", 0, 1, 1, 1), updated_there("nvme", tmp_path / "missing"))
    missing = tools.refused("ds-run", plan, "--data", data, "--steps", 1)
    assert f"rank 0's file in {tmp_path / 'missing'} cannot be made: No such file or directory" in missing
    (tmp_path / "file").write_text("")
    assert "cannot be made: Not a directory" in tools.refused("ds-run", plan, "--data", data, "--steps", 1, "--nvme-path", tmp_path / "file")
    assert re.search(r"needs \d+ bytes, but .* has \d+ available; make room", tools.refused("ds-run", plan, "--data", data, "--steps", 1, "--nvme-path", small_disk))
    (tmp_path / "there").mkdir()
    tools("ds-run", plan, "--data", data, "--steps", 1, "--nvme-path", tmp_path / "there")
    assert not list((tmp_path / "there").iterdir())  # the file has no name


def test_damaged_pages_are_seen(tools, tmp_path, prepared):
    """With --nvme-checksums a run ends when it reads a page of its file that somebody else wrote; until then it trains to the same bits."""
    model, micro, data = prepared("gpt2")
    (tmp_path / "drive").mkdir()
    plan, _ = compile_plan(tools, tmp_path, model, micro, ("gpt2", 0, 1, 1, 1), updated_there("nvme", tmp_path / "drive"))
    losses = [tools.train(plan, data, STEPS, *options)[0][-1]["loss"] for options in ((), ("--nvme-checksums",))]
    assert losses[0] == losses[1]
    run = subprocess.Popen([FOLDERS["ds-run"] / "ds-run", plan, "--data", data, "--steps", "1000000", "--nvme-checksums", "--metrics", tmp_path / "m.jsonl"],
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 120
        while run.poll() is None:  # what we write the run may write again before it reads it
            assert time.monotonic() < deadline, "two minutes, and nobody has seen the damage"
            if (tmp_path / "m.jsonl").exists() and (tmp_path / "m.jsonl").read_text():
                if file := open_file(run.pid, tmp_path / "drive"):
                    with file:
                        file.write(os.urandom(4096))
            time.sleep(0.01)
        assert run.returncode == 1
        assert re.search(r"rank 0's file in .*drive: the 4096 bytes at offset 0 are not what was written there \(checksum\)", run.stderr.read())
    finally:
        run.kill()
        run.wait()


def open_file(pid, folder):
    """The file without a name that a process has in a folder, opened for writing; nothing once the process is gone."""
    with contextlib.suppress(FileNotFoundError, PermissionError):
        for link in (Path("/proc") / str(pid) / "fd").iterdir():
            if str(link.readlink()).startswith(str(folder)):
                return open(link, "r+b", buffering=0)
    return None
