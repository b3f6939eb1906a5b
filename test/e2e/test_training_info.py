"""Models that bring their own training algorithm (ONNX's training_info): they train by ONNX's formulas."""

import numpy
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file, save_file

STEPS, BATCH, WIDTH = 6, 4, 3
FEATURES = numpy.random.default_rng(5).standard_normal((STEPS * BATCH, WIDTH)).astype(numpy.float32)
TARGETS = (FEATURES @ numpy.array([[1.0], [-2.0], [0.5]], numpy.float32) + 0.25).astype(numpy.float32)
RATE = 0.1
DOMAIN = "ai.onnx.preview.training"
INITIAL = {"w": numpy.array([[0.5], [0.25], [-1.0]], numpy.float32), "b": numpy.array([0.125], numpy.float32)}

# Attributes of each optimizer and the names of its states.
OPTIMIZERS = {
    "Adam": (dict(alpha=0.8, beta=0.95, epsilon=1e-3, norm_coefficient=0.01, norm_coefficient_post=0.02), ["V", "H"]),
    "Adagrad": (dict(decay_factor=0.1, epsilon=1e-3, norm_coefficient=0.01), ["H"]),
    "Momentum": (dict(alpha=0.8, beta=0.6, norm_coefficient=0.01, mode="standard"), ["V"]),
    "Nesterov": (dict(alpha=0.8, beta=0.6, norm_coefficient=0.01, mode="nesterov"), ["V"]),
}


def value(name, shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def forward_graph():
    """loss = mean((x w + b - y)^2)"""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["xw"]), helper.make_node("Add", ["xw", "b"], ["found"]),
             helper.make_node("Sub", ["found", "y"], ["off"]), helper.make_node("Mul", ["off", "off"], ["squares"]),
             helper.make_node("ReduceMean", ["squares"], ["loss"], keepdims=0)]
    inputs = [value("x", ["batch", WIDTH]), value("y", ["batch", 1])]
    initializers = [numpy_helper.from_array(array, name) for name, array in INITIAL.items()]
    return helper.make_graph(nodes, "linear", inputs, [value("loss", [])], initializers)


def algorithm_graph(optimizer, attributes, states):
    """One optimizer node for both parameters, and a counter."""
    names = list(INITIAL)
    groups = [names, [f"d{n}" for n in names]] + [[f"{s}_{n}" for n in names] for s in states]
    results = [f"{member}_new" for group in [names, *groups[2:]] for member in group]
    nodes = [
        helper.make_node("Gradient", names, groups[1], domain=DOMAIN, xs=names, y="loss"),
        helper.make_node(optimizer, ["R", "T", *sum(groups, [])], results, domain=DOMAIN, **attributes),
        helper.make_node("Add", ["T", "one"], ["T_new"]),
    ]
    initializers = [numpy_helper.from_array(numpy.array(RATE, numpy.float32), "R"),
                    numpy_helper.from_array(numpy.array(0, numpy.int64), "T"),
                    numpy_helper.from_array(numpy.array(1, numpy.int64), "one")]
    shapes = {n: array.shape for n, array in INITIAL.items()}
    for state in states:
        initializers += [numpy_helper.from_array(numpy.zeros(shapes[n], numpy.float32), f"{state}_{n}") for n in names]
    outputs = [value(r, shapes[r.removesuffix("_new").split("_")[-1]]) for r in results] + [value("T_new", [], TensorProto.INT64)]
    updates = {r.removesuffix("_new"): r for r in [*results, "T_new"]}
    return helper.make_graph(nodes, "algorithm", [], outputs, initializers), updates


def model(optimizer="Momentum"):
    attributes, states = OPTIMIZERS[optimizer]
    algorithm, updates = algorithm_graph("Momentum" if optimizer == "Nesterov" else optimizer, attributes, states)
    proto = helper.make_model(forward_graph(), ir_version=8,
                              opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)])
    proto.training_info.append(helper.make_training_info(algorithm, list(updates.items()), None, None))
    return proto


