"""Models drawn from a seed: a specification of plain values, which can be made smaller, and the ONNX graph that it stands for.

A specification names a family (tokens, images or vectors), sizes, a list of blocks and a head. Everything else follows from it, the first values
of parameters too, so equal specifications give equal files.
"""

import json
import zlib

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET, IR_VERSION = 23, 10
SAMPLES = 192  # of the data: a multiple of no step's samples in particular

TOKEN_BLOCKS = ["attention", "mlp", "gated", "moe", "convolution", "batch_norm", "recurrent", "lora", "scale", "dropout", "norm", "repeat"]
OPEN_BLOCKS = ["mlp", "gated", "moe", "lora", "scale", "dropout", "norm", "batch_norm", "convolution"]
IMAGE_BLOCKS = ["convolution", "depthwise", "residual", "batch_norm", "group_norm", "pool", "dropout", "scale"]
VECTOR_BLOCKS = ["linear", "gated", "batch_norm", "norm", "lora", "scale", "dropout", "moe"]


def draw_model(random, exports=()) -> dict:
    """A specification; now and then one of `exports`."""
    if exports and random.random() < 0.15:
        return {"family": "exported", "name": random.choice(list(exports)), "seed": 0}
    family = random.choices(["tokens", "images", "vectors"], [6, 2, 2])[0]
    blocks = {"tokens": TOKEN_BLOCKS, "images": IMAGE_BLOCKS, "vectors": VECTOR_BLOCKS}[family]
    if random.random() < 0.3:  # a plain one, of one kind repeated
        kinds = [random.choice(blocks)] * random.choice([1, 2, 3, 4, 8])
        if family == "tokens" and random.random() < 0.6:
            kinds = ["attention", "mlp"] * random.choice([1, 2, 3, 4])
    else:
        kinds = [random.choice(blocks) for _ in range(random.choice([1, 1, 2, 2, 3, 4, 5]))]
    spec = {"family": family, "width": random.choice([4, 6, 8, 12, 16, 16, 20, 32, 32, 48, 64]),
            "tokens": random.choice([1, 3, 4, 4, 8, 16]), "vocabulary": random.choice([5, 16, 17, 32, 50, 64, 96, 128, 4099]),
            "blocks": [draw_block(random, kind) for kind in kinds],
            "head": random.choice(["tied", "untied", "untied", "bias", "pooled"] if family == "tokens" else ["bias", "untied", "regression"]),
            "norm": random.choice(["layer", "layer", "rms", "none"]), "positions": random.random() < 0.4,
            "frozen": random.choice(["", "", "", "", "embedding", "norm", "bias", r"blocks\.0", "all but lora"]),
            "transposed": random.random() < 0.6, "shifted": random.random() < 0.4, "seed": random.randrange(1000),
            "open": random.random() < 0.1, "ends": "loss",
            "order": random.choice(["written", "written", "reversed", *range(1, 5)])}
    if spec["frozen"] == "all but lora" and "lora" not in kinds:
        spec["frozen"] = ""
    spec["open"] = spec["open"] and can_open(spec)
    if spec["open"]:
        spec["tokens"] = 8  # --dim may ask for as many
    return spec


def can_open(spec) -> bool:
    """Whether the model can leave open how many tokens a sample has."""
    return spec["family"] == "tokens" and all(block["kind"] in OPEN_BLOCKS for block in spec["blocks"]) and not spec["positions"] \
        and not spec["shifted"]


def opened(spec) -> dict:
    """The nearest specification that leaves it open."""
    blocks = [block for block in spec.get("blocks", []) if block["kind"] in OPEN_BLOCKS]
    return {"width": 8, "vocabulary": 17, "norm": "layer", "frozen": "", "transposed": False, "order": "written", "ends": "loss", **spec,
            "family": "tokens", "blocks": blocks, "positions": False, "shifted": False, "tokens": 8, "open": True,
            "head": spec["head"] if spec["family"] == "tokens" else "untied"}


def enlarged(spec) -> dict:
    """The same with an embedding of more elements than the pieces have in which updates are cut."""
    return {**spec, "vocabulary": 4099, "width": max(16, spec["width"])} if spec["family"] == "tokens" else spec


