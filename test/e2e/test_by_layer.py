"""The schedule accumulate-by-layer: all micro-batches of a layer before the next layer.

Bits are compared with the plan that takes micro-batches one after another. `make test` takes a few combinations, DS_TEST_SCOPE=all all.
"""

import itertools
import json
import os

import pytest
from conftest import REPOSITORY, write_config
from offload_plans import with_links
from pairwise import covering
from plan_files import read_plan
from test_offload import arena, require_same_bits
from test_offload_defects import copies, forget, verify
from weights import REORDERED, read_weights, require_near

WHOLE = os.environ.get("DS_TEST_SCOPE") == "all"
LAYERS = {"deepstatic": {"pipeline": {"schedule": "accumulate-by-layer"}}}
TIED = ["--size", "tiny", "--seq", "64", "--set", "n_layer=3"]
MODELS = {"gpt2": ("gpt2", [*TIED, "--set", "tie_word_embeddings=false"]), "llama": ("llama", ["--size", "tiny", "--seq", "64", "--set", "num_hidden_layers=3"])}
# Where optimizer state and parameters lie.
PLACES = {"device": (None, None), "parameters": (None, "cpu"), "optimizer": ("cpu", None), "both": ("cpu", "cpu"), "optimizer in files": ("nvme", None),
          "both in files": ("nvme", "nvme")}
CROSS = [case for case in itertools.product(MODELS, PLACES, (0, 1, 2, 3), (1, 2), (0, 0.5), (2, 4)) if case[2] == 0 or case[3] > 1]


def keys_of(place, stage, folder, **more):
    optimizer, parameters = PLACES[place]
    where = {f"offload_{name}": {"device": device, **({"nvme_path": str(folder)} if device == "nvme" else {})}
             for name, device in (("optimizer", optimizer), ("param", parameters)) if device}
    return {"zero_optimization": {"stage": stage, "stage3_param_persistence_threshold": 100, **where}, **more}


def compile_plan(tools, folder, model, keys, *options, micro=2, microbatches=2, ranks=1):
    number = len(list(folder.glob("*.json")))
    config = write_config(folder / f"{number}.json", micro, microbatches, **keys)
    plan = folder / f"{number}.dsplan"
    tools("ds-opt", "compile", model, "--config", config, "--ranks", ranks, "-o", plan, *options)
    return plan, json.loads(tools("ds-opt", "report", plan, "--format", "json").stdout)


@pytest.mark.parametrize("case", CROSS if WHOLE else covering(CROSS), ids=str)
def test_same_bits(tools, tmp_path, exported, text_data, case):
    """ds-opt has its checker prove each plan that it writes."""
    name, place, stage, ranks, clipping, microbatches = case
    exporter, options = MODELS[name]
    model = exported(exporter, *options)
    keys = keys_of(place, stage, tmp_path, gradient_clipping=clipping)
    plain, _ = compile_plan(tools, tmp_path, model, keys, microbatches=microbatches, ranks=ranks)
    plan, report = compile_plan(tools, tmp_path, model, {**keys, **LAYERS}, microbatches=microbatches, ranks=ranks)
    assert report["pipeline"]["schedule"] == "accumulate-by-layer" and report["pipeline"]["chunks"] >= 3
    if stage >= 2 or ranks == 1:  # sums over ranks and micro-batches have one order, too
        assert report["numerics"] == "bit-equal"
    require_same_bits(tools, plain, plan, report, text_data(64), ranks)


@pytest.mark.parametrize("more", [{"bf16": {"enabled": True}}, {"fp16": {"enabled": True, "initial_scale_power": 40}}, {"optimizer": {"type": "Lamb", "params": {"lr": 0.01}}},
                                  {"activation_checkpointing": {"cpu_checkpointing": True}}, {"deepstatic": {"recompute": "full"}}, {"deepstatic": {"pipeline": {"chunks": 2}}},
                                  {"deepstatic": {"loss_normalization": "tokens"}}], ids=lambda more: json.dumps(more))
