"""Compares a plan's reference program with what it was made from: the model's loss, gradients, first values; the configuration."""

import json
import re
from pathlib import Path

import numpy

from .data import Data
from .elementwise import Tensor
from .kernels import Place
from .plans import Refusal, Unusable, attributes_of, first_numbers
from .real import Real
from .reference import GRADIENT, OPTIMIZERS, PARAMETER, Reference

LOSS_TOLERANCE = 1e-4      # relative: the model is evaluated in float32
GRADIENT_TOLERANCE = 1e-5  # relative: of central differences in float64
STEP = 1e-5
HYPER = {"betas": ("beta1", "beta2"), "eps": ("epsilon",), **{name: (name,) for name in ("weight_decay", "momentum", "max_coeff", "min_coeff")}}


def compare_sources(plan, folder, model, config):
    """What was compared, in words."""
    said = [f"{compare_settings(plan, config)} settings"] if config else []
    return said + (compare_model(plan, folder, Path(model)) if model else [])


# ---- the model

def compare_model(plan, folder, model):
    import onnx
    from onnx.reference import ReferenceEvaluator
    path = model / "model.onnx" if model.is_dir() else model
    try:
        proto = onnx.load(path)
    except Exception as error:
        raise Unusable(f"model {path} cannot be read: {error}") from None
    tokens = json.loads(next((note.value for note in proto.metadata_props if note.key == "deepstatic.tokens"), "{}"))
    for made in plan.inputs:
        if made.tokens != tokens.get(made.name, made.tokens):
            raise Refusal(f"input {made.name} is the {made.tokens or 'no'} token, the model's the {tokens[made.name]}")
    values = compare_first_values(plan, folder, {i.name: onnx.numpy_helper.to_array(i) for i in proto.graph.initializer})
    step = Microbatch(plan, folder)
    try:
        inputs = {**step.inputs(), **cut_inputs(plan, proto)}
        expected = loss_of_model(plan, folder, ReferenceEvaluator(proto), inputs)
    except Exception as error:
        raise Unusable(f"onnx's reference evaluator cannot compute the loss of {path}: {error}") from None
    if abs(step.loss - expected) > LOSS_TOLERANCE * max(abs(expected), 1):
        raise Refusal(f"the reference program's loss is {step.loss:.9g}, the model's {expected:.9g}")
    return [f"{values} first values", "the loss", f"{compare_gradients(step)} gradients"]


def cut_inputs(plan, proto):
    """Inputs that the plan does not have, keys and values of earlier tokens, of which there are none: what counts them is 0."""
    from onnx.helper import tensor_dtype_to_np_dtype
    known = {message.name for message in plan.inputs} | {tensor.name for tensor in proto.graph.initializer}
    cut = {}
    for value in proto.graph.input:
        if value.name in known:
            continue
        tensor = value.type.tensor_type
        sizes = [dim.dim_value or int(dim.dim_param if dim.dim_param.isdigit() else 0) for dim in tensor.shape.dim]
        cut[value.name] = numpy.zeros([size or plan.training.micro_batch_size for size in sizes[:1]] + sizes[1:], tensor_dtype_to_np_dtype(tensor.elem_type))
    return cut


def loss_of_file(path, model, inputs):
    """What a graph of its own makes of the model's outputs and of data."""
    import onnx
    from onnx.reference import ReferenceEvaluator
    loss = ReferenceEvaluator(onnx.load(path))
    known = dict(zip(model.output_names, model.run(None, {name: value for name, value in inputs.items() if name in model.input_names})))
    return float(numpy.asarray(loss.run(None, {name: known.get(name, inputs.get(name)) for name in loss.input_names})[0]))


