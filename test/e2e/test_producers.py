"""Small files in the manner of other producers than PyTorch, trained beside PyTorch without a flag but the loss."""

import json

import numpy
import onnx
import pytest
import torch
from conftest import ON_GPU, write_config
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import save_file
from test_any_onnx import CLASSES, SGD, constant, trained, values
from torch.nn import functional as F

pytestmark = pytest.mark.skipif(ON_GPU, reason="compiles for this machine's CPU")
STEPS, MICRO = 4, 4


def saved(path, nodes, weights, name, shape, dtype=TensorProto.FLOAT, opset=13):
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(name, dtype, shape)],
                              [helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(value, key) for key, value in weights.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), path)
    return path


def tf2onnx(path):
    """Channels last: a transpose to the convolution and back, names of ReadVariableOp, a reshape by -1, a softmax at the end."""
    weights = {"net/conv/Conv2D/ReadVariableOp:0": values(4, 3, 3, 3), "net/dense/MatMul/ReadVariableOp:0": values(4 * 36, CLASSES),
               "net/dense/BiasAdd/ReadVariableOp:0": values(CLASSES), "const_fold_opt__9": numpy.array([-1, 144])}
    k, w, b, shape = weights
    nodes = [helper.make_node("Transpose", ["input_1:0"], ["t"], perm=[0, 3, 1, 2]), helper.make_node("Conv", ["t", k], ["c"], kernel_shape=[3, 3]),
             helper.make_node("Relu", ["c"], ["r"]), helper.make_node("Transpose", ["r"], ["n"], perm=[0, 2, 3, 1]), helper.make_node("Reshape", ["n", shape], ["f"]),
             helper.make_node("MatMul", ["f", w], ["m"]), helper.make_node("Add", ["m", b], ["a"]), helper.make_node("Softmax", ["a"], ["Identity:0"])]
    forward = lambda x, k, w, b: F.relu(F.conv2d(x.permute(0, 3, 1, 2), k)).permute(0, 2, 3, 1).reshape(len(x), -1) @ w + b  # noqa: E731
    return saved(path, nodes, weights, "input_1:0", ["unk__1", 8, 8, 3]), (8, 8, 3), [weights[n] for n in (k, w, b)], forward


def while_loop(path):
    """tf2onnx's form of a recurrent layer: a Loop whose condition compares its counter with a constant; a step reads one column."""
    weights = {"rnn/kernel:0": values(3, 6), "rnn/recurrent:0": values(6, 6), "head:0": values(6, CLASSES)}
    body = helper.make_graph(
        [helper.make_node("Gather", ["x:0", "i"], ["now"], axis=1), helper.make_node("MatMul", ["now", "rnn/kernel:0"], ["a"]),
         helper.make_node("MatMul", ["h", "rnn/recurrent:0"], ["b"]), helper.make_node("Add", ["a", "b"], ["s"]), helper.make_node("Tanh", ["s"], ["h_next"]),
         helper.make_node("Add", ["i", "one"], ["i_next"]), helper.make_node("Less", ["i_next", "length"], ["goes_on"])], "body",
        [helper.make_tensor_value_info("turn", TensorProto.INT64, []), helper.make_tensor_value_info("go", TensorProto.BOOL, []),
         helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("h", TensorProto.FLOAT, None)],
        [helper.make_tensor_value_info("goes_on", TensorProto.BOOL, []), helper.make_tensor_value_info("i_next", TensorProto.INT64, []),
         helper.make_tensor_value_info("h_next", TensorProto.FLOAT, None)])
    constants = {"zero": numpy.array(0), "one": numpy.array(1), "length": numpy.array(5), "most": numpy.array(2**31 - 1), "yes": numpy.array(True)}
    nodes = [*(constant(name, value) for name, value in constants.items()), helper.make_node("Gather", ["x:0", "zero"], ["first"], axis=1),
             helper.make_node("MatMul", ["first", "rnn/kernel:0"], ["a0"]), helper.make_node("Sub", ["a0", "a0"], ["h0"]),
             helper.make_node("Loop", ["most", "yes", "zero", "h0"], ["end", "last"], body=body), helper.make_node("MatMul", ["last", "head:0"], ["y"])]

    def forward(x, kernel, recurrent, head):
        h = torch.zeros(len(x), 6)
        for i in range(5):
            h = torch.tanh(x[:, i] @ kernel + h @ recurrent)
        return h @ head
    return saved(path, nodes, weights, "x:0", ["unk__7", 5, 3]), (5, 3), list(weights.values()), forward


