#!/usr/bin/env python3
"""Modules of other people's sources, trained five steps of SGD beside PyTorch: timm, vit-pytorch and x-transformers from PyPI, and repositories whose
folder is given.

    user_modules.py --packages FOLDER                       those of PyPI, which are installed there first
    user_modules.py --packages FOLDER vit-pytorch/cait      one; a name without a slash is a whole package
    user_modules.py --packages FOLDER --source nanogpt=DIR  a repository, too: nanogpt, llama2.c, nanochat, mamba-minimal, dit

Each goes through `models/export.py user_modules:build`, ds-opt and ds-run with its defaults. Printed are the parameters and the largest relative difference
of a loss to PyTorch's, or the sentence that refuses the module. Beside it stands how far PyTorch parts from itself, with its plain kernels or with weights that
are off by their last bit: batch norms of few samples make much of rounding. Exit code 1: a loss is off by more than 2e-5 and ten times that, or something ended
without a sentence.
"""

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import rounds

BIN = Path(os.environ.get("DS_BINARIES", rounds.BIN))
PACKAGES = {"timm": ["timm==1.0.31", "torchvision==0.28.0", "pillow"], "vit-pytorch": ["vit-pytorch==1.26.14", "einops==0.8.2"],
            "x-transformers": ["x-transformers==2.31.10", "einops==0.8.2", "einx==0.4.3", "loguru==0.7.3", "frozendict", "torch-einops-utils"]}
STEPS, MICRO, RATE, CLOSE, VOCABULARY, TOKENS, CLASSES = 5, 4, 0.01, 2e-5, 64, 16, 10

TIMM = ["resnet18", "seresnext26d_32x4d", "mobilenetv3_small_050", "efficientnet_b0", "regnety_002", "densenet121", "vgg11_bn", "convnext_atto", "convnextv2_atto",
        "vit_tiny_patch16_224", "deit_tiny_patch16_224", "swin_tiny_patch4_window7_224", "mixer_s32_224", "resmlp_12_224", "gmlp_ti16_224", "poolformer_s12",
        "xcit_nano_12_p16_224", "cait_xxs24_224", "levit_128s", "mobilevit_xxs", "edgenext_xx_small", "ghostnet_050", "lcnet_035", "pvt_v2_b0", "repvgg_a0", "mambaout_femto",
        "hrnet_w18_small"]
