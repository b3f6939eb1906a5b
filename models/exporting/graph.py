"""Module -> model.onnx and model.onnx.data, with what the importer needs written into the file."""

import contextlib
import io
import json
import logging
import re
import warnings
from pathlib import Path

import numpy
import onnx
import torch

from . import Refusal, first_line
from .norms import written_out
from .sources import Model
from .state import KIND, carry_state, lost_state, returned_name, returning

OPSET = 20
LOSS = "loss"
BATCH = "batch"
# Locations and layer boundaries; hints for regrouping. The rest is larger than the graph and holds local paths.
KEPT_NODE_METADATA = ("pkg.torch.onnx.name_scopes", "pkg.torch.onnx.fx_node")


def export_graph(model: Model, folder: Path):
    """Writes the graph (and weights) into `folder`; returns (torch's ONNXProgram, the parsed graph without weights)."""
    path = folder / "model.onnx"
    with written_out(model.module, model.inputs) as modes:
        program, proto = _write(model, path)
        if lost := lost_state(program, proto.graph):
            program, proto = _write(model, path, lost)
    if not model.has_weights:
        _restore_buffers(proto.graph, model.buffers | {name: torch.tensor(True) for name in modes})
    state = carry_state(model, program, proto.graph)
    _mask_by_infinity(proto.graph)
    _guard_hidden_queries(proto.graph)
    _strip_metadata(proto.graph)
    notes = {key: value for key, value in (("state", state), ("modes", modes)) if value}
    for key, value in (model_metadata(model, proto) | notes).items():
        proto.metadata_props.add(key=f"deepstatic.{key}", value=json.dumps(value))
    path.write_bytes(proto.SerializeToString(deterministic=True))
    return program, proto


def _write(model: Model, path, returned=()):
    """Exports to `path`; `returned` are buffers that forward is to return, too."""
    program = _trace(model, path if model.has_weights else None, returned)
    if not model.has_weights:
        # With initializers as inputs, names, types and kinds survive; they are lost without.
        program.save(path, include_initializers=False, keep_initializers_as_inputs=True)
    return program, onnx.load(path, load_external_data=False)


def _trace(model: Model, path, returned):
    """torch.onnx.export; every parameter stays an initializer under its own name with `optimize=False` only."""
    batch = torch.export.Dim(BATCH)  # one object for all inputs, so that the file says "batch" everywhere
    tokens = torch.export.Dim("seq", min=2, max=model.any_of) if model.any_of else None
    shapes = {name: {0: batch} | {d: tokens for d in range(1, value.dim()) if model.symbol_of(value, d)} for name, value in model.inputs.items()}
    names = list(model.inputs)
    try:
        with quiet(), returning(model.module, returned):
            return torch.onnx.export(
                model.module, (), path, kwargs=model.inputs, dynamo=True, optimize=False, external_data=True,
                opset_version=OPSET, input_names=names, output_names=[LOSS, *map(returned_name, returned)],
                dynamic_shapes=shapes, verbose=False,
                custom_translation_table={torch.ops.aten._native_batch_norm_legit_functional.default: _batch_norm,
                                          torch.ops.aten.index_put.default: _index_put, torch.ops.aten.uniform.default: _uniform,
                                          torch.ops.aten.log_sigmoid.default: _log_sigmoid})
    except Exception as error:
        cause, hint = _root_cause(error), ""
        if "Cannot view a tensor" in cause:  # the exporter believes that scaled_dot_product_attention's result lies otherwise in memory than it does
            hint = "; eager attention is written out, so try --attention eager, or attn_implementation='eager' in your own module"
        elif "data-dependent" in cause and getattr(getattr(model.module, "config", None), "problem_type", "") is None:
            hint = "; its loss may look at the values of labels: set its config's problem_type, as to 'single_label_classification'"
        raise Refusal(f"torch.onnx cannot export {model.name}: {cause}{hint}") from error


def _batch_norm(x, w, b, mean, var, training, momentum=0.1, eps=1e-5):
    """BatchNorm in training mode, which torch's own translation writes in inference mode. x: [batch, channels, ...]."""
    from onnxscript import opset20 as op
    w = op.Expand(op.CastLike(1.0, mean), op.Shape(mean)) if w is None else w
    b = op.Expand(op.CastLike(0.0, mean), op.Shape(mean)) if b is None else b
    y, m, v = op.BatchNormalization(x, w, b, mean, var, epsilon=eps, momentum=1 - momentum, training_mode=1)
    return y, m, v, m, v


def _uniform(x, low: float = 0.0, high: float = 1.0):
    """Tensor.uniform_, which torch's own translation lacks."""
    from onnxscript import opset20 as op
    return op.RandomUniformLike(x, low=low, high=high)


