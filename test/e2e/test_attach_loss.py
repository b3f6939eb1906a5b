"""Graphs that end in logits: ds-opt puts transformers' losses behind them, and every part of that is transformers' own."""

import json
import subprocess
import sys

import numpy
import onnx
import pytest
import torch
import transformers
from conftest import REPOSITORY, write_config
from onnx import TensorProto, helper, numpy_helper
from plan_files import read_plan, write_plan
from safetensors import safe_open
from safetensors.torch import save_file
from transformers.loss import loss_utils
from transformers.trainer_pt_utils import LabelSmoother

BATCH, TOKENS, CLASSES, WIDTH = 4, 6, 5, 3
SAMPLES = 2 * BATCH
LOSSES = {"causal-lm": [TOKENS], "masked-lm": [TOKENS], "token-classification": [TOKENS], "classification": [], "regression": []}


def linear_model(path, middle, width):
    """logits = x w, x: [BATCH, *middle, WIDTH]."""
    w = numpy.random.default_rng(0).normal(size=(WIDTH, width)).astype(numpy.float32)
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", *middle, WIDTH])]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, None)]
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w.0"], ["logits"])], "g", inputs, outputs, [numpy_helper.from_array(w, "w.0")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)
    return torch.from_numpy(w)


def samples_of(kind, path, width=CLASSES):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(SAMPLES, *LOSSES[kind], WIDTH, generator=generator)
    if kind == "regression":
        labels = torch.randn(SAMPLES, *([] if width == 1 else [width]), generator=generator)
    else:
        labels = torch.randint(0, CLASSES, (SAMPLES, *LOSSES[kind]), generator=generator)
        if labels.dim() > 1:
            labels[0, 2:] = -100
            labels[3, :2] = -100
    save_file({"x": x, "labels": labels}, path)
    return x, labels


def by_transformers(kind, logits, labels, width):
    config = transformers.BertConfig(num_labels=width)
    return {"causal-lm": lambda: loss_utils.ForCausalLMLoss(logits, labels, width),
            "masked-lm": lambda: loss_utils.ForMaskedLMLoss(logits, labels, width),
            "token-classification": lambda: loss_utils.ForTokenClassification(logits, labels, config),
            "classification": lambda: loss_utils.ForSequenceClassificationLoss(labels, logits, config),
            "regression": lambda: loss_utils.ForSequenceClassificationLoss(labels, logits, transformers.BertConfig(
                num_labels=width, problem_type="regression"))}[kind]()


@pytest.mark.parametrize("kind,width", [*((kind, CLASSES) for kind in LOSSES), ("regression", 1)])
def test_losses_are_those_of_transformers(tools, tmp_path, kind, width):
    """The loss before and after an update, so the gradient, too."""
    w = linear_model(tmp_path / "m.onnx", LOSSES[kind], width).requires_grad_()
    x, labels = samples_of(kind, tmp_path / "data.safetensors", width)
    config = write_config(tmp_path / "c.json", BATCH, optimizer={"type": "SGD", "params": {"lr": 0.5}})
    plan = tmp_path / "m.dsplan"
    tools("ds-opt", "compile", tmp_path / "m.onnx", "--config", config, "--attach-loss", kind, "-o", plan)
    lines, _ = tools.train(plan, tmp_path / "data.safetensors", 2)
    expected = []
    for step in range(2):
        part = slice(step * BATCH, (step + 1) * BATCH)
        loss = by_transformers(kind, x[part] @ w, labels[part], width)
        expected.append(loss.item())
        w = (w - 0.5 * torch.autograd.grad(loss, w)[0]).detach().requires_grad_()
    numpy.testing.assert_allclose([line["loss"] for line in lines], expected, rtol=2e-6)
    tools("ds-opt", "verify", plan, "--model", tmp_path / "m.onnx", "--config", config)


