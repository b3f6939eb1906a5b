"""ds-audit (docs/audit.md) accepts the plans of all strategies and refuses those that compute something else.

The mutants are the kinds of edits that `ds-opt verify` once took for right plans; each is planted in a plan in which it changes what is computed.
`make test` audits a part of the matrix, DS_TEST_SCOPE=all the whole.
"""

import ast
import hashlib
import json
import os
import random
import subprocess
import sys

import numpy
import pytest
import torch
from conftest import BUILD, FOLDERS, REPOSITORY, write_config
from plan_edits import update_in_halves
from plan_files import read_plan, write_plan
from safetensors.numpy import save_file

TOOL = REPOSITORY / "tools" / "ds-audit"
sys.path.insert(0, str(TOOL))
from ds_audit import comparison, windows  # noqa: E402
from ds_audit.plans import read_plan as read  # noqa: E402

WHOLE = os.environ.get("DS_TEST_SCOPE") == "all"
MOST_STATEMENTS = 1650
SMALL = {"reduce_bucket_size": 3000, "stage3_prefetch_bucket_size": 3000, "stage3_param_persistence_threshold": 10}
READ, WRITE = 1, 2


def stages(count, schedule="1f1b", chunks=1):
    return {"pipeline": {"stages": count, "schedule": schedule, "chunks": chunks}}


# model, ranks, micro-batches, stage, more of zero_optimization, deepstatic
QUICK = [("gpt2", 1, 1, 0, {}, {}), ("llama", 1, 3, 0, {}, {}), ("gpt2", 2, 2, 0, {}, {}), ("llama", 3, 2, 1, {}, {}),
         ("gpt2", 2, 2, 2, {"overlap_comm": True}, {}), ("gpt2", 2, 2, 3, {"stage3_max_live_parameters": 0}, {}),
         ("gpt2", 2, 3, 0, {}, stages(2)), ("gpt2", 2, 4, 0, {}, stages(2, "interleaved", 2)), ("llama", 4, 4, 2, {}, stages(2, "zb-h1")),
         ("gpt2", 4, 2, 1, {}, {**stages(2), "loss_normalization": "tokens"}),
         ("llama", 2, 3, 2, {}, stages(1, "accumulate-by-layer")),
         ("gpt2", 1, 2, 0, {"offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"}}, stages(1, "accumulate-by-layer"))]
SLOW = [(model, ranks, 2, stage, {"overlap_comm": overlap}, {}) for model in ("gpt2", "llama") for ranks in (2, 4) for stage in range(4)
        for overlap in (False, True)]
SLOW += [(model, ranks, 4, stage, {}, stages(2, schedule, 2 if schedule == "interleaved" else 1)) for model in ("gpt2", "llama")
         for ranks in (2, 4) for stage in (0, 1, 3) for schedule in ("gpipe", "1f1b", "interleaved", "zb-h1")]


class Plans:
    def __init__(self, tools, folder):
        self.tools, self.folder, self.made = tools, folder, {}

    def compile(self, model, ranks, accumulation, stage, more, own, micro=1, **settings):
        """A plan; `model` is a folder or the name of one in test/e2e/hazards."""
        key = hashlib.sha256(repr((str(model), ranks, accumulation, stage, more, own, micro, settings)).encode()).hexdigest()[:12]
        plan = self.folder / f"{key}.dsplan"
        if key not in self.made:
            settings = {"gradient_clipping": 0.5, "deepstatic": own, "zero_optimization": {"stage": stage, **SMALL, **more}, **settings}
            config = write_config(self.folder / f"{key}.json", micro, accumulation, **settings)
            source = REPOSITORY / "test/e2e/hazards" / f"good-{model}" if isinstance(model, str) else model
            self.tools("ds-opt", "compile", source, "--config", config, "--ranks", ranks, "-o", plan)
            self.made[key] = plan
        return plan

    def mutant(self, plan, edit):
        """A copy that `edit` has changed."""
        broken = read_plan(plan)
        edit(broken)
        return write_plan(self.folder / f"{os.urandom(4).hex()}.dsplan", broken)


@pytest.fixture(scope="module")
def plans(tools, tmp_path_factory):
    return Plans(tools, tmp_path_factory.mktemp("audit"))


