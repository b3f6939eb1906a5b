"""Ten steps of ViT and ResNet on drawn images: losses, norms, weights and running statistics are PyTorch's.

In float64 nothing is left to rounding, so there the limits are tight: they say that the mathematics is PyTorch's. In float32
ResNet is no smooth function: where a ReLU's input or two candidates of a max pooling agree to the last bits, rounding decides
which way a gradient goes, about once in ten steps of the tiny size. PyTorch's own runs part there too, one set of its kernels
from the other, so float32 is held to PyTorch's own spread over several runs.
"""

import json
import types

import numpy
import pytest
import torch
import transformers
from conftest import write_config
from safetensors import safe_open
from safetensors.torch import save_file
from test_parity import check_weights
from torch_reference import SIZES, initializers, own_spread, relative_difference, train
from weights import read_weights

from exporting.resnet import ResNet

MICRO, STEPS = 8, 10
SGD = {"type": "SGD", "params": {"lr": 0.002, "momentum": 0.9}}
ADAMW = {"type": "AdamW", "params": {"lr": 1e-4, "weight_decay": 0.1}}


def read_images(path, dtype=torch.float32) -> dict:
    with safe_open(path, "pt") as file:
        return {"pixel_values": file.get_tensor("pixel_values").to(dtype), "labels": file.get_tensor("labels")}


@pytest.fixture(scope="session")
def images(tools, tmp_path_factory):
    """images(size) -> a file of drawn images, enough for every step here."""
    files = {}

    def prepare(size):
        if size not in files:
            files[size] = tmp_path_factory.mktemp("images") / "data.safetensors"
            tools("prepare_data.py", "images", "--count", 2 * STEPS * MICRO, "--size", size, "--out", files[size])
        return files[size]

    return prepare


def fill(model, folder):
    """The module with the export's parameters and buffers."""
    missing, unexpected = model.load_state_dict(initializers(folder), strict=False)
    assert not unexpected and all(name.endswith("num_batches_tracked") for name in missing)
    return model


def load_vit(folder, dtype=torch.float32):
    model = transformers.ViTForImageClassification(transformers.ViTConfig(**SIZES["vit"]["tiny"]))
    values = {name: value for name, value in initializers(folder).items() if name in dict(model.named_parameters())}
    missing, unexpected = model.load_state_dict(values, strict=False)
    assert not missing and not unexpected
    return model.to(dtype).train()


def load_resnet(folder, dtype=torch.float32):
    return fill(ResNet(**SIZES["resnet50"]["tiny"]), folder).to(dtype).train()


LOADERS = {"vit": load_vit, "resnet50": load_resnet}
IMAGE_SIZES = {"vit": 32, "resnet50": 64}


def compiled(tools, folder, config, tmp_path):
    plan = tmp_path / "model.dsplan"
    tools("ds-opt", "compile", folder, "--config", config, "--ranks", 1, "-o", plan)
    return plan


def trained(tools, folder, config, data, tmp_path):
    """Losses, norms and the file of weights after ds-run's steps."""
    plan, weights = compiled(tools, folder, config, tmp_path), tmp_path / "weights.safetensors"
    metrics, _ = tools.train(plan, data, STEPS, "--export", weights, "--threads", 2)
    return types.SimpleNamespace(losses=[line["loss"] for line in metrics], norms=[line["grad_norm"] for line in metrics],
                                 weights=weights)


@pytest.mark.parametrize("optimizer", [SGD, ADAMW], ids=["sgd", "adamw"])
@pytest.mark.parametrize("accumulation", [1, 2])
@pytest.mark.parametrize("name", LOADERS)
def test_float64_is_pytorchs(name, accumulation, optimizer, tools, exported, images, tmp_path):
    """Statistics move once a micro-batch, as PyTorch's do once a forward pass."""
    folder = exported(name, "--size", "tiny", "--dtype", "float64")
    samples, data = read_images(images(IMAGE_SIZES[name]), torch.float64), tmp_path / "data.safetensors"
    save_file(samples, data)
    path = write_config(tmp_path / "ds_config.json", MICRO, accumulation, optimizer=optimizer)
    ours = trained(tools, folder, path, data, tmp_path)
    expected = train(LOADERS[name](folder, torch.float64), samples, json.loads(path.read_text()), STEPS)
    numpy.testing.assert_allclose(ours.losses, expected.losses, rtol=1e-12)
    numpy.testing.assert_allclose(ours.norms, expected.norms, rtol=1e-12)
    weights, _ = read_weights(ours.weights)
    assert set(weights) == set(expected.weights)
    for tensor, value in weights.items():
        assert relative_difference(tensor, value, expected.weights[tensor]) <= 1e-10, tensor


@pytest.mark.parametrize("accumulation", [1, 4])
def test_vit_is_pytorchs(accumulation, tools, exported, images, tmp_path):
    folder, data = exported("vit", "--size", "tiny"), images(32)
    path = write_config(tmp_path / "ds_config.json", MICRO // accumulation, accumulation)
    config = json.loads(path.read_text())
    ours = trained(tools, folder, path, data, tmp_path)
    expected = train(load_vit(folder), read_images(data), config, STEPS)
    numpy.testing.assert_allclose(ours.losses, expected.losses, rtol=1e-5)
    numpy.testing.assert_allclose(ours.norms, expected.norms, rtol=1e-4)
    check_weights(ours.weights, expected.weights, lambda: own_spread(
        lambda dtype: load_vit(folder, dtype), read_images(data), config, STEPS))


def kind(name) -> str:
    """Statistics; what starts at zero, whose maximum is a few steps' length; and the rest."""
    return "statistic" if "running" in name else name.rpartition(".")[2]


@pytest.mark.parametrize("accumulation", [1, 2])
def test_resnet_is_pytorchs(accumulation, tools, exported, images, tmp_path):
    folder, data = exported("resnet50", "--size", "tiny"), images(64)
    path = write_config(tmp_path / "ds_config.json", MICRO, accumulation, optimizer=ADAMW)
    config = json.loads(path.read_text())
    ours = trained(tools, folder, path, data, tmp_path)
    expected = train(load_resnet(folder), read_images(data), config, STEPS)
    numpy.testing.assert_allclose(ours.losses, expected.losses, rtol=1e-4)

    def spread():
        by_name = own_spread(lambda dtype: load_resnet(folder, dtype), read_images(data), config, STEPS)
        # What parts two runs may stand anywhere in the model.
        return {name: max(value for other, value in by_name.items() if kind(other) == kind(name)) for name in by_name}
    check_weights(ours.weights, expected.weights, spread)


def test_evaluation_uses_running_statistics(tools, exported, images, tmp_path):
    folder, data = exported("resnet50", "--size", "tiny"), images(64)
    path = write_config(tmp_path / "ds_config.json", MICRO, optimizer=SGD)
    config = json.loads(path.read_text())
    plan = compiled(tools, folder, path, tmp_path)
    metrics = tmp_path / "metrics.jsonl"
    tools("ds-run", plan, "--data", data, "--steps", 3, "--metrics", metrics, "--quiet", "--eval-data", data, "--eval-interval", 3)
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    ours = next(line["eval_loss"] for line in lines if "eval_loss" in line)
    model, samples = load_resnet(folder), read_images(data)
    train(model, samples, config, 3)
    model.eval()
    with torch.no_grad():
        losses = [model(**{name: value[i:i + MICRO] for name, value in samples.items()}).item()
                  for i in range(0, len(samples["labels"]), MICRO)]
    assert ours == pytest.approx(numpy.mean(losses), rel=1e-4)
