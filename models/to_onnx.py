#!/usr/bin/env python3
"""Writes trained weights into the ONNX file that they came from: the same graph, opset, names and metadata, other values.

    ds-run export run --onnx trained.onnx --like model.onnx [--weights FOLDER]

runs this script. Needs the packages onnx and safetensors, and memory for the model.
"""

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from exporting import Refusal, first_line
from exporting.arguments import Parser

LISTED = 5  # names in a sentence


def main(arguments=None) -> int:
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path, help="a safetensors file, as ds-run --export writes it")
    parser.add_argument("like", type=Path, help="the ONNX file that was trained")
    parser.add_argument("out", type=Path, help="the ONNX file to write")
    parser.add_argument("--weights", dest="folder", type=Path, help="what --weights named for ds-opt: a safetensors file, or a folder of such")
    args = parser.parse_args(arguments)
    try:
        import numpy  # noqa: F401
        import onnx  # noqa: F401
        import safetensors  # noqa: F401
    except ImportError as error:
        print(f"error: --onnx: ONNX files are read by Python's onnx, and {sys.executable} has no module {error.name}; pip install onnx safetensors",
              file=sys.stderr)
        return 1
    try:
        print(write(args.weights, args.like, args.out, args.folder))
    except Refusal as refusal:
        print(f"error: {refusal}", file=sys.stderr)
        return 1
    return 0


def listed(names) -> str:
    names = sorted(names)
    return ", ".join(names[:LISTED]) + (f" and {len(names) - LISTED} more" if len(names) > LISTED else "")


def write(weights: Path, like: Path, out: Path, folder: Path | None) -> str:
    """What was written, as a sentence."""
    model, external = load(like)
    values = tensors_of(weights)
    adapters = take_adapters(values, model)
    places = Places(model.graph)
    copies = places.transposed_copies(values)
    placed = set()
    for name, (value, names) in values.items():
        for each, tensor in [(each, place) for each in names if (place := places.take(each))]:
            put(tensor, adapters[name].merged(value, each) if name in adapters else value, name, like)
            placed.add(name)
    if folder and placed < values.keys():
        absent = {name: value for name, (value, _) in values.items() if name not in placed}
        placed |= put_by_value(places, absent, folder, values.keys(), like, adapters)
    if missing := values.keys() - placed:
        raise Refusal(f"--like {like} has no place for {len(missing)} of the {len(values)} tensors of the run: {listed(missing)}; give the file that was "
                      f"trained, and with --weights FOLDER the folder in which ds-opt found their names")
    for table, copy in copies:
        put(copy, values[table][0].T, table, like)
    save(model, external, like, out)
    said = f"wrote {out}: {len(placed)} tensors of the run" + (f", with the adapters of {len(adapters)} merged into them" if adapters else "")
    return said + (f"; {listed(copy.name for _, copy in copies)} again as the transposed copy of {listed(table for table, _ in copies)}" if copies else "")


def put_by_value(places, values: dict, folder: Path, names, like: Path, adapters: dict) -> set:
    """Writes tensors under the names of a folder to where the file has the folder's values: an exporter has renamed them, transposed them or cut them
    into runs of rows. Returns the names of those that are there as a whole."""
    from onnx import TensorProto, numpy_helper

    before = originals_of(folder, values)
    held = dict.fromkeys(values, 0)
    floats = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)
    for name, tensor in places.tensors.items():
        if name in names or tensor.data_type not in floats:
            continue
        stands = numpy_helper.to_array(tensor)
        found = {each: part for each, original in before.items() if (part := part_of(original, stands))}
        if len(found) > 1:
            raise Refusal(f"--weights {folder}: {name} of {like} has the values of {len(found)} of its tensors, {listed(found)}, and nothing says which it is; "
                          f"compile without --weights, and train under the file's own names")
        for each, part in found.items():
            value = values[each]
            put(tensor, part(adapters[each].merged(value, name, is_turning(part, value)) if each in adapters else value), each, like)
            held[each] += stands.size
    return {name for name, count in held.items() if count >= values[name].size}


def originals_of(folder: Path, names) -> dict:
    """{a name of the run: the tensor of the folder}; names may lack a prefix such as model."""
    from safetensors import SafetensorError, safe_open

    files = [folder] if folder.is_file() else sorted(folder.glob("*.safetensors"))
    originals = {}
    for path in files:
        try:
            with safe_open(str(path), framework="numpy") as file:
                for key in file.keys():
                    for name in names:
                        if name == key or name.endswith("." + key) or key.endswith("." + name):
                            originals[name] = file.get_tensor(key).astype("float32" if str(file.get_slice(key).get_dtype()) == "BF16" else None)
        except (OSError, SafetensorError) as error:
            raise Refusal(f"--weights {path} cannot be read: {first_line(error)}") from error
    if not originals:
        raise Refusal(f"--weights {folder} has none of the tensors of the run that have no place in the file: {listed(names)}; give the folder that ds-opt was given")
    return originals