def audit(*arguments, code=0):
    """What ds-audit says: its line, or its error's sentence."""
    done = subprocess.run([sys.executable, str(TOOL / "ds-audit"), *map(str, arguments)], capture_output=True, text=True, timeout=600)
    assert "Traceback" not in done.stderr and done.returncode == code, done.stdout + done.stderr
    if code == 0:
        assert done.stdout.startswith("audited: ") and not done.stderr
        return done.stdout
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("error: ") and not done.stdout, done.stderr
    return lines[0]


# ---- right plans

@pytest.mark.parametrize("case", QUICK + (SLOW if WHOLE else []), ids=lambda case: "-".join(str(part) for part in case[:4]))
def test_right_plans_agree(plans, case):
    audit(plans.compile(*case))


def test_parameters_gathered_in_16_bits_agree(plans):
    audit(plans.compile("gpt2", 2, 2, 3, {"overlap_comm": True}, {}, bf16={"enabled": True}))


if WHOLE:
    MODELS = {"bert": {}, "moe": {}, "vit": {}, "resnet50": {}, "gpt2": {"--dropout": 0.25}, "llama": {}}

    @pytest.mark.parametrize("name", MODELS)
    @pytest.mark.parametrize("ranks, stage", [(1, 0), (2, 0), (2, 3)])
    def test_models_agree(plans, exported, name, ranks, stage):
        more = [word for option in MODELS[name].items() for word in option]
        folder = exported(name, "--size", "tiny", *([] if name in ("vit", "resnet50") else ["--seq", 8]), *more)
        audit(plans.compile(folder, ranks, 2, stage, {}, {}))

    @pytest.mark.parametrize("settings", [
        {"bf16": {"enabled": True}}, {"fp16": {"enabled": True}}, {"optimizer": {"type": "SGD", "params": {"lr": 0.1, "momentum": 0.9}}},
        {"optimizer": {"type": "Adagrad", "params": {"lr": 0.1}}}, {"gradient_clipping": 0}], ids=str)
    def test_settings_agree(plans, settings):
        audit(plans.compile("gpt2", 2, 2, 2, {}, {}, **settings))
        audit(plans.compile("llama", 1, 2, 0, {}, {"recompute": "full"}, **settings))


LAMB = {"type": "Lamb", "params": {"lr": 0.1, "max_coeff": 0.5, "bias_correction": False}}


@pytest.mark.parametrize("case", [("gpt2", 2, 2, 0, {}, {}), ("llama", 2, 3, 0, {}, stages(2))], ids=["ranks", "stages"])
def test_lamb_agrees(plans, case):
    plan = plans.compile(*case, optimizer=LAMB)
    config = plan.with_suffix(".json")
    audit(plan, "--config", config)
    for name, value in (("max_coeff", 0.75), ("bias_correction", True)):
        other = plans.folder / f"{name}.json"
        other.write_text(json.dumps({"optimizer": {"type": "Lamb", "params": {**LAMB["params"], name: value}}, "gradient_clipping": 0.5}))
        assert f"has {name} {LAMB['params'][name] * 1}, the configuration {value}" in audit(plan, "--config", other, code=1)


def test_a_slice_of_a_parameter_is_lambs_alone(plans):
    """Its ratio is then another; Adam's update is element by element."""
    adam = plans.compile("gpt2", 1, 1, 0, {}, {})
    audit(plans.mutant(adam, lambda plan: update_in_halves(plan, "adamw")))
    lamb = plans.compile("gpt2", 1, 1, 0, {}, {}, optimizer=LAMB)
    audit(plans.mutant(lamb, lambda plan: update_in_halves(plan, "lamb")), code=1)


def test_more_orders_and_other_numbers_agree(plans):
    assert "12 runs in 3 orders" in audit(plans.compile(*QUICK[4]), "--orders", 3, "--seed", 7)


# ---- what each edit needs to find its place

def commands(plan, kind=None, kernel=None, phase=None):
    """All commands of all roles, in order."""
    return [command for role in plan.roles for routine in role.routines for command in routine.commands
            if (kind is None or command.WhichOneof("kind") == kind) and (kernel is None or command.kernel.kernel == kernel)
            and (phase is None or routine.phase == phase)]


