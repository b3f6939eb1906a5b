"""ds-opt check and ds-opt diff as a user calls them: verdicts, exit codes, bytes that ds-run confirms."""

import json

import pytest
from conftest import REPOSITORY, write_config

MODEL = REPOSITORY / "test" / "e2e" / "hazards" / "good-gpt2"


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    return write_config(tmp_path_factory.mktemp("check") / "ds_config.json", 1, 2, zero_optimization={"stage": 2, "stage3_param_persistence_threshold": 0})


@pytest.fixture(scope="module")
def plans(tools, config):
    """plans(stage) -> a plan for two ranks."""
    def compile_plan(stage, ranks=2):
        plan = config.with_name(f"{stage}-{ranks}.dsplan")
        tools("ds-opt", "compile", MODEL, "--config", config, "--ranks", ranks, "--set", f"zero_optimization.stage={stage}",
              "-o", plan)
        return plan
    return compile_plan


def check(tools, config, *options, code=0):
    done = tools("ds-opt", "check", MODEL, "--config", config, "--format", "json", *options, code=code)
    return json.loads(done.stdout)


def test_what_is_checked_is_what_is_compiled(tools, config, plans):
    result = check(tools, config, "--ranks", "2,4")
    assert result["verdict"] == "fits" and [one["ranks"] for one in result["checks"]] == [2, 4]
    for one in result["checks"]:
        report = json.loads(tools("ds-opt", "report", plans(2, one["ranks"]), "--format", "json").stdout)
        planned = report["ranks_detail"][0]["memory"]["device"]
        memory, = one["memory"]
        assert memory["arena_bytes"] == memory["needed_bytes"] == planned["arena_bytes"]
        assert {phase: facts["live_bytes"] for phase, facts in memory["phases"].items()} == planned["phases"]
        assert one["config"] == report["config"]
        assert one["wire_bytes_per_step"] == sum(report["ranks_detail"][0]["wire_bytes_per_step"].values())


