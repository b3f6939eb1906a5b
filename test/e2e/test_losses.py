"""Kinds, keys and files of losses beside PyTorch: the losses of three steps, every parameter after one, and verify."""

import subprocess
import sys

import numpy
import onnx
import pytest
import torch
from conftest import REPOSITORY, write_config
from onnx import TensorProto, helper, numpy_helper
from plan_files import read_plan, write_plan
from safetensors.torch import load_file, save_file
from torch.nn import functional

BATCH, WIDTH, CLASSES, STEPS, RATE = 4, 3, 5, 3, 0.5
WEIGHTS = [1, 0.25, 2, 0.5, 3]
SIZES = {"classification": [], "token-classification": [6], "causal-lm": [6], "masked-lm": [6], "segmentation": [2, 3], "multi-label": [6], "regression": [2, 3]}
OF_CLASSES = [kind for kind in SIZES if kind not in ("multi-label", "regression")]


def save_model(path, kind, ending=(), axis=None):
    """logits = x w + b, for segmentation with the classes second; behind them the nodes of `ending`. Its parameters."""
    random = numpy.random.default_rng(0)
    values = {"w.0": random.normal(size=(WIDTH, CLASSES)).astype(numpy.float32), "b.0": numpy.float32([0, 0.1, -0.2, 0.3, -0.4])}
    order = [0, 3, 1, 2] if kind == "segmentation" else list(range(len(SIZES[kind]) + 2))
    nodes = [helper.make_node("MatMul", ["x", "w.0"], ["product"]), helper.make_node("Add", ["product", "b.0"], ["rows"]),
             helper.make_node("Transpose", ["rows"], ["logits"], perm=order), *ending]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", *SIZES[kind], WIDTH])],
                              [helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(value, name) for name, value in values.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)
    return {name: torch.from_numpy(value).requires_grad_() for name, value in values.items()}


def logits_of(kind, parameters, x):
    rows = x @ parameters["w.0"] + parameters["b.0"]
    return rows.movedim(-1, 1) if kind == "segmentation" else rows


def samples(kind, path, ignored=-100):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(STEPS * BATCH, *SIZES[kind], WIDTH, generator=generator)
    x[0] = 0  # so that logits are 0, where max(x, 0) has no gradient
    shape = (STEPS * BATCH, *SIZES[kind])
    if kind == "regression":
        labels = torch.randn(*shape, CLASSES, generator=generator)
    elif kind == "multi-label":
        labels = torch.randint(0, 2, (*shape, CLASSES), generator=generator).float()
    else:
        labels = torch.randint(0, CLASSES, shape, generator=generator)
        labels.flatten()[::4] = ignored
    save_file({"x": x, "labels": labels}, path)
    return x, labels


def loss_of(kind, logits, labels, class_weights=None, **keys):
    if kind == "regression":
        return functional.mse_loss(logits, labels)
    if kind == "multi-label":
        weight = keys.get("pos_weight")
        return functional.binary_cross_entropy_with_logits(logits, labels, pos_weight=weight and torch.tensor(weight, dtype=torch.float32))
    if kind == "causal-lm":
        logits, labels = logits[:, :-1], labels[:, 1:]
    if kind != "segmentation":
        logits, labels = logits.reshape(-1, CLASSES), labels.reshape(-1)
    weight = class_weights and torch.tensor(class_weights, dtype=torch.float32)
    return functional.cross_entropy(logits, labels, weight=weight, **keys)


def descend(parameters, loss):
    for parameter, gradient in zip(parameters.values(), torch.autograd.grad(loss, [*parameters.values()])):
        parameter.data -= RATE * gradient


def config_of(folder, **deepstatic):
    return write_config(folder / "c.json", BATCH, optimizer={"type": "SGD", "params": {"lr": RATE}}, deepstatic=deepstatic)


def check_steps(tools, plan, folder, parameters, losses):
    """Steps of the plan beside those of `losses`, functions of the number of the step."""
    tools.train(plan, folder / "data.safetensors", 1, "--export", folder / "one.safetensors")
    lines, _ = tools.train(plan, folder / "data.safetensors", STEPS)
    expected = []
    for step in range(STEPS):
        loss = losses(step)
        expected.append(loss.item())
        descend(parameters, loss)
        if step == 0:
            for name, value in load_file(folder / "one.safetensors").items():
                assert (value - parameters[name]).abs().max() <= 1e-6 * parameters[name].abs().max(), name
    numpy.testing.assert_allclose([line["loss"] for line in lines], expected, rtol=2e-6)


