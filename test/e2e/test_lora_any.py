"""`ds-opt compile --lora RANK`: low-rank adapters on any ONNX file. Here one that onnx.helper wrote, whose weights lie every way."""

import json
import math

import numpy
import onnx
import onnxruntime
import pytest
import torch
from conftest import ON_GPU, write_config
from onnx import TensorProto, helper, numpy_helper
from plan_files import read_plan, write_plan
from safetensors.numpy import load_file, save_file
from test_adapters import require_nothing_for_frozen_ones
from test_to_onnx import WITH_PYTHON

pytestmark = pytest.mark.skipif(ON_GPU, reason="compiles for this machine's CPU")
RANK, STEPS, MICRO, ACCUMULATION, CLASSES = 2, 4, 4, 2, 5
TOKENS, WIDTH = 6, 8
GENERATOR = numpy.random.default_rng(3)
WEIGHTS = {name: (GENERATOR.standard_normal(shape) * 0.5).astype(numpy.float32) for name, shape in {
    "query": (WIDTH, WIDTH), "key.weight": (WIDTH, WIDTH), "value": (WIDTH, 6), "left": (3, TOKENS), "up.weight": (10, 6), "up.bias": (10,),
    "head": (10, CLASSES)}.items()}
ADAPTED = ["query", "key.weight", "value", "left", "up.weight", "head"]
INPUTS_FIRST = {"query", "value", "head"}


def forward(x, product):
    """The model in PyTorch; `product` of an activation and a weight by its name, and of the weight's transpose on the left."""
    scores = torch.softmax(product(x, "query") @ product(x, "key.weight").transpose(1, 2), -1)
    mixed = scores @ product(x, "value")
    rows = product(mixed.transpose(1, 2), "left").transpose(1, 2).mean(1)
    hidden = torch.relu(product(rows, "up.weight") + torch.from_numpy(WEIGHTS["up.bias"]))
    return 0.5 * product(hidden, "head")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    node = helper.make_node
    function = helper.make_function("own", "Project", ["a", "w"], ["b"], [node("Identity", ["w"], ["v"]), node("MatMul", ["a", "v"], ["b"])],
                                    [helper.make_opsetid("", 13)])
    nodes = [node("Project", ["x", "query"], ["q"], domain="own", name="attn/q"), node("Transpose", ["key.weight"], ["kt"], perm=[1, 0]),
             node("MatMul", ["x", "kt"], ["k"], name="attn/k"), node("MatMul", ["x", "value"], ["v"], name="attn/v"),
             node("Transpose", ["k"], ["k2"], perm=[0, 2, 1]), node("MatMul", ["q", "k2"], ["s"]), node("Softmax", ["s"], ["p"], axis=-1),
             node("MatMul", ["p", "v"], ["m"]), node("MatMul", ["left", "m"], ["l"], name="mix"), node("ReduceMean", ["l"], ["r"], axes=[1], keepdims=0),
             node("Gemm", ["r", "up.weight", "up.bias"], ["u"], transB=1, name="up"), node("Relu", ["u"], ["h"]),
             node("Gemm", ["h", "head"], ["y"], alpha=0.5, name="head")]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", TOKENS, WIDTH])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(value, name) for name, value in WEIGHTS.items()])
    path = tmp_path_factory.mktemp("lora") / "m.onnx"
    onnx.save(helper.make_model(graph, functions=[function], opset_imports=[helper.make_opsetid("", 13), helper.make_opsetid("own", 1)], ir_version=8), path)
    return path


@pytest.fixture(scope="module")
def data(model):
    generator = numpy.random.default_rng(4)
    samples = {"x": generator.standard_normal((STEPS * MICRO * ACCUMULATION, TOKENS, WIDTH)).astype(numpy.float32),
               "labels": generator.integers(0, CLASSES, STEPS * MICRO * ACCUMULATION)}
    save_file(samples, model.parent / "d.safetensors")
    return samples


def compiled(tools, model, name, *flags, rank=RANK, accumulation=ACCUMULATION, **config):
    config = write_config(model.parent / f"{name}.json", MICRO, accumulation, **config)
    plan = model.parent / f"{name}.dsplan"
    said = tools("ds-opt", "compile", model, "--attach-loss", "classification", "--config", config, "-o", plan, "--lora", rank, *flags).stderr
    tools("ds-opt", "verify", plan, "--model", model, "--config", config)
    return plan, said