def reference(optimizer):
    """ONNX's formulas in float64; the losses of all steps and the final values."""
    a, states = OPTIMIZERS[optimizer]
    x = {name: array.astype(float) for name, array in INITIAL.items()}
    s = {(state, name): 0.0 for state in ("V", "H") for name in x}
    losses = []
    for t in range(STEPS):
        features, targets = (d[t * BATCH:(t + 1) * BATCH].astype(float) for d in (FEATURES, TARGETS))
        off = features @ x["w"] + x["b"] - targets
        losses.append((off**2).mean())
        gradients = {"w": features.T @ (2 * off / BATCH), "b": (2 * off / BATCH).sum(0)}
        for name in x:
            g = gradients[name] + a["norm_coefficient"] * x[name]
            v, h = s["V", name], s["H", name]
            if optimizer == "Adam":
                v, h = a["alpha"] * v + (1 - a["alpha"]) * g, a["beta"] * h + (1 - a["beta"]) * g * g
                rate = RATE * (1 - a["beta"]**t)**0.5 / (1 - a["alpha"]**t) if t > 0 else RATE
                x[name] = (x[name] - rate * v / (h**0.5 + a["epsilon"])) * (1 - a["norm_coefficient_post"])
            elif optimizer == "Adagrad":
                h = h + g * g
                x[name] = x[name] - RATE / (1 + t * a["decay_factor"]) * g / (h**0.5 + a["epsilon"])
            else:
                v = a["alpha"] * v + (a["beta"] if t > 0 else 1) * g
                x[name] = x[name] - RATE * (v if optimizer == "Momentum" else g + a["alpha"] * v)
            s["V", name], s["H", name] = v, h
    return losses, x


@pytest.fixture
def setup(tmp_path):
    """setup(proto, **keys of ds_config.json) -> (model, configuration, data)."""
    def write(proto, **keys):
        onnx.save(proto, tmp_path / "m.onnx")
        save_file({"x": FEATURES, "y": TARGETS}, tmp_path / "data.safetensors")
        config = {"train_micro_batch_size_per_gpu": BATCH, **keys}
        (tmp_path / "c.json").write_text(str(config).replace("'", '"'))
        return tmp_path / "m.onnx", tmp_path / "c.json", tmp_path / "data.safetensors"
    return write


def train(tools, model, config, data, tmp_path):
    plan, weights = tmp_path / "m.dsplan", tmp_path / "w.safetensors"
    tools("ds-opt", "compile", model, "--config", config, "-o", plan)
    lines, _ = tools.train(plan, data, STEPS, "--export", weights)
    return lines, load_file(weights)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_trains_by_onnx_formulas(optimizer, setup, tools, tmp_path):
    lines, weights = train(tools, *setup(model(optimizer)), tmp_path)
    losses, expected = reference(optimizer)
    assert len(set(losses)) == STEPS and losses[-1] < losses[0]
    numpy.testing.assert_allclose([line["loss"] for line in lines], losses, rtol=1e-5)
    assert set(weights) == set(expected), "parameters are exported, the optimizer's state is not"
    for name, array in expected.items():
        numpy.testing.assert_allclose(weights[name], array, rtol=1e-5, atol=1e-6)
    assert all(line["grad_norm"] > 0 for line in lines)


def test_derivative_by_an_intermediate(setup, tools, tmp_path):
    """d loss / d off, by hand turned into the gradients of w and b, trains as the derivatives by these do."""
    proto = model("Momentum")
    algorithm = proto.training_info[0].algorithm
    del algorithm.node[0]
    algorithm.initializer.append(numpy_helper.from_array(numpy.array([0], numpy.int64), "rows"))
    nodes = [helper.make_node("Gradient", ["off"], ["doff"], domain=DOMAIN, xs=["off"], y="loss"),
             helper.make_node("Transpose", ["x"], ["xt"]), helper.make_node("MatMul", ["xt", "doff"], ["dw"]),
             helper.make_node("ReduceSum", ["doff", "rows"], ["db"], keepdims=0)]
    nodes += algorithm.node
    del algorithm.node[:]
    algorithm.node.extend(nodes)
    lines, weights = train(tools, *setup(proto), tmp_path)
    assert set(weights) == {"w", "b"}
    numpy.testing.assert_allclose([line["loss"] for line in lines], reference("Momentum")[0], rtol=1e-5)


