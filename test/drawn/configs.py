"""Configurations drawn from a seed. A choice is {axis: value}; an axis that is left out has its default. What `legal` leaves in is what
docs/config.md allows, so ds-opt compiles it, or refuses it by a rule of rules.py that only the model can break."""

import functools
import itertools
import re
from pathlib import Path

SMALL_COUNTS = [1, 17, 100, 512, 3000, 20000, "auto"]
GROUPS = {"no decay": [{"match": "bias$|norm", "weight_decay": 0}], "embedding": [{"match": "embedding", "lr_factor": 0.1}],
          "three": [{"match": "weight$", "lr_factor": 0.5}, {"match": "bias", "weight_decay": 0.01}, {"match": ".", "lr_factor": 2}]}
OPTIMIZERS = {
    "AdamW": {"type": "AdamW", "params": {"lr": 1e-3, "weight_decay": 0.1}},
    "Adam": {"type": "Adam", "params": {"lr": 1e-3, "adam_w_mode": False, "weight_decay": 0.1, "betas": [0.8, 0.99], "eps": 1e-6}},
    "SGD": {"type": "SGD", "params": {"lr": 0.01}},
    "momentum": {"type": "SGD", "params": {"lr": 0.01, "momentum": 0.9, "weight_decay": 0.1}},
    "nesterov": {"type": "SGD", "params": {"lr": 0.01, "momentum": 0.9, "nesterov": True}},
    "Adagrad": {"type": "Adagrad", "params": {"lr": 0.01, "lr_decay": 0.1}},
    "Lion": {"type": "Lion", "params": {"lr": 1e-3, "weight_decay": 0.1}},
    "Lamb": {"type": "Lamb", "params": {"lr": 0.01, "weight_decay": 0.1, "bias_correction": False}}}
SCHEDULERS = {
    "WarmupLR": {"warmup_num_steps": 2}, "WarmupDecayLR": {"total_num_steps": 5, "warmup_num_steps": 2, "warmup_type": "linear"},
    "WarmupCosineLR": {"total_num_steps": 9}, "LRRangeTest": {"lr_range_test_step_size": 2, "lr_range_test_staircase": True},
    "OneCycle": {"cycle_min_lr": 1e-4, "cycle_max_lr": 1e-2, "cycle_first_step_size": 2, "decay_lr_rate": 0.1, "decay_step_size": 1}}
# Passes of ds-opt that can be left out.
OPTIONAL = [f"ds-{name}" for name in (
    "narrow-frozen", "fold-transposes", "fuse-bias", "regroup-attention", "fold-head-transposes", "pack-heads", "regroup-rms-norm", "concat-pads",
    "elide-accumulation", "repeat-elementwise", "fuse-elementwise", "elide-copies", "reuse-dying-operands", "order-for-memory", "peel-backward",
    "advance-updates", "split-updates", "read-ahead", "elide-pending-copies", "round-once", "elide-redundant-gathers", "keep-parameters-gathered",
    "advance-reductions", "combine-collectives", "hoist-gathers", "narrow-gathers", "split-async-collectives", "pad-vocabulary",
    "regroup-gelu", "fuse-gelu", "fuse-bias-gradients", "fuse-residual-gradients", "fuse-loss-gradient", "fuse-residual-sums", "choose-captured-programs", "compile-elementwise")]
# A machine of slow links without latency, on which small models have pieces, and reads that come early.
SLOW_MACHINE = Path(__file__).with_name("slow.json")
NO = None  # leaves the axis out