def keras_lstm(path):
    """keras2onnx: an LSTM node, whose gates are in ONNX's order and whose sequence comes first."""
    weights = {"lstm/W": values(1, 24, 3), "lstm/R": values(1, 24, 6), "lstm/B": values(1, 48), "dense/kernel": values(6, CLASSES), "dense/bias": values(CLASSES)}
    nodes = [helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0, 2]), helper.make_node("LSTM", ["t", "lstm/W", "lstm/R", "lstm/B"], ["", "h"], hidden_size=6),
             helper.make_node("Squeeze", ["h", "axes"], ["s"]), helper.make_node("Gemm", ["s", "dense/kernel", "dense/bias"], ["y"])]

    def forward(x, w, r, b, kernel, bias):
        turn = [0, 2, 3, 1]  # i o f c -> i f c o
        parts = lambda m: torch.cat([m.reshape(4, 6, -1)[i] for i in turn])  # noqa: E731
        flat = [parts(w[0]), parts(r[0]), parts(b[0, :24]).flatten(), parts(b[0, 24:]).flatten()]
        state = torch.zeros(1, len(x), 6)
        return torch.lstm(x.transpose(0, 1), (state, state), flat, True, 1, 0.0, True, False, False)[1][0] @ kernel + bias
    return saved(path, nodes, {**weights, "axes": numpy.array([0])}, "x", ["N", 5, 3]), (5, 3), list(weights.values()), forward


def jax(path):
    """By jax2tf: Einsum of unnamed weights, a norm written out, a mean that is a sum times a constant, at its end a softmax written out."""
    weights = {"jax_w0": values(6, 8), "jax_scale": 1 + values(8), "jax_shift": values(8), "jax_w1": values(8, CLASSES)}
    constants = {"eighth": numpy.float32(1 / 8), "epsilon": numpy.float32(1e-6)}
    nodes = [*(constant(name, numpy.array(value)) for name, value in constants.items()), helper.make_node("Einsum", ["x", "jax_w0"], ["h"], equation="ab,bc->ac"),
             helper.make_node("ReduceSum", ["h", "last"], ["total"]), helper.make_node("Mul", ["total", "eighth"], ["mean"]), helper.make_node("Sub", ["h", "mean"], ["d"]),
             helper.make_node("Mul", ["d", "d"], ["dd"]), helper.make_node("ReduceSum", ["dd", "last"], ["var8"]), helper.make_node("Mul", ["var8", "eighth"], ["var"]),
             helper.make_node("Add", ["var", "epsilon"], ["ve"]), helper.make_node("Sqrt", ["ve"], ["std"]), helper.make_node("Div", ["d", "std"], ["n"]),
             helper.make_node("Mul", ["n", "jax_scale"], ["ns"]), helper.make_node("Add", ["ns", "jax_shift"], ["o"]),
             helper.make_node("Einsum", ["o", "jax_w1"], ["z"], equation="ab,bc->ac"), helper.make_node("ReduceMax", ["z"], ["most"], axes=[1]),
             helper.make_node("Sub", ["z", "most"], ["less"]), helper.make_node("Exp", ["less"], ["e"]), helper.make_node("ReduceSum", ["e", "last"], ["all"], keepdims=0),
             helper.make_node("Reshape", ["all", "column"], ["column_of_all"]), helper.make_node("Div", ["e", "column_of_all"], ["y"])]
    forward = lambda x, w0, scale, shift, w1: F.layer_norm(x @ w0, (8,), scale, shift, 1e-6) @ w1  # noqa: E731
    return saved(path, nodes, {**weights, "last": numpy.array([1]), "column": numpy.array([-1, 1])}, "x", ["b", 6]), (6,), list(weights.values()), forward


