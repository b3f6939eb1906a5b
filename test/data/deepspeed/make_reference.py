"""Writes reference.json: what DeepSpeed's own code makes of 100 updates; `python make_reference.py` where deepspeed 0.19.8 is installed.

Schedules are the classes of deepspeed/runtime/lr_schedules.py, called as its engine calls them: step() after each update. Lion and Lamb
are the pure PyTorch kernels that DeepSpeed ships for NPUs (deepspeed/ops/op_builder/npu), which it documents as the rules of its
FusedLion and FusedLamb; those are CUDA kernels and run on no CPU. Gradients are given, so that no difference can grow.
"""

import json
from pathlib import Path

import numpy

UPDATES = 100
HERE = Path(__file__).parent
SHAPES = {"matrix": (7, 9), "scale": (11,)}

SCHEDULES = {
    "range-test": ("LRRangeTest", dict(lr_range_test_min_lr=1e-3, lr_range_test_step_size=17, lr_range_test_step_rate=0.7)),
    "range-test-stairs": ("LRRangeTest", dict(lr_range_test_min_lr=1e-3, lr_range_test_step_size=9, lr_range_test_step_rate=2.0,
                                              lr_range_test_staircase=True)),
    "one-cycle": ("OneCycle", dict(cycle_min_lr=1e-3, cycle_max_lr=0.02, cycle_first_step_size=23)),
    "one-cycle-uneven": ("OneCycle", dict(cycle_min_lr=1e-3, cycle_max_lr=0.02, cycle_first_step_size=13, cycle_second_step_size=31,
                                          decay_step_size=5, decay_lr_rate=0.3, decay_mom_rate=0.001, cycle_min_mom=0.85, cycle_max_mom=0.95)),
    "one-cycle-stairs": ("OneCycle", dict(cycle_min_lr=1e-3, cycle_max_lr=0.02, cycle_first_step_size=21, cycle_second_step_size=34,
                                          cycle_first_stair_count=5, cycle_second_stair_count=3, decay_step_size=7, decay_lr_rate=0.1)),
    "warmup": ("WarmupLR", dict(warmup_min_lr=1e-4, warmup_max_lr=0.01, warmup_num_steps=20)),
    "warmup-decay": ("WarmupDecayLR", dict(warmup_max_lr=0.01, warmup_num_steps=10, warmup_type="linear", total_num_steps=80)),
    "warmup-cosine": ("WarmupCosineLR", dict(warmup_num_steps=10, total_num_steps=80, warmup_min_ratio=0.1)),
}
LR = 0.003
LION = dict(lr=LR, betas=[0.9, 0.97], weight_decay=0.1)
LAMB = dict(lr=LR, betas=[0.9, 0.97], eps=1e-6, weight_decay=0.1, max_coeff=1.8, min_coeff=1.3)  # some ratios lie between, some beyond either


def gradients() -> dict:
    """Of each parameter, for each update: numbers that every machine draws alike, none of them 0."""
    result = {}
    for number, (name, shape) in enumerate(SHAPES.items()):
        words = numpy.random.Generator(numpy.random.Philox(number)).integers(1, 2**16, (UPDATES, *shape))
        result[name] = ((words - 2**15 + 0.5) / 2**14).astype(numpy.float32)
    return result


def first_values() -> dict:
    return {name: (numpy.arange(numpy.prod(shape)).reshape(shape) % 13 / 8 - 0.75).astype(numpy.float32) for name, shape in SHAPES.items()}


def schedule(kind, params) -> dict:
    """The learning rate and the first beta of each update."""
    import torch
    from deepspeed.runtime import lr_schedules
    optimizer = torch.optim.AdamW([torch.zeros(1, requires_grad=True)], lr=LR)
    scheduler = getattr(lr_schedules, kind)(optimizer, **params)
    rates, momenta = [], []
    for _ in range(UPDATES):
        rates.append(optimizer.param_groups[0]["lr"])
        momenta.append(optimizer.param_groups[0]["betas"][0])
        optimizer.step()
        scheduler.step()
    return {"lr": rates, "beta1": momenta, "betas": optimizer.param_groups[0]["betas"][1]}


def weights(update) -> dict:
    """Those after all updates; update(name, parameter, gradient, number, state) changes the parameter in place."""
    import torch
    values, states, given = {name: torch.tensor(value) for name, value in first_values().items()}, {}, gradients()
    for number in range(UPDATES):
        for name, value in values.items():
            update(value, torch.tensor(given[name][number]), number, states.setdefault(name, {}))
    return {name: value.flatten().tolist() for name, value in values.items()}


def lion() -> dict:
    import torch
    from deepspeed.ops.op_builder.npu.fused_lion import NPUFusedLion

    def update(parameter, gradient, number, state):
        moment = state.setdefault("exp_avg", torch.zeros_like(parameter))
        NPUFusedLion.multi_tensor_lion(2048, torch.zeros(1, dtype=torch.int32), [[gradient], [parameter], [moment]], LION["lr"],
                                       *LION["betas"], number + 1, LION["weight_decay"])
    return weights(update)


def lamb(bias_correction) -> dict:
    """The weights, and the trust ratio of each update."""
    import torch
    from deepspeed.ops.op_builder.npu.fused_lamb import NPUFusedLamb
    ratios = {"matrix": [], "scale": []}

    def update(parameter, gradient, number, state):
        moments = [state.setdefault(name, torch.zeros_like(parameter)) for name in ("exp_avg", "exp_avg_sq")]
        ratio = NPUFusedLamb.lamb(parameter, torch.zeros(0), *moments, gradient, LAMB["lr"], *LAMB["betas"], LAMB["max_coeff"],
                                  LAMB["min_coeff"], LAMB["eps"], 1.0, number + 1, 1, bias_correction, LAMB["weight_decay"])
        ratios["matrix" if parameter.dim() == 2 else "scale"].append(float(ratio))
    return {**weights(update), "ratios": ratios}


def reference() -> dict:
    return {"schedules": {name: schedule(kind, params) for name, (kind, params) in SCHEDULES.items()}, "lion": lion(),
            "lamb": lamb(True), "lamb without bias correction": lamb(False)}


if __name__ == "__main__":
    import deepspeed
    assert deepspeed.__version__ == "0.19.8", deepspeed.__version__
    (HERE / "reference.json").write_text(json.dumps(reference(), indent=None, separators=(",", ":")).replace('],"', '],\n"') + "\n")
