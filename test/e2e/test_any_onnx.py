"""Files of other producers than PyTorch's newest exporter: what is a parameter follows from its use, and merged ones are apart."""

import json
import os
import re
import sys
import warnings
from pathlib import Path

import numpy
import onnx
import pytest
import torch
from conftest import ON_GPU, write_config
from onnx import TensorProto, helper, numpy_helper
from safetensors.torch import load_file, save_file

pytestmark = pytest.mark.skipif(ON_GPU, reason="compiles for this machine's CPU")
SGD = {"type": "SGD", "params": {"lr": 0.5}}
RANDOM = numpy.random.default_rng(0)
CLASSES = 5


def values(*shape):
    return (RANDOM.standard_normal(shape) * 0.1).astype(numpy.float32)


def file_of(path, nodes, initializers, shape, opset=13):
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(value, name) for name, value in initializers.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), path)
    return path


def constant(name, value):
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(value, name))


def trained(tools, model, folder, *flags):
    """Names of the parameters that a plan trains, and what ds-opt said."""
    config = write_config(folder / "c.json", micro=4, optimizer=SGD)
    said = tools("ds-opt", "compile", model, "--attach-loss", "classification", "--config", config, "-o", folder / "m.dsplan", *flags).stderr
    text = tools("ds-opt", "import", model, "--attach-loss", "classification", "--dim", "batch=4", *flags).stdout
    return set(re.findall(r'train\.variable +parameter @"?([^" ]+)"? .*trainable', text)), said


@pytest.mark.parametrize("rows", [3, 700], ids=["small", "large"])
def test_weights_in_constant_nodes_train(tools, tmp_path, rows):
    """As Paddle2ONNX writes them; of the large ones, the bytes stay in the file."""
    nodes = [constant("fc_w", values(rows, CLASSES)), constant("fc_b", values(CLASSES)), helper.make_node("Gemm", ["x", "fc_w", "fc_b"], ["y"])]
    model = file_of(tmp_path / "m.onnx", nodes, {}, ["batch", rows])
    names, said = trained(tools, model, tmp_path)
    assert names == {"fc_w", "fc_b"} and "learn is trained: fc_w, fc_b" in said
    assert trained(tools, model, tmp_path, "--frozen", "_b$")[0] == {"fc_w"}
    tools("ds-opt", "verify", tmp_path / "m.dsplan", "--model", model, "--config", tmp_path / "c.json")


