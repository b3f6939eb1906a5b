"""ds-run export --onnx: trained weights in the ONNX file that they came from, as ONNX Runtime computes with them."""

import json
import os
import sys
import warnings
from pathlib import Path

import numpy
import onnx
import onnxruntime
import pytest
import torch
from conftest import ON_GPU, write_config
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file, save_file
from test_any_onnx import CLASSES, SGD, Net, constant, file_of, values

pytestmark = pytest.mark.skipif(ON_GPU, reason="compiles for this machine's CPU")
WITH_PYTHON = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def trained(tools, model, data, folder, steps, *flags, rate=SGD["params"]["lr"]):
    """The ONNX file of a run."""
    config = write_config(folder / "c.json", micro=4, optimizer={"type": "SGD", "params": {"lr": rate}})
    tools("ds-opt", "compile", model, "--attach-loss", "classification", "--config", config, "-o", folder / "m.dsplan", *flags)
    save_file(data, folder / "d.safetensors")
    if steps == 0:  # what a run begins with
        rate = ["--set", "optimizer.params.lr=0"]
        tools("ds-opt", "compile", model, "--attach-loss", "classification", "--config", config, "-o", folder / "m.dsplan", *flags, *rate)
    tools("ds-run", folder / "m.dsplan", "--data", folder / "d.safetensors", "--steps", max(1, steps), "--export", folder / "w.safetensors", "--quiet",
          "--metrics", folder / "m.jsonl")
    out, given = folder / "trained.onnx", flags if "--weights" in flags else []
    said = tools("ds-run", "export", folder / "w.safetensors", "--onnx", out, "--like", model, *given, env=WITH_PYTHON).stdout
    assert said.startswith(f"wrote {out}: {len(load_file(folder / 'w.safetensors'))} tensors of the run") and not list(folder.glob("*.part"))
    return out


def session(path):
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def output_of(path, x):
    return session(path).run(None, {session(path).get_inputs()[0].name: x})[0]


def loss_of(path, data):
    logits = torch.tensor(output_of(path, data["x"]))
    return torch.nn.functional.cross_entropy(logits, torch.tensor(data["labels"])).item()


def without_values(path):
    """All of a file but the values of its tensors."""
    model = onnx.load(path)
    for tensor in [*model.graph.initializer, *(node.attribute[0].t for node in model.graph.node if node.op_type == "Constant")]:
        tensor.raw_data = b""
        for field in ("float_data", "int64_data", "double_data", "int32_data", "external_data", "data_location"):
            tensor.ClearField(field)
    return model


def constants(folder):
    """A classifier whose weights are Constant nodes."""
    nodes = [constant("w", values(6, 8)), constant("b", values(8)), helper.make_node("Gemm", ["x", "w", "b"], ["h"]), helper.make_node("Relu", ["h"], ["r"]),
             constant("v", values(8, CLASSES)), helper.make_node("MatMul", ["r", "v"], ["y"])]
    return file_of(folder / "m.onnx", nodes, {}, ["batch", 6])


def convolution(folder):
    """Convolution and batch norm; values lie beside the file; a note in its metadata."""
    nodes = [helper.make_node("Conv", ["x", "k"], ["c"], kernel_shape=[3, 3]), helper.make_node("BatchNormalization", ["c", "gamma", "beta", "mean", "var"], ["n"]),
             helper.make_node("Relu", ["n"], ["r"]), helper.make_node("ReduceMean", ["r"], ["m"], axes=[2, 3], keepdims=0), helper.make_node("MatMul", ["m", "w"], ["y"])]
    model = file_of(folder / "plain.onnx", nodes, {"k": values(8, 3, 3, 3), "gamma": 1 + values(8), "beta": values(8), "mean": values(8),
                                                   "var": 1 + values(8), "w": values(8, CLASSES)}, ["batch", 3, 6, 6])
    proto = onnx.load(model)
    proto.metadata_props.add(key="names", value='["cat", "dog"]')
    onnx.save(proto, folder / "m.onnx", save_as_external_data=True, location="m.bin", size_threshold=64)
    return folder / "m.onnx"


def double(folder):
    nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.DOUBLE, ["batch", 6])],
                              [helper.make_tensor_value_info("y", TensorProto.DOUBLE, None)],
                              [numpy_helper.from_array(values(*shape).astype(float), name) for name, shape in {"w": (6, CLASSES), "b": (CLASSES,)}.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), folder / "m.onnx")
    return folder / "m.onnx"


FILES = {"constants": (constants, [6], []), "convolution": (convolution, [3, 6, 6], ["--batch-norm", "as-written"]), "double": (double, [6], [])}