def _log_sigmoid(x):
    """log(1 / (1 + e^-x)): torch's own translation takes the logarithm of a sigmoid, which is -inf where that underflows."""
    from onnxscript import opset20 as op
    return op.Neg(op.Softplus(op.Neg(x)))


def _index_put(x, indices, values, accumulate=False):
    """x[mask] = values, which torch's own translation writes by the mask's positions: their number depends on data."""
    from onnxscript import BOOL
    from onnxscript import opset20 as op
    from onnxscript.function_libs.torch_lib.ops.core import aten_index_put
    mask, rank = indices[0], len(x.shape)
    if len(indices) > 1 or mask is None or mask.dtype != BOOL.dtype or len(values.shape) > rank - len(mask.shape):
        return aten_index_put(x, indices, values, accumulate)
    if len(mask.shape) < rank:
        mask = op.Unsqueeze(mask, op.Constant(value_ints=list(range(len(mask.shape), rank))))
    return op.Where(mask, op.Add(x, values) if accumulate else values, x)


def _root_cause(error: BaseException) -> str:
    """The exporter wraps the tracer's error, and appends advice for its own developers; the user's line stands in it."""
    line = ""
    while error.__cause__ is not None:
        line = line or _line_of_node(error)
        error = error.__cause__
    kind, operator = type(error).__name__, re.search(r"\b(?:aten|prims)\.([a-z]\w*|_\w+?)(?:\.\w+)?\b", str(error))
    if operator and kind == "DispatchError":
        return f"{line}ONNX has no operator for torch's {operator[1].strip('_')}; write it with operators that it has, or leave it out of what is trained"
    if operator and kind == "DynamicOutputShapeException":
        return (f"{line}the size of what torch's {operator[1].strip('_')} makes depends on the values of a tensor, and a graph is fixed; use an operator on "
                "whole tensors with a mask (torch.where)")
    place = re.search(r'The following call raised this error:\n +File "(.*)", line (\d+), in \w+\n +(.*)', str(error))
    if place and type(error).__name__ == "GuardOnDataDependentSymNode":
        return f"{place[1]}:{place[2]}: `{place[3]}` depends on the values of a tensor, and a graph is fixed; torch.where chooses among results"
    return f"{f'{place[1]}:{place[2]}: ' if place else ''}{type(error).__name__}: {first_line(error)}"


def _line_of_node(error: BaseException) -> str:
    """The user's line of the node that the exporter had in hand, "FILE:LINE: "; or nothing."""
    frame, place = error.__traceback__, None
    while frame is not None:
        if trace := getattr(frame.tb_frame.f_locals.get("node"), "stack_trace", None):
            place = [*re.finditer(r'File "(.*)", line (\d+), in', trace)][-1:]
        frame = frame.tb_next
    return f"{place[0][1]}:{place[0][2]}: " if place else ""


@contextlib.contextmanager
def quiet():
    """Without the exporter's progress, warnings and dumps of half-traced graphs, which concern its developers."""
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)


def _restore_buffers(graph, buffers: dict) -> None:
    """Turns graph inputs of kind BUFFER back into initializers with their values: only parameters are left out."""
    for value in [v for v in graph.input if metadata(v).get(KIND) == "BUFFER"]:
        if buffers[value.name].is_meta:
            raise Refusal(f"buffer {value.name} follows from weights, which are left out: export without --no-weights")
        graph.initializer.append(onnx.numpy_helper.from_array(buffers[value.name].numpy(), value.name))
        graph.value_info.append(value)
        graph.input.remove(value)


def _mask_by_infinity(graph) -> None:
    """Attention of a query that sees no key is 0 in PyTorch. torch's exporter adds the least number of the type where a boolean mask is false, by
    which such a query sees all keys alike, and then looks for the NaN that only -inf would make: so it becomes that."""
    makers = {node.output[0]: node for node in graph.node}
    for guard in graph.node:
        if guard.op_type != "IsNaN":
            continue
        softmax = makers.get(guard.input[0])
        scores = makers.get(softmax.input[0]) if softmax is not None and softmax.op_type == "Softmax" else None
        if scores is None or scores.op_type != "Add":
            continue
        for mask in (makers.get(name) for name in scores.input):
            least = makers.get(mask.input[2]) if mask is not None and mask.op_type == "Where" else None
            if least is None or least.op_type != "Constant" or least.attribute[0].name != "value":
                continue
            value = onnx.numpy_helper.to_array(least.attribute[0].t)
            if value.size == 1 and value.dtype.kind == "f" and value.item() == numpy.finfo(value.dtype).min:
                least.attribute[0].t.CopyFrom(onnx.numpy_helper.from_array(numpy.full_like(value, -numpy.inf), least.attribute[0].t.name))


