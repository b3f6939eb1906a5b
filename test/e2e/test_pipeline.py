"""Models cut into pipeline stages against the plan of one stage, without tolerances, and against PyTorch.

`make test` runs a subset that covers every pair of (model, schedule, stages, micro-batches, ZeRO stage, data ranks); DS_TEST_SCOPE=all
runs the cross. The models stand in pipeline_trainer.py.
"""

import dataclasses
import json
import os
import shutil

import pytest
from conftest import write_config
from pairwise import covering
from pipeline_trainer import Cut, every_cut, exporter, trainer  # noqa: F401 - trainer is a fixture
from plan_files import read_plan, write_plan
from torch_reference import initializers

WHOLE = os.environ.get("DS_TEST_SCOPE") == "all"


def cases():
    everything = [(model, *dataclasses.astuple(cut)) for model, cut in every_cut()]
    return everything if WHOLE else covering(everything)


@pytest.mark.parametrize("model, stages, microbatches, schedule, zero, data", cases())
def test_stages_equal_one_stage(trainer, model, stages, microbatches, schedule, zero, data):
    cut = Cut(stages, microbatches, schedule, zero, data)
    plan = trainer.compile(model, cut)
    digest, losses, norms, summary = trainer.run(model, plan, cut.ranks)
    assert (losses, norms, digest) == (*trainer.one_stage(model, cut)[1:], trainer.one_stage(model, cut)[0])
    assert losses == pytest.approx(trainer.pytorch(model, cut), rel=1e-5)
    report = trainer.report(plan)
    assert report["pipeline"]["schedule"] == schedule and report["pipeline"]["stages"] == stages
    assert report["world"] == {"data": data, "pipe": stages, "tensor": 1}


# --- what the schedules and sizes of the cross leave open


def test_masks_of_dropout_are_those_of_one_stage(trainer):
    """A mask goes by the global number of the micro-batch and by the op, wherever they run."""
    cut = Cut(2, 4, "1f1b", 2, 2)
    expected = trainer.one_stage("gpt2 dropout", cut)
    assert expected[1] != trainer.one_stage("gpt2", cut)[1]
    assert trainer.run("gpt2 dropout", trainer.compile("gpt2 dropout", cut), cut.ranks)[:3] == expected


@pytest.mark.parametrize("options", [("--check-memory",), ("--check-numerics",)], ids=["check-memory", "check-numerics"])
def test_how_a_plan_is_run_changes_no_bit(trainer, options):
    cut = Cut(2, 4, "zb-h1", 3, 2)
    plan = trainer.compile("llama", cut)
    assert trainer.run("llama", plan, cut.ranks, *options)[:3] == trainer.one_stage("llama", cut)


def evaluation(trainer, model, cut):
    plan = trainer.compile(model, cut)
    lines = plan.with_suffix(".eval.jsonl")
    trainer.tools("ds-run", plan, "--data", trainer.data(model), "--eval", "-n", cut.ranks, "--metrics", lines, "--quiet")
    return [line["eval_loss"] for line in map(json.loads, lines.read_text().splitlines()) if "eval_loss" in line]


def test_evaluation_is_that_of_one_stage(trainer):
    expected = evaluation(trainer, "llama", Cut(1, 4))
    assert expected and evaluation(trainer, "llama", Cut(4, 4, "interleaved")) == expected


@pytest.mark.parametrize("zero, data", [(0, 1), (2, 2)])
def test_a_cut_block_sends_its_residual_to_a_rank_once(trainer, zero, data):
    """One block in four stages: two stages of a rank read the residual that the other rank's first stage adds."""
    model, cut = "gpt2 one block", Cut(2, 4, "interleaved", zero, data)
    plan = trainer.compile(model, cut)
    assert not [channel for channel in read_plan(plan).channels if channel.name in ("forward::0-3", "evaluate::0-3")]
    assert trainer.run(model, plan, cut.ranks)[:3] == trainer.one_stage(model, cut)
    expected = evaluation(trainer, model, cut.whole())
    assert expected and evaluation(trainer, model, cut) == expected


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="there is no mpirun")
@pytest.mark.parametrize("model, cut", [("llama", Cut(2, 4, "1f1b", 3, 2)), ("resnet", Cut(4, 4, "interleaved", 0, 1)),
                                        ("bert tied", Cut(2, 8, "zb-h1", 1, 2))], ids=["1f1b", "interleaved", "zb-h1"])
