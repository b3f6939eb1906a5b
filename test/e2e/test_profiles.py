"""wall_clock_breakdown, comms_logger, flops_profiler and model FLOPs: counts are the plan's, and the bits of a run do not change."""

import json
import re

import numpy
import pytest
from conftest import REPOSITORY, write_config
from safetensors.numpy import load_file, save_file

MODEL = REPOSITORY / "test/e2e/hazards/good-gpt2"
RANKS, STEPS = 2, 4


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "data.safetensors"
    tokens = numpy.random.default_rng(0).integers(0, 8, (64, 4), dtype=numpy.int64)
    save_file({"input_ids": tokens, "labels": tokens}, path)
    return path


def run(tools, folder, data, stage=2, words=(), **keys):
    """(report, stderr, metrics, exported weights)."""
    plan, metrics, weights = folder / "p.dsplan", folder / "m.jsonl", folder / "w.safetensors"
    config = write_config(folder / "c.json", 1, 2, zero_optimization={"stage": stage}, **keys)
    tools("ds-opt", "compile", MODEL, "--config", config, "--ranks", RANKS, "-o", plan)
    report = json.loads(tools("ds-opt", "report", plan, "--format", "json").stdout)
    metrics.unlink(missing_ok=True)
    done = tools("ds-run", plan, "-n", RANKS, "--data", data, "--steps", STEPS, "--threads", 1, "--metrics", metrics, "--export", weights, *words)
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    return report, done.stderr, [line for line in lines if "loss" in line], weights.read_bytes()


@pytest.mark.parametrize("stage", [0, 2, 3])
def test_collectives_move_the_plans_bytes(tools, tmp_path, data, stage):
    report, told, _, _ = run(tools, tmp_path, data, stage, comms_logger={"enabled": True})
    rows = re.findall(r"^(all_gather|reduce_scatter|all_reduce) +(\d+) +(\d+) +(\d+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)$", told, re.MULTILINE)
    assert f"communication of rank 0 in {STEPS} steps" in told and rows
    planned = report["ranks_detail"][0]["wire_bytes_per_step"]
    moved = {"all_gather": 0, "reduce_scatter": 0, "all_reduce": 0}
    for kind, ranks, size, count, total, mean, algorithm, bus in rows:
        factor = (RANKS - 1) / RANKS * (2 if kind == "all_reduce" else 1)
        assert int(ranks) == RANKS and float(total) > 0
        assert float(bus) == pytest.approx(float(algorithm) * factor, abs=2e-3)
        moved[kind] += int(size) * int(count) * factor
    for kind, size in moved.items():
        assert size == pytest.approx(planned[kind] * STEPS, abs=8 * STEPS), kind


