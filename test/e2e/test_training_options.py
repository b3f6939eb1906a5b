"""ds-run's flags and files: data streams, epochs, evaluation, weights, metrics, exit codes, and what it refuses."""

import hashlib
import json
import re
import struct

import numpy
import pytest
from conftest import write_config
from plan_files import read_plan, write_plan
from safetensors import numpy as safetensors

SEQ, MICRO = 32, 4
OPTIONS = ["--size", "tiny", "--seq", SEQ]


@pytest.fixture(scope="module")
def plan(tools, exported, tmp_path_factory):
    """GPT-2 tiny, batches of 4 samples of 32 tokens below 256."""
    folder = tmp_path_factory.mktemp("options")
    path = folder / "gpt2.dsplan"
    tools("ds-opt", "compile", exported("gpt2", *OPTIONS), "--config", write_config(folder / "c.json", MICRO), "--ranks", 1,
          "-o", path)
    return path


@pytest.fixture
def data(tmp_path):
    """data(samples) -> (path of as many samples, the tokens)."""
    def write(samples, name="data.safetensors", **other):
        tokens = numpy.random.default_rng(samples).integers(0, 256, (samples, SEQ))
        tensors = {"input_ids": tokens, "labels": tokens, **other}
        safetensors.save_file({key: value for key, value in tensors.items() if value is not None}, tmp_path / name)
        return tmp_path / name, tokens
    return write


def losses(tools, plan, data, steps, *options):
    return [line["loss"] for line in tools.train(plan, data, steps, *options)[0]]


def lines_of(tools, plan, metrics, *options):
    """All lines that a ds-run writes."""
    tools("ds-run", plan, "--metrics", metrics, *options)
    return [json.loads(line) for line in metrics.read_text().splitlines()]


# --- data


def test_one_epoch_is_the_default(tools, plan, data, tmp_path):
    """10 samples in batches of 4 are three steps: the last one goes on with the next epoch's first samples."""
    path, tokens = data(10)
    lines = lines_of(tools, plan, tmp_path / "m.jsonl", "--data", path)
    assert [line["step"] for line in lines[:-1]] == [1, 2, 3] and "summary" in lines[-1]
    round_trip = numpy.concatenate([tokens, tokens[:2]])
    safetensors.save_file({"input_ids": round_trip, "labels": round_trip}, tmp_path / "round.safetensors")
    assert [line["loss"] for line in lines[:-1]] == losses(tools, plan, tmp_path / "round.safetensors", 3)


def test_several_files_are_one_stream(tools, plan, data, tmp_path):
    whole, tokens = data(12)
    parts = [tmp_path / f"{i}.safetensors" for i in range(3)]
    for path, part in zip(parts, (tokens[:5], tokens[5:6], tokens[6:])):
        safetensors.save_file({"input_ids": part, "labels": part}, path)
    together = lines_of(tools, plan, tmp_path / "m.jsonl", "--data", *parts)
    assert [line["loss"] for line in together[:-1]] == losses(tools, plan, whole, 3)


@pytest.mark.parametrize("kind, name", [("<u2", "tokens.bin"), ("<u4", "tokens.u32.bin")])
def test_token_streams(kind, name, tools, plan, data, tmp_path):
    """A stream is cut into samples; what is left over is not used. Two files are one stream even within a sample."""
    whole, tokens = data(8)
    stream = numpy.concatenate([tokens.ravel(), [1, 2, 3]]).astype(kind)
    stream.tofile(tmp_path / name)
    stream[:77].tofile(tmp_path / f"a.{name}")
    stream[77:].tofile(tmp_path / f"b.{name}")
    expected = losses(tools, plan, whole, 3)
    assert losses(tools, plan, tmp_path / name, 3) == expected
    lines = lines_of(tools, plan, tmp_path / "m.jsonl", "--data", tmp_path / f"a.{name}", tmp_path / f"b.{name}", "--steps", 3)
    assert [line["loss"] for line in lines[:-1]] == expected


