"""Recompute: within every budget that can be met, with the bits of the plan that keeps everything, and never more than needed.

`make test` takes every other budget of three models; DS_TEST_SCOPE=all takes steps of 10 % and more models and rules.
"""

import hashlib
import json
import os
import re

import pytest
from conftest import write_config

WHOLE = os.environ.get("DS_TEST_SCOPE") == "all"
STEPS = 3
# Model: options of the export, samples of a micro-batch. Activations are most of what each needs.
MODELS = {"gpt2": (["--size", "tiny", "--seq", "64", "--dropout", "0.1"], 8), "llama": (["--size", "tiny", "--seq", "64"], 8),
          "resnet50": (["--size", "tiny"], 32)}
if WHOLE:
    MODELS["gpt2 124M"] = (["--size", "small", "--seq", "256"], 8)


class Case:
    """One model with one configuration; plans are run once for each distinct content."""

    def __init__(self, tools, model, data, folder, micro, **settings):
        self.tools, self.model, self.data, self.folder, self.runs = tools, model, data, folder, {}
        self.config = write_config(folder / "config.json", micro, 2, **settings)

    def arguments(self, recompute, memory=None, ranks=1, *more):
        plan = self.folder / f"{hashlib.sha256(f'{recompute} {memory} {ranks} {more}'.encode()).hexdigest()[:8]}.dsplan"
        budget = [] if memory is None else ["--device-memory", memory]
        return plan, ["ds-opt", "compile", self.model, "--config", self.config, "--ranks", ranks, *budget, "--set",
                      f"deepstatic.recompute={json.dumps(recompute)}", *more, "-o", plan]

    def compile(self, recompute, memory=None, ranks=1, *more):
        """(plan, its report)."""
        plan, arguments = self.arguments(recompute, memory, ranks, *more)
        self.tools(*arguments)
        return plan, json.loads(self.tools("ds-opt", "report", plan, "--format", "json").stdout)

    def refused(self, recompute, memory=None, ranks=1, *more):
        return self.tools.refused(*self.arguments(recompute, memory, ranks, *more)[1])

    def run(self, plan, *options):
        """(digest of the final weights, losses), and the most bytes that a rank has allocated."""
        out = plan.with_suffix(".safetensors")
        metrics, summary = self.tools.train(plan, self.data, STEPS, "--threads", 2, "--export", out, *options)
        measured = max(rank["device_bytes"] for rank in summary["ranks"])
        return (hashlib.sha256(out.read_bytes()).hexdigest(), [line["loss"] for line in metrics]), measured


def arena(report):
    return max(rank["memory"]["device"]["arena_bytes"] for rank in report["ranks_detail"])


def again(report):
    return sum(rank["recompute_flops_per_step"] for rank in report["ranks_detail"])


@pytest.fixture(scope="module")
def case(tools, exported, text_data, tmp_path_factory):
    made = {}

    def of(name, **settings) -> Case:
        key = f"{name} {settings}"
        if key not in made:
            folder = tmp_path_factory.mktemp("recompute")
            options, micro = MODELS[name]
            if name == "resnet50":
                data = folder / "images.safetensors"
                tools("prepare_data.py", "images", "--count", 2 * micro, "--size", 64, "--out", data)
            else:
                data = text_data(int(options[options.index("--seq") + 1]))
            made[key] = Case(tools, exported(name.split()[0], *options), data, folder, micro, **settings)
        return made[key]

    return of


def floor_of(case, ranks=1, *more):
    """What a refusal says would do, in its own words."""
    return re.search(r"; ([0-9.]+[KMG]iB) would do as it is", case.refused("auto", "100KiB", ranks, *more)).group(1)


def least_of(case):
    """What ds-opt check says of the same: bytes."""
    plan, arguments = case.arguments("auto", "100KiB")
    arguments = ["check" if word == "compile" else word for word in arguments[:arguments.index("-o")]]
    return json.loads(case.tools(*arguments, "--format", "json", code=1).stdout)["checks"][0]["memory"][0]["needed_bytes"]


@pytest.mark.parametrize("model", MODELS)
def test_budgets(case, model):
    """From all that the model would use down to the floor."""
    this = case(model)
    kept, report = this.compile("none")
    whole, expected = arena(report), this.run(kept)[0]
    assert again(report) == 0 and report["recompute"]["level"] == 0
    levels, flops, ran = [], [], set()
    for tenths in range(10, 0, -1 if WHOLE else -2):
        budget = whole * tenths // 10
        plan, arguments = this.arguments("auto", budget)
        if this.tools(*arguments, code=None).returncode == 1:
            break
        report = json.loads(this.tools("ds-opt", "report", plan, "--format", "json").stdout)
        assert arena(report) <= budget
        levels.append(report["recompute"]["level"])
        flops.append(again(report))
        if levels[-1] not in ran:
            ran.add(levels[-1])
            result, measured = this.run(plan)
            assert result == expected and measured <= budget
    assert levels[0] == 0 and len(set(levels)) > 1, "a smaller budget has recomputed more"
    assert levels == sorted(levels) and flops == sorted(flops)
    assert budget < least_of(this) <= arena(this.compile("auto", floor_of(this))[1])


