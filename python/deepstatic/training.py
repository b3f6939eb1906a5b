"""`transformers.Trainer`'s arguments, for a static plan: each is honoured, changes nothing here, or is refused by its name."""

import dataclasses
import math
import re
import shutil
import sys
import tempfile
from pathlib import Path

from . import programs
from .data import columns_of, write
from .errors import DeepStaticError, need
from .plan import compile
from .running import Run

HONOURED = {
    "output_dir", "per_device_train_batch_size", "num_train_epochs", "max_steps", "learning_rate", "lr_scheduler_type", "warmup_steps", "optim",
    "weight_decay", "adam_beta1", "adam_beta2", "adam_epsilon", "gradient_accumulation_steps", "max_grad_norm", "bf16", "fp16", "eval_strategy",
    "eval_steps", "save_strategy", "save_steps", "save_total_limit", "seed", "train_sampling_strategy", "resume_from_checkpoint", "disable_tqdm"}
# They change how PyTorch computes, loads or prints, and no number that a run has.
WITHOUT_EFFECT = {
    "logging_strategy", "logging_steps", "logging_first_step",  # every step is in the metrics
    "average_tokens_across_devices",  # always so here
    "bf16_full_eval", "fp16_full_eval", "torch_compile", "torch_compile_backend", "torch_compile_mode", "use_cache", "torch_empty_cache_steps",
    "gradient_checkpointing", "gradient_checkpointing_kwargs", "activation_checkpointing", "activation_checkpointing_kwargs", "use_liger_kernel",
    "log_on_each_node", "log_level", "log_level_replica", "save_on_each_node", "use_cpu", "full_determinism", "dataloader_num_workers",
    "dataloader_pin_memory", "dataloader_persistent_workers", "dataloader_prefetch_factor", "dataloader_multiprocessing_context",
    "dataloader_in_order", "remove_unused_columns", "ddp_find_unused_parameters", "ddp_bucket_cap_mb", "ddp_broadcast_buffers",
    "ddp_static_graph", "ddp_backend", "ddp_timeout", "skip_memory_metrics", "do_train", "do_eval", "do_predict", "local_rank",
    "per_device_eval_batch_size", "prediction_loss_only", "eval_do_concat_batches", "eval_use_gather_object", "run_name", "project",
    "restore_callback_states_from_checkpoint"}
OPTIMIZERS = {"adamw_torch": "AdamW", "adamw_torch_fused": "AdamW", "adamw_hf": "AdamW", "sgd": "SGD", "adagrad": "Adagrad", "lion_32bit": "Lion"}


def train(model, *, dataset, args, eval_dataset=None, ranks=1, machine=None, config=None) -> Run:
    """Trains as `transformers.Trainer(model=, args=, train_dataset=, eval_dataset=).train()` would, on `ranks` ranks.

    model    a folder that `save_pretrained` wrote, or such a model
    dataset  as data of Plan.run; labels of a causal model may be left out, and are then the input_ids, but for padding
    args     TrainingArguments; one that is set and cannot be honoured is refused by name
    config   more of ds_config.json, as a dict: {"zero_optimization": {"stage": 3}}

    Metrics, checkpoints and the trained model in `output_dir/model` are in args.output_dir.
    """
    _refuse_others(args)
    work = tempfile.TemporaryDirectory(prefix="deepstatic-train-")
    columns = _with_labels(columns_of(dataset))
    if not columns:
        raise DeepStaticError("the dataset has no column of numbers; text is to be turned into input_ids by the model's tokenizer first")
    samples = len(next(iter(columns.values())))
    steps = _steps(args, samples, ranks)
    plan = compile(model, {**ds_config(args, steps, model), **(config or {})}, ranks=ranks, machine=machine,
                   example_batch={name: values[:2] for name, values in columns.items()})
    out = Path(args.output_dir)
    out.mkdir(parents=True, exist_ok=True)
    run = plan.run(columns, steps, metrics=out / "metrics.jsonl", **_run_flags(args, out, steps, eval_dataset, Path(work.name)))
    if run.stopped:  # ds-run exports after the last step alone
        programs.run("ds-run", "export", out, "-o", out / "model.safetensors")
    if plan.saved is not None:
        _replace(out / "model", run)
    return run


def _replace(folder: Path, run: Run) -> None:
    """The trained model; one that is there is of an earlier run."""
    new = folder.with_name("model.new")
    shutil.rmtree(new, ignore_errors=True)
    run.save_pretrained(new)
    if folder.exists():
        shutil.rmtree(folder)
    new.rename(folder)


def ds_config(args, steps: int, model) -> dict:
    """The ds_config.json that says what TrainingArguments say."""
    config = {
        "train_micro_batch_size_per_gpu": args.per_device_train_batch_size,
        "gradient_accumulation_steps": args.gradient_accumulation_steps,
        "gradient_clipping": args.max_grad_norm or 0,
        "optimizer": _optimizer(args),
        "deepstatic": {"loss_normalization": "tokens"}}  # num_items_in_batch of Trainer
    scheduler = _scheduler(args, steps)
    if scheduler:
        config["scheduler"] = scheduler
    for name in ("bf16", "fp16"):
        if getattr(args, name):
            config[name] = {"enabled": True}
    undecayed = _undecayed(model) if args.weight_decay else []
    if undecayed:
        config["deepstatic"]["parameter_groups"] = [{"match": _exactly(undecayed), "weight_decay": 0}]
    return config


