#!/usr/bin/env python3
"""Exports a PyTorch model, its loss inside, to an ONNX graph that ds-opt compiles. See README.md."""

import argparse
import json
import os
import sys
import time
from pathlib import Path

from exporting import Refusal, command
from exporting.arguments import Parser, positive
from exporting.sizes import DEFAULT_SIZES, IMAGE_MODELS, SIZES

DTYPES = ("float32", "float64", "bfloat16", "float16")
HALF = ("bfloat16", "float16")


def main(arguments=None) -> int:
    args = parse(arguments)
    try:
        export(args)
    except Refusal as refusal:
        print(f"error: {refusal}", file=sys.stderr)
        if refusal.try_line:
            print(f"try: {refusal.try_line}", file=sys.stderr)
        return 1
    return 0


def export(args) -> None:
    """Builds, exports, checks and reports; leaves no file behind when it raises Refusal."""
    if args.dtype in HALF:
        raise Refusal(f"--dtype {args.dtype}: graphs have float32 weights, since training adds to them; half weights of a saved folder are widened "
                      'without loss, and "bf16": {"enabled": true} in ds_config.json computes in bfloat16',
                      f"{command('export')} {args.source} --out {args.out}")
    # Only local files are read; and the libraries take seconds to load, which --help and usage errors should not.
    os.environ["HF_HUB_OFFLINE"] = "1"
    import transformers
    from exporting.effects import check_effects
    from exporting.gradients import check_gradients
    from exporting.graph import export_graph
    from exporting.selfcheck import check_export
    from exporting.sources import open_source
    from exporting.staging import staged
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()

    model = open_source(args)
    model.any_of = args.seq if args.any_seq else None
    if not args.skip_gradient_check:
        check_effects(model)
    with staged(args.out) as folder:
        program, proto = export_graph(model, folder)
        losses = check_export(model, program, proto, folder)
        begin = time.monotonic()
        difference = check_gradients(model, proto, folder, args.skip_gradient_check)
        seconds = time.monotonic() - begin
    report(args, model, proto, losses, difference, seconds)


def report(args, model, proto, losses, difference, seconds) -> None:
    """What was written, for people."""
    parameters = list(model.module.parameters())
    dtypes = ", ".join(sorted({str(p.dtype).removeprefix("torch.") for p in parameters}))
    print(f"{model.name}{' ' + model.size if model.size else ''}: {sum(p.numel() for p in parameters):,} parameters in "
          f"{len(parameters)} tensors, {dtypes}{'' if model.has_weights else ', without weights'}")
    shapes = ", ".join(f"{name} [batch{''.join(f', {model.symbol_of(value, d) or size}' for d, size in enumerate(value.shape) if d > 0)}]"
                       for name, value in model.inputs.items())
    if model.dropout or args.dropout:
        print("dropout: " + (", ".join(f"{key} {value:g}" for key, value in model.dropout.items()) or f"{args.dropout:g}"))
    print(f"inputs: {shapes}; nodes: {len(proto.graph.node)}; opset {proto.opset_import[0].version}")
    if losses.onnxruntime is not None:
        print(f"loss: {losses.torch:.8g} in PyTorch, {losses.onnxruntime:.8g} in ONNX Runtime, relative difference "
              f"{losses.difference:.1e}")
    if difference is not None:
        took = f" (compared in {seconds:.0f} s; --skip-gradient-check leaves it out)" if seconds > 10 else ""
        print(f"gradients: those of PyTorch, largest relative difference {difference:.1e}{took}")
    for path in sorted(args.out.glob("model.onnx*")):
        print(f"{path}: {path.stat().st_size:,} bytes")


def setting(text: str):
    """key=value; the value is JSON where it reads as such, else text."""
    key, separator, value = text.partition("=")
    if not (key and separator):
        raise argparse.ArgumentTypeError(f"'{text}' is not key=value")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def names(text: str) -> dict:
    """The columns of the data, whose values are not known."""
    return dict.fromkeys(name.strip() for name in text.split(","))


def probability(text: str) -> float:
    value = float(text)
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not in [0, 1)")
    return value