def test_scales_of_an_operator_do_not_train(tools, tmp_path):
    """A slimmed YOLO head: the scales of a Resize have a dot in their name, normalization of the image and a mask have none."""
    nodes = [helper.make_node("Sub", ["x", "mean"], ["x0"]), helper.make_node("Div", ["x0", "deviation"], ["x1"]),
             helper.make_node("Conv", ["x1", "model.0.conv.weight"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
             helper.make_node("BatchNormalization", ["c", "bn/gamma", "bn/beta", "bn/mean", "bn/var"], ["n"]),
             helper.make_node("Resize", ["n", "", "/model.10/Constant_output_0"], ["u"], mode="nearest",
                              coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
             helper.make_node("Mul", ["u", "keep"], ["k"]), helper.make_node("ReduceMean", ["k"], ["y"], axes=[2, 3], keepdims=0)]
    ones = numpy.ones(4, numpy.float32)
    keep = (RANDOM.random((16, 16)) < 0.9).astype(numpy.float32)
    model = file_of(tmp_path / "m.onnx", nodes, {
        "mean": values(1, 3, 1, 1), "deviation": numpy.full((1, 3, 1, 1), 0.2, numpy.float32), "model.0.conv.weight": values(4, 3, 3, 3),
        "bn/gamma": ones, "bn/beta": 0 * ones, "bn/mean": values(4), "bn/var": ones, "/model.10/Constant_output_0": numpy.array([1, 1, 2, 2], numpy.float32),
        "keep": keep}, ["batch", 3, 8, 8])
    names, _ = trained(tools, model, tmp_path, "--batch-norm", "as-written")
    assert names == {"model.0.conv.weight", "bn/gamma", "bn/beta"}
    tools("ds-opt", "verify", tmp_path / "m.dsplan", "--model", model, "--config", tmp_path / "c.json")


def test_constants_that_a_tool_has_folded_into_initializers_do_not_train(tools, tmp_path):
    """PyTorch names what a node makes by a path; nudenet's YOLO has the bounds of its Range as initializers."""
    nodes = [helper.make_node("Conv", ["x", "model.0.weight"], ["c"], kernel_shape=[1, 1]), helper.make_node("Shape", ["c"], ["shape"]),
             helper.make_node("Gather", ["shape", "/model.22/two"], ["width"]), helper.make_node("Cast", ["width"], ["limit"], to=TensorProto.FLOAT),
             helper.make_node("Range", ["/model.22/Constant_14_output_0", "limit", "/model.22/Constant_15_output_0"], ["columns"]),
             helper.make_node("Add", ["c", "columns"], ["a"]), helper.make_node("ReduceMean", ["a"], ["y"], axes=[2, 3], keepdims=0)]
    model = file_of(tmp_path / "m.onnx", nodes, {
        "model.0.weight": values(CLASSES, 3, 1, 1), "/model.22/two": numpy.array(3), "/model.22/Constant_14_output_0": numpy.array(0, numpy.float32),
        "/model.22/Constant_15_output_0": numpy.array(1, numpy.float32)}, ["batch", 3, 8, 8])
    proto = onnx.load(model)
    proto.producer_name = "pytorch"
    onnx.save(proto, model)
    assert trained(tools, model, tmp_path)[0] == {"model.0.weight"}


def test_weights_meet_data_through_other_nodes(tools, tmp_path):
    """A weight norm, a table that is looked up, and frequencies whose sines are taken."""
    nodes = [helper.make_node("Mul", ["g", "v"], ["w"]), helper.make_node("MatMul", ["x", "w"], ["h"]),
             helper.make_node("Cast", ["positions"], ["p"], to=TensorProto.FLOAT), helper.make_node("Mul", ["p", "frequencies"], ["a"]), helper.make_node("Cos", ["a"], ["cos"]),
             helper.make_node("Mul", ["h", "cos"], ["r"]), helper.make_node("MatMul", ["r", "head"], ["y"])]
    model = file_of(tmp_path / "m.onnx", nodes, {"g": values(1, 4), "v": values(3, 4), "positions": numpy.array([[3]]), "frequencies": values(1, 4),
                                                 "head": values(4, CLASSES)}, ["batch", 3])
    assert trained(tools, model, tmp_path)[0] == {"g", "v", "head"}


@pytest.mark.parametrize("batch", ["?", 1])
def test_a_table_says_what_is_trained_and_why(tools, tmp_path, batch):
    nodes = [constant("fc_w", values(3, CLASSES)), constant("fc_b", values(CLASSES)), helper.make_node("Gemm", ["x", "fc_w", "fc_b"], ["y"], name="fc")]
    model = file_of(tmp_path / "m.onnx", nodes, {}, [batch, 3])
    lines = [re.split(" {2,}", line) for line in tools("ds-opt", "import", model, "--parameters", "--frozen", "_b$").stdout.splitlines()]
    assert lines == [["name", "shape", "from", "trained", "why"], ["fc_w", "[3, 5]", "constant", "yes", "factor of node 'fc' (Gemm, opset 13)"],
                     ["fc_b", "[5]", "constant", "no", "--trainable or --frozen"]]


@pytest.mark.parametrize("size", ["?", -1, None, "unk__1", "p2o.DynamicDimension.0"], ids=str)
def test_a_first_dimension_without_a_name_is_the_batch(tools, tmp_path, size):
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("ReduceMean", ["h"], ["y"], axes=[1], keepdims=0)]
    model = file_of(tmp_path / "m.onnx", nodes, {"w": values(3, CLASSES)}, [size, size if size == "?" else "t.0", 3])
    config = write_config(tmp_path / "c.json", micro=4, optimizer=SGD)
    flags = ["compile", model, "--attach-loss", "classification", "--config", config, "-o", tmp_path / "m.dsplan"]
    other = "x_1" if size == "?" else "t_0"
    assert f"'{other}'" in tools.refused("ds-opt", *flags)
    tools("ds-opt", *flags, "--dim", f"{other}=2")
    tools("ds-opt", "verify", tmp_path / "m.dsplan", "--model", model, "--config", config)


class Net(torch.nn.Module):
    """Biases of zeros and fresh norms are equal, and so are two copied layers."""

    def __init__(self, tied=False):
        super().__init__()
        torch.manual_seed(0)
        self.e = torch.nn.Embedding(CLASSES, 6)
        self.a, self.b = torch.nn.Linear(6, 6), torch.nn.Linear(6, 6)
        self.n, self.m = torch.nn.LayerNorm(6), torch.nn.LayerNorm(6)
        self.head = torch.nn.Linear(6, CLASSES, bias=False)
        self.b.load_state_dict(self.a.state_dict())
        if tied:
            self.head.weight = self.e.weight

    def forward(self, x):
        return self.head(self.m(self.b(torch.tanh(self.n(self.a(self.e(x).mean(1)))))))


def losses_of_pytorch(net, x, labels):
    optimizer, losses = torch.optim.SGD(net.parameters(), lr=SGD["params"]["lr"]), []
    for step in range(4):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x[4 * step:4 * step + 4]), labels[4 * step:4 * step + 4])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("folded", [False, True])
