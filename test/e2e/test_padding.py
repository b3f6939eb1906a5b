"""Batches with padding, on the left and on the right, through deepstatic.compile and through the exporter: PyTorch's losses, by transformers'
own loss and AdamW.

A few architectures here; all that take tokens and a mask with DS_TEST_SCOPE=all.
"""

import inspect
import json
import os
import sys

import architectures
import pytest
import torch
import transformers
from conftest import FOLDERS, ON_GPU, REPOSITORY
from safetensors.torch import save_file

sys.path.insert(0, str(REPOSITORY / "python"))
import deepstatic  # noqa: E402

pytestmark = pytest.mark.skipif(ON_GPU, reason="compiles for this machine's CPU")
STEPS, MICRO, NEAR = 3, 2, 1e-5  # relative, of losses
CONFIG = {"train_micro_batch_size_per_gpu": MICRO, "gradient_clipping": 0,
          "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "weight_decay": 0.1}}}
FEW = ["GPT2LMHeadModel", "LlamaForCausalLM", "BertForMaskedLM", "DistilBertForSequenceClassification"]
# Those with a mask among forward's arguments and inputs that are tokens.
MASKED = [one for one in architectures.ARCHITECTURES
          if one.data in ("tokens", "pairs", "documents") and "attention_mask" in inspect.signature(getattr(transformers, one.name).forward).parameters]
CASES = [one for one in MASKED if os.environ.get("DS_TEST_SCOPE") == "all" or one.name in FEW]


@pytest.fixture(autouse=True)
def tools_on_path(monkeypatch):
    monkeypatch.setenv("PATH", os.pathsep.join([str(FOLDERS["ds-opt"]), str(FOLDERS["ds-run"]), os.environ["PATH"]]))


def padded(architecture, side: str) -> dict:
    """Every second sample is shorter; what labels its padding counts for nothing."""
    inputs, labels = architectures.samples(architecture, STEPS * MICRO)
    mask = torch.ones_like(inputs["input_ids"])
    mask[::2, slice(0, 5) if side == "left" else slice(-5, None)] = 0
    if labels.shape == mask.shape:
        labels = labels.where(mask != 0, -100)
    return {**inputs, "attention_mask": mask, "labels": labels}


def built(architecture):
    """With weights large enough for padding to matter, and as export.py asks for two of them."""
    module = architectures.build(architecture)
    if architecture.name == "T5ForConditionalGeneration":
        module.set_attn_implementation("eager")
    for name, parameter in module.named_parameters():
        if architecture.name == "MarianMTModel" and "embed_positions" in name:
            parameter.requires_grad_(False)
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.dim() > 1:
                parameter.mul_(2 if isinstance(module, transformers.T5ForConditionalGeneration) else 6)  # T5's scores are not scaled
    return module


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("architecture", CASES, ids=lambda one: one.name)
def test_losses_are_pytorchs(architecture, side, tmp_path):
    columns = padded(architecture, side)
    module = built(architecture)
    plan = deepstatic.compile(module, CONFIG, example_batch=columns)
    run = plan.run(columns, STEPS, quiet=True, threads=1)
    inputs = {name: value for name, value in columns.items() if name != "labels"}
    losses, _ = architectures.reference(architecture, module, inputs, columns["labels"], STEPS, MICRO)
    assert run.losses == pytest.approx(losses, rel=NEAR)
    if side == "left" or architecture.loss != "causal-lm":  # else no token that counts sees padding
        inputs.pop("attention_mask")
        without, _ = architectures.reference(architecture, built(architecture), inputs, columns["labels"], 1, MICRO)
        assert abs(without[0] - losses[0]) > 10 * NEAR * losses[0]


def test_the_exporter_takes_a_mask_too(tools, tmp_path):
    architecture = next(one for one in architectures.ARCHITECTURES if one.name == "LlamaForCausalLM")
    module, columns = architectures.build(architecture), padded(architecture, "left")
    module.save_pretrained(tmp_path / "saved")
    tools("export.py", tmp_path / "saved", "--seq", architectures.SEQUENCE, "--inputs", "input_ids,attention_mask,labels", "--out", tmp_path / "m")
    (tmp_path / "c.json").write_text(json.dumps(CONFIG))
    tools("ds-opt", "compile", tmp_path / "m", "--config", tmp_path / "c.json", "-o", tmp_path / "m.dsplan")
    save_file(columns, tmp_path / "d.safetensors")
    lines, _ = tools.train(tmp_path / "m.dsplan", tmp_path / "d.safetensors", STEPS, "--threads", 1)
    inputs = {name: value for name, value in columns.items() if name != "labels"}
    losses, _ = architectures.reference(architecture, module, inputs, columns["labels"], STEPS, MICRO)
    assert [line["loss"] for line in lines] == pytest.approx(losses, rel=NEAR)
    said = tools("export.py", tmp_path / "saved", "--seq", architectures.SEQUENCE, "--inputs", "input_ids,segments", "--out", tmp_path / "n").stderr
    assert "note: LlamaForCausalLM takes no segments" in said