def test_initialization(setup, tools, tmp_path):
    """Bound initializers start as the initialization says, not as the file's values."""
    proto = model("Momentum")
    start = numpy.array([[0.0], [1.0], [2.0]], numpy.float32)
    nodes = [helper.make_node("Constant", [], ["start"], value=numpy_helper.from_array(start)),
             helper.make_node("Identity", ["start"], ["w0"]),
             helper.make_node("RandomNormal", [], ["b0"], shape=[1], mean=3.0, scale=0.5),
             helper.make_node("ConstantOfShape", ["three"], ["v0"], value=numpy_helper.from_array(numpy.array([0.5], numpy.float32)))]
    three = numpy_helper.from_array(numpy.array([3, 1], numpy.int64), "three")
    info = proto.training_info[0]
    info.initialization.CopyFrom(helper.make_graph(
        nodes, "init", [], [value("w0", [3, 1]), value("b0", [1]), value("v0", [3, 1])], [three]))
    for key, name in {"w": "w0", "b": "b0", "V_w": "v0"}.items():
        info.initialization_binding.add(key=key, value=name)
    model_path, config, data = setup(proto)
    plan, weights = tmp_path / "m.dsplan", tmp_path / "w.safetensors"
    tools("ds-opt", "compile", model_path, "--config", config, "-o", plan)
    drawn = []
    for seed in (1, 2):
        lines, _ = tools.train(plan, data, 1, "--export", weights, "--seed", seed)
        # undo the one step of both, V = 0.8 * 0.5 + g for w, V = g for b
        after = load_file(weights)
        features, targets = FEATURES[:BATCH].astype(float), TARGETS[:BATCH].astype(float)
        b = solve_first_step(features @ start - targets, after["b"][0])
        off = features @ start + b - targets
        assert lines[0]["loss"] == pytest.approx((off**2).mean(), rel=1e-4)
        g = features.T @ (2 * off / BATCH) + 0.01 * start
        numpy.testing.assert_allclose(after["w"], start - RATE * (0.8 * 0.5 + g), rtol=1e-4)
        drawn.append(b)
    assert drawn[0] != drawn[1] and all(abs(b - 3) < 5 * 0.5 for b in drawn)


def solve_first_step(rest, after):
    """b with after = b - RATE * (mean(2 (rest + b)) + 0.01 b)."""
    return (after + RATE * 2 * rest.mean()) / (1 - RATE * 2.01)


# --- refusals


def changed(change):
    """A model after change(proto, its training_info)."""
    proto = model()
    change(proto, proto.training_info[0])
    return proto


def set_gradient(**attributes):
    def change(proto, info):
        node = info.algorithm.node[0]
        kept = [a for a in node.attribute if a.name not in attributes]
        del node.attribute[:]
        node.attribute.extend([*kept, *(helper.make_attribute(k, v) for k, v in attributes.items() if v is not None)])
    return change


def nested(proto, info):
    info.algorithm.node.insert(1, helper.make_node("ReduceSum", ["dw"], ["sum"], keepdims=0))
    info.algorithm.node.insert(2, helper.make_node("Gradient", ["w"], ["ddw"], name="second", domain=DOMAIN, xs=["w"], y="sum"))
    info.algorithm.node.insert(3, helper.make_node("Add", ["V_w", "ddw"], ["used"]))
    info.algorithm.node[4].input[6] = "used"


def graph_reads_algorithm(proto, info):
    proto.graph.node[1].input[1] = "T_new"


def bind_start(key, output, node):
    def change(proto, info):
        info.initialization.CopyFrom(helper.make_graph([node], "init", [], [value("start", [1])]))
        info.initialization_binding.add(key=key, value=output)
    return change


REFUSED = {
    "two": (lambda proto, info: proto.training_info.add(), ["2 training algorithms"]),
    "nothing": (lambda proto, info: info.ClearField("update_binding"), ["update_binding is empty"]),
    "twice": (lambda proto, info: info.update_binding.add(key="w", value="b_new"), ["update_binding names 'w' twice"]),
    "no-initializer": (lambda proto, info: info.update_binding.add(key="x", value="w_new"), ["'x'", "no initializer"]),
    "no-output": (lambda proto, info: setattr(info.update_binding[0], "value", "dw"), ["'w'", "'dw'", "no output"]),
    "shape": (lambda proto, info: setattr(info.update_binding[0], "value", "b_new"), ["'w', float32 [3, 1]", "'b_new', which is float32 [1]"]),
    "order": (graph_reads_algorithm, ["(Add)", "'T_new'", "only the algorithm may use the graph's values"]),
    "nested": (nested, ["'second' (Gradient, opset 1)", "'sum' depends on another Gradient"]),
    "no-xs": (set_gradient(xs=None), ["(Gradient, opset 1)", "attributes xs and y"]),
    "other-value": (set_gradient(xs=["b", "w"]), ["input 0 is 'w'", "'b'"]),
    "count": (set_gradient(xs=["w"]), ["2 inputs for 1 names"]),
    "unknown-y": (set_gradient(y="lost"), ["reads 'lost'"]),
    "no-gradient": (lambda proto, info: info.update_binding.__delitem__(slice(0, 4)), ["differentiates nothing"]),
    "vector": (set_gradient(y="off"), ["output 'off' is float32 [4, 1]", "one float of rank 0"]),
    "mode": (lambda proto, info: set_mode(info, "heavy"), ["(Momentum, opset 1)", "mode 'heavy'"]),
    "groups": (lambda proto, info: info.algorithm.node[1].input.pop(), ["has 7 inputs", "3 groups"]),
    "init-twice": (lambda proto, info: [info.initialization_binding.add(key="b", value="b0") for _ in "ab"],
                   ["initialization_binding names 'b' twice"]),
    "init-no-output": (bind_start("b", "lost", helper.make_node("RandomNormal", [], ["start"], shape=[1])), ["'lost'", "no output"]),
    "init-shape": (bind_start("b", "start", helper.make_node("RandomNormal", [], ["start"], name="n", shape=[2])),
                   ["'n' (RandomNormal) draws [2] for 'b', which is [1]"]),
    "init-op": (bind_start("b", "start", helper.make_node("Exp", ["one"], ["start"], name="n")), ["'n' (Exp)", "RandomNormal"]),
}


