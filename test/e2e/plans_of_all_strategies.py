"""47 small plans: one rank and several, ZeRO 0 to 3, all schedules of two stages, recompute, bf16, fp16, losses by tokens, optimizers, running
statistics, activations, optimizer state and parameters in host memory and files, delayed updates; and their data."""

import numpy
from conftest import REPOSITORY, write_config
from safetensors.numpy import save_file

SGD = {"type": "SGD", "params": {"lr": 0.01, "momentum": 0.9}}
LAMB = {"type": "Lamb", "params": {"lr": 0.01, "weight_decay": 0.1}}
ADAGRAD = {"type": "Adagrad", "params": {"lr": 0.01, "lr_decay": 0.1}}
SMALL = {"reduce_bucket_size": 3000, "stage3_prefetch_bucket_size": 3000, "stage3_param_persistence_threshold": 10}


# of as many samples that activations have the 4,096 bytes from which on they leave device memory
OFFLOADED = {"activation_checkpointing": {"cpu_checkpointing": True}, "train_micro_batch_size_per_gpu": 16}


UPDATED_THERE = {"offload_optimizer": {"device": "cpu"}}
IN_FILES = {"device": "nvme", "nvme_path": "/tmp"}
DELAYED = {"delayed_update": True}


def zero(stage, **more):
    return {"zero_optimization": {"stage": stage, **SMALL, **more}}


def staged(schedule, chunks=1, **more):
    return {"deepstatic": {"pipeline": {"stages": 2, "schedule": schedule, "chunks": chunks}, **more}}


# model, ranks, micro-batches, more of the configuration
PLANS = [
    ("gpt2", 1, 1, {}), ("llama", 1, 3, {}), ("gpt2", 1, 2, {"optimizer": SGD}), ("llama", 1, 2, {"optimizer": ADAGRAD}),
    ("gpt2", 1, 2, {"gradient_clipping": 0}), ("llama", 1, 2, {"bf16": {"enabled": True}}),
    ("gpt2", 1, 2, {"deepstatic": {"recompute": "full"}}), ("llama", 1, 1, {"deepstatic": {"recompute": 1}}),
    ("gpt2", 1, 1, {"scheduler": {"type": "WarmupCosineLR", "params": {"total_num_steps": 9}}}),
    ("gpt2", 2, 3, zero(0)), ("llama", 2, 2, zero(0, overlap_comm=True)), ("llama", 3, 1, zero(1)), ("gpt2", 2, 2, zero(1, overlap_comm=True)),
    ("llama", 4, 2, zero(2)), ("gpt2", 3, 2, zero(2, overlap_comm=True)), ("gpt2", 2, 2, zero(3)), ("llama", 2, 3, zero(3, overlap_comm=False)),
    ("gpt2", 4, 1, zero(3, stage3_max_live_parameters=0)), ("llama", 2, 2, {**zero(3), "bf16": {"enabled": True}}),
    ("llama", 2, 2, {**zero(2), "optimizer": SGD}), ("gpt2", 2, 2, {**zero(3), "deepstatic": {"recompute": "full"}}),
    ("llama", 2, 3, staged("1f1b")), ("gpt2", 2, 3, staged("gpipe")), ("llama", 2, 4, staged("interleaved", 2)), ("gpt2", 2, 4, staged("zb-h1")),
    ("gpt2", 4, 3, {**staged("1f1b"), **zero(1)}), ("llama", 4, 2, {**staged("zb-h1"), **zero(2)}), ("llama", 4, 4, {**staged("1f1b"), **zero(3)}),
    ("llama", 2, 3, staged("1f1b", recompute="full")), ("gpt2", 4, 2, {**staged("gpipe"), **zero(0, overlap_comm=True)}),
    ("statistics", 1, 2, {}), ("statistics", 2, 2, zero(2)),
    ("gpt2", 2, 2, {**zero(1), "fp16": {"enabled": True}}), ("llama", 2, 3, {**zero(0), "deepstatic": {"loss_normalization": "tokens"}}),
    ("gpt2", 2, 2, {**zero(0), "optimizer": LAMB}), ("llama", 2, 3, {**staged("1f1b"), "optimizer": LAMB}),
    ("gpt2", 1, 2, OFFLOADED), ("llama", 2, 2, {**staged("1f1b"), **OFFLOADED}),
    ("gpt2", 1, 2, zero(0, **UPDATED_THERE)), ("gpt2", 2, 2, zero(1, **UPDATED_THERE)), ("llama", 2, 2, zero(3, **UPDATED_THERE)),
    ("gpt2", 2, 2, zero(1, offload_optimizer=IN_FILES)), ("llama", 2, 2, zero(3, offload_param={"device": "cpu"})), ("gpt2", 2, 1, zero(2, offload_param=IN_FILES)),
    ("gpt2", 1, 1, {**zero(0, **UPDATED_THERE), "deepstatic": DELAYED}), ("llama", 2, 2, {**zero(2, **UPDATED_THERE), "deepstatic": DELAYED}),
    ("gpt2", 1, 2, {**zero(0, offload_param=IN_FILES, offload_optimizer=IN_FILES), **OFFLOADED, "deepstatic": {"offload": {".*": "nvme"}}}),
]


def small_plans(tools, folder):
    """(the plans, a file of data that all of them train on), written into `folder`."""
    tokens, labels = (numpy.random.default_rng(seed).integers(0, 8, (64, 4), dtype=numpy.int64) for seed in (0, 1))
    save_file({"input_ids": tokens, "labels": labels}, folder / "data.safetensors")
    plans = []
    for number, (model, ranks, accumulation, more) in enumerate(PLANS):
        plan = folder / f"{number}-{model}.dsplan"
        config = write_config(plan.with_suffix(".json"), 1, accumulation, **{"gradient_clipping": 0.5, **more})
        tools("ds-opt", "compile", REPOSITORY / "test/e2e/hazards" / f"good-{model}", "--config", config, "--ranks", ranks, "-o", plan)
        plans.append(plan)
    return plans, folder / "data.safetensors"