@pytest.mark.parametrize("given", [False, True])
def test_parameters_that_an_exporter_merged_are_apart(tools, tmp_path, tied, folded, given):
    """torch.onnx.export(dynamo=False) of a module in evaluation mode, its default, as Hugging Face's exporter tool calls it."""
    net, x, labels = Net(tied), torch.randint(0, CLASSES, (16, 3)), torch.randint(0, CLASSES, (16,))
    if given and folded:
        net.b.weight.data += 0.1 * torch.randn(6, 6)  # of equal weights that lost their names nothing says whose they are
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(net.eval(), (x[:4],), tmp_path / "m.onnx", dynamo=False, opset_version=17, do_constant_folding=folded, input_names=["x"],
                          output_names=["logits"], dynamic_axes={"x": {0: "batch"}})
    save_file({name: value for name, value in net.state_dict().items() if not (tied and name == "head.weight")}, tmp_path / "w.safetensors")
    save_file({"x": x, "labels": labels}, tmp_path / "d.safetensors")
    flags = ["--weights", tmp_path / "w.safetensors"] if given else []
    names, said = trained(tools, tmp_path / "m.onnx", tmp_path, *flags)
    assert len(names) == len(list(net.parameters())), (names, said)
    tools("ds-run", tmp_path / "m.dsplan", "--data", tmp_path / "d.safetensors", "--steps", 4, "--metrics", tmp_path / "m.jsonl", "--quiet")
    lines = map(json.loads, (tmp_path / "m.jsonl").read_text().splitlines())
    losses = [line["loss"] for line in lines if "step" in line]
    assert numpy.allclose(losses, losses_of_pytorch(net, x, labels), atol=1e-5), losses


