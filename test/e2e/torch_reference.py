"""What the plans are judged by: transformers' own models in PyTorch, trained on an export's own weights.

Nothing here is shared with the compiler or the runtime: schedules follow DeepSpeed's formulas, clipping and optimizers are
torch's own.
"""

import dataclasses
import math
import sys
from pathlib import Path

import numpy
import onnx
import torch
import transformers

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "models"))
from exporting.sizes import DROPOUT_KEYS, SIZES  # noqa: E402

# The models are too small for more threads to pay, and on a busy machine those wait for one another.
torch.set_num_threads(1)

CLASSES = {"gpt2": (transformers.GPT2Config, transformers.GPT2LMHeadModel),
           "llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM),
           "bert": (transformers.BertConfig, transformers.BertForMaskedLM),
           "moe": (transformers.MixtralConfig, transformers.MixtralForCausalLM)}


@dataclasses.dataclass
class Run:
    """Of a training run: per step, and the parameters and running statistics after the last one."""
    losses: list
    norms: list  # before clipping
    rates: list
    weights: dict  # name -> float64 array, tied weights under each of their names


def initializers(folder: Path) -> dict:
    """The parameters and buffers of an export, name -> tensor."""
    graph = onnx.load(folder / "model.onnx").graph
    return {tensor.name: torch.from_numpy(onnx.numpy_helper.to_array(tensor).copy()) for tensor in graph.initializer}


def load_model(name: str, folder: Path, dtype=torch.float32, **settings):
    """transformers' model of the tiny size, dropout off, with the weights that the export holds."""
    config_class, model_class = CLASSES[name]
    dropout = dict.fromkeys(DROPOUT_KEYS[config_class.model_type], 0.0)
    config = config_class(**{**SIZES[name]["tiny"], **settings}, **dropout, use_cache=False, bos_token_id=None, eos_token_id=None)
    if name == "moe":
        config._experts_implementation = "eager"  # the others have no float64
    model = model_class(config)
    return load_weights(model, folder).to(dtype).train()


# An untied BERT has it and reads the decoder's instead.
UNREAD = {"cls.predictions.bias"}


def load_weights(model, folder: Path):
    """The export's values in `model`."""
    values = initializers(folder)
    names = {parameter: set() for parameter in model.parameters()}
    for key, parameter in model.named_parameters(remove_duplicate=False):
        names[parameter].add(key)
    with torch.no_grad():
        for parameter, keys in names.items():
            found = keys & set(values)
            if not found and keys <= UNREAD:
                continue
            assert len(found) == 1, f"{sorted(keys)} stand in the export as {sorted(found)}"
            parameter.copy_(values[found.pop()])
    return model


def learning_rate(config: dict, update: int) -> float:
    """DeepSpeed's rate of update number `update`, from 0."""
    base = config["optimizer"]["params"]["lr"]
    if "scheduler" not in config:
        return base
    kind, params = config["scheduler"]["type"], config["scheduler"]["params"]
    warm = max(2, params.get("warmup_num_steps", 1000))
    i = update - 1
    log = params.get("warmup_type", "log") == "log"
    warming = i < warm
    g = 0.0 if i < 0 else (math.log(i + 1) / math.log(warm) if log else i / warm) if warming else 1.0
    if kind == "WarmupCosineLR":
        if update == 0:
            return 0.0
        low, floor = params.get("warmup_min_ratio", 0.0), params.get("cos_min_ratio", 1e-4)
        if warming:
            return base * (low + (1 - low) * g)
        progress = min(1.0, (i - warm + 1) / max(1, params["total_num_steps"] - warm))
        return base * (floor + (1 - floor) * (1 + math.cos(math.pi * progress)) / 2)
    low = params.get("warmup_min_lr", 0.0)
    high = params.get("warmup_max_lr", base if kind == "WarmupLR" else 1e-3)
    if update == 0:
        return low
    if kind == "WarmupDecayLR" and not warming:
        total = params["total_num_steps"]
        g = max(0.0, (total - i) / max(1.0, total - warm))
    return high if kind == "WarmupLR" and not warming else low + (high - low) * g


