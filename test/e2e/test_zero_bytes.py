"""What ZeRO's stages hold and send: bytes a rank, padding, bytes on the wire, and that plans do not grow with the ranks."""

import json

import pytest
from conftest import write_config
from zero_trainer import FROZEN, MODELS, UNREACHED, exporter, gradient_bytes, sent, trainer  # noqa: F401 - trainer is a fixture


@pytest.mark.parametrize("accumulation", [1, 4])
@pytest.mark.parametrize("stage", range(4))
def test_bytes_follow_the_zero_table(trainer, stage, accumulation):
    """Stage 1 shares gradients out where a step has one micro-batch."""
    ranks = 4
    report = trainer.report(trainer.compile("llama", ranks, accumulation, stage, stage3_param_persistence_threshold=0))
    zero = report["ranks_detail"][0]["zero"]
    for kind, shared_from in (("optimizer", 1), ("gradients", 1 if accumulation == 1 else 2), ("weights", 3)):
        facts = zero[kind]
        expected = facts["whole_bytes"] / (ranks if stage >= shared_from else 1)
        # scalars (the step, metrics) and buffers of the module are nobody's slice
        assert expected <= facts["rank_bytes"] + ranks and facts["rank_bytes"] <= expected * 1.01 + 4096, (kind, facts)
    memory = report["ranks_detail"][0]["memory"]["device"]
    assert memory["bucket_padding"] <= memory["padding"]


@pytest.mark.parametrize("overlap", [False, True])
def test_stage_1_with_one_micro_batch_holds_what_stage_2_holds(trainer, overlap):
    """Slices of gradients, and at most a bucket of them on its way; the report says the stage that was asked for."""
    one, two, several = (trainer.report(trainer.compile("llama", 4, accumulation, stage, overlap_comm=overlap))
                         for stage, accumulation in ((1, 1), (2, 1), (1, 4)))
    assert one["ranks_detail"] == two["ranks_detail"]
    assert [entry["value"] for entry in one["config"] if entry["path"] == "zero_optimization.stage"] == [1]
    gradients, whole = (report["ranks_detail"][0]["zero"]["gradients"]["rank_bytes"] for report in (one, several))
    largest = max(4 * bucket["elements"] for bucket in one["ranks_detail"][0]["zero"]["buckets"])
    needed, accumulated = (report["ranks_detail"][0]["memory"]["device"]["arena_bytes"] for report in (one, several))
    assert needed <= accumulated - whole + gradients + largest


@pytest.mark.parametrize("stage, factor", [(0, lambda g: 2), (1, lambda g: 2), (2, lambda g: g + 1)])
def test_wire_bytes(trainer, stage, factor):
    """Of P bytes of parameters, times (n - 1) / n: 2P, 2P, (G + 1)P."""
    ranks, accumulation = 4, 3
    report = trainer.report(trainer.compile("gpt2", ranks, accumulation, stage))
    rank = report["ranks_detail"][0]
    share = (ranks - 1) / ranks * gradient_bytes(rank)
    assert factor(accumulation) * share <= sent(rank["wire_bytes_per_step"]) <= factor(accumulation) * share * 1.005


