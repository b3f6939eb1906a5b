"""Files that PyTorch's older exporter writes, as a user who has no newer one calls it: they train with PyTorch's losses."""

import copy
import json
import warnings

import numpy
import pytest
import torch
import transformers
from conftest import write_config
from safetensors.torch import save_file
from torch_reference import CLASSES, SIZES, train

from exporting.mixture import dispatch_densely
from exporting.resnet import ResNet

SEQ, MICRO, STEPS = 16, 4, 3


def language_model(name):
    """transformers' module with its loss alone, and its samples; the tracer wants `attention_mask` as an input."""
    config_class, model_class = CLASSES[name]
    config = config_class(**SIZES[name]["tiny"], use_cache=False, attn_implementation="sdpa", bos_token_id=None, eos_token_id=None,
                          **({"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0} if name == "bert" else {}))

    def forward(self, input_ids, attention_mask, labels):
        return model_class.forward(self, input_ids=input_ids, attention_mask=attention_mask, labels=labels).loss
    module = model_class(config)
    module.__class__ = type(model_class.__name__, (model_class,), {"forward": forward})
    dispatch_densely(module)
    ids = torch.randint(SIZES[name]["tiny"]["vocab_size"], (MICRO * STEPS, SEQ))
    return module, {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids.clone()}


def vision_model(name):
    settings = SIZES[name]["tiny"]
    images = torch.randn(MICRO * STEPS, 3, settings["image_size"], settings["image_size"])
    samples = {"pixel_values": images, "labels": torch.randint(settings["num_labels"], (MICRO * STEPS,))}
    if name == "resnet50":
        return ResNet(**settings), samples

    def forward(self, pixel_values, labels):
        return transformers.ViTForImageClassification.forward(self, pixel_values=pixel_values, labels=labels).loss
    module = transformers.ViTForImageClassification(transformers.ViTConfig(**settings, attn_implementation="sdpa"))
    module.__class__ = type("ViTForImageClassification", (transformers.ViTForImageClassification,), {"forward": forward})
    return module, samples


def export(module, samples, path, opset):
    """`training=` is what keeps dropout and batch statistics, `do_constant_folding=False` what keeps the weights."""
    traced = copy.deepcopy(module)  # tracing runs the module, which moves its statistics
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(traced, tuple(value[:2] for value in samples.values()), path, dynamo=False, opset_version=opset,
                          training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False, input_names=list(samples),
                          output_names=["loss"], dynamic_axes={name: {0: "batch"} for name in samples})


@pytest.mark.parametrize("opset", [14, 17, 20])
@pytest.mark.parametrize("name", ["bert", "moe", "vit", "resnet50"])
def test_losses_are_pytorchs(name, opset, tools, tmp_path):
    torch.manual_seed(0)
    module, samples = (vision_model if name in ("vit", "resnet50") else language_model)(name)
    module = module.train()
    export(module, samples, tmp_path / "model.onnx", opset)
    save_file(samples, tmp_path / "data.safetensors")
    path = write_config(tmp_path / "ds_config.json", MICRO, optimizer={"type": "AdamW", "params": {"lr": 1e-4}})
    tools("ds-opt", "compile", tmp_path / "model.onnx", "--config", path, "-o", tmp_path / "m.dsplan")
    metrics, _ = tools.train(tmp_path / "m.dsplan", tmp_path / "data.safetensors", STEPS)
    expected = train(module, samples, json.loads(path.read_text()), STEPS)
    numpy.testing.assert_allclose([line["loss"] for line in metrics], expected.losses, rtol=1e-5)
    numpy.testing.assert_allclose([line["grad_norm"] for line in metrics], expected.norms, rtol=1e-4)
