"""A model's name, a saved folder or a user's function -> a module and its example inputs."""

import dataclasses
import importlib
import inspect
import json
import os
import re
import sys
from pathlib import Path

import torch

from . import Refusal, command, first_line
from .adapters import with_adapters
from .initializers import build_recorded, complete_rules
from .mixture import dispatch_densely
from .packed import IGNORED, packed_inputs, within_documents
from .resnet import ResNet
from .sizes import (ATTENTION_DROPOUT_KEY, DROPOUT_KEYS, MODEL_TYPES, POSITIONS_KEY, SIZES, check_keys, fit_positions,
                    size_settings)

HALF = (torch.bfloat16, torch.float16)
EXAMPLE_BATCH = 2  # with 1 the exporter fixes the batch dimension at 1 without a word


@dataclasses.dataclass
class Model:
    """A module in training mode whose forward returns the loss alone, and what its file must say about it."""
    name: str                        # "gpt2", "llama", ... or the user's module:function
    size: str | None                 # "tiny", ...; None outside the published sizes
    module: torch.nn.Module
    inputs: dict                     # forward argument -> example tensor [batch, ...]
    tokens: dict                     # input -> "same" or "next": how a token stream becomes it
    init: dict                       # parameter -> initializer rule, see initializers.py
    has_weights: bool = True
    buffers: dict = dataclasses.field(default_factory=dict)  # real values, where the module itself is on meta
    any_of: int | None = None        # tokens of an example, where samples may have fewer
    dropout: dict = dataclasses.field(default_factory=dict)  # of transformers' configuration: what drops, and how much

    def symbol_of(self, example, dimension) -> str | None:
        """The name of an input's dimension behind the batch, where it stays open."""
        return "seq" if dimension == 1 and example.shape[1] == self.any_of else None


def open_source(args) -> Model:
    """The model that the command line asks for; raises Refusal."""
    if args.source in SIZES and not args.size_given and (Path(args.source) / "config.json").exists():
        raise Refusal(f"'{args.source}' is the name of a model with random weights, and here is a folder {args.source} with a saved one; "
                      f"write ./{args.source} for the folder, or {args.source} --size {args.size} for random weights",
                      f"{command('export')} ./{args.source} --out {args.out}")
    if args.source == "resnet50":
        return _from_resnet(args)
    if args.source in SIZES:
        return _from_config(args)
    if os.path.isdir(args.source):
        return _from_folder(args)
    if re.fullmatch(r"[\w.]+:\w+", args.source):
        return _from_function(args)
    raise Refusal(f"'{args.source}' is no model ({', '.join(SIZES)}), no folder of a saved model and no module:function")


# --- transformers' classes


def _from_config(args) -> Model:
    published = size_settings(args.source, args.size)
    model_type = MODEL_TYPES[args.source]
    if model_type in POSITIONS_KEY:
        published |= {"bos_token_id": None, "eos_token_id": None}
    config = _make_config(_config_class(model_type), published, args)
    if model_type in POSITIONS_KEY:
        fit_positions(config, args.seq, may_grow=POSITIONS_KEY[model_type] not in args.settings)
    model_class = _model_class(model_type)

    def draw():
        torch.manual_seed(args.seed)
        return model_class(config).to(_dtype(args))
    return _from_class(args, args.source, args.size, model_class, config, draw)


def _from_resnet(args) -> Model:
    settings = {**size_settings(args.source, args.size), **args.settings}

    def draw():
        torch.manual_seed(args.seed)
        return ResNet(**settings).to(_dtype(args))
    inputs = _image_inputs(args, settings.get("image_size", 224), settings.get("num_labels", 1000))
    return _assemble(args, args.source, args.size, lambda: ResNet(**settings), draw, inputs, {}, lambda module: module)


def _from_folder(args) -> Model:
    saved = _saved_settings(args.source)
    model_class = _model_class(saved["model_type"]) if saved["model_type"] in DROPOUT_KEYS else None
    if model_class is None or (saved.get("architectures") or [model_class.__name__])[0] != model_class.__name__:
        return _from_any_folder(args, saved)
    config = _make_config(_config_class(saved["model_type"]), saved, args)
    if config.model_type in POSITIONS_KEY:
        fit_positions(config, args.seq, may_grow=False)

    def load():
        module, info = model_class.from_pretrained(
            args.source, config=config, dtype=_dtype(args), local_files_only=True, output_loading_info=True)
        if info["missing_keys"]:
            missing = sorted(info["missing_keys"])
            raise Refusal(f"{args.source} has no weights for {missing[0]} and {len(missing) - 1} more; "
                          f"save the whole {model_class.__name__} with save_pretrained")
        return module
    return _from_class(args, config.model_type, None, model_class, config, _given_or(load, args, config))