def part(tensor, step):
    return tensor[step * BATCH:(step + 1) * BATCH]


def audited(plan, model, config):
    audit = [sys.executable, REPOSITORY / "tools" / "ds-audit" / "ds-audit", plan, "--model", model, "--config", config]
    return subprocess.run(audit, capture_output=True, text=True)


def check_kind(tools, folder, kind, parameters, keys, ignored):
    x, labels = samples(kind, folder / "data.safetensors", ignored)
    config, model, plan = config_of(folder, loss={"kind": kind, **keys}), folder / "m.onnx", folder / "m.dsplan"
    said = tools("ds-opt", "compile", model, "--config", config, "-o", plan).stderr
    check_steps(tools, plan, folder, parameters, lambda step: loss_of(kind, logits_of(kind, parameters, part(x, step)), part(labels, step), **keys))
    assert "attached_loss" in tools("ds-opt", "verify", plan, "--model", model, "--config", config, "--format", "json").stdout
    return said, plan, model, config


KEYS = {"plain": {}, "ignored": {"ignore_index": 2}, "weights": {"class_weights": WEIGHTS}, "equal": {"class_weights": [2] * CLASSES}, "smoothing": {"label_smoothing": 0.2},
        "positive": {"pos_weight": WEIGHTS}, "one for all": {"pos_weight": [3]},
        "all": {"ignore_index": 2, "class_weights": WEIGHTS, "label_smoothing": 0.2}}
CASES = [(kind, "plain") for kind in SIZES] + [("multi-label", key) for key in ("positive", "one for all")] + [(kind, "all") for kind in OF_CLASSES] + [("segmentation", key) for key in ("ignored", "weights", "equal", "smoothing")]


@pytest.mark.parametrize("kind,key", CASES)
def test_a_loss_is_that_of_torch(tools, tmp_path, kind, key):
    parameters = save_model(tmp_path / "m.onnx", kind)
    keys = KEYS[key]
    _, *files = check_kind(tools, tmp_path, kind, parameters, keys, keys.get("ignore_index", -100))
    if key == "all" or kind in ("multi-label", "regression"):
        done = audited(*files)
        assert "the loss" in done.stdout, done.stderr


SEEN = {"softmax": ("classification", [helper.make_node("Softmax", ["logits"], ["p"], axis=-1)]),
        "softmax over channels": ("segmentation", [helper.make_node("Softmax", ["logits"], ["p"], axis=1)]),
        "softmax between transposes": ("segmentation", [helper.make_node("Transpose", ["logits"], ["last"], perm=[0, 2, 3, 1]),
                                                        helper.make_node("Softmax", ["last"], ["q"], axis=-1),
                                                        helper.make_node("Transpose", ["q"], ["p"], perm=[0, 3, 1, 2])]),
        "logarithm of a softmax": ("masked-lm", [helper.make_node("LogSoftmax", ["logits"], ["p"], axis=-1)]),
        "sigmoid": ("multi-label", [helper.make_node("Sigmoid", ["logits"], ["p"])])}


@pytest.mark.parametrize("name", SEEN)
def test_probabilities_are_seen_through(tools, tmp_path, name):
    kind, ending = SEEN[name]
    said, *files = check_kind(tools, tmp_path, kind, save_model(tmp_path / "m.onnx", kind, ending), {}, -100)
    what = name.replace(" over channels", "").replace(" between transposes", "")
    assert f"output 'p' is a {what}, so the loss is taken of what the {what} is computed of" in said
    done = audited(*files)
    assert "the loss" in done.stdout, done.stderr


def ops(plan, name):
    return [op for op in plan.reference.ops if op.op == "train." + name and op.name == "loss"]


def set_attribute(plan, op, name, value):
    for one in ops(plan, op):
        for attribute in one.attributes:
            if attribute.name == name:
                attribute.integer = value


def swap(plan, op):
    for one in ops(plan, op):
        one.operands[0], one.operands[1] = one.operands[1], one.operands[0]


