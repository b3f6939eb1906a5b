"""Models that nobody planned for, by `export.py module:build`: each trains with PyTorch's losses, or is refused by name."""

import json
import sys
import warnings

import numpy
import pytest
import torch
import user_modules
from conftest import REPOSITORY, write_config
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from torch_reference import initializers

sys.path.insert(0, str(REPOSITORY / "models"))
import export as exporter  # noqa: E402

STEPS, MICRO, ACCUMULATION = 5, 3, 2
SAMPLES = STEPS * MICRO * ACCUMULATION


def export(name, settings, out):
    """What `models/export.py user_modules:name` does, without the seconds that importing torch takes."""
    arguments = [f"--set={key}={json.dumps(value)}" for key, value in settings]
    assert exporter.main([f"user_modules:{name}", *arguments, f"--out={out}"]) == 0


def export_traced(name, settings, out):
    """By PyTorch's older exporter, as a user calls it."""
    torch.manual_seed(0)
    module, examples = getattr(user_modules, name)(**dict(settings))
    out.mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(module, tuple(examples.values()), out / "model.onnx", dynamo=False, opset_version=17,
                          training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False, input_names=list(examples),
                          output_names=["loss"], dynamic_axes={key: {0: "batch"} for key in examples})


class Trained:
    """One module, exported, compiled and trained by ds-run; and trained by PyTorch from the same weights."""

    def __init__(self, tools, tmp_path, name, *settings, exporting=export, flags=()):
        self.tools = tools
        exporting(name, settings, tmp_path / "model")
        self.config = write_config(tmp_path / "ds_config.json", MICRO, ACCUMULATION)
        self.plan = tmp_path / "m.dsplan"
        tools("ds-opt", "compile", tmp_path / "model", "--config", self.config, "-o", self.plan, *flags)
        torch.manual_seed(0)
        self.module, self.examples = getattr(user_modules, name)(**dict(settings))
        self.before = initializers(tmp_path / "model")
        self.load_weights()
        self.data = self.draw_data(tmp_path / "data.safetensors")
        self.metrics, _ = tools.train(self.plan, tmp_path / "data.safetensors", STEPS, "--export", tmp_path / "after.safetensors")
        self.after = load_file(tmp_path / "after.safetensors")

    def load_weights(self):
        """The export's values."""
        with torch.no_grad():
            for names, parameter in self.parameters():
                for key in names & set(self.before):
                    parameter.copy_(self.before[key])

    def parameters(self):
        """(names, parameter); a tied one has several names and stands in the files under one of them."""
        names = {}
        for key, parameter in self.module.named_parameters(remove_duplicate=False):
            names.setdefault(parameter, set()).add(key)
        return [(keys, parameter) for parameter, keys in names.items()]

    def draw_data(self, path):
        generator = numpy.random.default_rng(3)
        data = {}
        for name, example in self.examples.items():
            shape = (SAMPLES, *example.shape[1:])
            floats = example.dtype.is_floating_point
            classes = user_modules.VOCABULARY if name == "tokens" or example.dim() > 1 else user_modules.CLASSES
            data[name] = generator.standard_normal(shape).astype(numpy.float32) if floats else generator.integers(0, classes, shape)
        save_file(data, path)
        return {name: torch.from_numpy(value) for name, value in data.items()}

    def torch_losses(self):
        trained = [p for p in self.module.parameters() if p.requires_grad]
        optimizer = torch.optim.AdamW(trained, lr=1e-3, weight_decay=0.1)
        losses, at = [], 0
        for _ in range(STEPS):
            optimizer.zero_grad()
            parts = []
            for _ in range(ACCUMULATION):
                loss = self.module(**{name: value[at:at + MICRO] for name, value in self.data.items()})
                (loss / ACCUMULATION).backward()
                parts.append(loss.item())
                at += MICRO
            optimizer.step()
            losses.append(sum(parts) / ACCUMULATION)
        return losses

    def report(self):
        return json.loads(self.tools("ds-opt", "report", self.plan, "--format", "json").stdout)


