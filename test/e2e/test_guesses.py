"""What the tools take for granted or leave unread, they say."""

import json
import warnings

import pytest
import torch
from conftest import ON_GPU, write_config
from safetensors.torch import save_file

pytestmark = pytest.mark.skipif(ON_GPU, reason="compiles for this machine's CPU")
ADAMW = {"type": "AdamW", "params": {"lr": 0.5}}


class Net(torch.nn.Module):
    """A parameter at the root, whose name has no dot, and a buffer in a part, whose name has one."""

    def __init__(self):
        super().__init__()
        self.shift = torch.nn.Parameter(torch.zeros(4))
        self.layers = torch.nn.ModuleList([torch.nn.Linear(4, 4), torch.nn.Linear(4, 3)])
        self.loss = torch.nn.CrossEntropyLoss(weight=torch.tensor([0.5, 1.0, 2.0]))

    def forward(self, x, y):
        return self.loss(self.layers[1](self.layers[0](x + self.shift).relu()), y)


@pytest.fixture(scope="module")
def old_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("ts") / "m.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(Net(), (torch.randn(2, 4), torch.tensor([0, 1])), path, dynamo=False, opset_version=17, training=torch.onnx.TrainingMode.TRAINING,
                          do_constant_folding=False, input_names=["x", "y"], output_names=["loss"], dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}})
    return path


def test_a_file_that_does_not_name_its_parameters_is_listed(old_file, tools, tmp_path):
    flags = ["compile", old_file, "--config", write_config(tmp_path / "c.json"), "-o", tmp_path / "m.dsplan"]
    rule = ("the file does not say which initializers are parameters, so what products, norms and sums with activations learn is trained: ")
    said = tools("ds-opt", *flags).stderr
    assert rule + "shift, layers.*.weight, layers.*.bias; and these are not: loss.weight; --trainable REGEX and --frozen REGEX say otherwise" in said
    said = tools("ds-opt", *flags, "--trainable", "^loss", "--frozen", "^shift$").stderr
    assert rule + "layers.*.weight, layers.*.bias, loss.weight; and these are not: shift;" in said


def test_a_file_that_names_them_is_not_guessed(exported, tools, tmp_path):
    model = exported("gpt2", "--size", "tiny", "--seq", 16)
    assert tools("ds-opt", "compile", model, "--config", write_config(tmp_path / "c.json"), "-o", tmp_path / "m.dsplan").stderr == ""


def test_tensors_that_the_model_does_not_take_are_named(old_file, tools, tmp_path):
    tools("ds-opt", "compile", old_file, "--config", write_config(tmp_path / "c.json", micro=2), "-o", tmp_path / "m.dsplan")
    data = {"x": torch.randn(4, 4), "y": torch.tensor([0, 1, 2, 0])}
    save_file({**data, "weights": torch.ones(4), "mask": torch.ones(4, 4)}, tmp_path / "d.safetensors")
    for source, lines in ((tmp_path / "d.safetensors", ""), ("-", f"{tmp_path / 'd.safetensors'}\n" * 2)):  # once, whatever how many files have them
        said = tools("ds-run", tmp_path / "m.dsplan", "--data", source, "--quiet", input=lines).stderr
        assert said == "note: the data has mask, weights, which the model of this plan does not take\n"
    save_file(data, tmp_path / "d.safetensors")
    assert tools("ds-run", tmp_path / "m.dsplan", "--data", tmp_path / "d.safetensors", "--quiet").stderr == ""


@pytest.mark.parametrize("schedule, has_effect", [
    (None, True), (("WarmupLR", {"warmup_num_steps": 2}), True), (("WarmupLR", {"warmup_max_lr": 0.1}), False),
    (("WarmupLR", {"warmup_max_lr": "auto"}), True), (("WarmupDecayLR", {"total_num_steps": 10}), False),
    (("WarmupCosineLR", {"total_num_steps": 10}), True), (("LRRangeTest", {}), False),
    (("OneCycle", {"cycle_min_lr": 0.1, "cycle_max_lr": 0.2}), False)], ids=str)
def test_a_learning_rate_that_the_schedule_does_not_read_is_not_honoured(schedule, has_effect, old_file, tools, tmp_path):
    more = {"scheduler": {"type": schedule[0], "params": schedule[1]}} if schedule else {}
    config = write_config(tmp_path / "c.json", optimizer=ADAMW, **more)
    keys = json.loads(tools("ds-opt", "check", old_file, "--config", config, "--format", "json").stdout)["checks"][0]["config"]
    answer = next(key for key in keys if key["path"] == "optimizer.params.lr")
    assert (answer["status"] == "honoured") == has_effect, answer
    assert ("has no effect: the rates of" in answer["note"]) != has_effect
