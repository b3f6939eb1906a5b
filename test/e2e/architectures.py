"""Architectures of transformers at tiny size, random weights: their forward graphs as two exporters write them, without a loss.

test_architectures.py trains them with ds-run beside PyTorch; `architectures.py PROCESSES [FORM ...]` does it with all and writes
models/zoo.json, which `ds-opt zoo` prints, and from that docs/architectures.md.
"""

import contextlib
import dataclasses
import io
import json
import re
import sys
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file, save_file

VOCABULARY, CLASSES, SEQUENCE, BATCH, IMAGE = 61, 3, 16, 2, 32
# Keys that configurations share; those that a configuration has are set.
TINY = dict(vocab_size=VOCABULARY, hidden_size=32, intermediate_size=48, moe_intermediate_size=24, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=2, head_dim=8, max_position_embeddings=64, pad_token_id=0, bos_token_id=1,
            eos_token_id=2, use_cache=False, n_layer=2, n_embd=32, n_head=4, n_positions=64, d_model=32, num_layers=2,
            num_decoder_layers=2, num_heads=4, d_ff=48, d_kv=8, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
            decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, ffn_dim=48, word_embed_proj_dim=32, dim=32, hidden_dim=48,
            n_layers=2, n_heads=4, embedding_size=32, image_size=IMAGE, patch_size=8, decoder_start_token_id=1)
DROPOUTS = ("dropout", "pdrop", "drop_rate", "dropout_prob", "dropout_rate", "drop_path_rate", "layerdrop", "attention_probs_dropout_prob")


@dataclasses.dataclass(frozen=True)
class Architecture:
    """A class of transformers; `data` is what its inputs are, `loss` what --attach-loss is called that its own loss is."""
    name: str
    kind: str  # for people: "text", "vision", "audio", ...
    loss: str
    data: str = "tokens"
    settings: dict = dataclasses.field(default_factory=dict)
    flags: tuple = ()  # of ds-opt compile