EDITS = {"weights of labels of 1": ("multi-label", lambda plan: set_attribute(plan, "constant", "crc32c", 1)),
         "weights": ("segmentation", lambda plan: set_attribute(plan, "constant", "crc32c", 1)),
         "quotient": ("segmentation", lambda plan: swap(plan, "div")),
         "labels and logits": ("multi-label", lambda plan: swap(plan, "mul"))}


@pytest.mark.parametrize("name", EDITS)
def test_verify_derives_the_loss_again(tools, tmp_path, name):
    """The checker, which compares commands with the reference program, may be the first to see an edit."""
    kind, edit = EDITS[name]
    save_model(tmp_path / "m.onnx", kind)
    keys = KEYS["positive" if "of 1" in name else "all" if kind == "segmentation" else "plain"]
    config = config_of(tmp_path, loss={"kind": kind, **keys})
    files = "--model", tmp_path / "m.onnx", "--config", config
    tools("ds-opt", "compile", files[1], *files[2:], "-o", tmp_path / "m.dsplan")
    plan = read_plan(tmp_path / "m.dsplan")
    edit(plan)
    refusal = tools.refused("ds-opt", "verify", write_plan(tmp_path / "broken.dsplan", plan), *files)
    assert "does not compute the loss that was attached" in refusal or "meaning" in refusal, refusal


REFUSED = {"classes": ("classification", {"class_weights": [1, 2]}, (),
                       "deepstatic.loss has 2 class_weights, and the logits have 5 classes; write one weight for each class"),
           "positive": ("multi-label", {"pos_weight": [1, 2]}, (),
                        "deepstatic.loss has 2 weights in pos_weight, and the logits end in 5 classes; write one weight for each class, or one"),
           "sigmoid": ("classification", {}, SEEN["sigmoid"][1],
                       "output 'p' is a sigmoid, of which classification cannot be taken; attach one that fits (--attach-loss multi-label)"),
           "softmax": ("multi-label", {}, SEEN["softmax"][1],
                       "output 'p' is a softmax, of which multi-label cannot be taken; attach one that fits (--attach-loss classification, segmentation)")}


@pytest.mark.parametrize("name", REFUSED)
def test_a_loss_that_does_not_fit_is_refused(tools, tmp_path, name):
    kind, keys, ending, sentence = REFUSED[name]
    save_model(tmp_path / "m.onnx", kind, ending)
    assert sentence in tools.refused("ds-opt", "compile", tmp_path / "m.onnx", "--config", config_of(tmp_path, loss={"kind": kind, **keys}))


# ---- losses in files of their own

class Focal(torch.nn.Module):
    """With weights of classes as a buffer, and a second output of the model."""

    def __init__(self):
        super().__init__()
        self.register_buffer("alpha", torch.tensor([1, 0.25, 2, 0.5, 3]))

    def forward(self, logits, rows, targets):
        logs = functional.log_softmax(logits, -1)
        picked = logs.gather(1, targets[:, None])[:, 0]
        return (self.alpha[targets] * (1 - picked.exp()) ** 2 * -picked).mean() + 0.01 * (rows ** 2).mean()


class Dice(torch.nn.Module):
    """With a weight of each channel, which is a constant of the file."""

    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.linspace(0.5, 1.5, CLASSES))

    def forward(self, logits, masks):
        p = torch.sigmoid(logits)
        overlap, total = (p * masks).sum((2, 3)), (p + masks).sum((2, 3))
        return ((1 - (2 * overlap + 1) / (total + 1)) * self.scale).mean()


def save_loss(loss, path, example, names, **more):
    dims = [{0: torch.export.Dim("samples")}] * len(example)
    torch.onnx.export(loss, example, path, input_names=names, output_names=["loss"], dynamic_shapes=dims, dynamo=True, verbose=False, **more)


def add_output(path, name):
    proto = onnx.load(path)
    proto.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", CLASSES]))
    onnx.save(proto, path)


