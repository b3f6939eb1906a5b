"""Reports of users, as files that torch's own exporter wrote: trained as PyTorch trains them, or refused by a sentence that leads on.

What models/export.py makes of the same modules is in test_gradients_of_modules.py.
"""

import json
import os

import numpy
import pytest
import torch
import torch.nn.functional as F
from conftest import ON_GPU, write_config
from safetensors.torch import load_file, save_file
from torch import nn

pytestmark = pytest.mark.skipif(ON_GPU, reason="compiles for this machine's CPU")
STEPS, MICRO, RATE = 3, 3, 0.1


class Net(nn.Module):
    """A loss of what `function` makes of a linear layer's result [batch, 6]."""

    def __init__(self, function, **parts):
        super().__init__()
        self.a, self.o, self.function = nn.Linear(4, 6), nn.Linear(6, 3), function
        for name, part in parts.items():
            self.add_module(name, part)

    def forward(self, x, y):
        return F.cross_entropy(self.o(self.function(self, self.a(x), x)), y)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.MultiheadAttention(6, 2, batch_first=True)

    def forward(self, rows, padding):
        return self.inner(rows, rows, rows, key_padding_mask=padding, need_weights=False)[0]


def hidden_rows(m, h, x):
    """A sample whose first value is negative sees nothing."""
    rows = torch.stack([h, h + 1, h * 2], 1)
    return h + m.attention(rows, (x[:, :1] < 0).expand(-1, 3)).mean(1)


def centred(m, h, x):
    h = h * (x[:, :1] > 0)
    return (h - h.mean(-1, keepdim=True)) / (h.std(-1, keepdim=True) + 1e-6)


def off_diagonal(m, h, x):
    return h + ((h.T @ h) * (1 - torch.eye(6))).pow(2).mean() + ((h.T @ h)[torch.eye(6, dtype=torch.bool)] - 1).pow(2).mean()


def large_identity(m, h, x):
    wide = h.repeat(1, 50)
    return h + ((wide.T @ wide) * (1 - torch.eye(300))).pow(2).mean()


def byte_masks(m, h, x):
    mask = torch.tensor([1, 0, 1, 0, 1, 1], dtype=torch.uint8)
    return h * mask + (h * (1 - mask)) * 3 + torch.arange(6, dtype=torch.uint8)  # 1 - mask in bytes


class Frozen(nn.BatchNorm1d):
    def train(self, mode=True):
        return super().train(False)


CASES = {
    "detach: straight through": (lambda m, h, x: h + (h.sign() - h).detach(), {}, ()),
    "detach: a norm": (lambda m, h, x: h / h.norm(dim=1, keepdim=True).detach(), {}, ()),
    "std of padding": (centred, {}, ()),
    "nn.MultiheadAttention, rows without keys": (hidden_rows, {"attention": Attention}, ()),
    "clamp at its bound": (lambda m, h, x: h + (m.o.bias * 0).clamp(0, 1).sum(), {}, ()),
    "torch.eye": (off_diagonal, {}, ()),
    "torch.eye of 300": (large_identity, {}, ()),
    "byte masks": (byte_masks, {}, ()),
    "a frozen batch norm": (lambda m, h, x: m.second(m.a2(F.relu(m.first(h)))),
                            {"first": lambda: Frozen(6), "a2": lambda: nn.Linear(6, 6), "second": lambda: nn.BatchNorm1d(6)}, ("--batch-norm=train",)),
}
FEW = ["torch.eye", "torch.eye of 300", "byte masks", "a frozen batch norm"]


def build(name):
    torch.manual_seed(0)
    function, parts, _ = CASES[name]
    return Net(function, **{key: make() for key, make in parts.items()}).train()


def data():
    generator = torch.Generator().manual_seed(1)
    return {"x": torch.randn(STEPS * MICRO, 4, generator=generator), "y": torch.randint(3, (STEPS * MICRO,), generator=generator)}


def export(module, path, **inputs):
    batch = torch.export.Dim("batch", min=2)
    torch.onnx.export(module, (), path, kwargs=inputs, dynamo=True, optimize=False, opset_version=20, verbose=False, external_data=False,
                      dynamic_shapes={name: {0: batch} for name in inputs})