@pytest.mark.parametrize("place", ["both", "both in files"])
def test_same_bits_with(tools, tmp_path, exported, text_data, place, more):
    """Other precisions, optimizers and losses, activations elsewhere or computed again; over links whose speed is known."""
    exporter, options = MODELS["gpt2"]
    model, keys = exported(exporter, *options), keys_of(place, 0, tmp_path, **more)
    layers = {**keys, "deepstatic": {**keys.get("deepstatic", {}), "pipeline": {**LAYERS["deepstatic"]["pipeline"], **keys.get("deepstatic", {}).get("pipeline", {})}}}
    links = with_links(tmp_path, 5, 2)
    keys.get("deepstatic", {}).pop("pipeline", None)
    plain, _ = compile_plan(tools, tmp_path, model, keys, *links)
    plan, report = compile_plan(tools, tmp_path, model, layers, *links)
    require_same_bits(tools, plain, plan, report, text_data(64), 1)


@pytest.mark.parametrize("place", ["device", "both", "both in files"])
def test_tied_weights(tools, tmp_path, exported, text_data, place):
    """The sum over uses is taken after the sum over micro-batches: the plan says so, and weights differ by rounding alone."""
    model, weights = exported("gpt2", *TIED), []
    for more in ({}, LAYERS):
        plan, report = compile_plan(tools, tmp_path, model, {**keys_of(place, 0, tmp_path), **more})
        assert report["numerics"] == ("reassociated" if more else "bit-equal")
        weights.append(plan.with_suffix(".safetensors"))
        tools.train(plan, text_data(64), 10, "--threads", 1, "--export", weights[-1])
    require_near(*(read_weights(path)[0] for path in weights), REORDERED)