@pytest.mark.parametrize("tied", [False, True])
def test_scales_that_a_tool_merged_without_a_trace_are_refused(tools, tmp_path, tied):
    """As onnxsim does: it takes the Identity nodes away."""
    nodes = [helper.make_node("MatMul", ["x", "w1"], ["a"]), helper.make_node("LayerNormalization", ["a", "ones", "zeros"], ["b"]),
             helper.make_node("MatMul", ["b", "w2"], ["c"]), helper.make_node("LayerNormalization", ["c", "ones", "zeros"], ["y"])]
    if tied:  # a table that is the head, too, is no module called twice
        nodes += [helper.make_node("ArgMax", ["x"], ["ids"], axis=1), helper.make_node("Gather", ["w2", "ids"], ["row"])]
    weights = {"w1": values(3, CLASSES), "w2": values(CLASSES, CLASSES), "ones": numpy.ones(CLASSES, numpy.float32),
               "zeros": numpy.zeros(CLASSES, numpy.float32)}
    model = file_of(tmp_path / "m.onnx", nodes, weights, ["batch", 3], opset=17)
    flags = ["compile", model, "--attach-loss", "classification", "--config", write_config(tmp_path / "c.json"), "-o", tmp_path / "m.dsplan"]
    refusal = tools.refused("ds-opt", *flags)
    assert "2 initializers hold one number throughout, and several nodes read each: 'ones', 'zeros'" in refusal
    tools("ds-opt", *flags, "--trainable", "ones|zeros")
    names, _ = trained(tools, model, tmp_path, "--frozen", "ones|zeros")
    assert names == {"w1", "w2"}


def test_a_folded_convolution_trains_as_it_stands(tools, tmp_path):
    """Batch norms in evaluation mode are folded into convolutions, whose kernels match nothing of the saved weights."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, bias=False), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1),
                              torch.nn.Flatten(), torch.nn.Linear(4, CLASSES))
    for parameter in net.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    save_file(net.state_dict(), tmp_path / "w.safetensors")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(net.eval(), (torch.randn(4, 3, 8, 8),), tmp_path / "m.onnx", dynamo=False, opset_version=17, input_names=["x"],
                          output_names=["logits"], dynamic_axes={"x": {0: "batch"}})
    names, said = trained(tools, tmp_path / "m.onnx", tmp_path, "--weights", tmp_path / "w.safetensors")
    assert {"5.weight", "5.bias"} < names and any(name.startswith("onnx::Conv_") for name in names)
    assert "train as they stand: 'onnx::Conv_" in said and "the graph has not: '0.weight', '1." in said
    save_file({"x": torch.randn(4, 3, 8, 8), "labels": torch.randint(0, CLASSES, (4,))}, tmp_path / "d.safetensors")
    tools("ds-run", tmp_path / "m.dsplan", "--data", tmp_path / "d.safetensors", "--steps", 1, "--export", tmp_path / "o.safetensors", "--quiet")
    assert set(load_file(tmp_path / "o.safetensors")) == names


class Tokens(torch.nn.Module):
    """A class token, attention in heads, rows in one batch of vectors, and a recurrent layer whose samples stand in dimension 1."""

    def __init__(self, ends="mean"):
        super().__init__()
        torch.manual_seed(1)
        self.ends = ends
        self.stem = torch.nn.Conv2d(1, 8, 4, 4)
        self.token, self.place = torch.nn.Parameter(torch.randn(1, 1, 8)), torch.nn.Parameter(torch.randn(1, 5, 8))
        self.qkv, self.out, self.norm = torch.nn.Linear(8, 24), torch.nn.Linear(8, 8), torch.nn.LayerNorm(8)
        self.cell, self.head = torch.nn.GRU(8, 8), torch.nn.Linear(8, CLASSES)

    def forward(self, x):
        b = x.shape[0]
        h = self.stem(x).reshape(b, 8, 4).transpose(1, 2)
        h = torch.cat([self.token.expand(b, 1, 8), h], 1) + self.place
        q, k, v = self.qkv(self.norm(h)).reshape(b, 5, 3, 2, 4).permute(2, 0, 3, 1, 4)
        a = (q @ k.transpose(-1, -2) / 2).softmax(-1) @ v
        h = h + self.out(a.transpose(1, 2).reshape(b * 5, 8)).reshape(b, 5, 8)
        h, _ = self.cell(h.transpose(0, 1), torch.zeros(1, b, 8))
        if self.ends == "first":
            return self.head(h.mean(0))[0].reshape(1, CLASSES)
        if self.ends == "all":
            return self.head(h.mean((0, 1))).reshape(1, CLASSES)
        return self.head(h.mean(0))


def with_a_batch_of_one(net, folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(net.train(), (torch.randn(1, 1, 8, 8),), folder / "m.onnx", dynamo=False, opset_version=17, input_names=["x"],
                          output_names=["logits"], training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)
    assert [d.dim_value for d in onnx.load(folder / "m.onnx").graph.input[0].type.tensor_type.shape.dim] == [1, 1, 8, 8]
    return folder / "m.onnx"


def test_a_batch_fixed_at_1_is_opened(tools, tmp_path):
    """PyTorch without dynamic axes: reshapes and the recurrent layer's first state hold a batch of 1."""
    net, x, labels = Tokens(), torch.randn(16, 1, 8, 8), torch.randint(0, CLASSES, (16,))
    model = with_a_batch_of_one(net, tmp_path)
    names, said = trained(tools, model, tmp_path)
    assert len(names) == len(list(net.parameters())) and "which the file fixes at 1, is the micro-batch, 4" in said
    save_file({"x": x, "labels": labels}, tmp_path / "d.safetensors")
    tools("ds-run", tmp_path / "m.dsplan", "--data", tmp_path / "d.safetensors", "--steps", 4, "--metrics", tmp_path / "m.jsonl", "--quiet")
    losses = [line["loss"] for line in map(json.loads, (tmp_path / "m.jsonl").read_text().splitlines()) if "step" in line]
    assert numpy.allclose(losses, losses_of_pytorch(net, x, labels), atol=1e-5), losses
    tools("ds-opt", "verify", tmp_path / "m.dsplan", "--model", model, "--config", tmp_path / "c.json")