@pytest.fixture
def trained(tools, tmp_path):
    return lambda name, *settings, **keywords: Trained(tools, tmp_path, name, *settings, **keywords)


def same_losses(run):
    expected = run.torch_losses()
    assert len(set(expected)) == STEPS  # it learns something
    numpy.testing.assert_allclose([step["loss"] for step in run.metrics], expected, rtol=1e-5)


@pytest.mark.parametrize("name, settings", [
    ("mlp", []), ("mlp", [("approximate", "tanh")]), ("activations", []), ("attention", []), ("sdpa", []), ("sdpa", [("grouped", True)]),
    ("by_hand", []), ("rms_norm", []), ("torch_rms_norm", []), ("swiglu", []), ("shared_layer", []), ("tied_head", []),
    ("regression", []), ("mixture", []), ("statistics", []), ("recurrent", []), ("frozen", []), ("frozen_statistics", []), ("unreached", []),
    ("lstm", []), ("lstm", [("bidirectional", True), ("num_layers", 2)]), ("gru", []), ("gru", [("bidirectional", True)]), ("rnn", []),
    ("rnn", [("nonlinearity", "relu")]), ("lstm_classifier", []), ("spatial_transformer", []),
    ("spatial_transformer", [("mode", "bicubic"), ("padding_mode", "border")]),
    ("spatial_transformer", [("padding_mode", "reflection")]), ("local_response", []), ("scanned", []), ("resized", []), ("resized", [("mode", "bicubic")]),
], ids=lambda value: value if isinstance(value, str) else "-".join(str(v) for _, v in value))
def test_losses_are_pytorchs(name, settings, trained):
    run = trained(name, *settings)
    same_losses(run)
    # What trained is in the export under a name of PyTorch's, and near what PyTorch got.
    for names, parameter in run.parameters():
        if parameter.grad is None:
            continue
        (key,) = names & set(run.after)
        # Adam turns the rounding noise of a gradient that is zero, an attention key's bias's, into steps of lr.
        if not key.endswith(("in_proj_bias", "qkv.bias")):
            numpy.testing.assert_allclose(run.after[key], parameter.detach(), atol=2e-4, err_msg=key)


@pytest.mark.parametrize("name, settings", [("lstm", [("bidirectional", True), ("num_layers", 2)]), ("gru", []), ("rnn", []),
                                            ("lstm_classifier", []), ("spatial_transformer", [])],
                         ids=lambda value: value if isinstance(value, str) else "-".join(str(v) for _, v in value))
def test_losses_are_pytorchs_by_the_older_exporter(name, settings, trained):
    # Its files do not say what is trained: of names without a dot, the compiler has to be told.
    same_losses(trained(name, *settings, exporting=export_traced, flags=["--trainable", "^positions$"] if name in ("lstm", "gru", "rnn") else ()))


def test_a_part_in_bfloat16(trained):
    """Its results round as PyTorch's, but for the last place where float32 differs before."""
    run = trained("half_region")
    numpy.testing.assert_allclose([step["loss"] for step in run.metrics], run.torch_losses(), rtol=1e-3)


def test_a_part_in_float16_needs_a_loss_scale(tools, tmp_path):
    export("half_region", [("dtype", "float16")], tmp_path / "model")
    command = ["ds-opt", "compile", tmp_path / "model", "--config", write_config(tmp_path / "c.json", MICRO), "-o", tmp_path / "m.dsplan"]
    message = tools.refused(*command)
    assert "computes in float16 itself, whose gradients vanish without a loss scale" in message
    tools(*command, "--set", "fp16.enabled=true")


def test_frozen_parameters_stay_and_cost_nothing(trained):
    run = trained("frozen")
    frozen = {key for key, value in run.module.named_parameters() if not value.requires_grad}
    assert frozen == {"embedding.weight", "block.0.weight"}
    for key, value in run.module.named_parameters():
        unchanged = numpy.array_equal(run.after[key], run.before[key].numpy())
        assert unchanged == (key in frozen), key
    memory = run.report()["ranks_detail"][0]["memory"]["device"]
    learning = sum(p.numel() for p in run.module.parameters() if p.requires_grad)
    weights = sum(p.numel() for p in run.module.parameters())
    assert memory["weights"] == 4 * weights
    assert memory["gradients"] == 4 * learning
    # Two moments; the counters of steps and the like are some bytes more.
    assert 8 * learning <= memory["optimizer"] < 8 * learning + 256