# axis: its values. Those of a key are the key's own; a word stands for a longer value in `config_of`.
AXES = {
    "ranks": [2, 3, 4, 5, 6, 7, 8],
    "deepstatic.pipeline.stages": [2, 3, 4],
    "pipeline.stages": [2],
    "deepstatic.tensor_parallel.size": [2, 4],
    "deepstatic.pipeline.schedule": ["gpipe", "1f1b", "interleaved", "zb-h1", "accumulate-by-layer", "auto"],
    "deepstatic.pipeline.chunks": [2, 3],
    "deepstatic.pipeline.partition": ["uniform", "parameters", "type:blocks"],
    "pipeline.partition": ["parameters"],
    "gradient_accumulation_steps": [2, 3, 4, 6],
    "train_micro_batch_size_per_gpu": [1, 3, 4, 8, 16],
    "batch sizes": ["whole and steps", "whole and micro", "all three", "auto"],
    "zero_optimization.stage": [1, 2, 3],
    "zero_optimization.reduce_bucket_size": SMALL_COUNTS,
    "zero_optimization.allgather_bucket_size": [1, 64, 700, 5000],
    "zero_optimization.stage3_prefetch_bucket_size": [1, 50, 512, 3000, "auto"],
    "zero_optimization.stage3_param_persistence_threshold": [0, 10, 100, 1000, "auto"],
    "zero_optimization.stage3_model_persistence_threshold": [0, 100, 5000],
    "zero_optimization.stage3_max_live_parameters": [0, 100, 5000],
    "zero_optimization.stage3_max_reuse_distance": [0, 100, 5000],
    "zero_optimization.overlap_comm": [True, False],
    "communication_data_type": ["fp32", "bf16", "fp16"],
    "precision": ["bf16", "fp16"],
    "fp16.loss_scale": [128],
    "fp16.initial_scale_power": [4],
    "fp16.hysteresis": [1],
    "fp16.consecutive_hysteresis": [True],
    "fp16.loss_scale_window": [1, 2],
    "fp16.min_loss_scale": [4],
    "optimizer": list(OPTIMIZERS)[1:],
    "scheduler": list(SCHEDULERS),
    "gradient_clipping": [0, 0.1, 1.0],
    "zero_optimization.offload_optimizer.device": ["cpu", "nvme"],
    "zero_optimization.offload_optimizer.ratio": [0, 0.3, 0.7, "auto"],
    "zero_optimization.offload_param.device": ["cpu", "nvme"],
    "zero_optimization.sub_group_size": [1, 100, 5000],
    "activation_checkpointing.cpu_checkpointing": [True],
    "activation_checkpointing.number_checkpoints": [1, 2],
    "deepstatic.offload": ["auto", "all cpu", "all nvme", "blocks cpu"],
    "deepstatic.recompute": ["none", "full", "auto", 1, 3, "blocks", "all away"],
    "deepstatic.delayed_update": [True],
    "deepstatic.loss_normalization": ["tokens"],
    "deepstatic.parameter_groups": list(GROUPS),
    "deepstatic.loss": ["plain", "smoothed"],
    "deepstatic.tf32": [True],
    "deepstatic.checkpoint.snapshot": ["blocking"],
    "deepstatic.checkpoint.buffer": ["1MiB"],
    "aio.block_size": [4096],
    "aio.queue_depth": [1],
    "deepstatic.device_memory": ["64MiB", "300KiB"],
    "--host-memory": ["100000", "64MiB"],
    "--machine": ["cpu", "slow", "h100x8"],
    "--without": ["all", *OPTIONAL],
    "--dim": ["seq=4", "seq=4,8"],
    "zero_optimization.offload_optimizer.nvme_path": ["the same"],
    "zero_optimization.offload_param.nvme_path": ["the same"],
    "steps_per_print": [1],
    "wall_clock_breakdown": [True],
    "comms_logger.enabled": [True],
    "flops_profiler.enabled": [True],
    "flops_profiler.profile_step": [2],
    "flops_profiler.output_file": ["a file"],
    "tensorboard.enabled": [True],
    "tensorboard.job_name": ["drawn"],
    "csv_monitor.enabled": [True],
    "csv_monitor.job_name": ["drawn"],
    "data_types.grad_accum_dtype": ["bf16", "fp16"],
}
# Keys that a word of an axis stands for, that are written where they are needed, that mean what an axis does, that want larger models
# (deepstatic.fp8), or whose losses are no other configuration's (parameters and moments of 16 bits).
WITHIN = ["tensor_parallel.autotp_size", "tensor_parallel.tp.tp_size", "bf16.enabled", "fp16.enabled", "deepstatic.fp8", "bf16.bf16_master_weights_and_grads",
          "bf16.bf16_optimizer_states", "fp16.fp16_master_weights_and_grads", "optimizer.type", "optimizer.params",
          "scheduler.type", "scheduler.params", "train_batch_size", "deepstatic.nvme_path", "tensorboard.output_path", "csv_monitor.output_path"]
