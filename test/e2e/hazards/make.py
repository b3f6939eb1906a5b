#!/usr/bin/env python3
"""Makes the ONNX files beside this script with PyTorch's own exporters, good ones and broken ones.

The importer's tests read them, so they are kept as files: an exporter that no longer makes a mistake must not take the
test of it away. Every model has one layer, hidden size 16, 50 tokens and 4 positions. Run without arguments to make them anew.
"""

import sys
import warnings
from pathlib import Path

import onnx
import torch
import transformers

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[2] / "models"), str(HERE)]

import export as exporter  # noqa: E402
from exporting.graph import OPSET, quiet  # noqa: E402
from exporting.sources import loss_alone  # noqa: E402

SEQUENCE, VOCABULARY = 4, 50
TORCHSCRIPT_OPSET = 17
# What the importer reads; the rest is stack traces and class names.
KEPT_METADATA = ("pkg.torch.onnx.name_scopes", "pkg.torch.onnx.fx_node", "pkg.onnxscript.rewriter.rule_name")
# A node's original call is a hint only where something may have been lost.
CALL_KEPT_ON = ("Dropout", "SoftmaxCrossEntropyLoss", "BatchNormalization")
SETTINGS = {
    "gpt2": dict(n_layer=1, n_embd=16, n_head=2, n_positions=SEQUENCE, vocab_size=VOCABULARY),
    "llama": dict(num_hidden_layers=1, hidden_size=16, intermediate_size=16, num_attention_heads=4, num_key_value_heads=2,
                  max_position_embeddings=SEQUENCE, vocab_size=VOCABULARY),
}


def main() -> None:
    transformers.logging.set_verbosity_error()
    for name in SETTINGS:
        good(name, name, "--size=tiny", f"--seq={SEQUENCE}", *[f"--set={key}={value}" for key, value in SETTINGS[name].items()])
        torchscript(f"torchscript-{name}", causal_model(name), fold=False)
    good("statistics", "make:normed_tokens")
    torchscript("torchscript-folded", causal_model("gpt2"), fold=True)
    dynamo("optimized", causal_model("gpt2"), optimize=True)
    dynamo("attention-dropout-lost", causal_model("gpt2", dropout=0.1))
    dynamo("label-smoothing-lost", SmoothedLoss())
    dynamo("batch-fixed-at-1", causal_model("gpt2"), batch=1)
    dynamo("batch-norm-lost", NormedPixels(), inputs={"pixels": torch.randn(2, 3, 4), "labels": torch.tensor([0, 1])})


class SmoothedLoss(torch.nn.Module):
    """The smallest language model with label smoothing, which the exporter drops."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embedding = torch.nn.Embedding(VOCABULARY, 16)
        self.head = torch.nn.Linear(16, VOCABULARY)

    def forward(self, input_ids, labels):
        logits = self.head(self.embedding(input_ids))
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), label_smoothing=0.1)


class NormedPixels(torch.nn.Module):
    """The smallest classifier with a batch norm, which the exporter writes in inference mode whatever the module's is."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.norm = torch.nn.BatchNorm1d(3)
        self.head = torch.nn.Linear(12, 2)

    def forward(self, pixels, labels):
        return torch.nn.functional.cross_entropy(self.head(self.norm(pixels).flatten(1)), labels)


class NormedTokens(torch.nn.Module):
    """The smallest language model with running statistics, two layers of them."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embedding = torch.nn.Embedding(VOCABULARY, 16)
        self.inner = torch.nn.Linear(16, 16)
        self.norms = torch.nn.ModuleList([torch.nn.BatchNorm1d(16), torch.nn.BatchNorm1d(16)])
        self.head = torch.nn.Linear(16, VOCABULARY)

    def forward(self, input_ids, labels):
        hidden = self.norms[0](self.embedding(input_ids).transpose(1, 2)).transpose(1, 2)
        hidden = self.norms[1](torch.relu(self.inner(hidden)).transpose(1, 2)).transpose(1, 2)
        return torch.nn.functional.cross_entropy(self.head(hidden).flatten(0, 1), labels.flatten())


def normed_tokens():
    return NormedTokens(), {"input_ids": tokens(2), "labels": tokens(2)}


def causal_model(name: str, dropout: float = 0.0):
    """transformers' class with SDPA, loss alone, in training mode."""
    torch.manual_seed(0)
    fixed = dict(attn_implementation="sdpa", use_cache=False, bos_token_id=None, eos_token_id=None)
    if name == "llama":
        return loss_alone(transformers.LlamaForCausalLM(transformers.LlamaConfig(**SETTINGS[name], **fixed))).train()
    config = transformers.GPT2Config(**SETTINGS[name], **fixed, resid_pdrop=dropout, embd_pdrop=dropout, attn_pdrop=dropout)
    return loss_alone(transformers.GPT2LMHeadModel(config)).train()


def tokens(batch: int):
    return torch.randint(VOCABULARY, (batch, SEQUENCE), generator=torch.Generator().manual_seed(0))


def good(name: str, *arguments) -> None:
    """What models/export.py writes."""
    folder = HERE / f"good-{name}"
    if exporter.main([*arguments, f"--out={folder}"]):
        raise SystemExit(1)
    strip(folder)


def dynamo(name: str, module, batch: int = 2, optimize: bool = False, inputs: dict | None = None) -> None:
    """The current exporter, with one choice of a user who does not know better."""
    inputs = inputs or {"input_ids": tokens(batch), "labels": tokens(batch)}
    symbol = torch.export.Dim("batch")
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    with quiet():
        torch.onnx.export(module.train(), tuple(inputs.values()), folder / "model.onnx", dynamo=True, optimize=optimize,
                          external_data=True, opset_version=OPSET, input_names=list(inputs), output_names=["loss"],
                          dynamic_shapes={name: {0: symbol} for name in inputs})
    strip(folder)


def torchscript(name: str, module, fold: bool) -> None:
    """The older exporter. Tracing needs `attention_mask` as an input; folding transposes weights."""
    base = type(module).__mro__[1]

    def forward(self, input_ids, attention_mask, labels):
        return base.forward(self, input_ids=input_ids, attention_mask=attention_mask, labels=labels, use_cache=False).loss
    module.__class__ = type(base.__name__, (base,), {"forward": forward})
    ids = tokens(2)
    names = ["input_ids", "attention_mask", "labels"]
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    with warnings.catch_warnings(), quiet():
        torch.onnx.export(module, (ids, torch.ones_like(ids), ids.clone()), folder / "model.onnx", dynamo=False,
                          training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=fold, opset_version=TORCHSCRIPT_OPSET,
                          input_names=names, output_names=["loss"], dynamic_axes={name: {0: "batch"} for name in names})
    strip(folder)


def strip(folder: Path) -> None:
    """Removes what no importer reads: local paths, and most of the bytes."""
    path = folder / "model.onnx"
    proto = onnx.load(path, load_external_data=False)
    for node in proto.graph.node:
        kept = [entry for entry in node.metadata_props if entry.key in KEPT_METADATA
                and (not entry.key.endswith("fx_node") or node.op_type in CALL_KEPT_ON)]
        del node.metadata_props[:]
        node.metadata_props.extend(kept)
        node.doc_string = ""
    path.write_bytes(proto.SerializeToString(deterministic=True))


if __name__ == "__main__":
    main()
