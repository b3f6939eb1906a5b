"""Evaluations leave no sample out: PyTorch's losses over data of any length, on one rank and on two."""

import json
import warnings

import pytest
import torch
from conftest import ON_GPU, write_config
from safetensors.torch import save_file

pytestmark = pytest.mark.skipif(ON_GPU, reason="compiles for this machine's CPU")
LENGTH = 5


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)

    def forward(self, x, labels):
        return torch.nn.functional.cross_entropy(self.layer(x).transpose(1, 2), labels)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    torch.manual_seed(0)
    net, path = Net(), tmp_path_factory.mktemp("model") / "m.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(net, (torch.randn(2, LENGTH, 4), torch.zeros(2, LENGTH, dtype=torch.int64)), path, dynamo=False, opset_version=17,
                          training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False, input_names=["x", "labels"], output_names=["loss"],
                          dynamic_axes={"x": {0: "batch"}, "labels": {0: "batch"}})
    return net, path


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("normalization", ["microbatch", "tokens"])
def test_the_last_batch_need_not_be_full(normalization, ranks, model, tools, tmp_path):
    """A batch has 6 samples a rank, in micro-batches of 3: the rest is 1 to 11 of them. With "tokens", labels of unlike numbers count."""
    net, path = model
    plan, config = tmp_path / "m.dsplan", write_config(tmp_path / "c.json", micro=3, accumulation=2, deepstatic={"loss_normalization": normalization})
    tools("ds-opt", "compile", path, "--config", config, "--ranks", ranks, "-o", plan)
    x, labels = torch.randn(29, LENGTH, 4), torch.randint(3, (29, LENGTH))
    if normalization == "tokens":
        for i in range(len(labels)):
            labels[i, :i % LENGTH] = -100
    for count in (1, 5, 7, 12, 17, 29):
        save_file({"x": x[:count].clone(), "labels": labels[:count].clone()}, tmp_path / "d.safetensors")
        metrics = tmp_path / f"{count}.jsonl"
        tools("ds-run", plan, "--eval", "--data", tmp_path / "d.safetensors", "--metrics", metrics, "--threads", 1, "--quiet")
        got = json.loads(metrics.read_text().splitlines()[0])["eval_loss"]
        assert got == pytest.approx(net(x[:count], labels[:count]).item(), rel=1e-6), count
