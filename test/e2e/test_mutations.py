"""Plans broken on purpose (test/mutation): the checker refuses what is harmful, and what it accepts ends with the same bits.

29 plans: GPT-2, Llama and a model with running statistics, ZeRO 0 to 3, one to four ranks, one to four micro-batches, one stage and two; once 24
micro-batches, of which the checker looks at ten; once Lamb, once fp16; twice activations in host memory, twice optimizer state, four times parameters or files. `make test` plants every kind a few times; DS_TEST_SCOPE=all plants ten
thousand in 47 plans, of whose refusals 95 % name the place. docs/mutations.md describes the kinds and has the table, which
DS_UPDATE_DOCS=1 writes.
"""

import json
import os
import re
import subprocess

import numpy
import pytest
from conftest import BUILD, REPOSITORY, write_config
from plan_edits import said_to_be_for_a_cpu
from plan_files import read_plan, write_plan
from plans_of_all_strategies import small_plans
from safetensors.numpy import save_file

TOOL = BUILD / "bin" / "plan_mutations"
PAGE = REPOSITORY / "docs" / "mutations.md"
BEGIN, END = "<!-- written by DS_UPDATE_DOCS=1 test/e2e/test_mutations.py -->\n", "<!-- end -->"
WHOLE = os.environ.get("DS_TEST_SCOPE") == "all"
# model, ranks, micro-batches, stage, more of zero_optimization
PLANS = [("gpt2", 1, 1, 0, {}), ("gpt2", 2, 3, 0, {}), ("llama", 3, 1, 1, {}), ("gpt2", 2, 2, 1, {"overlap_comm": True}),
         ("llama", 4, 2, 2, {"reduce_bucket_size": 10**6}), ("gpt2", 3, 2, 2, {"overlap_comm": True}), ("gpt2", 2, 2, 3, {}),
         ("llama", 2, 3, 3, {"overlap_comm": False}), ("gpt2", 4, 1, 3, {"stage3_max_live_parameters": 0}), ("llama", 1, 3, 0, {}),
         ("statistics", 1, 2, 0, {}), ("statistics", 2, 2, 2, {})]
# the same on two stages, GPT-2's tied weight on both: schedule, chunks of a rank
STAGED = [("llama", 2, 3, 0, "1f1b", 1), ("gpt2", 4, 3, 1, "1f1b", 1), ("llama", 2, 4, 2, "interleaved", 2), ("gpt2", 2, 24, 0, "zb-h1", 1)]
# of as many samples that activations have the 4,096 bytes from which on they leave device memory
OFFLOADED = {"activation_checkpointing": {"cpu_checkpointing": True}, "train_micro_batch_size_per_gpu": 16}
UPDATED_THERE = {"offload_optimizer": {"device": "cpu"}}
LINKED = {}  # nothing of its own, for a machine that names links
IN_FILES = {"device": "nvme", "nvme_path": "/tmp"}
SMALL = {"reduce_bucket_size": 3000, "stage3_prefetch_bucket_size": 3000, "stage3_param_persistence_threshold": 10}