def _guard_hidden_queries(graph) -> None:
    """Attention of a query whose float mask is -inf for all keys is 0 in PyTorch: the guard that torch's exporter writes for boolean masks alone."""
    makers = {node.output[0]: node for node in graph.node}
    guarded = {node.input[0] for node in graph.node if node.op_type == "IsNaN"}
    nodes = []
    for node in graph.node:
        nodes.append(node)
        scores = makers.get(node.input[0]) if node.op_type == "Softmax" and node.output[0] not in guarded else None
        if scores is None or scores.op_type != "Add" or not any("scaled_dot_product_attention" in entry.value for entry in node.metadata_props):
            continue
        weights = node.output[0]
        raw, hidden, zero = (f"{weights}.{part}" for part in ("raw", "hidden", "zero"))
        node.output[0] = raw
        nodes += [onnx.helper.make_node("IsNaN", [raw], [hidden]), onnx.helper.make_node("Constant", [], [zero + ".float"], value_float=0.0),
                  onnx.helper.make_node("CastLike", [zero + ".float", raw], [zero]), onnx.helper.make_node("Where", [hidden, zero, raw], [weights])]
    whole = onnx.GraphProto(node=nodes)
    del graph.node[:]
    graph.node.extend(whole.node)


def _strip_metadata(graph) -> None:
    for node in graph.node:
        kept = [entry for entry in node.metadata_props if entry.key in KEPT_NODE_METADATA]
        del node.metadata_props[:]
        node.metadata_props.extend(kept)


def model_metadata(model: Model, proto) -> dict:
    """What the file lacks: see README.md, "Metadata"."""
    present = parameter_names(proto.graph)
    named = dict(model.module.named_parameters(remove_duplicate=False))
    groups = {}
    for name, parameter in named.items():
        groups.setdefault(id(parameter), []).append(name)
    for name, saved in saved_names(model.module).items():
        if saved not in groups[id(named[name])]:
            groups[id(named[name])].append(saved)
    return {
        "model": {"name": model.name, "size": model.size},
        "trainable": [name for name in present if named[name].requires_grad],
        "tied": [group for group in groups.values() if len(group) > 1],
        "init": {name: model.init[name] for name in present},
        "tokens": model.tokens,
    }


def saved_names(module) -> dict:
    """Name -> what transformers calls the parameter in its files, where that is another name. Some classes got new names since these were defined."""
    if not hasattr(module, "save_pretrained"):
        return {}
    from transformers.core_model_loading import revert_weight_conversion
    values = {name: torch.empty_like(parameter, device="meta") for name, parameter in module.named_parameters(remove_duplicate=False)}
    names = {id(value): name for name, value in values.items()}
    return {names[id(value)]: saved for saved, value in revert_weight_conversion(module, values).items() if names.get(id(value), saved) != saved}


def state_of(proto) -> dict:
    """Buffer -> its entry in deepstatic.state."""
    return noted(proto, "state", {})


def noted(proto, key: str, otherwise):
    """The file's deepstatic entry of that name."""
    text = metadata(proto).get(f"deepstatic.{key}")
    return otherwise if text is None else json.loads(text)


def parameter_names(graph) -> list:
    """Names of the graph's parameters, in file order, initializers or not."""
    kinds = {v.name: metadata(v).get(KIND) for v in (*graph.value_info, *graph.input)}
    values = [t.name for t in graph.initializer] + [v.name for v in graph.input]
    return [name for name in values if kinds.get(name) == "PARAMETER"]


def metadata(holder) -> dict:
    """The metadata_props of a node, value, graph or model."""
    return {entry.key: entry.value for entry in holder.metadata_props}


def node_constants(graph) -> dict:
    """Output name -> array, for Constant nodes that hold a tensor."""
    return {node.output[0]: onnx.numpy_helper.to_array(attribute.t) for node in graph.node if node.op_type == "Constant"
            for attribute in node.attribute if attribute.name == "value"}


def initializer_bytes(graph, folder: Path):
    """Yields (name, uint8 array of the little-endian bytes), external data memory-mapped from `folder`."""
    maps = {}
    for tensor in graph.initializer:
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            yield tensor.name, numpy.frombuffer(onnx.numpy_helper.to_array(tensor).tobytes(), numpy.uint8)
            continue
        where = {entry.key: entry.value for entry in tensor.external_data}
        if where["location"] not in maps:
            maps[where["location"]] = numpy.memmap(folder / where["location"], numpy.uint8, "r")
        offset = int(where.get("offset", 0))
        yield tensor.name, maps[where["location"]][offset:offset + int(where["length"])]