def parse(arguments) -> argparse.Namespace:
    parser = Parser(prog="export.py", description=__doc__)
    parser.add_argument("source", metavar="MODEL", help="gpt2, llama, bert, moe, vit or resnet50 with random weights; a folder of a saved one; "
                        "or my_package.my_module:build, where build() returns (module, example_inputs)")
    parser.add_argument("--size", help="; ".join(f"{name}: {', '.join(sizes)}" for name, sizes in SIZES.items())
                        + " (default small; of resnet50 50)")
    parser.add_argument("--seq", type=positive, help="tokens a sample (default 128)")
    parser.add_argument("--any-seq", action="store_true", help="leave the tokens of a sample open, at most --seq of them: the dimension seq, for "
                        "ds-opt --dim seq=64,128")
    parser.add_argument("--dtype", choices=DTYPES, help="of the weights (default float32)")
    parser.add_argument("--dropout", type=probability, metavar="P", help="residual, embedding and attention dropout (default: of a saved "
                        "model what its config.json says, else 0); P > 0 needs eager attention")
    parser.add_argument("--attention", choices=("eager", "sdpa"), help="transformers' attention (default sdpa, eager with dropout)")
    parser.add_argument("--inputs", type=names, dest="columns", metavar="NAME,NAME", help="columns of your data: each that the model's forward "
                        "takes becomes an input (input_ids,attention_mask,labels); default: those that the model needs")
    parser.add_argument("--packed", action="store_true", help="samples hold several documents (prepare_data.py text --pack): position_ids and "
                        "segment_ids are inputs, and attention stays within a document")
    parser.add_argument("--set", type=setting, action="append", default=[], metavar="KEY=VALUE", dest="settings",
                        help="a key of transformers' config (vocab_size=1000), or an argument of build(); repeatable")
    parser.add_argument("--tokens", type=setting, action="append", default=[], metavar="INPUT=same|next",
                        help="for your own module: how a stream of tokens becomes this input; repeatable")
    parser.add_argument("--lora", type=positive, metavar="RANK", help="freeze the model and train low-rank adapters only")
    parser.add_argument("--lora-targets", metavar="REGEX", help="names of the linear layers that get one (default: attention's "
                        "queries and values)")
    parser.add_argument("--seed", type=int, default=0, help="of random weights and example inputs (default 0)")
    parser.add_argument("--no-weights", action="store_true", help="names, shapes and initializer rules only")
    parser.add_argument("--skip-gradient-check", action="store_true", help="do not compare the graph's gradients with PyTorch's")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="gets model.onnx and model.onnx.data")
    parser.set_defaults(module=None)  # Python may give the module that a folder was saved of
    args = parser.parse_args(arguments)
    args.settings, args.tokens = dict(args.settings), dict(args.tokens)
    _refuse_idle_options(parser, args)
    args.size_given = args.size is not None
    args.size, args.seq = args.size or DEFAULT_SIZES.get(args.source, "small"), args.seq or 128
    args.dtype = args.dtype or "float32"
    args.dropout = 0.0 if args.dropout is None and args.source in SIZES else args.dropout
    return args


def _refuse_idle_options(parser, args) -> None:
    """No option is ignored."""
    if args.lora_targets and not args.lora:
        parser.error("--lora-targets needs --lora RANK")
    if args.source in IMAGE_MODELS and args.seq:
        parser.error(f"--seq has no meaning for {args.source}, which takes images; --set image_size=N sets theirs")
    if args.source == "resnet50" and (args.dropout is not None or args.attention):
        parser.error("--dropout and --attention have no meaning for resnet50, which has neither")
    own = ":" in args.source and not os.path.isdir(args.source)
    if args.packed and (own or args.source in IMAGE_MODELS or args.source == "bert"):
        parser.error(f"--packed has no meaning for {args.source}; it is for gpt2, llama, moe and saved ones")
    if args.any_seq and (own or args.source in IMAGE_MODELS or args.packed):
        parser.error("--any-seq is for models of tokens, whose samples may be of any length; your own modules say it by dynamic_shapes, and "
                     "packed samples are full")
    if args.columns and (args.packed or args.source == "resnet50"):
        parser.error("--inputs has no meaning for " + ("--packed, whose inputs are what packing needs" if args.packed else "resnet50, which takes images"))
    ours = args.source in SIZES
    if not ours and args.size:
        parser.error(f"--size belongs to {', '.join(SIZES)}; {args.source} has its own")
    if not ours and own:
        for option, name in {"seq": "seq", "dtype": "dtype", "dropout": "dropout", "attention": "attention", "columns": "inputs"}.items():
            if getattr(args, option) is not None:
                parser.error(f"--{name} has no meaning for {args.source}, whose module decides; pass it on with --set")
    elif args.tokens:
        parser.error("--tokens is for your own modules; the models known by name say it themselves")


if __name__ == "__main__":
    sys.exit(main())