IMAGE = dict(image_size=32, num_classes=CLASSES)
VIT = dict(**IMAGE, patch_size=8, dim=32, depth=2, heads=2, mlp_dim=64)
VIT_PYTORCH = {  # name: (module, class, arguments)
    "vit": ("vit", "ViT", VIT), "simple-vit": ("simple_vit", "SimpleViT", VIT), "deepvit": ("deepvit", "DeepViT", VIT),
    "cait": ("cait", "CaiT", {**VIT, "cls_depth": 1}), "parallel-vit": ("parallel_vit", "ViT", VIT), "small-dataset": ("vit_for_small_dataset", "ViT", VIT),
    "qk-norm": ("simple_vit_with_qk_norm", "SimpleViT", VIT), "registers": ("simple_vit_with_register_tokens", "SimpleViT", {**VIT, "num_register_tokens": 2}),
    "fft": ("simple_vit_with_fft", "SimpleViT", {**VIT, "freq_patch_size": 8}), "normalized": ("normalized_vit", "nViT", VIT),
    "value-residual": ("simple_vit_with_value_residual", "SimpleViT", VIT), "hyper-connections": ("simple_vit_with_hyper_connections", "SimpleViT", {**VIT, "num_residual_streams": 2}),
    "patch-merger": ("vit_with_patch_merger", "ViT", VIT), "rvt": ("rvt", "RvT", VIT),
    "cct": ("cct", "CCT", dict(img_size=32, embedding_dim=32, n_conv_layers=1, num_layers=2, num_heads=2, mlp_ratio=2.0, num_classes=CLASSES, attention_dropout=0.0,
                              stochastic_depth_rate=0.0)),
    "t2t": ("t2t", "T2TViT", dict(image_size=32, num_classes=CLASSES, dim=32, depth=2, heads=2, mlp_dim=64, t2t_layers=((3, 2), (3, 2)))),
    "cross-vit": ("cross_vit", "CrossViT", dict(**IMAGE, sm_dim=32, lg_dim=48, depth=1, sm_patch_size=8, lg_patch_size=16)),
    "pit": ("pit", "PiT", dict(**IMAGE, patch_size=8, dim=32, depth=(1, 1), heads=2, mlp_dim=64)),
    "cvt": ("cvt", "CvT", dict(num_classes=CLASSES)),
    "mobile-vit": ("mobile_vit", "MobileViT", dict(image_size=(64, 64), dims=[24, 32, 40], channels=[8, 8, 12, 12, 16, 16, 20, 20, 24, 24, 32], num_classes=CLASSES)),
    "xcit": ("xcit", "XCiT", {**VIT, "cls_depth": 1}), "max-vit": ("max_vit", "MaxViT", dict(num_classes=CLASSES, dim_conv_stem=16, dim=16, dim_head=8, depth=(1, 1), window_size=4)),
    "scalable-vit": ("scalable_vit", "ScalableViT", dict(num_classes=CLASSES, dim=16, heads=(2, 2), depth=(1, 1), ssa_dim_key=(8, 8), reduction_factor=(2, 1), window_size=(4, None))),
}
LAYERS = dict(dim=32, depth=2, heads=2, attn_dim_head=16)
X_TRANSFORMERS = {"plain": {}, "rotary": dict(rotary_pos_emb=True), "alibi": dict(alibi_pos_bias=True), "t5-bias": dict(rel_pos_bias=True), "dynamic-bias": dict(dynamic_pos_bias=True),
                  "rmsnorm": dict(use_rmsnorm=True), "scalenorm": dict(use_scalenorm=True), "glu": dict(ff_glu=True, ff_swish=True), "relu-squared": dict(ff_relu_squared=True),
                  "qk-norm": dict(attn_qk_norm=True), "talking-heads": dict(attn_pre_talking_heads=True, attn_post_talking_heads=True), "one-kv-head": dict(attn_one_kv_head=True),
                  "residual-attention": dict(residual_attn=True), "gated": dict(gate_residual=True), "macaron": dict(macaron=True), "shifted": dict(shift_tokens=1),
                  "sandwich": dict(sandwich_coef=1), "memory-kv": dict(attn_num_mem_kv=2), "gated-values": dict(attn_gate_values=True), "on-attention": dict(attn_on_attn=True),
                  "sparse-topk": dict(attn_sparse_topk=4), "no-bias": dict(ff_no_bias=True), "flash": dict(attn_flash=True), "hyper": dict(num_residual_streams=2),
                  "value-residual": dict(add_value_residual=True)}
SOURCES = ("nanogpt", "llama2.c", "nanochat", "mamba-minimal", "dit")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="of the table, or of packages; none: all")
    parser.add_argument("--packages", type=Path, help="a folder for the packages of PyPI, for all time; none: no packages")
    parser.add_argument("--source", action="append", default=[], metavar="NAME=FOLDER", help=f"a repository: {', '.join(SOURCES)}; repeatable")
    rounds.add_timeout(parser)
    args = parser.parse_args()
    rounds.require_modules("numpy", "onnx", "safetensors", "torch")
    packages, modules = [], {}  # of each module, the folders that Python is to look in
    if args.packages:
        packages = [install(args.packages.resolve())]
        modules = dict.fromkeys([f"timm/{each}" for each in TIMM] + [f"vit-pytorch/{each}" for each in VIT_PYTORCH] + [f"x-transformers/{each}" for each in X_TRANSFORMERS], packages)
    for source in args.source:
        name, _, folder = source.partition("=")
        if name not in SOURCES or not Path(folder).is_dir():
            parser.error(f"--source {source} is no NAME=FOLDER with one of {', '.join(SOURCES)}")
        modules[name] = [Path(folder).resolve(), *packages]
    print(f"{'module':36} {'parameters':>11}  largest relative difference of a loss (PyTorch's own), or the refusal")
    off = 0
    for name, folders in modules.items():
        if not args.names or name in args.names or name.partition("/")[0] in args.names:
            os.environ["PYTHONPATH"] = os.pathsep.join(map(str, [Path(__file__).resolve().parent, *folders]))
            with tempfile.TemporaryDirectory() as work:
                line, is_right = try_module(name, args.timeout, Path(work))
            off += not is_right
            print(f"{name:36} {line}", flush=True)
    return 1 if off else 0