ARCHITECTURES = [
    Architecture("GPT2LMHeadModel", "text", "causal-lm"),
    Architecture("LlamaForCausalLM", "text", "causal-lm"),
    Architecture("BertForMaskedLM", "text", "masked-lm"),
    Architecture("Qwen2ForCausalLM", "text", "causal-lm"),
    Architecture("Qwen3ForCausalLM", "text", "causal-lm"),
    Architecture("MistralForCausalLM", "text", "causal-lm"),
    Architecture("GemmaForCausalLM", "text", "causal-lm"),
    Architecture("Gemma2ForCausalLM", "text", "causal-lm"),
    Architecture("Gemma3ForCausalLM", "text", "causal-lm"),
    Architecture("PhiForCausalLM", "text", "causal-lm"),
    Architecture("Phi3ForCausalLM", "text", "causal-lm"),
    Architecture("OPTForCausalLM", "text", "causal-lm"),
    Architecture("GPTNeoXForCausalLM", "text", "causal-lm"),
    Architecture("GPTNeoForCausalLM", "text", "causal-lm", settings=dict(attention_types=[[["global", "local"], 1]])),
    Architecture("GPTJForCausalLM", "text", "causal-lm", settings=dict(rotary_dim=4)),
    Architecture("BloomForCausalLM", "text", "causal-lm"),
    Architecture("FalconForCausalLM", "text", "causal-lm"),
    Architecture("StableLmForCausalLM", "text", "causal-lm"),
    Architecture("Olmo2ForCausalLM", "text", "causal-lm"),
    Architecture("GraniteForCausalLM", "text", "causal-lm"),
    Architecture("Starcoder2ForCausalLM", "text", "causal-lm"),
    Architecture("SmolLM3ForCausalLM", "text", "causal-lm"),
    Architecture("CohereForCausalLM", "text", "causal-lm"),
    Architecture("MixtralForCausalLM", "text", "causal-lm"),
    Architecture("MambaForCausalLM", "text", "causal-lm"),
    Architecture("DistilBertForSequenceClassification", "text", "classification"),
    Architecture("RobertaForMaskedLM", "text", "masked-lm"),
    Architecture("XLMRobertaForTokenClassification", "text", "token-classification"),
    Architecture("MPNetForMaskedLM", "text", "masked-lm"),
    Architecture("AlbertForMaskedLM", "text", "masked-lm"),
    Architecture("ElectraForSequenceClassification", "text", "regression", settings=dict(num_labels=1)),
    Architecture("DebertaV2ForSequenceClassification", "text", "classification"),
    Architecture("ModernBertForMaskedLM", "text", "masked-lm"),
    Architecture("LayoutLMForTokenClassification", "documents", "token-classification", "documents"),
    Architecture("T5ForConditionalGeneration", "encoder and decoder", "masked-lm", "pairs"),
    Architecture("BartForConditionalGeneration", "encoder and decoder", "masked-lm", "pairs"),
    Architecture("MarianMTModel", "encoder and decoder", "masked-lm", "pairs", flags=("--frozen", "embed_positions")),
    Architecture("ViTForImageClassification", "vision", "classification", "images"),
    Architecture("DeiTForImageClassification", "vision", "classification", "images"),
    Architecture("Dinov2ForImageClassification", "vision", "classification", "images"),
    Architecture("BeitForImageClassification", "vision", "classification", "images"),
    Architecture("SwinForImageClassification", "vision", "classification", "images",
                 settings=dict(embed_dim=16, depths=[1, 1], num_heads=[2, 4], window_size=2, patch_size=4)),
    Architecture("ConvNextForImageClassification", "vision", "classification", "images",
                 settings=dict(hidden_sizes=[8, 16], depths=[1, 1], num_stages=2, patch_size=4)),
    Architecture("ResNetForImageClassification", "vision", "classification", "images",
                 settings=dict(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic"), flags=("--batch-norm=train",)),
    # No MobileNetV2: with two images PyTorch's float32 parts from its own float64 by a tenth within three steps.
    Architecture("SiglipForImageClassification", "vision", "classification", "images"),
    Architecture("WhisperForConditionalGeneration", "audio", "masked-lm", "spectrogram",
                 settings=dict(num_mel_bins=8, max_source_positions=16, max_target_positions=32),
                 flags=("--frozen", r"encoder\.embed_positions")),
    Architecture("Wav2Vec2ForSequenceClassification", "audio", "classification", "waves"),
    Architecture("HubertForSequenceClassification", "audio", "classification", "waves"),
    Architecture("ASTForAudioClassification", "audio", "classification", "patches", settings=dict(num_mel_bins=16, max_length=32)),
    Architecture("VideoMAEForVideoClassification", "video", "classification", "frames", settings=dict(num_frames=4, tubelet_size=2)),
]


def build(architecture: Architecture):
    """The module, in training mode, dropout off."""
    model_class = getattr(transformers, architecture.name)
    default = model_class.config_class()
    values = default.to_dict()
    settings = {"num_labels": CLASSES} | {key: value for key, value in TINY.items() if hasattr(default, key) and not isinstance(getattr(type(default), key, None), property)
                and type(default).attribute_map.get(key) not in architecture.settings}
    settings |= {key: 0.0 for key, value in values.items() if key.endswith(DROPOUTS) and isinstance(value, float)}
    for name, part in values.items():  # of a vision and a text part
        if isinstance(part, dict) and "hidden_size" in part and name.endswith("_config"):
            settings[name] = {key: value for key, value in TINY.items() if key in part}
    if architecture.data == "waves":
        settings |= dict(conv_dim=[16, 16], conv_kernel=[10, 3], conv_stride=[5, 2], num_feat_extract_layers=2, num_conv_pos_embeddings=8,
                         num_conv_pos_embedding_groups=2, mask_time_prob=0.0, mask_feature_prob=0.0, apply_spec_augment=False,
                         classifier_proj_size=16)
    torch.manual_seed(0)
    module = model_class(model_class.config_class(**settings | architecture.settings)).train()
    with torch.no_grad():  # scales and biases that differ, as those of trained models do: exporters merge equal ones
        for parameter in module.parameters():
            if parameter.dim() <= 1 or (parameter == parameter.flatten()[0]).all():
                parameter.add_(0.05 * torch.randn_like(parameter))
    return module


def samples(architecture: Architecture, count: int) -> tuple:
    """(inputs, labels) of `count` samples."""
    generator = torch.Generator().manual_seed(1)

    def tokens(length=SEQUENCE):
        return torch.randint(3, VOCABULARY, (count, length), generator=generator)

    def noise(*shape):
        return torch.randn(count, *shape, generator=generator)
    inputs = {"tokens": lambda: {"input_ids": tokens()},
              "documents": lambda: {"input_ids": tokens(), "bbox": torch.randint(0, 64, (count, SEQUENCE, 4), generator=generator).sort(-1).values},
              "pairs": lambda: {"input_ids": tokens(), "decoder_input_ids": tokens(12)},
              "images": lambda: {"pixel_values": noise(3, IMAGE, IMAGE)},
              "frames": lambda: {"pixel_values": noise(4, 3, IMAGE, IMAGE)},
              "spectrogram": lambda: {"input_features": noise(8, 32), "decoder_input_ids": tokens(12)},
              "waves": lambda: {"input_values": noise(320)},
              "patches": lambda: {"input_values": noise(32, 16)}}[architecture.data]()
    length = 12 if "decoder_input_ids" in inputs else SEQUENCE
    if architecture.loss == "regression":
        return inputs, noise()
    if architecture.loss == "classification":
        return inputs, torch.randint(0, CLASSES, (count,), generator=generator)
    labels = torch.randint(0, CLASSES if architecture.loss == "token-classification" else VOCABULARY, (count, length), generator=generator)
    labels[0, :3] = -100
    return inputs, labels


def with_loss(name: str):
    """(module whose forward returns transformers' own loss, example inputs), as models/export.py takes them: `architectures:with_loss`."""
    from exporting.mixture import dispatch_densely
    from exporting.sources import loss_alone
    architecture = next(one for one in ARCHITECTURES if one.name == name)
    inputs, labels = samples(architecture, BATCH)
    module = build(architecture)
    dispatch_densely(module)
    if architecture.loss == "classification":
        module.config.problem_type = "single_label_classification"  # else DebertaV2 looks at the labels' values
    if name in ("T5ForConditionalGeneration", "SwinForImageClassification"):
        module.set_attn_implementation("eager")  # the exporter takes sdpa's result for one that lies otherwise
    return loss_alone(module, [*inputs, "labels"]), {**inputs, "labels": labels}


def export(architecture: Architecture, module, folder, exporter: str, **options) -> None:
    """model.onnx as `exporter` ("transformers" or "torch") writes it of the forward pass."""
    inputs, _ = samples(architecture, BATCH)
    if exporter == "torch":
        with torch.no_grad():
            torch.onnx.export(module, (), folder / "model.onnx", kwargs=dict(inputs), dynamo=True, verbose=False, output_names=["logits"],
                              **options)
        return
    from transformers.exporters import OnnxConfig, OnnxExporter
    OnnxExporter().export(module, inputs, config=OnnxConfig(**options)).save_pretrained(folder)


def reference(architecture: Architecture, module, inputs: dict, labels, steps: int, micro: int):
    """(losses, parameters) of training in PyTorch with transformers' own loss and AdamW."""
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3, weight_decay=0.1)
    losses = []
    for at in range(0, steps * micro, micro):
        optimizer.zero_grad()
        loss = module(**{name: value[at:at + micro] for name, value in inputs.items()}, labels=labels[at:at + micro]).loss
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
    return losses, {name: value.detach().clone() for name, value in module.named_parameters(remove_duplicate=False)}


FORMS = {"transformers, optimize=False": ("transformers", {"optimize": False}), "transformers": ("transformers", {}), "torch": ("torch", {})}
# By the opset that torch is asked for, with its default options and with optimize=False.
FORMS_BY_OPSET = {f"torch, opset {opset}{', optimize=False' * (not optimize)}": ("torch", {"opset_version": opset, "optimize": optimize})
                  for opset in range(18, 26) for optimize in (True, False)}
STEPS, NEAR = 5, 1e-5  # relative, of losses


@dataclasses.dataclass
class Outcome:
    """Of one architecture and exporter: the largest relative difference of the losses, or why it was refused."""
    difference: float | None = None
    parameters: int = 0  # exported under PyTorch's names
    refusal: str = ""



def compiled(tools, architecture: Architecture, module, folder, form):
    """(plan, "") or (None, the sentence of a refusal), of the exporter or of ds-opt."""
    exporter, options = (FORMS | FORMS_BY_OPSET)[form]
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            export(architecture, module, folder, exporter, **options)
    except Exception as error:
        while error.__cause__ is not None:
            error = error.__cause__
        return None, f"the exporter: {type(error).__name__}: " + (str(error).strip().splitlines() or [""])[0]
    module.save_pretrained(folder / "saved")
    config = folder / "ds_config.json"
    config.write_text(json.dumps({"train_micro_batch_size_per_gpu": BATCH, "gradient_accumulation_steps": 1, "gradient_clipping": 0,
                                  "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "weight_decay": 0.1}}}))
    weights = () if options.get("optimize") is False else ("--weights", folder / "saved")
    plan = folder / "m.dsplan"
    done = tools("ds-opt", "compile", folder / "model.onnx", "--config", config, "--attach-loss", architecture.loss, *weights, *architecture.flags,
                 "-o", plan, code=None)
    if done.returncode:
        sentences = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        assert done.returncode == 1 and len(sentences) == 1, done.stderr
        return None, sentences[0].removeprefix(f"error: {folder / 'model.onnx'}: ")
    tools("ds-opt", "verify", plan, "--model", folder / "model.onnx", "--config", config, *weights)
    return plan, ""


def outcome(tools, architecture: Architecture, folder, form) -> Outcome:
    """Trains beside PyTorch; raises AssertionError where what is accepted is not what PyTorch trains."""
    folder.mkdir(parents=True)
    module = build(architecture)
    plan, refusal = compiled(tools, architecture, module, folder, form)
    if plan is None:
        return Outcome(refusal=refusal)
    inputs, labels = samples(architecture, STEPS * BATCH)
    save_file({**inputs, "labels": labels}, folder / "data.safetensors")
    lines, _ = tools.train(plan, folder / "data.safetensors", STEPS, "--threads", 1, "--export", folder / "after.safetensors")
    module = build(architecture)
    names = {}  # of each parameter, several where it is tied
    for name, parameter in module.named_parameters(remove_duplicate=False):
        names.setdefault(parameter, []).append(name)
    known = set(module.state_dict())
    before = {parameter: parameter.detach().clone() for parameter in names}
    losses, _ = reference(architecture, module, inputs, labels, STEPS, BATCH)
    difference = max(abs(line["loss"] - expected) / abs(expected) for line, expected in zip(lines, losses, strict=True))
    assert difference <= NEAR, f"{architecture.name}, {form}: losses {[line['loss'] for line in lines]}, PyTorch's {losses}"
    after = load_file(folder / "after.safetensors")
    assert set(after) <= known, f"{architecture.name}, {form}: {sorted(set(after) - known)} are no names of PyTorch"
    for parameter, aliases in names.items():
        if torch.equal(parameter, before[parameter]):
            continue  # not reached by the loss
        found = [after[name] for name in aliases if name in after]
        assert len(found) == 1, f"{architecture.name}, {form}: {aliases} is {len(found)} times in the export"
        # A step of Adam's goes the wrong way at most where a gradient is rounding noise.
        assert found[0].shape == parameter.shape and (found[0] - parameter).abs().max() <= 2 * STEPS * 1e-3, f"{architecture.name}, {form}: {aliases}"
    return Outcome(difference, len(after))


# --- the page

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE, ZOO = REPOSITORY / "docs" / "architectures.md", REPOSITORY / "models" / "zoo.json"
HEAD = """# Architectures of transformers

Written by `test/e2e/architectures.py`, and printed by `ds-opt zoo`. It builds each class at tiny size with random weights and exports its forward pass, without a loss: `transformers` is its
`OnnxExporter` with its defaults or `optimize=False`, `torch` is `torch.onnx.export(..., dynamo=True)` with its defaults.
`ds-opt compile --attach-loss` puts the loss behind the logits; what was optimized gets `--weights` of the saved model. {steps} steps of AdamW are compared with PyTorch
and the loss that transformers computes: a cell has the largest relative difference (at most {near:.0e}) and how many weights were exported under PyTorch's names, or
says that it is refused; the sentences stand below. `ds-opt verify --model --config` proved each plan. {passed} of {total} train.

With its own loss, through `models/export.py`, the gradient of every parameter is PyTorch's in all {total} (`test/e2e/test_architectures.py`); T5 and Swin need `--attention eager`.

| class | kind | `--attach-loss` | {forms} |
|---|---|---|{rule}
"""


def run_all(arguments):
    """One architecture in some forms, in a process of its own."""
    import conftest
    architecture, folder, forms = arguments
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    return [outcome(conftest.Tools(), architecture, Path(folder) / architecture.name / str(number), form) for number, form in enumerate(forms)]


def zoo_of(rows, forms) -> dict:
    """What came of each architecture, by form; `rows`: of each architecture its outcomes."""
    def cell(one):
        return {"refused": re.sub(r"/[^ ]*/saved", "FOLDER", one.refusal)} if one.refusal else {
            "difference": float(f"{one.difference:.0e}"), "weights": one.parameters}
    return {"steps": STEPS, "near": NEAR, "forms": list(forms), "architectures": [
        {"class": architecture.name, "kind": architecture.kind, "attach_loss": architecture.loss, "forms": dict(zip(forms, map(cell, row)))}
        for architecture, row in zip(ARCHITECTURES, rows)]}


def zoo_text(zoo: dict) -> str:
    """A line an architecture."""
    head = ", ".join(f"{json.dumps(key)}: {json.dumps(zoo[key])}" for key in ("steps", "near", "forms"))
    return f'{{{head}, "architectures": [\n' + ",\n".join(" " + json.dumps(one) for one in zoo["architectures"]) + "\n]}\n"


def cell_text(cell: dict) -> str:
    return f"refused ({reason_of(cell['refused'])})" if "refused" in cell else f"{cell['difference']:.0e}, {cell['weights']} weights"


def page(zoo: dict) -> str:
    architectures, forms = zoo["architectures"], zoo["forms"]
    passed = sum(any("refused" not in cell for cell in one["forms"].values()) for one in architectures)
    text = HEAD.format(steps=zoo["steps"], near=zoo["near"], passed=passed, total=len(architectures), forms=" | ".join(forms), rule="---|" * len(forms))
    for one in architectures:
        text += f"| {one['class']} | {one['kind']} | {one['attach_loss']} | {' | '.join(map(cell_text, one['forms'].values()))} |\n"
    text += "\n## What is refused\n"
    for one in architectures:
        for form, cell in one["forms"].items():
            if "refused" in cell:
                text += f"- {one['class']}, {form}: {cell['refused']}\n"
    return text


def reason_of(refusal: str) -> str:
    """The op by its name, or what it is about."""
    if refusal.startswith("the exporter:"):
        return "by the exporter"
    op = re.search(r"node '[^']*' \((\w+), opset", refusal)
    return "folded weights" if "the exporter optimized this model" in refusal else op[1] if op else "see below"


def main(processes="1", *forms) -> None:
    import multiprocessing
    import tempfile
    forms = forms or tuple(FORMS)
    with tempfile.TemporaryDirectory() as scratch, multiprocessing.get_context("spawn").Pool(int(processes)) as pool:
        results = pool.map(run_all, [(architecture, scratch, forms) for architecture in ARCHITECTURES], chunksize=1)
    zoo = zoo_of(results, forms)
    ZOO.write_text(zoo_text(zoo))
    PAGE.write_text(page(zoo))


if __name__ == "__main__":
    main(*sys.argv[1:])