def part_of(original, stands):
    """How `stands` follows from `original`, as a function; None where it does not."""
    import numpy

    if stands.size == original.size:
        if numpy.array_equal(stands.ravel(), original.ravel()):
            return lambda new: new.reshape(stands.shape)
        if original.ndim == 2 and numpy.array_equal(stands, original.T):
            return lambda new: new.T
    elif stands.ndim == original.ndim and 0 < stands.size < original.size:
        for turned in (False, True)[:stands.ndim]:
            rows = stands.T if turned else stands
            if rows.shape[1:] != original.shape[1:]:
                continue
            begins = numpy.flatnonzero((original == rows[0]).reshape(len(original), -1).all(1))
            for begin in begins:
                if numpy.array_equal(original[begin:begin + len(rows)], rows):
                    return lambda new: new[begin:begin + len(rows)].T if turned else new[begin:begin + len(rows)]
    return None


def is_turning(part, value) -> bool:
    """Whether `part_of` of a matrix with several columns transposes it."""
    import numpy

    row = part(numpy.arange(value.size).reshape(value.shape)).ravel() if value.ndim == 2 else []
    return len(row) > 1 and row[1] - row[0] != 1


class Adapter:
    """A [rank, inputs] and B [outputs, rank] of a weight that multiplies activations; `graph` says which way it lies."""

    def __init__(self, a, b, graph):
        self.a, self.b, self.graph = a, b, graph

    def merged(self, value, name: str, turned=False):
        """W + B A in double precision, as W is stored: `name` is its tensor of the graph, which is `turned` beside it."""
        import numpy

        change = self.b.astype(numpy.float64) @ self.a.astype(numpy.float64)
        if value.shape != change.shape or (value.shape[0] == value.shape[1] and has_inputs_first(self.graph, name) != turned):
            change = change.T
        return value.astype(numpy.float64) + change


def take_adapters(values: dict, model) -> dict:
    """{the name of a weight: its adapter}, which `values` then has no more. Those of the file itself stay what they are."""
    found, own, graph = {}, {tensor.name for tensor in model.graph.initializer}, without_functions(model)
    for name in [each for each in values if {f"{each}.lora_A", f"{each}.lora_B"} <= values.keys() - own]:
        (a, _), (b, _) = values.pop(f"{name}.lora_A"), values.pop(f"{name}.lora_B")
        found[name] = Adapter(a, b, graph)
    return found


def without_functions(model):
    """A graph with the nodes of the model, in which those of its functions stand instead of their calls."""
    import onnx
    from onnx.inliner import inline_local_functions

    if not model.functions:
        return model.graph
    graph = onnx.GraphProto(name="nodes", node=model.graph.node, input=model.graph.input, output=model.graph.output)
    return inline_local_functions(onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import, functions=model.functions, graph=graph)).graph


def has_inputs_first(graph, name: str) -> bool:
    """Whether rows of a square matrix are inputs, by the first product that reads it."""
    turned = {name: False}
    for node in graph.node:
        for index, each in enumerate(node.input):
            if each not in turned:
                continue
            if node.op_type in ("Transpose", "Identity", "Cast"):
                turned[node.output[0]] = turned[each] != (node.op_type == "Transpose")
            elif node.op_type in ("MatMul", "Gemm") and index < 2:
                flags = {attribute.name: attribute.i for attribute in node.attribute}
                return ((index == 1) != bool(flags.get("transB" if index else "transA"))) != turned[each]
    raise Refusal(f"{name} is square, and no MatMul or Gemm of the graph says which of its dimensions are inputs, so its adapter cannot be merged; "
                  "leave it out of --lora-targets, or take the adapters alone (ds-run export -o FILE --adapter)")


def load(path: Path):
    """(the model with all its values, {a tensor whose bytes stand beside it: their file})."""
    import onnx
    from onnx.external_data_helper import ExternalDataInfo, load_external_data_for_model, uses_external_data

    if path.is_dir():
        path = path / "model.onnx"
    try:
        model = onnx.load(str(path), load_external_data=False)
        external = {tensor.name: path.parent / ExternalDataInfo(tensor).location for tensor in model.graph.initializer if uses_external_data(tensor)}
        load_external_data_for_model(model, str(path.parent))
    except Exception as error:  # onnx, protobuf and the file system have exceptions of their own
        raise Refusal(f"--like {path} cannot be read as an ONNX model: {first_line(error)}") from error
    return model, external


