"""Compares a plan's reference program with what it was made from: the model's loss, gradients, first values; the configuration."""

import json
from pathlib import Path

import numpy

from .data import Data
from .elementwise import Tensor
from .kernels import Place
from .plans import Refusal, Unusable, attributes_of, first_numbers
from .real import Real
from .reference import GRADIENT, Reference

LOSS_TOLERANCE = 1e-4      # relative: the model is evaluated in float32
GRADIENT_TOLERANCE = 1e-5  # relative: of central differences in float64
STEP = 1e-5
HYPER = {"betas": ("beta1", "beta2"), "eps": ("epsilon",), "weight_decay": ("weight_decay",), "momentum": ("momentum",)}


def compare_sources(plan, folder, model, config):
    """What was compared, in words."""
    said = []
    if config:
        said.append(f"{compare_settings(plan, config)} settings")
    if model:
        said += compare_model(plan, folder, Path(model))
    return said


# ---- the model

def compare_model(plan, folder, model):
    import onnx
    from onnx.reference import ReferenceEvaluator
    path = model / "model.onnx" if model.is_dir() else model
    try:
        proto = onnx.load(path)
    except Exception as error:
        raise Unusable(f"model {path} cannot be read: {error}") from None
    values = compare_first_values(plan, folder, {i.name: onnx.numpy_helper.to_array(i) for i in proto.graph.initializer})
    step = Microbatch(plan, folder)
    outputs = ReferenceEvaluator(proto).run(None, step.inputs())
    names = [output.name for output in proto.graph.output]
    if "loss" not in names:
        raise Unusable(f"model {path} has no output loss")
    expected = float(numpy.asarray(outputs[names.index("loss")]))
    if abs(step.loss - expected) > LOSS_TOLERANCE * max(abs(expected), 1):
        raise Refusal(f"the reference program's loss is {step.loss:.9g}, the model's {expected:.9g}")
    return [f"{values} first values", "the loss", f"{compare_gradients(step)} gradients"]


def compare_first_values(plan, folder, initializers):
    compared = 0
    for index, variable in enumerate(plan.variables):
        wanted = next((initializers[name] for name in (variable.name, *variable.aliases) if name in initializers), None)
        if wanted is None:
            continue
        held = first_numbers(plan, index, folder)
        if held is None or held.shape != wanted.shape or not numpy.array_equal(held, wanted.astype(held.dtype), equal_nan=True):
            raise Refusal(f"the first value of {variable.name} is not the model's")
        compared += 1
    return compared


class Microbatch:
    """The first micro-batch in float64: its loss, and the gradients of all parameters."""

    def __init__(self, plan, folder):
        self.plan = plan
        self.data = Data(plan, Real(1), folder, 1)
        self.reference = Reference(plan, Real(1), self.data, 1)
        self.first = list(self.reference.values)
        scales = [attributes_of(op)["scale"] for op in plan.reference.ops if op.op == "train.loss_gradient"]
        self.scale = scales[0] if scales else 1.0
        self.gradients = {variable.of: index for index, variable in enumerate(plan.variables)
                          if variable.kind == GRADIENT and variable.HasField("of")}
        losses = [index for index, variable in enumerate(plan.variables) if variable.name == "loss"]
        if not losses:
            raise Refusal("the plan has no variable loss")
        self.variable = losses[0]
        self.loss = self.run({})

    def run(self, changed):
        """The loss where some variables have other values."""
        self.reference.values = [changed.get(index, value) for index, value in enumerate(self.first)]
        self.reference.clear_sums()
        self.reference.run("microbatch", 0, Place(0, 0), 0)
        return float(self.reference.values[self.variable].data)

    def inputs(self):
        result = {}
        for index, message in enumerate(self.plan.inputs):
            batch = self.data.batch(index, 0)
            result[message.name] = batch.data.astype({"bool": bool, "bf16": numpy.float32}.get(batch.dtype.name, batch.dtype.storage))
        return result


def compare_gradients(step):
    """Each parameter's gradient along one random direction with a central difference."""
    step.run({})
    held = {parameter: step.reference.values[gradient].data / step.scale for parameter, gradient in step.gradients.items()}
    random = numpy.random.default_rng(1)
    for parameter, gradient in held.items():
        value = step.first[parameter]
        direction = random.normal(0, 1, value.data.shape)
        direction = direction / max(numpy.linalg.norm(direction), 1e-9)
        above, below = (step.run({parameter: Tensor(value.data + sign * STEP * direction, value.dtype)}) for sign in (1, -1))
        wanted, found = (above - below) / (2 * STEP), float((gradient * direction).sum())
        if abs(wanted - found) > GRADIENT_TOLERANCE * max(1, abs(wanted), float(numpy.linalg.norm(gradient))):
            raise Refusal(f"the reference program's gradient of {step.plan.variables[parameter].name} is {found:.9g} in a direction in which "
                          f"the loss rises by {wanted:.9g}")
    return len(held)


# ---- the configuration

def compare_settings(plan, path):
    """Settings of the optimizer that the user's configuration names, and the scale of gradients."""
    try:
        config = json.loads(Path(path).read_text())
        parameters = config.get("optimizer", {}).get("params", {})
        wanted = {kernel: value for name, kernels in HYPER.items() if name in parameters
                  for kernel, value in zip(kernels, numpy.atleast_1d(parameters[name]).tolist())}
    except (OSError, ValueError, AttributeError) as error:
        raise Unusable(f"configuration {path} cannot be read: {error}") from None
    if "lr" in parameters and "scheduler" not in config:
        wanted["lr"] = parameters["lr"]
    if config.get("gradient_clipping"):
        wanted["max_norm"] = config["gradient_clipping"]
    samples = plan.training.train_batch_size // plan.training.micro_batch_size
    found = {"scale": 1 / samples}
    compared = 0
    for op in plan.reference.ops:
        attributes = attributes_of(op)
        for name, value in {**wanted, **(found if op.op == "train.loss_gradient" else {})}.items():
            if name in attributes and isinstance(value, (int, float)) and op.function != "evaluate" and is_setting(op.op, name):
                compared += 1
                if attributes[name] != value:
                    raise Refusal(f"{op.op} {op.name} has {name} {attributes[name]}, the configuration {value}")
    return compared


def is_setting(op, name):
    """Whether an attribute of that name is the configuration's: a norm's epsilon is the model's."""
    return op in {"max_norm": ("train.clip_factor",), "lr": ("train.learning_rate",), "scale": ("train.loss_gradient",)}.get(
        name, ("train.adamw", "train.sgd", "train.adagrad"))