@pytest.mark.parametrize("model", MODELS)
def test_the_floor_that_is_named_can_be_met(case, model):
    this = case(model)
    floor, least = floor_of(this), least_of(this)
    this.compile("auto", floor)
    plan, report = this.compile("auto", least)
    assert arena(report) == least
    assert this.run(plan)[0] == this.run(this.compile("none")[0])[0]
    error = this.refused("auto", least - 1)
    assert " 1 B more than " in error and f"{floor} would do" in error
    assert "computed again in " in error


def test_the_least_level_that_fits(case):
    """Every level as it is asked for, against what "auto" takes for the bytes of it."""
    this = case("gpt2")
    levels = this.compile(1)[1]["recompute"]["levels"]
    reports = [this.compile(level)[1] for level in range(levels + 1)]
    needed = [arena(report) for report in reports]
    assert [report["recompute"]["level"] for report in reports] == list(range(len(reports)))
    for budget in sorted(set(needed)) if WHOLE else sorted(set(needed))[::3]:
        chosen = this.compile("auto", budget)[1]["recompute"]["level"]
        assert needed[chosen] <= budget and (chosen == 0 or needed[chosen - 1] > budget)
    assert f"has only {levels} levels" in this.refused(levels + 1)


def halved(needed, room):
    """The level that "auto" is to take of such as need so many bytes: docs/memory.md."""
    top = len(needed) - 1
    while top > 0 and needed[top - 1] <= needed[top]:
        top -= 1
    low = 0
    while top - low > 1:
        middle = (low + top) // 2
        low, top = (low, middle) if needed[middle] <= room else (middle, top)
    return 0 if needed[0] <= room else top


