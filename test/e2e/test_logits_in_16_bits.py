"""With bf16 or fp16 no float32 array of rows x vocabulary is in a plan: losses read logits of 16 bits as they are, and write such gradients."""

import math

import numpy
import onnx
import pytest
from conftest import write_config
from onnx import TensorProto, helper, numpy_helper
from plan_files import read_plan, write_plan

BATCH, TOKENS, WIDTH, CLASSES = 4, 16, 8, 1000
F32, U8, BF16, F16 = 7, 2, 9, 10  # of plan.proto
ENDS = {
    "plain": [],
    "float": [helper.make_node("Cast", ["logits"], ["end"], to=TensorProto.FLOAT)],  # logits.float()
    "bias": [helper.make_node("Add", ["logits", "b"], ["end"])],
    "scaled": [helper.make_node("Mul", ["logits", "half"], ["end"])],
    "softcap": [helper.make_node("Div", ["logits", "cap"], ["d"]), helper.make_node("Tanh", ["d"], ["t"]), helper.make_node("Mul", ["t", "cap"], ["end"])],
    "shifted": [helper.make_node("Slice", ["logits", "zero", "last", "one"], ["end"])],
}


def language_model(path, end):
    """The mean cross entropy of x w, `end` behind the product; of "shifted" the last token has no label."""
    values = {"w": numpy.random.default_rng(0).normal(size=(WIDTH, CLASSES)).astype(numpy.float32), "b": numpy.zeros(CLASSES, numpy.float32),
              "half": numpy.float32(0.5), "cap": numpy.float32(30), "zero": numpy.array([0]), "one": numpy.array([1]), "last": numpy.array([TOKENS - 1]),
              "rows": numpy.array([-1, CLASSES]), "flat": numpy.array([-1])}
    product = helper.make_node("MatMul", ["x", "w"], ["logits" if ENDS[end] else "end"])
    loss = [helper.make_node("Reshape", ["end", "rows"], ["r"]), helper.make_node("Reshape", ["labels", "flat"], ["l"]),
            helper.make_node("SoftmaxCrossEntropyLoss", ["r", "l"], ["loss"], ignore_index=-100)]
    labelled = TOKENS - (end == "shifted")
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", TOKENS, WIDTH]),
              helper.make_tensor_value_info("labels", TensorProto.INT64, ["batch", labelled])]
    graph = helper.make_graph([product, *ENDS[end], *loss], "g", inputs, [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])],
                              [numpy_helper.from_array(numpy.asarray(value), name) for name, value in values.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)
    return BATCH * labelled


def commands(plan):
    return [command.kernel for role in plan.roles for routine in role.routines for command in routine.commands if command.HasField("kernel")]


def require_no_wide_logits(path, rows, classes):
    """No operand of float32 has an element for each logit, and no loss has a workspace where such could lie."""
    kernels = commands(read_plan(path))
    assert any(kernel.kernel.startswith("cross_entropy") for kernel in kernels)
    for kernel in kernels:
        for operand in kernel.operands:
            many = math.prod(operand.shape) >= rows * classes
            assert not (many and operand.dtype == F32 and len(operand.shape) > 1 and operand.shape[-1] >= classes), kernel
            assert not (many and operand.dtype == U8 and kernel.kernel.startswith("cross_entropy")), kernel


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
@pytest.mark.parametrize("machine", ["cpu", "h200x1"])
@pytest.mark.parametrize("end", ENDS)
def test_no_logits_of_float32(tools, tmp_path, end, machine, precision):
    rows = language_model(tmp_path / "m.onnx", end)
    config = write_config(tmp_path / "c.json", BATCH, **{precision: {"enabled": True}})
    tools("ds-opt", "compile", tmp_path / "m.onnx", "--config", config, "--machine", machine, "-o", tmp_path / "m.dsplan")
    require_no_wide_logits(tmp_path / "m.dsplan", rows, CLASSES)


@pytest.mark.parametrize("name", ["gpt2", "llama"])
@pytest.mark.parametrize("machine", ["cpu", "h200x1"])
def test_no_logits_of_float32_of_exported_models(tools, exported, tmp_path, name, machine):
    sequence = 32
    folder = exported(name, "--size", "tiny", "--seq", sequence)
    plan, config = tmp_path / "m.dsplan", write_config(tmp_path / "c.json", BATCH, bf16={"enabled": True})
    tools("ds-opt", "compile", folder, "--config", config, "--machine", machine, "-o", plan)
    classes = next(input_.limit for input_ in read_plan(plan).inputs if input_.name == "input_ids")
    require_no_wide_logits(plan, BATCH * (sequence - 1), classes)


def rounded_otherwise(gradient):
    next(operand for operand in gradient.operands if operand.dtype == BF16 and operand.access == operand.WRITE).dtype = F16


def of_another_loss(gradient):
    next(attribute for attribute in gradient.attributes if attribute.name == "reduction").text = "sum"


@pytest.mark.parametrize("machine", ["cpu", "h200x1"])
@pytest.mark.parametrize("edit,said", [(rounded_otherwise, "float16"), (of_another_loss, "its attribute reduction is not that of train.cross_entropy")])
def test_another_gradient_is_refused(tools, tmp_path, edit, said, machine):
    language_model(tmp_path / "m.onnx", "plain")
    plan, config = tmp_path / "m.dsplan", write_config(tmp_path / "c.json", BATCH, bf16={"enabled": True})
    tools("ds-opt", "compile", tmp_path / "m.onnx", "--config", config, "--machine", machine, "-o", plan)
    broken = read_plan(plan)
    edit(next(kernel for kernel in commands(broken) if kernel.kernel.startswith("cross_entropy") and "grad" in kernel.kernel))
    assert said in tools.refused("ds-opt", "verify", write_plan(tmp_path / "broken.dsplan", broken))