def test_processes_have_the_bits_of_threads(trainer, model, cut):
    plan = trainer.compile(model, cut)
    *result, summary = trainer.run_by_mpi(model, plan, cut.ranks)
    assert result == list(trainer.run(model, plan, cut.ranks)[:3])
    for planned, counted in zip(trainer.report(plan)["ranks_detail"], summary["ranks"]):
        assert counted["wire_bytes_per_step"] == planned["wire_bytes_per_step"]


# --- a tie across stages


TIES = [("gpt2 tied", Cut(2, 4, "1f1b", 0, 1)), ("gpt2 tied", Cut(4, 4, "interleaved", 3, 2)), ("bert tied", Cut(4, 8, "zb-h1", 2, 1)),
        ("bert tied", Cut(2, 1, "gpipe", 1, 2))]


@pytest.mark.parametrize("model, cut", TIES, ids=str)
def test_a_tie_across_stages_adds_up(trainer, model, cut):
    """The sum over the tie's uses is another order than one stage's, so the limits are those of rounding."""
    plan = trainer.compile(model, cut)
    assert trainer.report(plan)["numerics"] == "reassociated"
    result = trainer.run(model, plan, cut.ranks)[:3]
    trainer.require_near_one_stage(model, cut, result)
    assert result[1] == pytest.approx(trainer.pytorch(model, cut), rel=1e-5)


@pytest.mark.parametrize("model, cut", TIES, ids=str)
def test_gradients_of_the_first_step_of_a_tie(trainer, model, cut):
    """Read off a step of SGD so long that the weights hardly show: (w - w') / lr."""
    rate = 2.0**20
    optimizer = {"type": "SGD", "params": {"lr": rate}}
    before = initializers(trainer.model(model))
    gradients = []
    for shape in (cut, cut.whole()):
        plan = trainer.compile(model, shape, optimizer=optimizer, gradient_clipping=0)
        after = trainer.weights(model, plan, shape.ranks)
        gradients.append({name: (before[name].double().numpy() - value) / rate for name, value in after.items()})
    for name, expected in gradients[1].items():
        assert abs(gradients[0][name] - expected).max() <= 1e-6 * abs(expected).max(), name


def name_copies(plan):
    """Gives the first stage's copy of every tied weight, and of its moments, a variable of its own; twin -> what it is a copy of."""
    shared = set.intersection(*({name for name in held(plan, role)} for role in (plan.roles[0], plan.roles[-1]))) - {"optimizer::step"}
    twins = {}

    def twin_of(index):
        twin = plan.variables.add()
        twin.CopyFrom(plan.variables[index])
        twin.name, twin.kind, twin.persistent = f"twin::{twin.name}", 1, True
        twin.ClearField("of")  # a moment that is exported as a parameter
        plan.variables[index].ClearField("of")
        plan.variables[index].kind, plan.variables[index].persistent = 1, True
        del twin.aliases[:]
        twins[twin.name] = plan.variables[index].name
        return len(plan.variables) - 1

    for buffer in plan.roles[0].buffers:
        if buffer.HasField("variable") and plan.variables[buffer.variable].name in shared:
            buffer.variable = twin_of(buffer.variable)
        elif buffer.HasField("bucket") and plan.variables[plan.buckets[buffer.bucket].members[0].variable].name in shared:
            bucket = plan.buckets.add()
            bucket.CopyFrom(plan.buckets[buffer.bucket])
            bucket.name = f"twin::{bucket.name}"
            for member in bucket.members:
                member.variable = twin_of(member.variable)
            buffer.bucket = len(plan.buckets) - 1
    return twins