def _refuse_others(args) -> None:
    usual = {field.name: getattr(type(args)(output_dir=args.output_dir), field.name) for field in dataclasses.fields(args)}
    for name, value in usual.items():
        if name not in HONOURED | WITHOUT_EFFECT and getattr(args, name) != value:
            raise DeepStaticError(f"TrainingArguments.{name} is {getattr(args, name)!r}, which deepstatic.train cannot honour; leave it at {value!r}")
    if getattr(args, "gradient_checkpointing", False):
        print("note: gradient_checkpointing has no effect: deepstatic.recompute in config= says what is computed again", file=sys.stderr)
    choices = {"eval_strategy": ("no", "steps"), "save_strategy": ("no", "steps"), "train_sampling_strategy": ("random", "sequential"),
               "lr_scheduler_type": ("linear", "constant", "constant_with_warmup", "cosine"), "optim": tuple(OPTIMIZERS)}
    for name, known in choices.items():
        if _text(getattr(args, name)) not in known:
            raise DeepStaticError(f"TrainingArguments.{name} is {_text(getattr(args, name))!r}, which deepstatic.train cannot honour; there are {', '.join(known)}")


def _text(value) -> str:
    """Of one of transformers' enumerations, or what users write for it."""
    return str(getattr(value, "value", value))


def _steps(args, samples: int, ranks: int) -> int:
    if args.max_steps > 0:
        return args.max_steps
    batch = args.per_device_train_batch_size * args.gradient_accumulation_steps * ranks
    return math.ceil(args.num_train_epochs * math.ceil(samples / batch))


def _optimizer(args) -> dict:
    name = _text(args.optim)
    params = {"lr": args.learning_rate, "weight_decay": args.weight_decay}
    if OPTIMIZERS[name] == "AdamW":
        params |= {"betas": [args.adam_beta1, args.adam_beta2], "eps": args.adam_epsilon}
    return {"type": OPTIMIZERS[name], "params": params}


def _scheduler(args, steps: int):
    """transformers' rates at update j of T, with w to warm up. Linear, min(j/w, (T-j)/(T-w)), is the two lines of a OneCycle. constant_with_warmup,
    min(j/w, 1), is a WarmupCosineLR whose cosine falls to 1; its own warm-up goes from 1/w at update 1 to 1 in w - 1 more. Cosine is as near as
    DeepSpeed's comes: its warm-up is one update later."""
    rate, warm = args.learning_rate, args.get_warmup_steps(steps)
    kind = _text(args.lr_scheduler_type)

    def cycle(low, high, first, second):
        return {"type": "OneCycle", "params": {"cycle_min_lr": low, "cycle_max_lr": high, "cycle_first_step_size": first,
                                               "cycle_second_step_size": second, "cycle_momentum": False}}

    def cosine(warm_up, first, last):
        return {"type": "WarmupCosineLR", "params": {"total_num_steps": steps, "warmup_num_steps": warm_up, "warmup_min_ratio": first,
                                                     "cos_min_ratio": last, "warmup_type": "linear"}}
    if kind == "constant" or (kind == "constant_with_warmup" and not warm):
        return None
    if kind == "linear":
        return cycle(0, rate, warm, max(1, steps - warm)) if warm else cycle(rate, 0, steps, 1)
    if kind == "constant_with_warmup":
        if warm == 2:
            raise DeepStaticError("TrainingArguments.warmup_steps is 2, which constant_with_warmup has no schedule for; give 1, or 3 and more")
        return cosine(warm - 1, 1 / warm, 1)
    print("note: cosine is DeepSpeed's WarmupCosineLR: its warm-up is one update later than transformers', and at least two long", file=sys.stderr)
    return cosine(warm, 0, 0)


def _undecayed(model) -> list:
    """Names of the parameters that Trainer does not decay: biases and norms, by its own rule."""
    import transformers
    torch = need("torch", "weight_decay")
    from transformers.trainer_pt_utils import get_parameter_names
    if isinstance(model, (str, Path)):
        with torch.device("meta"):
            config = transformers.AutoConfig.from_pretrained(model, local_files_only=True)
            model = getattr(transformers, config.architectures[0])(config)
    decayed = set(transformers.Trainer.get_decay_parameter_names(None, model))
    return [name for name, _ in model.named_parameters() if name not in decayed]


def _exactly(names) -> str:
    """A regular expression of these names; layers differ by a number."""
    return "^(" + "|".join(sorted({re.sub(r"\\\.\d+\\\.", r"\\.[0-9]+\\.", re.escape(name)) for name in names})) + ")$"


def _with_labels(columns: dict) -> dict:
    """Tokens are their own labels, padding apart."""
    if "labels" in columns or "input_ids" not in columns:
        return columns
    labels = columns["input_ids"]
    if "attention_mask" in columns:
        labels = need("numpy", "masking labels").where(columns["attention_mask"] != 0, labels, -100)
    return {**columns, "labels": labels}


def _run_flags(args, out: Path, steps: int, eval_dataset, work: Path) -> dict:
    flags = {"quiet": bool(args.disable_tqdm), "export": out / "model.safetensors"}
    if args.resume_from_checkpoint:
        flags["resume"] = out if args.resume_from_checkpoint is True else args.resume_from_checkpoint
    else:
        flags |= {"seed": args.seed, "shuffle": args.train_sampling_strategy == "random"}
    if args.save_strategy.value == "steps":
        flags |= {"save": out, "save_interval": _every(args.save_steps, steps), "keep": args.save_total_limit}
    if args.eval_strategy.value == "steps":
        if eval_dataset is None:
            raise DeepStaticError("TrainingArguments.eval_strategy is 'steps', and there is no eval_dataset")
        write(_with_labels(columns_of(eval_dataset)), work / "eval.safetensors")
        flags |= {"eval_data": work / "eval.safetensors", "eval_interval": _every(args.eval_steps, steps)}
    return flags


def _every(interval, steps: int) -> int:
    """Below 1 it is a share of all steps."""
    return int(interval) if interval >= 1 else math.ceil(interval * steps)