def run(tools, plan, *flags, steps=STEPS):
    """(losses, weights)."""
    after = plan.with_suffix(".safetensors")
    metrics, _ = tools.train(plan, plan.parent / "d.safetensors", steps, "--export", after, *flags)
    return [line["loss"] for line in metrics], load_file(after)


@pytest.fixture(scope="module")
def trained(tools, model, data):
    """(plan, adapters at first, losses, weights after)."""
    plan, said = compiled(tools, model, "lora")
    assert said.endswith(f"{model}: --lora 2: 6 weights have adapters: 'query', 'key.weight', 'value' and 3 more; all else is frozen\n")
    assert "is trained: " not in said
    still, _ = compiled(tools, model, "still", "--set", "optimizer.params.lr=0")
    first = run(tools, still, steps=1)[1]
    return plan, {name: value for name, value in first.items() if ".lora_" in name}, *run(tools, plan)


def test_only_adapters_have_gradients_and_state(trained, tools):
    plan, adapters, _, _ = trained
    require_nothing_for_frozen_ones(tools, plan, adapters)


def test_a_model_of_frozen_weights_has_adapters_too(trained, tools, model):
    plan, _ = compiled(tools, model, "frozen", "--frozen", ".")
    ours, theirs = read_plan(plan), read_plan(trained[0])
    assert ours.roles[0] == theirs.roles[0] and list(ours.variables) == list(theirs.variables)


def test_adapters_begin_as_loras_do_and_only_they_change(trained):
    _, adapters, _, after = trained
    assert adapters.keys() == {f"{name}.lora_{part}" for name in ADAPTED for part in "AB"} and after.keys() == adapters.keys() | WEIGHTS.keys()
    for name in ADAPTED:
        outputs, inputs = WEIGHTS[name].shape[::-1 if name in INPUTS_FIRST else 1]
        a, b = (adapters[f"{name}.lora_{part}"] for part in "AB")
        assert a.shape == (RANK, inputs) and b.shape == (outputs, RANK) and not b.any()
        assert 0.5 < abs(a).max() * math.sqrt(inputs) <= 1
    for name, value in after.items():
        assert numpy.array_equal(value, WEIGHTS[name]) if name in WEIGHTS else not numpy.array_equal(value, adapters[name]), name


def test_losses_are_pytorchs(trained, data):
    """The same adapters by hand, beside weights in the form of torch.nn.functional.linear."""
    _, adapters, losses, _ = trained
    fixed = {name: torch.from_numpy(value.T.copy() if name in INPUTS_FIRST else value) for name, value in WEIGHTS.items()}
    parts = {name: torch.nn.Parameter(torch.from_numpy(value.copy())) for name, value in adapters.items()}
    optimizer = torch.optim.AdamW(parts.values(), lr=1e-3, weight_decay=0.1)

    def product(x, name):
        return x @ fixed[name].T + x @ parts[f"{name}.lora_A"].T @ parts[f"{name}.lora_B"].T
    expected = []
    for batch in numpy.split(numpy.arange(len(data["labels"])), STEPS):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(forward(torch.from_numpy(data["x"][batch]), product), torch.from_numpy(data["labels"][batch]))
        loss.backward()
        optimizer.step()
        expected.append(loss.item())
    numpy.testing.assert_allclose(losses, expected, rtol=1e-5)


def test_merged_weights_go_back_into_the_file(trained, tools, model, data):
    """Once rounded, as each lies in the file; ONNX Runtime's loss is the run's own."""
    plan, _, _, after = trained
    weights, out = plan.with_suffix(".safetensors"), model.parent / "merged.onnx"
    said = tools("ds-run", "export", weights, "--onnx", out, "--like", model, env=WITH_PYTHON).stdout
    assert said == f"wrote {out}: 7 tensors of the run, with the adapters of 6 merged into them\n"
    for tensor in onnx.load(out).graph.initializer:
        value = WEIGHTS[tensor.name].astype(numpy.float64)
        if tensor.name in ADAPTED:
            change = after[f"{tensor.name}.lora_B"].astype(numpy.float64) @ after[f"{tensor.name}.lora_A"]
            value = value + (change.T if tensor.name in INPUTS_FIRST else change)
        assert numpy.array_equal(numpy_helper.to_array(tensor), value.astype(numpy.float32)), tensor.name
    logits = onnxruntime.InferenceSession(str(out)).run(None, {"x": data["x"]})[0]
    loss = torch.nn.functional.cross_entropy(torch.from_numpy(logits), torch.from_numpy(data["labels"])).item()
    metrics = model.parent / "eval.jsonl"
    tools("ds-run", plan, "--data", model.parent / "d.safetensors", "--eval", "--weights", weights, "--metrics", metrics, "--quiet")
    assert loss == pytest.approx(json.loads(metrics.read_text().splitlines()[0])["eval_loss"], rel=1e-5)