def set_mode(info, mode):
    next(a for a in info.algorithm.node[1].attribute if a.name == "mode").s = mode.encode()


@pytest.mark.parametrize("case", REFUSED)
def test_refused_algorithms(case, setup, tools, tmp_path):
    change, words = REFUSED[case]
    model_path, config, _ = setup(changed(change))
    message = tools.refused("ds-opt", "compile", model_path, "--config", config, "-o", tmp_path / "m.dsplan")
    assert all(word in message for word in words), message


@pytest.mark.parametrize("keys, words", [
    (dict(optimizer={"type": "AdamW"}), ['optimizer.type is "AdamW"', "training_info", 'leave "optimizer" out']),
    (dict(scheduler={"type": "WarmupLR"}), ['scheduler.type is "WarmupLR"', "training_info"]),
    (dict(gradient_accumulation_steps=2), ["gradient_accumulation_steps is 2", "set it to 1"]),
    (dict(gradient_clipping=1.0), ["gradient_clipping is 1.0", "leave it out"]),
])
def test_configuration_of_what_the_model_decides(keys, words, setup, tools, tmp_path):
    model_path, config, _ = setup(model(), **keys)
    message = tools.refused("ds-opt", "compile", model_path, "--config", config, "-o", tmp_path / "m.dsplan")
    assert all(word in message for word in words), message


def test_flags_of_what_the_model_decides(setup, tools, tmp_path):
    model_path, config, _ = setup(model())
    message = tools.refused("ds-opt", "compile", model_path, "--config", config, "--frozen", "w", "-o", tmp_path / "m.dsplan")
    assert "--frozen" in message and "training_info" in message


def test_computed_as_the_file_says(setup, tools, tmp_path):
    model_path, config, _ = setup(model())
    message = tools.refused("ds-opt", "compile", model_path, "--config", config, "--set", "bf16.enabled=true", "-o", tmp_path / "m.dsplan")
    assert all(word in message for word in ["bf16.enabled is true", "training_info", "set it to false"]), message
    message = tools.refused("ds-opt", "compile", model_path, "--config", config, "--set", "deepstatic.loss_normalization=tokens", "-o",
                            tmp_path / "m.dsplan")
    assert all(word in message for word in ["loss_normalization is \"tokens\"", "training_info", "leave it at"]), message
    message = tools.refused("ds-opt", "compile", model_path, "--config", config, "--set", "deepstatic.delayed_update=true", "--set",
                            "zero_optimization.offload_optimizer.device=cpu", "-o", tmp_path / "m.dsplan")
    assert all(word in message for word in ["deepstatic.delayed_update is true", "training_info", "set it to false"]), message


def test_one_rank_only(setup, tools, tmp_path):
    model_path, config, _ = setup(model())
    message = tools.refused("ds-opt", "compile", model_path, "--config", config, "--ranks", 2, "-o", tmp_path / "m.dsplan")
    assert "--ranks is 2" in message and "training_info" in message


def test_no_optimizer_anywhere(setup, tools, tmp_path):
    proto = model()
    del proto.training_info[:]
    model_path, config, _ = setup(proto)
    message = tools.refused("ds-opt", "compile", model_path, "--config", config, "--trainable", "w", "-o", tmp_path / "m.dsplan")
    assert "optimizer.type is missing" in message
