#!/usr/bin/env python3
"""Writes cases/: small models of opsets 18 to 24, which libonnx-testdata lacks, with inputs and what ONNX Runtime gives.

    build/venv/bin/python test/conformance/onnx/make_cases.py

Needs onnx and onnxruntime; run it again after adding a case, and commit what it writes. Operators that ONNX Runtime does not
have yet are judged by onnx.reference.
"""

import shutil
from pathlib import Path

import numpy
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

FOLDER = Path(__file__).parent / "cases"
IR_VERSION = 10


def floats(*shape, seed=0):
    return numpy.random.default_rng(seed).standard_normal(shape).astype(numpy.float32)


def ints(values, dtype=numpy.int64):
    return numpy.array(values, dtype)


class Model:
    """Nodes over named inputs and constants; every result that no node reads is an output."""

    def __init__(self, name, opset, **inputs):
        self.name, self.opset, self.inputs, self.constants, self.nodes = name, opset, inputs, {}, []

    def op(self, kind, *inputs, outputs=1, **attributes):
        names = [f"{kind}_{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, [self.named(value) for value in inputs], names, **attributes))
        return names if outputs > 1 else names[0]

    def named(self, value):
        if isinstance(value, str):
            return value
        self.constants[f"c{len(self.constants)}"] = numpy.asarray(value)
        return f"c{len(self.constants) - 1}"

    def proto(self, outputs):
        inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
                  for name, value in self.inputs.items()]
        constants = [numpy_helper.from_array(value, name) for name, value in self.constants.items()]
        graph = helper.make_graph(self.nodes, self.name, inputs, outputs, constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=IR_VERSION)

    def results(self, model, names):
        """Of a model whose outputs have no types. The evaluator has not all Scans, and stacks no results of a Loop."""
        if {"Loop", "Scan"} & {node.op_type for node in self.nodes}:
            return onnxruntime.InferenceSession(model.SerializeToString()).run(names, self.inputs)
        return ReferenceEvaluator(model).run(names, self.inputs)

    def write(self):
        read = {name for node in self.nodes for name in node.input}
        names = [name for node in self.nodes for name in node.output if name not in read]
        untyped = self.proto([helper.make_empty_tensor_value_info(name) for name in names])
        results = self.results(untyped, names)
        outputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(result.dtype), result.shape)
                   for name, result in zip(names, results)]
        model = self.proto(outputs)
        try:
            results = onnxruntime.InferenceSession(model.SerializeToString()).run(names, self.inputs)
            judge = "ONNX Runtime"
        except (onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented, onnxruntime.capi.onnxruntime_pybind11_state.Fail) as why:
            judge = f"onnx.reference ({str(why).splitlines()[0][:80]})"
        folder = FOLDER / f"test_opset{self.opset}_{self.name}"
        data = folder / "test_data_set_0"
        data.mkdir(parents=True)
        onnx.save(model, folder / "model.onnx")
        for kind, named in (("input", self.inputs), ("output", dict(zip(names, results)))):
            for i, (name, value) in enumerate(named.items()):
                (data / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(numpy.asarray(value), name).SerializeToString())
        print(f"{folder.name}: {judge}")


def reductions():
    m = Model("reductions", 18, x=floats(2, 3, 4))
    for kind in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare",
                 "ReduceLogSumExp"):
        m.op(kind, "x", ints([-1, 0]), keepdims=0)
        m.op(kind, "x", ints([1]))
    m.op("ReduceSum", "x", noop_with_empty_axes=1)
    return m


def movement():
    m = Model("movement", 18, x=floats(3, 7))
    m.op("Split", "x", outputs=3, num_outputs=3, axis=1)
    m.op("Pad", "x", ints([1, 2]), "", ints([-1]))
    m.op("Pad", "x", ints([1, 2, 0, 1]), mode="reflect")
    m.op("Slice", "x", ints([-1]), ints([-99]), ints([1]), ints([-2]))
    return m