def install(folder: Path) -> Path:
    wanted = sorted({package for packages in PACKAGES.values() for package in packages})
    if not (folder / "timm").exists():
        subprocess.run([sys.executable, "-m", "pip", "install", "-qq", "--no-deps", "--target", folder, *wanted], check=True)
    return folder


def try_module(name, timeout, work):
    """(a line of the table, whether the losses are PyTorch's or the module is refused in a sentence)."""
    model, config, plan, metrics, data = (work / part for part in ("model", "c.json", "m.dsplan", "m.jsonl", "data.safetensors"))
    config.write_text(json.dumps({"train_micro_batch_size_per_gpu": MICRO, "optimizer": {"type": "SGD", "params": {"lr": RATE}}, "gradient_clipping": 0}))
    commands = [[sys.executable, __file__, "--worker", name, data],
                [sys.executable, rounds.ROOT / "models" / "export.py", "user_modules:build", "--set", f'name={json.dumps(name)}', "--out", model],
                [BIN / "ds-opt", "compile", model, "--config", config, "-o", plan],
                [BIN / "ds-run", plan, "--data", data, "--steps", STEPS, "--metrics", metrics, "--quiet"]]
    for at, command in enumerate(commands):
        try:
            done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            return f"{'':>11}  took over {timeout:.0f} s", False
        if done.returncode:
            said = next((line for line in done.stderr.splitlines() if line.startswith("error: ")), "")
            last = (done.stderr.strip().splitlines() or [""])[-1]
            return f"{'':>11}  {said or f'{Path(command[0]).name} ended with {done.returncode}: {last}'}", bool(said) and at > 0
        if at == 0:
            count, expected, others = json.loads(done.stdout.splitlines()[-1])
    losses = [line["loss"] for line in map(json.loads, metrics.read_text().splitlines()) if "step" in line]
    worst, *own = (max(abs(a / b - 1) for a, b in zip(each, expected, strict=True)) for each in (losses, *others))
    own = max(own)
    return f"{count:11,}  {worst:.1e} ({own:.1e})", worst < max(CLOSE, 10 * own)


def worker(name, path):
    """Writes data and prints PyTorch's losses."""
    import torch
    from safetensors.torch import save_file

    torch.set_num_threads(2)
    module, example = build(name)
    torch.manual_seed(1)
    samples, data = STEPS * MICRO, {}
    for key, value in example.items():
        shape = (samples, *value.shape[1:])
        data[key] = torch.randn(shape) if value.is_floating_point() else torch.randint(CLASSES if value.dim() == 1 else VOCABULARY, shape)
    save_file(data, path)

    def losses_of(module):
        optimizer, losses = torch.optim.SGD([p for p in module.parameters() if p.requires_grad], lr=RATE), []
        for step in range(STEPS):
            loss = module(**{key: value[MICRO * step:MICRO * (step + 1)] for key, value in data.items()})
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    count, expected = sum(p.numel() for p in module.parameters()), losses_of(module)
    with torch.backends.mkldnn.flags(enabled=False):
        others = [losses_of(build(name)[0])]
    for seed in range(3):
        module = build(name)[0]
        torch.manual_seed(seed)
        for p in module.parameters():
            p.data *= 1 + (torch.randint(0, 3, p.shape) - 1) * 2**-23
        others.append(losses_of(module))
    print(json.dumps([count, expected, others]))