def test_prepared_streams_and_samples_agree(tools, plan, text_data, tmp_path):
    stream = tmp_path / "licence.bin"
    tools("prepare_data.py", "text", "/usr/share/common-licenses/GPL-3", "--out", stream)
    assert losses(tools, plan, stream, 3) == losses(tools, plan, text_data(SEQ), 3)


def test_next_token_targets(tools, tmp_path):
    """A module that does not shift its labels asks for the next token: it learns a counting sequence."""
    (tmp_path / "next_token.py").write_text('''
import torch, torch.nn as nn, torch.nn.functional as F

class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(16, 16)
        nn.init.zeros_(self.table.weight)

    def forward(self, tokens, targets):
        return F.cross_entropy(self.table(tokens).flatten(0, 1), targets.flatten())

def build():
    tokens = torch.arange(16).reshape(2, 8)
    return Table(), (tokens, tokens.clone())
''')
    tools("export.py", "next_token:build", "--tokens", "tokens=same", "--tokens", "targets=next", "--out", tmp_path / "table",
          cwd=tmp_path)
    config = write_config(tmp_path / "c.json", 2, 1, {"type": "SGD", "params": {"lr": 1.0}})
    tools("ds-opt", "compile", tmp_path / "table", "--config", config, "--ranks", 1, "-o", tmp_path / "t.dsplan")
    (numpy.arange(65) % 16).astype("<u2").tofile(tmp_path / "count.bin")
    tools.train(tmp_path / "t.dsplan", tmp_path / "count.bin", 4, "--export", tmp_path / "w.safetensors")
    table = safetensors.load_file(tmp_path / "w.safetensors")["table.weight"]
    assert (table.argmax(1) == (numpy.arange(16) + 1) % 16).all()


def test_shuffle_is_seeded_and_visits_every_sample(tools, plan, data, tmp_path):
    """With a learning rate of zero a step's loss tells its samples."""
    path, _ = data(12)
    config = write_config(tmp_path / "c.json", 1, 1, {"type": "SGD", "params": {"lr": 0.0}})
    frozen = plan.with_name("frozen.dsplan")
    tools("ds-opt", "compile", read_model(plan), "--config", config, "--ranks", 1, "-o", frozen)
    straight = losses(tools, frozen, path, 24)
    assert len(set(straight[:12])) == 12 and straight[:12] == straight[12:]
    shuffled = losses(tools, frozen, path, 24, "--shuffle")
    assert sorted(shuffled[:12]) == sorted(straight[:12]) == sorted(shuffled[12:])
    assert shuffled[:12] != straight[:12] and shuffled[:12] != shuffled[12:], "each epoch has an order of its own"
    assert losses(tools, frozen, path, 24, "--shuffle") == shuffled
    assert losses(tools, frozen, path, 24, "--shuffle", "--seed", 1) != shuffled


def test_epochs_are_said(tools, plan, data, tmp_path):
    """Before the first step, where --steps asks for more samples than there are."""
    path, _ = data(5)
    said = tools("ds-run", plan, "--data", path, "--steps", 10).stderr
    assert "10 steps take 40 samples; the data has 5 samples, and is gone through 8 times" in said
    for quiet in (["--steps", 1], []):
        assert "gone through" not in tools("ds-run", plan, "--data", path, *quiet).stderr


def test_a_bad_token_is_found_before_the_first_step(tools, plan, data, tmp_path):
    good, tokens = data(40)
    tokens[37, 3] = 256
    bad, metrics = tmp_path / "bad.safetensors", tmp_path / "m.jsonl"
    safetensors.save_file({"input_ids": tokens, "labels": tokens}, bad)
    sentence = "the data's sample 37 has value 256 at element 3 of input"
    for arguments in (["--data", bad], ["--data", good, "--steps", 1, "--eval-data", bad]):
        assert sentence in tools.refused("ds-run", plan, *arguments, "--metrics", metrics)
        assert not metrics.exists()
    # A run that does not read it takes it; so does one that was told not to look, until it reads it.
    tools("ds-run", plan, "--data", bad, "--steps", 9)
    assert sentence in tools.refused("ds-run", plan, "--data", bad, "--check-data", 0, "--metrics", metrics)
    assert len(metrics.read_text().splitlines()) == 9


