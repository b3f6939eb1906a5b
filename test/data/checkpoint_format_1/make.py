"""Writes model.onnx and data.safetensors. `saved` is of ds-run 0.1.0, whose manifests had format 1:

    ds-opt compile model.onnx --attach-loss classification --batch-norm train --config config.json --ranks 2 -o m.dsplan
    ds-run m.dsplan -n 2 --data data.safetensors --steps 2 --save saved
"""

from pathlib import Path

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import save_file

FOLDER, DRAW = Path(__file__).parent, numpy.random.default_rng(0)
VALUES = {"first.weight": DRAW.standard_normal((3, 4)) / 2, "first.bias": numpy.zeros(4), "norm.weight": numpy.ones(4), "norm.bias": numpy.zeros(4),
          "norm.running_mean": numpy.zeros(4), "norm.running_var": numpy.ones(4), "last.weight": DRAW.standard_normal((4, 5)) / 2,
          "last.bias": numpy.zeros(5)}
NODES = [helper.make_node("Gemm", ["x", "first.weight", "first.bias"], ["h"], name="first"),
         helper.make_node("BatchNormalization", ["h", *(f"norm.{name}" for name in ("weight", "bias", "running_mean", "running_var"))], ["n"], name="norm"),
         helper.make_node("Relu", ["n"], ["a"]), helper.make_node("Gemm", ["a", "last.weight", "last.bias"], ["logits"], name="last")]
GRAPH = helper.make_graph(NODES, "tiny", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3])],
                          [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 5])],
                          [numpy_helper.from_array(value.astype(numpy.float32), name) for name, value in VALUES.items()])
onnx.save(helper.make_model(GRAPH, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), FOLDER / "model.onnx")
save_file({"x": DRAW.standard_normal((64, 3)).astype(numpy.float32), "labels": DRAW.integers(0, 5, 64)}, FOLDER / "data.safetensors")