@pytest.mark.parametrize("name", [name for name in CASES if os.environ.get("DS_TEST_SCOPE") == "all" or name in FEW])
def test_trains_as_pytorch(name, tools, tmp_path):
    samples = data()
    export(build(name), tmp_path / "m.onnx", **{key: value[:2] for key, value in samples.items()})
    config = write_config(tmp_path / "c.json", MICRO, optimizer={"type": "SGD", "params": {"lr": RATE}})
    tools("ds-opt", "compile", tmp_path / "m.onnx", "--config", config, "-o", tmp_path / "m.dsplan", *CASES[name][2])
    save_file(samples, tmp_path / "d.safetensors")
    lines, _ = tools.train(tmp_path / "m.dsplan", tmp_path / "d.safetensors", STEPS, "--export", tmp_path / "w.safetensors")
    module, losses = build(name), []
    optimizer = torch.optim.SGD(module.parameters(), lr=RATE)
    for at in range(0, STEPS * MICRO, MICRO):
        optimizer.zero_grad()
        loss = module(**{key: value[at:at + MICRO] for key, value in samples.items()})
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    numpy.testing.assert_allclose([line["loss"] for line in lines], losses, rtol=1e-5)
    state = module.state_dict()
    for key, value in load_file(tmp_path / "w.safetensors").items():
        numpy.testing.assert_allclose(value, state[key], rtol=1e-4, atol=2e-6, err_msg=key)


class Soft(nn.Module):
    def __init__(self):
        super().__init__()
        self.o = nn.Linear(4, 3)

    def forward(self, x, y):
        return F.cross_entropy(self.o(x), F.one_hot(y, 3).float() * 0.9 + 0.1 / 3)


class Bytes(nn.Module):
    def __init__(self):
        super().__init__()
        self.o = nn.Linear(4, 3)

    def forward(self, x, y):
        return F.cross_entropy(self.o(x * (x > 0).to(torch.uint8)), y)


class Average(Soft):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.ones(1))

    def forward(self, x, y):
        h = self.o(x)
        with torch.no_grad():
            self.scale.mul_(0.5).add_(0.5 * h.abs().mean())
        return F.cross_entropy(h / self.scale, y)


def test_parameters_that_were_stored_once_are_apart(tools, tmp_path):
    """By the older exporter, of a module in evaluation mode; in training mode each is there. Tied ones stay tied."""
    class Norms(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.a, self.b = nn.LayerNorm(4), nn.LayerNorm(4), nn.Linear(4, 4), nn.Linear(4, 4)
            self.b.weight = self.a.weight

        def forward(self, x):
            return (self.b(self.second(self.a(self.first(x)))) ** 2).mean()
    said = {}
    for mode in (torch.onnx.TrainingMode.EVAL, torch.onnx.TrainingMode.TRAINING):
        path = tmp_path / f"{mode.name}.onnx"
        torch.onnx.export(Norms(), (torch.randn(2, 4),), path, dynamo=False, opset_version=17, training=mode, do_constant_folding=False,
                          input_names=["x"], output_names=["loss"], dynamic_axes={"x": {0: "batch"}})
        tools("ds-opt", "compile", path, "--config", write_config(tmp_path / "c.json"), "-o", tmp_path / "m.dsplan")
        table = tools("ds-opt", "import", path, "--parameters").stdout
        said[mode.name] = {line.split()[0] for line in table.splitlines() if " yes " in line}
    assert said["EVAL"] == said["TRAINING"] and len(said["EVAL"]) == 7, said


@pytest.mark.parametrize("module, words", [
    (Average, ["forward changes the buffer 'scale', and a plan would keep its first value", "leave its update out of forward"]),
    (Soft, ["the targets [3, 3] of this cross entropy are probabilities of the classes", "-(targets * log_softmax(logits, 1)).sum(1).mean()"]),
    (Bytes, ["casts to uint8, which is not available yet", "int64 and bool are, and of constants uint8, uint16 and uint32"])])
def test_is_refused_with_what_works(module, words, tools, tmp_path):
    export(module(), tmp_path / "m.onnx", **{key: value[:2] for key, value in data().items()})
    said = tools.refused("ds-opt", "compile", tmp_path / "m.onnx", "--config", write_config(tmp_path / "c.json", MICRO), "-o", tmp_path / "m.dsplan")
    assert all(part in said for part in words), json.dumps(said)