def simplified(path):
    """onnxsim: PyTorch's names, batch norm folded away, a flatten by constants, several nodes without names."""
    weights = {"features.0.weight": values(4, 3, 3, 3), "features.0.bias": values(4), "classifier.weight": values(CLASSES, 4 * 9), "classifier.bias": values(CLASSES)}
    nodes = [helper.make_node("Conv", ["x", "features.0.weight", "features.0.bias"], ["c"], pads=[1, 1, 1, 1]), helper.make_node("Clip", ["c", "low", "high"], ["r"]),
             helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]), helper.make_node("Reshape", ["p", "shape"], ["f"]),
             helper.make_node("Gemm", ["f", "classifier.weight", "classifier.bias"], ["y"], transB=1)]
    constants = {"low": numpy.array(0, numpy.float32), "high": numpy.array(6, numpy.float32), "shape": numpy.array([-1, 36])}
    forward = lambda x, k, b, w, c: F.linear(F.max_pool2d(F.relu6(F.conv2d(x, k, b, padding=1)), 2).flatten(1), w, c)  # noqa: E731
    return saved(path, nodes, {**weights, **constants}, "x", ["batch", 3, 6, 6]), (3, 6, 6), list(weights.values()), forward


@pytest.mark.parametrize("write", [tf2onnx, while_loop, keras_lstm, jax, simplified], ids=lambda f: f.__name__)
def test_a_file_of_another_producer_trains_as_in_pytorch(tools, tmp_path, write):
    model, shape, weights, forward = write(tmp_path / "m.onnx")
    random = numpy.random.default_rng(3)
    x, labels = random.standard_normal((STEPS * MICRO, *shape)).astype(numpy.float32), random.integers(0, CLASSES, STEPS * MICRO)
    names, said = trained(tools, model, tmp_path)
    assert len(names) == len(weights), (names, said)
    save_file({onnx.load(model).graph.input[0].name: x, "labels": labels}, tmp_path / "d.safetensors")
    tools("ds-run", tmp_path / "m.dsplan", "--data", tmp_path / "d.safetensors", "--steps", STEPS, "--metrics", tmp_path / "m.jsonl", "--quiet")
    losses = [line["loss"] for line in map(json.loads, (tmp_path / "m.jsonl").read_text().splitlines()) if "step" in line]
    parameters, theirs = [torch.tensor(weight, requires_grad=True) for weight in weights], []
    optimizer = torch.optim.SGD(parameters, lr=SGD["params"]["lr"])
    for step in range(STEPS):
        some = slice(MICRO * step, MICRO * (step + 1))
        loss = F.cross_entropy(forward(torch.tensor(x[some]), *parameters), torch.tensor(labels[some]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        theirs.append(loss.item())
    assert numpy.allclose(losses, theirs, atol=1e-5), (losses, theirs)


def test_quantised_weights_are_refused(tools, tmp_path):
    weights = {"w_quantized": numpy.ones((6, CLASSES), numpy.int8), "w_scale": numpy.float32(0.1) * numpy.ones(1, numpy.float32), "zero": numpy.zeros(1, numpy.int8)}
    nodes = [helper.make_node("DequantizeLinear", ["w_quantized", "w_scale", "zero"], ["w"], axis=1), helper.make_node("MatMul", ["x", "w"], ["y"])]
    model = saved(tmp_path / "m.onnx", nodes, {key: value.reshape(-1)[0] if value.size == 1 else value for key, value in weights.items()}, "x", ["batch", 6])
    config = write_config(tmp_path / "c.json", micro=4, optimizer=SGD)
    refusal = tools.refused("ds-opt", "compile", model, "--attach-loss", "classification", "--config", config, "-o", tmp_path / "m.dsplan")
    assert "quanti" in refusal, refusal