def scatters():
    m = Model("scatters", 18, x=floats(4, 3), i=ints([[0, 1, 2], [0, 3, 2]]), u=floats(2, 3, seed=1), n=ints([[1], [3]]))
    for reduction in ("add", "mul", "max", "min"):
        m.op("ScatterElements", "x", "i", "u", axis=0, reduction=reduction)
        m.op("ScatterND", "x", "n", "u", reduction=reduction)
    m.op("Mish", "x")
    return m


def padding():
    m = Model("padding", 19, x=floats(4, 3))
    m.op("Pad", "x", ints([1, 2, 0, 1]), mode="wrap")
    m.op("Pad", "x", ints([1, 2, 0, 1]), mode="edge")
    m.op("Cast", m.op("Greater", "x", numpy.float32(0)), to=onnx.TensorProto.INT32)
    m.op("Reshape", "x", ints([2, -1]))
    return m


def activations():
    m = Model("activations", 20, x=floats(3, 5))
    m.op("Gelu", "x")
    m.op("Gelu", "x", approximate="tanh")
    m.op("IsNaN", "x")
    m.op("IsInf", m.op("Div", "x", m.op("Relu", "x")))
    m.op("ReduceMax", "x", ints([0]))
    return m


def attention_mask():
    """What exporters make of an attention mask that is fed: integers and bools at run time."""
    m = Model("attention_mask", 20, mask=ints([[1, 1, 1, 0], [1, 0, 0, 0]]), scores=floats(2, 1, 4, 4))
    positions = m.op("Sub", m.op("CumSum", "mask", numpy.array(1)), ints([1]))
    m.op("Where", m.op("Equal", "mask", ints([0])), ints([1]), positions)
    keep = m.op("Cast", "mask", to=onnx.TensorProto.BOOL)
    causal = m.op("LessOrEqual", ints([[0, 1, 2, 3]]), ints([[0], [1], [2], [3]]))
    allowed = m.op("And", m.op("Unsqueeze", keep, ints([1, 2])), causal)
    m.op("Softmax", m.op("Where", allowed, "scores", numpy.float32(-1e9)), axis=-1)
    m.op("ReduceSum", "mask", ints([1]), keepdims=0)
    m.op("ReduceMax", positions, ints([1]))
    m.op("ReduceMin", positions, ints([0]), keepdims=0)
    return m


def labels():
    """Labels that are moved and compared at run time."""
    m = Model("labels", 20, labels=ints([[3, -100, 1], [0, 2, -100]]), logits=floats(2, 3, 4))
    m.op("Pad", m.op("Slice", "labels", ints([1]), ints([9]), ints([1])), ints([0, 0, 0, 1]), numpy.array(-100))
    safe = m.op("Max", "labels", ints(0))
    m.op("GatherElements", "logits", m.op("Unsqueeze", safe, ints([2])), axis=2)
    m.op("OneHot", safe, numpy.array(4), numpy.array([0.0, 1.0], numpy.float32))
    m.op("Concat", m.op("Transpose", "labels", perm=[1, 0]), ints([[7, 8]]), axis=0)
    m.op("GatherND", "logits", ints([[0], [1]]), batch_dims=1)
    m.op("Expand", m.op("Not", m.op("Equal", "labels", ints(-100))), ints([2, 2, 3]))
    m.op("Mod", "labels", ints([[3, 7, -4]]))
    return m


def routing():
    """A static mixture of experts: top-k, softmax of what was chosen, one-hot masks."""
    m = Model("routing", 21, x=floats(5, 4))
    values, indices = m.op("TopK", "x", ints([2]), outputs=2, axis=-1)
    m.op("Softmax", values, axis=-1)
    hot = m.op("OneHot", indices, numpy.array(4), numpy.array([0, 1], numpy.int64))
    m.op("ReduceSum", hot, ints([0, 1]), keepdims=0)
    m.op("ArgMax", "x", axis=1, keepdims=0)
    m.op("ArgMin", "x", axis=0, select_last_index=1)
    return m