@pytest.mark.parametrize("name", ["focal", "dice"])
def test_a_loss_file_is_that_of_torch(tools, tmp_path, name):
    kind, loss = ("classification", Focal()) if name == "focal" else ("segmentation", Dice())
    parameters, path = save_model(tmp_path / "m.onnx", kind), tmp_path / f"{name}.onnx"
    x, labels = samples(kind, tmp_path / "data.safetensors", 0)
    if name == "focal":
        add_output(tmp_path / "m.onnx", "rows")
        names, data = ["logits", "rows", "targets"], {"targets": labels}
        save_loss(loss, path, (torch.randn(2, CLASSES), torch.randn(2, CLASSES), labels[:2]), names)
    else:
        names, data = ["logits", "masks"], {"masks": torch.rand(len(x), CLASSES, 2, 3, generator=torch.Generator().manual_seed(2)).round()}
        save_loss(loss, path, (torch.randn(2, CLASSES, 2, 3), data["masks"][:2]), names, external_data=True)
    save_file({"x": x, **data}, tmp_path / "data.safetensors")
    config, plan, model = config_of(tmp_path), tmp_path / "m.dsplan", tmp_path / "m.onnx"
    tools("ds-opt", "compile", model, "--config", config, "--attach-loss", path, "-o", plan)

    def of_step(step):
        logits = logits_of(kind, parameters, part(x, step))
        return loss(logits, *([logits] if name == "focal" else []), *(part(value, step) for value in data.values()))
    check_steps(tools, plan, tmp_path, parameters, of_step)
    said = tools("ds-opt", "verify", plan, "--model", model, "--config", config, "--format", "json").stdout
    assert f"the loss is the graph of {path.name}, SHA-256" in said
    done = audited(plan, model, config)
    assert "the loss" in done.stdout, done.stderr
    path.write_bytes(path.read_bytes() + b"\x3a\x00")
    assert f"{name}.onnx is not the loss that the plan was made from" in tools.refused("ds-opt", "verify", plan, "--model", model, "--config", config)


def graph_loss(path, nodes, inputs, outputs, initializers=(), opset=20):
    values = [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in inputs]
    graph = helper.make_graph([helper.make_node(*node[:3], **dict(node[3:])) for node in nodes], "loss", values,
                              [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs], list(initializers))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), path)


def test_a_loss_has_names_and_an_opset_of_its_own(tools, tmp_path):
    """Its inner names are the model's, its reduction has the axes of opset 11, and its names in the configuration are relative."""
    parameters = save_model(tmp_path / "m.onnx", "classification")
    x, _ = samples("classification", tmp_path / "data.safetensors")
    wanted = torch.randn(len(x), CLASSES, generator=torch.Generator().manual_seed(3))
    save_file({"x": x, "wanted": wanted}, tmp_path / "data.safetensors")
    graph_loss(tmp_path / "loss.onnx", [("Sub", ["logits", "wanted"], ["product"]), ("Mul", ["product", "product"], ["squares"]),
                                        ("Mul", ["squares", "w.0"], ["rows"]), ("ReduceMean", ["rows"], ["x"], ("axes", [0, 1]), ("keepdims", 0))],
               [("logits", TensorProto.FLOAT, ["n", CLASSES]), ("wanted", TensorProto.FLOAT, ["n", CLASSES])], [("x", [])],
               [numpy_helper.from_array(numpy.float32([1, 2, 3, 4, 5]), "w.0")], opset=11)
    plan, config = tmp_path / "m.dsplan", config_of(tmp_path, loss={"file": str(tmp_path / "loss.onnx")})
    tools("ds-opt", "compile", tmp_path / "m.onnx", "--config", config, "-o", plan)
    check_steps(tools, plan, tmp_path, parameters, lambda step: (
        (logits_of("classification", parameters, part(x, step)) - part(wanted, step)) ** 2 * torch.arange(1.0, 6)).mean())
    tools("ds-opt", "verify", plan, "--model", tmp_path / "m.onnx", "--config", config)


def check_loss_of(tools, folder, data, loss_of_part, *flags):
    """A file of classification and loss.onnx, which reads `wanted`, beside what PyTorch makes of both."""
    parameters = {value.name: torch.from_numpy(numpy_helper.to_array(value).copy()).requires_grad_() for value in onnx.load(folder / "m.onnx").graph.initializer}
    x, _ = samples("classification", folder / "data.safetensors")
    save_file({"x": x, "wanted": data}, folder / "data.safetensors")
    plan, config = folder / "m.dsplan", config_of(folder, loss={"file": str(folder / "loss.onnx")})
    said = tools("ds-opt", "compile", folder / "m.onnx", "--config", config, "-o", plan, *flags).stderr
    check_steps(tools, plan, folder, parameters, lambda step: loss_of_part(logits_of("classification", parameters, part(x, step)), part(data, step)))
    tools("ds-opt", "verify", plan, "--model", folder / "m.onnx", "--config", config)
    return said