def build(name):
    """(a module in training mode that returns its loss, an example batch): always the same weights."""
    import torch

    for op in ("nms", "qnms"):  # the operators of torchvision's wheel are for another build of torch, and only its Python is needed
        if not hasattr(torch.ops.torchvision, op):
            torch.library.define(f"torchvision::{op}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    torch.manual_seed(0)
    group, _, kind = name.partition("/")
    if group == "timm":
        return classifier(*of_timm(kind))
    if group == "vit-pytorch":
        file, kind, arguments = VIT_PYTORCH[kind]
        size = arguments.get("image_size", arguments.get("img_size", 64))
        return classifier(getattr(importlib.import_module(f"vit_pytorch.{file}"), kind)(**arguments), size[0] if isinstance(size, tuple) else size)
    if group == "x-transformers":
        from x_transformers import Decoder, TransformerWrapper
        return language_model(TransformerWrapper(num_tokens=VOCABULARY, max_seq_len=TOKENS, attn_layers=Decoder(**LAYERS, **X_TRANSFORMERS[kind])))
    return of_source(group)


def of_timm(kind):
    """A model, and the size of its images: 64 where it takes them."""
    import timm
    import torch

    for arguments in ({"img_size": 64}, {}):
        try:
            module = timm.create_model(kind, num_classes=CLASSES, **arguments)
            module(torch.randn(2, 3, 64, 64))
            return timm.create_model(kind, num_classes=CLASSES, **arguments), 64
        except (TypeError, AssertionError, RuntimeError):
            pass
    return timm.create_model(kind, num_classes=CLASSES), 224


def classifier(net, size):
    """Of a module that gives logits of classes, which drops nothing: its random numbers would be others."""
    import torch

    for part in net.modules():
        for name in ("p", "drop_prob"):
            if isinstance(vars(part).get(name), float):
                setattr(part, name, 0.0)

    class Classifier(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net

        def forward(self, images, labels):
            return torch.nn.functional.cross_entropy(self.net(images), labels)
    return Classifier(), {"images": torch.randn(2, 3, size, size), "labels": torch.randint(CLASSES, (2,))}


def language_model(net):
    """Of a module that gives logits of tokens."""
    import torch

    class LanguageModel(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net

        def forward(self, tokens, targets):
            return torch.nn.functional.cross_entropy(self.net(tokens).flatten(0, 1), targets.flatten())
    return LanguageModel(), {key: torch.randint(VOCABULARY, (2, TOKENS)) for key in ("tokens", "targets")}


def of_source(name):
    """Of a repository, whose folder is in Python's path."""
    import torch

    class WithLoss(torch.nn.Module):
        """Of a module that gives (logits, loss), or keeps the loss as last_loss."""

        def __init__(self, net):
            super().__init__()
            self.net = net

        def forward(self, tokens, targets):
            result = self.net(tokens, targets)
            return result[1] if isinstance(result, tuple) else self.net.last_loss if hasattr(self.net, "last_loss") else result

    class Denoiser(torch.nn.Module):
        def __init__(self, net):
            super().__init__()
            self.net = net

        def forward(self, images, times, labels, noise):
            return (self.net(images, times, labels) - noise).square().mean()

    if name == "nanogpt":
        from model import GPT, GPTConfig
        net = GPT(GPTConfig(block_size=TOKENS, vocab_size=VOCABULARY, n_layer=2, n_head=2, n_embd=32, dropout=0.0, bias=True))
    elif name == "llama2.c":
        from model import ModelArgs, Transformer
        net = Transformer(ModelArgs(dim=32, n_layers=2, n_heads=4, n_kv_heads=2, vocab_size=VOCABULARY, multiple_of=16, max_seq_len=TOKENS))
    elif name == "nanochat":
        from nanochat.gpt import GPT, GPTConfig
        net = GPT(GPTConfig(sequence_len=TOKENS, vocab_size=VOCABULARY, n_layer=4, n_head=2, n_kv_head=1, n_embd=32))
        net.init_weights()
    elif name == "mamba-minimal":
        from model import Mamba, ModelArgs
        return language_model(Mamba(ModelArgs(d_model=32, n_layer=2, vocab_size=VOCABULARY)))
    else:
        from models import DiT
        net = DiT(input_size=8, patch_size=2, hidden_size=32, depth=2, num_heads=2, class_dropout_prob=0.0, num_classes=CLASSES, learn_sigma=False)
        for parameter in net.parameters():  # it begins with zeros, by which nothing is learned at first
            parameter.data += 0.02 * torch.randn_like(parameter)
        return Denoiser(net), {"images": torch.randn(2, 4, 8, 8), "times": torch.randint(CLASSES, (2,)), "labels": torch.randint(CLASSES, (2,)), "noise": torch.randn(2, 4, 8, 8)}
    return WithLoss(net), {key: torch.randint(VOCABULARY, (2, TOKENS)) for key in ("tokens", "targets")}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        worker(*sys.argv[2:])
    else:
        sys.exit(main())