@pytest.mark.parametrize("name", FILES)
def test_the_file_comes_back_and_its_loss_falls_by_the_gradient(tools, tmp_path, name):
    """In ONNX Runtime, by lr * |g|^2 within 5 % for one small step; without a step all bits are as they were."""
    write, shape, flags = FILES[name]
    model, random = write(tmp_path), numpy.random.default_rng(1)
    x = random.standard_normal((4, *shape))
    data = {"x": x if name == "double" else x.astype(numpy.float32), "labels": random.integers(0, CLASSES, 4)}
    same = trained(tools, model, data, tmp_path, 0, *flags)
    assert without_values(same) == without_values(model) and (output_of(same, data["x"]) == output_of(model, data["x"])).all()
    for before, after in zip(onnx.load(model).graph.initializer, onnx.load(same).graph.initializer):
        assert before.name == after.name and (numpy_helper.to_array(before) == numpy_helper.to_array(after)).all()
    assert (tmp_path / "trained.onnx.data").exists() == (name == "convolution")
    rate = 1e-3
    out = trained(tools, model, data, tmp_path, 1, *flags, rate=rate)
    norm = next(json.loads(line)["grad_norm"] for line in (tmp_path / "m.jsonl").read_text().splitlines() if "grad_norm" in line)
    fallen, expected = loss_of(model, data) - loss_of(out, data), rate * norm**2
    assert abs(fallen - expected) < 0.05 * expected, (fallen, expected)


@pytest.mark.parametrize("folded", [False, True])
def test_merged_parameters_come_back_apart_and_a_tied_copy_twice(tools, tmp_path, folded):
    """PyTorch's older exporter in evaluation mode: equal parameters stand there once, a tied head that folding has transposed twice."""
    net, x, labels = Net(tied=True), torch.randint(0, CLASSES, (4, 3)), torch.randint(0, CLASSES, (4,))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(net.eval(), (x,), tmp_path / "m.onnx", dynamo=False, opset_version=17, do_constant_folding=folded, input_names=["x"],
                          output_names=["logits"], dynamic_axes={"x": {0: "batch"}})
    data = {"x": x.numpy(), "labels": labels.numpy()}
    same = trained(tools, tmp_path / "m.onnx", data, tmp_path, 0)
    assert (output_of(same, x.numpy()) == output_of(tmp_path / "m.onnx", x.numpy())).all()
    out = trained(tools, tmp_path / "m.onnx", data, tmp_path, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=SGD["params"]["lr"])
    torch.nn.functional.cross_entropy(net(x), labels).backward()
    optimizer.step()
    assert numpy.allclose(output_of(out, x.numpy()), net(x).detach().numpy(), atol=1e-6)


def test_names_of_a_folder_come_back_by_their_values(tools, tmp_path):
    """Folding has transposed the weights of products and lost their names; the folder has them, and two of its tensors may not be equal."""
    net, x, labels = Net(), torch.randint(0, CLASSES, (4, 3)), torch.randint(0, CLASSES, (4,))
    net.b.weight.data += 0.1 * torch.randn(6, 6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(net.eval(), (x,), tmp_path / "m.onnx", dynamo=False, opset_version=17, input_names=["x"], output_names=["logits"],
                          dynamic_axes={"x": {0: "batch"}})
    (tmp_path / "folder").mkdir()
    save_file({name: value.numpy() for name, value in net.state_dict().items()}, tmp_path / "folder" / "model.safetensors")
    out = trained(tools, tmp_path / "m.onnx", {"x": x.numpy(), "labels": labels.numpy()}, tmp_path, 1, "--weights", tmp_path / "folder")
    torch.nn.functional.cross_entropy(net(x), labels).backward()
    torch.optim.SGD(net.parameters(), lr=SGD["params"]["lr"]).step()
    assert numpy.allclose(output_of(out, x.numpy()), net(x).detach().numpy(), atol=1e-6)
    refusal = tools.refused("ds-run", "export", tmp_path / "w.safetensors", "--onnx", tmp_path / "n.onnx", "--like", tmp_path / "m.onnx", env=WITH_PYTHON)
    assert "has no place for 1 of the 10 tensors of the run: head.weight" in refusal and "--weights FOLDER" in refusal


def test_what_has_no_place_is_refused(tools, tmp_path):
    model, data = constants(tmp_path), {"x": values(4, 6), "labels": numpy.zeros(4, numpy.int64)}
    trained(tools, model, data, tmp_path, 1)
    weights, other = tmp_path / "w.safetensors", file_of(tmp_path / "o.onnx", [helper.make_node("MatMul", ["x", "w"], ["y"])], {"w": values(6, 3)}, ["batch", 6])

    def refused(*arguments, code=1, env=WITH_PYTHON):
        return tools.refused("ds-run", "export", weights, *arguments, code=code, env=env)

    assert "w has shape [6, 8] in the run, but [6, 3] in" in refused("--onnx", tmp_path / "n.onnx", "--like", other)
    onnx.save(onnx.helper.make_model(helper.make_graph([], "empty", [], [])), tmp_path / "e.onnx")
    assert "has no place for 3 of the 3 tensors of the run: b, v, w" in refused("--onnx", tmp_path / "n.onnx", "--like", tmp_path / "e.onnx")
    assert "cannot be read as an ONNX model" in refused("--onnx", tmp_path / "n.onnx", "--like", weights)
    assert "--like" in refused("--onnx", model, "--like", model)
    assert "--like" in refused("--onnx", tmp_path / "n.onnx", code=2)
    assert "No such file or directory" in refused("--onnx", tmp_path / "none" / "n.onnx", "--like", model)
    assert "python3" in refused("--onnx", tmp_path / "n.onnx", "--like", model, env={**os.environ, "PATH": str(tmp_path)})
    assert not (tmp_path / "n.onnx").exists() and not list(tmp_path.glob("*.part"))