@pytest.mark.parametrize("place", ["device", "optimizer"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_tied_weights_of_several_ranks(tools, tmp_path, exported, text_data, place, ranks):
    """Every rank's slice is a sum of both uses."""
    model, weights = exported("gpt2", *TIED), []
    for more in ({}, LAYERS):
        keys = keys_of(place, 1, tmp_path, **more)
        keys["zero_optimization"]["reduce_bucket_size"] = 2000
        plan, _ = compile_plan(tools, tmp_path, model, keys, ranks=ranks)
        weights.append(plan.with_suffix(".safetensors"))
        tools.train(plan, text_data(64), 5, "--threads", 1, "-n", ranks, "--export", weights[-1])
    require_near(*(read_weights(path)[0] for path in weights), REORDERED)


# ---- what moves, and when


@pytest.fixture(scope="module")
def layered(tools, exported, tmp_path_factory):
    """layered(size, micro-batches, place, by layer, more) -> rank 0 of the report of a plan for a box with links."""
    folder, made = tmp_path_factory.mktemp("layered"), {}

    def compile_step(size, microbatches, place, by_layer, links=(20, 5), clipping=0):
        key = (size, microbatches, place, by_layer, links, clipping)
        if key not in made:
            model = exported("gpt2", "--size", size, "--seq", 64, *([] if size == "tiny" else ["--no-weights"]))
            keys = keys_of(place, 0, folder, gradient_clipping=clipping, **(LAYERS if by_layer else {}))
            _, report = compile_plan(tools, folder, model, keys, *with_links(folder, *links), micro=8 if size == "tiny" else 1, microbatches=microbatches)
            made[key] = report["ranks_detail"][0]
        return made[key]
    return compile_step


@pytest.mark.parametrize("place", ["both", "both in files"])
def test_parameters_come_twice_whatever_the_micro_batches(layered, place):
    """Once for all forwards and once for all backwards; rows of the embedding and of its gradient move with each micro-batch."""
    two, four = (layered("small", microbatches, place, True) for microbatches in (2, 4))
    for way in two["transfer_bytes_per_step"]:
        assert four["transfer_bytes_per_step"][way] <= 1.01 * two["transfer_bytes_per_step"][way]
    before = [layered("small", microbatches, place, False)["transfer_bytes_per_step"]["back"] for microbatches in (2, 4)]
    assert before[1] > 1.9 * before[0] > 1.9 * two["transfer_bytes_per_step"]["back"]


def test_device_memory_is_that_of_two_layers(layered):
    """Less than where each parameter comes once a step, and stays for it."""
    layers, once = layered("small", 2, "both", True), layered("small", 2, "optimizer", False)
    assert arena({"ranks_detail": [layers]}) < 0.9 * arena({"ranks_detail": [once]})


HIDDEN = [("small", microbatches, place, links) for microbatches in (2, 4) for place in ("optimizer in files", "both in files") for links in ((50, 10), (20, 5))]
HIDDEN += [("tiny", 2, "optimizer in files", links) for links in ((20, 2), (5, 1))]


@pytest.mark.parametrize("case", HIDDEN, ids=str)
def test_updates_are_hidden(layered, case):
    """Without clipping, a layer's update is read, made and written beside the backwards of the layers in front of it."""
    size, microbatches, place, links = case
    times = layered(size, microbatches, place, True, links)["transfer_times"]
    assert 0 < times["alone_seconds"] <= times["compute_seconds"]
    assert times["hidden"] >= 0.8, times["hidden"]


# ---- chosen by cost


def choose(tools, folder, model, keys, *options, micro=1, microbatches=2, **own):
    """The order that "auto" stands for, why, and the report."""
    config = write_config(folder / "auto.json", micro, microbatches, **keys, deepstatic={"pipeline": {"schedule": "auto"}, **own})
    plan = folder / "auto.dsplan"
    said = tools("ds-opt", "compile", model, "--config", config, "-o", plan, *options).stdout
    order, why = next(line for line in said.splitlines() if line.startswith("auto: deepstatic.pipeline.schedule is ")).removeprefix("auto: deepstatic.pipeline.schedule is ").split(" ", 1)
    return json.loads(order), why, json.loads(tools("ds-opt", "report", plan, "--format", "json").stdout)


SLOW = (20, 2)  # GB/s of the host's link and of the drive


@pytest.mark.parametrize("microbatches, place", [(2, "both in files"), (4, "both in files")])
def test_auto_takes_the_shorter_step(tools, tmp_path, exported, layered, microbatches, place):
    """What the last micro-batch would leave exposed is hidden by layer; the plan says which order it has."""
    order, why, report = choose(tools, tmp_path, exported("gpt2", "--size", "small", "--seq", 64, "--no-weights"), keys_of(place, 0, tmp_path, gradient_clipping=0),
                                *with_links(tmp_path, *SLOW), microbatches=microbatches)
    assert order == report["pipeline"]["schedule"] == "accumulate-by-layer" and "shorter than with one micro-batch after another" in why
    times = report["ranks_detail"][0]["transfer_times"]
    assert times["hidden"] >= 0.8
    assert times["step_seconds"] < 0.99 * layered("small", microbatches, place, False, SLOW)["transfer_times"]["step_seconds"]


def test_auto_keeps_one_micro_batch_after_another(tools, tmp_path, exported):
    """Where nothing is gained, where nobody says how fast links are, and where by layer activations need more memory than there is."""
    tiny, small = (exported("gpt2", "--size", size, "--seq", 64, *more) for size, more in (("tiny", []), ("small", ["--no-weights"])))
    order, why, report = choose(tools, tmp_path, tiny, {}, *with_links(tmp_path, *SLOW))
    assert order == "1f1b" and report["pipeline"]["schedule"] == "none" and why.startswith("(by layer a step would take ")
    keys = keys_of("both in files", 0, tmp_path, gradient_clipping=0)
    (tmp_path / "unknown.json").write_text(json.dumps({"name": "box", "device": "cpu"}))
    order, why, _ = choose(tools, tmp_path, tiny, keys, "--machine", tmp_path / "unknown.json")
    assert order == "1f1b" and why.startswith("(the machine file does not say how fast links are")
    links = with_links(tmp_path, *SLOW)
    _, _, report = choose(tools, tmp_path, small, keys, *links, recompute=0)
    order, why, less = choose(tools, tmp_path, small, keys, *links, "--device-memory", arena(report) - 1, recompute=0)
    assert order == "1f1b" and arena(less) < arena(report)
    assert why == "(the other order needs more memory than there is)"


# ---- planted defects


@pytest.fixture(scope="module")
def planted(tools, tmp_path_factory):
    folder = tmp_path_factory.mktemp("planted")
    return compile_plan(tools, folder, REPOSITORY / "test/e2e/hazards/good-gpt2", {**keys_of("both in files", 0, folder, gradient_clipping=0), **LAYERS}, micro=1)[0]


def starts(role):
    return [routine for routine in role.routines if routine.name.startswith("start_")]


def a_parameter_is_used_before_it_has_come(role):
    """No forward or backward waits for what a start brings."""
    for routine, _, command in copies(role, "fetch"):
        for other in role.routines:
            if routine in starts(role) and other not in starts(role):
                for waiting in other.commands:
                    forget(waiting, command.signals[0])


def a_parameter_comes_for_the_first_micro_batch_alone(role):
    """Of the calls of a start, as if it counted micro-batches one by one."""
    names = {number for number, routine in enumerate(role.routines) if routine in starts(role)}
    for program in role.programs:
        for call in program.calls:
            if call.routine in names:
                call.microbatch = 0


def a_layer_is_updated_before_its_last_micro_batch(role):
    """A start is called one micro-batch early: one that updates, and not the first, which computes the learning rate, too."""
    step = next(program for program in role.programs if program.name == "step")
    number = [i for i, call in enumerate(step.calls) if any(command.kernel.kernel == "adamw" for command in role.routines[call.routine].commands)][1]
    early = step.calls[number]
    calls = [*step.calls[:number - 1], early, step.calls[number - 1], *step.calls[number + 1:]]
    del step.calls[:]
    step.calls.extend(calls)


def bytes_of_a_gradient_are_taken_while_it_leaves(role):
    """No start waits for what the starts before it have issued."""
    issued = [event for routine, _, command in copies(role, "evict") if routine in starts(role) for event in command.signals]
    for routine in role.routines:
        for command in routine.commands:
            if role.queues[command.queue].name == "compute":
                for event in issued:
                    forget(command, event)


def sums_do_not_begin_with_zeros(role):
    for routine in starts(role):
        for command in routine.commands:
            if command.HasField("fill") and command.fill.target.shape != [0]:
                command.fill.target.shape[:] = [1]


@pytest.mark.parametrize("edit, sentence", [
    (a_parameter_is_used_before_it_has_come, "nothing has written"), (a_parameter_comes_for_the_first_micro_batch_alone, "would wait for ever"),
    (a_layer_is_updated_before_its_last_micro_batch, "lacks micro-batch 1"), (bytes_of_a_gradient_are_taken_while_it_leaves, "(race)"),
    (sums_do_not_begin_with_zeros, "has taken")], ids=lambda case: getattr(case, "__name__", ""))
def test_planted_defects_are_refused(planted, edit, sentence):
    assert sentence in verify(planted, edit)


def test_each_routine_stands_in_the_plan_once(planted):
    """Commands do not grow with micro-batches; starts are called once a step, between the layers."""
    role = read_plan(planted).roles[0]
    step = next(program for program in role.programs if program.name == "step")
    for number, routine in enumerate(role.routines):
        calls = [call.microbatch for call in step.calls if call.routine == number]
        assert calls in ([], [0], [1], [0, 1]), routine.name
        if routine in starts(role):
            assert calls == [1]