def held(plan, role):
    """Names of the variables that a role holds, or a part of."""
    for buffer in role.buffers:
        members = [member.variable for member in plan.buckets[buffer.bucket].members] if buffer.HasField("bucket") else []
        for index in [*members, *([buffer.variable] if buffer.HasField("variable") else [])]:
            yield plan.variables[index].name


@pytest.mark.parametrize("model, cut", TIES, ids=str)
def test_copies_of_a_tie_stay_equal(trainer, model, cut):
    """Weight and moments: the first stage's are exported beside the last one's."""
    path = trainer.compile(model, cut)
    plan = read_plan(path)
    twins = name_copies(plan)
    assert len(twins) == 3, twins
    weights = trainer.weights(model, write_plan(path.with_suffix(".twins.dsplan"), plan), cut.ranks, steps=5)
    for twin, name in twins.items():
        assert (weights[twin] == weights[name]).all() and weights[twin].any(), name


# --- what is refused


def refusal(trainer, pipeline, ranks, microbatches=4):
    config = trainer.config("gpt2", Cut(1, microbatches))
    return trainer.tools.refused("ds-opt", "compile", trainer.model("gpt2"), "--config", config, "--ranks", ranks,
                                 "--set", f"deepstatic.pipeline={json.dumps(pipeline)}", "-o", config.with_suffix(".none.dsplan"))


@pytest.mark.parametrize("pipeline, ranks, microbatches, said", [
    ({"stages": 2, "schedule": "1f1bb"}, 2, 4, ['"1f1bb"', 'the nearest is "1f1b"']),
    ({"stages": 4}, 2, 4, ["stages is 4", "--ranks is 2"]),
    ({"stages": 2, "schedule": "interleaved", "chunks": 2}, 2, 3, ["gradient_accumulation_steps is 3", "2 and 4 are"]),
    ({"stages": 2, "chunks": 2}, 2, 4, ["chunks is 2", "1f1b"]),
    ({"stages": 2, "schedule": "interleaved", "chunks": 1}, 2, 4, ["chunks is 1"]),
    ({"stages": 2}, 3, 4, ["ranks", "3", "2"]),
    ({"stages": 1000}, 1000, 4, ["deepstatic.pipeline.stages", "cannot be cut into 1000 stages"]),
    ({"stages": 0}, 1, 4, ["stages is 0"]),
])
def test_what_is_refused(trainer, pipeline, ranks, microbatches, said):
    sentence = refusal(trainer, pipeline, ranks, microbatches)
    for words in said:
        assert words in sentence, sentence


def test_both_sections_with_different_values_are_refused(trainer):
    config = trainer.config("gpt2", Cut(2, 4), pipeline={"stages": 4})
    sentence = trainer.tools.refused("ds-opt", "compile", trainer.model("gpt2"), "--config", config, "--ranks", 4)
    assert "pipeline.stages" in sentence and "4" in sentence and "2" in sentence


# --- size


def test_plans_do_not_grow_with_the_microbatches(tools, tmp_path):
    """Only the list of calls grows, by a few bytes a call; bench/compile_time.py has 64 stages."""
    model = tmp_path / "model"
    settings = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 16, "num_attention_heads": 2, "num_key_value_heads": 2,
                "vocab_size": 100, "max_position_embeddings": 16}
    assert exporter.main(["llama", "--size=tiny", "--seq=16", "--no-weights", f"--out={model}",
                          *(f"--set={key}={value}" for key, value in settings.items())]) == 0
    sizes = {}
    for microbatches in (16, 512):
        config = write_config(tmp_path / "c.json", 1, microbatches, deepstatic={"pipeline": {"stages": 16}})
        plan = tmp_path / f"{microbatches}.dsplan"
        tools("ds-opt", "compile", model, "--config", config, "--ranks", 16, "-o", plan)
        sizes[microbatches] = plan.stat().st_size
    calls = 16 * (512 - 16) * 5  # two feeds or receives, forward, backward, and one to spare
    assert sizes[512] - sizes[16] < 8 * calls, sizes
