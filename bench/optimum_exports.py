#!/usr/bin/env python3
"""Files of Hugging Face's exporter tool (optimum-onnx 0.1, transformers 4.57) beside PyTorch: twelve classes with fresh weights.

    optimum_exports.py            all twelve
    optimum_exports.py gpt2 t5    these

Each is exported as the tool does by default, compiled with and without `--weights FOLDER`, and trained five steps of SGD. Printed are the parameters
that train, the largest difference of a loss to PyTorch's, and after `ds-run export --onnx` ONNX Runtime's loss of the trained file beside ours.
The exporter folds batch norms into convolutions; PyTorch trains the same folded module beside it, and what the class had is said.
The tool needs versions of its own: a first call makes an environment in build/optimum, from PyPI. Exit code 1: one is neither right nor refused.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import rounds

BIN = Path(os.environ.get("DS_BINARIES", rounds.BIN))
WORK = Path(__file__).resolve().parents[1] / "build" / "optimum"
PACKAGES = ["transformers==4.57.3", "optimum==2.0.0", "optimum-onnx==0.1.0", "huggingface-hub==0.36.0", "tokenizers==0.22.1", "requests", "urllib3", "certifi",
            "idna", "charset-normalizer"]
STEPS, MICRO, TOKENS, CLASSES, RATE, CLOSE = 5, 4, 12, 3, 0.05, 1e-5
TEXT = dict(vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, max_position_embeddings=64, num_labels=CLASSES)
# name: (class, its configuration, the tool's task, the kind of loss)
MODELS = {
    "bert": ("BertForSequenceClassification", TEXT, "text-classification", "classification"),
    "distilbert": ("DistilBertForSequenceClassification", dict(vocab_size=64, dim=32, n_layers=2, n_heads=4, hidden_dim=64, max_position_embeddings=64, num_labels=CLASSES),
                   "text-classification", "classification"),
    "roberta": ("RobertaForTokenClassification", TEXT, "token-classification", "token-classification"),
    "gpt2": ("GPT2LMHeadModel", dict(vocab_size=64, n_embd=32, n_layer=2, n_head=4, n_positions=64, bos_token_id=1, eos_token_id=2), "text-generation", "causal-lm"),
    "opt": ("OPTForCausalLM", dict(vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=64, max_position_embeddings=64, word_embed_proj_dim=32),
            "text-generation", "causal-lm"),
    "bloom": ("BloomForCausalLM", dict(vocab_size=64, hidden_size=32, n_layer=2, n_head=4), "text-generation", "causal-lm"),
    "llama": ("LlamaForCausalLM", {**TEXT, "num_key_value_heads": 2}, "text-generation", "causal-lm"),
    "vit": ("ViTForImageClassification", {**TEXT, "image_size": 16, "patch_size": 4}, "image-classification", "classification"),
    "resnet": ("ResNetForImageClassification", dict(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic", num_labels=CLASSES), "image-classification",
               "classification"),
    "mobilenet": ("MobileNetV2ForImageClassification", dict(image_size=32, depth_multiplier=0.35, num_labels=CLASSES), "image-classification", "classification"),
    "t5": ("T5ForConditionalGeneration", dict(vocab_size=64, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0), "text2text-generation",
           "token-classification"),
    "whisper": ("WhisperForAudioClassification", dict(vocab_size=64, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
                                                      encoder_ffn_dim=64, decoder_ffn_dim=64, num_labels=CLASSES, classifier_proj_size=16), "audio-classification",
                "classification"),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="of the models; none: all")
    rounds.add_timeout(parser)
    args = parser.parse_args()
    rounds.require_modules("torch", "onnx", "onnxruntime", "safetensors")
    if Path(sys.prefix) != WORK / "venv":
        os.execv(environment(), [str(environment()), *sys.argv])
    print(f"{'file':22} {'parameters':14} {'losses':10} ONNX Runtime's loss of the trained file, and ours")
    wrong = 0
    for name in args.names or MODELS:
        export(name)
        for given in ([], ["--weights", WORK / name / "folder"]):
            line, right = compare(name, given, args.timeout)
            wrong += not right
            print(f"{name + (' and its folder' if given else ''):22} {line}", flush=True)
    return 1 if wrong else 0


def environment() -> Path:
    """The Python that has the tool; it sees this one's packages behind its own."""
    python = WORK / "venv" / "bin" / "python"
    if not python.exists():
        venv.create(WORK / "venv.part", with_pip=True)
        here = next(path for path in sys.path if path.endswith("site-packages"))
        next((WORK / "venv.part" / "lib").glob("python*/site-packages")).joinpath("behind.pth").write_text(here + "\n")
        subprocess.run([WORK / "venv.part" / "bin" / "python", "-m", "pip", "install", "-qq", "--no-deps", *PACKAGES], check=True)
        (WORK / "venv.part").rename(WORK / "venv")
    return python


def export(name):
    import logging
    import warnings

    import torch
    import transformers
    from optimum.exporters.onnx import onnx_export_from_model

    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    if (WORK / name / "model.onnx").exists():
        return
    shutil.rmtree(WORK / name, ignore_errors=True)
    kind = getattr(transformers, MODELS[name][0])
    torch.manual_seed(0)
    module = kind(kind.config_class(**MODELS[name][1])).eval()
    module.save_pretrained(WORK / name / "folder")
    onnx_export_from_model(module, WORK / name, task=MODELS[name][2], do_validation=False, monolith=True)