def test_it_writes_no_plan(tools, config, tmp_path):
    tools("ds-opt", "check", MODEL, "--config", config, "--ranks", 2, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_too_little_memory(tools, config):
    arena = check(tools, config, "--ranks", 2)["checks"][0]["memory"][0]["arena_bytes"]
    assert check(tools, config, "--ranks", 2, "--device-memory", arena)["verdict"] == "fits"
    result = check(tools, config, "--ranks", 2, "--device-memory", arena - 1, code=1)
    assert result["verdict"] == "does_not_fit" and " 1 B more than " in result["checks"][0]["reason"]
    text = tools("ds-opt", "check", MODEL, "--config", config, "--ranks", 2, "--device-memory", arena - 1, code=1).stdout
    assert "does not fit" in text and "exact for ds-run" in text


def test_a_machine_that_ds_run_does_not_have(tools, config):
    result = check(tools, config, "--ranks", 8, "--machine", "h100x8")
    memory, = result["checks"][0]["memory"]
    assert memory["room_bytes"] == 79 << 30 and memory["reserve_bytes"] == 1 << 30


def test_a_machine_whose_plans_are_refused_is_noted(tools, config):
    done = tools("ds-opt", "check", MODEL, "--config", config, "--machine", "v100-32gx16")
    assert "note: ds-opt compile refuses what this answers for: machine v100-32gx16 has isa sm_70" in done.stderr
    assert "note" not in tools("ds-opt", "check", MODEL, "--config", config, "--machine", "a100-80gx8").stderr


def test_what_to_try_stands_beside_a_refusal(tools, config):
    options = ["ds-opt", "check", MODEL, "--config", config, "--set", "amp.enabled=true"]
    line = json.loads(tools(*options, "--format", "json", code=1).stdout)["checks"][0]["try"]
    assert line.startswith("--set amp") and f"\n  try: {line}\n" in tools(*options, code=1).stdout
    tools(*options, *line.split())


@pytest.mark.parametrize("options, part", [
    (["--set", "amp.enabled=true"], "amp"),
    (["--set", "train_batch_size=3"], "train_batch_size"),
    (["--loss", "nothing"], "nothing"),
])
def test_refusals_are_verdicts(tools, config, options, part):
    result = check(tools, config, "--ranks", 2, *options, code=1)
    assert result["verdict"] == "rejected" and part in result["checks"][0]["reason"]


@pytest.mark.parametrize("options, without, settings", [
    (["--set", "wandb.enabled=true"], ["wandb.enabled"], []),
    (["--set", "no_such_key=1"], ["no_such_key"], []),
    (["--set", "optimizer.type=OneBitAdam"], ["optimizer.params.lr", "optimizer.params.weight_decay"], ["optimizer.type=AdamW"]),
])
def test_a_rejected_key_hides_no_bytes(tools, config, options, without, settings):
    kept = check(tools, config, "--ranks", "2,4")["checks"]
    for one, other in zip(check(tools, config, "--ranks", "2,4", *options, code=1)["checks"], kept, strict=True):
        assert one["verdict"] == "rejected" and one["memory"] == other["memory"]
        assert one["otherwise"] == {"without": without, "with": settings, "verdict": "fits"}


def test_a_key_that_must_be_there_is_what_the_try_line_says(tools, config):
    """Left out it would be missing; and an "auto" that nothing fills in is not 0."""
    one, = check(tools, config, "--set", "train_micro_batch_size_per_gpu=auto", "--set", "train_batch_size=auto", code=1)["checks"]
    assert one["otherwise"] == {"without": [], "with": ["train_micro_batch_size_per_gpu=8"], "verdict": "fits"}
    assert {answer["path"]: answer["value"] for answer in one["config"]}["train_batch_size"] == "auto"


def test_what_would_help_was_tried(tools, config):
    """The fewest ranks that do, and no fewer: what check says holds when it is checked."""
    options = [word for setting in ("zero_optimization.stage=1", "zero_optimization.reduce_bucket_size=1000") for word in ("--set", setting)]
    options += ["--device-memory", "140KiB"]
    written, other = check(tools, config, "--ranks", "2,4", *options, code=1)["trials"]
    assert written == {"set": [], "first": 8, "most": 32, "ranks": None}
    assert other == {"set": ["zero_optimization.stage=3"], "first": 2, "most": 8, "ranks": 8}
    stage3 = ("--set", "zero_optimization.stage=3")
    assert check(tools, config, "--ranks", "4", *options, *stage3, code=1)["trials"] == [{"set": [], "first": 8, "most": 8, "ranks": 8}]
    assert check(tools, config, "--ranks", "8", *options, *stage3)["trials"] == []


def test_rejected_keys_stand_beside_the_others(tools, config):
    answers = check(tools, config, "--ranks", 2, "--set", "amp.enabled=true", code=1)["checks"][0]["config"]
    status = {answer["path"]: answer["status"] for answer in answers}
    assert status["amp"] == "rejected" and status["zero_optimization.stage"] == "honoured"


def test_a_model_that_is_not_there_is_an_error_and_no_verdict(tools, config, tmp_path):
    done = tools("ds-opt", "check", tmp_path / "gone.onnx", "--config", config, "--ranks", "8,64,512", code=1)
    assert done.stdout == "" and done.stderr.count("gone.onnx") == 1 and done.stderr.startswith("error: ")


def test_recompute_has_a_price(tools, config):
    """A plan that fits by computing again says how much."""
    recompute = ("--ranks", 2, "--set", "deepstatic.recompute=full")
    plain, again = check(tools, config, "--ranks", 2)["checks"][0], check(tools, config, *recompute)["checks"][0]
    assert plain["recompute"]["share_of_flops"] == 0 < again["recompute"]["share_of_flops"] < 1
    text = tools("ds-opt", "check", MODEL, "--config", config, *recompute).stdout
    assert f"{100 * again['recompute']['share_of_flops']:.1f} % more" in text


@pytest.mark.parametrize("options, code", [(["--machine", "nothing"], 1), (["--ranks", "0"], 2), (["--ranks", "two"], 2),
                                           (["--format", "yaml"], 1)])
def test_calls_that_make_no_sense(tools, config, options, code):
    tools.refused("ds-opt", "check", MODEL, "--config", config, *options, code=code)


def test_diff_names_what_changed(tools, plans):
    changes = json.loads(tools("ds-opt", "diff", plans(2), plans(3), "--format", "json").stdout)["changes"]
    found = {(change["section"], change["what"]): (change["a"], change["b"]) for change in changes}
    assert found["configuration", "zero_optimization.stage"] == ("2", "3")
    assert "slices of bucket" in found["ownership", "lm_head.weight"][1]
    assert {"memory", "collectives"} <= {section for section, _ in found}
    text = tools("ds-opt", "diff", plans(2), plans(3)).stdout
    assert "zero_optimization.stage" in text and "ownership" in text


def test_diff_of_what_is_the_same(tools, plans):
    assert "nothing differs" in tools("ds-opt", "diff", plans(2), plans(2)).stdout
    assert json.loads(tools("ds-opt", "diff", plans(2), plans(2), "--format", "json").stdout) == {
        "format": 1, "model": "gpt2", "a": str(plans(2)), "b": str(plans(2)), "equal": True, "changes": []}


def test_diff_of_different_models(tools, plans, config):
    other = config.with_name("llama.dsplan")
    tools("ds-opt", "compile", MODEL.with_name("good-llama"), "--config", config, "--ranks", 2, "-o", other)
    assert "different models" in tools.refused("ds-opt", "diff", plans(2), other)
    assert str(config) in tools.refused("ds-opt", "diff", plans(2), config)