def read_model(plan):
    """The folder of the export that a plan's weights lie in."""
    return (plan.parent / read_plan(plan).weight_files[0].path).parent


# --- evaluation, weights, metrics


def test_evaluation_alone(tools, plan, data, tmp_path):
    """The mean over whole batches of the forward-only program: here the first step's losses, as nothing is trained."""
    path, _ = data(8)
    config = write_config(tmp_path / "c.json", MICRO, 1, {"type": "SGD", "params": {"lr": 0.0}})
    frozen = plan.with_name("frozen-eval.dsplan")
    tools("ds-opt", "compile", read_model(plan), "--config", config, "--ranks", 1, "-o", frozen)
    lines = lines_of(tools, frozen, tmp_path / "m.jsonl", "--data", path, "--eval")
    assert lines[0] == {"step": 0, "eval_loss": pytest.approx(numpy.mean(losses(tools, frozen, path, 2)), rel=1e-6)}
    assert len(lines) == 2 and "summary" in lines[1]


def test_evaluation_while_training(tools, plan, data, tmp_path):
    """Every K steps and at the end; it changes no bit of the training."""
    path, _ = data(20)
    held_out, _ = data(8, "held-out.safetensors")
    lines = lines_of(tools, plan, tmp_path / "m.jsonl", "--data", path, "--steps", 5, "--eval-data", held_out,
                     "--eval-interval", 2, "--export", tmp_path / "w.safetensors")
    evaluations = {line["step"]: line["eval_loss"] for line in lines if "eval_loss" in line}
    assert list(evaluations) == [2, 4, 5]
    assert [line["loss"] for line in lines if "loss" in line] == losses(tools, plan, path, 5)
    # what it says at the end is what an evaluation of the exported weights says
    alone = lines_of(tools, plan, tmp_path / "e.jsonl", "--data", held_out, "--eval", "--weights", tmp_path / "w.safetensors")
    assert alone[0]["eval_loss"] == evaluations[5]
    at_end = lines_of(tools, plan, tmp_path / "m.jsonl", "--data", path, "--steps", 5, "--eval-data", held_out)
    assert [line for line in at_end if "eval_loss" in line] == [{"step": 5, "eval_loss": evaluations[5]}]


def test_weights_override_the_plans(tools, plan, data, tmp_path):
    """With the exported weights training goes on from there (without the optimizer's state): same first loss."""
    path, tokens = data(12)
    folder = tmp_path / "weights"
    folder.mkdir()
    whole = losses(tools, plan, path, 3)
    tools.train(plan, path, 2, "--export", folder / "w.safetensors")
    rest = tmp_path / "rest.safetensors"
    safetensors.save_file({"input_ids": tokens[8:], "labels": tokens[8:]}, rest)
    for weights in (folder / "w.safetensors", folder):
        assert losses(tools, plan, rest, 1, "--weights", weights) == whole[2:]


def test_weights_that_do_not_fit(tools, plan, data, tmp_path):
    path, _ = data(4)
    wrong = tmp_path / "wrong.safetensors"
    safetensors.save_file({"lm_head.weight": numpy.zeros((256, 63), numpy.float32)}, wrong)
    error = tools.refused("ds-run", plan, "--data", path, "--weights", wrong)
    assert "lm_head.weight" in error and "[256, 63]" in error and "[256, 64]" in error
    assert "none.safetensors" in tools.refused("ds-run", plan, "--data", path, "--weights", tmp_path / "none.safetensors")