def loss_of_model(plan, folder, model, inputs):
    """Its output `loss`; or, of its logits and labels, what deepstatic.loss asks for (transformers' loss_utils.py)."""
    asked = json.loads(plan.config_json or "{}").get("deepstatic", {}).get("loss")
    if not asked:
        return float(numpy.asarray(model.run(["loss"], inputs)[0]))
    if "file" in asked:
        return loss_of_file(Path(folder) / asked["file"], model, inputs)
    labels = inputs["labels"]
    logits = numpy.float64(model.run([asked["logits"]], {name: value for name, value in inputs.items() if name in model.input_names})[0])
    if asked["kind"] == "regression":
        return float(((logits.reshape(labels.shape) - labels) ** 2).mean())
    maker = probability_maker(model.proto_.graph, asked["logits"])
    if asked["kind"] == "multi-label":
        logits = numpy.log(logits / (1 - logits)) if maker == "Sigmoid" else logits
        weight = 1 + (numpy.array(asked.get("pos_weight", [1])) - 1) * labels
        return float(((1 - labels) * logits + weight * numpy.logaddexp(0, -logits)).mean())
    if maker == "Softmax":
        logits = numpy.log(logits)
    if asked["kind"] == "segmentation":
        logits = numpy.moveaxis(logits, 1, -1)
    if asked["kind"] == "causal-lm":
        logits, labels = logits[:, :-1], labels[:, 1:]
    logs, counts = logits - numpy.logaddexp.reduce(logits, -1, keepdims=True), labels != asked["ignore_index"]
    weights = numpy.array(asked.get("class_weights", [1] * logits.shape[-1]))
    own = numpy.take_along_axis(logs[counts] * weights, labels[counts][:, None], 1)
    mixed = (1 - asked["label_smoothing"]) * own + asked["label_smoothing"] * (logs[counts] * weights).mean(1, keepdims=True)
    return float(-mixed.sum() / weights[labels[counts]].sum())


def probability_maker(graph, name):
    """The operator that makes an output, behind those that only move its elements."""
    makers = {output: node for node in graph.node for output in node.output}
    while name in makers and makers[name].op_type in ("Reshape", "Transpose"):
        name = makers[name].input[0]
    written = name in makers and makers[name].op_type == "Div" and makers.get(makers[name].input[0], makers[name]).op_type == "Exp"
    return "Softmax" if written else makers[name].op_type if name in makers else None


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
        scales = [attributes_of(op)["scale"] for op in plan.reference.ops if op.op == "train.loss_gradient"][:1]
        scales += [float(self.first[i].data) for i, variable in enumerate(plan.variables) if variable.name == "optimizer::loss_scale"]
        self.scale = numpy.prod(scales)
        self.gradients = {variable.of: index for index, variable in enumerate(plan.variables)
                          if variable.kind == GRADIENT and variable.HasField("of")}
        self.variable = [variable.name for variable in plan.variables].index("loss")
        self.loss = self.run({})
        self.loss /= next((float(self.reference.values[i].data) for i, one in enumerate(plan.variables) if one.name == "targets"), 1)

    def run(self, changed):
        """The loss where some variables have other values."""
        self.reference.values = [changed.get(index, value) for index, value in enumerate(self.first)]
        self.reference.clear_sums()
        self.reference.run("microbatch", 0, Place(0, 0), 0)
        return float(self.reference.values[self.variable].data)

    def inputs(self):
        batches = {message.name: self.data.batch(index, 0) for index, message in enumerate(self.plan.inputs)}
        return {name: batch.data.astype({"bool": bool, "bf16": numpy.float32}.get(batch.dtype.name, batch.dtype.storage))
                for name, batch in batches.items()}


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
        own = {name: value for key, names in HYPER.items() if key in parameters
               for name, value in zip(names, numpy.atleast_1d(parameters[key]).tolist())}
    except (OSError, ValueError, AttributeError) as error:
        raise Unusable(f"configuration {path} cannot be read: {error}") from None
    extras, samples = config.get("deepstatic", {}), plan.training.train_batch_size // plan.training.micro_batch_size
    scale = 1 if extras.get("loss_normalization") == "tokens" else 1 / samples  # the update divides what is summed over targets
    wanted = {**dict.fromkeys(OPTIMIZERS, own), "train.lamb": {**own, "bias_correction": parameters.get("bias_correction", True)},
              "train.loss_gradient": {"scale": scale},
              "train.clip_factor": {"max_norm": config.get("gradient_clipping", 1.0)},
              "train.learning_rate": {"lr": parameters["lr"]} if "lr" in parameters and "scheduler" not in config else {}}
    compared = 0
    for op in plan.reference.ops:
        attributes = attributes_of(op)
        trained = next((plan.variables[v].name for v in op.variables if op.op in OPTIMIZERS and plan.variables[v].kind == PARAMETER), None)
        group = next((one for one in extras.get("parameter_groups", []) if trained and re.search(one["match"], trained)), {})
        decay = {"weight_decay": group["weight_decay"]} if "weight_decay" in group else {}
        for name, value in {**wanted.get(op.op, {}), **decay}.items():
            compared += 1
            if not isinstance(value, str) and attributes.get(name) != value:
                raise Refusal(f"{op.op} {op.name} has {name} {attributes.get(name)}, the configuration {value}")
    return compared