def test_sizes_of_an_image_may_hold_a_batch_of_one(tools, tmp_path):
    sizes = numpy_helper.from_array(numpy.array([1, 3, 16, 16]), "sizes")
    nodes = [helper.make_node("Constant", [], ["sizes"], value=sizes), helper.make_node("Resize", ["x", "", "", "sizes"], ["u"], mode="nearest"),
             helper.make_node("Conv", ["u", "k"], ["c"], kernel_shape=[3, 3]), helper.make_node("ReduceMean", ["c"], ["y"], axes=[2, 3], keepdims=0)]
    assert trained(tools, file_of(tmp_path / "m.onnx", nodes, {"k": values(CLASSES, 3, 3, 3)}, [1, 3, 8, 8]), tmp_path)[0] == {"k"}


@pytest.mark.parametrize("ends", ["first", "all"])
def test_samples_that_meet_keep_the_batch_closed(tools, tmp_path, ends):
    """The first sample's row, and a mean of all samples, are what a file for one sample may say."""
    model = with_a_batch_of_one(Tokens(ends), tmp_path)
    refusal = tools.refused("ds-opt", "compile", model, "--attach-loss", "classification", "--config", write_config(tmp_path / "c.json"), "-o", tmp_path / "m.dsplan")
    assert "'x' has a first dimension fixed at 1, but the micro-batch is 4, and it cannot be opened: node '" in refusal