def _saved_settings(folder: str) -> dict:
    """The config of a saved model, after a look that it is one we know."""
    try:
        settings = json.loads((Path(folder) / "config.json").read_text())
        model_type = settings.get("model_type")
    except (OSError, ValueError, AttributeError) as error:
        raise Refusal(f"{folder} holds no readable config.json; give a folder written by save_pretrained") from error
    if not model_type:
        raise Refusal(f"{folder}/config.json names no model_type; give a folder written by save_pretrained")
    return settings


def _from_any_folder(args, saved: dict) -> Model:
    """A saved model of any class of transformers that takes tokens or images and computes its loss from labels."""
    import transformers
    class_name = (saved.get("architectures") or [""])[0]
    model_class = getattr(transformers, class_name, None)
    if model_class is None:
        raise Refusal(f"{args.source}/config.json: transformers has no class '{class_name}' (architectures); save the model with save_pretrained")
    if args.packed:
        raise Refusal(f"--packed has no meaning for {class_name}; it is for gpt2, llama, moe and saved ones of these")
    config_class = model_class.config_class
    check_keys(config_class, args.settings)
    dropouts = dict.fromkeys(_dropout_of(config_class.from_dict(saved), all_keys=True), args.dropout) if args.dropout is not None else {}
    config = _guarded(args.source, lambda: config_class.from_dict({**saved, **dropouts, **args.settings, "use_cache": False}))
    config._attn_implementation = _attention_of(args, _dropout_of(config))
    inputs, tokens = _by_columns(args, model_class, *_inputs_of_class(args, model_class, config))

    def load():
        return model_class.from_pretrained(args.source, config=config, dtype=_dtype(args), local_files_only=True)
    return _assemble(args, config.model_type, None, lambda: model_class(config), _given_or(load, args, config), inputs, tokens,
                     lambda module: loss_alone(module, list(inputs)), config)


def _given_or(load, args, config):
    """What makes the module that Python has given: as it is, since a folder does not hold what is frozen, hooked or exchanged; else `load`."""
    def given():
        args.module.set_attn_implementation(config._attn_implementation)
        args.module.config.use_cache = False
        return args.module.to(_dtype(args))
    return load if args.module is None else given


def _attention_of(args, dropped) -> str:
    """The command line's, else eager where Python's module has it, or where something drops: the exporter writes sdpa's dropout as a no-op."""
    own = args.module is not None and args.module.config._attn_implementation == "eager"
    return args.attention or ("eager" if dropped or own else "sdpa")


_DROPOUTS = ("dropout", "pdrop", "drop_rate", "dropout_prob", "dropout_rate", "drop_path_rate", "layerdrop")


def _dropout_of(config, all_keys=False) -> dict:
    """What a configuration drops, by its keys; `all_keys`: those of 0, too."""
    return {key: value for key, value in config.to_dict().items() if key.endswith(_DROPOUTS) and isinstance(value, float) and (value or all_keys)}


def _by_columns(args, model_class, inputs: dict, tokens: dict) -> tuple:
    """(example inputs, how a token stream becomes them), of the columns that the user's data has: each that forward takes is an input, so that
    no mask is lost. Labels are one in any case, since they make the loss."""
    if args.columns is None:
        return inputs, tokens
    taken, main = list(inspect.signature(model_class.forward).parameters), model_class.main_input_name
    if main not in args.columns:
        raise Refusal(f"{args.source}: the data has {', '.join(args.columns)}, and {model_class.__name__} needs {main}")
    idle = [name for name in args.columns if name not in taken]
    if idle:
        print(f"note: {model_class.__name__} takes no {', '.join(idle)}, so the plan does not read what the data has of it", file=sys.stderr)
    chosen = {name: _example_of(args, name, value, inputs) for name, value in args.columns.items() if name in taken}
    if "labels" not in chosen:
        chosen["labels"] = inputs["labels"]
    for name in ("attention_mask", "decoder_attention_mask"):
        if name in chosen and chosen[name].shape == chosen["labels"].shape:
            # What padding computes, and so the guess of the token behind it, may rightly differ from program to program.
            seen = (chosen[name] != 0) & (chosen[name].roll(1, 1) != 0)
            chosen["labels"] = chosen["labels"].where(seen, IGNORED)
    return chosen, {name: how for name, how in tokens.items() if name in chosen}