def draw_block(random, kind) -> dict:
    return {"kind": kind, "heads": random.choice([1, 2]), "grown": random.choice([1, 2, 3]), "bias": random.random() < 0.6,
            "norm": random.choice(["layer", "rms", "none"]), "act": random.choice(["Relu", "Gelu", "Tanh", "Sigmoid"]),
            "cell": random.choice(["LSTM", "GRU", "RNN"]), "packed": random.random() < 0.5}


class Builder:
    """Collects the nodes of a specification."""

    def __init__(self, spec):
        self.spec, self.nodes, self.parameters, self.buffers, self.constants = spec, [], {}, {}, {}
        self.scope, self.tied = "", []

    def op(self, kind, *inputs, outputs=1, **attributes):
        names = [f"v{len(self.nodes)}" + (f"_{i}" if outputs > 1 else "") for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=f"{self.scope or 'top'}/{kind}_{len(self.nodes)}", **attributes))
        return names if outputs > 1 else names[0]

    def parameter(self, name, *shape, ones=False):
        """A parameter of the scope at hand; its first values follow from its name."""
        name = f"{self.scope}.{name}" if self.scope else name
        random = numpy.random.default_rng(zlib.crc32(f"{self.spec['seed']} {name}".encode()))
        value = random.standard_normal(shape) * (0.3 if len(shape) == 1 else 0.7 * (shape[0] / numpy.prod(shape)) ** 0.5) + (1 if ones else 0)
        return self._once(self.parameters, name, value.astype(numpy.float32))

    def buffer(self, name, value):
        return self._once(self.buffers, f"{self.scope}.{name}", value.astype(numpy.float32))

    @staticmethod
    def _once(table, name, value):
        assert name not in table or table[name].shape == value.shape
        table.setdefault(name, value)
        return name

    def constant(self, value, dtype=numpy.float32):
        value = numpy.asarray(value, dtype)
        name = f"c{len(self.constants)}"
        self.constants[name] = value
        return name

    def ints(self, *values):
        return self.constant(values, numpy.int64)

    # layers, on [..., width]

    def linear(self, x, name, sources, results, bias=True):
        if self.spec["transposed"]:  # as PyTorch's exporter writes it
            weight = self.op("Transpose", self.parameter(f"{name}.weight", results, sources), perm=[1, 0])
        else:
            weight = self.parameter(f"{name}.weight", sources, results)
        y = self.op("MatMul", x, weight)
        return self.op("Add", y, self.parameter(f"{name}.bias", results)) if bias else y

    def normed(self, x, name, width, kind):
        if kind == "layer":
            return self.op("LayerNormalization", x, self.parameter(f"{name}.weight", width, ones=True), self.parameter(f"{name}.bias", width),
                           axis=-1)
        if kind == "rms":
            return self.op("RMSNormalization", x, self.parameter(f"{name}.weight", width, ones=True), axis=-1)
        return x

    def batch_norm(self, x, width, index=0):
        name = f"bn{index}" if index else "bn"
        mean, variance = self.buffer(f"{name}.running_mean", numpy.zeros(width)), self.buffer(f"{name}.running_var", numpy.ones(width))
        return self.op("BatchNormalization", x, self.parameter(f"{name}.weight", width, ones=True), self.parameter(f"{name}.bias", width),
                       mean, variance, outputs=3, training_mode=1)[0]

    def attention(self, x, block, tokens, width):
        heads = block["heads"] if width % block["heads"] == 0 else 1
        size = width // heads
        y = self.normed(x, "norm", width, block["norm"])

        def head(z):
            return self.op("Transpose", self.op("Reshape", z, self.ints(0, 0, heads, size)), perm=[0, 2, 1, 3])
        if block["packed"]:
            parts = self.op("Split", self.linear(y, "qkv", width, 3 * width, block["bias"]), self.ints(width, width, width), outputs=3, axis=-1)
        else:
            parts = [self.linear(y, name, width, width, block["bias"]) for name in ("q", "k", "v")]
        q, k, v = map(head, parts)
        scores = self.op("Mul", self.op("MatMul", q, self.op("Transpose", k, perm=[0, 1, 3, 2])), self.constant(size ** -0.5))
        mask = numpy.triu(numpy.full((tokens, tokens), -1e9), 1)
        weights = self.op("Softmax", self.op("Add", scores, self.constant(mask)), axis=-1)
        z = self.op("Transpose", self.op("MatMul", weights, v), perm=[0, 2, 1, 3])
        z = self.op("Reshape", z, self.ints(0, 0, width))
        return self.op("Add", x, self.linear(z, "out", width, width, block["bias"]))

    def mlp(self, x, block, width):
        y, grown = self.normed(x, "norm", width, block["norm"]), block["grown"] * width
        y = self.op(block["act"], self.linear(y, "up", width, grown, block["bias"]))
        return self.op("Add", x, self.linear(y, "down", grown, width, block["bias"]))

    def gated(self, x, block, width):
        y, grown = self.normed(x, "norm", width, block["norm"]), block["grown"] * width
        gate = self.linear(y, "gate", width, grown, False)
        y = self.op("Mul", self.op("Mul", gate, self.op("Sigmoid", gate)), self.linear(y, "up", width, grown, False))
        return self.op("Add", x, self.linear(y, "down", grown, width, False))

    def moe(self, x, block, width):
        """The best of some experts for each row; all are computed."""
        experts, flat = 1 + block["grown"], self.op("Reshape", x, self.ints(-1, width))
        gates = self.op("Softmax", self.linear(flat, "router", width, experts, False), axis=-1)
        best, _ = self.op("TopK", gates, self.ints(1), axis=-1, outputs=2)
        gates = self.op("Where", self.op("GreaterOrEqual", gates, best), gates, self.constant(0))
        y = self.op(block["act"], self.op("MatMul", flat, self.parameter("experts.up", experts, width, width)))
        y = self.op("MatMul", y, self.parameter("experts.down", experts, width, width))
        weights = self.op("Unsqueeze", self.op("Transpose", gates, perm=[1, 0]), self.ints(2))
        y = self.op("ReduceSum", self.op("Mul", y, weights), self.ints(0), keepdims=0)
        return self.op("Add", x, self.op("Reshape", y, self.op("Shape", x)))

    def lora(self, x, block, width):
        rank = block["heads"]
        y = self.linear(x, "base", width, width, block["bias"])
        low = self.op("MatMul", self.op("MatMul", x, self.parameter("lora_a", width, rank)), self.parameter("lora_b", rank, width))
        return self.op("Add", x, self.op(block["act"], self.op("Add", y, low)))

    def recurrent(self, x, block, width):
        cell = block["cell"]
        gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[cell]
        operands = [self.op("Transpose", x, perm=[1, 0, 2]), self.parameter("w", 1, gates * width, width),
                    self.parameter("r", 1, gates * width, width)]
        if block["bias"]:
            operands.append(self.parameter("b", 1, 2 * gates * width))
        y = self.op(cell, *operands, outputs=2, hidden_size=width)[0]
        return self.op("Add", x, self.op("Transpose", self.op("Squeeze", y, self.ints(1)), perm=[1, 0, 2]))

    def along_tokens(self, x, made):
        """`made` of [batch, width, tokens]."""
        return self.op("Transpose", made(self.op("Transpose", x, perm=[0, 2, 1])), perm=[0, 2, 1])

    def scaled(self, x):
        return self.op("Mul", x, self.op("Add", self.parameter("scale", 1), self.constant(1)))

    def dropped(self, x):
        return self.op("Dropout", x, self.constant(0.1), self.constant(True, numpy.bool_), outputs=2)[0]

    # families

    def tokens(self):
        spec = self.spec
        width, tokens, vocabulary = spec["width"], spec["tokens"], spec["vocabulary"]
        x = self.op("Gather", self.parameter("embedding.weight", vocabulary, width), "input_ids")
        if spec["positions"]:
            x = self.op("Add", x, self.parameter("positions.weight", tokens, width))
        scopes = []
        for number, block in enumerate(spec["blocks"]):
            kind, self.scope = block["kind"], f"blocks.{number}"
            times = 1
            if kind == "repeat" and scopes:  # the weights of the block before it, so many times more
                times, (self.scope, block) = block["grown"], scopes[-1]
            elif kind == "repeat":
                block = {**block, "kind": "mlp"}
            scopes.append((self.scope, block))
            for _ in range(times):
                x = self.token_block(x, block, tokens, width)
        self.scope = ""
        x = self.normed(x, "norm", width, spec["norm"])
        if spec["head"] == "pooled":
            x = self.op("ReduceMean", x, self.ints(1), keepdims=0)
            return self.classified(self.linear(x, "head", width, 7), "labels")
        if spec["head"] == "tied":
            logits = self.op("MatMul", x, self.op("Transpose", "embedding.weight", perm=[1, 0]))
            self.tied = [["head.weight", "embedding.weight"]]
        else:
            logits = self.op("MatMul", x, self.op("Transpose", self.parameter("head.weight", vocabulary, width), perm=[1, 0]))
        if spec["head"] == "bias":
            logits = self.op("Add", logits, self.parameter("head.bias", vocabulary))
        if spec["ends"] == "logits":
            return logits
        if not spec["shifted"] or tokens == 1:
            return self.classified(self.op("Reshape", logits, self.ints(-1, vocabulary)), self.op("Reshape", "labels", self.ints(-1)))
        logits = self.op("Slice", logits, self.ints(0), self.ints(tokens - 1), self.ints(1))
        labels = self.op("Slice", "labels", self.ints(1), self.ints(tokens), self.ints(1))
        return self.classified(self.op("Reshape", logits, self.ints(-1, vocabulary)), self.op("Reshape", labels, self.ints(-1)))

    def token_block(self, x, block, tokens, width):
        kind = block["kind"]
        if kind == "attention":
            return self.attention(x, block, tokens, width)
        if kind == "recurrent":
            return self.recurrent(x, block, width)
        if kind == "convolution":
            weight = self.parameter("weight", width, width, 3)
            return self.op("Add", x, self.along_tokens(x, lambda y: self.op("Conv", y, weight, self.parameter("bias", width), pads=[1, 1],
                                                                            kernel_shape=[3])))
        if kind == "batch_norm":
            return self.along_tokens(x, lambda y: self.batch_norm(y, width))
        return self.row_block(x, block, width)

    def row_block(self, x, block, width):
        """A block on rows of `width`."""
        kind = block["kind"]
        if kind in ("mlp", "gated", "moe", "lora"):
            return getattr(self, kind)(x, block, width)
        if kind == "scale":
            return self.scaled(x)
        if kind == "dropout":
            return self.dropped(x)
        if kind == "linear":
            return self.op(block["act"], self.linear(x, "linear", width, width, block["bias"]))
        return self.normed(x, "norm", width, "rms" if block["norm"] == "rms" else "layer")

    def images(self):
        channels, sides, x = min(self.spec["width"], 12), 8, "x"
        first = self.parameter("embedding.weight", channels, 3, 3, 3)
        x = self.op("Conv", x, first, pads=[1, 1, 1, 1], kernel_shape=[3, 3])
        for number, block in enumerate(self.spec["blocks"]):
            kind, self.scope = block["kind"], f"blocks.{number}"
            if kind == "pool" and sides > 2:
                x, sides = self.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]), sides // 2
            elif kind in ("convolution", "residual"):
                y = self.convolution(x, channels, 1, block)
                x = self.op("Add", x, y) if kind == "residual" else y
            elif kind == "depthwise":
                x = self.convolution(x, channels, channels, block)
            elif kind == "batch_norm":
                x = self.op("Relu", self.batch_norm(x, channels))
            elif kind == "group_norm":
                x = self.op("GroupNormalization", x, self.parameter("weight", channels, ones=True), self.parameter("bias", channels), num_groups=2)
            elif kind == "dropout":
                x = self.dropped(x)
            else:
                x = self.scaled(x)
        self.scope = ""
        x = self.op("Flatten", self.op("GlobalAveragePool", x))
        return self.ended(x, channels)

    def convolution(self, x, channels, groups, block):
        y = self.op("Conv", x, self.parameter("weight", channels, channels // groups, 3, 3),
                    *([self.parameter("bias", channels)] if block["bias"] else []), pads=[1, 1, 1, 1], kernel_shape=[3, 3], group=groups)
        return self.op(block["act"], self.batch_norm(y, channels) if block["norm"] == "layer" else y)

    def vectors(self):
        width, x = self.spec["width"], self.linear("x", "embedding", 5, self.spec["width"])
        for number, block in enumerate(self.spec["blocks"]):
            self.scope = f"blocks.{number}"
            x = self.batch_norm(x, width) if block["kind"] == "batch_norm" else self.row_block(x, block, width)
        self.scope = ""
        return self.ended(self.normed(x, "norm", width, self.spec["norm"]), width)

    def ended(self, x, width):
        if self.spec["head"] != "regression":
            return self.classified(self.linear(x, "head", width, 7, self.spec["head"] == "bias"), "labels")
        made = self.linear(x, "head", width, 1)
        if self.spec["ends"] == "logits":
            return made
        error = self.op("Sub", made, "labels")
        return self.op("ReduceMean", self.op("Mul", error, error), keepdims=0)

    def classified(self, logits, labels):
        if self.spec["ends"] == "logits":
            return logits
        return self.op("SoftmaxCrossEntropyLoss", logits, labels, ignore_index=-100, reduction="mean")


def data_of(spec) -> dict:
    """What the model is trained on, SAMPLES of each input."""
    random = numpy.random.default_rng(spec["seed"])
    if spec["family"] == "tokens":
        tokens, vocabulary = spec["tokens"], spec["vocabulary"]
        labels = random.integers(0, 7, SAMPLES) if spec["head"] == "pooled" else random.integers(0, vocabulary, (SAMPLES, tokens))
        return {"input_ids": random.integers(0, vocabulary, (SAMPLES, tokens)), "labels": labels}
    shape = (3, 8, 8) if spec["family"] == "images" else (5,)
    labels = random.standard_normal((SAMPLES, 1)).astype(numpy.float32) if spec["head"] == "regression" else random.integers(0, 7, SAMPLES)
    return {"x": random.standard_normal((SAMPLES, *shape)).astype(numpy.float32), "labels": labels}


def trained(spec, names) -> list:
    """The parameters that the model does not freeze."""
    import re
    frozen = spec["frozen"]
    if not frozen:
        return list(names)
    if frozen == "all but lora":
        return [name for name in names if "lora" in name]
    return [name for name in names if not re.search(frozen, name)] or list(names)


def shape_of(spec, value) -> list:
    return ["batch", *value.shape[1:]] if not spec["open"] or value.ndim == 1 else ["batch", "seq"]


def graph_of(spec) -> onnx.ModelProto:
    """The graph, its parameters in it."""
    builder = Builder(spec)
    end = spec["ends"]
    builder.nodes.append(helper.make_node("Identity", [getattr(builder, spec["family"])()], [end], name=end))
    inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), shape_of(spec, value))
              for name, value in data_of(spec).items() if end == "loss" or name != "labels"]
    order = list(builder.parameters)
    if spec["order"] == "reversed":
        order.reverse()
    elif spec["order"] != "written":
        numpy.random.default_rng(spec["order"]).shuffle(order)
    parameters = {name: builder.parameters[name] for name in order}
    tensors = parameters | builder.buffers | builder.constants
    made = [] if end == "loss" else ["batch", 1 if spec["head"] == "regression" else 7] if spec["family"] != "tokens" or spec["head"] == "pooled" \
        else [*shape_of(spec, data_of(spec)["labels"]), spec["vocabulary"]]
    graph = helper.make_graph(builder.nodes, "drawn", inputs, [helper.make_tensor_value_info(end, TensorProto.FLOAT, made)],
                              [numpy_helper.from_array(value, name) for name, value in tensors.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    helper.set_model_props(model, {"deepstatic.model": '{"name": "drawn", "size": null}',
                                   "deepstatic.trainable": json.dumps(trained(spec, parameters)),
                                   "deepstatic.tied": json.dumps(builder.tied)})
    return model