def test_a_branch_by_the_batch_keeps_it_closed(tools, tmp_path):
    """More samples than one would go by nodes that the file's own batch does not come by."""
    here = [helper.make_tensor_value_info("one", TensorProto.FLOAT, None)], [helper.make_tensor_value_info("more", TensorProto.FLOAT, None)]
    one = helper.make_graph([helper.make_node("Relu", ["h"], ["one"])], "one", [], here[0])
    more = helper.make_graph([helper.make_node("Tanh", ["h"], ["t"]), helper.make_node("Relu", ["t"], ["more"])], "more", [], here[1])
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Shape", ["x"], ["shape"]), helper.make_node("Gather", ["shape", "first"], ["batch"]),
             helper.make_node("Equal", ["batch", "single"], ["is_one"]), helper.make_node("If", ["is_one"], ["y"], then_branch=one, else_branch=more)]
    model = file_of(tmp_path / "m.onnx", nodes, {"w": values(3, CLASSES), "first": numpy.array(0), "single": numpy.array(1)}, [1, 3])
    refusal = tools.refused("ds-opt", "compile", model, "--attach-loss", "classification", "--config", write_config(tmp_path / "c.json"), "-o", tmp_path / "m.dsplan")
    assert "it cannot be opened: node 'y' (If, opset 13)" in refusal


def stream(path, where="initializers", ends="mean"):
    """A detector of voices, as silero-vad's: by the rate of samples a branch is taken, which has its own weights; the state's batch is its second dimension."""
    def branch(name):
        weights = {name + ".k": values(CLASSES, 1, 4), name + "two": numpy.array(2, numpy.float32), name + ".w": values(1, 4 * CLASSES, CLASSES),
                   name + ".r": values(1, 4 * CLASSES, CLASSES)}
        nodes = [constant(*each) for each in weights.items()] if where == "constants" else []
        nodes += [helper.make_node("Conv", ["x3", name + ".k"], [name + "c"], strides=[4]), helper.make_node("Pow", [name + "c", name + "two"], [name + "p"]),
                  helper.make_node("Transpose", [name + "p"], [name + "t"], perm=[2, 0, 1]),
                  helper.make_node("LSTM", [name + "t", name + ".w", name + ".r", "", "", "state", "state"], [name + "y"], hidden_size=CLASSES)]
        stored = [] if where == "constants" else [numpy_helper.from_array(value, key) for key, value in weights.items()]
        return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(name + "y", TensorProto.FLOAT, None)], stored)

    frames = {"mean": [], "one": [helper.make_node("Slice", ["all", "zero", "unit", "zero"], ["y4"])]}[ends]
    nodes = [helper.make_node("Unsqueeze", ["x", "unit"], ["x3"]), helper.make_node("Equal", ["sr", "wide"], ["is"]),
             helper.make_node("If", ["is"], ["all" if frames else "y4"], then_branch=branch("a"), else_branch=branch("b")), *frames,
             helper.make_node("Sigmoid", ["y4"], ["s4"]), helper.make_node("ReduceMean", ["s4"], ["s"], axes=[0, 1], keepdims=0),
             helper.make_node("Unsqueeze", ["s", "last"], ["y"])]
    model = file_of(path, nodes, {"unit": numpy.array([1]), "zero": numpy.array([0]), "last": numpy.array([2]), "wide": numpy.array(16000)}, ["batch", 8])
    proto = onnx.load(model)
    if where == "initializers":
        proto.producer_name = "pytorch"  # which names a number of a branch like a parameter
    proto.graph.input.extend([helper.make_tensor_value_info("state", TensorProto.FLOAT, [1, "batch", CLASSES]), helper.make_tensor_value_info("sr", TensorProto.INT64, [])])
    onnx.save(proto, path)
    return model