def _example_of(args, name: str, value, inputs: dict):
    """The first samples of a column; of one that the command line names alone, what such a column holds."""
    if value is not None:
        value = torch.as_tensor(value)
        if value.dim() == 0 or len(value) == 0:
            raise Refusal(f"{args.source}: column {name} holds no samples; dimension 0 counts them")
        value = torch.cat([value] * EXAMPLE_BATCH)[:EXAMPLE_BATCH]
        return value.to(_dtype(args) if value.is_floating_point() else torch.int64)
    if name in inputs:
        return inputs[name]
    ids = inputs.get("decoder_input_ids" if name.startswith("decoder_") else "input_ids")
    if ids is not None and name.endswith("attention_mask"):
        mask = torch.ones_like(ids)
        mask[0, -(ids.shape[1] // 4 + 1):] = 0
        return mask
    if ids is not None and name == "token_type_ids":
        return (torch.arange(ids.shape[1]) > ids.shape[1] // 2).long().expand(ids.shape).clone()
    if ids is not None and name == "position_ids":
        return torch.arange(ids.shape[1]).expand(ids.shape).clone()
    raise Refusal(f"--inputs {name}: nothing tells its shape; write a module:build with example inputs")


def _inputs_of_class(args, model_class, config):
    """(example inputs, how a token stream becomes them), by what the class's forward takes."""
    generator = torch.Generator().manual_seed(args.seed)
    taken = inspect.signature(model_class.forward).parameters
    main, name = model_class.main_input_name, model_class.__name__
    if "labels" not in taken:
        raise Refusal(f"{args.source}: {name} computes no loss from labels; export a class with a head, or its logits by torch.onnx.export, "
                      "and let ds-opt attach the loss (docs/attach-loss.md)")
    classes = config.num_labels
    if main == "pixel_values" and isinstance(getattr(config, "image_size", None), int):
        images = torch.randn(EXAMPLE_BATCH, getattr(config, "num_channels", 3), config.image_size, config.image_size, generator=generator)
        return {main: images.to(_dtype(args)), "labels": torch.randint(classes, (EXAMPLE_BATCH,), generator=generator)}, {}
    if main != "input_ids":
        if args.columns and all(args.columns.get(column) is not None for column in (main, "labels")):
            return {}, {}  # Python's batch says their shapes
        raise Refusal(f"{args.source}: {name} takes {main}, whose shape its configuration does not say; give deepstatic.compile an example_batch with "
                      f"{main} and labels, or write a module:build with example inputs")
    ids = torch.randint(config.get_text_config().vocab_size, (EXAMPLE_BATCH, args.seq), generator=generator)
    if config.is_encoder_decoder:
        return {"input_ids": ids, "decoder_input_ids": ids.clone(), "labels": ids.clone()}, {}
    if name.endswith(("ForSequenceClassification", "ForImageClassification")):
        labels = torch.randint(classes, (EXAMPLE_BATCH,), generator=generator) if classes > 1 else torch.randn(EXAMPLE_BATCH, generator=generator)
        return {"input_ids": ids, "labels": labels}, {}
    if name.endswith("ForTokenClassification"):
        return {"input_ids": ids, "labels": ids % classes}, {}
    causal = name.endswith(("ForCausalLM", "LMHeadModel"))
    return {"input_ids": ids, "labels": ids.clone()}, {"input_ids": "same", "labels": "same"} if causal else {}


def _make_config(config_class, base: dict, args):
    """`base`, with the dropout and the keys of the command line, for training: without a key-value cache. A saved one drops as it was made to."""
    name = config_class.model_type
    check_keys(config_class, args.settings)
    # All at once, since transformers derives some keys from others (Llama's head_dim) while it makes the config.
    cache = {"use_cache": False} if name in POSITIONS_KEY else {}
    dropouts = dict.fromkeys(DROPOUT_KEYS[name], args.dropout) if args.dropout is not None else {}
    settings = {**base, **dropouts, **args.settings, **cache}
    config = _guarded(f"{args.source} with {args.settings}" if args.settings else args.source,
                      lambda: config_class.from_dict(settings))
    dropped = getattr(config, ATTENTION_DROPOUT_KEY[name])
    if dropped and args.attention == "sdpa":
        raise Refusal(f"--attention sdpa with attention dropout {dropped}: the exporter writes this dropout as a no-op; "
                      f"give --attention eager, or --set {ATTENTION_DROPOUT_KEY[name]}=0")
    config._attn_implementation = _attention_of(args, dropped)
    return config


def _from_class(args, name, size, model_class, config, with_weights) -> Model:
    """One of transformers' classes."""
    inputs, tokens = _by_columns(args, model_class, *((_image_inputs(args, config.image_size, config.num_labels), {}) if name == "vit"
                                                      else _language_inputs(config, args)))
    return _assemble(args, name, size, lambda: model_class(config), with_weights, inputs, tokens,
                     lambda module: loss_alone(module, list(inputs)), config)


def _assemble(args, name, size, make, with_weights, inputs, tokens, narrow, config=None) -> Model:
    """`with_weights()` makes the module with its values; rules always come from `make()`, a build without them.
    `narrow(module)` leaves the loss alone as its result; `config` is transformers'."""
    what = args.source if size is None else f"{args.source} {size}"
    empty, rules = _guarded(what, lambda: build_recorded(with_adapters(make, args), empty=True))
    no_weights = args.no_weights or _too_large(what, empty, args)
    module = empty.to(_dtype(args)) if no_weights and args.module is None else _guarded(what, with_adapters(with_weights, args))
    dispatch_densely(module)
    buffers = {name: value.clone() for name, value in module.named_buffers()}
    if no_weights:  # one device for the tracer
        module = module.to("meta")
        inputs = {name: value.to("meta") for name, value in inputs.items()}
    return Model(name, size, in_training(narrow(module)), inputs, tokens, complete_rules(module, rules), not no_weights, buffers,
                 dropout=_dropout_of(config) if config is not None else {})


def _image_inputs(args, size: int, classes: int) -> dict:
    generator = torch.Generator().manual_seed(args.seed)
    images = torch.randn(EXAMPLE_BATCH, 3, size, size, generator=generator).to(_dtype(args))
    return {"pixel_values": images, "labels": torch.randint(classes, (EXAMPLE_BATCH,), generator=generator)}


def _language_inputs(config, args):
    """(example inputs, how a token stream becomes them)"""
    generator = torch.Generator().manual_seed(args.seed)
    ids = torch.randint(config.vocab_size, (EXAMPLE_BATCH, args.seq), generator=generator)
    if args.packed:
        return packed_inputs(config, ids), {}
    if config.model_type != "bert":
        # transformers shifts the labels inside: both inputs are the same tokens
        return {"input_ids": ids, "labels": ids.clone()}, {"input_ids": "same", "labels": "same"}
    # Masked: some tokens are to be guessed, the last few of a sample are padding.
    mask = torch.ones_like(ids)
    mask[0, -(args.seq // 4 + 1):] = 0
    guessed = torch.rand(ids.shape, generator=generator) < 0.2
    guessed[:, 0] = True
    return {"input_ids": ids, "attention_mask": mask, "labels": ids.where(guessed & (mask == 1), IGNORED)}, {}


def loss_alone(module, names):
    """Narrows forward to (names) -> loss. By class, since a wrapping module would prefix every name."""
    base = type(module)

    def forward(self, *values, **named):
        named = {**dict(zip(names, values)), **named}
        if "segment_ids" in named:
            named["attention_mask"] = within_documents(named.pop("segment_ids"), self.dtype)
        return base.forward(self, **named).loss
    forward.__signature__ = inspect.Signature([inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("self", *names)])
    # transformers looks its loss function up by the class's name
    module.__class__ = type(base.__name__, (base,), {"forward": forward})
    return module


def in_training(module):
    """The module in training mode. A layer that alone is in evaluation mode stays so, as a frozen batch norm does; a part of several comes along,
    since from_pretrained leaves it so. Both are said."""
    others = [(f"{name}.{own}".lstrip("."), child) for name, part in module.named_modules() if part.training
              for own, child in part.named_children() if not child.training]
    frozen = {name: layer for name, layer in others if not any(layer.children())}
    woken = [name for name, _ in others if name not in frozen]
    module.train()
    for layer in frozen.values():
        layer.eval()
    if frozen:
        print(f"note: {_listed(frozen)} given in evaluation mode, and stays in it", file=sys.stderr)
    if woken:
        print(f"note: {_listed(woken)} given in evaluation mode, as from_pretrained leaves it, and is exported in training mode; "
              "what is to stay in evaluation mode says so in its own train()", file=sys.stderr)
    return module


def _listed(names) -> str:
    names = list(names)
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more were" if len(names) > 3 else " were" if len(names) > 1 else " was")


def _too_large(what, module, args) -> bool:
    """Whether the weights (held once, written once through the page cache) exceed half of the memory."""
    needed = sum(p.numel() for p in module.parameters()) * _dtype(args).itemsize
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if 2 * needed <= memory:
        return False
    print(f"note: {what} needs {needed / 2**30:.1f} GiB of weights, more than half of this machine's "
          f"{memory / 2**30:.1f} GiB; exporting as with --no-weights", file=sys.stderr)
    return True


def _guarded(what, build):
    """Runs `build`, whose errors come from settings that do not fit together."""
    try:
        return build()
    except Refusal:
        raise
    except Exception as error:
        raise Refusal(f"{what}: {first_line(error)}") from error


def _dtype(args) -> torch.dtype:
    return getattr(torch, args.dtype)


def _config_class(name):
    import transformers
    return {"gpt2": transformers.GPT2Config, "llama": transformers.LlamaConfig, "bert": transformers.BertConfig,
            "mixtral": transformers.MixtralConfig, "vit": transformers.ViTConfig}[name]


def _model_class(name):
    import transformers
    return {"gpt2": transformers.GPT2LMHeadModel, "llama": transformers.LlamaForCausalLM, "bert": transformers.BertForMaskedLM,
            "mixtral": transformers.MixtralForCausalLM, "vit": transformers.ViTForImageClassification}[name]


# --- a user's own module


def _from_function(args) -> Model:
    build = _import_function(args.source)
    torch.manual_seed(args.seed)
    examples = None

    def make():
        nonlocal examples
        built = build(**args.settings)
        if not (isinstance(built, tuple) and len(built) == 2 and isinstance(built[0], torch.nn.Module)):
            raise Refusal(f"{args.source} must return (module, example_inputs), not {type(built).__name__}")
        module, examples = built
        return module
    try:
        module, rules = build_recorded(with_adapters(make, args), empty=args.no_weights)
    except Refusal:
        raise
    except Exception as error:
        raise Refusal(f"{args.source} raised {type(error).__name__}: {first_line(error)}") from error
    half = [name for name, value in (*module.named_parameters(), *module.named_buffers()) if value.dtype in HALF]
    if half:
        raise Refusal(f"{args.source}: {half[0]} and {len(half) - 1} more are of 16 bits; training keeps float32 weights: return module.float(), "
                      "and compute in bfloat16 by \"bf16\": {\"enabled\": true} in ds_config.json")
    inputs = _named_inputs(args.source, module, examples)
    tokens = _checked_tokens(args.tokens, inputs)
    buffers = {name: value.clone() for name, value in module.named_buffers()}
    if args.no_weights:
        module = module.to("meta")
        inputs = {name: value.to("meta") for name, value in inputs.items()}
    return Model(args.source, None, in_training(module), inputs, tokens, complete_rules(module, rules), not args.no_weights, buffers)


def _import_function(source: str):
    name, function = source.split(":")
    sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(name)
    except Exception as error:
        raise Refusal(f"cannot import {name} from {os.getcwd()}: {first_line(error)}") from error
    if not callable(getattr(module, function, None)):
        raise Refusal(f"{name} has no function '{function}'")
    return getattr(module, function)


def _named_inputs(source, module, examples) -> dict:
    """Example tensors under forward's argument names; refuses what cannot share one symbolic batch dimension."""
    parameters = list(inspect.signature(module.forward).parameters.values())
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        raise Refusal(f"{source}: forward takes *args or **kwargs; name its arguments, they become the graph's inputs")
    if isinstance(examples, torch.Tensor):
        examples = (examples,)
    inputs = dict(examples) if isinstance(examples, dict) else dict(zip((p.name for p in parameters), examples))
    if len(inputs) < len(examples) or not set(inputs) <= {p.name for p in parameters}:
        raise Refusal(f"{source}: {len(examples)} example inputs do not match forward({', '.join(p.name for p in parameters)})")
    for name, value in inputs.items():
        if not isinstance(value, torch.Tensor) or value.dim() == 0:
            raise Refusal(f"{source}: example input '{name}' must be a tensor with the batch as dimension 0")
    sizes = {name: value.shape[0] for name, value in inputs.items()}
    if len(set(sizes.values())) != 1 or min(sizes.values()) < EXAMPLE_BATCH:
        raise Refusal(f"{source}: example inputs have batch sizes {sizes}; give one size for all, {EXAMPLE_BATCH} or more")
    return inputs


def _checked_tokens(tokens: dict, inputs: dict) -> dict:
    for name, how in tokens.items():
        if name not in inputs or how not in ("same", "next"):
            raise Refusal(f"--tokens {name}={how}: expected one of {', '.join(inputs)} = same or next")
    return tokens
