"""ZeRO stages 0 to 3 on several ranks against one rank that sees the same micro-batches: bit by bit, or, where sums have another order, to
the last digits of losses and weights (weights.py).

`make test` runs a subset that covers every pair of (model, stage, ranks, accumulation); DS_TEST_SCOPE=all runs the cross.
What the models have in them stands in zero_trainer.py.
"""

import itertools
import json
import os

import pytest
from pairwise import covering
from plan_files import read_plan
from safetensors.numpy import load_file, save_file
from weights import REORDERED, require_near
from zero_trainer import FROZEN, GAIN, MODELS, UNREACHED, VOCABULARY, sent, trainer  # noqa: F401 - trainer is a fixture

WHOLE = os.environ.get("DS_TEST_SCOPE") == "all"


def cases():
    """(model, stage, ranks, accumulation)."""
    everything = list(itertools.product(MODELS, range(4), (2, 3, 4, 8), (1, 3)))
    return everything if WHOLE else covering(everything)


@pytest.mark.parametrize("model", MODELS)
def test_the_models_have_every_hazard(trainer, model):
    """What the other tests rest on."""
    plan = trainer.compile(model, 8, 1, 3)
    report = trainer.report(plan)
    learns = {parameter["name"]: parameter["trainable"] for parameter in report["parameters"]}
    assert not learns[FROZEN[model]] and learns[GAIN]
    members = [member for bucket in report["ranks_detail"][0]["zero"]["buckets"] for member in bucket["members"]]
    assert not [name for name in members if name.startswith((f"{UNREACHED}::", f"{FROZEN[model]}::"))]
    assert {UNREACHED, FROZEN[model]} <= set(members), "stage 3 shares out what does not learn, too"
    norms = trainer.run(plan)[2]
    assert min(norms) > 0.5, "the gradient is clipped"
    variables = {variable.name: variable for variable in read_plan(plan).variables}
    assert any(len(variable.aliases) > 0 for variable in variables.values()), "tied"


@pytest.mark.parametrize("model, stage, ranks, accumulation", cases())
def test_stages_equal_one_rank(trainer, model, stage, ranks, accumulation):
    plan = trainer.compile(model, ranks, accumulation, stage)
    digest, losses, norms, summary = trainer.run(plan, "-n", ranks)
    one_digest, one_losses, one_norms = trainer.one_rank(model, ranks * accumulation)
    report = trainer.report(plan)
    if stage >= 2 or accumulation == 1:
        assert report["numerics"] == "bit-equal"
        assert (losses, norms, digest) == (one_losses, one_norms, one_digest)
    else:
        assert report["numerics"] == "reassociated"
        assert losses == pytest.approx(one_losses, rel=1e-5)
        assert norms == pytest.approx(one_norms, rel=1e-4)
        require_near(trainer.weights(digest), trainer.weights(one_digest), REORDERED)
    planned = [rank["wire_bytes_per_step"] for rank in report["ranks_detail"]]
    counted = [rank["wire_bytes_per_step"] for rank in summary["ranks"]]
    assert list(map(sent, counted)) == list(map(sent, planned))


def test_the_comparison_of_weights_can_fail(trainer, tmp_path):
    """One token of one sample is another."""
    tokens = load_file(trainer.data)
    tokens["input_ids"][5, 2] = (tokens["input_ids"][5, 2] + 1) % VOCABULARY
    save_file(tokens, tmp_path / "data.safetensors")
    other = trainer.run(trainer.compile("gpt2", 2, 3, 1), "-n", 2, data=tmp_path / "data.safetensors")[0]
    with pytest.raises(AssertionError, match="of its maximum"):
        require_near(trainer.weights(other), trainer.weights(trainer.one_rank("gpt2", 6)[0]), REORDERED)


@pytest.mark.parametrize("model, ranks", list(itertools.product(MODELS, (2, 3, 4, 8))) if WHOLE
                         else list(zip(MODELS, (8, 2, 3))))
def test_stages_0_and_1_equal_each_other_when_they_accumulate(trainer, model, ranks):
    results = [trainer.run(trainer.compile(model, ranks, 3, stage), "-n", ranks)[:3] for stage in (0, 1)]
    assert results[0] == results[1]