def test_weights_that_an_exporter_turned_are_merged_as_the_file_has_them(tools, tmp_path, data):
    """`--weights FOLDER` names them: there a square one lies the other way, and the run has it as there."""
    folder = tmp_path / "folder"
    folder.mkdir()
    names = {"query.weight": "onnx::MatMul_1", "key.weight": "onnx::MatMul_2"}
    square = {name: GENERATOR.standard_normal((WIDTH, WIDTH)).astype(numpy.float32) for name in names}
    save_file(square, folder / "model.safetensors")
    nodes = [helper.make_node("MatMul", ["x", "onnx::MatMul_1"], ["q"]), helper.make_node("Tanh", ["q"], ["t"]),
             helper.make_node("MatMul", ["t", "onnx::MatMul_2"], ["h"]), helper.make_node("ReduceMean", ["h"], ["y"], axes=[1], keepdims=0)]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", TOKENS, WIDTH])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(square[name].T.copy(), other) for name, other in names.items()])
    model, plan, weights, out = (tmp_path / name for name in ("m.onnx", "m.dsplan", "w.safetensors", "merged.onnx"))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8, producer_name="pytorch"), model)
    save_file(data, tmp_path / "d.safetensors")
    config = write_config(tmp_path / "c.json", MICRO)
    tools("ds-opt", "compile", model, "--attach-loss", "classification", "--config", config, "-o", plan, "--lora", 2, "--weights", folder)
    tools("ds-opt", "verify", plan, "--model", model, "--config", config, "--weights", folder)
    tools.train(plan, tmp_path / "d.safetensors", STEPS, "--export", weights)
    after = load_file(weights)
    tools("ds-run", "export", weights, "--onnx", out, "--like", model, "--weights", folder, env=WITH_PYTHON)
    for tensor in onnx.load(out).graph.initializer:
        name = next(name for name, other in names.items() if other == tensor.name)
        change = after[f"{name}.lora_B"].astype(numpy.float64) @ after[f"{name}.lora_A"]
        assert change.any() and numpy.array_equal(numpy_helper.to_array(tensor), (square[name] + change).astype(numpy.float32).T), name


def test_adapters_alone_are_a_file(trained, tools, model):
    plan, adapters, _, after = trained
    out = model.parent / "adapters.safetensors"
    tools("ds-run", "export", plan.with_suffix(".safetensors"), "-o", out, "--adapter")
    alone = load_file(out)
    assert alone.keys() == adapters.keys() and all(numpy.array_equal(value, after[name]) for name, value in alone.items())
    save_file(WEIGHTS, model.parent / "plain.safetensors")
    assert "has no low-rank adapters" in tools.refused("ds-run", "export", model.parent / "plain.safetensors", "-o", out, "--adapter")


@pytest.mark.parametrize("zero, stages", [(3, 1), (0, 2)], ids=["zero-3", "stages"])
def test_ranks_compute_the_same_bits(trained, tools, model, zero, stages):
    _, _, losses, after = trained
    plan, _ = compiled(tools, model, f"ranks-{zero}", "--ranks", 2, accumulation=stages, zero_optimization={"stage": zero},
                       deepstatic={"pipeline": {"stages": stages}})
    assert json.loads(tools("ds-opt", "report", plan, "--format", "json").stdout)["numerics"] == "bit-equal"
    ours, weights = run(tools, plan, "-n", 2)
    assert ours == losses and all(numpy.array_equal(value, after[name]) for name, value in weights.items())


def test_bf16_and_what_is_trained_whole(trained, tools, model):
    """--trainable wins: what it names is trained as it is, and has no adapter."""
    plan, said = compiled(tools, model, "whole", "--trainable", "^head$|bias", "--lora-targets", "^(query|up.weight)$", bf16={"enabled": True})
    assert "2 weights have adapters: 'query', 'up.weight'; all else is frozen but for --trainable" in said
    losses, after = run(tools, plan)
    assert {name for name, value in WEIGHTS.items() if not numpy.array_equal(value, after[name])} == {"head", "up.bias"}
    assert {name.rsplit(".lora")[0] for name in after if ".lora_" in name} == {"query", "up.weight"}
    assert losses[0] == pytest.approx(trained[2][0], rel=2e-2)


