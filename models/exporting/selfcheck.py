"""What must hold of an export before anyone gets it; each failure is one sentence."""

import dataclasses
import re
import sys
from pathlib import Path

import numpy
import onnx
import torch
from torch.overrides import TorchFunctionMode

from . import Refusal
from .graph import BATCH, LOSS, initializer_bytes, metadata, node_constants, noted, parameter_names, state_of
from .norms import MODE
from .sources import Model
from .state import evaluation_mode

LOSS_CHECK_LIMIT = 200_000_000  # parameters; above, a second copy of weights and activations may not fit
RELATIVE_TOLERANCE = 1e-5
BATCH_NORM_TOLERANCE = 1e-4  # statistics of few values amplify rounding
NARROW_TOLERANCE = 1e-2  # where the file computes with 16 bits, which are rounded after other steps
RANDOM = ("Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")  # from a generator of the runtime's own
FLOAT_TYPES = (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)


@dataclasses.dataclass
class Losses:
    """One loss on the same inputs, dropout off; None where it was not computed."""
    torch: float | None = None
    onnxruntime: float | None = None

    @property
    def difference(self) -> float:
        """Relative to torch's."""
        return abs(self.onnxruntime - self.torch) / max(abs(self.torch), sys.float_info.min)


def check_export(model: Model, program, proto, folder: Path) -> Losses:
    """Checks names, shapes, bits and the loss; raises Refusal on the first that does not hold."""
    check_interface(proto.graph, list(model.inputs), {carried["value"] for carried in state_of(proto).values()})
    check_nothing_lost(proto.graph)
    check_parameters(model, program, proto.graph, folder)
    losses = check_loss(model, proto, folder)
    if losses.onnxruntime is not None and state_of(proto):
        check_evaluation(model, proto, folder)
    return losses


def check_interface(graph, names: list, state: set) -> None:
    """Inputs as named, each with the symbolic batch; beside what becomes of `state` the loss alone, rank 0 and floating."""
    inputs = {value.name: value for value in graph.input}
    for name in names:
        if name not in inputs:
            raise Refusal(f"input '{name}' is not used by the loss; leave it out of forward and of the example inputs")
        first = inputs[name].type.tensor_type.shape.dim[0]
        if first.dim_param != BATCH:
            raise Refusal(f"input '{name}' has batch dimension {first.dim_param or first.dim_value} instead of the symbol "
                          f"'{BATCH}'; forward must not use the batch size as a fixed number")
    outputs = [value.name for value in graph.output if value.name not in state]
    result = graph.output[0].type.tensor_type
    if outputs != [LOSS] or result.elem_type not in FLOAT_TYPES or len(result.shape.dim):
        raise Refusal(f"forward must return one value, the loss, a floating-point scalar; the graph's outputs are "
                      f"{', '.join(outputs)}, the first of rank {len(result.shape.dim)}")


def check_nothing_lost(graph) -> None:
    """Refuses what torch's exporter leaves out without a word."""
    constants = node_constants(graph)
    for node in graph.node:
        call = metadata(node).get("pkg.torch.onnx.fx_node", "")
        if node.op_type == "Dropout" and len(node.input) < 3 and constants.get(node.input[1], 1) > 0:
            raise Refusal(f"the dropout of {_scope(node)} was exported as a no-op (scaled_dot_product_attention with "
                          "dropout_p > 0); apply torch.nn.functional.dropout to the probabilities of eager attention")
        smoothing = re.search(r"cross_entropy_loss\.default\]\(args = \((?:[^,()]+, ){5}([\d.e+-]+)", call)
        if smoothing and float(smoothing[1]) != 0:
            raise Refusal(f"the label_smoothing of {smoothing[1]} in {_scope(node)} is lost by the exporter; "
                          "write the smoothed loss out, or use label_smoothing=0")


def _scope(node) -> str:
    """The module and operator a node came from, for messages."""
    return metadata(node).get("pkg.torch.onnx.name_scopes", node.name)


def check_parameters(model: Model, program, graph, folder: Path) -> None:
    """Every parameter in use is in the file, under one of its names, with its bits."""
    present = set(parameter_names(graph))
    bits = dict(initializer_bytes(graph, folder))
    named = dict(model.module.named_parameters(remove_duplicate=False))
    names = {}
    for name, parameter in named.items():
        names.setdefault(id(parameter), []).append(name)
    for name in _used_parameters(program):
        found = [alias for alias in names[id(named[name])] if alias in present]
        if not found:
            raise Refusal(f"parameter {name} is used by the loss but is not in the exported file")
        if model.has_weights and not numpy.array_equal(bits[found[0]], _bits(named[name])):
            raise Refusal(f"parameter {name} does not have the module's values in the exported file")


def _bits(tensor):
    """The bytes of a tensor, row-major."""
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy()


def _used_parameters(program) -> list:
    """Parameters that the traced program reads; the exporter drops the others."""
    exported = program.exported_program
    used = {node.name for node in exported.graph.nodes if node.op == "placeholder" and node.users}
    return [spec.target for spec in exported.graph_signature.input_specs
            if spec.kind == torch.export.graph_signature.InputKind.PARAMETER and spec.arg.name in used]