@pytest.mark.parametrize("where", ["initializers", "constants"])
def test_a_stream_begins_with_a_constant_state(tools, tmp_path, where):
    """The weights of the branch that is taken train, and come back to where they stood."""
    model, config = stream(tmp_path / "m.onnx", where, "one"), write_config(tmp_path / "c.json", micro=4, optimizer=SGD)
    flags = ["--attach-loss", "multi-label", "--config", config, "-o", tmp_path / "m.dsplan"]
    assert "input 'state' [1, batch, 5] has the batch behind its first dimension" in (said := tools.refused("ds-opt", "compile", model, *flags)), said
    tools("ds-opt", "compile", model, *flags, "--constant", "state=0", "--constant", "sr=16000")
    save_file({"x": torch.randn(4, 8), "labels": torch.rand(4, CLASSES, 1).round()}, tmp_path / "d.safetensors")
    tools("ds-run", tmp_path / "m.dsplan", "--data", tmp_path / "d.safetensors", "--steps", 1, "--export", tmp_path / "o.safetensors", "--quiet")
    after = load_file(tmp_path / "o.safetensors")
    assert set(after) == {"a.k", "a.w", "a.r"}
    tools("ds-opt", "verify", tmp_path / "m.dsplan", "--model", model, "--config", config)
    tools("ds-run", "export", tmp_path / "o.safetensors", "--onnx", tmp_path / "t.onnx", "--like", model,
          env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"})
    taken = next(a.g for node in onnx.load(tmp_path / "t.onnx").graph.node if node.op_type == "If" for a in node.attribute if a.name == "then_branch")
    stored = {t.name: t for t in taken.initializer} | {n.output[0]: n.attribute[0].t for n in taken.node if n.op_type == "Constant"}
    assert all(numpy.array_equal(numpy_helper.to_array(stored[name]), value) for name, value in after.items())


@pytest.mark.parametrize("flag, sentence", [("state=x", "--constant state=x is not NAME=NUMBER; try --constant state=0"), ("t=0", "--constant t: the model has no input of this name"),
                                            ("sr=0.5", "--constant sr: the input is int64, which holds whole numbers")])
def test_a_constant_that_does_not_fit_is_refused(tools, tmp_path, flag, sentence):
    flags = ["--attach-loss", "multi-label", "--config", write_config(tmp_path / "c.json"), "--constant", "state=0", "--constant", flag]
    flags = flags[:4] + flags[6:] if flag.startswith("state") else flags
    assert sentence in tools.refused("ds-opt", "compile", stream(tmp_path / "m.onnx"), *flags)


def test_a_mean_of_probabilities_leaves_no_logits(tools, tmp_path):
    """They were once taken for logits."""
    flags = ["--attach-loss", "multi-label", "--config", write_config(tmp_path / "c.json"), "--constant", "state=0", "--constant", "sr=16000"]
    refusal = tools.refused("ds-opt", "compile", stream(tmp_path / "m.onnx"), *flags)
    assert "output 'y' is a mean of several numbers of a sigmoid, so no logits are left for multi-label; attach a loss that takes probabilities" in refusal


def test_a_size_of_the_batch_that_is_not_the_micro_batch_is_refused(tools, tmp_path):
    """Where another input has another first dimension, the name of the batch is not found by itself."""
    model = file_of(tmp_path / "m.onnx", [helper.make_node("Add", ["x", "shift"], ["h"]), helper.make_node("MatMul", ["h", "w"], ["y"])], {"w": values(3, CLASSES)}, ["rows", 3])
    proto = onnx.load(model)
    proto.graph.input.append(helper.make_tensor_value_info("shift", TensorProto.FLOAT, [4, 3]))
    onnx.save(proto, model)
    flags = ["compile", model, "--attach-loss", "classification", "--config", write_config(tmp_path / "c.json", micro=4), "-o", tmp_path / "m.dsplan"]
    assert "that has 4 samples; give --dim rows=4" in tools.refused("ds-opt", *flags, "--dim", "rows=1")


def test_quantized_weights_are_named(tools, tmp_path):
    nodes = [helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["w"]), helper.make_node("MatMul", ["x", "w"], ["y"])]
    model = file_of(tmp_path / "m.onnx", nodes, {"q": numpy.ones((3, CLASSES), numpy.int8), "scale": numpy.array(0.1, numpy.float32), "zero": numpy.array(0, numpy.int8)}, ["batch", 3])
    refusal = tools.refused("ds-opt", "compile", model, "--attach-loss", "classification", "--config", write_config(tmp_path / "c.json"))
    assert "is int8" in refusal and "give the float32 one that it was made of" in refusal
