"""communication_data_type: gradients are sent in 16 bits. Half the bytes, numerics that the plan calls lossy, losses close to float32's."""

import json
import shutil
import subprocess
import sys

import pytest
from conftest import REPOSITORY, write_config
from plan_files import read_plan, write_plan
from weights import require_near
from zero_trainer import SMALL, sent, trainer  # noqa: F401 - trainer is a fixture

KINDS = {"bf16": 0.02, "fp16": 0.005}  # how far losses may be: 8 and 11 bits of precision


def reduced(rank):
    """Bytes of a step's sums."""
    return rank["wire_bytes_per_step"]["reduce_scatter"] + rank["wire_bytes_per_step"]["all_reduce"]


@pytest.mark.parametrize("model, stage, ranks, accumulation, kind, more", [
    ("gpt2", 0, 2, 1, "bf16", {}), ("llama", 0, 3, 2, "fp16", {}), ("gpt2", 1, 4, 2, "bf16", {}), ("llama", 1, 2, 1, "fp16", {"overlap_comm": True}),
    ("bert", 2, 3, 2, "fp16", {}), ("gpt2", 2, 2, 3, "bf16", {"overlap_comm": True}), ("llama", 3, 2, 2, "bf16", {"overlap_comm": True}),
    ("gpt2", 3, 4, 2, "fp16", {"overlap_comm": False})])
def test_half_the_bytes_and_nearly_the_losses(trainer, model, stage, ranks, accumulation, kind, more):  # noqa: F811
    wide, narrow = (trainer.compile(model, ranks, accumulation, stage, keys=keys, **more) for keys in ({}, {"communication_data_type": kind}))
    reports = [trainer.report(plan) for plan in (wide, narrow)]
    assert reports[0]["numerics"] != "lossy" and reports[1]["numerics"] == "lossy"
    before, after = (reduced(report["ranks_detail"][0]) for report in reports)
    assert 0 <= 2 * after - before <= 64 * accumulation, "all but the losses, which stay float32, is halved"
    results = [trainer.run(plan, "-n", ranks) for plan in (wide, narrow, narrow)]
    assert results[1][:3] == results[2][:3] and results[0][1] != results[1][1]
    assert results[1][1] == pytest.approx(results[0][1], rel=KINDS[kind])
    assert [sent(rank["wire_bytes_per_step"]) for rank in results[1][3]["ranks"]] == [
        sent(rank["wire_bytes_per_step"]) for rank in reports[1]["ranks_detail"]]
    require_near(trainer.weights(results[1][0]), trainer.weights(results[0][0]), 0.2)


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="there is no mpirun")
@pytest.mark.parametrize("stage, kind", [(0, "fp16"), (2, "bf16")])
def test_mpi_has_the_bits_of_one_process(trainer, stage, kind):  # noqa: F811
    plan = trainer.compile("gpt2", 2, 2, stage, keys={"communication_data_type": kind})
    assert trainer.run(plan, "-n", 2, steps=5)[:3] == trainer.run_by_mpi(plan, 2, steps=5)[:3]


@pytest.mark.parametrize("stage, keys", [(0, {}), (2, {"bf16": {"enabled": True}}), (3, {"fp16": {"enabled": True}}),
                                         (1, {"deepstatic": {"pipeline": {"stages": 2}}})], ids=["0", "bf16", "fp16", "stages"])
def test_it_is_proven_audited_and_what_was_asked_for(tools, tmp_path, stage, keys):
    model, plan = REPOSITORY / "test/e2e/hazards/good-gpt2", tmp_path / "plan.dsplan"
    ranks = 4 if "deepstatic" in keys else 2
    config = write_config(tmp_path / "config.json", 1, 2, zero_optimization={"stage": stage, **SMALL}, **keys)
    asked = ["--set", "communication_data_type=bf16"]
    tools("ds-opt", "compile", model, "--config", config, *asked, "--ranks", ranks, "-o", plan)
    said = tools("ds-opt", "verify", plan, "--config", config).stdout
    assert "ranks sum gradients in bf16, as communication_data_type asks" in said
    forgotten = read_plan(plan)
    forgotten.sources.ClearField("overrides")
    refused = tools.refused("ds-opt", "verify", write_plan(tmp_path / "forgotten.dsplan", forgotten), "--config", config)
    assert 'sums gradients over ranks in bf16, but communication_data_type is "fp32"' in refused
    done = subprocess.run([sys.executable, REPOSITORY / "tools/ds-audit/ds-audit", plan, "--orders", "1"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_one_rank_has_nobody_to_sum_with(tools, tmp_path):
    model = REPOSITORY / "test/e2e/hazards/good-gpt2"
    config = write_config(tmp_path / "config.json", 1, communication_data_type="bf16")
    answers = json.loads(tools("ds-opt", "check", model, "--config", config, "--format", "json").stdout)["checks"][0]
    status = {answer["path"]: answer["status"] for answer in answers["config"]}
    assert status["communication_data_type"] == "subsumed"