def attribute(command, name):
    return next(a for a in command.kernel.attributes if a.name == name)


def set_number(command, name, factor):
    attribute(command, name).number *= factor


def routine_of(plan, phase):
    return next(routine for role in plan.roles for routine in role.routines if routine.phase == phase)


def buffer_of(plan, variable):
    """The number of the buffer of the first role that holds a variable by itself."""
    return next(i for i, buffer in enumerate(plan.roles[0].buffers)
                if buffer.HasField("variable") and plan.variables[buffer.variable].name == variable)


def insert_copy(plan, phase, source, target, kind="copy"):
    """A command at the end of a routine that writes one buffer from another, or zeroes it."""
    routine = routine_of(plan, phase)
    command = routine.commands.add(queue=0)
    where = command.fill.target if kind == "fill" else command.copy.target
    where.CopyFrom(operand(plan, target, WRITE))
    if kind == "copy":
        command.copy.source.CopyFrom(operand(plan, source, READ))


def operand(plan, buffer, access):
    held = plan.roles[0].buffers[buffer]
    dtype = plan.variables[held.variable].dtype if held.HasField("variable") else plan.buckets[held.bucket].dtype
    width = {6: 8, 7: 4, 8: 8}[dtype]
    result = plan.roles[0].programs[0].metrics.add().source
    del plan.roles[0].programs[0].metrics[-1]
    result.buffer, result.dtype, result.access = buffer, dtype, access
    result.shape.append(held.bytes // width)
    return result


UPDATE, EVALUATE, FORWARD, BACKWARD = 8, 10, 5, 6


# ---- the kinds, by what is planted

def unreferenced_epsilon(plan):
    command = commands(plan, "kernel", "layer_norm")[0]
    del command.reference[:]
    set_number(command, "epsilon", 2)


def no_reference(plan):
    plan.ClearField("reference")


def unreferenced_beta(plan):
    command = commands(plan, "kernel", "adamw")[0]
    del command.reference[:]
    set_number(command, "beta2", 0.5)


def loss_as_sum(plan):
    for kernel in ("cross_entropy", "cross_entropy_grad"):
        attribute(commands(plan, "kernel", kernel)[0], "reduction").text = "sum"


def half_of_a_product(plan):
    command = next(c for c in commands(plan, "kernel", "matmul") if attribute(c, "trans_a").integer and not attribute(c, "trans_b").integer
                   and c.kernel.operands[0].shape[-2] % 2 == 0)
    for which in command.kernel.operands[:2]:
        which.shape[-2] //= 2


def half_of_the_rows(plan):
    command = next(c for c in commands(plan, "kernel", "gather_grad"))
    command.kernel.operands[0].shape[-2] //= 2
    command.kernel.operands[1].shape[-1] //= 2


def other_axes(plan):
    command = commands(plan, "kernel", "transpose")[0]
    for part in (command.kernel.operands[0].shape, attribute(command, "perm").integers.values):
        part[1], part[2] = part[2], part[1]
    perm = attribute(command, "perm").integers.values
    perm[:] = list(range(len(perm)))
    command.kernel.operands[1].shape[:] = list(command.kernel.operands[0].shape)


def sum_as_integers(plan):
    for which in commands(plan, "kernel", "reduce_sum")[0].kernel.operands[:2]:
        which.dtype = 5


def wider_optimizer(plan):
    command = next(c for c in commands(plan, "kernel", "adamw") if c.kernel.operands[0].shape[-1] % 2 == 0)
    for which in command.kernel.operands[:4]:
        which.dtype = 8
        which.shape[-1] //= 2


def norm_of_one_element(plan):
    command = next(c for c in commands(plan, "kernel", "global_norm"))
    del command.kernel.operands[1:-1]
    del attribute(command, "blocks").integers.values[1:]


def an_epilogue(plan):
    command = next(c for c in commands(plan, "kernel", "matmul"))
    command.kernel.attributes.add(name="epilogue", text="gelu_tanh_grad")


def zeroed_moment(plan):
    insert_copy(plan, UPDATE, None, moment(plan), "fill")


def zeroed_moment_in_evaluation(plan):
    insert_copy(plan, EVALUATE, None, moment(plan), "fill")


def moment(plan):
    return next(i for i, buffer in enumerate(plan.roles[0].buffers) if buffer.scope == 1 and buffer.HasField("variable")
                and plan.variables[buffer.variable].kind == 3 and plan.variables[buffer.variable].dtype == 7)


def dropped_optimizer(plan):
    for role in plan.roles:
        for routine in role.routines:
            found = [i for i, c in enumerate(routine.commands) if c.WhichOneof("kind") == "kernel" and c.kernel.kernel == "adamw"]
            if found:
                del routine.commands[found[-1]]
                return


def other_evaluation_metric(plan):
    evaluate = next(p for p in plan.roles[0].programs if p.name == "evaluate")
    held = next(i for i, buffer in enumerate(plan.roles[0].buffers) if buffer.scope == 1 and buffer.HasField("variable")
                and plan.variables[buffer.variable].dtype == 7)
    evaluate.metrics[0].source.buffer = held


def half_of_the_labels(plan):
    command = commands(plan, "kernel", "cross_entropy", EVALUATE)[0]
    for which in command.kernel.operands:
        if which.shape:
            which.shape[0] //= 2


def slot_on_a_moment(plan):
    role = plan.roles[0]
    target = next(b for b in role.buffers if b.scope != 1 and 0 < b.bytes and b.category == 4)
    target.offset = role.buffers[moment(plan)].offset


def dropped_accumulation(plan):
    command = next(c for c in commands(plan, "fill"))
    for role in plan.roles:
        for routine in role.routines:
            if command in routine.commands:
                routine.commands.remove(command)
                return


def exchanged_inputs(plan):
    feeds = commands(plan, "feed")
    feeds[0].feed.input, feeds[1].feed.input = feeds[1].feed.input, feeds[0].feed.input


ONE_RANK = [unreferenced_epsilon, no_reference, unreferenced_beta, loss_as_sum, half_of_a_product, half_of_the_rows, other_axes, sum_as_integers,
            wider_optimizer, norm_of_one_element, an_epilogue, zeroed_moment, zeroed_moment_in_evaluation, dropped_optimizer,
            other_evaluation_metric, half_of_the_labels, slot_on_a_moment, dropped_accumulation, exchanged_inputs]


@pytest.mark.parametrize("edit", ONE_RANK, ids=lambda edit: edit.__name__)
def test_one_rank_mutants_are_refused(plans, edit):
    assert "refused by ds-audit: " in audit(plans.mutant(plans.compile("gpt2", 1, 2, 0, {}, {}), edit), "--orders", 1, code=1)


def sums_as_integers(plan):
    for command in commands(plan, "collective"):
        for part in command.collective.parts:
            for which in (part.source, part.target):
                if which.dtype == 7 and which.shape and which.shape[-1] % 2 == 0:
                    which.dtype = 6
                    which.shape[-1] //= 2


def broadcast_instead_of_sum(plan):
    command = next(c for c in commands(plan, "collective") if c.collective.kind in (2, 3) and c.collective.parts[0].source.shape)
    command.collective.kind = 4
    command.collective.parts[0].accumulate = False


def weights_summed(plan):
    """An extra sum over the ranks of what is gathered."""
    gather = commands(plan, "collective")[-1]
    routine = next(r for role in plan.roles for r in role.routines if gather in r.commands)
    extra = routine.commands.add()
    extra.CopyFrom(gather)
    extra.collective.kind = 3
    for part in extra.collective.parts:
        part.source.CopyFrom(part.target)


def everyones_first_slice(plan):
    next(o for c in commands(plan, "kernel", "adamw") for o in c.kernel.operands if o.rank_stride).rank_stride = 0


def half_of_the_norm(plan):
    """The partial sums of one rank stand where all ranks' should."""
    for command in commands(plan, "collective", phase=UPDATE):
        if command.collective.kind == 1 and command.collective.parts[0].source.dtype == 8:
            command.collective.kind = 4
            command.collective.parts[0].target.CopyFrom(command.collective.parts[0].source)
            return
    raise AssertionError("the plan gathers no partial sums")


def dropped_wait(plan):
    """Whatever a collective waits for before it reads gradients."""
    for command in commands(plan, "collective"):
        if command.collective.kind == 2 and command.waits:
            del command.waits[:]
            return
    raise AssertionError("no reduce_scatter waits")


SHARDED = [sums_as_integers, broadcast_instead_of_sum, weights_summed, everyones_first_slice, half_of_the_norm, dropped_wait]


@pytest.mark.parametrize("edit", SHARDED, ids=lambda edit: edit.__name__)
def test_sharded_mutants_are_refused(plans, edit):
    plan = plans.compile("gpt2", 2, 2, 2, {"overlap_comm": True}, {})
    assert "refused by ds-audit: " in audit(plans.mutant(plan, edit), code=1)


def samples_along_the_pipe(plan):
    """Micro-batches are dealt out along the other axis of two ranks."""
    pipe = [axis.name for axis in plan.world.axes].index("pipe")
    for message in plan.inputs:
        message.placement.axes[0].axis = pipe


def tied_sum_of_rank_zero(plan):
    """Every rank sends rank 0's slice of the tied weight's gradient."""
    strides = [o for c in commands(plan, "send") for o in c.send.sources if o.rank_stride]
    strides[0].rank_stride = 0


@pytest.mark.parametrize("edit", [samples_along_the_pipe, tied_sum_of_rank_zero], ids=lambda edit: edit.__name__)
def test_staged_mutants_are_refused(plans, edit):
    plan = plans.compile("gpt2", 4, 3, 1, {}, stages(2))
    assert "refused by ds-audit: " in audit(plans.mutant(plan, edit), code=1)


def bias_along_the_other_axis(plan):
    """An evaluation adds what each channel has to each row instead, where there are as many."""
    for command in commands(plan, "kernel", "elementwise", EVALUATE):
        *read, written = command.kernel.operands
        for which in read:
            channels = which.shape[0] if which.shape else 0
            if list(which.shape) == [channels, 1, 1] and written.shape[-2] == channels > 1:
                which.shape[:] = [1, channels, 1]
                return
    raise AssertionError("no value of channels is as long as there are rows")


def averages(plan):
    """Commands that give running statistics new values: operands are the statistic, the micro-batch's own, the statistic."""
    held = {i for i, buffer in enumerate(plan.roles[0].buffers) if buffer.HasField("variable")
            and plan.variables[buffer.variable].name.endswith(("running_mean", "running_var"))}
    return [command for command in commands(plan, "kernel", phase=FORWARD) if command.kernel.operands[-1].buffer in held]


def exchanged_statistics(plan):
    mean, variance = (command.kernel.operands[1] for command in averages(plan)[:2])
    mean.buffer, variance.buffer = variance.buffer, mean.buffer


def other_momentum(plan):
    constants = attribute(averages(plan)[0], "constants").numbers.values
    constants[0] *= 0.5


def statistics_never_updated(plan):
    command = averages(plan)[0]
    for routine in plan.roles[0].routines:
        if command in routine.commands:
            routine.commands.remove(command)
            return


@pytest.mark.parametrize("edit", [bias_along_the_other_axis, exchanged_statistics, other_momentum, statistics_never_updated],
                         ids=lambda edit: edit.__name__)
def test_mutants_of_a_model_of_images_are_refused(plans, exported, edit):
    plan = plans.compile(exported("resnet50", "--size", "tiny"), 1, 1, 0, {}, {}, micro=2)
    assert "refused by ds-audit: " in audit(plans.mutant(plan, edit), "--orders", 1, code=1)


def statistic_said_to_be_alike(plan):
    next(variable for variable in plan.variables if variable.placement.axes).ClearField("placement")


def weight_said_to_vary(plan):
    next(variable for variable in plan.variables if variable.kind == 1).placement.CopyFrom(plan.inputs[0].placement)  # 1: PARAMETER


def windows_of_half(plan):
    held = [plan.buckets[buffer.bucket] for buffer in plan.roles[0].buffers if buffer.HasField("bucket")]
    next(bucket for bucket in held if bucket.placement.HasField("window")).placement.window.count //= 2


def samples_for_all(plan):
    for message in plan.inputs:
        message.ClearField("placement")


@pytest.mark.parametrize("edit", [statistic_said_to_be_alike, weight_said_to_vary, windows_of_half, samples_for_all], ids=lambda edit: edit.__name__)
def test_wrong_placements_are_refused(plans, tools, edit):
    """By ds-audit and by the reader or the checker."""
    broken = plans.mutant(plans.compile("statistics", 2, 2, 2, {}, {}), edit)
    assert "refused by ds-audit: " in audit(broken, "--orders", 1, code=1)
    tools("ds-opt", "verify", broken, code=1)


def test_pieces_of_a_product_are_rounding_which_is_not_looked_at(plans):
    def other_pieces(plan):
        attribute(next(c for c in commands(plan, "kernel", "matmul") if any(a.name == "pieces" for a in c.kernel.attributes)), "pieces").integer += 1
    audit(plans.mutant(plans.compile("gpt2", 1, 2, 0, {}, {}), other_pieces), "--orders", 1)


def test_a_refusal_names_program_variable_rank_element_and_writer(plans):
    said = audit(plans.mutant(plans.compile("gpt2", 1, 2, 0, {}, {}), zeroed_moment), "--orders", 1, code=1)
    assert "program step" in said and " of rank 0 " in said and "element 0 of " in said and "last written by program step, rank 0" in said


# ---- beside ds-opt verify

MUTATIONS = BUILD / "bin" / "plan_mutations"  # test_mutations.py
PLANTED = [("gpt2", 2, 2, 2, {"overlap_comm": True}, {}), ("gpt2", 4, 3, 1, {}, stages(2)), ("llama", 2, 4, 2, {}, stages(2, "interleaved", 2)),
           ("gpt2", 2, 2, 3, {}, {}), ("llama", 1, 3, 0, {}, {}), ("statistics", 2, 2, 2, {}, {})]
# What ds-audit does not look at, by what verify says of it; docs/audit.md, "Where the two differ".
UNSEEN = ["(race)", "outside the life", "bytes of device memory", "its attribute pieces", "whatever its gradients are"]


def kinds():
    listed = subprocess.run([MUTATIONS, "--list"], capture_output=True, text=True) if MUTATIONS.exists() else None
    return listed.stdout.split() if listed else []


@pytest.fixture(scope="module")
def planted(plans):
    """Writes two broken plans of a kind, and returns them."""
    subjects = [plans.compile(*case) for case in PLANTED] + [plans.compile("gpt2", 2, 1, 1, {}, {}, fp16={"enabled": True})]
    data = plans.folder / "tokens.safetensors"
    tokens = numpy.random.default_rng(0).integers(0, 8, (64, 4), dtype=numpy.int64)
    save_file({"input_ids": tokens, "labels": tokens}, data)

    def plant(kind):
        subprocess.run([MUTATIONS, *subjects, "--data", data, "--kinds", kind, "--mutants", "2", "--runs", "1", "--keep", plans.folder],
                       capture_output=True, check=True)
        return sorted(plans.folder.glob(f"{kind}-[01].dsplan"))
    return plant


@pytest.mark.parametrize("kind", kinds())
def test_verify_and_audit_agree(planted, plans, kind):
    """They accept and refuse the same broken plans, but for what ds-audit does not look at."""
    mutants = planted(kind)
    assert mutants, kind
    for mutant in mutants:
        verified = subprocess.run([FOLDERS["ds-opt"] / "ds-opt", "verify", mutant], capture_output=True, text=True)
        try:
            comparison.audit(read(mutant), plans.folder, 2, 1)
            audited = ""
        except Exception as refusal:  # also where a plan cannot be executed, as main.py has it
            audited = f"{type(refusal).__name__}: {refusal}"
        explained = not audited and any(words in verified.stderr for words in UNSEEN)
        assert bool(audited) == (verified.returncode != 0) or explained, f"{mutant.name}: verify: {verified.stderr}; audit: {audited}"


# ---- the model and the configuration

def test_sources_agree(plans):
    plan = plans.compile("gpt2", 1, 2, 0, {}, {})
    said = audit(plan, "--orders", 1, "--model", REPOSITORY / "test/e2e/hazards/good-gpt2", "--config", plan.with_suffix(".json"))
    assert "the loss" in said and "gradients" in said and "settings" in said


def test_what_the_configuration_leaves_out_has_the_default(plans, tools, tmp_path):
    (tmp_path / "config.json").write_text('{"train_batch_size": 2, "optimizer": {"type": "AdamW"}}')
    model, plan = REPOSITORY / "test/e2e/hazards/good-gpt2", tmp_path / "plan.dsplan"
    tools("ds-opt", "compile", model, "--config", tmp_path / "config.json", "-o", plan)
    audit(plan, "--orders", 1, "--model", model, "--config", tmp_path / "config.json")


@pytest.fixture(scope="module")
def for_gpus(plans, tools, tmp_path_factory):
    """GPT-2's plan whose attention reads query, key and value in one tensor, and whose products sum gradients of biases."""
    config, plan = plans.compile("gpt2", 1, 2, 0, {}, {}).with_suffix(".json"), tmp_path_factory.mktemp("gpus") / "plan.dsplan"
    model = REPOSITORY / "test/e2e/hazards/good-gpt2"
    tools("ds-opt", "compile", model, "--config", config, "--machine", "h100x8", "-o", plan)
    assert "the loss, 16 gradients" in audit(plan, "--orders", 1, "--model", model)
    return plan


def test_packed_attention_is_that_of_the_model(plans, for_gpus):
    def see_the_future(broken):
        for command in commands(broken, kernel="packed_attention"):
            attribute(command, "causal").integer = 0
    assert audit(plans.mutant(for_gpus, see_the_future), "--orders", 1, code=1)


def test_gradients_of_biases_are_those_of_the_model(plans, for_gpus):
    def sum_the_input(broken):
        squares = [command for command in commands(broken, kernel="linear_weight_grad")
                   if command.kernel.operands[0].shape == command.kernel.operands[1].shape]
        gradient, layer_input = squares[0].kernel.operands[:2]
        gradient.buffer, layer_input.buffer = layer_input.buffer, gradient.buffer
    assert audit(plans.mutant(for_gpus, sum_the_input), "--orders", 1, code=1)


def test_residuals_that_norms_add_are_those_of_the_model(plans, for_gpus):
    def one_term_twice(broken):
        norm = next(command.kernel for command in commands(broken, kernel="layer_norm") if len(command.kernel.operands) == 8)
        norm.operands[3].buffer, norm.operands[3].byte_offset = norm.operands[0].buffer, norm.operands[0].byte_offset
    assert audit(plans.mutant(for_gpus, one_term_twice), "--orders", 1, code=1)


def test_losses_made_with_their_gradients_are_those_of_the_model(plans, for_gpus):
    def another_ignored(broken):
        attribute(commands(broken, kernel="cross_entropy_with_grad")[0], "ignore_index").integer = 1
    assert audit(plans.mutant(for_gpus, another_ignored), "--orders", 1, code=1)


def test_convolutions_have_the_loss_and_the_gradients_of_the_model(plans, exported):
    """ResNet: convolutions, max pooling, batch norm."""
    folder = exported("resnet50", "--size", "tiny")
    said = audit(plans.compile(folder, 1, 1, 0, {}, {}, micro=2), "--orders", 1, "--model", folder)
    assert "the loss, 53 gradients" in said


WINDOWS = [((7, 8), (3, 2), (2, 1), (1, 2), (1, 1), 2), ((9,), (3,), (1,), (1,), (1,), 1), ((5, 5, 4), (2, 2, 2), (1, 2, 1), (1, 1, 1), (0, 0, 0), 1)]


@pytest.mark.parametrize("size, window, strides, dilations, low, groups", WINDOWS)
def test_windows_are_those_of_pytorch(size, window, strides, dilations, low, groups):
    """tools/ds-audit/ds_audit/windows.py in float64; pooling with average counts no padding."""
    functional, dimensions = torch.nn.functional, len(size)
    torch.manual_seed(0)
    x, w = (torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in ((2, 4, *size), (6, 4 // groups, *window)))
    attributes = {"strides": strides, "dilations": dilations, "low": low, "groups": groups, "window": window}

    def agree(name, forward, inputs, y):
        dy = torch.randn_like(y)
        gradients = torch.autograd.grad(y, inputs, dy)
        data = {"x": x.detach().numpy(), "w": w.detach().numpy(), "dy": dy.numpy()}
        wanted = {name: (forward, y.detach()), **{kernel: (operands, gradient) for (kernel, operands), gradient in zip(BACKWARD[name], gradients)}}
        for kernel, (operands, result) in wanted.items():
            found = windows.KERNELS[kernel](attributes, None, [data[one] for one in operands], [tuple(result.shape)])[0]
            assert numpy.allclose(found.reshape(result.shape), result, rtol=0, atol=1e-13), kernel

    pool = {"kernel_size": window, "stride": strides, "padding": low}
    agree("conv", ("x", "w"), (x, w), getattr(functional, f"conv{dimensions}d")(x, w, None, strides, low, dilations, groups))
    agree("max_pool", ("x",), (x,), getattr(functional, f"max_pool{dimensions}d")(x, **pool, dilation=dilations))
    attributes["dilations"] = (1,) * dimensions  # PyTorch's average has no others
    agree("average_pool", ("x",), (x,), getattr(functional, f"avg_pool{dimensions}d")(x, **pool, count_include_pad=False))


BACKWARD = {"conv": [("conv_input_grad", ("dy", "w")), ("conv_weight_grad", ("dy", "x"))], "max_pool": [("max_pool_grad", ("dy", "x"))],
            "average_pool": [("average_pool_grad", ("dy",))]}


def scaled_first_value(plan):
    variable = next(v for v in plan.variables if v.kind == 1)
    variable.source.fill = 0.5


def exchanged_names(plan):
    first, second = [v for v in plan.variables if v.kind == 1 and len(v.shape) == 1][:2]
    first.name, second.name = second.name, first.name


def other_rate(plan):
    for op in [*plan.reference.ops, *(c.kernel for c in commands(plan, "kernel", "learning_rate"))]:
        for one in op.attributes:
            if one.name == "lr":
                one.number *= 2


def other_epsilon(plan):
    for op in [*plan.reference.ops, *(c.kernel for c in commands(plan, "kernel", "layer_norm"))]:
        for one in op.attributes:
            if one.name == "epsilon" and one.number == 1e-5:
                one.number = 0.1


def next_token_as_the_same(plan):
    for made in plan.inputs:
        made.tokens = {"same": "next", "next": "same"}[made.tokens]


SHARED = [scaled_first_value, exchanged_names, other_rate, other_epsilon, next_token_as_the_same]


@pytest.mark.parametrize("edit", SHARED, ids=lambda edit: edit.__name__)
def test_what_plan_and_reference_share_is_compared_with_the_sources(plans, edit):
    plan = plans.compile("gpt2", 1, 2, 0, {}, {})
    broken = plans.mutant(plan, edit)
    audit(broken, "--orders", 1)
    sources = ["--model", REPOSITORY / "test/e2e/hazards/good-gpt2", "--config", plan.with_suffix(".json")]
    audit(broken, "--orders", 1, *sources, code=1)


# ---- bad input

def test_bad_files_are_refused_in_a_sentence(plans, tmp_path):
    plan = plans.compile("gpt2", 1, 1, 0, {}, {})
    data = plan.read_bytes()
    generator = random.Random(1)
    for number, bad in enumerate([b"", b"DSPLAN", data[:-1], data[:24], b"x" * 1000]):
        path = tmp_path / f"{number}.dsplan"
        path.write_bytes(bad)
        audit(path, code=2)
    audit(tmp_path / "none.dsplan", code=2)
    audit(plan, "--orders", 0, code=2)
    audit(plan, "--model", tmp_path, code=2)
    audit(code=2)
    for number in range(20 if WHOLE else 3):  # messages that are whole, but not a plan any more
        broken = read_plan(plan)
        role = broken.roles[0]
        for _ in range(3):
            command = generator.choice(generator.choice(role.routines).commands)
            command.queue = generator.choice([0, 99])
            for which in command.kernel.operands:
                which.buffer = generator.randrange(2**31)
        audit(write_plan(tmp_path / f"edited{number}.dsplan", broken), "--orders", 1, code=1)


def test_the_size_is_what_the_page_says():
    files = [TOOL / "ds-audit", *(TOOL / "ds_audit").glob("*.py")]
    statements = sum(isinstance(node, ast.stmt) for path in files for node in ast.walk(ast.parse(path.read_text())))
    assert statements <= MOST_STATEMENTS
    assert json.dumps(MOST_STATEMENTS) in (REPOSITORY / "docs" / "audit.md").read_text().replace(",", "")