@pytest.mark.parametrize("accumulation", [1, 3])
@pytest.mark.parametrize("stage", [1, 2])
@pytest.mark.parametrize("type_", ["bf16", "fp16"])
def test_ranks_work_with_16_bits_of_a_sharded_parameter(trainer, stage, accumulation, type_):
    """2 bytes an element are gathered, once a step, and held whole; of float32 a rank has its slice, and all of what is read so."""
    ranks = 4
    report = trainer.report(trainer.compile("llama", ranks, accumulation, stage, keys={type_: {"enabled": True}}))
    rank = report["ranks_detail"][0]
    parameters = [bucket for bucket in rank["zero"]["buckets"] if "::" not in bucket["name"]]
    sliced, whole = ([b["elements"] for b in parameters if b["held"] == held] for held in ("slice", "whole"))
    assert sliced and whole
    assert all(b["rank_bytes"] == 4 * b["elements"] // (ranks if b["held"] == "slice" else 1) for b in parameters)
    share = (ranks - 1) / ranks * (2 * sum(sliced) + 4 * sum(whole))
    assert share <= rank["wire_bytes_per_step"]["all_gather"] <= share * 1.02 + 4096  # and the partial sums of the norm


def share_of_stage_3(report, accumulation, of_sliced):
    """(n - 1) / n times the bytes of every bucket of parameters, each as often as a step moves it; `of_sliced` says how often
    those that are shared out move."""
    ranks, buckets = report["ranks"], report["ranks_detail"][0]["zero"]["buckets"]
    times = lambda bucket: accumulation + 1 if bucket["held"] == "whole" else of_sliced(bucket["members"])
    return (ranks - 1) / ranks * sum(4 * b["elements"] * times(b) for b in buckets if "::" not in b["name"])


@pytest.mark.parametrize("accumulation", [1, 3])
def test_wire_bytes_of_stage_3_with_nothing_kept(trainer, accumulation):
    """3GP: gathered in both passes and reduced. Three do less: what learns nothing is not reduced, an embedding is not needed in the
    backward, and a head is used there first, with nothing between."""
    untied = ("llama", "--set=tie_word_embeddings=false")
    plan = trainer.compile(untied, 4, accumulation, 3, reduce_bucket_size=1, stage3_max_live_parameters=0,
                           stage3_max_reuse_distance=0, stage3_param_persistence_threshold=20)
    report = trainer.report(plan)
    exceptions = {FROZEN["llama"]: 2, "model.embed_tokens.weight": 2, "lm_head.weight": 2}
    planned = share_of_stage_3(report, accumulation, lambda members: accumulation * exceptions.get(members[0], 3))
    assert planned <= sent(report["ranks_detail"][0]["wire_bytes_per_step"]) <= planned * 1.005


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("accumulation", [1, 3])
def test_wire_bytes_of_stage_3_with_all_kept(trainer, model, accumulation):
    """(G + 1)P: gathered once and reduced in every micro-batch; what learns nothing is gathered once."""
    report = trainer.report(trainer.compile(model, 4, accumulation, 3, stage3_param_persistence_threshold=0))
    still = {FROZEN[model], UNREACHED}
    planned = share_of_stage_3(report, accumulation, lambda members: 1 if set(members) & still else accumulation + 1)
    assert planned <= sent(report["ranks_detail"][0]["wire_bytes_per_step"]) <= planned * 1.005


def test_a_parameter_larger_than_a_bucket_is_said_to_be(trainer):
    report = trainer.report(trainer.compile("gpt2", 2, 1, 2, reduce_bucket_size=20))
    notes = {bucket["note"]: bucket["members"] for bucket in report["ranks_detail"][0]["zero"]["buckets"] if "note" in bucket}
    assert notes and all(len(members) == 1 for members in notes.values())


@pytest.fixture(scope="module")
def wide_model(tmp_path_factory):
    """Five layers of Llama 7B, 1.3B parameters, without weights."""
    folder = tmp_path_factory.mktemp("wide") / "model"
    assert exporter.main(["llama", "--size=7b", "--seq=16", "--set=num_hidden_layers=5", "--no-weights", f"--out={folder}"]) == 0
    return folder


@pytest.mark.parametrize("stage", range(4))
def test_neither_plans_nor_padding_grow_with_the_ranks(wide_model, tools, tmp_path, stage):
    sizes = []
    for ranks in (8, 1000, 1024, 16384):
        config = write_config(tmp_path / "c.json", 1, 4, gradient_clipping=1.0, zero_optimization={"stage": stage})
        plan = tmp_path / f"{ranks}.dsplan"
        tools("ds-opt", "compile", wide_model, "--config", config, "--ranks", ranks, "-o", plan)
        sizes.append(plan.stat().st_size)
        zero = json.loads(tools("ds-opt", "report", plan, "--format", "json").stdout)["ranks_detail"][0]["zero"]
        state = [zero[kind] for kind in ("weights", "gradients", "optimizer")]
        assert sum(s["rank_padding"] for s in state) < 0.01 * sum(s["rank_bytes"] for s in state), (ranks, state)
    assert max(sizes) < min(sizes) * 1.01