def tensors_of(path: Path) -> dict:
    """{name: (value, [the name, and those of tied parameters])}."""
    from safetensors import safe_open

    with safe_open(str(path), framework="numpy") as file:
        values = {name: (file.get_tensor(name), [name]) for name in file.keys()}
        for alias, name in (file.metadata() or {}).items():
            if name in values:
                values[name][1].append(alias)
    return values


def with_bodies(graph):
    """The graph, and those of its control flow."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from with_bodies(attribute.g)


class Places:
    """The tensors of a graph and its control flow by the names that ds-opt gives them: initializers, Constant nodes, Identity nodes that stand for a parameter which had
    the values of another when the file was written, and parameters that the file left out."""

    def __init__(self, graph):
        self.graph = graph
        graphs = list(with_bodies(graph))[::-1]  # of equal names the outer one counts
        self.tensors = {tensor.name: tensor for each in graphs for tensor in each.initializer}
        self.makers = {output: node for each in graphs for node in each.node for output in node.output}
        self.own = {output for node in graph.node for output in node.output}
        self.left_out = {value.name: value for value in graph.input}

    def take(self, name: str):
        """The tensor to write into, or None."""
        import onnx

        if name in self.tensors:
            return self.tensors[name]
        node = self.makers.get(name)
        if node and node.op_type == "Constant":
            return node.attribute[0].t
        if node and node.op_type == "Identity" and node.input[0] in self.tensors and name in self.own:
            self.graph.node.remove(node)
        elif name in self.left_out:
            self.graph.input.remove(self.left_out[name])
        else:
            return None
        tensor = self.graph.initializer.add()
        tensor.name = name
        tensor.data_type = self.tensors[node.input[0]].data_type if node else self.left_out[name].type.tensor_type.elem_type
        tensor.dims.extend(self.tensors[node.input[0]].dims if node else [d.dim_value for d in self.left_out[name].type.tensor_type.shape.dim])
        tensor.data_location = onnx.TensorProto.DEFAULT
        return tensor

    def transposed_copies(self, values):
        """[(table, the copy)] of a head that is tied to an embedding and that folding has transposed: ds-opt trains one parameter there."""
        from onnx import numpy_helper

        tables = {node.input[0] for node in self.graph.node if node.op_type == "Gather"} & values.keys() & self.tensors.keys()
        heads = {name for node in self.graph.node if node.op_type == "MatMul" for name in node.input} & self.tensors.keys() - values.keys()
        found = []
        for head in sorted(heads):
            copy = self.tensors[head]
            for table in sorted(tables):
                if list(copy.dims) == list(self.tensors[table].dims)[::-1]:
                    if (numpy_helper.to_array(copy) == numpy_helper.to_array(self.tensors[table]).T).all():
                        found.append((table, copy))
                        break
        return found


def put(tensor, value, name: str, like: Path):
    """Gives a tensor of the file another value in the file's own type."""
    import numpy
    from onnx import helper, numpy_helper

    if list(tensor.dims) != list(value.shape):
        raise Refusal(f"{name} has shape {list(value.shape)} in the run, but {list(tensor.dims)} in {like}; give the file that was trained")
    with numpy.errstate(over="ignore"):
        stored = value.astype(helper.tensor_dtype_to_np_dtype(tensor.data_type))
    if not numpy.isfinite(stored.astype(numpy.float64)).all() and numpy.isfinite(value).all():
        raise Refusal(f"{name} has a value that is too large for {stored.dtype}, its type in {like}; give a file in float32")
    raw = numpy_helper.from_array(stored).raw_data
    for field in ("float_data", "double_data", "int32_data", "int64_data", "uint64_data", "external_data"):
        tensor.ClearField(field)
    tensor.raw_data = raw


def save(model, external, like: Path, out: Path):
    """Both files whole, or neither; bytes stand beside the model where they did in `like`."""
    import onnx
    from onnx.external_data_helper import set_external_data

    data = out.with_name(out.name + ".data")
    if data.resolve() in {file.resolve() for file in external.values()}:
        raise Refusal(f"--onnx {out} would write {data}, which belongs to {like}; give another name")
    try:
        folder = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    except OSError as error:
        raise Refusal(f"--onnx {out} cannot be written: {error.strerror}") from error
    try:
        for tensor in model.graph.initializer:
            if tensor.name in external:
                set_external_data(tensor, data.name)
        onnx.save(model, str(folder / out.name))
        if external:
            os.replace(folder / data.name, data)
        os.replace(folder / out.name, out)
    except Exception as error:  # onnx and protobuf have exceptions of their own, as for a model over 2 GiB
        raise Refusal(f"--onnx {out} cannot be written: {getattr(error, 'strerror', None) or first_line(error)}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