def test_freezing_by_flag(trained, tools, tmp_path):
    run = trained("mlp")
    frozen = tmp_path / "frozen.dsplan"
    tools("ds-opt", "compile", tmp_path / "model", "--config", run.config, "--frozen", r"^body\.0\.", "-o", frozen)
    tools("ds-run", frozen, "--data", tmp_path / "data.safetensors", "--steps", 2, "--export", tmp_path / "f.safetensors", "--quiet")
    after = load_file(tmp_path / "f.safetensors")
    for key, value in run.before.items():
        assert numpy.array_equal(after[key], value.numpy()) == key.startswith("body.0."), key


def test_unreached_parameters_are_left_out(trained):
    """As in the exporter's file: nothing computes with them."""
    run = trained("unreached")
    assert set(run.after) == {"body.used.weight", "body.used.bias"}
    assert {p["name"] for p in run.report()["parameters"]} == set(run.after)


@pytest.mark.parametrize("name, tied", [("tied_head", ["embedding.weight", "head.weight"]),
                                        ("shared_layer", ["block.0.weight", "block.2.weight", "block.5.weight"])])
def test_tied_weight_is_one(name, tied, trained, tmp_path):
    run = trained(name)
    (key,) = set(tied) & set(run.after)
    assert [p["name"] for p in run.report()["parameters"] if p["name"] in tied] == [key]
    with safe_open(tmp_path / "after.safetensors", "numpy") as file:
        metadata = file.metadata()
    assert {other: metadata[other] for other in tied if other != key} == {other: key for other in tied if other != key}


def test_dropout_trains_and_is_off_in_evaluation(trained, tools, tmp_path):
    run = trained("dropout")
    run.module.eval()
    with torch.no_grad():
        batches = [run.module(**{name: value[at:at + MICRO] for name, value in run.data.items()}).item()
                   for at in range(0, SAMPLES, MICRO)]
    tools("ds-run", run.plan, "--data", tmp_path / "data.safetensors", "--eval", "--metrics", tmp_path / "eval.jsonl", "--quiet")
    evaluated = json.loads((tmp_path / "eval.jsonl").read_text().splitlines()[0])["eval_loss"]
    assert evaluated == pytest.approx(sum(batches) / len(batches), rel=1e-5)
    # In training a quarter of the hidden units is gone: not PyTorch's mask, but another loss than without.
    first = sum(batches[:ACCUMULATION]) / ACCUMULATION
    assert numpy.isfinite([step["loss"] for step in run.metrics]).all()
    assert 1e-5 < abs(run.metrics[0]["loss"] / first - 1) < 0.5


def test_modes_within_a_module_are_said(tmp_path, capfd):
    export("frozen_statistics", [], tmp_path / "m")
    assert "note: body.1 was given in evaluation mode, and stays in it" in capfd.readouterr().err
    export("pretrained_part", [], tmp_path / "n")
    assert "note: body was given in evaluation mode, as from_pretrained leaves it, and is exported in training mode" in capfd.readouterr().err


def test_what_is_not_supported_is_named(tools, tmp_path):
    export("determinant", [], tmp_path / "model")
    config = write_config(tmp_path / "ds_config.json", MICRO)
    message = tools.refused("ds-opt", "compile", tmp_path / "model", "--config", config, "-o", tmp_path / "m.dsplan")
    assert "(Det, opset 20)" in message and "node '" in message
    assert any(word in message for word in ("not supported", "not available", "supported")), message
    assert not (tmp_path / "m.dsplan").exists()


def test_a_branch_on_values_is_named_by_its_line(tmp_path, capfd):
    assert exporter.main(["user_modules:branches", f"--out={tmp_path / 'model'}"]) == 1
    assert "user_modules.py:" in (said := capfd.readouterr().err) and "`if x.sum() > 0:` depends on the values of a tensor, and a graph is fixed" in said
