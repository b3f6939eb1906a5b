"""Small ONNX models built by hand: what test_gradients.py and test_bad_models.py give to ds-opt.

A model has an input x [batch, 1], which every training graph needs, initializers with dotted names as parameters and
initializers without dots as constants. Its loss adds up what the nodes made and the mean of x.
"""

import json
import math
from pathlib import Path

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from safetensors.numpy import save_file

BATCH = 2
OPSET, IR_VERSION = 20, 10

erf = numpy.vectorize(math.erf, otypes=[float])


class Erf(OpRun):
    """In float64, where the evaluator's own goes through float32."""

    def _run(self, x):
        return (erf(x),)


class Gelu(OpRun):
    """In float64, too."""

    def _run(self, x, approximate="none"):
        inner = erf(x / math.sqrt(2)) if approximate == "none" else numpy.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
        return (0.5 * x * (1 + inner),)


class Mean(OpRun):
    """Of shapes that broadcast."""

    def _run(self, *values):
        return (sum(values) / len(values),)


class GlobalMaxPool(OpRun):
    """Also of one spatial dimension."""

    def _run(self, x):
        return (x.max(axis=tuple(range(2, x.ndim)), keepdims=True),)


class GroupNormalization(OpRun):
    """Of opset 21, not through float32."""

    def _run(self, x, scale, bias, num_groups, epsilon=1e-5, stash_type=1):
        groups = x.reshape(len(x), num_groups, -1)
        normal = (groups - groups.mean(2, keepdims=True)) / numpy.sqrt(groups.var(2, keepdims=True) + epsilon)
        column = (-1, *[1] * (x.ndim - 2))
        return (normal.reshape(x.shape) * scale.reshape(column) + bias.reshape(column),)


class GridSample(OpRun):
    """PyTorch's, in float64."""

    def _run(self, x, grid, align_corners=0, mode="linear", padding_mode="zeros"):
        import torch
        mode = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)
        return (torch.nn.functional.grid_sample(torch.tensor(x), torch.tensor(grid), mode, padding_mode, bool(align_corners)).numpy(),)


class AffineGrid(OpRun):
    """PyTorch's, in float64."""

    def _run(self, theta, size, align_corners=0):
        import torch
        return (torch.nn.functional.affine_grid(torch.tensor(theta), size.tolist(), bool(align_corners)).numpy(),)