@pytest.mark.parametrize("edit, says", [
    (lambda plan: plan.sources.ClearField("lora_rank"), "which the model does not have"),
    (lambda plan: setattr(plan.sources, "lora_rank", 3), "has not the shapes in the plan that --lora 3 gives it"),
    (lambda plan: setattr(plan.sources, "lora_targets", "^q"), "but --lora-targets '^q' does not match it"),
    (lambda plan: setattr(plan.sources, "lora_targets", "("), "but --lora-targets '(' does not match it"),
    (lambda plan: setattr(variable(plan, "up.weight.lora_B").source, "fill", 1), "the first value of up.weight.lora_B is not an adapter's: B is zero"),
    (lambda plan: setattr(variable(plan, "up.weight.lora_A").source.random, "deviation", 1), "the first value of up.weight.lora_A is not an adapter's"),
    (lambda plan: setattr(variable(plan, "up.bias"), "trainable", True), "--lora freezes what --trainable does not name"),
    (lambda plan: setattr(variable(plan, "up.weight.lora_B"), "persistent", False), "up.weight.lora_B is not trained and exported"),
], ids=["no-rank", "rank", "targets", "no-regex", "zeros", "drawn", "thawed", "kept"])
def test_an_edited_plan_is_refused(trained, tools, model, tmp_path, edit, says):
    proto = read_plan(trained[0])
    edit(proto)
    edited = write_plan(model.parent / "edited.dsplan", proto)
    assert says in tools.refused("ds-opt", "verify", edited, "--model", model, "--config", model.parent / "lora.json")


def variable(plan, name):
    return next(each for each in plan.variables if each.name == name)


@pytest.mark.parametrize("flags, says", [
    (["--lora", 0], "--lora 0 is no rank; give 1 or more"),
    (["--lora", 7, "--lora-targets", "value"], "'value' is 8 x 6, of rank 6 at most; leave it out of --lora-targets"),
    (["--lora", 9], "no weight can have an adapter: 'query' is 8 x 8, of rank 8 at most; 'key.weight' is 8 x 8, of rank 8 at most; "),
    (["--lora", 2, "--lora-targets", "bias"], "--lora-targets 'bias' matches no parameter that products with activations read; there are 'query', 'key.weight', "),
    (["--lora", 2, "--lora-targets", "head", "--trainable", "head"], "'head' is trained as a whole by --trainable"),
], ids=["no-rank", "large", "larger", "nothing", "whole"])
def test_refusals(tools, model, data, flags, says):
    config = write_config(model.parent / "c.json", MICRO)
    assert says in tools.refused("ds-opt", "compile", model, "--attach-loss", "classification", "--config", config, "-o", model.parent / "no.dsplan", *flags)
    assert not (model.parent / "no.dsplan").exists()


def test_a_tied_weight_has_none(tools, tmp_path):
    """An embedding that is the head, too: merged weights would change what is looked up."""
    ids, labels = (helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", 4]) for name in ("ids", "labels"))
    nodes = [helper.make_node("Gather", ["table", "ids"], ["e"], name="lookup"), helper.make_node("MatMul", ["e", "w"], ["h"]),
             helper.make_node("Transpose", ["table"], ["t"], perm=[1, 0]), helper.make_node("MatMul", ["h", "t"], ["y"])]
    graph = helper.make_graph(nodes, "g", [ids], [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4, 7])],
                              [numpy_helper.from_array(GENERATOR.standard_normal(shape).astype(numpy.float32), name)
                               for name, shape in (("table", (7, 6)), ("w", (6, 6)))])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), tmp_path / "m.onnx")
    compile_it = ["ds-opt", "compile", tmp_path / "m.onnx", "--attach-loss", "causal-lm", "--config", write_config(tmp_path / "c.json", MICRO),
                  "-o", tmp_path / "m.dsplan", "--lora", 2]
    why = "'table' is read by lookup, too, so its adapter could not be merged"
    assert why in tools(*compile_it).stderr
    assert f"{why}; leave it out of --lora-targets" in tools.refused(*compile_it, "--lora-targets", "table")