def test_changed_weight_file_is_refused(tools, exported, data, tmp_path):
    """The plan knows the size and checksum of what it was compiled from."""
    path, _ = data(4)
    model = tmp_path / "model"
    model.mkdir()
    for file in exported("gpt2", *OPTIONS).iterdir():
        (model / file.name).write_bytes(file.read_bytes())
    plan = tmp_path / "m.dsplan"
    tools("ds-opt", "compile", model, "--config", write_config(tmp_path / "c.json"), "--ranks", 1, "-o", plan)
    weights = model / "model.onnx.data"
    original = weights.read_bytes()
    weights.write_bytes(original[:-1] + bytes([original[-1] ^ 1]))
    assert "model.onnx.data" in tools.refused("ds-run", plan, "--data", path)
    weights.write_bytes(original[:-1])
    assert f"{len(original) - 1}" in tools.refused("ds-run", plan, "--data", path)
    weights.unlink()
    assert "model.onnx.data" in tools.refused("ds-run", plan, "--data", path)


def test_metrics_format(tools, plan, data, tmp_path):
    path, _ = data(8)
    lines = lines_of(tools, plan, tmp_path / "m.jsonl", "--data", path)
    for number, line in enumerate(lines[:-1], 1):
        assert list(line) == ["step", "loss", "grad_norm", "lr", "loss_scale", "skipped", "step_seconds", "samples_per_second",
                              "tokens_per_second", "model_flops_per_second"] + (["plan", "run"] if number == 1 else [])
        assert line["step"] == number and line["lr"] == 1e-3 and line["skipped"] is False and line["loss_scale"] == 1
        assert numpy.float32(line["loss"]) == pytest.approx(line["loss"], rel=1e-8), "a float32, printed so that it reads back"
        assert line["samples_per_second"] == pytest.approx(MICRO / line["step_seconds"])
        assert line["tokens_per_second"] == pytest.approx(SEQ * line["samples_per_second"])
    assert lines[0]["plan"] == hashlib.sha256(plan.read_bytes()).hexdigest()
    again = lines_of(tools, plan, tmp_path / "again.jsonl", "--data", path)
    assert re.fullmatch("[0-9a-f]{16}", lines[0]["run"]) and again[0]["run"] != lines[0]["run"]
    rank, = lines[-1]["summary"]["ranks"]
    assert rank["rank"] == 0 and not any(rank["wire_bytes_per_step"].values()) and rank["host_bytes"] == rank["nvme_bytes"] == 0
    assert rank["device_bytes"] > 0 and rank["rss_anon_bytes"] > 0


def test_without_a_terminal_a_line_each_tenth(tools, plan, data):
    path, _ = data(80)
    lines = tools("ds-run", plan, "--data", path, "--steps", 20).stderr.splitlines()
    assert [line.split()[1] for line in lines] == [f"{step}/20" for step in range(2, 21, 2)]
    assert tools("ds-run", plan, "--data", path, "--steps", 2, "--quiet").stderr == ""


def test_null_device_walks_the_plan(tools, plan, data):
    path, _ = data(8)
    assert tools("ds-run", plan, "--data", path, "--steps", 2, "--device", "null", "--quiet").returncode == 0


# --- refusals


def test_wrong_usage(tools, plan, data):
    path, _ = data(4)
    for options in ([plan, "--data", path, "--steps", "many"], [plan, "--data", path, "--bogus"], ["--data", path],
                    [plan, "--data", path, "--threads", "0"], [plan, "--data", path, "--eval", "--steps", 3],
                    [plan, "--data", path, "--eval-interval", 3], [plan, "--data", path, "--quiet", "--verbose"]):
        tools.refused("ds-run", *options, code=2)
    tools.refused("ds-opt", "compile", code=2)
    tools.refused("ds-opt", "compile", read_model(plan), code=2)


def test_pipeline_settings_are_refused_by_name(tools, exported, tmp_path):
    config = write_config(tmp_path / "config.json", micro=1, accumulation=4)
    options = ["compile", exported("gpt2", *OPTIONS), "--config", config, "--ranks", 4, "-o", tmp_path / "p.dsplan"]
    for setting, words in (("pipeline.stages=3", "2 and 4 do"), ("pipeline.stages=8", "--ranks is 4"),
                           ("deepstatic.pipeline.schedule=1f1d", "the nearest is \"1f1b\"")):
        assert words in tools.refused("ds-opt", *options, "--set", setting)


