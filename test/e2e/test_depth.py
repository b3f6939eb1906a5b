"""Deep graphs, and files without an end: `ds-opt` comes to its own end, with a plan or a sentence."""

import json
import os
import subprocess

import numpy
import pytest
from conftest import FOLDERS, write_config
from onnx import TensorProto, helper, load, numpy_helper, save

DEEP = 50_000  # nodes


def chain(path, nodes, step):
    """x * w, then `nodes` nodes that step(i, before) makes, and the mean. Weights: a [4] and m [4, 4]."""
    made = [helper.make_node("Mul", ["x", "a.weight"], ["v0"])]
    made += [helper.make_node(*step(i, f"v{i}"), [f"v{i + 1}"]) for i in range(nodes)]
    made.append(helper.make_node("ReduceMean", [f"v{nodes}"], ["loss"], keepdims=0))
    weights = {"a.weight": numpy.array([1, 0.5, 2, 1], numpy.float32), "m.weight": numpy.eye(4, dtype=numpy.float32)}
    graph = helper.make_graph(made, "chain", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])],
                              [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])],
                              [numpy_helper.from_array(value, name) for name, value in weights.items()])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


STEPS = {
    "relu": lambda i, before: ("Relu", [before]),
    "mixed": lambda i, before: [("Relu", [before]), ("Add", [before, "x"]), ("Mul", [before, "a.weight"])][i % 3],
}


@pytest.mark.parametrize("kind", STEPS)
def test_a_deep_chain_needs_no_deep_stack(tools, tmp_path, kind):
    """With a sixteenth of the usual stack, a chain shows what a long one would: a walk that calls itself at every node."""
    model = chain(tmp_path / "m.onnx", DEEP // 16, STEPS[kind])
    config = write_config(tmp_path / "c.json", micro=2)
    command = [FOLDERS["ds-opt"] / "ds-opt", "compile", model, "--config", config, "-o", tmp_path / "p.dsplan"]
    done = subprocess.run(["sh", "-c", 'ulimit -s 512; exec "$0" "$@"', *command], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


@pytest.fixture(params=["/dev/zero", "pipe"])
def endless(request, tmp_path):
    if request.param == "pipe":
        os.mkfifo(tmp_path / "pipe.json")
        return tmp_path / "pipe.json"
    return request.param


@pytest.mark.parametrize("where", ["model", "config", "machine"])
def test_a_file_without_an_end_is_refused(tools, tmp_path, endless, where):
    files = {"model": chain(tmp_path / "m.onnx", 1, STEPS["relu"]), "config": write_config(tmp_path / "c.json", micro=2),
             "machine": tmp_path / "m.json", where: endless}
    (tmp_path / "m.json").write_text(json.dumps({"device": "cpu"}))
    said = tools.refused("ds-opt", "compile", files["model"], "--config", files["config"], "--machine", files["machine"],
                         "-o", tmp_path / "p.dsplan")
    assert str(endless) in said and "is not a regular file" in said


@pytest.mark.parametrize("name", ["__metadata__", "optimizer::step", "a.weight::exp_avg"])
def test_names_that_a_step_needs_are_refused(tools, tmp_path, name):
    model = chain(tmp_path / "m.onnx", 1, lambda i, before: ("Mul", [before, name]))
    proto = load(model)
    proto.graph.initializer.append(numpy_helper.from_array(numpy.ones(4, numpy.float32), name))
    save(proto, model)
    said = tools.refused("ds-opt", "compile", model, "--config", write_config(tmp_path / "c.json", micro=2),
                         "-o", tmp_path / "p.dsplan")
    assert f"initializer '{name}' has" in said and "rename it" in said


@pytest.mark.parametrize("epsilon", [-1.0, float("nan"), float("inf")])
def test_an_epsilon_below_zero_is_refused_by_its_node(tools, tmp_path, epsilon):
    model = chain(tmp_path / "m.onnx", 1, lambda i, before: ("LayerNormalization", [before, "a.weight"]))
    proto = load(model)
    node = proto.graph.node[1]
    node.name = "the_norm"
    node.attribute.append(helper.make_attribute("epsilon", epsilon))
    save(proto, model)
    said = tools.refused("ds-opt", "compile", model, "--config", write_config(tmp_path / "c.json", micro=2),
                         "-o", tmp_path / "p.dsplan")
    assert "the_norm" in said and "epsilon is" in said and "0 or more" in said