def computes_narrow(proto) -> bool:
    """Whether the graph casts to 16 bits."""
    narrow = (onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)
    return any(attribute.name == "to" and attribute.i in narrow for node in proto.graph.node for attribute in node.attribute)


def _tolerance(proto) -> float:
    if computes_narrow(proto):
        return NARROW_TOLERANCE
    return BATCH_NORM_TOLERANCE if any(node.op_type == "BatchNormalization" for node in proto.graph.node) else RELATIVE_TOLERANCE


def check_loss(model: Model, proto, folder: Path) -> Losses:
    """ONNX Runtime's loss on the file equals torch's on the module, on another batch size than the example's."""
    parameters = sum(p.numel() for p in model.module.parameters())
    drawn = sorted({node.op_type for part in (proto.graph, *proto.functions) for node in part.node} & set(RANDOM))
    reason = (f"its {', '.join(drawn)} draw other numbers than PyTorch" if drawn else
              "the file has no weights" if not model.has_weights else
              f"{parameters:,} parameters, checked up to {LOSS_CHECK_LIMIT:,}" if parameters > LOSS_CHECK_LIMIT else None)
    if reason:
        print(f"note: loss not compared with ONNX Runtime: {reason}", file=sys.stderr)
        return Losses()
    inputs = {name: torch.cat([value, value[:1]]) for name, value in model.inputs.items()}
    losses = Losses(torch=_torch_loss(model, inputs))
    try:
        losses.onnxruntime = _onnxruntime_loss(proto, folder, inputs)
    except NotImplementedError as error:
        print(f"note: loss not compared with ONNX Runtime: {error}", file=sys.stderr)
        return losses
    tolerance = _tolerance(proto)
    if not losses.difference <= tolerance:
        raise Refusal(f"the exported file computes loss {losses.onnxruntime:.8g}, PyTorch {losses.torch:.8g}: relative "
                      f"difference {losses.difference:.1e} exceeds {tolerance:.0e}")
    return losses


def check_evaluation(model: Model, proto, folder: Path) -> None:
    """Says so where an evaluation, with state as it is, has not the loss of the module in evaluation mode."""
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    old = {carried["value"]: buffer for buffer, carried in state_of(proto).items() if carried["evaluation"] == "kept"}
    for node in copy.graph.node:
        for index, name in enumerate(node.input):
            node.input[index] = old.get(name, name)
    for tensor in copy.graph.initializer:
        if tensor.name in noted(proto, "modes", []):
            tensor.CopyFrom(onnx.numpy_helper.from_array(numpy.array(False), tensor.name))
    # The graph's own batch normalizations are those of training.
    norms = [part for name, part in model.module.named_modules() if isinstance(part, torch.nn.modules.batchnorm._BatchNorm)
             and part.training and part.momentum is not None and f"{name}.{MODE}".lstrip(".") not in noted(proto, "modes", [])]
    with evaluation_mode(model.module):
        for part in norms:
            part.training = True
        losses = Losses(_torch_loss(model, model.inputs), _onnxruntime_loss(copy, folder, model.inputs))
    if not losses.difference <= _tolerance(proto):
        print(f"note: the loss of an evaluation is not that of module.eval(): {losses.onnxruntime:.8g}, where PyTorch has {losses.torch:.8g}; forward "
              f"changes {', '.join(list(state_of(proto))[:3])}, and computes otherwise in evaluation mode", file=sys.stderr)


class NoDropout(TorchFunctionMode):
    """Dropout off wherever it is called, the modules still in training mode."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        name = getattr(function, "__name__", "")
        if name in ("dropout", "dropout_", "dropout1d", "dropout2d", "dropout3d"):
            return args[0] if args else kwargs["input"]
        if name == "scaled_dot_product_attention":
            kwargs["dropout_p"], args = 0.0, args[:4] + args[5:]
        return function(*args, **kwargs)


def _torch_loss(model: Model, inputs: dict) -> float:
    """The module's loss; running statistics stay as they are."""
    buffers = {name: value.clone() for name, value in model.module.named_buffers()}
    with torch.no_grad(), NoDropout():
        return torch.func.functional_call(model.module, buffers, args=(), kwargs=inputs).item()


def _onnxruntime_loss(proto, folder: Path, inputs: dict) -> float:
    """The file's loss, with dropout off and ONNX Runtime's own rewrites off (they delete dropout in training mode)."""
    import onnxruntime
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    copy.graph.initializer.append(onnx.numpy_helper.from_array(numpy.array(False), "selfcheck.dropout_off"))
    for node in copy.graph.node:
        if node.op_type == "Dropout" and len(node.input) == 3:
            node.input[2] = "selfcheck.dropout_off"
    path = folder / "selfcheck.onnx"  # beside the weights that it names
    path.write_bytes(copy.SerializeToString())
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        return session.run([LOSS], {name: value.numpy() for name, value in inputs.items()})[0].item()
    except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented as error:
        raise NotImplementedError(str(error).splitlines()[0]) from error
    except Exception as error:
        raise Refusal(f"ONNX Runtime cannot run the exported file: {str(error).splitlines()[0]}") from error
    finally:
        path.unlink()