def make_optimizer(config: dict, parameters):
    kind, params = config["optimizer"]["type"], config["optimizer"]["params"]
    if kind == "Adam":  # DeepSpeed's: AdamW unless it says otherwise
        params = dict(params)
        kind = "AdamW" if params.pop("adam_w_mode", True) else kind
    return getattr(torch.optim, kind)(parameters, **params)


def train(model, samples: dict, config: dict, steps: int) -> Run:
    """Trains in place on samples, input -> [n, ...], taken in order; `config` is a ds_config.json as a dictionary."""
    micro, accumulation = config["train_micro_batch_size_per_gpu"], config["gradient_accumulation_steps"]
    optimizer = make_optimizer(config, model.parameters())
    delayed, pending = config.get("deepstatic", {}).get("delayed_update", False), None  # the rate and the gradients of the step before
    run = Run([], [], [], {})
    position = 0
    for step in range(steps):
        run.rates.append(learning_rate(config, step))
        for group in optimizer.param_groups:
            group["lr"] = run.rates[-1]
        optimizer.zero_grad()
        losses = []
        for _ in range(accumulation):
            result = model(**{name: value[position:position + micro] for name, value in samples.items()})
            loss = result if isinstance(result, torch.Tensor) else result.loss
            position += micro
            (loss / accumulation).backward()
            losses.append(loss.item())
        run.losses.append(sum(losses) / accumulation)
        clip = config.get("gradient_clipping", 1.0)
        run.norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), clip or math.inf).item())
        if delayed:
            pending = delay(optimizer, pending)
        else:
            optimizer.step()
    statistics = {name: value for name, value in model.named_buffers() if "running" in name}
    run.weights = {name: value.detach().double().numpy().copy()
                   for name, value in [*model.named_parameters(remove_duplicate=False), *statistics.items()]}
    return run


def delay(optimizer, pending):
    """The update of the step before, if there was one; returns what this one leaves for the next."""
    [group] = optimizer.param_groups
    left = group["lr"], [parameter.grad.clone() for parameter in group["params"]]
    if pending:
        group["lr"], gradients = pending
        for parameter, gradient in zip(group["params"], gradients):
            parameter.grad = gradient
        optimizer.step()
    return left


def comparable(name: str, value: numpy.ndarray) -> numpy.ndarray:
    """The part of a parameter that has a gradient at all: softmax ignores what an attention key's bias adds, so its
    true gradient is zero and Adam walks along rounding noise. GPT-2 keeps q, k and v in one bias [3 n]."""
    if name.endswith(("attention.self.key.bias", "attention.attention.key.bias", "attention.k_proj.bias", "self_attn.k_proj.bias", ".k_lin.bias")):
        return value[:0]
    if not name.endswith("attn.c_attn.bias"):
        return value
    third = len(value) // 3
    return numpy.concatenate([value[:third], value[2 * third:]])


def relative_difference(name: str, value: numpy.ndarray, expected: numpy.ndarray) -> float:
    """The largest difference as a share of the largest element."""
    expected = comparable(name, expected)
    if not expected.size:
        return 0
    return numpy.abs(comparable(name, value) - expected).max() / numpy.abs(expected).max()


def nudge(model, seed: int):
    """Moves each weight by its last bit at most, so that the next run rounds otherwise."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1 + (torch.randint(0, 3, parameter.shape, generator=generator) - 1) * torch.finfo(parameter.dtype).eps)
    return model


def own_spread(load, samples: dict, config: dict, steps: int) -> dict:
    """name -> how far PyTorch's own float32 runs are from its float64 run; load(dtype) is a fresh model. Several runs, since a
    single one may round luckily: with oneDNN's kernels, with PyTorch's own, and from weights moved by their last bit."""
    double = train(load(torch.float64), {name: value.double() if value.is_floating_point() else value for name, value in samples.items()},
                   config, steps).weights
    runs = [train(load(torch.float32), samples, config, steps)]
    torch.backends.mkldnn.enabled = False
    try:
        runs.append(train(load(torch.float32), samples, config, steps))
    finally:
        torch.backends.mkldnn.enabled = True
    runs += [train(nudge(load(torch.float32), seed), samples, config, steps) for seed in range(3)]
    return {name: max(relative_difference(name, run.weights[name], expected) for run in runs) for name, expected in double.items()}