def test_flops_are_the_plans(tools, tmp_path, data):
    file = tmp_path / "flops.txt"
    report, told, metrics, _ = run(tools, tmp_path, data, flops_profiler={"enabled": True, "profile_step": 3, "output_file": str(file)},
                                   words=("--peak-tflops", "0.5"))
    text = file.read_text()
    assert text.startswith("kernels of rank 0 in step 3:\n") and "kernels of rank 0" not in told
    computed, model = map(int, re.search(r"rank 0 computes (\d+) FLOPs of products in a step; the model has (\d+)", text).groups())
    assert model == report["ranks_detail"][0]["flops_per_step"] <= computed
    assert sum(map(int, re.findall(r"^(?:fwd|bwd|step) +[a-z]\w* +\d+ +(\d+)", text, re.MULTILINE))) == computed
    head = {part: (int(macs), int(flops), float(ms), float(rate)) for part, macs, flops, ms, rate in re.findall(
        r"^(fwd|bwd|step|whole step) +(\d+) +(\d+) +([\d.]+) +([\d.]+)$", text, re.MULTILINE)}
    assert set(head) == {"fwd", "bwd", "step", "whole step"}
    assert head["whole step"][:2] == (computed // 2, computed) == tuple(sum(head[part][i] for part in ("fwd", "bwd", "step")) for i in (0, 1))
    seconds = next(line["step_seconds"] for line in metrics if line["step"] == 3)
    assert head["whole step"][2] == pytest.approx(1e3 * seconds, abs=1e-3)
    assert head["whole step"][3] == pytest.approx(computed / seconds * 1e-9, abs=1e-3, rel=1e-3)
    weights = load_file(tmp_path / "w.safetensors").values()
    assert f"parameters of the model {sum(weight.size for weight in weights)}\n" in text
    for line in metrics:
        assert line["model_flops_per_second"] * line["step_seconds"] == pytest.approx(model * RANKS, rel=1e-6)
        assert line["model_flops_utilization"] == pytest.approx(line["model_flops_per_second"] / (0.5e12 * RANKS), rel=1e-6)


def test_an_evaluation_is_no_part_of_a_step(tools, tmp_path, data):
    keys = {"comms_logger": {"enabled": True}, "flops_profiler": {"enabled": True, "profile_step": 3}}

    def counts(*words):
        told = run(tools, tmp_path, data, 3, words=words, **keys)[1]
        kernels = re.findall(r"^(fwd|bwd|step|other) +([a-z]\w*) +(\d+) +(\d+) +[\d.]+ +[\d.]+$", told, re.MULTILINE)
        collectives = re.findall(r"^(all_gather|reduce_scatter|all_reduce) +(\d+) +(\d+) +(\d+) ", told, re.MULTILINE)
        assert kernels and collectives
        return kernels, collectives, re.search(r"rank 0 computes (\d+)", told).group(1)

    assert counts("--eval-data", data, "--eval-interval", 1) == counts()


def test_a_step_that_is_never_reached_is_said(tools, tmp_path, data):
    told = run(tools, tmp_path, data, flops_profiler={"enabled": True, "profile_step": STEPS + 1})[1]
    assert f"note: flops_profiler.profile_step is {STEPS + 1}, and the run was of steps 1 to {STEPS}: no table of FLOPs" in told


@pytest.mark.parametrize("keys", [{"pipeline": {"stages": 2}}, {"deepstatic": {"recompute": "full"}}], ids=["pipeline", "recompute"])
def test_model_flops_are_each_counted_once(tools, tmp_path, data, keys):
    report, told, metrics, _ = run(tools, tmp_path, data, stage=0, flops_profiler={"enabled": True}, **keys)
    stages = report["ranks_detail"] if "pipeline" in keys else report["ranks_detail"][:1]
    model = sum(rank["flops_per_step"] for rank in stages)
    assert str(model) == re.search(r"the model has (\d+)", told).group(1)
    for line in metrics:
        assert line["model_flops_per_second"] * line["step_seconds"] == pytest.approx(model * RANKS / len(stages), rel=1e-6)
    if "deepstatic" in keys:
        again = report["ranks_detail"][0]["recompute_flops_per_step"]
        assert again > 0 and int(re.search(r"rank 0 computes (\d+)", told).group(1)) >= model + again


def phases(told):
    """Of each table: {part: [ms, share, ms beside it]}, and the total."""
    tables = []
    for table in re.findall(r"^part +ms .*\n((?:.+\n)*?)total +([\d.]+) +100.0%$", told, re.MULTILINE):
        rows = {line.split()[0]: [float(word.rstrip("%")) for word in line.split()[1:]] for line in table[0].splitlines()}
        assert list(rows) == ["fwd", "bwd", "step", "data", "checkpoint", "other"]
        tables.append((rows, float(table[1])))
    return tables


def test_phases_are_shown_as_often_as_asked(tools, tmp_path, data):
    _, told, metrics, _ = run(tools, tmp_path, data, wall_clock_breakdown=True, steps_per_print=3)
    assert "mean of 3 steps up to step 3" in told and "mean of 1 steps up to step 4" in told
    tables = phases(told)
    assert len(tables) == 2
    for (rows, total), steps in zip(tables, (metrics[:3], metrics[3:])):
        assert all(rows[phase][0] > 0 for phase in ("fwd", "bwd", "step")) and rows["data"][0] + rows["data"][2] > 0
        assert sum(row[0] for row in rows.values()) == pytest.approx(total, abs=4e-3)
        assert all(row[0] >= 0 for row in rows.values())
        assert total == pytest.approx(1e3 * numpy.mean([step["step_seconds"] for step in steps]) + rows["checkpoint"][0], abs=2e-3)
    assert "model_flops_utilization" not in metrics[0], "nobody has said what a rank can do"


def test_saving_is_a_part_of_a_step(tools, tmp_path, data):
    words = ("--save", tmp_path / "checkpoints", "--save-interval", 1)
    told = run(tools, tmp_path, data, words=words, wall_clock_breakdown=True, steps_per_print=2)[1]
    without = run(tools, tmp_path, data, wall_clock_breakdown=True, steps_per_print=2)[1]
    assert len(phases(told)) == len(phases(without)) == STEPS // 2
    for (rows, _), (plain, _) in zip(phases(told), phases(without)):
        assert rows["checkpoint"][0] > 10 * plain["checkpoint"][0], "a file that is flushed takes longer than none"


def test_each_stage_has_its_tables_and_its_messages(tools, tmp_path, data):
    report, told, _, _ = run(tools, tmp_path, data, stage=0, pipeline={"stages": 2}, wall_clock_breakdown=True, comms_logger={"enabled": True},
                             flops_profiler={"enabled": True})
    assert len(phases(told)) == 2 and all(f"kernels of rank {rank} (stage{rank}) in step 1" in told for rank in (0, 1))
    tables = re.split(r"^communication of rank (\d)", told, flags=re.MULTILINE)
    assert tables[1::2] == ["0", "1"]
    for rank, table in zip((0, 1), tables[2::2]):
        rows = re.findall(r"^(send|recv) +2 +(\d+) +(\d+) +[\d.]+ +[\d.]+ +([\d.]+) +([\d.]+)$", table, re.MULTILINE)
        planned = report["ranks_detail"][rank]["wire_bytes_per_step"]
        for kind in ("send", "recv"):
            assert sum(int(size) * int(count) for name, size, count, _, _ in rows if name == kind) == planned[kind] * STEPS > 0
        assert all(algorithm == bus for _, _, _, algorithm, bus in rows)


def test_one_rank_communicates_nothing(tools, tmp_path, data):
    plan = tmp_path / "p.dsplan"
    config = write_config(tmp_path / "c.json", 1, comms_logger={"enabled": True})
    tools("ds-opt", "compile", MODEL, "--config", config, "-o", plan)
    told = tools("ds-run", plan, "--data", data, "--steps", 1).stderr
    assert "note: comms_logger has nothing to show: this run communicates nothing\n" in told and "algbw" not in told


def test_profiles_change_no_bit(tools, tmp_path, data):
    plain, profiled = tmp_path / "plain", tmp_path / "profiled"
    plain.mkdir()
    profiled.mkdir()
    keys = {"wall_clock_breakdown": True, "comms_logger": {"enabled": True}, "flops_profiler": {"enabled": True}}
    assert run(tools, plain, data)[3] == run(tools, profiled, data, **keys)[3]
    assert (plain / "p.dsplan").read_bytes() != (profiled / "p.dsplan").read_bytes()


@pytest.mark.parametrize("keys, part", [({"wall_clock_breakdown": True, "steps_per_print": 0}, "steps_per_print"),
                                        ({"flops_profiler": {"enabled": True, "profile_step": 0}}, "flops_profiler.profile_step"),
                                        ({"flops_profiler": {"enabled": True, "output_file": 5}}, "flops_profiler.output_file"),
                                        ({"comms_logger": {"enabled": True, "prof_ops": ["all_reduce"]}}, "comms_logger.prof_ops")], ids=str)
def test_refusals(tools, tmp_path, keys, part):
    config = write_config(tmp_path / "c.json", 1, **keys)
    assert part in tools.refused("ds-opt", "compile", MODEL, "--config", config, "-o", tmp_path / "p.dsplan")