@pytest.mark.parametrize("kind", ["masked-lm", "classification"])
def test_the_loss_of_probabilities_is_that_of_their_logits(tools, tmp_path, kind):
    """A file made for inference ends in a softmax; no second one is taken."""
    w = linear_model(tmp_path / "m.onnx", LOSSES[kind], CLASSES)
    proto = onnx.load(tmp_path / "m.onnx")
    proto.graph.node.append(helper.make_node("Softmax", ["logits"], ["p"], axis=-1))
    proto.graph.output[0].name = "p"
    onnx.save(proto, tmp_path / "m.onnx")
    x, labels = samples_of(kind, tmp_path / "data.safetensors")
    config, plan = write_config(tmp_path / "c.json", BATCH), tmp_path / "m.dsplan"
    said = tools("ds-opt", "compile", tmp_path / "m.onnx", "--config", config, "--attach-loss", kind, "-o", plan).stderr
    assert "output 'p' is a softmax, so the loss is taken of what the softmax is computed of" in said
    lines, _ = tools.train(plan, tmp_path / "data.safetensors", 1)
    assert lines[0]["loss"] == pytest.approx(by_transformers(kind, x[:BATCH] @ w, labels[:BATCH], CLASSES).item(), rel=2e-6)
    tools("ds-opt", "verify", plan, "--model", tmp_path / "m.onnx", "--config", config)
    audit = [sys.executable, REPOSITORY / "tools" / "ds-audit" / "ds-audit", plan, "--model", tmp_path / "m.onnx", "--config", config]
    assert "the loss" in subprocess.run(audit, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("kind", ["causal-lm", "masked-lm", "classification"])
def test_label_smoothing_is_that_of_transformers_and_of_torch(tools, tmp_path, kind):
    w = linear_model(tmp_path / "m.onnx", LOSSES[kind], CLASSES)
    x, labels = samples_of(kind, tmp_path / "data.safetensors")
    config = write_config(tmp_path / "c.json", BATCH, deepstatic={"loss": {"kind": kind, "label_smoothing": 0.2}})
    plan = tmp_path / "m.dsplan"
    tools("ds-opt", "compile", tmp_path / "m.onnx", "--config", config, "-o", plan)
    lines, _ = tools.train(plan, tmp_path / "data.safetensors", 1)
    logits, labels = x[:BATCH] @ w, labels[:BATCH]
    smoother = LabelSmoother(epsilon=0.2)({"logits": logits}, labels.clone(), shift_labels=kind == "causal-lm")
    if kind == "causal-lm":
        labels = torch.nn.functional.pad(labels, (0, 1), value=-100)[:, 1:]
    by_torch = torch.nn.functional.cross_entropy(logits.reshape(-1, CLASSES), labels.reshape(-1), label_smoothing=0.2)
    numpy.testing.assert_allclose([lines[0]["loss"]] * 2, [smoother.item(), by_torch.item()], rtol=2e-6)
    tools("ds-opt", "verify", plan, "--model", tmp_path / "m.onnx", "--config", config)


def logits_graph(folder, saved):
    """What a user writes by hand: torch.onnx.export of the forward pass."""
    module = transformers.AutoModelForCausalLM.from_pretrained(saved, use_cache=False).train()
    ids = torch.randint(0, 64, (2, 16))
    folder.mkdir()
    torch.onnx.export(module, (), folder / "model.onnx", kwargs={"input_ids": ids}, dynamo=True, optimize=False, external_data=True,
                      dynamic_shapes={"input_ids": {0: torch.export.Dim("batch")}}, output_names=["logits"], verbose=False)


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_a_logits_graph_trains_to_the_bits_of_a_graph_with_the_loss_inside(tools, tmp_path, name):
    saved, inside, outside = tmp_path / "saved", tmp_path / "inside", tmp_path / "outside"
    settings = dict(vocab_size=64, use_cache=False, bos_token_id=1, eos_token_id=2)
    config = (transformers.GPT2Config(n_embd=32, n_layer=2, n_head=4, n_positions=16, attn_pdrop=0, embd_pdrop=0, resid_pdrop=0, **settings)
              if name == "gpt2" else transformers.LlamaConfig(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
                                                              num_key_value_heads=2, max_position_embeddings=16, **settings))
    torch.manual_seed(0)
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(saved)
    tools("export.py", saved, "--seq", 16, "--out", inside)
    logits_graph(outside, saved)
    ids = torch.randint(0, 64, (8, 16), generator=torch.Generator().manual_seed(2))
    save_file({"input_ids": ids, "labels": ids.clone()}, tmp_path / "data.safetensors")
    weights = {}
    for folder, flags in ((inside, []), (outside, ["--attach-loss", "causal-lm"])):
        plan = tmp_path / f"{folder.name}.dsplan"
        tools("ds-opt", "compile", folder, "--config", write_config(tmp_path / "c.json", 2), "-o", plan, *flags)
        lines, _ = tools.train(plan, tmp_path / "data.safetensors", 4, "--threads", 1, "--export", plan.with_suffix(".safetensors"))
        with safe_open(plan.with_suffix(".safetensors"), "pt") as file:
            weights[folder.name] = {key: file.get_tensor(key) for key in file.keys()}
    assert len(weights["inside"]) > 20 and weights["inside"].keys() == weights["outside"].keys()
    assert [key for key, value in weights["inside"].items() if not torch.equal(value, weights["outside"][key])] == []
    assert all(line["loss"] for line in lines)


@pytest.fixture(scope="module")
def smoothed(tools, tmp_path_factory):
    """(plan, model, configuration) of a causal model with label smoothing."""
    folder = tmp_path_factory.mktemp("smoothed")
    linear_model(folder / "m.onnx", [TOKENS], CLASSES)
    config = write_config(folder / "c.json", BATCH, deepstatic={"loss": {"kind": "causal-lm", "label_smoothing": 0.2}})
    tools("ds-opt", "compile", folder / "m.onnx", "--config", config, "-o", folder / "m.dsplan")
    return folder / "m.dsplan", folder / "m.onnx", config


def ops(plan, name):
    return [op for op in plan.reference.ops if op.op == "train." + name and op.name == "loss"]


def set_attribute(plan, op, name, value):
    for one in ops(plan, op):
        next(each for each in one.attributes if each.name == name).integer = value


def unshift(plan):
    for one in ops(plan, "slice"):
        next(each for each in one.attributes if each.name == "starts").integers.values[1] = 0


def smooth_more(plan):
    config = json.loads(plan.config_json)
    config["deepstatic"]["loss"]["label_smoothing"] = 0.3
    plan.config_json = json.dumps(config)


EDITS = {"ignored label": (lambda plan: set_attribute(plan, "cross_entropy", "ignore_index", 3), "label 3 is ignored, not -100"),
         "shift": (unshift, "labels are not shifted by one token"),
         "another loss": (smooth_more, "the configuration asks for another (deepstatic.loss)")}


@pytest.mark.parametrize("name", EDITS)
def test_verify_derives_the_loss_again(tools, smoothed, name):
    """Of plans whose reference program was changed; the checker, which compares commands with it, may be the first to see that."""
    path, model, config = smoothed
    edit, sentence = EDITS[name]
    plan = read_plan(path)
    edit(plan)
    broken = write_plan(path.with_name(f"{name.replace(' ', '-')}.dsplan"), plan)
    refusal = tools.refused("ds-opt", "verify", broken, "--model", model, "--config", config)
    assert sentence in refusal or "meaning" in refusal, refusal


def test_the_audit_computes_an_attached_loss_by_itself(smoothed):
    path, model, config = smoothed
    audit = [sys.executable, REPOSITORY / "tools" / "ds-audit" / "ds-audit", path, "--model", model, "--config", config]
    assert "the loss" in subprocess.run(audit, capture_output=True, text=True, check=True).stdout
    plan = read_plan(path)
    config = json.loads(plan.config_json)
    config["deepstatic"]["loss"]["label_smoothing"] = 0.3
    plan.config_json = json.dumps(config)
    broken = write_plan(path.with_name("audited.dsplan"), plan)
    done = subprocess.run([*audit[:2], broken, *audit[3:]], capture_output=True, text=True)
    assert done.returncode and "the reference program's loss is" in done.stderr + done.stdout


def test_data_without_labels_is_refused_in_one_sentence(tools, smoothed, tmp_path):
    save_file({"x": torch.zeros(SAMPLES, TOKENS, WIDTH)}, tmp_path / "data.safetensors")
    refusal = tools.refused("ds-run", smoothed[0], "--data", tmp_path / "data.safetensors", "--steps", 1)
    assert "has no tensor labels, which the plan reads; it has x" in refusal


def test_losses_are_added_with_their_weights(tools, tmp_path):
    x = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", WIDTH])]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, []) for name in ("main", "auxiliary")]
    nodes = [helper.make_node("Mul", ["x", "w.0"], ["y"]), helper.make_node("ReduceSum", ["y"], ["main"], keepdims=0),
             helper.make_node("ReduceMax", ["y"], ["auxiliary"], keepdims=0)]
    weights = [numpy_helper.from_array(numpy.arange(1, 1 + WIDTH, dtype=numpy.float32), "w.0")]
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", x, outputs, weights), opset_imports=[helper.make_opsetid("", 18)], ir_version=10),
              tmp_path / "m.onnx")
    data = torch.randn(BATCH, WIDTH)
    save_file({"x": data}, tmp_path / "data.safetensors")
    config = write_config(tmp_path / "c.json", BATCH)
    assert "2 float outputs of rank 0, and one must be the loss; choose among 'main', 'auxiliary' with --loss NAME, or several that are added" in \
        tools.refused("ds-opt", "compile", tmp_path / "m.onnx", "--config", config)
    tools("ds-opt", "compile", tmp_path / "m.onnx", "--config", config, "--loss", "main", "--loss", "auxiliary=-0.5", "-o", tmp_path / "m.dsplan")
    lines, _ = tools.train(tmp_path / "m.dsplan", tmp_path / "data.safetensors", 1)
    y = data * torch.arange(1.0, 1 + WIDTH)
    assert lines[0]["loss"] == pytest.approx((y.sum() - 0.5 * y.max()).item(), rel=1e-5)