def losses():
    m = Model("losses", 22, x=floats(4, 3), labels=ints([0, 2, 1, 1]))
    for reduction in ("mean", "sum", "none"):
        m.op("NegativeLogLikelihoodLoss", m.op("LogSoftmax", "x", axis=1), "labels", numpy.array([1, 2, 0.5], numpy.float32),
             reduction=reduction)
    m.op("SoftmaxCrossEntropyLoss", "x", "labels", outputs=2, ignore_index=1)
    return m


def rectified():
    m = Model("rectified", 22, x=floats(3, 5))
    for kind in ("Elu", "Selu", "HardSigmoid", "HardSwish", "Softplus", "Softsign", "ThresholdedRelu", "LeakyRelu", "Sin", "Cos",
                 "Tan", "Atan", "Asinh", "Sinh", "Cosh", "Round"):
        m.op(kind, "x")
    return m


def einsum():
    m = Model("einsum", 23, x=floats(2, 3, 4), y=floats(2, 5, 4, seed=1), z=floats(5, seed=2))
    m.op("Einsum", "x", "y", equation="bij,bkj->bik")
    m.op("Einsum", "x", "y", "z", equation="bij,bkj,k->i")
    m.op("Einsum", "x", equation="...i->...")
    return m


def newest():
    m = Model("newest", 24, x=floats(3, 5))
    m.op("Swish", "x", alpha=1.5)
    values, indices = m.op("TopK", "x", ints([3]), outputs=2, largest=0)
    m.op("Squeeze", m.op("Unsqueeze", values, ints([0])))
    m.op("Identity", indices)
    m.op("Transpose", "x")
    return m


def scan():
    """Two inputs taken apart along other dimensions than the first, one of them backwards, and results likewise."""
    values = [helper.make_empty_tensor_value_info(name) for name in ("h", "row", "column", "after", "sum")]
    body = helper.make_graph([helper.make_node("Mul", ["row", "column"], ["product"]), helper.make_node("Add", ["h", "product"], ["after"]),
                              helper.make_node("Sub", ["after", "row"], ["sum"])], "body", values[:3], values[3:])
    m = Model("scan", 21, h=floats(4), x=floats(4, 3), y=floats(3, 4, seed=1))
    m.op("Scan", "h", "x", "y", outputs=2, body=body, num_scan_inputs=2, scan_input_axes=[1, 0], scan_input_directions=[1, 0],
         scan_output_axes=[1], scan_output_directions=[1])
    return m


def loop():
    """A loop whose results are stacked, and whose condition ends it."""
    kinds = [("i", onnx.TensorProto.INT64, []), ("go", onnx.TensorProto.BOOL, []), ("h", onnx.TensorProto.FLOAT, [2, 3]),
             ("early", onnx.TensorProto.BOOL, []), ("after", onnx.TensorProto.FLOAT, [2, 3]), ("seen", onnx.TensorProto.FLOAT, [2, 3])]
    values = [helper.make_tensor_value_info(*kind) for kind in kinds]
    body = helper.make_graph([helper.make_node("Less", ["i", "two"], ["early"]), helper.make_node("Mul", ["h", "x"], ["after"]),
                              helper.make_node("Neg", ["after"], ["seen"])], "body", values[:3], values[3:],
                             [numpy_helper.from_array(numpy.int64(2), "two")])
    m = Model("loop", 21, h=floats(2, 3), x=floats(2, 3, seed=1))
    m.op("Loop", numpy.array(9), numpy.array(True), "h", outputs=2, body=body)
    return m


def unpooling():
    m = Model("unpooling", 22, x=floats(2, 3, 6, 7))
    for attributes in ({"strides": [2, 2]}, {"strides": [2, 1], "pads": [1, 1, 0, 1], "storage_order": 1}, {"dilations": [2, 3], "pads": [1, 2, 1, 2]}):
        m.op("MaxPool", "x", outputs=2, kernel_shape=[2, 3], **attributes)
    return m


if __name__ == "__main__":
    shutil.rmtree(FOLDER, ignore_errors=True)
    for make in (reductions, movement, scatters, padding, activations, attention_mask, labels, routing, losses, rectified, einsum, newest, scan, loop, unpooling):
        make().write()