def test_a_loss_file_goes_with_a_batch_fixed_at_1(tools, tmp_path):
    save_model(tmp_path / "m.onnx", "classification")
    proto = onnx.load(tmp_path / "m.onnx")
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1
    proto.graph.output[0].type.tensor_type.shape.CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, CLASSES]).type.tensor_type.shape)
    onnx.save(proto, tmp_path / "m.onnx")
    graph_loss(tmp_path / "loss.onnx", [("Sub", ["logits", "wanted"], ["d"]), ("Mul", ["d", "d"], ["s"]), ("ReduceMean", ["s"], ["loss"], ("keepdims", 0))],
               [(name, TensorProto.FLOAT, ["n", CLASSES]) for name in ("logits", "wanted")], [("loss", [])])
    wanted = torch.randn(STEPS * BATCH, CLASSES, generator=torch.Generator().manual_seed(3))
    proto = onnx.load(tmp_path / "loss.onnx")
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1
    onnx.save(proto, tmp_path / "one.onnx")
    refusal = tools.refused("ds-opt", "compile", tmp_path / "m.onnx", "--config", config_of(tmp_path), "--attach-loss", tmp_path / "one.onnx")
    assert refusal.strip().endswith("reads float32 'logits' [1, 5], which the model makes float32 [4, 5]; export the loss with an example of that type and shape"), refusal
    assert "which the file fixes at 1" in check_loss_of(tools, tmp_path, wanted, lambda logits, labels: ((logits - labels) ** 2).mean())


def test_a_loss_file_has_functions_that_the_model_has_too(tools, tmp_path):
    """Both have one of the same name: the model's doubles, the loss's squares."""
    save_model(tmp_path / "m.onnx", "classification", [helper.make_node("Own", ["logits"], ["twice"], domain="own")])
    graph_loss(tmp_path / "loss.onnx", [("Sub", ["twice", "wanted"], ["d"]), ("Own", ["d"], ["s"], ("domain", "own")), ("ReduceMean", ["s"], ["loss"], ("keepdims", 0))],
               [(name, TensorProto.FLOAT, ["n", CLASSES]) for name in ("twice", "wanted")], [("loss", [])])
    for file, op in (("m.onnx", "Add"), ("loss.onnx", "Mul")):
        proto = onnx.load(tmp_path / file)
        proto.opset_import.append(helper.make_opsetid("own", 1))
        proto.functions.append(helper.make_function("own", "Own", ["a"], ["b"], [helper.make_node(op, ["a", "a"], ["b"])], [helper.make_opsetid("", 20)]))
        onnx.save(proto, tmp_path / file)
    wanted = torch.randn(STEPS * BATCH, CLASSES, generator=torch.Generator().manual_seed(3))
    check_loss_of(tools, tmp_path, wanted, lambda logits, labels: ((2 * logits - labels) ** 2).mean())


def test_a_loss_file_has_sizes_of_its_own(tools, tmp_path):
    """Each sample has several wanted rows, of which the nearest counts; --dim says how many, and without it the size is asked for."""
    save_model(tmp_path / "m.onnx", "classification")
    graph_loss(tmp_path / "loss.onnx", [("Unsqueeze", ["logits", "one"], ["l"]), ("Sub", ["l", "wanted"], ["d"]), ("Mul", ["d", "d"], ["s"]),
                                        ("ReduceMean", ["s", "two"], ["each"], ("keepdims", 0)), ("ReduceMin", ["each", "one"], ["least"], ("keepdims", 0)),
                                        ("ReduceMean", ["least"], ["loss"], ("keepdims", 0))],
               [("logits", TensorProto.FLOAT, ["n", CLASSES]), ("wanted", TensorProto.FLOAT, ["n", "rows", CLASSES])], [("loss", [])],
               [numpy_helper.from_array(numpy.array([1]), "one"), numpy_helper.from_array(numpy.array([2]), "two")])
    wanted = torch.randn(STEPS * BATCH, 3, CLASSES, generator=torch.Generator().manual_seed(3))
    flags = "ds-opt", "compile", tmp_path / "m.onnx", "--config", config_of(tmp_path), "--attach-loss", tmp_path / "loss.onnx", "-o", tmp_path / "m.dsplan"
    assert "dimension 'rows' has no size; add --dim rows=N" in tools.refused(*flags)
    check_loss_of(tools, tmp_path, wanted, lambda logits, labels: ((logits[:, None] - labels) ** 2).mean(2).min(1).values.mean(), "--dim", "rows=3")