@pytest.mark.parametrize("stage", range(4))
def test_masks_of_dropout_are_those_of_one_rank(trainer, stage):
    """A mask goes by the global number of the micro-batch, whoever works on it."""
    model = ("gpt2", "--dropout=0.25")
    expected = trainer.one_rank(model, 4)
    assert expected[1] != trainer.one_rank("gpt2", 4)[1]
    for ranks, accumulation in ((2, 2), (4, 1)) if stage >= 2 else ((4, 1),):
        assert trainer.run(trainer.compile(model, ranks, accumulation, stage), "-n", ranks)[:3] == expected


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_buckets_and_keeping_change_no_bit(trainer, stage):
    """Bucket sizes, what stays gathered, and whether collectives run beside compute."""
    settings = [{"reduce_bucket_size": 1}, {"overlap_comm": True}, {"overlap_comm": False}]
    if stage == 3:
        settings += [{"stage3_max_live_parameters": 0}, {"stage3_max_reuse_distance": 0, "overlap_comm": True},
                     {"stage3_param_persistence_threshold": 10**9}]
    expected = trainer.one_rank("gpt2", 4)
    for setting in settings:
        result = trainer.run(trainer.compile("gpt2", 2, 2, stage, **setting), "-n", 2)[:3]
        if stage == 1:  # sums of another order than one rank's, but always the same
            expected = result if setting is settings[0] else expected
        assert result == expected, setting


# Pass: where it has something to do (stage, accumulation, what it saves).
OPTIONAL = {"ds-elide-redundant-gathers": (3, 2, "bytes"), "ds-keep-parameters-gathered": (3, 2, "bytes"),
            "ds-advance-reductions": (0, 1, None), "ds-combine-collectives": (2, 2, "launches"),
            "ds-hoist-gathers": (3, 2, None), "ds-split-async-collectives": (0, 1, "queue")}


@pytest.mark.parametrize("left_out", OPTIONAL)
def test_passes_that_may_be_left_out_change_no_bit(trainer, left_out):
    stage, accumulation, saves = OPTIONAL[left_out]
    plans = [trainer.compile("gpt2", 2, accumulation, stage, overlap_comm=True, without=name) for name in (None, left_out)]
    results = [trainer.run(plan, "-n", 2) for plan in plans]
    assert results[0][:3] == results[1][:3] == trainer.one_rank("gpt2", 2 * accumulation)
    assert plans[0].read_bytes() != plans[1].read_bytes()
    roles = [read_plan(plan).roles[0] for plan in plans]
    moved = [sent(result[3]["ranks"][0]["wire_bytes_per_step"]) for result in results]
    launches = [sum(command.HasField("collective") for routine in role.routines for command in routine.commands) for role in roles]
    queues = [len(role.queues) for role in roles]
    assert (moved[0] < moved[1]) == (saves == "bytes")
    assert saves != "launches" or launches[0] < launches[1]
    assert (queues[0] > queues[1]) == (saves == "queue")


def test_check_memory_changes_no_bit(trainer):
    plan = trainer.compile("gpt2", 2, 2, 3, overlap_comm=True)
    assert trainer.run(plan, "-n", 2, "--check-memory", steps=5)[:3] == trainer.run(plan, "-n", 2, steps=5)[:3]


def test_evaluation_is_the_mean_over_the_ranks(trainer):
    losses = {}
    for ranks in (1, 2):
        plan = trainer.compile("gpt2", ranks, 2 // ranks, 3)
        metrics = plan.with_suffix(".eval.jsonl")
        trainer.tools("ds-run", plan, "--data", trainer.data, "--eval", "-n", ranks, "--metrics", metrics, "--quiet")
        lines = [json.loads(line) for line in metrics.read_text().splitlines()]
        losses[ranks] = [line["eval_loss"] for line in lines if "eval_loss" in line]
    assert losses[2] and losses[2] == pytest.approx(losses[1], rel=1e-5)


def test_what_is_refused(trainer, tools):
    plan = trainer.compile("gpt2", 2, 1, 1)
    assert "2 ranks" in tools.refused("ds-run", plan, "-n", 3, "--data", trainer.data)
    config = plan.with_suffix(".json")
    arguments = ("ds-opt", "compile", trainer.model("gpt2"), "--config", config, "--ranks", 2)
    assert "train_batch_size" in tools.refused(*arguments, "--set", "train_batch_size=3")
    assert "reduce_bucket_size" in tools.refused(*arguments, "--set", "zero_optimization.reduce_bucket_size=0")
    assert "nvme_path" in tools.refused(*arguments, "--set", 'zero_optimization.offload_optimizer={"device": "nvme"}')
