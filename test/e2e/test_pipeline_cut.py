"""Where a graph is cut that nobody marked up: between the blocks of GPT-2 medium, one tensor at each boundary, whatever its names. And
how many copies a plan has of what is in flight."""

import json

import onnx
import pytest
from conftest import write_config
from plan_files import read_plan


@pytest.fixture(scope="module")
def medium(tools, tmp_path_factory):
    """GPT-2 medium without weights."""
    folder = tmp_path_factory.mktemp("medium") / "gpt2"
    tools("export.py", "gpt2", "--size", "medium", "--seq", 64, "--no-weights", "--out", folder)
    return folder


def stages(tools, model, tmp_path):
    plan = tmp_path / "p.dsplan"
    config = write_config(tmp_path / "c.json", micro=1, accumulation=8, deepstatic={"pipeline": {"stages": 4}})
    tools("ds-opt", "compile", model, "--config", config, "--ranks", 4, "-o", plan)
    return json.loads(tools("ds-opt", "report", plan, "--format", "json").stdout)["pipeline"]["stages_detail"]


def test_cuts_lie_between_blocks(tools, medium, tmp_path):
    found = stages(tools, medium, tmp_path)
    assert [len(stage["sent"]) for stage in found] == [1, 1, 1, 0]
    for before, after in zip(found, found[1:]):
        block, _, rest = after["first_op"].removeprefix("transformer/").partition("/")
        assert block.startswith("h.") and rest.startswith("ln_1/")
        assert before["last_op"].startswith(f"transformer/h.{int(block[2:]) - 1}/"), (before["last_op"], after["first_op"])


def test_names_do_not_matter(tools, medium, tmp_path):
    """The same graph with every node's name and scope taken away is cut at the same values."""
    model = onnx.load(medium / "model.onnx", load_external_data=False)
    for node in model.graph.node:
        node.name = ""
        del node.metadata_props[:]
    (tmp_path / "bare").mkdir()
    onnx.save(model, tmp_path / "bare" / "model.onnx")
    named, bare = stages(tools, medium, tmp_path), stages(tools, tmp_path / "bare", tmp_path)
    for one, other in zip(named, bare):
        assert [value["bytes"] for value in one["sent"]] == [value["bytes"] for value in other["sent"]]
        assert one["forward_seconds"] == pytest.approx(other["forward_seconds"])


# Copies on each stage's rank of what its backward reads, of 4 stages and 8 micro-batches.
IN_FLIGHT = {"gpipe": [8, 8, 8, 8], "1f1b": [4, 3, 2, 1], "zb-h1": [4, 4, 4, 4]}


@pytest.fixture(scope="module")
def llama(tools, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny") / "llama"
    tools("export.py", "llama", "--size", "tiny", "--seq", 16, "--no-weights", "--out", folder)
    return folder


def in_flight(role, buffer):
    """The most micro-batches of a step that are between the calls in which a buffer is born and dies."""
    [calls] = [list(enumerate(program.calls)) for program in role.programs if program.name == "step"]
    [life] = buffer.lives
    births = {call.microbatch: i for i, call in calls if call.routine == life.birth_routine}
    deaths = {call.microbatch: i for i, call in calls if call.routine == life.death_routine}
    return max(sum(births[other] <= i <= deaths[other] for other in births) for i in births.values())


@pytest.mark.parametrize("schedule", IN_FLIGHT)
def test_copies_are_those_that_the_schedule_keeps_in_flight(tools, llama, tmp_path, schedule):
    plan = tmp_path / "p.dsplan"
    config = write_config(tmp_path / "c.json", micro=1, accumulation=8,
                          deepstatic={"pipeline": {"stages": 4, "schedule": schedule}})
    tools("ds-opt", "compile", llama, "--config", config, "--ranks", 4, "-o", plan)
    report = json.loads(tools("ds-opt", "report", plan, "--format", "json").stdout)["pipeline"]
    for role, stage, expected in zip(read_plan(plan).roles, report["stages_detail"], IN_FLIGHT[schedule], strict=True):
        sent = {operand.buffer for routine in role.routines for command in routine.commands
                for operand in [*command.send.sources, *command.receive.targets]}
        kept = [buffer for index, buffer in enumerate(role.buffers) if buffer.scope == buffer.SLOT
                and buffer.category == buffer.ACTIVATIONS and index not in sent and buffer.lives[0].program == 0]
        assert max(in_flight(role, buffer) for buffer in kept) == expected == stage["microbatches_in_flight"]
        assert all(buffer.slots >= in_flight(role, buffer) for buffer in kept)
