"""Buffers that forward changes: which output of the graph is the new value of which, and what an evaluation does with them."""

import contextlib
import functools
import sys

import numpy
import onnx
import torch

from . import Refusal

KIND = "pkg.torch.export.graph_signature.InputSpec.kind"
PERSISTENT = "pkg.torch.export.graph_signature.InputSpec.persistent"
CARRIED = (torch.float32, torch.float64, torch.int32, torch.int64)


def carry_state(model, program, graph) -> dict:
    """Makes what forward makes of each buffer an output of the graph; returns the file's deepstatic.state."""
    changed = _changed(program, graph)
    if not changed:
        return {}
    with evaluation_mode(model.module):
        written = sorted(_written(model) & changed.keys())
    if written:
        print(f"note: forward changes {written[0]}{f' and {len(written) - 1} more' if len(written) > 1 else ''} in evaluation mode, too; an evaluation "
              "computes with what it makes of its samples, and leaves what is there", file=sys.stderr)
    return {buffer: {"value": _as_output(model, program, graph, buffer, value), "evaluation": "computed" if buffer in written else "kept"}
            for buffer, value in sorted(changed.items())}


def lost_state(program, graph) -> list:
    """Buffers whose new value the exporter dropped, since the loss reads none of it."""
    there = {name for node in graph.node for name in (*node.input, *node.output)}
    return sorted(buffer for buffer, value in _changed(program, graph).items() if value not in there)


def _changed(program, graph) -> dict:
    """Buffer -> what forward makes of it. Batch normalizations carry their statistics themselves, and nothing reads what counts their batches."""
    own = {name for node in graph.node if node.op_type == "BatchNormalization" for name in node.input[3:5]
           if any(attribute.name == "training_mode" and attribute.i for attribute in node.attribute)}
    own |= {f"{name.rpartition('.')[0]}.num_batches_tracked".lstrip(".") for name in own}
    return {buffer: value for value, buffer in program.exported_program.graph_signature.buffers_to_mutate.items() if buffer not in own}


def _as_output(model, program, graph, buffer: str, value: str) -> str:
    """The output that holds what forward makes of a buffer."""
    tensor = model.buffers.get(buffer, dict(model.module.named_buffers()).get(buffer))
    if tensor is None or tensor.dtype not in CARRIED:
        kind = "no buffer of the module" if tensor is None else str(tensor.dtype).removeprefix("torch.")
        raise Refusal(f"forward changes the buffer {buffer}, which is {kind}, and a plan would keep its first value; state of float32, float64, "
                      "int32 and int64 is carried from step to step: compute it from the batch, or leave its update out of forward")
    _keep_first_value(model, graph, buffer, tensor)
    made = next(node.meta["val"] for node in program.exported_program.graph.nodes if node.name == value)
    _drop_returned(graph, buffer)
    if made.dtype != tensor.dtype or made.shape != tensor.shape or not any(value in node.output for node in graph.node):
        value = _spread(graph, buffer, value, tensor)  # copy_ converts and broadcasts; and an input is no output
    if all(output.name != value for output in graph.output):
        graph.output.append(onnx.helper.make_tensor_value_info(value, _onnx_type(tensor), list(tensor.shape)))
    return value


def returned_name(buffer: str) -> str:
    """What the output is called under which returning() hands on a buffer."""
    return f"{buffer}::returned"


@contextlib.contextmanager
def returning(module, buffers: list):
    """Lets forward return copies of these buffers, as it leaves them, beside the loss."""
    forward, own = module.forward, vars(module).get("forward")

    @functools.wraps(forward)
    def with_state(*args, **kwargs):
        loss, named = forward(*args, **kwargs), dict(module.named_buffers())
        return (loss, *(named[buffer].clone() for buffer in buffers))
    if buffers:
        module.forward = with_state
    try:
        yield
    finally:
        vars(module).pop("forward", None)
        if own is not None:
            module.forward = own


def _drop_returned(graph, buffer: str) -> None:
    """The values that were copied are there now."""
    name = returned_name(buffer)
    for output in [output for output in graph.output if output.name == name]:
        graph.output.remove(output)
    for node in [node for node in graph.node if name in node.output]:
        graph.node.remove(node)


def _keep_first_value(model, graph, buffer: str, tensor) -> None:
    """The exporter drops buffers that are written alone, which files of weights have all the same."""
    if any(initializer.name == buffer for initializer in graph.initializer):
        return
    if tensor.is_meta:
        raise Refusal(f"buffer {buffer} follows from weights, which are left out: export without --no-weights")
    graph.initializer.append(onnx.numpy_helper.from_array(tensor.detach().numpy(), buffer))
    info = onnx.helper.make_tensor_value_info(buffer, _onnx_type(tensor), list(tensor.shape))
    for key, text in ((KIND, "BUFFER"), (PERSISTENT, str(buffer in model.module.state_dict()))):
        info.metadata_props.add(key=key, value=text)
    graph.value_info.append(info)


def _spread(graph, buffer: str, value: str, tensor) -> str:
    """`value` in the buffer's type and shape, under a name of its own."""
    shape, cast, new = f"{buffer}::shape", f"{buffer}::cast", f"{buffer}::value"
    graph.node.extend([
        onnx.helper.make_node("Constant", [], [shape], value=onnx.numpy_helper.from_array(numpy.array(tensor.shape, numpy.int64))),
        onnx.helper.make_node("Cast", [value], [cast], to=_onnx_type(tensor)), onnx.helper.make_node("Expand", [cast, shape], [new])])
    return new


def _onnx_type(tensor) -> int:
    return onnx.helper.np_dtype_to_tensor_dtype(torch.empty((), dtype=tensor.dtype).numpy().dtype)


def _written(model) -> set:
    """Buffers that forward writes, in the mode that the module is in."""
    module = model.module
    places = [(f"{prefix}.{name}".lstrip("."), part, name, value, value.clone(), value._version)
              for prefix, part in module.named_modules() for name, value in part._buffers.items() if value is not None]
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        module(**model.inputs)
    written = {full for full, part, name, value, _, version in places if part._buffers[name] is not value or value._version != version}
    for _, part, name, value, before, _ in places:
        part._buffers[name] = value
        value.copy_(before)
    return written


@contextlib.contextmanager
def evaluation_mode(module):
    """module.eval(), and afterwards each part in the mode that it was in."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training