def data_of(inputs, name):
    """Samples for all steps, of every input and of labels; and flags for the sizes of symbolic dimensions."""
    import torch

    samples, data, sizes = STEPS * MICRO, {}, {}
    side = MODELS[name][1].get("image_size", 32)
    for key, dims in inputs.items():
        for place, dim in enumerate(dims[1:], 1):
            if isinstance(dim, str) and re.fullmatch(r"\w+", dim):
                sizes[dim] = {"pixel_values": [0, 3, side, side], "input_features": [0, 80, 3000]}.get(key, [0, TOKENS, TOKENS])[place]
        if key in ("pixel_values", "input_features"):
            data[key] = torch.randn(samples, *([3, side, side] if key == "pixel_values" else [80, 3000]))
        elif key == "position_ids":
            data[key] = torch.arange(TOKENS).repeat(samples, 1)
        elif key in ("attention_mask", "token_type_ids"):
            data[key] = torch.full((samples, TOKENS), int(key == "attention_mask"))
        else:
            data[key] = torch.randint(3, 64, (samples, TOKENS))
    kind = MODELS[name][3]
    data["labels"] = (data["input_ids"].clone() if kind == "causal-lm" else
                      torch.randint(0, CLASSES, (samples, TOKENS) if kind == "token-classification" else (samples,)))
    return data, [word for dim, size in sorted(sizes.items()) for word in ("--dim", f"{dim}={size}")]


def loss_of(logits, labels, kind):
    import torch

    if kind == "causal-lm":
        logits, labels = logits[:, :-1], labels[:, 1:]
    return torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))


def fold_norms(module):
    """The module as torch's exporter writes it: each batch norm is folded into the convolution before it, and what is left trains."""
    import torch

    for parent in list(module.modules()):
        children = list(parent.named_children())
        for (name, conv), (other, norm) in zip(children, children[1:]):
            if isinstance(conv, torch.nn.Conv2d) and isinstance(norm, torch.nn.BatchNorm2d):
                setattr(parent, name, torch.nn.utils.fuse_conv_bn_eval(conv, norm).requires_grad_())
                setattr(parent, other, torch.nn.Identity())
    return module


def losses_of_pytorch(name, data):
    import torch

    import transformers

    module = fold_norms(getattr(transformers, MODELS[name][0]).from_pretrained(WORK / name / "folder").eval())
    optimizer, losses = torch.optim.SGD(module.parameters(), lr=RATE), []
    for step in range(STEPS):
        batch = {key: value[MICRO * step:MICRO * (step + 1)] for key, value in data.items()}
        labels = batch.pop("labels")
        loss = loss_of(module(**batch).logits, labels, MODELS[name][3])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, sum(p.requires_grad for p in module.parameters())


def run(timeout, *arguments):
    """(what it printed, "" or its error)."""
    path = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    try:
        done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, env=path, timeout=timeout)
    except subprocess.TimeoutExpired:
        return "", f"took over {timeout:.0f} s"
    error = next((line for line in done.stderr.splitlines() if line.startswith("error: ")), f"exit code {done.returncode}")
    return done.stdout, error if done.returncode else ""


def compare(name, given, timeout):
    """(a line of the table, whether it is right or refused)."""
    import onnx
    import onnxruntime
    import torch
    from safetensors.torch import save_file

    folder, kind = WORK / name, MODELS[name][3]
    model = folder / "model.onnx"
    torch.manual_seed(1)
    graph = onnx.load(model, load_external_data=False).graph
    data, flags = data_of({value.name: [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim] for value in graph.input}, name)
    save_file(data, folder / "data.safetensors")
    (folder / "c.json").write_text(json.dumps({"train_micro_batch_size_per_gpu": MICRO, "gradient_clipping": 0,
                                                 "optimizer": {"type": "SGD", "params": {"lr": RATE}}}))
    said, error = run(timeout, BIN / "ds-opt", "compile", model, "--attach-loss", kind, "--config", folder / "c.json", "-o", folder / "m.dsplan", *flags, *given)
    if error:
        return f"refused: {error.removeprefix('error: ')[:300]}", True
    for steps, more in ((STEPS, ["--export", folder / "w.safetensors"]), (STEPS + 1, [])):
        (folder / "m.jsonl").unlink(missing_ok=True)
        _, error = run(timeout, BIN / "ds-run", folder / "m.dsplan", "--data", folder / "data.safetensors", "--steps", steps, "--metrics", folder / "m.jsonl", "--quiet", *more)
        if error:
            return error, False
    ours = [line["loss"] for line in map(json.loads, (folder / "m.jsonl").read_text().splitlines()) if "step" in line]
    theirs, count = losses_of_pytorch(name, data)
    difference = max(abs(a - b) for a, b in zip(ours, theirs))
    _, error = run(timeout, BIN / "ds-run", "export", folder / "w.safetensors", "--onnx", folder / "trained.onnx", "--like", model, *given)
    back = error[:200]
    if not error:
        first = {key: value[:MICRO].numpy() for key, value in data.items() if key != "labels"}
        session = onnxruntime.InferenceSession(str(folder / "trained.onnx"), providers=["CPUExecutionProvider"])
        loss = loss_of(torch.tensor(session.run(["logits"], first)[0]), data["labels"][:MICRO], kind).item()
        back = f"{loss:.6f} {ours[STEPS]:.6f}"
        error = "" if abs(loss - ours[STEPS]) < CLOSE else "another loss"
    trained = re.search(r"(\d+) parameters", said)[1]
    return f"{trained + ' of ' + str(count):14} {difference:<10.1e} {back}", difference < CLOSE and not error


if __name__ == "__main__":
    sys.exit(main())