STAGED = ("gpipe", "1f1b", "interleaved", "zb-h1")


def legal(choice) -> dict:
    """`choice` without what another key makes illegal; ranks and micro-batches grow where a key needs them."""
    c = {axis: value for axis, value in choice.items() if value is not NO}

    def drop(*axes):
        for axis in axes:
            c.pop(axis, None)
    schedule = c.get("deepstatic.pipeline.schedule")
    if "deepstatic.pipeline.stages" in c:
        drop("pipeline.stages")
    stages = c.get("deepstatic.pipeline.stages", c.get("pipeline.stages", 1))
    if stages > 1 and schedule in ("accumulate-by-layer", "auto"):
        drop("deepstatic.pipeline.stages", "pipeline.stages")
        stages = 1
    if stages == 1 and schedule in STAGED:
        c["deepstatic.pipeline.stages"] = stages = 2
    tensor = tensor_ranks(c)
    if tensor > 1:  # what does not go with it yet
        stages = 1
        drop("deepstatic.pipeline.stages", "pipeline.stages", "deepstatic.pipeline.schedule", "communication_data_type", "activation_checkpointing.cpu_checkpointing", *(axis for axis in AXES if "offload" in axis or axis == "deepstatic.delayed_update"))
        for axis, value in (("deepstatic.recompute", "all away"), ("optimizer", "Lamb"), ("--dim", "seq=4,8")):
            if c.get(axis) == value:
                drop(axis)
    if c.get("ranks", 1) % (stages * tensor):
        c["ranks"] = stages * tensor * max(1, min(8 // (stages * tensor), c.get("ranks", 1) // (stages * tensor)))
    schedule = c.get("deepstatic.pipeline.schedule")
    if schedule == "interleaved":
        steps = c.get("gradient_accumulation_steps", 1)
        if steps % stages:
            c["gradient_accumulation_steps"] = stages * max(1, steps // stages)
        c.setdefault("deepstatic.pipeline.chunks", 2)
    elif schedule not in ("accumulate-by-layer", "auto"):
        drop("deepstatic.pipeline.chunks")
    if stages == 1:
        drop("deepstatic.pipeline.partition", "pipeline.partition")
    if "deepstatic.pipeline.partition" in c:
        drop("pipeline.partition")
    if c.get("precision") != "fp16":
        drop(*(axis for axis in AXES if axis.startswith("fp16.")))
    if "fp16.loss_scale" in c:
        drop("fp16.initial_scale_power", "fp16.hysteresis", "fp16.consecutive_hysteresis", "fp16.loss_scale_window", "fp16.min_loss_scale")
    if c.get("optimizer") == "Lamb":
        drop("zero_optimization.stage")
    sums = c.get("data_types.grad_accum_dtype")
    if sums and c.get("precision") != sums:
        drop("data_types.grad_accum_dtype")
    elif sums and c.get("communication_data_type", sums) != sums:
        drop("communication_data_type")
    if "," in c.get("--dim", ""):  # what is decided once for all lengths
        for axis, value in (("deepstatic.pipeline.schedule", "auto"), ("zero_optimization.offload_optimizer.ratio", "auto"),
                            ("deepstatic.offload", "auto")):
            if c.get(axis) == value:
                drop(axis)
        if stages > 1:
            c["--dim"] = "seq=4"
    if "zero_optimization.offload_optimizer.device" not in c:
        drop("zero_optimization.offload_optimizer.ratio", "deepstatic.delayed_update")
    if c.get("precision") == "fp16":
        drop("deepstatic.loss_normalization")
    if c.get("--machine") == "h100x8":  # what device cuda does not have yet
        drop("communication_data_type", *(axis for axis in AXES if axis.startswith(("zero_optimization.offload_optimizer", "fp16."))))
        drop(*(axis for axis, value in choice.items() if "nvme" in str(value) or value == "fp16"))
    if "deepstatic.checkpoint.snapshot" in c:
        drop("deepstatic.checkpoint.buffer")
    return c


def fitting(choice, spec, trained) -> dict:
    """`choice` without what this model has no use for."""
    c = dict(choice)
    groups = GROUPS.get(c.get("deepstatic.parameter_groups"), [])
    left = list(trained)
    for group in groups:
        hit = [name for name in left if re.search(group["match"], name)]
        if not hit:
            c.pop("deepstatic.parameter_groups")
            break
        left = [name for name in left if name not in hit]
    if spec.get("head") == "regression":
        c.pop("deepstatic.loss_normalization", None)
        c = {**c, "deepstatic.loss": "plain"} if "deepstatic.loss" in c else c
    if not spec.get("open"):
        c.pop("--dim", None)
    elif "--dim" not in c:
        c["--dim"] = "seq=4"
    return c


@functools.cache
def pairs() -> list:
    """All pairs ((axis, value), (axis, value)) that can stand together."""
    singles = [(axis, value) for axis, values in AXES.items() for value in values]

    def together(a, b):
        made = legal({a[0]: a[1], b[0]: b[1], **needed(a, b)})
        return all(made.get(axis, NO) == value for axis, value in (a, b))
    return [(a, b) for a, b in itertools.combinations(singles, 2) if a[0] != b[0] and together(a, b)]


def needed(*singles) -> dict:
    """What keys with these values need beside them, not overriding the two."""
    more = {}
    for axis, value in singles:
        if axis.startswith("fp16."):
            more["precision"] = "fp16"
        if axis == "data_types.grad_accum_dtype":
            more["precision"] = value
        if axis in ("zero_optimization.offload_optimizer.ratio", "deepstatic.delayed_update"):
            more["zero_optimization.offload_optimizer.device"] = "cpu"
        if axis == "deepstatic.pipeline.chunks":
            more["deepstatic.pipeline.schedule"] = "interleaved"
        if axis in ("deepstatic.pipeline.partition", "pipeline.partition"):
            more["deepstatic.pipeline.stages"] = 2
    taken = {axis for axis, _ in singles}
    return {axis: value for axis, value in more.items() if axis not in taken}


def draw_choice(random, pair) -> dict:
    """A choice that holds `pair`, with few other keys or many, and ranks more often than not."""
    share = random.choice([0, 0.05, 0.1, 0.2, 0.4])
    choice = {axis: random.choice(values) for axis, values in AXES.items() if random.random() < share}
    for axis, often in (("ranks", 0.8), ("zero_optimization.stage", 0.5), ("gradient_accumulation_steps", 0.5)):
        if axis not in choice and random.random() < often:
            choice[axis] = random.choice(AXES[axis])
    if "zero_optimization.stage" in choice and random.random() < 0.5:
        choice["zero_optimization.reduce_bucket_size"] = random.choice(SMALL_COUNTS)
    fixed = needed(*pair) | dict(pair)
    if (choice | fixed).get("--machine") == "slow" and random.random() < 0.7:  # what its links are slow for
        choice |= {axis: random.choice(AXES[axis]) for axis in ("zero_optimization.offload_optimizer.device", "zero_optimization.offload_param.device")
                   if random.random() < 0.7}
    made = legal(choice | fixed)
    if any(made.get(axis, NO) != value for axis, value in pair):  # the others stand in its way
        made = legal(fixed)
    return made


def loss_of(spec, word):
    """deepstatic.loss for a model that ends in logits."""
    language = spec["family"] == "tokens" and spec["head"] != "pooled"
    kind = "regression" if spec.get("head") == "regression" else "causal-lm" if language else "classification"
    return kind if word == "plain" else {"kind": kind, "label_smoothing": 0.1}


def beside_one_rank(choice) -> dict:
    """The same training on one rank, where all of it lies in device memory."""
    kept = ("precision", "fp16.", "--without", "--machine", "optimizer", "scheduler", "gradient_clipping", "deepstatic.loss",
            "deepstatic.parameter_groups", "--dim",
            "train_micro", "deepstatic.delayed_update")
    one = {axis: value for axis, value in choice.items() if axis.startswith(kept)}
    if "deepstatic.delayed_update" in one:
        one["zero_optimization.offload_optimizer.device"] = "cpu"
    return {**one, "gradient_accumulation_steps": choice.get("gradient_accumulation_steps", 1) * data_ranks(choice)}


def tensor_ranks(choice) -> int:
    return choice.get("deepstatic.tensor_parallel.size", 1)


def data_ranks(choice) -> int:
    return choice.get("ranks", 1) // choice.get("deepstatic.pipeline.stages", choice.get("pipeline.stages", 1)) // tensor_ranks(choice)


def config_of(choice, spec, place):
    """(the ds_config.json, the flags of ds-opt); files that it asks for lie in the folder `place`."""
    config, flags = {}, []

    def put(path, value):
        section = config
        *folders, last = path.split(".")
        for folder in folders:
            section = section.setdefault(folder, {})
        section[last] = value
    ranks, micro = choice.get("ranks", 1), choice.get("train_micro_batch_size_per_gpu", 2)
    steps = choice.get("gradient_accumulation_steps", 1)
    flags += ["--ranks", str(ranks)]
    sizes, whole = choice.get("batch sizes"), micro * steps * data_ranks(choice)
    if sizes in (NO, "whole and micro", "all three"):
        put("train_micro_batch_size_per_gpu", micro)
    if sizes == "auto":
        put("train_micro_batch_size_per_gpu", "auto")
        put("train_batch_size", "auto")
        flags += ["--dim", f"batch={micro}"]
    if sizes in ("whole and steps", "whole and micro", "all three"):
        put("train_batch_size", whole)
    if sizes != "whole and micro" and ("gradient_accumulation_steps" in choice or sizes == "all three"):
        put("gradient_accumulation_steps", steps)
    put("optimizer", OPTIMIZERS[choice.get("optimizer", "AdamW")])
    for axis, value in choice.items():
        if axis in ("ranks", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "batch sizes", "optimizer"):
            continue
        if axis == "--without":
            flags += [word for name in (OPTIONAL if value == "all" else [value]) for word in (axis, name)]
        elif axis == "--machine":
            flags += [axis, str(SLOW_MACHINE) if value == "slow" else value]
        elif axis.startswith("--"):
            flags += [axis, value]
        elif axis == "precision":
            put(f"{value}.enabled", True)
        elif axis == "scheduler":
            put("scheduler", {"type": value, "params": SCHEDULERS[value]})
        elif axis == "deepstatic.loss":
            put(axis, loss_of(spec, value))
        elif axis == "deepstatic.parameter_groups":
            put(axis, GROUPS[value])
        elif axis == "deepstatic.offload":
            put(axis, {"all cpu": {".*": "cpu"}, "all nvme": {".*": "nvme"}, "blocks cpu": {"blocks": "cpu"}}.get(value, value))
        elif axis == "deepstatic.recompute":
            put(axis, {"blocks": {"blocks": "recompute"}, "all away": {".*": "offload"}}.get(value, value))
        else:
            put(axis, {"the same": place, "a file": f"{place}/flops.txt"}.get(value, value))
    if "nvme" in str(choice):
        put("deepstatic.nvme_path", place)
    for monitor in ("tensorboard", "csv_monitor"):
        if f"{monitor}.enabled" in choice:
            put(f"{monitor}.output_path", place)
    return config, flags