def documented_kinds() -> list:
    """Names in the first column of the page's table of kinds."""
    return re.findall(r"^\| `([a-z-]+)` \|", PAGE.read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def subjects(tools, tmp_path_factory):
    """The plans, and what they train on."""
    folder = tmp_path_factory.mktemp("mutations")
    tokens = numpy.random.default_rng(0).integers(0, 8, (64, 4), dtype=numpy.int64)
    labels = numpy.random.default_rng(1).integers(0, 8, (64, 4), dtype=numpy.int64)
    save_file({"input_ids": tokens, "labels": labels}, folder / "data.safetensors")
    plans = []
    choices = [(*plan, {}) for plan in PLANS] + [(*staged, {}, {"deepstatic": {"pipeline": {"stages": 2, "schedule": schedule, "chunks": chunks}}})
                                                 for *staged, schedule, chunks in STAGED]
    choices += [("llama", 4, 2, 1, {}, {"deepstatic": {"pipeline": {"stages": 2}, "loss_normalization": "tokens"}}),
                ("gpt2", 2, 2, 3, {}, {"bf16": {"enabled": True}}), ("gpt2", 3, 2, 1, {}, {"communication_data_type": "bf16"}),
                ("gpt2", 2, 2, 0, {}, {"optimizer": {"type": "Lamb", "params": {"lr": 0.01, "weight_decay": 0.1}}}),
                ("gpt2", 1, 2, 0, {}, OFFLOADED), ("llama", 2, 2, 0, {}, OFFLOADED | {"deepstatic": {"pipeline": {"stages": 2}}}),
                ("gpt2", 1, 2, 0, UPDATED_THERE, {}), ("gpt2", 2, 1, 1, UPDATED_THERE, {}),
                ("gpt2", 2, 2, 1, {"offload_optimizer": IN_FILES}, {}), ("llama", 2, 2, 3, {"offload_param": {"device": "cpu"}}, {}),
                ("gpt2", 2, 1, 2, {"offload_param": IN_FILES}, {}),
                ("gpt2", 1, 2, 0, {"offload_param": IN_FILES, "offload_optimizer": IN_FILES}, {**OFFLOADED, "deepstatic": {"offload": {".*": "nvme"}}}),
                ("gpt2", 2, 1, 1, {}, {"fp16": {"enabled": True}})]
    linked = folder / "linked.json"  # with it transfers are placed by the clock, and parameters come once a step
    linked.write_text(json.dumps({"name": "linked", "device": "cpu", "links": [
        {"between": between, "bandwidth_gb_per_s": speed, "latency_us": 2} for between, speed in (("device-host", 5), ("host-nvme", 2))]}))
    choices.insert(0, ("gpt2", 1, 3, 0, UPDATED_THERE, LINKED))
    for model, ranks, accumulation, stage, more, own in choices:
        plan = folder / f"{len(plans)}-{model}-{ranks}-{accumulation}-{stage}.dsplan"
        config = write_config(plan.with_suffix(".json"), 1, accumulation, gradient_clipping=0.5, **own,
                              zero_optimization={"stage": stage, **SMALL, **more})
        tools("ds-opt", "compile", REPOSITORY / "test/e2e/hazards" / f"good-{model}", "--config", config, "--ranks", ranks,
              *(("--machine", linked) if own is LINKED else ()), "-o", plan)
        plans.append(plan)
    return plans, folder / "data.safetensors"


def mutate(subjects, *options):
    plans, data = subjects
    done = subprocess.run([str(a) for a in (TOOL, *plans, "--data", data, *options)], capture_output=True, text=True,
                          timeout=3000)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_kind_is_described():
    listed = subprocess.run([str(TOOL), "--list"], capture_output=True, text=True, check=True).stdout.split()
    assert listed == documented_kinds() and len(listed) >= 30


@pytest.mark.parametrize("kind", documented_kinds())
def test_kind(subjects, kind):
    row = mutate(subjects, "--kinds", kind, "--mutants", 10).splitlines()[2].split("|")
    assert int(row[3]) >= 2, row


@pytest.mark.parametrize("kind, sentence", [
    ("overflow-applied", "is made in a step of float16 whatever its gradients are"),  # by OverflowRules.cpp alone: its reference lacks the guard
    ("skip-by-own-gradients", " of the whole gradient: a part of it is missing")])
def test_overflows_are_refused_by_their_rule(subjects, kind, sentence):
    plans, data = subjects
    done = subprocess.run([str(a) for a in (TOOL, plans[-1], "--data", data, "--kinds", kind, "--mutants", 10, "--verbose")],
                          capture_output=True, text=True, timeout=3000)
    lines = done.stderr.splitlines()
    assert done.returncode == 0 and lines and all("refused by the checker" in line and sentence in line for line in lines), done.stderr


def test_a_slice_in_place_of_what_was_gathered_is_refused(tools, tmp_path):
    """Of rank 0 it holds all of a small parameter, so that its run alone would be right. Found by an edit of a field."""
    config = write_config(tmp_path / "c.json", 1, 2, zero_optimization={"stage": 3, **SMALL})
    path = tmp_path / "p.dsplan"
    tools("ds-opt", "compile", REPOSITORY / "test/e2e/hazards/good-gpt2", "--config", config, "--ranks", 2, "-o", path)
    plan = read_plan(path)
    role = plan.roles[0]
    members = {member.variable for member in plan.buckets[role.buffers[0].bucket].members}
    assert plan.buckets[role.buffers[0].bucket].placement.HasField("window") and "transformer.wpe.weight" in {plan.variables[number].name for number in members}
    forward = next(routine for routine in role.routines if routine.name == "forward")
    added = next(command for command in forward.commands if command.kernel.kernel == "elementwise" and list(command.kernel.operands[1].shape) == [1, 4, 16])
    added.kernel.operands[1].buffer, added.kernel.operands[1].byte_offset = 0, 0
    refused = tools("ds-opt", "verify", write_plan(tmp_path / "q.dsplan", plan), code=1).stderr
    assert "(value)" in refused and "reads the slice that each rank has of buffer 0 (zero.0)" in refused


def test_what_only_plans_for_gpus_have(subjects, tools, tmp_path):
    """Packed attention, biases' gradients made with their weights', residuals' with norms', padded logits, parameters side by side."""
    plans, mutants = [], 1500 if WHOLE else 300  # there are some 1,600 that differ
    for ranks, stage in ((1, 0), (2, 2), (2, 3)):
        plan = tmp_path / f"{ranks}-{stage}.dsplan"
        config = write_config(tmp_path / "c.json", 2, 2, gradient_clipping=0.01, bf16={"enabled": True}, zero_optimization={"stage": stage})
        tools("ds-opt", "compile", REPOSITORY / "test/e2e/hazards/good-gpt2", "--config", config, "--ranks", ranks, "--machine", "h100x8", "-o", plan)
        plans.append(write_plan(plan, said_to_be_for_a_cpu(read_plan(plan))))
        kernels = {command.kernel.kernel for routine in read_plan(plan).roles[0].routines for command in routine.commands}
        assert {"packed_attention_grad", "linear_weight_grad", "cross_entropy"} <= kernels
        tools("ds-opt", "verify", plan)
    done = subprocess.run([str(a) for a in (TOOL, *plans, "--data", subjects[1], "--mutants", mutants)], capture_output=True,
                          text=True, timeout=3000)
    _, planted, *_, missed, _ = [int(cell) for cell in re.findall(r" (\d+) \|", done.stdout.splitlines()[-1])]
    assert planted == mutants and missed == 0, done.stdout + done.stderr


def test_a_gelu_in_a_product_is_followed(tools, tmp_path):
    """Its result and its product exchanged, and the gradient without its slope; MeaningTest has the slope at another value."""
    plan, config = tmp_path / "p.dsplan", write_config(tmp_path / "c.json", 2, 1, bf16={"enabled": True})
    tools("ds-opt", "compile", REPOSITORY / "test/e2e/hazards/good-gpt2", "--config", config, "--machine", "h100x8", "-o", plan)

    def refusal(edit):
        broken = read_plan(plan)
        kernels = [command.kernel for routine in broken.roles[0].routines for command in routine.commands if command.HasField("kernel")]
        forward, backward = ([kernel for kernel in kernels if any(one.name == "epilogue" and one.text == name for one in kernel.attributes)]
                             for name in ("gelu_tanh", "gelu_tanh_grad"))
        edit(forward[-1], backward[0])  # of one layer
        return tools("ds-opt", "verify", write_plan(tmp_path / "q.dsplan", broken), code=1).stderr

    def exchange(forward, backward):
        result, product = forward.operands[3], forward.operands[4]
        result.byte_offset, product.byte_offset = product.byte_offset, result.byte_offset
        result.buffer, product.buffer = product.buffer, result.buffer

    def no_slope(forward, backward):
        del backward.operands[2]
        backward.attributes.remove(next(one for one in backward.attributes if one.name == "epilogue"))
    assert re.search(r"\(meaning\).* takes train.cast ", refusal(exchange))
    assert "reference ops; it can be one" in refusal(no_slope)


def exchange(kernel, a, b):
    """The places of two operands."""
    a, b = kernel.operands[a], kernel.operands[b]
    (a.byte_offset, b.byte_offset), (a.buffer, b.buffer) = (b.byte_offset, a.byte_offset), (b.buffer, a.buffer)


def another_term(norm):
    """One of its results of 16 bits that does not lie over what is added."""
    added = norm.operands[0]
    other = next(norm.operands[i] for i in (4, 8) if (norm.operands[i].buffer, norm.operands[i].byte_offset) != (added.buffer, added.byte_offset))
    added.buffer, added.byte_offset = other.buffer, other.byte_offset


def set_text(kernel, name, text):
    next(one for one in kernel.attributes if one.name == name).text = text


@pytest.mark.parametrize("find, edit, sentence", [
    ("layer_norm", lambda norm: exchange(norm, 4, 8), r"\(meaning\).* takes "),
    ("layer_norm", another_term, r"\(.*\)"),
    ("cross_entropy_with_grad", lambda loss: exchange(loss, 2, 3), r"\(.*\)"),
    ("cross_entropy_with_grad", lambda loss: set_text(loss, "reduction", "sum"), "its attribute reduction is not that of train.cross_entropy"),
], ids=["sum and norm exchanged", "another term", "loss and its factor exchanged", "a sum of losses"])
def test_two_ops_in_one_command_are_followed(find, edit, sentence, tools, tmp_path):
    """Mistakes in a norm that adds a residual, and in a loss that is made with its gradient."""
    plan, config = tmp_path / "p.dsplan", write_config(tmp_path / "c.json", 2, 1, bf16={"enabled": True})
    tools("ds-opt", "compile", REPOSITORY / "test/e2e/hazards/good-gpt2", "--config", config, "--machine", "h100x8", "-o", plan)
    tools("ds-opt", "verify", plan)
    broken = read_plan(plan)
    edit(next(command.kernel for routine in broken.roles[0].routines for command in routine.commands
              if command.kernel.kernel == find and len(command.reference) > 1))
    assert re.search(sentence, tools("ds-opt", "verify", write_plan(tmp_path / "q.dsplan", broken), code=1).stderr)


@pytest.mark.skipif(not WHOLE, reason="three minutes of a core: DS_TEST_SCOPE=all")
def test_ten_thousand(tools, tmp_path):
    table = mutate(small_plans(tools, tmp_path), "--mutants", 10000)
    *_, by_reader, by_checker, at_load, _, _, placed = [int(cell) for cell in re.findall(r" (\d+) \|", table.splitlines()[-1])]
    assert placed >= 0.95 * (by_reader + by_checker + at_load), table
    head, rest = PAGE.read_text().split(BEGIN)
    if os.environ.get("DS_UPDATE_DOCS") == "1":
        PAGE.write_text(head + BEGIN + table + END + rest.split(END)[1])
    assert names(PAGE.read_text().split(BEGIN)[1].split(END)[0]) == names(table)  # counts depend on the machine that the plans are for


def names(table):
    """The first column."""
    return re.findall(r"^\| ([a-z-]+) \|", table, re.MULTILINE)