def test_levels_are_tried_as_if_they_were_planned(case):
    """In stages, where what is alive at once and the first offsets in the room decide, against the bytes of all plans."""
    this = case("gpt2", gradient_accumulation_steps=6)
    # The best cut depends on the room.
    stages = ["--set", "deepstatic.pipeline.stages=2", "--set", "deepstatic.pipeline.partition=uniform"]
    levels = this.compile(1, None, 2, *stages)[1]["recompute"]["levels"]
    needed = [arena(this.compile(level, None, 2, *stages)[1]) for level in range(levels + 1)]
    rooms = [(min(needed) * part + max(needed) * (6 - part)) // 6 for part in range(1, 6)] + sorted(set(needed))[1:-1:4]
    chosen = {}
    for room in rooms:
        report = this.compile("auto", room, 2, *stages)[1]
        chosen[room] = report["recompute"]["level"]
        assert arena(report) == needed[chosen[room]] <= room
    assert chosen == {room: halved(needed, room) for room in rooms} and len(set(chosen.values())) > 2


def test_full_and_its_checkpoints(case):
    this = case("llama")
    expected = this.run(this.compile("none")[0])[0]
    plan, report = this.compile("full")
    layers = report["recompute"]["layers"]
    assert report["recompute"]["layers_again"] == layers > 1 and again(report) > 0
    assert this.run(plan)[0] == expected
    plan, once = this.compile("full", None, 1, "--set", "activation_checkpointing.number_checkpoints=1")
    assert once["recompute"] == {"level": 0, "levels": 0, "layers": 1, "layers_again": 1}
    assert again(once) > again(report), "what lies between layers is computed again, too"
    assert this.run(plan, "--check-memory")[0] == expected


def test_fewer_products_than_checkpointing_whole_layers(tools, exported, tmp_path):
    """GPT-2 124M, 16 x 256: for the bytes that a checkpoint of the first k of 12 blocks leaves, fewer products than these blocks have."""
    model = exported("gpt2", "--size", "small", "--seq", 256, "--no-weights")
    this = Case(tools, model, None, tmp_path, 16)
    none, full = this.compile("none")[1], this.compile("full")[1]
    tokens, width, blocks = 2 * 16 * 256, 768, 12
    block = 24 * tokens * width * width + 4 * tokens * 256 * width  # multiply-adds of four products and attention, forward
    assert full["recompute"]["layers"] == blocks + 1, "and the embeddings"
    for count in range(3, blocks + 1, 1 if WHOLE else 3):
        budget = arena(none) - (arena(none) - arena(full)) * count // blocks
        report = this.compile("auto", budget)[1]
        assert arena(report) <= budget
        # What module-level checkpointing repeats, and what it would if it left out products that nobody reads.
        assert again(report) < count * block
        assert again(report) < again(full) * count / blocks if count < blocks else again(report) == again(full)


def test_rules(case):
    this = case("gpt2")
    plan, none = this.compile("none")
    expected = this.run(plan)[0]
    plan, report = this.compile({"h.0": "save", "mlp|attn": "recompute"})
    assert arena(report) < arena(none)
    assert this.run(plan)[0] == expected
    text = this.tools("ds-opt", "report", plan).stdout
    assert "recompute what the rules name; " in text
    assert again(this.compile({"mlp|attn": "recompute"})[1]) > again(report), "the first rule wins"


def test_with_stages_and_zero(case):
    this = case("gpt2", zero_optimization={"stage": 3, "stage3_param_persistence_threshold": 10})
    cut = ["--set", "deepstatic.pipeline.stages=2"]
    plan, kept = this.compile("none", None, 4, *cut)
    expected = this.run(plan, "-n", 4)[0]
    budget = floor_of(this, 4, *cut)
    plan, report = this.compile("auto", budget, 4, *cut)
    assert arena(report) < arena(kept) and report["recompute"]["level"] > 0
    assert this.run(plan, "-n", 4)[0] == expected


def test_changes_that_would_fit_come_with_their_bytes(case):
    this = case("gpt2")
    plan, arguments = this.arguments("auto", arena(this.compile("full")[1]) * 3 // 4)
    done = this.tools(*arguments, code=1)
    found = re.search(r"with train_micro_batch_size_per_gpu 4 and gradient_accumulation_steps 4 it needs ([0-9.]+) ([KM])iB, which fits",
                      done.stderr)
    sets = ["--set", "train_micro_batch_size_per_gpu=4", "--set", "gradient_accumulation_steps=4"]
    assert f"try: {' '.join(sets)}" in done.stderr
    this.tools(*arguments, *sets)
    report = json.loads(this.tools("ds-opt", "report", plan, "--format", "json").stdout)
    assert float(found.group(1)) == pytest.approx(arena(report) / {"K": 1 << 10, "M": 1 << 20}[found.group(2)], rel=5e-3)
    two = this.tools(*this.arguments("none", "100KiB", 2, "--set", "zero_optimization.stage=0")[1], code=1).stderr
    assert "with zero_optimization.stage 1 it needs " in two and "with deepstatic.pipeline.stages 2 it needs " in two


@pytest.mark.parametrize("steps, stage", [(2, 2), (1, 3)])
def test_a_plan_of_zero_1_that_does_not_fit_names_the_stage_that_holds_less(case, steps, stage):
    """Stage 2 where it accumulates; with one micro-batch a step it is laid out as stage 2 already."""
    this = case("gpt2", zero_optimization={"stage": 1, "reduce_bucket_size": 3000, "stage3_max_live_parameters": 0})
    set_to = lambda value: ["--set", f"gradient_accumulation_steps={steps}", "--set", f"zero_optimization.stage={value}"]
    room = arena(this.compile("none", None, 2, *set_to(stage))[1])
    done = this.tools(*this.arguments("none", room, 2, *set_to(1))[1], code=1)
    assert re.search(rf"; with zero_optimization\.stage {stage} it needs [0-9.]+ [KM]iB, which fits", done.stderr)
    assert f"try: --set zero_optimization.stage={stage}" in done.stderr


def test_check_says_what_fits(case):
    this = case("gpt2")
    needed = arena(this.compile("none")[1])
    check = ["ds-opt", "check", this.model, "--config", this.config, "--device-memory", needed - 1, "--format", "json"]
    one, = json.loads(this.tools(*check).stdout)["checks"]
    assert one["verdict"] == "fits" and one["memory"][0]["needed_bytes"] < needed
    one, = json.loads(this.tools(*check, "--set", "deepstatic.recompute=none", code=1).stdout)["checks"]
    assert one["verdict"] == "does_not_fit" and 'deepstatic.recompute "auto" keeps less' in one["reason"]


@pytest.mark.parametrize("recompute, memory, parts", [
    ("ful", None, ["deepstatic.recompute", "ful", 'the nearest is "full"']),
    ({"(": "recompute"}, None, ["deepstatic.recompute", "(", "no regular expression"]),
    ({"no_such_module": "recompute"}, None, ["deepstatic.recompute", "no_such_module", "matches the name of no op"]),
    ("auto", "2GB2", ["--device-memory", "2GB2", "the units are"]),
    ("auto", "0", ["--device-memory is 0", "more than 0 bytes"]),
])
def test_what_is_refused(case, recompute, memory, parts):
    error = case("gpt2").refused(recompute, memory)
    assert all(part in error for part in parts), error


def test_a_budget_beyond_the_machine(case, tmp_path):
    machine = tmp_path / "box.json"
    machine.write_text(json.dumps({"name": "box", "device": "cpu", "device_memory": "64MiB"}))
    this = case("gpt2")
    error = this.refused("auto", "65MiB", 1, "--machine", machine)
    assert error == "--device-memory is 68157440 bytes, but machine box has only 67108864 for a rank; grant it at most that"
    error = this.refused("auto", None, 1, "--machine", machine, "--set", "deepstatic.device_memory=1GiB")
    assert error.startswith("deepstatic.device_memory is 1073741824 bytes, but machine box has only 67108864")
    assert this.compile("auto", "64MiB", 1, "--machine", machine)