def test_wrong_device_and_ranks(tools, plan, data):
    path, _ = data(4)
    assert "cuda" in tools.refused("ds-run", plan, "--data", path, "--device", "cuda")
    assert "-n 2" in tools.refused("ds-run", plan, "--data", path, "-n", 2)


def bad_data():
    tokens = numpy.zeros((8, SEQ), numpy.int64)
    high, low, ignored = tokens.copy(), tokens.copy(), tokens.copy()
    high[5, 7], low[5, 7], ignored[5, 7] = 256, -1, -100
    return {
        "missing": ({"labels": None}, ["labels"]),
        "renamed": ({"input_ids": None, "ids": tokens}, ["input_ids"]),
        "shape": ({"input_ids": numpy.zeros((8, SEQ + 1), numpy.int64)}, ["input_ids", str(SEQ + 1), str(SEQ)]),
        "rank": ({"input_ids": numpy.zeros(8 * SEQ, numpy.int64)}, ["input_ids", str(8 * SEQ)]),
        "samples": ({"input_ids": tokens[:7]}, ["7", "8"]),
        "dtype": ({"input_ids": tokens.astype(numpy.float32)}, ["input_ids", "F32", "int64"]),
        "empty": ({"input_ids": tokens[:0], "labels": tokens[:0]}, ["sample"]),
        "too-high": ({"input_ids": high}, ["sample 5", "256", "input_ids"]),
        "negative": ({"input_ids": low}, ["sample 5", "-1", "input_ids"]),
        "ignored-as-token": ({"input_ids": ignored}, ["sample 5", "-100", "input_ids"]),
        "label-too-high": ({"labels": high}, ["sample 5", "256", "labels"]),
    }


@pytest.mark.parametrize("case", bad_data())
def test_bad_data(case, tools, plan, data, tmp_path):
    tensors, words = bad_data()[case]
    path, _ = data(8, **tensors)
    export = tmp_path / "w.safetensors"
    error = tools.refused("ds-run", plan, "--data", path, "--steps", 2, "--export", export)
    assert all(word in error for word in words), error
    assert not export.exists() and not list(tmp_path.glob("*.part*"))


def test_ignored_labels_are_no_error(tools, plan, data):
    labels = numpy.zeros((8, SEQ), numpy.int64)
    labels[:, 20:] = -100
    path, _ = data(8, labels=labels)
    assert numpy.isfinite(losses(tools, plan, path, 2)).all()