class LRN(OpRun):
    """Of all channels: the evaluator's own stops after as many as there are samples."""

    def _run(self, x, size, alpha=1e-4, beta=0.75, bias=1.0):
        padded = numpy.pad(x * x, [(0, 0), ((size - 1) // 2, size // 2), (0, 0), (0, 0)])
        sums = sum(padded[:, i:i + x.shape[1]] for i in range(size))
        return (x / (bias + alpha / size * sums) ** beta,)


class MeanVarianceNormalization(OpRun):
    """In float64, too."""

    def _run(self, x, axes=(0, 2, 3)):
        axes = tuple(axes)
        return ((x - x.mean(axes, keepdims=True)) / (x.std(axes, keepdims=True) + 1e-9),)


class Pad(OpRun):
    """In every mode, and with negative pads, which remove."""

    def _run(self, x, pads, value=None, axes=None, mode="constant"):
        low, high = numpy.zeros((2, x.ndim), int)
        axes = range(x.ndim) if axes is None else axes
        low[list(axes)], high[list(axes)] = numpy.split(pads, 2)
        cut = tuple(slice(max(-before, 0), size - max(-after, 0)) for before, after, size in zip(low, high, x.shape))
        widths = list(zip(numpy.maximum(low, 0), numpy.maximum(high, 0)))
        if mode == "constant":
            return (numpy.pad(x[cut], widths, constant_values=value or 0),)
        return (numpy.pad(x[cut], widths, mode=mode),)


class LogSoftmax(OpRun):
    """Before opset 13: all dimensions from `axis` on are one."""

    def _run(self, x, axis=1):
        rows = x.reshape(math.prod(x.shape[:axis]), -1)
        rows = rows - rows.max(1, keepdims=True)
        return ((rows - numpy.log(numpy.exp(rows).sum(1, keepdims=True))).reshape(x.shape),)


class Softmax(LogSoftmax):
    """Of the same rows."""

    def _run(self, x, axis=1):
        return (numpy.exp(LogSoftmax._run(self, x, axis)[0]),)


class LinearAttention(OpRun):
    """The formulas of its documentation, in float64; the evaluator's own computes in float32."""

    def _run(self, query, key, value, past_state=None, decay=None, beta=None, chunk_size=64, kv_num_heads=None, q_num_heads=None, scale=0.0,
             update_rule="gated_delta"):
        batch, steps, _ = query.shape
        q, k, v = (x.reshape(batch, steps, heads, -1) for x, heads in ((query, q_num_heads), (key, kv_num_heads), (value, kv_num_heads)))
        state = numpy.zeros((batch, kv_num_heads, k.shape[3], v.shape[3])) if past_state is None else past_state
        outputs = []
        for t in range(steps):
            if update_rule.startswith("gated"):
                state = numpy.exp(decay[:, t].reshape(batch, kv_num_heads, -1, 1)) * state
            added = v[:, t]
            if update_rule.endswith("delta"):
                added = beta[:, t, :, None] * (added - numpy.einsum("bhkv,bhk->bhv", state, k[:, t]))
            state = state + k[:, t, :, :, None] * added[:, :, None]
            read = numpy.repeat(state, q_num_heads // kv_num_heads, 1)
            outputs.append((scale or k.shape[3] ** -0.5) * numpy.einsum("bhkv,bhk->bhv", read, q[:, t]))
        return numpy.stack(outputs, 1).reshape(batch, steps, -1), state


class CausalConvWithState(OpRun):
    """In float64, too."""

    def _run(self, x, weight, bias=None, past_state=None, activation="none"):
        k = weight.shape[2]
        padded = numpy.concatenate([numpy.zeros((*x.shape[:2], k - 1)) if past_state is None else past_state, x], 2)
        y = sum(padded[:, :, i:i + x.shape[2]] * weight[:, 0, i][:, None] for i in range(k))
        y = y if bias is None else y + bias[:, None]
        return y / (1 + numpy.exp(-y)) if activation != "none" else y, padded[:, :, x.shape[2]:]


def evaluator(proto) -> ReferenceEvaluator:
    """ONNX's definition of every operator, in numpy."""
    opset = proto.opset_import[0].version
    changed = [LogSoftmax, Softmax] if opset < 13 else [GroupNormalization] if opset >= 21 else []
    return ReferenceEvaluator(proto, new_ops=[AffineGrid, CausalConvWithState, Erf, Gelu, GlobalMaxPool, GridSample, LinearAttention, LRN, Mean,
                                             MeanVarianceNormalization, Pad, *changed])


class Graph:
    """Collects nodes, parameters and constants; a value is known by its name."""

    def __init__(self, opset=OPSET, dtype=TensorProto.DOUBLE):
        self.opset, self.dtype = opset, dtype
        self.nodes, self.parameters, self.constants = [], {}, {}
        self.inputs = {"x": numpy.linspace(-0.7, 0.9, BATCH).reshape(BATCH, 1)}
        self.terms = []  # scalars, whose sum is the loss

    def parameter(self, name, value):
        self.parameters[name] = numpy.asarray(value)
        return name

    def constant(self, value, dtype=None):
        name = f"constant_{len(self.constants)}"
        self.constants[name] = numpy.asarray(value, dtype)
        return name

    def ints(self, *values):
        return self.constant(values, numpy.int64)

    def input(self, name, value):
        """A graph input; dimension 0 is the batch."""
        assert len(value) == BATCH
        self.inputs[name] = numpy.asarray(value)
        return name

    def op(self, kind, *inputs, outputs=1, **attributes):
        """Adds a node; its output's name, or a list of them."""
        names = [f"{kind.lower()}_{len(self.nodes)}" + (f"_{i}" if outputs > 1 else "") for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=f"node_{len(self.nodes)}", **attributes))
        return names if outputs > 1 else names[0]

    def sum(self, value):
        """The sum over all elements, as a scalar."""
        return self.op("ReduceSum", value, keepdims=0)

    def project(self, value, generator):
        """Adds sum(value * random numbers) to the loss."""
        probe = generator.standard_normal(self.evaluate(value).shape)
        self.terms.append(self.sum(self.op("Mul", value, self.constant(probe))))

    def evaluate(self, value) -> numpy.ndarray:
        """What the nodes so far make of `value`."""
        output = helper.make_tensor_value_info(value, self.dtype, None)
        return evaluator(self._proto(self.nodes, output)).run(None, self.inputs)[0]

    def proto(self) -> onnx.ModelProto:
        nodes = [*self.nodes, helper.make_node("ReduceMean", ["x"], ["total"], keepdims=0),
                 helper.make_node("Sum", ["total", *self.terms], ["loss"])]
        return self._proto(nodes, helper.make_tensor_value_info("loss", self.dtype, []))

    def _proto(self, nodes, output) -> onnx.ModelProto:
        inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), ["batch", *value.shape[1:]])
                  for name, value in self.inputs.items()]
        initializers = [numpy_helper.from_array(value, name) for name, value in (self.parameters | self.constants).items()]
        graph = helper.make_graph(nodes, "small", inputs, [output], initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=IR_VERSION)
        helper.set_model_props(model, {"deepstatic.trainable": json.dumps(list(self.parameters))})
        return model

    def write(self, folder: Path) -> Path:
        """model.onnx and data.safetensors in `folder`."""
        onnx.save(self.proto(), folder / "model.onnx")
        save_file(self.inputs, folder / "data.safetensors")
        return folder / "model.onnx"


class Oracle:
    """The loss by ONNX's own definition in numpy, for any values of the parameters."""

    def __init__(self, graph: Graph):
        proto = graph.proto()
        names = set(graph.parameters)
        kept = [tensor for tensor in proto.graph.initializer if tensor.name not in names]
        for tensor in proto.graph.initializer:
            if tensor.name in names:
                proto.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
        del proto.graph.initializer[:]
        proto.graph.initializer.extend(kept)
        self.session, self.inputs = evaluator(proto), graph.inputs

    def __call__(self, parameters) -> float:
        return float(self.session.run(None, {**self.inputs, **parameters})[0])


def central_difference(loss, parameters, name, direction, h=1e-5) -> float:
    """d loss / d parameters[name] along `direction`."""
    moved = [loss({**parameters, name: parameters[name] + sign * h * direction}) for sign in (1, -1)]
    return (moved[0] - moved[1]) / (2 * h)
