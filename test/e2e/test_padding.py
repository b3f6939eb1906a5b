"""Batches with padding, on the left and on the right, through deepstatic.compile and through the exporter: PyTorch's losses, by transformers'
own loss and AdamW.

A few architectures here; all that take a mask, and each of their masks, with DS_TEST_SCOPE=all.
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
FEW = [("GPT2LMHeadModel", "attention_mask"), ("LlamaForCausalLM", "attention_mask"), ("BertForMaskedLM", "attention_mask"),
       ("DistilBertForSequenceClassification", "attention_mask"), ("Wav2Vec2ForSequenceClassification", "attention_mask"),
       ("WhisperForConditionalGeneration", "decoder_attention_mask")]
UNREAD = [("WhisperForConditionalGeneration", "attention_mask")]  # its encoder sees all; SpecAugment alone reads it, which is random
# Every mask among forward's arguments, and of one that is not on the page.
MASKED = [(one, name) for one in (*architectures.ARCHITECTURES, architectures.Architecture("WavLMForSequenceClassification", "audio", "classification", "waves"))
          for name in inspect.signature(getattr(transformers, one.name).forward).parameters
          if name in ("attention_mask", "decoder_attention_mask") and (one.name, name) not in UNREAD]
CASES = [case for case in MASKED if os.environ.get("DS_TEST_SCOPE") == "all" or (case[0].name, case[1]) in FEW]


@pytest.fixture(autouse=True)
def tools_on_path(monkeypatch):
    monkeypatch.setenv("PATH", os.pathsep.join([str(FOLDERS["ds-opt"]), str(FOLDERS["ds-run"]), os.environ["PATH"]]))


def padded(architecture, mask_name: str, side: str) -> dict:
    """Every second sample is shorter; what labels its padding counts for nothing."""
    inputs, labels = architectures.samples(architecture, STEPS * MICRO)
    if architecture.data in ("images", "patches"):  # a mask is of what the encoder makes of them
        with torch.no_grad():
            mask = torch.ones(architectures.build(architecture).base_model(**inputs).last_hidden_state.shape[:2], dtype=torch.int64)
    else:
        name = "decoder_input_ids" if mask_name.startswith("decoder") else "input_values" if architecture.data == "waves" else "input_ids"
        mask = torch.ones_like(inputs[name], dtype=torch.int64)
    length = mask.shape[1] // 3
    mask[::2, slice(0, length) if side == "left" else slice(-length, None)] = 0
    if labels.shape == mask.shape:
        labels = labels.where(mask != 0, -100)
    return {**inputs, mask_name: mask, "labels": labels}


def built(architecture):
    """With weights large enough for padding to matter, and as export.py asks for two of them."""
    module = architectures.build(architecture)
    if architecture.name == "T5ForConditionalGeneration":
        module.set_attn_implementation("eager")
    if architecture.name == "DebertaV2ForSequenceClassification":
        module.config.problem_type = "single_label_classification"  # else it looks at the labels' values, which is refused
    for name, parameter in module.named_parameters():
        if architecture.name == "MarianMTModel" and "embed_positions" in name:
            parameter.requires_grad_(False)
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.dim() > 1:
                parameter.mul_(2 if isinstance(module, transformers.T5ForConditionalGeneration) else 6)  # T5's scores are not scaled
    return module


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("architecture, mask", CASES, ids=lambda one: getattr(one, "name", one))
def test_losses_are_pytorchs(architecture, mask, side, tmp_path):
    columns = padded(architecture, mask, side)
    module = built(architecture)
    plan = deepstatic.compile(module, CONFIG, example_batch=columns)
    run = plan.run(columns, STEPS, quiet=True, threads=1)
    inputs = {name: value for name, value in columns.items() if name != "labels"}
    losses, _ = architectures.reference(architecture, module, inputs, columns["labels"], STEPS, MICRO)
    assert run.losses == pytest.approx(losses, rel=NEAR)
    if side == "left" or (architecture.loss != "causal-lm" and mask == "attention_mask"):  # else no token that counts sees padding
        inputs.pop(mask)
        without, _ = architectures.reference(architecture, built(architecture), inputs, columns["labels"], 1, MICRO)
        assert abs(without[0] - losses[0]) > 4 * NEAR * losses[0]


def test_a_loss_that_looks_at_labels_is_refused_with_what_would_do():
    architecture = next(one for one in architectures.ARCHITECTURES if one.name == "DebertaV2ForSequenceClassification")
    with pytest.raises(deepstatic.DeepStaticError, match="set its config's problem_type, as to 'single_label_classification'"):
        deepstatic.compile(architectures.build(architecture), CONFIG, example_batch=padded(architecture, "attention_mask", "left"))


def test_the_exporter_takes_a_mask_too(tools, tmp_path):
    architecture = next(one for one in architectures.ARCHITECTURES if one.name == "LlamaForCausalLM")
    module, columns = architectures.build(architecture), padded(architecture, "attention_mask", "left")
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