FLOAT = TensorProto.FLOAT
MEAN = ("ReduceMean", ["logits"], ["loss"], ("keepdims", 0))
BAD_FILES = {
    "strangers": ([("ReduceMean", ["scores"], ["loss"], ("keepdims", 0))], [("scores", FLOAT, ["n", CLASSES])], [("loss", [])],
                  "reads 'scores', and no output of the model, which are 'logits'; name an input of the loss like one: "
                  'torch.onnx.export(loss, example, FILE, input_names=["logits", "labels"])'),
    "two outputs": ([MEAN, ("Identity", ["loss"], ["more"])], [("logits", FLOAT, ["n", CLASSES])], [("loss", []), ("more", [])],
                    "has 2 outputs ('loss' [], 'more' []), and one must be the scalar to train on; return it alone and export again"),
    "no scalar": ([("Abs", ["logits"], ["loss"])], [("logits", FLOAT, ["n", CLASSES])], [("loss", ["n", CLASSES])],
                  "ends in 'loss' [n, 5], and a loss is one number; return loss.mean() and export again"),
    "no scalar, unsaid": ([("Abs", ["logits"], ["loss"])], [("logits", FLOAT, ["n", CLASSES])], [("loss", None)],
                          "ends in [4, 5], and a loss is one number; return loss.mean() and export again"),
    "shape": ([MEAN], [("logits", FLOAT, ["n", 7])], [("loss", [])],
              "reads float32 'logits' [n, 7], which the model makes float32 [4, 5]; export the loss with an example of that type and shape"),
    "type": ([MEAN], [("logits", TensorProto.DOUBLE, ["n", CLASSES])], [("loss", [])], "reads float64 'logits' [n, 5], which the model makes float32 [4, 5]"),
    "labels": ([("Sub", ["logits", "labels"], ["d"]), ("ReduceMean", ["d"], ["loss"], ("keepdims", 0))],
               [("logits", FLOAT, ["n", CLASSES]), ("labels", FLOAT, ["n", 3])], [("loss", [])], "[4, 5]"),
    "inner name": ([("Sub", ["logits", "product"], ["d"]), ("ReduceMean", ["d"], ["loss"], ("keepdims", 0))],
                   [("logits", FLOAT, ["n", CLASSES]), ("product", FLOAT, ["n", CLASSES])], [("loss", [])],
                   "reads data 'product', which is the name of a value inside of the model; call the input otherwise (input_names)")}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_loss_file_that_does_not_fit_is_refused(tools, tmp_path, name):
    *graph, sentence = BAD_FILES[name]
    save_model(tmp_path / "m.onnx", "classification")
    graph_loss(tmp_path / "loss.onnx", *graph)
    refusal = tools.refused("ds-opt", "compile", tmp_path / "m.onnx", "--config", config_of(tmp_path), "--attach-loss", tmp_path / "loss.onnx")
    assert sentence in refusal and "loss" in refusal, refusal


def test_a_loss_that_is_no_file(tools, tmp_path):
    save_model(tmp_path / "m.onnx", "classification")
    flags = "ds-opt", "compile", tmp_path / "m.onnx", "--config", config_of(tmp_path)
    assert "focal is no loss: the kinds are causal-lm" in tools(*flags, "--attach-loss", "focal", code=None).stderr
    (tmp_path / "text.onnx").write_text("no graph")
    assert "text.onnx is no ONNX model" in tools.refused(*flags, "--attach-loss", tmp_path / "text.onnx")
    assert "absent.onnx" in tools.refused(*flags, "--attach-loss", tmp_path / "absent.onnx")