def test_bad_data_files(tools, plan, data, tmp_path):
    path, _ = data(8)
    whole = path.read_bytes()
    bad = tmp_path / "bad.safetensors"
    header = struct.unpack("<Q", whole[:8])[0]
    for content in (b"", whole[:5], whole[:8 + header // 2], whole[:-1], whole + b"x", b"\xff" * 64,
                    struct.pack("<Q", 10) + b"{not json}", whole[:8] + whole[8:8 + header].replace(b"I64", b"I63") + whole[8 + header:]):
        bad.write_bytes(content)
        assert "bad.safetensors" in tools.refused("ds-run", plan, "--data", bad)
    (tmp_path / "odd.bin").write_bytes(b"\0" * 1001)
    assert "1001" in tools.refused("ds-run", plan, "--data", tmp_path / "odd.bin")
    (tmp_path / "short.bin").write_bytes(b"\0" * 10)
    assert f"{SEQ} tokens" in tools.refused("ds-run", plan, "--data", tmp_path / "short.bin")
    numpy.full(SEQ * 8, 256, "<u2").tofile(tmp_path / "high.bin")
    assert "256" in tools.refused("ds-run", plan, "--data", tmp_path / "high.bin", "--steps", 1)
    tools.refused("ds-run", plan, "--data", path, tmp_path / "high.bin")
    assert "nothing.safetensors" in tools.refused("ds-run", plan, "--data", tmp_path / "nothing.safetensors")
    tools.refused("ds-run", plan, "--data", tmp_path)
    assert "--data" in tools.refused("ds-run", plan)


def test_stream_needs_to_know_how(tools, scale_plan, tmp_path):
    numpy.zeros(100, "<u2").tofile(tmp_path / "t.bin")
    assert "input x" in tools.refused("ds-run", scale_plan, "--data", tmp_path / "t.bin")


@pytest.fixture(scope="module")
def scale_plan(tools, tmp_path_factory):
    """A plan of a user's module whose input is no tokens."""
    folder = tmp_path_factory.mktemp("scale")
    (folder / "scale.py").write_text('''
import torch

class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(3))

    def forward(self, x):
        return (x * self.w).square().mean()

def build():
    return Scale(), torch.ones(2, 3)
''')
    tools("export.py", "scale:build", "--out", folder / "scale", cwd=folder)
    tools("ds-opt", "compile", folder / "scale", "--config", write_config(folder / "c.json", 2), "--ranks", 1, "-o",
          folder / "scale.dsplan")
    return folder / "scale.dsplan"


def test_bad_plan_files(tools, plan, data):
    path, _ = data(4)
    whole, bad = plan.read_bytes(), plan.with_name("bad.dsplan")
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 0x10
    for content in (b"", whole[:20], whole[:-100], whole + b"x", bytes(flipped), b"X" + whole[1:], b"text of some length" * 9):
        bad.write_bytes(content)
        assert "bad.dsplan" in tools.refused("ds-run", bad, "--data", path)
        assert "bad.dsplan" in tools.refused("ds-opt", "report", bad)
    assert "none.dsplan" in tools.refused("ds-run", plan.with_name("none.dsplan"), "--data", path)
    tools.refused("ds-run", plan.parent, "--data", path)


@pytest.mark.parametrize("version, advice", [(3, "use a newer ds-run"), (1, "compile it again: ds-opt compile MODEL --config ds_config.json -o PLAN")])
def test_plan_of_another_format_is_refused(tools, plan, data, version, advice):
    path, _ = data(4)
    other = read_plan(plan)
    other.format_version = version
    error = tools.refused("ds-run", write_plan(plan.with_name("other.dsplan"), other), "--data", path)
    assert f"version {version}, and this build reads 2" in error and advice in error


def test_unbound_dimension_is_refused(tools, tmp_path):
    """Only `batch` follows from the configuration."""
    import onnx
    from onnx import TensorProto, helper
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "w"], ["y"]), helper.make_node("ReduceMean", ["y"], ["loss"], keepdims=0)], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "length", 3])],
        [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])],
        [helper.make_tensor("net.w", TensorProto.FLOAT, [3], [1.0, 2.0, 3.0])])
    graph.node[0].input[1] = "net.w"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]), tmp_path / "m.onnx")
    config, out = write_config(tmp_path / "c.json", 2), tmp_path / "m.dsplan"
    error = tools.refused("ds-opt", "compile", tmp_path / "m.onnx", "--config", config, "--ranks", 1, "-o", out)
    assert "length" in error and "--dim" in error and not out.exists()
    tools("ds-opt", "compile", tmp_path / "m.onnx", "--config", config, "--ranks", 1, "--dim", "length=5", "-o", out)
    safetensors.save_file({"x": numpy.ones((4, 5, 3), numpy.float32)}, tmp_path / "x.safetensors")
    assert losses(tools, out, tmp_path / "x.safetensors", 1) == [2.0]


def test_unwritable_results(tools, plan, data, tmp_path):
    path, _ = data(4)
    assert "none" in tools.refused("ds-run", plan, "--data", path, "--export", tmp_path / "none" / "w.safetensors")
    assert "none" in tools.refused("ds-run", plan, "--data", path, "--metrics", tmp_path / "none" / "m.jsonl")
